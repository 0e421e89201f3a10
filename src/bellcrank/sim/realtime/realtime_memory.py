"""Memory that a real-time loop shares with its process: the words of emit/cpu/realtime_loop.py, and arrays.

No side ever waits for the other. Inputs lie in a mailbox and states in a window, each behind a sequence number that is
odd while it is written; rows lie in a ring buffer. Counters and histograms are only read here, except by
`reset_statistics`.
"""

from __future__ import annotations

import ctypes
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.buffers import poisoned
from bellcrank.emit.cpu import realtime_loop
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.llvm.host import compile_cached, host
from bellcrank.graph import Program
from bellcrank.sim.run.lane_blocks import address, aligned_zeros

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
            monotonic, thread_time = (
                CLOCK_FUNCTION_TYPE(lambda _: int(clock.now())),
                CLOCK_FUNCTION_TYPE(lambda _: int(clock.own())),
            )
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
