"""PUMA 600 under open-loop inverse dynamics, and the tracking error of joint 6 (Wong 1991, section 3.5.1).

    theta_d = (w t - sin w t) / 2, w = 2 pi / 10 s, all six joints                                            3.43
    tau_d at t, t + h/2, t + h/2 and t + h, the stages of RK4                                                 3.44

The thesis reads the largest errors of joint 6 off figure 3.6; errors are desired minus actual values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bellcrank.control import wong
from bellcrank.papers import open_loop
from bellcrank.papers.open_loop import Array, Path
from bellcrank.papers.results import Result, Row, is_near
from bellcrank.record import Record
from bellcrank.view.curves import Line, Panel, figure
from bellcrank.zoo import puma600

SECONDS, STEP = 10.0, 0.01
PRINTED = {"theta": (-1e-4, "deg"), "dtheta": (-5e-5, "deg/s"), "ddtheta": (6e-5, "deg/s^2")}


def run() -> Result:
    """Run two steps and compare the errors of joint 6 with the thesis."""
    arm, path = puma600(), wong(6, SECONDS)
    arm_simulator = open_loop.simulator(arm, path)
    at_h, at_tenth = (arm_simulator.run(SECONDS, step=h, every=STEP) for h in (STEP, STEP / 10))
    coarse, fine = ([np.degrees(e) for e in open_loop.tracking_errors(r, path)] for r in (at_h, at_tenth))
    rows = []
    for e, (name, (printed, unit)) in zip(coarse, PRINTED.items(), strict=True):
        peak = open_loop.largest_magnitude(e[:, 5])
        rows.append(Row(f"joint 6, largest error of {name}", f"{printed:g} {unit}", peak, unit, is_near(peak, printed)))
    sizes = open_loop.error_growth(arm_simulator, path, SECONDS)[1]
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
