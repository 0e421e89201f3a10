"""Matrices are stored completely by transposing code, without writing beyond them, at any alignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.cpu import kernel_module
from bellcrank.graph import Graph, trace
from bellcrank.scalar import columnwise

ROWS = 7


def product(columns: int) -> Graph:
    """Return A B, and beside it a matrix with constant elements."""

    def column(shared: Sequence[Any], c: Sequence[Any]) -> list[Any]:
        return [sum(a * x for a, x in zip(shared[i : i + 3], c, strict=True)) for i in range(0, len(shared), 3)]

    def body(A: Any, B: Any) -> dict[str, Any]:
        found = columnwise(column, list(A.flat), [list(B[:, k]) for k in range(columns)])
        C = [list(row) for row in zip(*found, strict=True)]
        fixed = [[float(i == k) if i else A[0, 0] for k in range(columns)] for i in range(ROWS)]
        return {"C": [C, fixed]}

    return trace("product", body, {"A": (ROWS, 3), "B": (3, columns)})


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("columns", [7, 8, 10, 12])
def test_matrices_are_stored_at_any_cache_line_offset(
    columns: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matrices are stored correctly whether rows begin at one offset in a cache line, at two in turn, or at any."""
    monkeypatch.setattr(kernel_module, "MIN_SAVED_OPERATIONS", 0)
    graph = product(columns)
    f = bc.compile(graph, dtype=dtype)
    assert "@rows" in f.source
    rng = np.random.default_rng(0)
    A, B = (rng.normal(size=(19, *shape)).astype(dtype) for shape in ((ROWS, 3), (3, columns)))
    exact = graph.evaluate(A=A, B=B)["C"]
    size, item = exact.size, np.dtype(dtype).itemsize
    for offset in range(64 // item):
        room = np.full(size + 64, -7.0, dtype)
        begin = (-room.ctypes.data % 64) // item + offset
        out = room[begin : begin + size].reshape(exact.shape)
        assert f(A, B, out=out) is out
        np.testing.assert_allclose(out, exact, rtol=0, atol=1e-14 if item == 8 else 1e-5)
        assert (room[:begin] == -7.0).all()
        assert (room[begin + size :] == -7.0).all()
