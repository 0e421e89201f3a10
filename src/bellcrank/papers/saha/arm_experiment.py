"""Free fall and open-loop motion along eq 18 for either arm, by two integrators (Saha 2001, section 4).

theta_i = 1/2 [2 pi t / T - sin(2 pi t / T)]                                                                18
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bellcrank.control import Cycloid
from bellcrank.model import Mechanism
from bellcrank.papers.open_loop import Array, departure_time, error_growth, simulator
from bellcrank.papers.results import Row
from bellcrank.record import Record
from bellcrank.sim.run.simulator import Simulator

SECONDS, STEP, TOLERANCE = 10.0, 0.01, 1e-6
VISIBLE_DEVIATION, OBVIOUS_DEVIATION = 0.01, 0.1  # rad or m: width of a line in a plot, and an obvious deviation


@dataclass(frozen=True, eq=False)
class ArmExperiment:
    """Arm with its path from `start` to `end`, and a cache of its forced runs."""

    mechanism: Mechanism
    start: tuple[float, ...]
    end: tuple[float, ...]
    runs: dict[tuple[str, float], Record] = field(default_factory=dict)

    @property
    def path(self) -> Cycloid:
        """Cycloidal path by eq 18."""
        return Cycloid(self.start, self.end, SECONDS)

    def free_fall(self, mechanism: Mechanism | None = None, start: tuple[float, ...] | None = None) -> Record:
        """Simulate free fall by Runge-Kutta-Fehlberg with the printed time step.

        Parameters
        ----------
        mechanism
            Variant of the arm; None for the arm itself.
        start
            Initial coordinates; None for those of the arm.
        """
        fall_simulator = Simulator(mechanism or self.mechanism, "rkf45")
        return fall_simulator.run(SECONDS, q0=list(start or self.start), step=STEP)

    @cached_property
    def simulators(self) -> dict[str, Simulator]:
        """Simulators of the forced motion, by integrator."""
        return {name: simulator(self.mechanism, self.path, name) for name in ("rkf45", "abm4")}

    def forced(self, integrator: str, tolerance: float = TOLERANCE) -> Record:
        """Return the forced run by `integrator` with the error `tolerance`."""
        key = integrator, tolerance
        if key not in self.runs:
            path_simulator = self.simulators[integrator]
            self.runs[key] = path_simulator.run(SECONDS, q0=list(self.start), tolerance=tolerance, every=STEP)
        return self.runs[key]

    @cached_property
    def growth(self) -> tuple[Array, Array]:
        """Times, and the growth factor of a small initial error on the path."""
        return error_growth(self.simulators["rkf45"], self.path, SECONDS)

    def departure_rows(self, printed: float, within: float) -> list[Row]:
        """Tabulate when the forced run leaves its path, for both integrators and for several tolerances.

        Parameters
        ----------
        printed
            Time in the paper, s.
        within
            Difference from `printed` that counts as agreement, s.
        """
        rows = []
        for name in ("rkf45", "abm4"):
            run = self.forced(name)
            visible_time, obvious_time = (
                departure_time(run, self.path, deviation) for deviation in (VISIBLE_DEVIATION, OBVIOUS_DEVIATION)
            )
            agrees = abs(visible_time - printed) <= within
            rows.append(
                Row(
                    f"forced, {name}: off by {VISIBLE_DEVIATION} at",
                    f"about {printed:g} s",
                    f"{visible_time:.1f}",
                    "s",
                    agrees,
                )
            )
            rows.append(Row(f"forced, {name}: off by {OBVIOUS_DEVIATION} at", "", f"{obvious_time:.1f}", "s"))
        for tolerance in (1e-4, 1e-5, 1e-8, 1e-10):
            visible_time = departure_time(self.forced("rkf45", tolerance), self.path, VISIBLE_DEVIATION)
            when = f"{visible_time:.1f} s" if np.isfinite(visible_time) else "never"
            rows.append(Row(f"forced, rkf45, tolerance {tolerance:g}: off by {VISIBLE_DEVIATION} at", "", when))
        return rows
