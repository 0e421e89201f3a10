"""Workspaces of threads with rolled loops (lane_code.py), for as many blocks as can be resident at once."""

from __future__ import annotations

from typing import Any

from bellcrank.buffers import empty_buffer
from bellcrank.emit.cuda.device import DeviceFunction, cupy, free_bytes
from bellcrank.emit.cuda.lane_code import LANES
from bellcrank.emit.cuda.occupancy import REGISTER_FILE_SIZE

MEMORY_SHARE = 0.5  # share of the free memory
MAX_RESIDENT_BLOCKS = 32  # resident blocks of a multiprocessor at most


def resident_blocks(registers: int) -> int:
    """Return the number of one-warp blocks that are resident at once, with `registers` registers per thread."""
    each = REGISTER_FILE_SIZE // (LANES * -(-max(1, registers) // 8) * 8)
    return int(min(MAX_RESIDENT_BLOCKS, each) * cupy().cuda.Device().attributes["MultiProcessorCount"])


def balanced_blocks(states: int, most: int) -> int:
    """Return a number of blocks, at most `most`, with equal numbers of groups of 32 among `states` states.

    Only the last block may have fewer groups.
    """
    groups = -(-states // LANES)
    return -(-groups // -(-groups // max(1, most)))


def affordable_blocks(states: int, function: DeviceFunction, numbers: int, dtype: str) -> int:
    """Return the number of blocks that fit into free memory.

    Parameters
    ----------
    states
        Number of states.
    function
        Kernel to launch.
    numbers
        Workspace elements of one state.
    dtype
        Type of the numbers.
    """
    fit = int(MEMORY_SHARE * free_bytes()) // (LANES * numbers * int(dtype[-2:]) // 8)
    return balanced_blocks(states, min(resident_blocks(function.registers), fit))


def allocate_workspace(count: int, numbers: int, dtype: str) -> Any:
    """Return an uninitialised workspace.

    Parameters
    ----------
    count
        Number of blocks.
    numbers
        Workspace elements of one state.
    dtype
        Type of the numbers.
    """
    return empty_buffer(count * LANES * numbers, dtype, cupy())
