"""PUMA 600 under open-loop inverse dynamics, and the tracking error of joint 6 (Wong 1991, section 3.5.1).

    theta_d = (w t - sin w t) / 2, w = 2 pi / 10 s, all six joints                                            3.43
    tau_d at t, t + h/2, t + h/2 and t + h, the stages of RK4                                                 3.44

The thesis reads the largest errors of joint 6 off figure 3.6; errors are desired minus actual values.
"""

from __future__ import annotations

import numpy as np

from bellcrank.control import wong
from bellcrank.papers.open_loop import (
    Array,
    desired_motion,
    error_growth,
    largest_magnitude,
    simulator,
    tracking_errors,
)
from bellcrank.papers.results import Result, Row, is_near
from bellcrank.record import Record
from bellcrank.view.curves import Line, Panel, figure
from bellcrank.zoo import puma600

SECONDS, STEP = 10.0, 0.01
PRINTED = {"theta": (-1e-4, "deg"), "dtheta": (-5e-5, "deg/s"), "ddtheta": (6e-5, "deg/s^2")}


def run() -> Result:
    """Run two steps and compare the errors of joint 6 with the thesis."""
    arm, path = puma600(), wong(6, SECONDS)
    arm_simulator = simulator(arm, path)
    at_h, at_tenth = (arm_simulator.run(SECONDS, step=h, every=STEP) for h in (STEP, STEP / 10))
    coarse, fine = ([np.degrees(e) for e in tracking_errors(r, path)] for r in (at_h, at_tenth))
    rows = []
    for e, (name, (printed, unit)) in zip(coarse, PRINTED.items(), strict=True):
        peak = largest_magnitude(e[:, 5])
        rows.append(Row(f"joint 6, largest error of {name}", f"{printed:g} {unit}", peak, unit, is_near(peak, printed)))
    largest_error = largest_magnitude(coarse[0])
    order = float(np.log10(np.abs(coarse[0]).max() / np.abs(fine[0]).max()))  # the steps differ by a factor of ten
    rows += [
        Row(
            "any joint, largest error of theta",
            "indistinguishable",
            largest_error,
            "deg",
            abs(largest_error) < 0.005 * 180,
        ),
        Row("joint 6, largest error of theta, h = 0.001 s", "", largest_magnitude(fine[0][:, 5]), "deg"),
        Row("order of the error", "fourth-order", f"{order:.1f}", "", abs(order - 4.0) < 0.2),
        Row("growth factor of a small error in 10 s", "", float(error_growth(arm_simulator, path, SECONDS)[1][-1])),
    ]
    return Result(tuple(rows), {"run": at_h}, _figures(at_h, coarse))


def _figures(r: Record, errors_deg: list[Array]) -> dict[str, str]:
    t, path = r.t, wong(6, SECONDS)
    wanted = [np.degrees(x[:, 5]) for x in desired_motion(path, t)]
    actual = [np.degrees(x) for x in (r.q[:, 5], r.v[:, 5], r["joint6.a"])]
    names = ("theta [deg]", "dtheta [deg/s]", "ddtheta [deg/s^2]")
    motion = [
        Panel(name, [Line("desired", t, a, wide=True), Line("joint 6", t, b)])
        for name, a, b in zip(names, wanted, actual, strict=True)
    ]
    torque = [Panel(f"tq{i + 1} [N m]", [Line("desired torque", t, r[f"joint{i + 1}.tau"])]) for i in range(6)]
    error = [Panel(name, [Line("desired - actual", t, e[:, 5])]) for name, e in zip(names, errors_deg, strict=True)]
    return {
        "motion": figure("PUMA 600, all joints desired and joint 6 simulated (Wong's fig. 3.4)", motion, 3),
        "torque": figure("PUMA 600, torques from inverse dynamics (Wong's fig. 3.5)", torque, 3),
        "error": figure("PUMA 600, errors of joint 6, RK4 at h = 0.01 s (Wong's fig. 3.6)", error, 3),
    }
