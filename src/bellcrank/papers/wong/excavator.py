"""Excavator with rotary hydraulics and PD control of its spools, in JOINT and RESOLVED mode (Wong 1991, section 5.5.2).

RK4 with the paper's h = 0.01 s, 15 s, pressures from zero: 5 s at rest, 5 s of motion, 5 s at rest. The thesis has
plots (figs 5.5 to 5.10) and sentences about them; each row below is one of the sentences. Values that are not printed
were chosen in excavators/rotary/spool_control.py, with the reasons.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from bellcrank.excavators.rotary import spool_control as wong
from bellcrank.excavators.rotary.spool_control import JOINTS, SpoolControl, spool_outputs
from bellcrank.papers import Result, Row, bound_row
from bellcrank.record import Record
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.settings import Solver
from bellcrank.sim.system.systems import System, system
from bellcrank.view.curves import Line, Panel, figure
from bellcrank.zoo import excavator

STEP = 0.01
RESOLVED_STEP = 0.002  # s; halving it changes the result by less than 1 % of the travel
# Fraction of the travel, when the paper's step is halved; worst at the end of the motion, 10 s.
RESOLVE_TOLERANCE = 0.05
TIP = ("radius", "swing", "height", "bucket angle")  # coordinates of the tip in RESOLVED mode
UNITS = ("m", "deg", "m", "deg")


def excavator_system(control: SpoolControl) -> System:
    """Return the excavator with hydraulics and `control`; spools, desired rates and tip coordinates are outputs."""
    drives, arm = wong.hydraulics(), wong.arm()
    outputs: dict[str, Any] = {}
    for i, (joint, spool) in enumerate(zip(JOINTS, spool_outputs(control, drives), strict=True)):
        outputs[f"{joint}.spool"] = spool
        outputs[f"{joint}.rate_d"] = lambda t, q, v, x, u, i=i: control.desired(t, x, u)[1][i]
    for i, name in enumerate(TIP):
        outputs[f"tip.{name}"] = lambda t, q, v, x, u, i=i: arm.forward(list(q))[i]
        outputs[f"tip.{name}_d"] = lambda t, q, v, x, u, i=i: arm.forward(control.desired(t, x, u)[0])[i]
    return system(excavator(), drives, control, outputs=outputs)


def simulate_mode(control: SpoolControl, step: float = STEP) -> Record:
    """Simulate the excavator under `control` with the given `step`, in s."""
    simulator = Simulator(excavator_system(control), solver=Solver(resolve=RESOLVE_TOLERANCE))
    return simulator.run(wong.SECONDS, q0=wong.poses()[0], step=step, every=STEP)


def run() -> Result:
    """Run both modes and compare them with the sentences of the thesis."""
    joint, resolved = (simulate_mode(control) for control in (wong.joint_mode(), wong.resolved_mode()))
    finer = simulate_mode(wong.resolved_mode(), STEP / 2)
    rows = (*_joint_rows(joint), *_resolved_rows(resolved))
    differences = np.degrees(np.abs(finer.q - resolved.q).max(axis=0))
    rows += (
        bound_row(
            "RESOLVED, h = 0.005 s instead of 0.01 s changes cab, boom, stick by", differences[:3].max(), 0.02, "deg"
        ),
        Row("and the bucket by", "", f"{differences[3]:.1g}", "deg"),
    )
    return Result(rows, {"joint": joint, "resolved": resolved}, _figures(joint, resolved))


def _tracking_error(r: Record, joint: str, t: float) -> float:
    """Return the desired minus the actual angle, in degrees."""
    k = round(t / STEP)
    return float(np.degrees(r[f"{joint}_d"][k] - r[f"{joint}.q"][k]))


def _joint_rows(r: Record) -> list[Row]:
    """Check the sentences about figs 5.5 to 5.7."""
    late, start = (r.t >= 3.0) & (r.t <= 4.95), r.t < 1.0
    shut = bool(late.any() and (r["boom.spool"][late] == 0.0).all() and (r["boom.command"][late] > 0.0).all())
    sag = {j: _tracking_error(r, j, 4.9) for j in JOINTS}
    swing = {j: float(np.degrees(np.ptp(r[f"{j}.v"][start]))) for j in JOINTS}
    end = {j: _tracking_error(r, j, 15.0) for j in JOINTS}
    volts = float(r["boom.command"][-1])
    moves = "velocity in the first second, peak to peak"
    return [
        Row("JOINT, boom sags by 4.9 s", "initial decrease", sag["boom"], "deg", sag["boom"] > 0.1),
        Row("JOINT, stick sags by 4.9 s", "initial decrease", sag["stick"], "deg", sag["stick"] > 0.1),
        Row("JOINT, cab is off by 4.9 s", "not present", sag["cab"], "deg", abs(sag["cab"]) < 0.01),
        Row("JOINT, boom from 3 to 5 s: v > 0 and x = 0", "due to the dead band", "yes" if shut else "no", "", shut),
        Row(f"JOINT, boom's {moves}", "oscillates", swing["boom"], "deg/s", swing["boom"] > 3.0),
        Row(f"JOINT, cab's {moves}", "no oscillation", swing["cab"], "deg/s", swing["cab"] < 0.1),
        Row("JOINT, cab short of its end at 15 s", "steady state lag", end["cab"], "deg", end["cab"] > 0.5),
        Row("JOINT, boom short of its end at 15 s", "steady state lag", -end["boom"], "deg", end["boom"] < -0.5),
        Row("JOINT, v of the boom at 15 s", "negative", volts, "V", volts < 0.0),
    ]


def _resolved_rows(r: Record) -> list[Row]:
    """Check the sentences about figs 5.8 to 5.10."""

    def value_at(name: str, t: float) -> float:
        return float(r[name][round(t / STEP)])

    radius, swing = value_at("tip.radius_d", 15.0), float(np.degrees(value_at("tip.swing_d", 15.0)))
    sag, later = (value_at("tip.height", t) - value_at("tip.height_d", t) for t in (4.9, 12.0))
    opening = [abs(value_at("stick.spool", t)) for t in (7, 8, 9, 9.9)]
    wider = all(a < b for a, b in pairwise(opening))
    lag = _tracking_error(r, "cab", 10.0)
    return [
        Row("RESOLVED, desired radius at 15 s", "6.5 m", radius, "m", abs(radius - 6.5) < 0.005),
        Row("RESOLVED, desired swing at 15 s", "15 deg", swing, "deg", abs(swing - 15.0) < 0.05),
        Row("RESOLVED, cab behind at 10 s", "significant lag", lag, "deg", lag > 3.0),
        Row("RESOLVED, height too high by, at 4.9 s", "initial sag", sag, "m", sag < -0.005),
        Row("RESOLVED, height too high by, at 12 s", "positive error", later, "m", later > 0.005),
        Row("RESOLVED, stick's spool at 7 s", "opens wider", opening[0], "cm", wider),
        Row("RESOLVED, stick's spool at 9.9 s", "opens wider", opening[-1], "cm", wider),
    ]


def _figures(joint: Record, resolved: Record) -> dict[str, str]:
    def angles(r: Record) -> list[Panel]:
        return [_tracking_panel(r, f"{j} [deg]", f"{j}_d", f"{j}.q", 180 / np.pi) for j in JOINTS]

    def spools(r: Record) -> list[Panel]:
        """Plot the voltage times the opening per volt, so that both curves are lengths."""
        panels = []
        for j in JOINTS:
            command = Line(f"{wong.OPENING:g} v", r.t, wong.OPENING * r[f"{j}.command"], dotted=True)
            panels.append(Panel(f"{j} [cm]", [command, Line("x", r.t, r[f"{j}.spool"])]))
        return panels

    rates = [_tracking_panel(joint, f"{j} [deg/s]", f"{j}.rate_d", f"{j}.v", 180 / np.pi) for j in JOINTS]
    tip = [
        _tracking_panel(resolved, f"{n} [{u}]", f"tip.{n}_d", f"tip.{n}", 180 / np.pi if u == "deg" else 1.0)
        for n, u in zip(TIP, UNITS, strict=True)
    ]
    return {
        "joint-angle": figure("JOINT mode, angles (Wong's fig. 5.5)", angles(joint)),
        "joint-rate": figure("JOINT mode, velocities (Wong's fig. 5.6)", rates),
        "joint-spool": figure("JOINT mode, voltages and spools (Wong's fig. 5.7)", spools(joint)),
        "resolved-angle": figure("RESOLVED mode, angles (Wong's fig. 5.8)", angles(resolved)),
        "resolved-tip": figure("RESOLVED mode, radius, swing, height and bucket (Wong's fig. 5.9)", tip),
        "resolved-spool": figure("RESOLVED mode, voltages and spools (Wong's fig. 5.10)", spools(resolved)),
    }


def _tracking_panel(r: Record, title: str, wanted: str, got: str, factor: float) -> Panel:
    return Panel(title, [Line("desired", r.t, factor * r[wanted], wide=True), Line("actual", r.t, factor * r[got])])
