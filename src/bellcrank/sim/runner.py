"""Runs compiled loops: blocks of lanes, each for a while, on one or more threads, until all have stopped.

Python is entered only between blocks of ticks, for progress and Ctrl-C. What was recorded stays whatever happens.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from bellcrank.emit import loop
from bellcrank.emit.host import host
from bellcrank.emit.load import Library, compiled

Array = np.ndarray[Any, Any]
PAUSE = 0.05  # seconds between looks at Ctrl-C and at the progress
FIRST = 64  # ticks of the first block, before anyone knows how long one takes


def aligned(rows: int, lanes: int) -> Array:
    """Zeros that begin at a cache line: vectors are loaded whole."""
    raw = np.zeros(rows * lanes + 8)
    start = (-address(raw) // 8) % 8
    return raw[start : start + rows * lanes].reshape(rows, lanes)


def address(a: Array) -> int:
    """Quicker than `a.ctypes.data`, which makes an object of many uses first."""
    found: int = a.__array_interface__["data"][0]
    return found


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program as machine code, for so many lanes."""

    program: loop.Program
    lanes: int

    @cached_property
    def source(self) -> tuple[str, int]:
        return loop.source(self.program, self.lanes, host().lanes("float64"))

    @cached_property
    def library(self) -> Library:
        return Library(compiled(self.source[0])[0])

    @cached_property
    def run(self) -> Any:
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        kinds = (integer, *[pointer] * 5, integer, pointer, pointer, integer, integer, pointer, pointer)
        return ctypes.CFUNCTYPE(integer, *kinds)(self.library.address("run"))

    @cached_property
    def begin(self) -> Any:
        return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(self.library.address("begin"))

    def ready(self) -> Compiled:
        """Itself, with all that is made on first use made now."""
        self.run, self.begin  # noqa: B018
        return self

    @property
    def workspace(self) -> int:
        """Slots."""
        return self.source[1]


@dataclass(eq=False)
class Block:
    """The lanes that run together: their state, their rows, and how far they are."""

    code: Compiled
    state: Array  # (size, lanes)
    parameters: Array  # (np, lanes)
    inputs: Array  # (lanes, lines, nu)
    rows: Array  # (lanes, capacity, row)
    counts: Array = field(init=False)
    done: bool = False

    def __post_init__(self) -> None:
        lanes, program = self.code.lanes, self.code.program
        self.inputs = np.ascontiguousarray(self.inputs)
        self.counts = np.zeros(lanes, np.int64)
        # All that the loop works on lies in one array: there are many blocks, and each is made anew for every run.
        n, free, nu = len(self.state), len(self.parameters), self.inputs.shape[2]
        sizes = (self.code.workspace, n, n, free, nu, program.row)  # the first has the widest vectors
        ends = list(accumulate(sizes))
        whole = aligned(ends[-1], lanes)
        _, state, spare, p, u, _ = (whole[end - size : end] for size, end in zip(sizes, ends, strict=True))
        state[:], p[:], u[:] = self.state, self.parameters, self.inputs[:, 0].T
        start = address(whole)
        places = [start + (end - size) * 8 * lanes for size, end in zip(sizes, ends, strict=True)]
        ws, first, second, *rest = places  # parameters, inputs that are valid now, a row
        self._fixed = (ws, *rest)
        self.code.begin(first, second, *rest[:2], ws)
        self.state, self.spare, self._now, self._then = spare, state, second, first

    def advance(self, ticks: int) -> None:
        """At most so many ticks; afterwards `state` is what the lanes are in."""
        ws, p, u, row = self._fixed
        given = (self._now, self._then, p, u, address(self.inputs), self.inputs.strides[0])
        kept = (row, address(self.rows), self.rows.strides[0], self.rows.shape[1], address(self.counts))
        code = self.code.run(ticks, *given, *kept, ws)
        if code & loop.SWAPPED:
            self.state, self.spare, self._now, self._then = self.spare, self.state, self._then, self._now
        why = code & ~loop.SWAPPED
        if why == loop.FULL:
            self._grow()
        self.done = why == loop.DONE

    def _grow(self) -> None:
        lanes, capacity, width = self.rows.shape
        rows = np.empty((lanes, 2 * capacity, width))
        rows[:, :capacity] = self.rows
        self.rows = rows


def run_all(
    made: Sequence[Callable[[], Block]],
    threads: int,
    progress: Callable[[float], None] | None,
    done: Callable[[Block], float],
    ended: Callable[[int, Block], None],
) -> bool:
    """Makes every block and runs it to its end; False where Ctrl-C came first. `done` is the share of a block that is
    done. `ended` takes what is to be kept of it, perhaps twice. A million runs are many blocks: few are there at once.
    """
    asked = threading.Event()  # to stop; looked at between blocks of ticks
    shares = [0.0] * len(made)
    begun: dict[int, Block] = {}
    left = dict.fromkeys(range(len(made)))

    def end(k: int, block: Block) -> None:
        ended(k, block)
        left.pop(k)
        begun.pop(k, None)

    def work(k: int) -> None:
        if asked.is_set():
            return
        block, ticks = begun.setdefault(k, made[k]()), FIRST
        while not block.done and not asked.is_set():
            start = time.perf_counter()
            block.advance(ticks)
            took = time.perf_counter() - start
            ticks = max(1, min(8 * ticks, int(ticks * PAUSE / max(took, 1e-9))))
            shares[k] = done(block)
            if threads == 1 and progress is not None:
                progress((k + shares[k]) / len(made))
        shares[k] = 1.0
        if block.done:
            end(k, block)

    if threads == 1:
        try:
            for k in range(len(made)):
                work(k)
        except KeyboardInterrupt:
            asked.set()
    else:
        with ThreadPoolExecutor(threads, thread_name_prefix="bellcrank") as pool:
            jobs = [pool.submit(work, k) for k in range(len(made))]
            try:
                while wait(jobs, timeout=PAUSE).not_done:
                    if progress is not None:
                        progress(sum(shares) / len(made))
            except BaseException as error:
                asked.set()  # also where progress failed: nobody would see how the others end
                wait(jobs)
                if not isinstance(error, KeyboardInterrupt):
                    raise
            for job in jobs:
                job.result()
    for k in list(left):  # what was begun stays as it is, and of the others there is the start
        end(k, begun.get(k) or made[k]())
    return not asked.is_set()
