"""Torso with head and arms under open-loop inverse dynamics, T = 5 s, h = 0.001 s (Wong 1991, section 3.5.2).

"Larger values caused instability due to numerical error accumulation", and even so instability occurred "when
simulating long periods of time (approximately 5 seconds)", because "the higher frequency dynamics are not adequately
modeled by the integrator". This experiment confirms the first two statements, but not the reason: the fastest rate of
the torso is far inside RK4's region of stability with either step. The arms are inverted pendulums without feedback:
any error grows by eleven powers of ten in 5 s. With feedback (computed torque) the large step suffices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.control import wong
from bellcrank.papers import open_loop
from bellcrank.papers.results import Result, Row
from bellcrank.papers.wong.puma600 import joint_6_figures
from bellcrank.record import Record
from bellcrank.scalar import cos, sin
from bellcrank.view.curves import Line, Panel, figure
from bellcrank.zoo import torso

SECONDS, STEP, LARGE_STEP = 5.0, 0.001, 0.01
RK4_LIMIT = 2.785  # largest |lambda h| on the negative axis; 2.83 on the imaginary one
KP, KV = 100.0, 20.0  # 1/s^2, 1/s: chosen here for the run with feedback


def unbounded_path(t: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the path of eq 3.43 at the time `t`, continued beyond its end."""
    w = 2.0 * np.pi / SECONDS
    q, v, a = (w * t - sin(w * t)) / 2.0, w * (1.0 - cos(w * t)) / 2.0, w * w * sin(w * t) / 2.0
    return [q] * 6, [v] * 6, [a] * 6


def run() -> Result:
    """Run both steps, with and without feedback, and compare with the sentences of the thesis."""
    body, path = torso(), wong(6, SECONDS)
    torso_simulator = open_loop.simulator(body, path)
    small, large = (torso_simulator.run(SECONDS, step=h, every=LARGE_STEP) for h in (STEP, LARGE_STEP))
    with_feedback = open_loop.simulator(body, path, kp=KP, kv=KV).run(SECONDS, step=LARGE_STEP)
    extended = open_loop.simulator(body, unbounded_path).run(2 * SECONDS, step=STEP, every=LARGE_STEP)
    errors_deg = {
        name: [np.degrees(e) for e in open_loop.tracking_errors(r, path)]
        for name, r in (("small", small), ("large", large), ("fed", with_feedback))
    }
    departed = np.abs(np.degrees(open_loop.desired_motion(unbounded_path, extended.t)[0] - extended.q)[:, 5]) > 1.0
    departure = float(extended.t[departed.argmax()])
    rates = np.linalg.eigvals(open_loop.path_jacobians(torso_simulator, path, np.linspace(0, SECONDS, 101)))
    fastest = LARGE_STEP * float(np.abs(rates).max())
    growth_curve = open_loop.error_growth(torso_simulator, path, SECONDS)
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
    return Result(rows, records, _figures(small, errors_deg, growth_curve))


def _figures(small: Record, errors_deg: Any, growth_curve: Any) -> dict[str, str]:
    t, captions = small.t, (
        "Torso, all joints desired and joint 6 simulated (Wong's fig. 3.8)",
        "Torso, torques from inverse dynamics (Wong's fig. 3.9)",
        "Torso, errors of joint 6, RK4 at h = 0.001 s (Wong's fig. 3.10)",
    )  # fmt: skip
    torques = {n: n for n in torso().columns[1]}
    path = wong(6, SECONDS)
    figures = joint_6_figures(small, path, errors_deg["small"], "joint 6, h = 0.001 s", torques, captions)
    with np.errstate(divide="ignore"):
        sizes = [(n, np.log10(np.abs(np.radians(errors_deg[k][0])).max(axis=1))) for n, k in CURVE_LABELS]
    errors = [Line(name, t, np.where(y > -14, y, np.nan)) for name, y in sizes]
    panels = [Panel("log10 of the largest error [rad]", errors), open_loop.growth_panel(*growth_curve)]
    return figures | {"growth": figure("Torso, why a larger step fails", panels, 2)}


CURVE_LABELS = (("h = 0.001 s", "small"), ("h = 0.01 s", "large"), ("h = 0.01 s with feedback", "fed"))
