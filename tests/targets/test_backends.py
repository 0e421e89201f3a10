"""Every backend equals `evaluate`, the definition: LLVM for one state and for batches, both precisions, all widths.

(The C99 target has a file of its own, test_c99.py.) Few modules are compiled, and each is tested widely: many outputs
in one graph and all batch sizes from 1 to 40, so that every number of whole blocks and every length of tail occurs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.dynamics import QUANTITIES
from bellcrank.emit.cpu import kernel_module, python_entry
from bellcrank.emit.cpu.kernel import Kernel
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.llvm.host import compile_text
from bellcrank.emit.target import About, Signature
from bellcrank.graph import Graph, trace
from bellcrank.nodes.ops import OPS
from bellcrank.scalar import (
    acos,
    asin,
    atan2,
    cos,
    exp,
    fabs,
    floor,
    log,
    maximum,
    minimum,
    sin,
    sqrt,
    tan,
    tanh,
    where,
)
from loops import closed
from trees import ALL, random_tree

WIDTHS = [("float64", 2), ("float64", 4), ("float64", 8), ("float32", 4), ("float32", 8), ("float32", 16)]
# Relative to the largest element. float64 differs by fused multiply-adds and the last bit of sine and cosine; in
# float32 the constants are rounded as well.
TOLERANCE = {"float64": 2e-13, "float32": 2e-5}


def compiled(g: Graph, width: int, dtype: str, chunk: int = kernel_module.CHUNK_ITEMS, threads: int = 1) -> Kernel:
    """Compile a graph for vectors of any width: LLVM splits or joins them for this processor."""
    text = kernel_module.source(g, width, dtype, chunk)
    outputs = {name: array.shape for name, array in g.outputs.items()}
    if len(outputs) == 1:
        text += "\n" + python_entry.definition(list(g.inputs.values()), next(iter(outputs.values())), dtype, 2**62)
    signature = Signature(g.name, g.inputs, outputs, dtype)
    library = Library(compile_text(text))
    return Kernel(About(signature, lambda: g, lambda: text, "test"), library, threads)


def same(got: Any, expected: Any, tolerance: float) -> None:
    got, expected = np.asarray(got, float), np.asarray(expected, float)
    assert got.shape == expected.shape
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    worst = np.abs(got - expected).max(initial=0.0)
    assert worst <= tolerance * scale, f"off by {worst:.2e} of {scale:.2e}"


def check(k: Kernel, rows: list[int]) -> None:
    """Compare one state, and batches of each size, with the definition."""
    rng = np.random.default_rng(0)
    dtype = k.signature.dtype
    tolerance = TOLERANCE[dtype]
    x = {name: rng.uniform(0.2, 0.8, (max(rows), *shape)).astype(dtype) for name, shape in k.signature.inputs.items()}
    exact = k.graph.evaluate(**{name: a.astype(float) for name, a in x.items()})
    for n in rows:
        results = k(*(a[:n] for a in x.values()))
        results = results if isinstance(results, dict) else {next(iter(exact)): results}
        for name, y in results.items():
            assert y.dtype == dtype
            same(y, exact[name][:n], tolerance)
    results = k(*(a[-1] for a in x.values()))
    for name, y in (results if isinstance(results, dict) else {next(iter(exact)): results}).items():
        same(y, exact[name][-1], tolerance)


# -- operations


def every_operation() -> Graph:
    def body(x: Any, y: Any) -> dict[str, Any]:
        a, b, c = x
        d = y[0, 0]
        unary = [f(a * b) for f in (sin, cos, tan, asin, acos, sqrt, exp, log, tanh, fabs, floor)]
        binary = [a + b, a - b, a * b, a / b, -a, minimum(a, b), maximum(a, b), atan2(a, b), atan2(-a, b), atan2(a, -b)]
        chosen = [where(a < b, c, d), where(a <= 0.5, 1.0, c), where(a > b, a * b, 2.0), where(b >= c, sin(b), cos(c))]
        mixed = [
            2.0 - a * b,
            a * b - c,
            c - a * b,
            a * b + c * d,
            a * b - c * d,
            1.0 / (a * b + 2.0),
            minimum(a, 0.5) - 3.0,
        ]
        nested = [sin(cos(sin(a) + b) * 3.0), cos(sin(a) - sin(b)), sin(9.0 * a), sqrt(a * a + b * b) / c]
        return {"out": [*unary, *binary, *chosen, *mixed, *nested, fabs(a - b), 7.0, a]}

    return trace("operations", body, {"x": (3,), "y": (2, 1)})


@pytest.mark.parametrize(("dtype", "width"), WIDTHS)
def test_every_operation(dtype: str, width: int) -> None:
    g = every_operation()
    assert {n.op for n in g.nodes} - {"input"} == set(OPS)
    check(compiled(g, width, dtype), list(range(1, 41)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_comparisons_handle_equality(dtype: str) -> None:
    def body(x: Any) -> dict[str, Any]:
        a, b = x
        return {"y": [where(c, 1.0, 2.0) for c in (a < b, a <= b, a > b, a >= b, a < 0.5, a <= 0.5)]}

    k = compiled(trace("compare", body, {"x": (2,)}), 8, dtype)
    x = np.array([[0.5, 0.5], [0.25, 0.5], [0.5, 0.25], [0.0, -0.0]])
    assert np.array_equal(k(x), k.graph.evaluate(x=x)["y"])
    assert k(x)[0].tolist() == [2.0, 1.0, 2.0, 1.0, 2.0, 1.0]
    assert all(np.array_equal(k(row), k(x)[i]) for i, row in enumerate(x))


@pytest.mark.parametrize("chunk", [1, 2, 7, 50])
def test_graphs_are_cut_anywhere(chunk: int) -> None:
    """Results do not depend on where a graph is cut into chunks: values live across a cut go through the workspace."""
    check(compiled(every_operation(), 4, "float64", chunk), [1, 3, 4, 5, 9, 64, 131])  # with groups of sixteen fours


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_arrays_of_every_size(dtype: str) -> None:
    """Rows of 0 to 9 columns in and out: whole tiles, tiles that overlap their neighbour, and narrow ones."""

    def body(**x: Any) -> dict[str, Any]:
        total = sum((a.sum() for a in x.values()), 0.0)
        return {f"out{n}": [total * (i + 1.0) for i in range(n)] for n in range(1, 10)} | {"sum": total}

    g = trace("sizes", body, {f"in{n}": (n,) for n in range(1, 10)})
    check(compiled(g, 4 if dtype == "float64" else 8, dtype), [1, 2, 3, 4, 5, 8, 13])


def test_constants_copies_and_unused_inputs() -> None:
    def body(x: Any, unread: Any) -> dict[str, Any]:
        return {"constant": np.eye(3), "copy": x, "again": [x[0], x[0], 2.0, x[1]], "scalar": 4.0, "negative": -x[0]}

    k = compiled(trace("plain", body, {"x": (2,), "unread": (5,)}), 4, "float64")
    check(k, [1, 4, 6])
    assert np.array_equal(k([1.0, 2.0], np.zeros(5))["constant"], np.eye(3))


FUNCTIONS: list[Any] = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: -a, lambda a, b: a / (b * b + 1.0),
    lambda a, b: sin(a), lambda a, b: cos(a), lambda a, b: sqrt(a * a + 0.5), lambda a, b: fabs(a), minimum, maximum,
    lambda a, b: where(a < b, a, b * 2.0), lambda a, b: atan2(a, b * b + 0.1), lambda a, b: tanh(a),
]  # fmt: skip


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from(WIDTHS), st.integers(5, 200))
def test_random_graphs(seed: int, kind: tuple[str, int], chunk: int) -> None:
    """Graphs of a hundred and fifty random operations, each of them an output or not."""
    rng = np.random.default_rng(seed)

    def body(x: Any) -> dict[str, Any]:
        stack: list[Any] = [*x, 0.0, 1.0, -1.0, 0.5, -2.0]
        for _ in range(150):
            f = FUNCTIONS[int(rng.integers(len(FUNCTIONS)))]
            a, b = (stack[int(i)] for i in rng.integers(max(0, len(stack) - 60), len(stack), 2))
            y = f(a, b)
            stack.append(y - 3.0 * fabs(y) / (fabs(y) + 1.0))  # bounded, so that errors do not grow with the depth
        return {"y": [v for v in stack[10:] if rng.random() < 0.3]}

    dtype, width = kind
    k = compiled(trace("random", body, {"x": (6,)}), width, dtype, chunk)
    x = rng.uniform(0.2, 0.8, (23, 6)).astype(dtype)
    got, exact = k(x), k.graph.evaluate(x=x.astype(float))["y"]
    # Deep random graphs amplify rounding, so the bound is the effect of a last-bit change of the input.
    nudged = k.graph.evaluate(x=x.astype(float) * (1 + 4 * np.finfo(dtype).eps))["y"]
    slack = np.abs(nudged - exact).max() + 100 * np.finfo(dtype).eps * np.abs(exact).max()
    assert np.median(np.abs(got - exact)) <= slack
    assert (np.abs(got - exact) <= 50 * slack).all()


# -- quantities of a mechanism, through the whole compiler


@cache
def mechanism() -> bc.Mechanism:
    return random_tree(2, [*ALL, "revolute"], [0, 1, 2, 1, 2, 3, 4, 5, 0], armature=True, passive=True)


@cache
def looped() -> bc.Mechanism:
    tree = random_tree(2, [*ALL, "revolute"], [0, 1, 2, 1, 2, 3, 4, 5, 0])
    return closed(tree, 1, ["revolute", "distance", "gear"])[0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_quantity(quantity: str, dtype: str) -> None:
    m = looped() if quantity.startswith(("closure", "loop")) else mechanism()
    option = {"frame": {"frame": "f5"}}.get(QUANTITIES[quantity].option, {})
    k = bc.kernel(m, quantity, dtype=dtype, **option)
    q, v, tau = (x.astype(dtype) for x in m.random(0, (40,)))
    x = {"q": q, "v": v, "tau": tau, "a": tau, "dv": v, "q0": q, "q1": m.random(1, (40,))[0].astype(dtype)}
    inputs = {name: x[name] for name in k.signature.inputs}
    exact = k.graph.evaluate(**{name: a.astype(float) for name, a in inputs.items()})[quantity]
    # float32: M of this tree has a condition number of about 1e2
    tolerance = {"float64": 1e-12, "float32": 2e-4}[dtype]
    for n in range(1, 41):
        same(k(*(a[:n] for a in inputs.values())), exact[:n], tolerance)
    for i in (0, 39):
        same(k(*(a[i] for a in inputs.values())), exact[i], tolerance)
    one_row_for_all = [a[:1] if j else a for j, a in enumerate(inputs.values())]
    same(
        k(*one_row_for_all),
        k.graph.evaluate(**dict(zip(inputs, (a.astype(float) for a in one_row_for_all))))[quantity],
        tolerance,
    )


@pytest.mark.parametrize(("dtype", "width"), WIDTHS)
def test_angles_of_the_next_block(dtype: str, width: int) -> None:
    """Sines of the next block are computed ahead; angles out of range, and NaN, affect only their own block."""

    def outer(x: Any) -> dict[str, Any]:
        s, c = [sin(a) for a in x], [cos(2.0 * a) for a in x]
        return {"m": [[p * q + x[0] for q in c] for p in s]}

    k = compiled(trace("outer", outer, {"x": (5,)}), width, dtype)
    x = np.random.default_rng(1).uniform(-3, 3, (40, 5)).astype(dtype)
    x[[0, 7, 8, 21, 38, 39], [0, 4, 1, 2, 3, 4]] = [2e5, -3e5, 4e5, 2.5e5, -1e6, 3e6]
    exact = k.graph.evaluate(x=x.astype(float))["m"]
    scale = np.maximum(1.0, np.abs(x[:, :1, None]))
    for n in range(1, 41):
        same(k(x[-n:]) / scale[-n:], exact[-n:] / scale[-n:], 1e-6 if dtype == "float32" else 1e-13)
        for row in {0, n // 2, n - 1}:
            bad = x[-n:].copy()
            bad[row, row % 5] = np.nan
            with pytest.raises(bc.InputError, match=rf"\[{row}, {row % 5}\]"):
                k(bad)


@pytest.mark.parametrize("method", ["aba", "crba"])
def test_both_methods_of_forward_dynamics(method: str) -> None:
    m = mechanism()
    q, v, tau = m.random(1, (9,))
    k = bc.kernel(m, "forward_dynamics", method=method, wrenches=("f3", "f7"))
    w = np.random.default_rng(0).uniform(-1, 1, (9, 2, 6))
    same(k(q, v, tau, w), k.graph.evaluate(q=q, v=v, tau=tau, wrench=w)["forward_dynamics"], 1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_two_threads(dtype: str) -> None:
    """Two threads give the same bits: rows are divided into blocks, so the same code sees each row in the same lane."""
    m = mechanism()
    one, two = (bc.kernel(m, "mass_matrix", dtype=dtype, threads=n) for n in (1, 2))
    q, _, _ = m.random(3, (2 * two.signature.rows_per_thread + 13,))
    assert np.array_equal(one(q), two(q))
    same(two(q)[::1000], one.graph.evaluate(q=q[::1000])["mass_matrix"], 1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("method", ["aba", "crba"])
def test_a_large_graph_is_cut_and_still_right(method: str) -> None:
    m = bc.zoo.tree(40, branching=3, twist="general", seed=1)
    k = bc.kernel(m, "forward_dynamics", method=method)
    assert k.graph.count().arithmetic > 3 * kernel_module.CHUNK_ITEMS
    q, v, tau = m.random(0, (11,))
    same(k(q, v, tau), k.graph.evaluate(q=q, v=v, tau=tau)["forward_dynamics"], 1e-10)
    same(k(q[0], v[0], tau[0]), k(q, v, tau)[0], 1e-10)
