"""A drive in Python for tests of the cockpit: the same interface as bellcrank.sim.Drive, stepping in a thread.

It keeps real time only roughly on a shared computer, so it is used for tests of the cockpit and for no timing.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.record import Column, Record, state_columns
from bellcrank.sim.realtime.realtime_drive import DriveSnapshot
from bellcrank.sim.system.systems import System

SPAN = 0.005  # s of simulation at a time, or the next whole number of steps
EDGES = [float(x) for x in np.geomspace(1e-6, 1e-3, 13)]


class PythonDrive:
    def __init__(self, system: System, rate: float = 1000.0, integrator: str = "rk4", method: str = "auto") -> None:
        self.system, self.rate = system, rate
        self.simulator = bc.Simulator(system, integrator, method)
        self.u = np.zeros(len(system.inputs))
        self.factor, self.n, self.t = 1.0, 0, 0.0
        self.steps = math.ceil(SPAN * rate)
        self.rows: list[Any] = []
        self.parameters: dict[str, float] = {}
        self._lock, self._go, self._end = threading.RLock(), threading.Event(), threading.Event()
        self.reset()

    def start(self) -> None:
        self._go.set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def pause(self) -> None:
        self._go.clear()

    def resume(self) -> None:
        self._go.set()

    def stop(self) -> None:
        self._end.set()
        self._go.set()
        self._thread.join()

    def slow(self, factor: float) -> None:
        self.factor = factor

    def input(self, values: Mapping[str, float] | Sequence[float]) -> None:
        given = [values[n] for n in self.system.inputs] if isinstance(values, Mapping) else list(values)
        self.u = np.array(given, float)

    def tune(self, values: Mapping[str, float], *, check: bool = True) -> None:
        self.parameters = {**self.parameters, **values}

    def reset(self, q0: Any = None, v0: Any = None, x0: Any = None) -> None:
        s, m = self.system, self.system.mechanism
        q = m.neutral() if q0 is None else q0
        v = np.zeros(m.nv) if v0 is None else v0
        x = [z.initial for z in s.states] if x0 is None else x0
        with self._lock:
            self.y = np.concatenate([q, v, x])
            self.n, self.t, self.rows = 0, 0.0, []
            self.outputs = dict.fromkeys(s.outputs, 0.0)

    def _run(self) -> None:
        m, span = self.system.mechanism, self.steps / self.rate
        due = time.perf_counter()
        while True:
            self._go.wait()
            if self._end.is_set():
                return
            with self._lock:
                y, u = self.y, self.u
                parts = y[: m.nq], y[m.nq : m.nq + m.nv], y[m.nq + m.nv :]
                inputs = dict(zip(self.system.inputs, u, strict=True))
                run = self.simulator.run(
                    span,
                    *parts,
                    step=1 / self.rate,
                    every=span,
                    inputs=inputs,
                    parameters=self.parameters,
                    progress=False,
                )
                self.y = np.concatenate([run.q[-1], run.v[-1], run.x[-1]])
                self.outputs = {name: float(run[name][-1]) for name in self.system.outputs}
                self.n += self.steps
                self.t += span
                self.rows.append((self.t, self.y, u, list(self.outputs.values())))
            due = max(due + span / self.factor, time.perf_counter() - 0.1)
            time.sleep(max(0.0, due - time.perf_counter()))

    @property
    def paused(self) -> bool:
        return not self._go.is_set()

    def snapshot(self) -> DriveSnapshot:
        with self._lock:
            status = "stopped" if self._end.is_set() else "paused" if self.paused else "running"
            return DriveSnapshot(self.n, self.t, self.y, self.u, status, outputs=dict(self.outputs))

    def report(self) -> dict[str, Any]:
        times = {"min": 4e-6, "mean": 5e-6, "p99": 9e-6, "max": 3e-5}
        counts = [0, 0, 3, 40, 310, 120, 44, 12, 4, 1, 0, 0]
        return {
            "predicted": 4.4e-6,
            "measured": times,
            "histogram": {"edges": EDGES, "counts": counts},
            "jitter": times | {"histogram": {"edges": EDGES, "counts": counts}},
            "overruns": 2,
            "skipped": 3,
            "log": [
                {"time": 1.25, "late": 1.5e-3, "cost": 6e-6, "skipped": 0},
                {"time": 2.5, "late": 9e-3, "cost": 7e-6, "skipped": 3},
            ],
            "real_time_factor": 1.0,
            "notes": ["this drive is Python: for tests only"],
        }

    def record(self) -> Record:
        s, m = self.system, self.system.mechanism
        with self._lock:
            rows = list(self.rows) or [(self.t, self.y, self.u, list(self.outputs.values()))]
        t, y = np.array([r[0] for r in rows]), np.stack([r[1] for r in rows])
        columns = state_columns(m, t, q=y[:, : m.nq], v=y[:, m.nq : m.nq + m.nv])
        for k, z in enumerate(s.states, m.nq + m.nv):
            columns[z.name] = Column(z.name, z.unit, y[:, k])
        for k, name in enumerate(s.inputs):
            columns[f"input.{name}"] = Column(f"input.{name}", "", np.array([r[2][k] for r in rows]))
        for k, name in enumerate(s.outputs):
            columns[name] = Column(name, "", np.array([r[3][k] for r in rows]))
        return Record(columns, mechanism=m, states=[z.name for z in s.states])
