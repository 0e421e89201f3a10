"""Figures 4 to 7 of Saha 2001 for either arm, and the growth of errors that explains why the forced run diverges."""

from __future__ import annotations

import numpy as np

from bellcrank.papers.open_loop import Array, desired_motion, growth_panel
from bellcrank.papers.saha.arm_experiment import ArmExperiment
from bellcrank.record import Record
from bellcrank.view.curves import Line, Panel, figure

PANEL_MARGIN = 0.6  # margin of a panel above and below the path, as a fraction of its range; diverging runs are clipped


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
