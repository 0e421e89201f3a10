"""Prefetching for later blocks: every line of every column once, nothing beyond an array, only where it helps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.quantities import Request
from bellcrank.emit.cuda import array_access as prefetch
from bellcrank.emit.cuda.batch_kernel import HEAD, BatchKernelText
from emulated import Function

STATES, BLOCKS, PIECE = 32, 1, 4096  # a prefetched piece serves 16 blocks of float64
COLUMNS = {"in_q": 19, "in_tau": 3}  # more than the number of blocks in a piece


def alone() -> str:
    """Return a kernel that only prefetches."""
    arrays = "".join(f", ptr addrspace(1) %{a}, i32 %{a}.row, i32 %{a}.column" for a in COLUMNS)
    return f"""{HEAD}define ptx_kernel void @many(i64 %n{arrays}) {{
  %place = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %place.wide = zext i32 %place to i64
{prefetch.prefetch_code(COLUMNS, "double", 8, STATES, BLOCKS)}  ret void
}}"""


def lines(row: int, n: int) -> tuple[list[int], list[np.ndarray[Any, Any]]]:
    function = Function(alone().replace("declare void @llvm.nvvm.barrier0()\n", ""), "many", STATES, 0)
    arrays = [np.zeros((columns, n)) for columns in COLUMNS.values()]
    strides = [np.uint32(row), np.uint32(n)]
    function(n, np.int64(n), *(x for a in arrays for x in (a, *strides)))
    return function.fetched, arrays


@pytest.mark.parametrize("n", [16 * STATES * 9, 16 * STATES * 9 - 1, 100])
def test_every_line_once(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "PIECE_BYTES", PIECE)
    found, arrays = lines(1, n)
    rows = PIECE // 8
    ahead = max(1, BLOCKS * prefetch.MULTIPROCESSORS // prefetch.WAVE_FRACTION // 16) * rows
    pieces = range(ahead, n - rows + 1, rows)
    expected = [
        a[k].ctypes.data + 8 * first + byte
        for a in arrays
        for k in range(len(a))
        for first in pieces
        for byte in range(0, PIECE, prefetch.CACHE_LINE_BYTES)
    ]
    assert sorted(found) == sorted(expected)
    assert (n > 1000) == bool(found)


def test_rows_with_gaps_are_not_prefetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "PIECE_BYTES", PIECE)
    for row in (0, 19):
        assert not lines(row, 16 * STATES * 9)[0]


def test_prefetch_is_used_where_memory_latency_dominates() -> None:
    """Kernels that wait for memory with few warps prefetch; float32 kernels and tiled ones do not."""
    request, by = Request("forward_dynamics_derivatives", "derivatives"), METHODS["derivatives"]
    graph = graphs.trace_quantity(bc.zoo.stanford(), request, by)
    made = BatchKernelText(graph, "float64")
    assert made.plan.blocks * made.plan.threads <= 32 * prefetch.MAX_PREFETCH_WARPS
    assert made.ptx.count("prefetch") == 18 * prefetch.PIECE_BYTES // prefetch.CACHE_LINE_BYTES // made.plan.states
    assert "prefetch" not in BatchKernelText(graph, "float32").text
    assert "prefetch" not in BatchKernelText(graph, "float64", tiled=True).text
