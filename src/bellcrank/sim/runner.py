"""Runs compiled loops: blocks of lanes, each for a while, on one or more threads, until all have stopped.

Python is entered only between blocks of ticks, for progress and Ctrl-C. What was recorded stays whatever happens.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.emit import loop
from bellcrank.emit.host import host
from bellcrank.emit.load import Library, compiled

Array = np.ndarray[Any, Any]
PAUSE = 0.05  # seconds between looks at Ctrl-C and at the progress
FIRST = 64  # ticks of the first block, before anyone knows how long one takes


def aligned(shape: tuple[int, ...]) -> Array:
    """Zeros that begin at a cache line: vectors are loaded whole."""
    size = int(np.prod(shape))
    raw = np.zeros(size + 8)
    start = (-raw.ctypes.data // 8) % 8
    return raw[start : start + size].reshape(shape)


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

    def workspace(self) -> Array:
        return aligned((self.source[1], self.lanes))


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
        lanes, width = self.code.lanes, self.code.program.row
        held = aligned(self.state.shape)
        held[:] = self.state
        self.state, self.spare = held, aligned(held.shape)
        p = aligned((max(1, len(self.parameters)), lanes))
        p[: len(self.parameters)] = self.parameters
        self.parameters = p
        self.u = aligned((max(1, self.code.program.inputs), lanes))
        self.inputs = np.ascontiguousarray(self.inputs)
        self.row = aligned((width, lanes))
        self.counts = np.zeros(lanes, np.int64)
        self.ws = self.code.workspace()
        self.u[: self.inputs.shape[2]] = self.inputs[:, 0].T
        arrays = (self.state, self.spare, self.parameters, self.u, self.ws)
        self.code.begin(*(a.ctypes.data for a in arrays))
        self.state, self.spare = self.spare, self.state

    def advance(self, ticks: int) -> None:
        """At most so many ticks; afterwards `state` is what the lanes are in."""
        code = self.code.run(
            ticks,
            self.state.ctypes.data,
            self.spare.ctypes.data,
            self.parameters.ctypes.data,
            self.u.ctypes.data,
            self.inputs.ctypes.data,
            self.inputs.strides[0],
            self.row.ctypes.data,
            self.rows.ctypes.data,
            self.rows.strides[0],
            self.rows.shape[1],
            self.counts.ctypes.data,
            self.ws.ctypes.data,
        )
        if code & loop.SWAPPED:
            self.state, self.spare = self.spare, self.state
        why = code & ~loop.SWAPPED
        if why == loop.FULL:
            self._grow()
        self.done = why == loop.DONE

    def _grow(self) -> None:
        lanes, capacity, width = self.rows.shape
        rows = np.empty((lanes, 2 * capacity, width))
        rows[:, :capacity] = self.rows
        self.rows = rows


class Interrupt:
    """Set by whoever waits; looked at between blocks of ticks."""

    def __init__(self) -> None:
        self.asked = threading.Event()


def run_all(
    blocks: list[Block], threads: int, progress: Callable[[float], None] | None, done: Callable[[Block], float]
) -> bool:
    """Runs every block to its end; False where Ctrl-C came first. `done` is the share of a block that is done."""
    interrupt = Interrupt()
    shares = [0.0] * len(blocks)

    def work(k: int) -> None:
        block, ticks = blocks[k], FIRST
        while not block.done and not interrupt.asked.is_set():
            start = time.perf_counter()
            block.advance(ticks)
            took = time.perf_counter() - start
            ticks = max(1, min(8 * ticks, int(ticks * PAUSE / max(took, 1e-9))))
            shares[k] = done(block)
            if threads == 1 and progress is not None:
                progress(sum(shares) / len(blocks))
        shares[k] = 1.0

    if threads == 1:
        try:
            for k in range(len(blocks)):
                work(k)
        except KeyboardInterrupt:
            return False
        return True
    with ThreadPoolExecutor(threads, thread_name_prefix="bellcrank") as pool:
        jobs = [pool.submit(work, k) for k in range(len(blocks))]
        try:
            while wait(jobs, timeout=PAUSE).not_done:
                if progress is not None:
                    progress(sum(shares) / len(blocks))
        except KeyboardInterrupt:
            interrupt.asked.set()
            wait(jobs)
            return False
        for job in jobs:
            job.result()
    return True
