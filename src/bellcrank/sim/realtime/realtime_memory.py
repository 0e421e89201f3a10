"""Data of a drive and its native thread: priority, clock, code, shared memory, and history.

The thread gets a priority for real time, as far as permitted: a fixed priority, locked memory, a core of its own. It is
pinned to a core only together with the priority. Without it, a pinned thread would have to wait for other programs on
that core, so the choice is left to the system unless a core was requested.

Shared memory holds the words of emit/cpu/realtime_loop.py, and arrays. No side ever waits for the other. Inputs lie in
a mailbox and states in a window, each behind a sequence number that is odd while it is written; rows lie in a ring
buffer. Counters and histograms are only read here, except by `reset_statistics`. The history has the rows of the
record, and the values of free parameters at each of them.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.buffers import poisoned
from bellcrank.emit.cpu import realtime_loop
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.llvm.host import compile_cached, host
from bellcrank.graph import Program
from bellcrank.parameters import Parameters
from bellcrank.sim.run.lane_blocks import address, aligned_zeros

THREAD_PRIORITY = 50  # of 1 to 99: above ordinary threads, below kernel threads at 99
# MCL_CURRENT | MCL_ONFAULT: touched pages stay in memory. Without the second flag the system would also load reserved
# pages: the arenas of a library that wrote a file take a gigabyte.
MLOCKALL_FLAGS = 1 | 4


@contextmanager
def realtime_priority(core: int | None = None) -> Iterator[list[str]]:
    """Raise the priority of the calling thread, and yield one line for each measure that was not permitted.

    On exit the thread has its former scheduling. `core` is the core to be pinned to; None selects one if that helps.
    """
    notes: list[str] = []
    is_prioritised = False
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(THREAD_PRIORITY))
        is_prioritised = True
    except (OSError, AttributeError) as error:
        notes.append(f"no SCHED_FIFO ({_reason(error)}): other programs may delay the loop")
    try:
        _lock_memory()
    except (OSError, AttributeError, TypeError) as error:  # Windows has no library without a name
        notes.append(f"memory is not locked ({_reason(error)}): a page may have to be fetched")
    pinned_core = core if core is not None else max(cores) if is_prioritised and len(cores) > 1 else None
    if pinned_core is None:
        why = "there is only one" if is_prioritised else "without SCHED_FIFO that may do harm"
        notes.append(f"not pinned to a core: {why}")
    else:
        try:
            os.sched_setaffinity(0, {pinned_core})
        except (OSError, AttributeError) as error:
            notes.append(f"not pinned to core {pinned_core} ({_reason(error)})")
    try:
        yield notes
    finally:
        if is_prioritised:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        if cores:
            os.sched_setaffinity(0, cores)


def _lock_memory() -> None:
    if ctypes.CDLL(None, use_errno=True).mlockall(MLOCKALL_FLAGS):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


Array = np.ndarray[Any, Any]
RING_ROWS = 65536  # capacity of the ring buffer in rows
CLOCK_FUNCTION_TYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
SLEEP_FUNCTION_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


@dataclass(frozen=True)
class Clock:
    """Clock of the loop; without one, the loop uses the monotonic clock of the computer."""

    now: Any  # () -> nanoseconds
    sleep: Any  # (nanoseconds): wait until this time
    own: Any = time.thread_time_ns  # () -> thread CPU time, ns


def default_clock() -> Clock | None:
    """Return None where the loop can read the clock and wait by itself (Linux), else a clock in Python.

    The Python clock shares the interpreter with all other Python code. macOS has no wait until a given time, and
    Windows has other clocks.
    """
    if sys.platform == "linux":
        return None

    def sleep(until: int) -> None:
        time.sleep(max(0, until - time.monotonic_ns()) * 1e-9)

    return Clock(time.monotonic_ns, sleep)


class LoopCode:
    """Machine code of the loop around one program."""

    def __init__(self, program: Program) -> None:
        text, slots = realtime_loop.source(program, host().lanes("float64"))
        self.library = Library(compile_cached(text)[0])
        self.workspace = aligned_zeros(slots, 1)
        self.drive = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self.library.address("drive"))
        self.begin = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(self.library.address("begin"))


class Exchange:
    """Shared memory of one real-time loop.

    size: elements of the loop's state; row: elements of a recorded row; nu: inputs.
    """

    def __init__(self, size: int, row: int, nu: int, parameters: Array, clock: Clock | None = None) -> None:
        self.size, self.row, self.nu = size, row, nu
        self.words = np.zeros(len(realtime_loop.BLOCK_WORDS), np.int64)
        self.states = aligned_zeros(2 * size, 1).reshape(2, -1)  # one is the newest, the other is spare
        self.parameters = np.ascontiguousarray(parameters) if parameters.size else np.zeros(1)
        self.inputs, self.mailbox = np.zeros(2 * nu + 1), np.zeros(1 + nu)
        self.window, self.ring = np.zeros(1 + size + nu), poisoned(np.zeros((RING_ROWS, row + nu)))
        self.log = np.zeros((realtime_loop.KEPT_EVENTS, 4), np.int64)
        self.trace = np.zeros((realtime_loop.KEPT_PERIODS, 4), np.int64)
        self.costs, self.delays, self.owns = np.zeros((3, realtime_loop.HISTOGRAM_BINS), np.int64)
        for name, array in {
            "p": self.parameters, "u": self.inputs, "mailbox": self.mailbox, "window": self.window, "ring": self.ring,
            "log": self.log, "costs": self.costs, "delays": self.delays, "owns": self.owns, "trace": self.trace,
        }.items():  # fmt: skip
            self.set(name, address(array))
        self.set("capacity", len(self.ring))
        self._code: LoopCode | None = None
        self._clock = None
        clock = clock or default_clock()
        if clock is not None:
            monotonic = CLOCK_FUNCTION_TYPE(lambda _: int(clock.now()))
            thread_time = CLOCK_FUNCTION_TYPE(lambda _: int(clock.own()))
            self._clock = monotonic, SLEEP_FUNCTION_TYPE(lambda _, until: clock.sleep(until)), thread_time
            for name, function in zip(("now", "sleep", "own"), self._clock, strict=True):
                self.set(name, ctypes.cast(function, ctypes.c_void_p).value or 0)
        self.reset_statistics()

    def set(self, word: str, value: int) -> None:
        """Write `value` into the `word` with that name."""
        self.words[realtime_loop.WORD_INDEX[word]] = value

    def get(self, word: str) -> int:
        """Return the value of the `word` with that name."""
        return int(self.words[realtime_loop.WORD_INDEX[word]])

    def reset_statistics(self) -> None:
        """Reset counters and histograms."""
        for word in ("steps", "overruns", "skipped", "caught_up", "logged", "lost", "traced"):
            self.set(word, 0)
        for name in ("cost", "delay", "own"):
            for what, first in (("sum", 0), ("most", 0), ("least", 2**62)):
                self.set(f"{name}_{what}", first)
        self.costs[:] = self.delays[:] = self.owns[:] = 0

    # -- the loop

    def use_code(self, code: LoopCode) -> None:
        """Make `code` the loop that `run` runs."""
        self._code = code
        self.set("ws", address(code.workspace))
        if self._clock is None:
            for word in ("now", "sleep", "own"):
                self.set(word, code.library.address(f"real_{word}"))

    def begin(self) -> None:
        """Complete the state before the first step."""
        assert self._code is not None
        pointers = [self.get(name) for name in ("state", "spare", "p", "u", "ws")]
        self._code.begin(*pointers)
        self.set("state", pointers[1])
        self.set("spare", pointers[0])

    def run(self) -> int:
        """Run the loop until it is stopped or the simulation fails, and return which of the two happened."""
        assert self._code is not None
        return int(self._code.drive(self.words.ctypes.data))

    # -- states and inputs

    @property
    def state(self) -> Array:
        """The newest state, while the loop does not run."""
        newest: Array = self.states[0 if self.get("state") == address(self.states[0]) else 1]
        return newest

    def restart(self, state: Array) -> None:
        """Continue from `state`, with an empty ring buffer and reset counters."""
        self.states[0], self.states[1] = state, 0.0
        self.set("state", address(self.states[0]))
        self.set("spare", address(self.states[1]))
        self.set("head", 0)
        self.set("tail", 0)
        self.window[1 : 1 + self.size] = state
        self.reset_statistics()

    def send(self, u: Array) -> None:
        """Publish the inputs `u` in the mailbox."""
        sequence = self.mailbox[:1].view(np.int64)
        sequence[0] += 1
        self.mailbox[1:] = u
        sequence[0] += 1

    def set_default_inputs(self, u: Array) -> None:
        """Set the inputs `u` that hold until others are sent, including those at the start of the loop."""
        self.send(u)
        self.inputs[: self.nu] = self.window[1 + self.size :] = u

    def newest(self) -> tuple[Array, Array]:
        """Return copies of the state and the inputs that were published last."""
        sequence = self.window[:1].view(np.int64)
        while True:
            before = int(sequence[0])
            copy = self.window.copy()
            if before == int(sequence[0]) and before % 2 == 0:
                return copy[1 : 1 + self.size], copy[1 + self.size :]

    def drain(self) -> Array:
        """Return all rows of the ring buffer and empty it."""
        head, tail = self.get("head"), self.get("tail")
        rows: Array = self.ring[np.arange(tail, head) % len(self.ring)]
        self.set("tail", head)
        return rows


MOST_CHANGES = 40_000  # changes: eleven minutes at sixty per second


class ParameterLog:
    """Present parameter values `p`, and a log of changes with the times from which they hold."""

    def __init__(self, parameters: Parameters, p: Array) -> None:
        self.parameters, self.p = parameters, p.copy()
        self.restart()

    def restart(self) -> None:
        """Restart the time and clear the log; the values stay."""
        self._log = deque([(-math.inf, self.p.copy())], MOST_CHANGES)

    def change(self, values: Mapping[str, float], t: float, check: bool = True) -> Array:
        """Set values of some parameters; nothing changes if one of them is invalid.

        Parameters
        ----------
        values
            New values by name.
        t
            Time from which they hold, s.
        check
            True checks that the values are physically possible.
        """
        new = self.parameters.changed(self.p, values, "tune", check)
        self.p = new
        self._log.append((t, new))
        return new

    def rows(self, t: Array, step: float) -> Array | None:
        """Return the values that held at rows with times `t`, (1, rows, np); None without changes.

        A change counts for rows at least half a `step` after it.
        """
        changes = list(self._log)
        if len(changes) < 2:
            return None
        since = np.searchsorted([when for when, _ in changes], t - 0.5 * step, side="right") - 1
        values: Array = np.array([p for _, p in changes])[np.maximum(since, 0)][None]
        return values


class RowStore:
    """Store of all rows (`limit` None), or of at least the newest `limit` rows and not many more."""

    def __init__(self, width: int, limit: int | None = None) -> None:
        self.limit = limit
        self.dropped = 0
        self._pieces: deque[Array] = deque([np.zeros((0, width))])
        self._count = 0

    def add(self, rows: Array) -> None:
        """Append `rows`, and drop the oldest blocks beyond the limit."""
        if not len(rows):
            return
        self._pieces.append(rows)
        self._count += len(rows)
        while self.limit is not None and self._count - len(self._pieces[0]) >= self.limit:
            dropped_rows = len(self._pieces.popleft())
            self._count -= dropped_rows
            self.dropped += dropped_rows

    def rows(self) -> Array:
        """Return the stored rows as one array."""
        return np.concatenate(list(self._pieces))
