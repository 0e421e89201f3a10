"""Memory of their own for threads in loops (lane_text.py), of as many blocks as can be at work at once."""

from __future__ import annotations

from typing import Any

from bellcrank.buffers import empty_buffer
from bellcrank.emit.cuda.choice import FILE
from bellcrank.emit.cuda.device import Function, cupy, free_bytes
from bellcrank.emit.cuda.lane_text import LANES

SHARE = 0.5  # of the free memory
MOST = 32  # blocks on a multiprocessor


def resident(registers: int) -> int:
    """Blocks of a warp that are at work at once."""
    each = FILE // (LANES * -(-max(1, registers) // 8) * 8)
    return int(min(MOST, each) * cupy().cuda.Device().attributes["MultiProcessorCount"])


def shared_out(states: int, most: int) -> int:
    """Blocks, of so many at most, for groups of 32 states: all have as many to do, but for one."""
    groups = -(-states // LANES)
    return -(-groups // -(-groups // max(1, most)))


def blocks(states: int, function: Function, numbers: int, dtype: str) -> int:
    """Blocks that there is memory for. numbers: of one state in the workspace."""
    fit = int(SHARE * free_bytes()) // (LANES * numbers * int(dtype[-2:]) // 8)
    return shared_out(states, min(resident(function.registers), fit))


def workspace(count: int, numbers: int, dtype: str) -> Any:
    """For so many blocks."""
    return empty_buffer(count * LANES * numbers, dtype, cupy())
