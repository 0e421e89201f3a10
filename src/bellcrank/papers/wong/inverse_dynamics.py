"""PUMA 600 and torso under open-loop inverse dynamics, RK4 (Wong 1991, sections 3.5.1 and 3.5.2).

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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.control import wong
from bellcrank.papers import Result, Row, is_near, open_loop
from bellcrank.papers.open_loop import Array, Path
from bellcrank.record import Record
from bellcrank.scalar import cos, sin
from bellcrank.view.curves import Line, Panel, figure
from bellcrank.zoo import puma600, torso

PUMA_SECONDS, PUMA_STEP = 10.0, 0.01
PUMA_PRINTED = {"theta": (-1e-4, "deg"), "dtheta": (-5e-5, "deg/s"), "ddtheta": (6e-5, "deg/s^2")}
TORSO_SECONDS, TORSO_STEP, TORSO_LARGE_STEP = 5.0, 0.001, 0.01
RK4_LIMIT = 2.785  # largest |lambda h| on the negative axis; 2.83 on the imaginary one
CURVE_LABELS = (("h = 0.001 s", "small"), ("h = 0.01 s", "large"), ("h = 0.01 s with feedback", "fed"))
KP, KV = 100.0, 20.0  # 1/s^2, 1/s: chosen here for the run with feedback


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
