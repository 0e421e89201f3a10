"""Simulated experiments of Wong 1991: PUMA 600 and torso (sections 3.5.1 and 3.5.2), excavator (section 5.5.2).

PUMA 600 and torso under open-loop inverse dynamics, RK4:

    theta_d = (w t - sin w t) / 2, w = 2 pi / T, all joints                                                   3.43
    tau_d at t, t + h/2, t + h/2 and t + h, the stages of RK4                                                 3.44

PUMA 600, T = 10 s: the thesis reads the largest errors of joint 6 off figure 3.6; errors are desired minus actual
values.

Torso with head and arms, T = 5 s, h = 0.001 s: "Larger values caused instability due to numerical error accumulation",
and even so instability occurred "when simulating long periods of time (approximately 5 seconds)", because "the higher
frequency dynamics are not adequately modeled by the integrator". This experiment confirms the first two statements, but
not the reason: the fastest rate of the torso is far inside RK4's region of stability with either step. The arms are
inverted pendulums without feedback: any error grows by eleven powers of ten in 5 s. With feedback (computed torque) the
large step suffices.

Excavator with rotary hydraulics and PD control of its spools, in JOINT and RESOLVED mode: RK4 with the paper's
h = 0.01 s, 15 s, pressures from zero: 5 s at rest, 5 s of motion, 5 s at rest. The thesis has plots (figs 5.5 to 5.10)
and sentences about them; each row below is one of the sentences. Values that are not printed were chosen in
excavators/spool_control.py, with the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bellcrank.control import wong
from bellcrank.excavators import spool_control
from bellcrank.excavators.spool_control import JOINTS, SpoolControl, spool_outputs
from bellcrank.papers import Result, Row, bound_row, is_near, open_loop
from bellcrank.papers.open_loop import Array, Path
from bellcrank.record import Record
from bellcrank.scalar import cos, sin
from bellcrank.sim.run.simulator import Simulator
from bellcrank.sim.settings import Solver
from bellcrank.sim.system.systems import System, system
from bellcrank.view.curves import Line, Panel, figure
from bellcrank.zoo import excavator, puma600, torso

PUMA_SECONDS, PUMA_STEP = 10.0, 0.01
PUMA_PRINTED = {"theta": (-1e-4, "deg"), "dtheta": (-5e-5, "deg/s"), "ddtheta": (6e-5, "deg/s^2")}
TORSO_SECONDS, TORSO_STEP, TORSO_LARGE_STEP = 5.0, 0.001, 0.01
RK4_LIMIT = 2.785  # largest |lambda h| on the negative axis; 2.83 on the imaginary one
CURVE_LABELS = (("h = 0.001 s", "small"), ("h = 0.01 s", "large"), ("h = 0.01 s with feedback", "fed"))
KP, KV = 100.0, 20.0  # 1/s^2, 1/s: chosen here for the run with feedback
EXCAVATOR_STEP = 0.01
RESOLVED_STEP = 0.002  # s; halving it changes the result by less than 1 % of the travel
# Fraction of the travel, when the paper's step is halved; worst at the end of the motion, 10 s.
RESOLVE_TOLERANCE = 0.05
TIP = ("radius", "swing", "height", "bucket angle")  # coordinates of the tip in RESOLVED mode
UNITS = ("m", "deg", "m", "deg")


# -- open-loop inverse dynamics


def run_puma600() -> Result:
    """Run two steps and compare the errors of joint 6 with the thesis."""
    arm, path = puma600(), wong(6, PUMA_SECONDS)
    arm_simulator = open_loop.simulator(arm, path)
    at_h, at_tenth = (arm_simulator.run(PUMA_SECONDS, step=h, every=PUMA_STEP) for h in (PUMA_STEP, PUMA_STEP / 10))
    coarse, fine = ([np.degrees(e) for e in open_loop.tracking_errors(r, path)] for r in (at_h, at_tenth))
    rows = []
    for e, (name, (printed, unit)) in zip(coarse, PUMA_PRINTED.items(), strict=True):
        peak = open_loop.largest_magnitude(e[:, 5])
        rows.append(Row(f"joint 6, largest error of {name}", f"{printed:g} {unit}", peak, unit, is_near(peak, printed)))
    sizes = open_loop.error_growth(arm_simulator, path, PUMA_SECONDS)[1]
    worst = open_loop.largest_magnitude(coarse[0])
    order = float(np.log10(np.abs(coarse[0]).max() / np.abs(fine[0]).max()))  # the steps differ by a factor of ten
    rows += [
        Row("any joint, largest error of theta", "indistinguishable", worst, "deg", abs(worst) < 0.005 * 180),
        Row("joint 6, largest error of theta, h = 0.001 s", "", open_loop.largest_magnitude(fine[0][:, 5]), "deg"),
        Row("order of the error", "fourth-order", f"{order:.1f}", "", abs(order - 4.0) < 0.2),
        Row("growth factor of a small error in 10 s", "", float(sizes[-1])),
    ]
    captions = (
        "PUMA 600, all joints desired and joint 6 simulated (Wong's fig. 3.4)",
        "PUMA 600, torques from inverse dynamics (Wong's fig. 3.5)",
        "PUMA 600, errors of joint 6, RK4 at h = 0.01 s (Wong's fig. 3.6)",
    )
    torques = {f"joint{i + 1}": f"tq{i + 1}" for i in range(6)}
    return Result(tuple(rows), {"run": at_h}, joint_6_figures(at_h, path, coarse, "joint 6", torques, captions))


def joint_6_figures(
    r: Record, path: Path, errors_deg: Sequence[Array], label: str, torques: Mapping[str, str], captions: Sequence[str]
) -> dict[str, str]:
    """Draw the motion of joint 6, all torques, and the errors of joint 6; return SVG text by name.

    Parameters
    ----------
    r
        Recorded run.
    path
        Desired motion.
    errors_deg
        Desired minus actual positions, velocities and accelerations, degrees.
    label
        Label of the actual motion.
    torques
        Title of each torque, by joint.
    captions
        Titles of the three figures.
    """
    assert r.mechanism is not None
    names = ("theta [deg]", "dtheta [deg/s]", "ddtheta [deg/s^2]")
    wanted = [np.degrees(x[:, 5]) for x in open_loop.desired_motion(path, r.t)]
    actual = [np.degrees(x) for x in (r.q[:, 5], r.v[:, 5], r[f"{r.mechanism.columns[1][5]}.a"])]
    motion = [
        Panel(name, [Line("desired", r.t, a, wide=True), Line(label, r.t, b)])
        for name, a, b in zip(names, wanted, actual, strict=True)
    ]
    torque = [Panel(f"{x} [N m]", [Line("desired torque", r.t, r[f"{n}.tau"])]) for n, x in torques.items()]
    error = [Panel(name, [Line("desired - actual", r.t, e[:, 5])]) for name, e in zip(names, errors_deg, strict=True)]
    panels = {"motion": motion, "torque": torque, "error": error}
    return {key: figure(title, panels[key], 3) for key, title in zip(panels, captions, strict=True)}


def unbounded_path(t: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the path of eq 3.43 at the time `t`, continued beyond its end."""
    w = 2.0 * np.pi / TORSO_SECONDS
    q, v, a = (w * t - sin(w * t)) / 2.0, w * (1.0 - cos(w * t)) / 2.0, w * w * sin(w * t) / 2.0
    return [q] * 6, [v] * 6, [a] * 6


def run_torso() -> Result:
    """Run both steps, with and without feedback, and compare with the sentences of the thesis."""
    body, path = torso(), wong(6, TORSO_SECONDS)
    torso_simulator = open_loop.simulator(body, path)
    small, large = (
        torso_simulator.run(TORSO_SECONDS, step=h, every=TORSO_LARGE_STEP) for h in (TORSO_STEP, TORSO_LARGE_STEP)
    )
    with_feedback = open_loop.simulator(body, path, kp=KP, kv=KV).run(TORSO_SECONDS, step=TORSO_LARGE_STEP)
    extended = open_loop.simulator(body, unbounded_path).run(2 * TORSO_SECONDS, step=TORSO_STEP, every=TORSO_LARGE_STEP)
    errors_deg = {
        name: [np.degrees(e) for e in open_loop.tracking_errors(r, path)]
        for name, r in (("small", small), ("large", large), ("fed", with_feedback))
    }
    departed = np.abs(np.degrees(open_loop.desired_motion(unbounded_path, extended.t)[0] - extended.q)[:, 5]) > 1.0
    departure = float(extended.t[departed.argmax()])
    rates = np.linalg.eigvals(open_loop.path_jacobians(torso_simulator, path, np.linspace(0, TORSO_SECONDS, 101)))
    fastest = TORSO_LARGE_STEP * float(np.abs(rates).max())
    growth_curve = open_loop.error_growth(torso_simulator, path, TORSO_SECONDS)
    close, far, fed = (open_loop.largest_magnitude(errors_deg[name][0][:, 5]) for name in ("small", "large", "fed"))
    rows = (
        Row("joint 6, largest error of theta, h = 0.001 s", "simulated correctly", close, "deg", abs(close) < 1.0),
        Row("joint 6, largest error of theta, h = 0.01 s", "unstable, incorrect", far, "deg", abs(far) > 90.0),
        Row("joint 6 is off by 1 deg after, h = 0.001 s", "about 5 s", departure, "s", 4.0 < departure < 6.5),
        Row(f"fastest |lambda| h at h = 0.01 s (RK4: {RK4_LIMIT})", "too large", fastest, "", fastest > RK4_LIMIT),
        Row("growth factor of a small error in 5 s", "", float(growth_curve[1][-1])),
        Row("joint 6, largest error of theta, h = 0.01 s, with feedback", "", fed, "deg"),
    )
    records = {"run": small, "large-step": large, "feedback": with_feedback}
    return Result(rows, records, _torso_figures(small, errors_deg, growth_curve))


def _torso_figures(small: Record, errors_deg: Any, growth_curve: Any) -> dict[str, str]:
    t, captions = small.t, (
        "Torso, all joints desired and joint 6 simulated (Wong's fig. 3.8)",
        "Torso, torques from inverse dynamics (Wong's fig. 3.9)",
        "Torso, errors of joint 6, RK4 at h = 0.001 s (Wong's fig. 3.10)",
    )  # fmt: skip
    torques = {n: n for n in torso().columns[1]}
    path = wong(6, TORSO_SECONDS)
    figures = joint_6_figures(small, path, errors_deg["small"], "joint 6, h = 0.001 s", torques, captions)
    with np.errstate(divide="ignore"):
        sizes = [(n, np.log10(np.abs(np.radians(errors_deg[k][0])).max(axis=1))) for n, k in CURVE_LABELS]
    errors = [Line(name, t, np.where(y > -14, y, np.nan)) for name, y in sizes]
    panels = [Panel("log10 of the largest error [rad]", errors), open_loop.growth_panel(*growth_curve)]
    return figures | {"growth": figure("Torso, why a larger step fails", panels, 2)}


# -- excavator


def excavator_system(control: SpoolControl) -> System:
    """Return the excavator with hydraulics and `control`; spools, desired rates and tip coordinates are outputs."""
    drives, arm = spool_control.hydraulics(), spool_control.arm()
    outputs: dict[str, Any] = {}
    for i, (joint, spool) in enumerate(zip(JOINTS, spool_outputs(control, drives), strict=True)):
        outputs[f"{joint}.spool"] = spool
        outputs[f"{joint}.rate_d"] = lambda t, q, v, x, u, i=i: control.desired(t, x, u)[1][i]
    for i, name in enumerate(TIP):
        outputs[f"tip.{name}"] = lambda t, q, v, x, u, i=i: arm.forward(list(q))[i]
        outputs[f"tip.{name}_d"] = lambda t, q, v, x, u, i=i: arm.forward(control.desired(t, x, u)[0])[i]
    inputs = {} if control.profile is not None else dict.fromkeys(control.inputs, 0.0)  # sticks
    return system(excavator(), drives, control, inputs=inputs, outputs=outputs)


def simulate_mode(control: SpoolControl, step: float = EXCAVATOR_STEP) -> Record:
    """Simulate the excavator under `control` with the given `step`, in s."""
    simulator = Simulator(excavator_system(control), solver=Solver(resolve=RESOLVE_TOLERANCE))
    return simulator.run(spool_control.SECONDS, q0=spool_control.poses()[0], step=step, every=EXCAVATOR_STEP)


def run_excavator() -> Result:
    """Run both modes of the excavator and compare them with the sentences of the thesis."""
    joint, resolved = (
        simulate_mode(control) for control in (spool_control.joint_mode(), spool_control.resolved_mode())
    )
    finer = simulate_mode(spool_control.resolved_mode(), EXCAVATOR_STEP / 2)
    rows = (*_joint_rows(joint), *_resolved_rows(resolved))
    differences = np.degrees(np.abs(finer.q - resolved.q).max(axis=0))
    rows += (
        bound_row(
            "RESOLVED, h = 0.005 s instead of 0.01 s changes cab, boom, stick by", differences[:3].max(), 0.02, "deg"
        ),
        Row("and the bucket by", "", f"{differences[3]:.1g}", "deg"),
    )
    return Result(rows, {"joint": joint, "resolved": resolved}, _excavator_figures(joint, resolved))


def _tracking_error(r: Record, joint: str, t: float) -> float:
    """Return the desired minus the actual angle, in degrees."""
    k = round(t / EXCAVATOR_STEP)
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
        return float(r[name][round(t / EXCAVATOR_STEP)])

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


def _excavator_figures(joint: Record, resolved: Record) -> dict[str, str]:
    def angles(r: Record) -> list[Panel]:
        return [_tracking_panel(r, f"{j} [deg]", f"{j}_d", f"{j}.q", 180 / np.pi) for j in JOINTS]

    def spools(r: Record) -> list[Panel]:
        """Plot the voltage times the opening per volt, so that both curves are lengths."""
        panels = []
        for j in JOINTS:
            command = Line(f"{spool_control.OPENING:g} v", r.t, spool_control.OPENING * r[f"{j}.command"], dotted=True)
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
