"""bc.drive: a system stepped in real time by a native thread, with an operator in the loop.

The thread runs emit/realtime.py: no Python, no allocation, the interpreter's lock released. What this file does is to
set it up, to pass inputs in and states out, and to empty the ring into a record from time to time.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank.emit import realtime
from bellcrank.emit.host import host
from bellcrank.emit.load import Library, compiled
from bellcrank.errors import InputError, unknown
from bellcrank.model import Mechanism
from bellcrank.record import Record
from bellcrank.sim import start
from bellcrank.sim.checked import positive
from bellcrank.sim.deadlines import Deadlines, deadlines
from bellcrank.sim.lanes import Done
from bellcrank.sim.layout import REPARTITION, RUNNING
from bellcrank.sim.recorded import Outcome, recorded
from bellcrank.sim.runner import address, aligned
from bellcrank.sim.simulator import Simulator
from bellcrank.sim.systems import System
from bellcrank.sim.traced import Traced

Array = np.ndarray[Any, Any]
RING = 65536  # rows that may wait to be written down
MOST = 5  # periods that are caught up after an overrun; more are skipped
NOW = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
SLEEP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


@dataclass(frozen=True)
class Clock:
    """What the loop asks for the time and waits by; without one, the computer's monotonic clock."""

    now: Any  # () -> nanoseconds
    sleep: Any  # (nanoseconds): until then


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The newest state that was published."""

    n: int
    t: float
    y: Array
    u: Array
    status: str = "running"
    outputs: Mapping[str, float] = field(default_factory=dict)


class Drive:
    """A system that runs in real time. Use it as a context, or start() and stop() it."""

    def __init__(
        self,
        mechanism: Mechanism | System,
        rate: float = 1000.0,
        integrator: str = "rk4",
        method: str = "auto",
        form: str = "projected",
        q0: Any = None,
        v0: Any = None,
        x0: Any = None,
        parameters: Mapping[str, float] | None = None,
        substeps: int = 1,
        every: int = 1,
        spin: float = 0.0,
        most: int = MOST,
        core: int | None = None,
        clock: Clock | None = None,
        **parts: Any,
    ) -> None:
        """rate: periods a second, each of `substeps` steps. every: periods between rows of the record. spin: seconds
        before a deadline from which on the loop waits awake. most: periods to catch up after an overrun. core: where to
        run; None leaves it to the system.
        """
        self.rate = positive("rate", rate, ", periods a second")
        if not isinstance(substeps, int) or substeps < 1:
            raise InputError(f"substeps is {substeps!r}; expected a whole number from 1.")
        if not isinstance(every, int) or every < 1:
            raise InputError(f"every is {every!r}; expected a whole number of periods from 1.")
        self.simulator = Simulator(mechanism, integrator, method, form=form, **parts)
        self.system = self.simulator.system
        self.substeps, self.every, self.core = substeps, every, core
        self.step = 1.0 / (self.rate * substeps)
        self._p = self.system.parameters.vector(parameters or {}, "drive").reshape(1, -1)
        self._neutral = np.zeros(len(self.system.inputs))
        self._pieces: list[Array] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self.notes: list[str] = []
        self._words = np.zeros(len(realtime.WORDS), np.int64)
        self._keep: list[Any] = []
        self._share(spin, most, clock)
        self.reset(q0, v0, x0)

    # -- what is shared with the loop

    def _share(self, spin: float, most: int, clock: Clock | None) -> None:
        nu = len(self.system.inputs)
        places, program = self.simulator.program(None, self.simulator.traced)
        self._places, self._row = places, program.row
        self._state = aligned(2 * places.size, 1).reshape(2, -1)
        self._inputs = np.zeros(2 * nu + 1)
        self._mailbox = np.zeros(1 + nu)
        self._window = np.zeros(1 + places.size + nu)
        self._ring = np.zeros((RING, program.row + nu))
        self._log = np.zeros((realtime.EVENTS, 4), np.int64)
        self._costs, self._delays = np.zeros(realtime.BINS, np.int64), np.zeros(realtime.BINS, np.int64)
        self._parameters = np.ascontiguousarray(self._p[0]) if self._p.size else np.zeros(1)
        for name, array in {
            "p": self._parameters, "u": self._inputs, "mailbox": self._mailbox, "window": self._window,
            "ring": self._ring, "log": self._log, "costs": self._costs, "delays": self._delays,
        }.items():  # fmt: skip
            self._set(name, address(array))
        self._set("capacity", RING)
        self._set("stride", self.every)
        self._set("ticks", self.substeps)
        self._set("most", int(most))
        self._set("spin", round(spin * 1e9))
        self._period = round(1e9 / self.rate)
        self._set("period", self._period)
        self._clock = clock
        if clock is not None:
            now, sleep = NOW(lambda _: int(clock.now())), SLEEP(lambda _, until: clock.sleep(until))
            self._keep += [now, sleep]
            self._set("now", ctypes.cast(now, ctypes.c_void_p).value or 0)
            self._set("sleep", ctypes.cast(sleep, ctypes.c_void_p).value or 0)
        self._forget()

    def _set(self, word: str, value: int) -> None:
        self._words[realtime.PLACES[word]] = value

    def _get(self, word: str) -> int:
        return int(self._words[realtime.PLACES[word]])

    def _forget(self) -> None:
        """Counters and histograms begin anew."""
        for word in ("steps", "overruns", "skipped", "caught_up", "logged", "lost", "cost_sum", "delay_sum"):
            self._set(word, 0)
        for word in ("cost_most", "delay_most"):
            self._set(word, 0)
        for word in ("cost_least", "delay_least"):
            self._set(word, 2**62)
        self._costs[:] = self._delays[:] = 0

    def _code(self, traced: Traced) -> tuple[Any, Any, Array]:
        """drive, begin and a workspace, compiled for one way to compute the system."""
        _, program = self.simulator.program(None, traced)
        text, slots = realtime.source(program, host().lanes("float64"))
        library = Library(compiled(text)[0])
        self._keep.append(library)
        drive = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(library.address("drive"))
        begin = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(library.address("begin"))
        if self._clock is None:
            self._set("now", library.address("real_now"))
            self._set("sleep", library.address("real_sleep"))
        ws = aligned(slots, 1)
        self._set("ws", address(ws))
        return drive, begin, ws

    # -- for the operator

    def __enter__(self) -> Drive:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the thread, or does nothing where it runs."""
        with self._lock:
            if self.running:
                return
            self._set("stop", 0)
            self._thread = threading.Thread(target=self._run, name="bellcrank drive", daemon=True)
            self._writer = threading.Thread(target=self._write, name="bellcrank ring", daemon=True)
            self._thread.start()
            self._writer.start()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        self._set("stop", 1)
        for thread in (self._thread, getattr(self, "_writer", None)):
            if thread is not None and thread is not threading.current_thread():
                thread.join()
        self._drain()

    def pause(self) -> None:
        self._set("pause", 1)

    def resume(self) -> None:
        self._set("pause", 0)

    @property
    def paused(self) -> bool:
        return bool(self._get("pause"))

    def slow(self, factor: float) -> None:
        """Runs so many times as fast as real time: 1, or 0.1 for slow motion."""
        self._set("period", round(self._period / positive("factor", factor, "")))

    def reset(self, q0: Any = None, v0: Any = None, x0: Any = None) -> None:
        """Back to a start, with an empty record. A drive that runs is stopped for it and goes on."""
        again = self.running
        if again:
            self.stop()
        traced = self.simulator.traced
        y = traced.checked(start.state(self.system, q0, v0, x0).reshape(1, -1), self._p)
        first = {"y": y, "live": 1.0, "h": self.step, "last": 1e300, "stride": 1.0, "next": 1e300}
        first |= {"input_step": 1e300}
        self._state[0] = self._places.array(1, {k: x for k, x in first.items() if k in self._places.places})[:, 0]
        self._state[1] = 0.0
        self._set("state", address(self._state[0]))
        self._set("spare", address(self._state[1]))
        self._set("head", 0)
        self._set("tail", 0)
        self._pieces = []
        self._fresh = True
        self._forget()
        self._publish()
        if again:
            self.start()

    def input(self, values: Mapping[str, float] | Sequence[float]) -> None:
        """The inputs from now on; the newest wins. What a mapping does not name stays."""
        names = self.system.inputs
        new = self._mailbox[1:].copy()
        if isinstance(values, Mapping):
            for name, x in values.items():
                if name not in names:
                    raise InputError(f"inputs: {unknown('input', name, names)}")
                new[names.index(name)] = float(x)
        else:
            given = np.asarray(values, float)
            if given.shape != new.shape:
                raise InputError(f"inputs has the shape {given.shape}; expected ({len(names)},): {', '.join(names)}.")
            new = given
        if not np.isfinite(new).all():
            raise InputError(f"inputs: {new.tolist()} is not finite.")
        with self._lock:
            sequence = self._mailbox[:1].view(np.int64)
            sequence[0] += 1
            self._mailbox[1:] = new
            sequence[0] += 1

    def snapshot(self) -> Snapshot:
        """The newest state. Never waits for the loop."""
        sequence = self._window[:1].view(np.int64)
        while True:
            before = int(sequence[0])
            copy = self._window.copy()
            if before == int(sequence[0]) and before % 2 == 0:
                break
        size = self._places.size
        state, u = copy[1 : 1 + size], copy[1 + size :]
        y = state[self._places.places["y"]]
        n, status = state[self._places.place("n")], int(state[self._places.place("status")])
        word = "running" if self.running and not self.paused else "paused" if self.running else "stopped"
        t = float(state[self._places.place("t")])
        return Snapshot(int(n), t, y, u, word if status == RUNNING else "failed", self._seen(t, y, u))

    def _seen(self, t: float, y: Array, u: Array) -> dict[str, float]:
        """The user's outputs, worked out by whoever looks and not by the loop."""
        if not self.system.outputs:
            return {}
        graph = self.simulator.traced.outputs
        given = {"t": t, "y": y, "u": u, "p": self._p[0]}
        found = graph.evaluate(**{key: given[key] for key in graph.inputs})["output"]
        return dict(zip(self.system.outputs, (float(x) for x in found), strict=False))

    def report(self) -> dict[str, Any]:
        """Deadlines so far, as plain data; see `deadlines` for an object that prints itself."""
        return self.deadlines.plain()

    @property
    def deadlines(self) -> Deadlines:
        words = {name: self._get(name) for name in realtime.WORDS}
        return deadlines(
            words, self._costs.copy(), self._delays.copy(), self._log.copy(), self.step, self._predicted, self.notes
        )

    @property
    def _predicted(self) -> float:
        if not hasattr(self, "_guess"):
            self._guess = self.simulator.predicted.one * self.substeps
        return self._guess

    def record(self) -> Record:
        """What was recorded so far, with the deadlines in its provenance."""
        self._drain()
        nu = len(self.system.inputs)
        rows = np.concatenate(self._pieces) if self._pieces else np.zeros((0, self._row + nu))
        inputs = rows[None, :, self._row :] if nu else np.zeros((1, 1, 0))
        table = rows[:, : self._row].copy()
        if nu:
            table[:, -1] = np.arange(len(table))
        state = self._state[0 if self._get("state") == address(self._state[0]) else 1]
        done = Done(state[:, None].copy(), [[table]], table[None], np.zeros(1, int), True)
        settings = {"rate": self.rate, "step": self.step, "every": self.every, "realtime": self.report()}
        return recorded(
            Outcome(
                self.system, self.simulator.traced, self.simulator.integrator, self._places, done, (), inputs, self._p,
                (), settings,
            )
        )  # fmt: skip

    # -- threads

    def _run(self) -> None:
        self._permissions()
        traced = self.simulator.traced
        y = self._places.places["y"]
        assert isinstance(y, slice)
        while True:
            state = self._state[0 if self._get("state") == address(self._state[0]) else 1]
            (by,) = traced.grouped(state[y][None], self._p)
            if "bound" in self._places.places:
                state[self._places.place("bound")] = by.bounds(state[y][None], self._p)[0]
            drive, begin, ws = self._code(by)
            if self._fresh:
                pointers = [self._get(name) for name in ("state", "spare", "p", "u", "ws")]
                begin(*pointers)
                self._set("state", pointers[1])
                self._set("spare", pointers[0])
                self._fresh = False
            why = drive(self._words.ctypes.data)
            del ws
            state = self._state[0 if self._get("state") == address(self._state[0]) else 1]
            status = self._places.place("status")
            if why == realtime.STOPPED or state[status] != REPARTITION:
                return
            state[status], state[self._places.place("live")] = RUNNING, 1.0

    def _publish(self) -> None:
        self._window[1 : 1 + self._places.size] = self._state[0]

    def _permissions(self) -> None:
        """What makes waking up punctual, as far as it is permitted."""
        self.notes = []
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        except (OSError, AttributeError) as error:
            self.notes.append(f"no SCHED_FIFO ({error}): other programs may delay the loop")
        try:
            if ctypes.CDLL(None, use_errno=True).mlockall(3):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        except (OSError, AttributeError) as error:
            self.notes.append(f"memory is not locked ({error}): a page may have to be fetched")
        if self.core is not None:
            try:
                os.sched_setaffinity(0, {self.core})
            except (OSError, AttributeError) as error:
                self.notes.append(f"not pinned to core {self.core} ({error})")

    def _write(self) -> None:
        while self.running:
            time.sleep(0.05)
            self._drain()

    def _drain(self) -> None:
        """Takes rows out of the ring."""
        with self._lock:
            head, tail = self._get("head"), self._get("tail")
            if head > tail:
                index = np.arange(tail, head) % RING
                self._pieces.append(self._ring[index])
                self._set("tail", head)


def drive(mechanism: Mechanism | System, rate: float = 1000.0, seconds: float | None = None, **settings: Any) -> Any:
    """Runs a system in real time: for so many seconds, giving a Record; or until it is stopped, giving the Drive."""
    made = Drive(mechanism, rate, **settings)
    made.start()
    if seconds is None:
        return made
    try:
        time.sleep(positive("seconds", seconds))
    finally:
        made.stop()
    return made.record()
