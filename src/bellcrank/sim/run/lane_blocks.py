"""Execution of compiled loops: blocks of lanes, advanced in slices on one or more threads until all have stopped.

Python runs only between slices of ticks, for progress and Ctrl-C. Recorded rows are kept in any case.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.buffers import empty_buffer, poisoned
from bellcrank.emit.cpu import run_loop
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.cpu.thread_pool import run_on_threads
from bellcrank.emit.llvm.host import compile_cached, host
from bellcrank.graph import Program
from bellcrank.graph.graph import structure

Array = np.ndarray[Any, Any]
PROGRESS_INTERVAL_S = 0.05  # seconds between looks at Ctrl-C and at the progress
FIRST_SLICE_TICKS = 64  # ticks of the first slice, before the duration of a tick is measured
MOST_TICKS = 2**40  # ticks in one go
MOST_CACHED_LIBRARIES = 16  # programs whose machine code is kept loaded
THREAD_START_S = 2e-3  # seconds of remaining work below which threads cost more than they save


def aligned_zeros(rows: int, lanes: int) -> Array:
    """Return zeros (NaN if poisoned) of shape (`rows`, `lanes`), aligned to a cache line for vector loads."""
    buffer = poisoned(np.zeros(rows * lanes + 8))
    start = (-address(buffer) // 8) % 8
    return buffer[start : start + rows * lanes].reshape(rows, lanes)


def address(a: Array) -> int:
    """Return the address of the array `a`, faster than `a.ctypes.data`, which makes a ctypes object first."""
    value: int = a.__array_interface__["data"][0]
    return value


_libraries: dict[Any, tuple[Library, int]] = {}  # in order of use, the most recent last


def loaded_library(key: Any, source: Callable[[], tuple[str, int]]) -> tuple[Library, int]:
    """Return the library of a source text and its number of workspace slots, from a cache of loaded libraries.

    Tracing again is fast, and necessary, because a user's function may have changed; printing and loading code is not.

    Parameters
    ----------
    key
        Identifies the program by structure.
    source
        Function that returns the text and the number of slots; called if the key is not cached.
    """
    library = _libraries.pop(key, None)
    if library is None:
        text, slots = source()
        library = Library(compile_cached(text)[0]), slots
    _libraries[key] = library
    while len(_libraries) > MOST_CACHED_LIBRARIES:
        _libraries.pop(next(iter(_libraries)), None)
    return library


class CompiledProgram:
    """A Program as machine code for a number of lanes; `sweep` advances blocks of lanes."""

    def __init__(self, program: Program, lanes: int) -> None:
        self.program, self.lanes = program, lanes
        known: dict[int, Any] = {}
        graphs = tuple((name, structure(g, known)) for name, g in program.graphs.items())
        places = tuple(program.layout.places.get(name) for name in ("live", "due", "hit", "input", "fresh"))
        key = lanes, program.row, places, graphs
        self.library, self.workspace = loaded_library(
            key, lambda: run_loop.source(program, lanes, host().lanes("float64"))
        )
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        kinds = (integer, integer, pointer, pointer, integer, pointer, pointer, integer, integer, *[pointer] * 3)
        self.sweep = ctypes.CFUNCTYPE(None, *kinds)(self.library.address("sweep"))


@dataclass(eq=False)
class LaneBlocks:
    """Runs that are executed together, a multiple of the number of lanes: their states, rows and progress.

    Machine code advances block after block: many short ones in a call, a long one in several calls.
    """

    code: CompiledProgram
    start: Array  # (size, runs)
    parameters: Array  # (np, runs)
    inputs: Array  # (runs, lines, nu)
    rows: Array  # (runs, capacity, row)
    done: bool = False

    def __post_init__(self) -> None:
        lanes, program = self.code.lanes, self.code.program
        self.inputs = np.ascontiguousarray(self.inputs)
        n, runs = self.start.shape
        count, free, nu = runs // lanes, len(self.parameters), self.inputs.shape[2]
        assert (n, free, nu) == (program.size, program.free, program.nu)
        self.counts = np.zeros(runs, np.int64)
        # All data of the loop lies in one array, because there are many LaneBlocks, each allocated for every run.
        scratch, pitch = self.code.workspace + program.row, 2 * n + free + nu
        memory = aligned_zeros(scratch + count * pitch, lanes)
        self._block_data = memory[scratch:].reshape(count, pitch, lanes)
        self._block_data[:, :n] = _blocks(self.start, count)
        self._block_data[:, 2 * n : 2 * n + free] = _blocks(self.parameters, count)
        self._block_data[:, 2 * n + free :] = _blocks(self.inputs[:, 0].T, count)
        self._workspace_address = address(memory)  # the workspace is first, because it has the widest vectors
        self._row_address = self._workspace_address + 8 * lanes * self.code.workspace
        self._data_address = self._workspace_address + 8 * lanes * scratch
        self._block_status = np.full(count, run_loop.NEW | run_loop.SWAPPED)
        self._first_block, self._block_count, self._ticks = 0, 1, FIRST_SLICE_TICKS

    @property
    def state(self) -> Array:
        """Return the states of all runs, (size, runs)."""
        n = len(self.start)
        swapped = (self._block_status & run_loop.SWAPPED != 0)[:, None, None]
        states = np.where(swapped, self._block_data[:, :n], self._block_data[:, n : 2 * n])
        return np.moveaxis(states, 0, 1).reshape(n, -1)

    def advance(self, ticks: int | None = None) -> None:
        """Advance for about the time between two looks at the progress, or for at most `ticks` ticks."""
        start = time.perf_counter()
        count = min(self._block_count, len(self._block_status) - self._first_block)
        self._sweep(count, self._ticks if ticks is None else ticks)
        duration = time.perf_counter() - start
        if (self._block_status[self._first_block : self._first_block + count] & ~run_loop.SWAPPED).any():
            self._grow()
            self._ticks = _next_amount(self._ticks, duration)
        else:
            self._first_block += count
            self._block_count = _next_amount(count, duration)
            self.done = self._first_block == len(self._block_status)

    def start_remaining(self) -> None:
        """Start the blocks that were not begun, so that an interrupted run has at least its initial state."""
        if not self.done:
            self._sweep(len(self._block_status) - self._first_block, 0)

    def _sweep(self, count: int, ticks: int) -> None:
        k, lanes = self._first_block, self.code.lanes
        inputs, rows, counts = (address(x) + k * lanes * x.strides[0] for x in (self.inputs, self.rows, self.counts))
        self.code.sweep(
            count, ticks, self._data_address + k * self._block_data.strides[0], inputs, self.inputs.strides[0],
            self._row_address, rows, self.rows.strides[0], self.rows.shape[1], counts,
            address(self._block_status) + 8 * k, self._workspace_address,
        )  # fmt: skip

    def _grow(self) -> None:
        """Double the capacity if a run has filled its own."""
        if ((self._block_status & ~run_loop.SWAPPED) == run_loop.FULL).any():
            runs, capacity, width = self.rows.shape
            rows = empty_buffer((runs, 2 * capacity, width))
            rows[:, :capacity] = self.rows
            self.rows = rows


def _blocks(x: Array, count: int) -> Array:
    """Reshape (rows, runs) to (blocks, rows, lanes)."""
    return np.moveaxis(x.reshape(len(x), count, x.shape[1] // count), 1, 0)


def _next_amount(amount: int, duration: float) -> int:
    """Return the amount of work for the next slice, given that `amount` took `duration` seconds."""
    return max(1, min(8 * amount, int(amount * PROGRESS_INTERVAL_S / max(duration, 1e-9)), MOST_TICKS))


def run_all(
    makers: Sequence[Callable[[], LaneBlocks]],
    threads: int,
    progress: Callable[[float], None] | None,
    share_of: Callable[[LaneBlocks], float],
    on_end: Callable[[int, LaneBlocks], None],
) -> bool:
    """Run all blocks to their ends, one after the other or on threads; return False after Ctrl-C.

    Parameters
    ----------
    makers
        Functions that allocate blocks.
    threads
        Number of threads.
    progress
        Receives the completed share, or None.
    share_of
        Returns the completed share of some blocks.
    on_end
        Receives the index and the blocks when they end, to keep their results.
    """
    queue = BlockQueue(makers, progress, share_of, on_end)
    try:
        if threads == 1 or queue.is_short():
            for k in range(len(makers)):
                queue.run(k, queue.report)
        else:
            run_on_threads(lambda k: queue.run(k, lambda: None), len(makers), threads, queue.report, queue.stop)
    except KeyboardInterrupt:
        queue.stop()
    # After Ctrl-C: begun blocks keep their progress, the others have their initial states.
    for k in list(queue.remaining):
        queue.end(k, queue.started.get(k) or makers[k]())
    return not queue.stop_requested


class BlockQueue:
    """Queue of blocks that are to be run to their ends."""

    def __init__(self, makers: Sequence[Callable[[], LaneBlocks]], progress: Any, share_of: Any, on_end: Any) -> None:
        self.makers, self.progress, self.share_of, self.on_end = makers, progress, share_of, on_end
        self.stop_requested = False  # stop request, checked between slices of ticks
        self.shares = [0.0] * len(makers)
        self.started: dict[int, LaneBlocks] = {}
        self.remaining = dict.fromkeys(range(len(makers)))

    def end(self, k: int, blocks: LaneBlocks) -> None:
        """Finish the blocks `blocks` with index `k` and hand over their results."""
        blocks.start_remaining()
        self.on_end(k, blocks)
        self.remaining.pop(k)
        self.started.pop(k, None)

    def run(self, k: int, report: Callable[[], None]) -> None:
        """Run the blocks with index `k` until they end or a stop is requested; `report` reports progress."""
        if self.stop_requested:
            return
        if k not in self.started:
            self.started[k] = self.makers[k]()
        blocks = self.started[k]
        while not blocks.done and not self.stop_requested:
            blocks.advance()
            if self.progress is not None:
                self.shares[k] = self.share_of(blocks)
                report()
        self.shares[k] = 1.0
        if blocks.done:
            self.end(k, blocks)

    def report(self) -> None:
        """Report the mean progress."""
        if self.progress is not None:
            self.progress(sum(self.shares) / len(self.makers))

    def stop(self) -> None:
        """Request a stop; also used if the progress callback failed."""
        self.stop_requested = True

    def is_short(self) -> bool:
        """Return True if all work would end before threads have started.

        The estimate comes from running the first blocks for a moment.
        """
        if len(self.makers) == 1:
            return True
        start = time.perf_counter()
        blocks = self.started[0] = self.makers[0]()
        duration = 0.0
        while not blocks.done and duration < THREAD_START_S:
            blocks.advance()
            duration = time.perf_counter() - start
        return blocks.done and duration * (len(self.makers) - 1) < THREAD_START_S
