"""A drive without physics, for tests of the cockpit around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.record import Record, state_columns
from bellcrank.sim.realtime.realtime_drive import DriveSnapshot


class FakeDrive:
    """A drive that records its calls; a test sets its state."""

    def __init__(self, system: bc.System, rate: float = 1000.0, integrator: str = "rk4", method: str = "auto") -> None:
        self.system, self.rate, self.integrator, self.method = system, rate, integrator, method
        self.calls: list[Any] = []
        self.y, self.n, self.t = np.zeros(system.size), 0, 0.0
        self.u = np.zeros(len(system.inputs))
        self.started, self.paused = False, False

    def __getattr__(self, name: str) -> Any:
        if name not in ("start", "pause", "resume", "stop", "slow"):
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, *args: Any) -> None:
        self.calls.append((name, *args))
        self.started = {"start": True, "stop": False}.get(name, self.started)
        self.paused = {"pause": True, "resume": False}.get(name, self.paused)

    def reset(self, q0: Any = None, v0: Any = None, x0: Any = None) -> None:
        m = self.system.mechanism
        self.calls.append(("reset",))
        v, x = (np.zeros(n) if a is None else a for n, a in ((m.nv, v0), (self.system.nx, x0)))
        self.y = np.concatenate([m.neutral() if q0 is None else q0, v, x])

    def input(self, values: Mapping[str, float] | Sequence[float]) -> None:
        self.u = np.array([values[n] for n in self.system.inputs] if isinstance(values, Mapping) else values, float)

    def tune(self, values: Mapping[str, float], *, check: bool = True) -> None:
        self.tuned = {**getattr(self, "tuned", {}), **values}

    def snapshot(self) -> DriveSnapshot:
        status = "stopped" if not self.started else "paused" if self.paused else "running"
        return DriveSnapshot(self.n, self.t, self.y, self.u, status, outputs=dict.fromkeys(self.system.outputs, 7.0))

    def report(self) -> dict[str, Any]:
        return {"overruns": 0, "jitter": {"max": float("inf")}}

    def record(self) -> Record:
        m, t = self.system.mechanism, np.arange(10000) * 1e-3
        q = np.tile(m.neutral(), (len(t), 1))
        q[:, 0] = t
        return Record(state_columns(m, t, q=q, v=np.zeros((len(t), m.nv))), mechanism=m)
