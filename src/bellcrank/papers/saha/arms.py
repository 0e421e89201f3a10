"""What Saha 2001, section 4, does with either arm: fall freely, and follow eq 18 open loop, by two integrators.

theta_i = 1/2 [2 pi t / T - sin(2 pi t / T)]                                                                18
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bellcrank.control import Cycloid
from bellcrank.model import Mechanism
from bellcrank.papers.open_loop import Array, growth, leaves, simulator
from bellcrank.papers.results import Row
from bellcrank.record import Record
from bellcrank.sim.simulator import Simulator

SECONDS, STEP, TOLERANCE = 10.0, 0.01, 1e-6
VISIBLE, CLEAR = 0.01, 0.1  # rad or m: the width of a line in a plot, and what nobody can overlook


@dataclass(frozen=True, eq=False)
class Arm:
    mechanism: Mechanism
    start: tuple[float, ...]
    end: tuple[float, ...]
    runs: dict[tuple[str, float], Record] = field(default_factory=dict)

    @property
    def path(self) -> Cycloid:
        return Cycloid(self.start, self.end, SECONDS)

    def free_fall(self, mechanism: Mechanism | None = None, start: tuple[float, ...] | None = None) -> Record:
        """Runge-Kutta-Fehlberg at the printed time step."""
        made = Simulator(mechanism or self.mechanism, "rkf45")
        return made.run(SECONDS, q0=list(start or self.start), step=STEP)

    @cached_property
    def simulators(self) -> dict[str, Simulator]:
        return {name: simulator(self.mechanism, self.path, name) for name in ("rkf45", "abm4")}

    def forced(self, integrator: str, tolerance: float = TOLERANCE) -> Record:
        key = integrator, tolerance
        if key not in self.runs:
            made = self.simulators[integrator]
            self.runs[key] = made.run(SECONDS, q0=list(self.start), tolerance=tolerance, every=STEP)
        return self.runs[key]

    @cached_property
    def growth(self) -> tuple[Array, Array]:
        return growth(self.simulators["rkf45"], self.path, SECONDS)

    def departures(self, printed: float, within: float) -> list[Row]:
        """When the forced run leaves the path: by both integrators, and by others' tolerances."""
        rows = []
        for name in ("rkf45", "abm4"):
            run = self.forced(name)
            seen, clear = (leaves(run, self.path, by) for by in (VISIBLE, CLEAR))
            agrees = abs(seen - printed) <= within
            rows.append(Row(f"forced, {name}: off by {VISIBLE} at", f"about {printed:g} s", f"{seen:.1f}", "s", agrees))
            rows.append(Row(f"forced, {name}: off by {CLEAR} at", "", f"{clear:.1f}", "s"))
        for tolerance in (1e-4, 1e-5, 1e-8, 1e-10):
            seen = leaves(self.forced("rkf45", tolerance), self.path, VISIBLE)
            when = f"{seen:.1f} s" if np.isfinite(seen) else "never"
            rows.append(Row(f"forced, rkf45, tolerance {tolerance:g}: off by {VISIBLE} at", "", when))
        return rows
