"""Execution of compiled loops: blocks of lanes, advanced in slices on one or more threads until all have stopped.

Python runs only between slices of ticks, for progress and Ctrl-C. Recorded rows are kept in any case.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.buffers import empty_buffer, poisoned
from bellcrank.emit.cpu import loop
from bellcrank.emit.cpu.host import Library, compiled, host
from bellcrank.emit.cpu.pool import shared
from bellcrank.graph import Program
from bellcrank.graph.program import structure

Array = np.ndarray[Any, Any]
PAUSE = 0.05  # seconds between looks at Ctrl-C and at the progress
FIRST = 64  # ticks of the first slice, before the duration of a tick is measured
MOST_TICKS = 2**40  # ticks in one go
MACHINES = 16  # programs whose machine code is kept loaded
STARTING = 2e-3  # seconds of remaining work below which threads cost more than they save


def aligned(rows: int, lanes: int) -> Array:
    """Return zeros (NaN if poisoned) of shape (`rows`, `lanes`), aligned to a cache line for vector loads."""
    raw = poisoned(np.zeros(rows * lanes + 8))
    start = (-address(raw) // 8) % 8
    return raw[start : start + rows * lanes].reshape(rows, lanes)


def address(a: Array) -> int:
    """Return the address of the array `a`, faster than `a.ctypes.data`, which makes a ctypes object first."""
    found: int = a.__array_interface__["data"][0]
    return found


_machines: dict[Any, tuple[Library, int]] = {}  # in order of use, the most recent last


def machine_code(key: Any, source: Callable[[], tuple[str, int]]) -> tuple[Library, int]:
    """Return the library of a source text and its number of workspace slots, from a cache of loaded libraries.

    Tracing again is fast, and necessary, because a user's function may have changed; printing and loading code is not.

    Parameters
    ----------
    key
        Identifies the program by structure.
    source
        Function that returns the text and the number of slots; called if the key is not cached.
    """
    found = _machines.pop(key, None)
    if found is None:
        text, slots = source()
        found = Library(compiled(text)[0]), slots
    _machines[key] = found
    while len(_machines) > MACHINES:
        _machines.pop(next(iter(_machines)), None)
    return found


@dataclass(frozen=True, eq=False)
class Compiled:
    """A Program as machine code for a number of lanes."""

    program: Program
    lanes: int

    @cached_property
    def source(self) -> tuple[str, int]:
        """Return the source text and the number of workspace slots."""
        return loop.source(self.program, self.lanes, host().lanes("float64"))

    @cached_property
    def _machine(self) -> tuple[Library, int]:
        program = self.program
        known: dict[int, Any] = {}
        graphs = tuple((name, structure(g, known)) for name, g in program.graphs.items())
        places = tuple(program.layout.places.get(name) for name in ("live", "due", "hit", "input", "fresh"))
        return machine_code((self.lanes, program.row, places, graphs), lambda: self.source)

    @property
    def library(self) -> Library:
        """Return the loaded library."""
        return self._machine[0]

    @cached_property
    def sweep(self) -> Any:
        """Return the function of the library that advances blocks."""
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        kinds = (integer, integer, pointer, pointer, integer, pointer, pointer, integer, integer, *[pointer] * 3)
        return ctypes.CFUNCTYPE(None, *kinds)(self.library.address("sweep"))

    def ready(self) -> Compiled:
        """Return the object itself after everything that is made on first use was made."""
        self.sweep  # noqa: B018
        return self

    @property
    def workspace(self) -> int:
        """Return the number of workspace slots of the code."""
        return self._machine[1]


@dataclass(eq=False)
class Blocks:
    """Runs that are executed together, a multiple of the number of lanes: their states, rows and progress.

    Machine code advances block after block: many short ones in a call, a long one in several calls.
    """

    code: Compiled
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
        # All data of the loop lies in one array, because there are many Blocks, each allocated for every run.
        scratch, pitch = self.code.workspace + program.row, 2 * n + free + nu
        whole = aligned(scratch + count * pitch, lanes)
        self._each = whole[scratch:].reshape(count, pitch, lanes)
        self._each[:, :n] = _blocks(self.start, count)
        self._each[:, 2 * n : 2 * n + free] = _blocks(self.parameters, count)
        self._each[:, 2 * n + free :] = _blocks(self.inputs[:, 0].T, count)
        self._ws = address(whole)  # the workspace is first, because it has the widest vectors
        self._row, self._first = (self._ws + k * 8 * lanes for k in (self.code.workspace, scratch))
        self._codes = np.full(count, loop.NEW | loop.SWAPPED)
        self._at, self._some, self._ticks = 0, 1, FIRST

    @property
    def state(self) -> Array:
        """Return the states of all runs, (size, runs)."""
        n = len(self.start)
        swapped = (self._codes & loop.SWAPPED != 0)[:, None, None]
        found = np.where(swapped, self._each[:, :n], self._each[:, n : 2 * n])
        return np.moveaxis(found, 0, 1).reshape(n, -1)

    def advance(self, ticks: int | None = None) -> None:
        """Advance for about the time between two looks at the progress, or for at most `ticks` ticks."""
        start = time.perf_counter()
        some = min(self._some, len(self._codes) - self._at)
        self._sweep(some, self._ticks if ticks is None else ticks)
        took = time.perf_counter() - start
        if (self._codes[self._at : self._at + some] & ~loop.SWAPPED).any():
            self._grow()
            self._ticks = _more(self._ticks, took)
        else:
            self._at += some
            self._some = _more(some, took)
            self.done = self._at == len(self._codes)

    def settle(self) -> None:
        """Start the blocks that were not begun, so that an interrupted run has at least its initial state."""
        if not self.done:
            self._sweep(len(self._codes) - self._at, 0)

    def _sweep(self, some: int, ticks: int) -> None:
        k, lanes = self._at, self.code.lanes
        inputs, rows, counts = (address(x) + k * lanes * x.strides[0] for x in (self.inputs, self.rows, self.counts))
        self.code.sweep(
            some, ticks, self._first + k * self._each.strides[0], inputs, self.inputs.strides[0], self._row,
            rows, self.rows.strides[0], self.rows.shape[1], counts, address(self._codes) + 8 * k, self._ws,
        )  # fmt: skip

    def _grow(self) -> None:
        """Double the capacity if a run has filled its own."""
        if ((self._codes & ~loop.SWAPPED) == loop.FULL).any():
            runs, capacity, width = self.rows.shape
            rows = empty_buffer((runs, 2 * capacity, width))
            rows[:, :capacity] = self.rows
            self.rows = rows


def _blocks(x: Array, count: int) -> Array:
    """Reshape (rows, runs) to (blocks, rows, lanes)."""
    return np.moveaxis(x.reshape(len(x), count, x.shape[1] // count), 1, 0)


def _more(some: int, took: float) -> int:
    """Return the amount of work for the next slice, given that `some` took `took` seconds."""
    return max(1, min(8 * some, int(some * PAUSE / max(took, 1e-9)), MOST_TICKS))


def run_all(
    made: Sequence[Callable[[], Blocks]],
    threads: int,
    progress: Callable[[float], None] | None,
    done: Callable[[Blocks], float],
    ended: Callable[[int, Blocks], None],
) -> bool:
    """Run all blocks to their ends, one after the other or on threads; return False after Ctrl-C.

    Parameters
    ----------
    made
        Functions that allocate blocks.
    threads
        Number of threads.
    progress
        Receives the completed share, or None.
    done
        Returns the completed share of some blocks.
    ended
        Receives the index and the blocks when they end, to keep their results.
    """
    work = Work(made, progress, done, ended)
    if threads == 1 or work.short():
        work.one_by_one()
    else:
        work.at_once(threads)
    for k in list(work.left):  # after Ctrl-C: begun blocks keep their progress, the others have their initial states
        work.end(k, work.begun.get(k) or made[k]())
    return not work.asked


class Work:
    """Queue of blocks that are to be run to their ends."""

    def __init__(self, made: Sequence[Callable[[], Blocks]], progress: Any, done: Any, ended: Any) -> None:
        self.made, self.progress, self.done, self.ended = made, progress, done, ended
        self.asked = False  # stop request, checked between slices of ticks
        self.shares = [0.0] * len(made)
        self.begun: dict[int, Blocks] = {}
        self.left = dict.fromkeys(range(len(made)))

    def end(self, k: int, some: Blocks) -> None:
        """Finish the blocks `some` with index `k` and hand over their results."""
        some.settle()
        self.ended(k, some)
        self.left.pop(k)
        self.begun.pop(k, None)

    def run(self, k: int, tell: Callable[[], None]) -> None:
        """Run the blocks with index `k` until they end or a stop is requested; `tell` reports progress."""
        if self.asked:
            return
        if k not in self.begun:
            self.begun[k] = self.made[k]()
        some = self.begun[k]
        while not some.done and not self.asked:
            some.advance()
            if self.progress is not None:
                self.shares[k] = self.done(some)
                tell()
        self.shares[k] = 1.0
        if some.done:
            self.end(k, some)

    def tell(self) -> None:
        """Report the mean progress."""
        if self.progress is not None:
            self.progress(sum(self.shares) / len(self.made))

    def one_by_one(self) -> None:
        """Run all blocks in this thread."""
        try:
            for k in range(len(self.made)):
                self.run(k, self.tell)
        except KeyboardInterrupt:
            self.asked = True

    def at_once(self, threads: int) -> None:
        """Run all blocks on `threads` threads."""
        try:
            shared(lambda k: self.run(k, lambda: None), len(self.made), threads, self.tell, self.stop)
        except KeyboardInterrupt:
            self.asked = True

    def stop(self) -> None:
        """Request a stop; also used if the progress callback failed."""
        self.asked = True

    def short(self) -> bool:
        """Return True if all work would end before threads have started.

        The estimate comes from running the first blocks for a moment.
        """
        if len(self.made) == 1:
            return True
        start = time.perf_counter()
        some = self.begun[0] = self.made[0]()
        took = 0.0
        while not some.done and took < STARTING:
            some.advance()
            took = time.perf_counter() - start
        return some.done and took * (len(self.made) - 1) < STARTING
