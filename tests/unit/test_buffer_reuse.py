"""Sums of a loop over columns may reuse buffers of dead values, and never overwrite a value that is still read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.emit.cpu import kernel_module
from bellcrank.emit.llvm.column_layout import assign_rows
from bellcrank.graph import Graph, Node, trace
from bellcrank.scalar import columnwise

SIZE = 7


@st.composite
def loops(draw: st.DrawFn) -> tuple[int, list[int], list[Any], list[list[Node]], list[list[Node]]]:
    """Return tiles of sums of a given number, with operands that are known before the tile."""
    number = draw(st.integers(1, 5))
    symbols: list[Node] = []
    trace("symbols", lambda given: {"x": symbols.extend(given) or given[0]}, {"given": (number,)})
    known, made, read = list(symbols), [], []
    for _ in range(draw(st.integers(1, 5))):
        reads = draw(st.lists(st.sampled_from(known), min_size=1, max_size=6))
        made.append(
            [n for k in range(draw(st.integers(1, 4))) if (n := reads[0] * (len(known) + k + 2.0)) not in known]
        )
        read.append(reads)
        known += made[-1]
    sums = [n for tile in made for n in tile]
    results = draw(st.lists(st.sampled_from(sums), min_size=1))
    return number, draw(st.lists(st.integers(0, number - 1), unique=True)), results, made, read


@given(loops(), st.booleans())
@settings(max_examples=300)
def test_reused_rows_keep_live_values(loop: Any, again: bool) -> None:
    number, over, results, made, read = loop
    found = assign_rows(number, over, results, made, read, again)
    first = {n for tile in read for n in tile if n.op == "input"}
    memory: dict[int, Any] = {n.args[1]: n for n in first}
    for t, (tile, nodes) in enumerate(zip(made, read, strict=True)):
        for n in nodes:
            assert memory[n.args[1] if n.op == "input" else found.row_of_value[n]] is n
        later = {n for after in read[t + 1 :] for n in after}
        for x in tile:
            assert (x in found.row_of_value) == (x in later or x in results)
            if x in found.row_of_value:
                assert found.row_of_value[x] >= number or found.row_of_value[x] in over
                assert again or found.row_of_value[x] not in memory
                memory[found.row_of_value[x]] = x
    assert [memory[place] for place in found.result_rows] == results
    taken = {*range(number), *found.row_of_value.values()}
    assert found.extra_rows == max(taken) + 1 - number
    assert {*found.free_rows} == ({*over} | {p for p in taken if p >= number}) - {*found.result_rows}


def solved(columns: int, later: bool) -> Graph:
    """Return W W^T B with a triangular W; later: with an input as a result as well."""

    def column(shared: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        W = [shared[i * SIZE : (i + 1) * SIZE] for i in range(SIZE)]
        y = [b[i] + sum(W[k][i] * b[k] for k in range(i + 1, SIZE)) for i in range(SIZE)]
        return [y[i] + sum(W[i][k] * y[k] for k in range(i)) for i in range(SIZE)]

    def body(W: Any, B: Any) -> dict[str, Any]:
        given = [[B[i, k] * B[i, k] for i in range(SIZE)] for k in range(columns)]
        found = columnwise(column, list(W.flat), given)
        own = [given[0][0] + found[0][0], given[-1][-1] * found[-1][-1]] if later else []
        return {"X": [list(row) for row in zip(*found, strict=True)], "own": own or [0.0, 0.0]}

    return trace("solved", body, {"W": (SIZE, SIZE), "B": (SIZE, columns)})


@pytest.mark.parametrize("columns", [3, 4, 5, 8, 11, 12])
@pytest.mark.parametrize("later", [False, True])
def test_loop_in_place_equals_the_graph(columns: int, later: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = solved(columns, later)
    monkeypatch.setattr(kernel_module, "MIN_SAVED_OPERATIONS", 0)
    assert kernel_module.outline_columns(graph, 0).calls
    f = bc.compile(graph)
    rng = np.random.default_rng(columns)
    W, B = rng.normal(size=(21, SIZE, SIZE)), rng.normal(size=(21, SIZE, columns))
    wanted = graph.evaluate(W=W, B=B)
    for name, found in f(W, B).items():
        np.testing.assert_allclose(found, wanted[name], rtol=1e-13, atol=1e-13)
