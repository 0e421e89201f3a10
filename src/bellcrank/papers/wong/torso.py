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
from bellcrank.papers.open_loop import desired, errors, growth, jacobians, largest, simulator
from bellcrank.papers.results import Result, Row
from bellcrank.record import Record
from bellcrank.scalar import cos, sin
from bellcrank.view.curves import Line, Panel, figure
from bellcrank.zoo import torso

SECONDS, STEP, LARGE = 5.0, 0.001, 0.01
RK4_LIMIT = 2.785  # largest |lambda h| on the negative axis; 2.83 on the imaginary one
KP, KV = 100.0, 20.0  # 1/s^2, 1/s: chosen here for the run with feedback


def endless(t: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the path of eq 3.43 at the time `t`, continued beyond its end."""
    w = 2.0 * np.pi / SECONDS
    q, v, a = (w * t - sin(w * t)) / 2.0, w * (1.0 - cos(w * t)) / 2.0, w * w * sin(w * t) / 2.0
    return [q] * 6, [v] * 6, [a] * 6


def run() -> Result:
    """Run both steps, with and without feedback, and compare with the sentences of the thesis."""
    body, path = torso(), wong(6, SECONDS)
    made = simulator(body, path)
    small, large = (made.run(SECONDS, step=h, every=LARGE) for h in (STEP, LARGE))
    fed = simulator(body, path, kp=KP, kv=KV).run(SECONDS, step=LARGE)
    longer = simulator(body, endless).run(2 * SECONDS, step=STEP, every=LARGE)
    off = {
        name: [np.degrees(e) for e in errors(r, path)] for name, r in (("small", small), ("large", large), ("fed", fed))
    }
    later = np.abs(np.degrees(desired(endless, longer.t)[0] - longer.q)[:, 5]) > 1.0
    gone = float(longer.t[later.argmax()])
    rates = np.linalg.eigvals(jacobians(made, path, np.linspace(0, SECONDS, 101)))
    fast = LARGE * float(np.abs(rates).max())
    grown = growth(made, path, SECONDS)
    close, far = largest(off["small"][0][:, 5]), largest(off["large"][0][:, 5])
    rows = (
        Row("joint 6, largest error of theta, h = 0.001 s", "simulated correctly", close, "deg", abs(close) < 1.0),
        Row("joint 6, largest error of theta, h = 0.01 s", "unstable, incorrect", far, "deg", abs(far) > 90.0),
        Row("joint 6 is off by 1 deg after, h = 0.001 s", "about 5 s", gone, "s", 4.0 < gone < 6.5),
        Row(f"fastest |lambda| h at h = 0.01 s (RK4: {RK4_LIMIT})", "too large", fast, "", fast > RK4_LIMIT),
        Row("what a small error grows by in 5 s", "", float(grown[1][-1])),
        Row("joint 6, largest error of theta, h = 0.01 s, with feedback", "", largest(off["fed"][0][:, 5]), "deg"),
    )
    return Result(rows, {"run": small, "large-step": large, "feedback": fed}, _figures(small, large, off, grown))


def _figures(small: Record, large: Record, off: Any, grown: Any) -> dict[str, str]:
    t, names = small.t, ("theta [deg]", "dtheta [deg/s]", "ddtheta [deg/s^2]")
    wanted = [np.degrees(x[:, 5]) for x in desired(wong(6, SECONDS), t)]
    joint = torso().columns[1][5]
    got = [np.degrees(x) for x in (small.q[:, 5], small.v[:, 5], small[f"{joint}.a"])]
    motion = [
        Panel(name, [Line("desired", t, a, wide=True), Line("joint 6, h = 0.001 s", t, b)])
        for name, a, b in zip(names, wanted, got, strict=True)
    ]
    torque = [Panel(f"{n} [N m]", [Line("desired torque", t, small[f"{n}.tau"])]) for n in torso().columns[1]]
    error = [Panel(n, [Line("desired - actual", t, e[:, 5])]) for n, e in zip(names, off["small"], strict=True)]
    with np.errstate(divide="ignore"):
        sizes = [(n, np.log10(np.abs(np.radians(off[k][0])).max(axis=1))) for n, k in LABELS]
    each = [Line(name, t, np.where(y > -14, y, np.nan)) for name, y in sizes]
    why = [Panel("log10 of the largest error [rad]", each)]
    why.append(Panel("log10 of what a small error has grown by", [Line("growth |Phi|", grown[0], np.log10(grown[1]))]))
    return {
        "motion": figure("Torso, all joints desired and joint 6 simulated (Wong's fig. 3.8)", motion, 3),
        "torque": figure("Torso, torques from inverse dynamics (Wong's fig. 3.9)", torque, 3),
        "error": figure("Torso, errors of joint 6, RK4 at h = 0.001 s (Wong's fig. 3.10)", error, 3),
        "growth": figure("Torso, why a larger step fails", why, 2),
    }


LABELS = (("h = 0.001 s", "small"), ("h = 0.01 s", "large"), ("h = 0.01 s with feedback", "fed"))
