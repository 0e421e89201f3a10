"""Runs compiled loops: blocks of lanes, each for a while, on one or more threads, until all have stopped.

Python is entered only between blocks of ticks, for progress and Ctrl-C. What was recorded stays whatever happens.
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
FIRST = 64  # ticks of the first blocks, before anyone knows how long one takes
MOST_TICKS = 2**40  # ticks in one go
MACHINES = 16  # programs whose machine code is kept at hand
STARTING = 2e-3  # seconds: where less is left to do, threads cost more than they save


def aligned(rows: int, lanes: int) -> Array:
    """Zeros that begin at a cache line, for vectors are loaded whole; NaN where buffers are poisoned."""
    raw = poisoned(np.zeros(rows * lanes + 8))
    start = (-address(raw) // 8) % 8
    return raw[start : start + rows * lanes].reshape(rows, lanes)


def address(a: Array) -> int:
    """Quicker than `a.ctypes.data`, which makes an object of many uses first."""
    found: int = a.__array_interface__["data"][0]
    return found


_machines: dict[Any, tuple[Library, int]] = {}  # the newest last


def machine_code(key: Any, source: Callable[[], tuple[str, int]]) -> tuple[Library, int]:
    """The library of a text, and what comes with it; without the text where the same was made not long ago. Tracing
    again is quick, and must be, for a user's function may have changed its mind; writing and loading is not.
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
    """A program as machine code, for so many lanes."""

    program: Program
    lanes: int

    @cached_property
    def source(self) -> tuple[str, int]:
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
        return self._machine[0]

    @cached_property
    def sweep(self) -> Any:
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        kinds = (integer, integer, pointer, pointer, integer, pointer, pointer, integer, integer, *[pointer] * 3)
        return ctypes.CFUNCTYPE(None, *kinds)(self.library.address("sweep"))

    def ready(self) -> Compiled:
        """Itself, with all that is made on first use made now."""
        self.sweep  # noqa: B018
        return self

    @property
    def workspace(self) -> int:
        """How many slots the code works in."""
        return self._machine[1]


@dataclass(eq=False)
class Blocks:
    """Runs that are made together, some times as many as there are lanes: their states, their rows, how far they are.

    One block of lanes after the other is run by machine code: short ones many in a call, long ones a while in each.
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
        # All that the loop works on lies in one array: there are many of these, and each is made anew for every run.
        scratch, pitch = self.code.workspace + program.row, 2 * n + free + nu
        whole = aligned(scratch + count * pitch, lanes)
        self._each = whole[scratch:].reshape(count, pitch, lanes)
        self._each[:, :n] = _blocks(self.start, count)
        self._each[:, 2 * n : 2 * n + free] = _blocks(self.parameters, count)
        self._each[:, 2 * n + free :] = _blocks(self.inputs[:, 0].T, count)
        self._ws = address(whole)  # first, for it has the widest vectors
        self._row, self._first = (self._ws + k * 8 * lanes for k in (self.code.workspace, scratch))
        self._codes = np.full(count, loop.NEW | loop.SWAPPED)
        self._at, self._some, self._ticks = 0, 1, FIRST

    @property
    def state(self) -> Array:
        """The states of all runs, (size, runs)."""
        n = len(self.start)
        swapped = (self._codes & loop.SWAPPED != 0)[:, None, None]
        found = np.where(swapped, self._each[:, :n], self._each[:, n : 2 * n])
        return np.moveaxis(found, 0, 1).reshape(n, -1)

    def advance(self, ticks: int | None = None) -> None:
        """Runs on for about as long as nobody minds to wait, or for at most so many ticks."""
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
        """Begins what was not: a run that was interrupted before has a start at least."""
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
        """Twice the room, where a run has filled its own."""
        if ((self._codes & ~loop.SWAPPED) == loop.FULL).any():
            runs, capacity, width = self.rows.shape
            rows = empty_buffer((runs, 2 * capacity, width))
            rows[:, :capacity] = self.rows
            self.rows = rows


def _blocks(x: Array, count: int) -> Array:
    """(rows, runs) as (blocks, rows, lanes)."""
    return np.moveaxis(x.reshape(len(x), count, x.shape[1] // count), 1, 0)


def _more(some: int, took: float) -> int:
    """How many next time, where so many took so long."""
    return max(1, min(8 * some, int(some * PAUSE / max(took, 1e-9)), MOST_TICKS))


def run_all(
    made: Sequence[Callable[[], Blocks]],
    threads: int,
    progress: Callable[[float], None] | None,
    done: Callable[[Blocks], float],
    ended: Callable[[int, Blocks], None],
) -> bool:
    """Makes all blocks, some at a time, and runs them to their ends; False where Ctrl-C came first. `done` is the share
    of some that is done. `ended` takes what is to be kept of them.
    """
    work = Work(made, progress, done, ended)
    if threads == 1 or work.short():
        work.one_by_one()
    else:
        work.at_once(threads)
    for k in list(work.left):  # what was begun stays as it is, and of the others there is the start
        work.end(k, work.begun.get(k) or made[k]())
    return not work.asked


class Work:
    """Blocks that are to be run to their ends."""

    def __init__(self, made: Sequence[Callable[[], Blocks]], progress: Any, done: Any, ended: Any) -> None:
        self.made, self.progress, self.done, self.ended = made, progress, done, ended
        self.asked = False  # to stop; looked at between blocks of ticks
        self.shares = [0.0] * len(made)
        self.begun: dict[int, Blocks] = {}
        self.left = dict.fromkeys(range(len(made)))

    def end(self, k: int, some: Blocks) -> None:
        some.settle()
        self.ended(k, some)
        self.left.pop(k)
        self.begun.pop(k, None)

    def run(self, k: int, tell: Callable[[], None]) -> None:
        """The k-th ones, as far as nobody asks to stop."""
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
        if self.progress is not None:
            self.progress(sum(self.shares) / len(self.made))

    def one_by_one(self) -> None:
        try:
            for k in range(len(self.made)):
                self.run(k, self.tell)
        except KeyboardInterrupt:
            self.asked = True

    def at_once(self, threads: int) -> None:
        try:
            shared(lambda k: self.run(k, lambda: None), len(self.made), threads, self.tell, self.stop)
        except KeyboardInterrupt:
            self.asked = True

    def stop(self) -> None:
        """Also where progress failed: nobody would see how the others end."""
        self.asked = True

    def short(self) -> bool:
        """Whether all is done before threads would have started. The first ones tell, by being run for a moment."""
        if len(self.made) == 1:
            return True
        start = time.perf_counter()
        some = self.begun[0] = self.made[0]()
        took = 0.0
        while not some.done and took < STARTING:
            some.advance()
            took = time.perf_counter() - start
        return some.done and took * (len(self.made) - 1) < STARTING
