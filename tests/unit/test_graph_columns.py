"""Outlined loops over columns give the same numbers as node-by-node evaluation, in any storage layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.emit.cpu import kernel_module
from bellcrank.emit.llvm.column_code import ColumnCode
from bellcrank.emit.llvm.column_layout import ColumnUnits, divide_columns, output_layouts, tile_sums, visible_operands
from bellcrank.emit.llvm.llvm_printer import LLVMPrinter
from bellcrank.graph import Graph, trace
from bellcrank.graph.columns import outline_columns
from bellcrank.graph.loops.column_loop import ColumnLoop
from bellcrank.scalar import columnwise

N = 5


def product(columns: int, blocks: int = 1, beside: bool = False, used: bool = False) -> Graph:
    """Return -A B with a zero column of A and a column of ones.

    `blocks`: columns that are adjacent in the output; `beside`: with another output of the same array; `used`: with
    results that are also used by other nodes.
    """

    def column(shared: Sequence[Any], c: Sequence[Any]) -> list[Any]:
        rows = [shared[i : i + N - 2] for i in range(0, len(shared), N - 2)]
        return [-(sum(a * x for a, x in zip(row, c[1:-1], strict=True)) + c[0] + 0.0 * c[-1]) for row in rows]

    def body(A: Any, B: Any) -> dict[str, Any]:
        given = [[B[0, k], *B[1:-1, k], 3.0 if k else 0.0] for k in range(columns)]
        found = columnwise(column, list(A.flat), given)
        out = [list(row) for row in zip(*found, strict=True)]
        if blocks > 1:
            out = [[row[k] for b in range(blocks) for k in range(b, columns, blocks)] for row in out]
        if beside:
            out = [[A[0, 0] * A[0, 1], *row] for row in out]
        if used:
            out[0][0] = out[0][0] * out[1][0]
        return {"C": out}

    return trace("product", body, {"A": (N, N - 2), "B": (N, columns)})


def compiled(graph: Graph, monkeypatch: pytest.MonkeyPatch, dtype: str = "float64") -> Any:
    monkeypatch.setattr(kernel_module, "MIN_SAVED_OPERATIONS", 0)
    return bc.compile(graph, dtype=dtype)


@pytest.mark.parametrize("columns", [3, 4, 5, 7, 8, 12, 13])
@pytest.mark.parametrize(
    ("blocks", "beside", "used"), [(1, False, False), (2, False, False), (1, True, False), (1, False, True)]
)
def test_loops_over_columns_equal_the_graph(
    columns: int, blocks: int, beside: bool, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = product(columns, blocks, beside, used)
    short = outline_columns(graph)
    assert len(short.calls) == 1
    assert used or short.count() == graph.count()
    assert bool(output_layouts(short)) is not used
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(11, N, N - 2)), rng.normal(size=(11, N, columns))
    exact = graph.evaluate(A=A, B=B)["C"]
    np.testing.assert_array_equal(short.evaluate(A=A, B=B)["C"], exact)
    f = compiled(graph, monkeypatch)
    assert "columns0" in f.source
    np.testing.assert_allclose(f(A, B), exact, rtol=0, atol=1e-14)
    np.testing.assert_array_equal([f(a, b) for a, b in zip(A, B, strict=True)], f(A, B))


@pytest.mark.parametrize("order", [[*range(7), 15, *range(8, 15), 7], [*range(7, 14), *range(7)]])
def test_columns_that_lie_side_by_side_are_stored_together(order: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Adjacent columns are stored together: seven by seven, as for an arm with a separate hand.

    No four of them begin at every fourth column.
    """
    whole = product(len(order))
    C = whole.outputs["C"][:, order]
    graph = Graph(whole.name, whole.inputs, {"C": C}, whole.tape)
    assert [f.loop.number for f in outline_columns(graph).calls] == [len(order)]  # type: ignore[attr-defined]
    short = outline_columns(graph, apart=True)
    assert sorted(f.loop.number for f in short.calls) == ([2, 14] if len(order) == 16 else [14])
    largest = max(output_layouts(short).values(), key=lambda to: len(to.columns))
    assert divide_columns(14, 4, largest, any_size=False) == ColumnUnits([0, 3, 7, 10], 4, [4])
    assert divide_columns(14, 8, largest, any_size=True) == ColumnUnits([0, 7], 7, [7])
    rng = np.random.default_rng(2)
    A, B = rng.normal(size=(9, N, N - 2)), rng.normal(size=(9, N, len(order)))
    f = compiled(graph, monkeypatch)
    exact = graph.evaluate(A=A, B=B)["C"]
    np.testing.assert_allclose(f(A, B), exact, rtol=0, atol=1e-14)
    np.testing.assert_array_equal([f(a, b) for a, b in zip(A, B, strict=True)], f(A, B))


def test_single_precision_has_more_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in (5, 9, 17):
        graph = product(columns, 2)
        rng = np.random.default_rng(1)
        A, B = rng.normal(size=(19, N, N - 2)), rng.normal(size=(19, N, columns))
        f = compiled(graph, monkeypatch, "float32")
        exact = graph.evaluate(A=A, B=B)["C"]
        np.testing.assert_allclose(f(A.astype("float32"), B.astype("float32")), exact, rtol=0, atol=1e-5)
        found = [f(a, b) for a, b in zip(A.astype("float32"), B.astype("float32"), strict=True)]
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-5)


def twice(columns: int) -> Graph:
    """Return products of products, as with the factors of an inverse: sums of sums."""

    def column(shared: Sequence[Any], c: Sequence[Any]) -> list[Any]:
        factor = iter(shared)
        y = [sum(next(factor) * c[r] for r in range(i, N)) for i in range(N)]
        x = [-sum(next(factor) * y[a] for a in range(i + 1)) for i in range(N)]
        return [*x, y[0] * x[0], c[1], 2.5]

    def body(A: Any, B: Any) -> dict[str, Any]:
        found = columnwise(column, list(A.flat), [list(B[:, k]) for k in range(columns)])
        return {"C": [list(row) for row in zip(*found, strict=True)]}

    return trace("twice", body, {"A": (N * (N + 1),), "B": (N, columns)})


@pytest.mark.parametrize("columns", [3, 8, 19])
@pytest.mark.parametrize("registers", [2, 16, 32])
def test_sums_in_tiles_are_the_same_sums(columns: int, registers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ColumnCode, "_sums_per_tile", lambda self: max(1, registers // 4 - 1))
    graph = twice(columns)
    k = compiled(graph, monkeypatch)
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(9, N * (N + 1))), rng.normal(size=(9, N, columns))
    want = graph.evaluate(A=A, B=B)["C"]
    np.testing.assert_allclose(k(A, B), want, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(k(A[3], B[3]), want[3], rtol=1e-12, atol=1e-13)


def test_tile_reads_only_earlier_values() -> None:
    (loop,) = outline_columns(twice(8)).calls[0].loops().body  # type: ignore[union-attr]
    assert isinstance(loop, ColumnLoop)
    body = loop.graph
    s = LLVMPrinter(body, 1, 1, "float64", [], called={})
    for most in (1, 3, 100):
        found = tile_sums(loop, s.inline, s.addends, most)
        order = [n for tile in found for group in tile for n in group]
        assert {n.serial for n in order} == {n.serial for n in body.nodes if n.op != "input" and not s.inline(n)}
        assert len(order) == len({n.serial for n in order})
        seen: set[int] = set()
        for tile in found:
            before = set(seen)
            for n in (n for group in tile for n in group):
                for a in visible_operands(n, s.inline):
                    known = seen if a is s.addends.get(n.serial) else before
                    assert a.op == "input" or a.serial in known
                seen.add(n.serial)


def test_symmetric_product_is_a_loop_where_lanes_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A symmetric product is a loop where lanes would be empty, although a trace computes only one half of it."""

    def body(A: Any) -> dict[str, Any]:
        half = {(i, k): sum(x * y for x, y in zip(A[i], A[k], strict=True)) for i in range(N) for k in range(i + 1)}
        square = [[half[max(i, k), min(i, k)] for k in range(N)] for i in range(N)]

        def column(shared: Sequence[Any], c: Sequence[Any]) -> list[Any]:
            rows = [shared[i : i + 3] for i in range(0, len(shared), 3)]
            return [sum(x * y for x, y in zip(row, c, strict=True)) for row in rows]

        columnwise(column, list(A.flat), [list(row) for row in A], square)
        return {"C": square}

    graph = trace("gram", body, {"A": (N, 3)})
    assert outline_columns(graph) is graph
    assert [c.loop.number for c in outline_columns(graph, known=True).calls] == [N]  # type: ignore[attr-defined]
    k = compiled(graph, monkeypatch)
    A = np.random.default_rng(0).normal(size=(9, N, 3))
    want = A @ np.swapaxes(A, 1, 2)
    np.testing.assert_allclose(k(A), want, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(k(A[2]), want[2], rtol=1e-13, atol=1e-14)


def test_few_columns_and_small_gains_are_no_loops() -> None:
    assert outline_columns(product(2)).calls == []
    graph = product(8)
    assert outline_columns(graph, fewest=10_000) is graph


def limbs() -> bc.Mechanism:
    """Return a floating body with two limbs of three joints."""
    b = bc.Builder("limbs")
    b.body("trunk", mass=4.0, com=(0.1, 0.0, 0.2), inertia=(0.2, 0.3, 0.4))
    b.joint("base", "floating", "ground", "trunk")
    for side, y in (("left", 0.3), ("right", -0.4)):
        parent = "trunk"
        for k, axis in enumerate(((1, 0, 0), (0, 1, 0), (0, 0.6, 0.8))):
            name = f"{side}{k}"
            b.body(name, mass=1.0 + k, com=(0.1, y, -0.3 * k), inertia=(0.03, 0.02, 0.01))
            b.joint(f"{name}_joint", "revolute", parent, name, point=(0.05 * k, y, -0.3 * k), axis=axis)
            parent = name
    return b.build()


def test_derivatives_of_a_branched_mechanism_in_loops_are_those_of_another_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Derivatives of a branched mechanism in loops agree with those of another method.

    The two limbs of several joints have some equal columns, and some single ones.
    """
    m = limbs()
    graph = graphs.graph(m, "forward_dynamics_derivatives", "derivatives")
    assert len(outline_columns(graph).calls) > 1
    q, v, tau = m.random(0, 7)
    exact = graphs.graph(m, "forward_dynamics_derivatives", "aba").evaluate(q=q, v=v, tau=tau)
    f = compiled(graph, monkeypatch)
    scale = np.abs(exact["forward_dynamics_derivatives"]).max()
    np.testing.assert_allclose(f(q, v, tau), exact["forward_dynamics_derivatives"], rtol=0, atol=1e-11 * scale)
    alone = [f(*state) for state in zip(q, v, tau, strict=True)]
    np.testing.assert_allclose(alone, exact["forward_dynamics_derivatives"], rtol=0, atol=1e-11 * scale)
