"""Free fall and open-loop motion along eq 18 for either arm, by two integrators (Saha 2001, section 4).

The figures are 4 to 7 of the paper, and the growth of errors that explains why the forced run diverges.

theta_i = 1/2 [2 pi t / T - sin(2 pi t / T)]                                                                18
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bellcrank.control import Cycloid
from bellcrank.model import Mechanism
from bellcrank.papers.open_loop import Array, departure_time, desired_motion, error_growth, growth_panel, simulator
from bellcrank.papers.results import Row
from bellcrank.record import Record
from bellcrank.sim.run.simulator import Simulator
from bellcrank.view.curves import Line, Panel, figure

SECONDS, STEP, TOLERANCE = 10.0, 0.01, 1e-6
PANEL_MARGIN = 0.6  # margin of a panel above and below the path, as a fraction of its range; diverging runs are clipped
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
            agrees, off_by = abs(visible_time - printed) <= within, f"forced, {name}: off by"
            rows.append(
                Row(f"{off_by} {VISIBLE_DEVIATION} at", f"about {printed:g} s", f"{visible_time:.1f}", "s", agrees)
            )
            rows.append(Row(f"{off_by} {OBVIOUS_DEVIATION} at", "", f"{obvious_time:.1f}", "s"))
        for tolerance in (1e-4, 1e-5, 1e-8, 1e-10):
            visible_time = departure_time(self.forced("rkf45", tolerance), self.path, VISIBLE_DEVIATION)
            when = f"{visible_time:.1f} s" if np.isfinite(visible_time) else "never"
            rows.append(Row(f"forced, rkf45, tolerance {tolerance:g}: off by {VISIBLE_DEVIATION} at", "", when))
        return rows


# -- figures


def figures(arm: ArmExperiment, free: Record, held: Record | None = None) -> dict[str, str]:
    """Draw all figures of one arm; return SVG text by name.

    Parameters
    ----------
    arm
        Arm with its forced runs.
    free
        Free fall.
    held
        Free fall with the slide fixed, for comparison.
    """
    name = arm.mechanism.name
    return {
        "free-fall": figure(f"{name}, free fall from rest (Saha's fig. 4)", _fall_panels(arm, free, held), 3),
        "torque": figure(f"{name}, forces from inverse dynamics along eq 18 (Saha's fig. 5)", _force_panels(arm), 3),
        "forced": figure(f"{name}, driven by these forces, tolerance 1e-6 (Saha's fig. 6)", _motion_panels(arm), 3),
        "tip": figure(f"{name}, end effector in the forced run (Saha's fig. 7)", _tip_panels(arm), 3),
        "growth": figure(f"{name}, why it leaves its path", _growth_panels(arm), 2),
    }


def _units(arm: ArmExperiment) -> dict[str, str]:
    joints = arm.mechanism.joints
    return {j.name: "m" if j.kind == "prismatic" else "rad" for j in joints}


def _fall_panels(arm: ArmExperiment, free: Record, held: Record | None) -> list[Panel]:
    panels = []
    for name, unit in _units(arm).items():
        lines = [Line("free fall", free.t, free[f"{name}.q"])]
        if held is not None and f"{name}.q" in held:
            lines.append(Line("slide held", held.t, held[f"{name}.q"], dotted=True))
        panels.append(Panel(f"{name} [{unit}]", lines))
    return panels


def _force_panels(arm: ArmExperiment) -> list[Panel]:
    run = arm.forced("rkf45")
    return [
        Panel(f"{name} [{'N' if unit == 'm' else 'N m'}]", [Line("force or torque", run.t, run[f"{name}.tau"])])
        for name, unit in _units(arm).items()
    ]


def _motion_panels(arm: ArmExperiment) -> list[Panel]:
    rkf, abm = arm.forced("rkf45"), arm.forced("abm4")
    wanted = desired_motion(arm.path, rkf.t)[0]
    panels = []
    for i, (name, unit) in enumerate(_units(arm).items()):
        lines = [
            Line("desired", rkf.t, wanted[:, i], wide=True),
            Line("rkf45", rkf.t, rkf[f"{name}.q"]),
            Line("abm4", abm.t, abm[f"{name}.q"], dotted=True),
        ]
        panels.append(Panel(f"{name} [{unit}]", lines, *_panel_range(wanted[:, i])))
    return panels


def _tip_panels(arm: ArmExperiment) -> list[Panel]:
    run, m = arm.forced("rkf45"), arm.mechanism
    last = m.bodies[-1].name
    wanted = m.pose(desired_motion(arm.path, run.t)[0], last)[:, :3, 3]
    panels = []
    for k, axis in enumerate("xyz"):
        lines = [Line("desired", run.t, wanted[:, k], wide=True), Line("rkf45", run.t, run[f"{last}.{axis}"])]
        panels.append(Panel(f"{axis.upper()}1 [m]", lines, *_panel_range(wanted[:, k])))
    return panels


def _panel_range(y: Array) -> tuple[float, float]:
    """Return upper and lower limit of a panel around the path."""
    margin = PANEL_MARGIN * float(np.ptp(y))
    return float(y.max()) + margin, float(y.min()) - margin


def _growth_panels(arm: ArmExperiment) -> list[Panel]:
    errors = []
    for name in ("rkf45", "abm4"):
        run = arm.forced(name)
        off = np.abs(desired_motion(arm.path, run.t)[0] - run.q).max(axis=1)
        errors.append(Line(name, run.t, np.log10(np.where(off > 1e-14, off, np.nan))))
    return [Panel("log10 of the largest error [rad or m]", errors), growth_panel(*arm.growth)]
