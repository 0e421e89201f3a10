"""Loops over columns run in every printer of loops: interpreter, machine code and C agree; GPU: test_gpu_loops.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.llvm.subroutines import routines
from bellcrank.graph import Graph, trace
from bellcrank.graph.columns import ColumnGraph, outline_columns
from bellcrank.graph.loops.column_loop import ColumnLoop, column_loop
from bellcrank.scalar import columnwise
from loop_statements import evaluated
from targets.test_c99 import agree, needs_cc

ROWS, SUMS = 4, 3


def random_columns(seed: int, number: int) -> tuple[ColumnGraph, Any, Any]:
    """Return random sums of products of shared and own elements, and two matrices M and C: x = M given + C."""
    rng = np.random.default_rng(seed)
    used = rng.random((SUMS, ROWS)) < 0.7
    used[0] = True
    places = {place: k for k, place in enumerate(zip(*np.nonzero(used), strict=True))}
    shared = len(places) + 1

    def body(x: Sequence[Any]) -> dict[str, Any]:
        sums = [sum(x[k] * x[shared + c] for (r, c), k in places.items() if r == row) for row in range(SUMS)]
        return {"y": [*sums, x[shared - 1], 2.5, -x[shared]]}

    graph = ColumnGraph(column_loop(trace("column", body, {"x": (shared + ROWS,)}), shared, number))
    numbers = rng.normal(size=shared)
    matrix = np.zeros((SUMS, ROWS))
    for place, k in places.items():
        matrix[place] = numbers[k]
    return graph, numbers, matrix


@pytest.mark.parametrize("number", [1, 3, 8, 19])
@pytest.mark.parametrize("seed", range(3))
def test_interpreted_loop_equals_the_written_columns_and_numpy(seed: int, number: int) -> None:
    graph, shared, matrix = random_columns(seed, number)
    given = np.random.default_rng(number).normal(size=(ROWS, number))
    found = evaluated(graph, graph.loops(), once=True, shared=shared, given=given)["x"]
    np.testing.assert_array_equal(found, graph.write_out().evaluate(shared=shared, given=given)["x"])
    np.testing.assert_array_equal(found, graph.evaluate(shared=shared, given=given)["x"])
    wanted = [matrix @ given, np.full((1, number), shared[-1]), np.full((1, number), 2.5), -given[:1]]
    np.testing.assert_allclose(found, np.concatenate(wanted), rtol=1e-13, atol=1e-14)
    assert graph.count() == graph.written.count()


def test_turns_are_independent() -> None:
    """Columns in any order give the same results: no turn reads what another writes."""
    graph, shared, _ = random_columns(0, 7)
    (loop,) = graph.loops().body
    assert isinstance(loop, ColumnLoop)
    assert loop.independent
    given, order = np.random.default_rng(0).normal(size=(ROWS, 7)), [4, 1, 6, 0, 2, 5, 3]
    found = graph.evaluate(shared=shared, given=given)["x"]
    moved = evaluated(graph, graph.loops(), shared=shared, given=given[:, order])["x"]
    np.testing.assert_array_equal(moved, found[:, order])


def products(number: int) -> Graph:
    """Return A B and A + A A B without loops; a trace records that all columns take the same operations."""

    def column(shared: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        rows = [shared[i : i + ROWS] for i in range(0, len(shared), ROWS)]
        y = [sum(a * x for a, x in zip(row, b, strict=True)) for row in rows]
        return [*y, *(sum(a * x for a, x in zip(row, y, strict=True)) for row in rows)]

    def body(A: Any, B: Any) -> dict[str, Any]:
        found = columnwise(column, list(A.flat), [list(B[:, k]) for k in range(number)])
        return {"C": [list(row) for row in zip(*found, strict=True)]}

    return trace("products", body, {"A": (ROWS, ROWS), "B": (ROWS, number)})


def matrices(number: int, batch: tuple[int, ...] = ()) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(number)
    A, B = rng.normal(size=(*batch, ROWS, ROWS)), rng.normal(size=(*batch, ROWS, number))
    return A, B, np.concatenate([A @ B, A @ (A @ B)], axis=-2)


@pytest.mark.parametrize("number", [3, 8, 19])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_machine_code_of_the_loop_agrees(number: int, dtype: str) -> None:
    """Without tiles: scalar code takes eight columns at once and the others one by one, vector code one by one."""
    short = outline_columns(products(number))
    assert len(short.calls) == 1
    A, B, wanted = (x.astype(dtype) for x in matrices(number, (13,)))
    f = bc.compile(short, dtype=dtype)
    tolerance = {"rtol": 0, "atol": 1e-13 if dtype == "float64" else 1e-5}
    np.testing.assert_allclose(f(A, B), wanted, **tolerance)
    np.testing.assert_allclose([f(a, b) for a, b in zip(A, B, strict=True)], wanted, **tolerance)


def test_machine_code_does_not_grow_with_the_number_of_columns() -> None:
    sizes = [len(routines({"f": outline_columns(products(n)).calls[0]}, 1, 8, "float64").text) for n in (20, 90)]
    assert sizes[1] - sizes[0] < 100  # digits


@needs_cc
@pytest.mark.parametrize("number", [3, 19])
def test_c_of_the_loop_agrees(number: int, tmp_path: Path) -> None:
    A, B, _ = matrices(number)
    for dtype in ("float64", "float32"):
        agree(outline_columns(products(number)), tmp_path / dtype, {"A": A, "B": B}, dtype)
