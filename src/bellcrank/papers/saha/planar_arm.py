"""Planar arm of three links against its explicit equations of motion (Saha 2001, section 4).

"The results in both the cases, i.e., free-fall and forced, exactly match." The forced run follows eq 18 with T = 10 s.
The paper prints no numbers for this arm; its lengths and masses are chosen here. On eq 18 the arm passes its upright
position, and a small error grows so much in 10 s that two programs agree to the end only if they round identically;
the two programs compared here share no code.
"""

from __future__ import annotations

import numpy as np

from bellcrank.control import wong
from bellcrank.model import Mechanism
from bellcrank.papers import Result, Row, bound_row
from bellcrank.papers.open_loop import Array, error_growth, simulator
from bellcrank.papers.saha import explicit_3r
from bellcrank.sim.run.simulator import Simulator
from bellcrank.view.curves import Line, Panel, figure
from bellcrank.zoo import planar3r

SECONDS, STEP, EVERY = 10.0, 0.002, 5
MATCH = "exactly match"  # the paper's words
COMPARABLE_SECONDS = 7.0  # s; later the forced run depends on the rounding of the computer


def _path_torque(t: float) -> Array:
    q, v, a = (np.array(x, float) for x in wong(3, SECONDS)(t))
    return explicit_3r.torque(q, v, a)


def _difference_of_accelerations(arm: Mechanism) -> float:
    q, v, tau = arm.random(seed=18, batch=1000)
    ours = arm.forward_dynamics(q, v, tau)
    theirs = np.array([explicit_3r.acceleration(*state) for state in zip(q, v, tau, strict=True)])
    return float((np.abs(ours - theirs) / (1.0 + np.abs(theirs))).max())


def run() -> Result:
    """Compare free fall and the forced run with the explicit equations."""
    arm, path = planar3r(), wong(3, SECONDS)
    forced_by = simulator(arm, path)
    free = Simulator(arm).run(SECONDS, step=STEP, every=STEP * EVERY)
    forced = forced_by.run(SECONDS, step=STEP, every=STEP * EVERY)
    explicit = {
        "free": explicit_3r.integrate(lambda t: np.zeros(3), SECONDS, STEP, EVERY),
        "forced": explicit_3r.integrate(_path_torque, SECONDS, STEP, EVERY),
    }
    differences = {name: np.abs(r.q - explicit[name]).max(axis=1) for name, r in (("free", free), ("forced", forced))}
    largest_difference = float(differences["free"].max())
    agreement_time = float(forced.t[(differences["forced"] > 0.01).argmax()])
    sizes = error_growth(forced_by, path, SECONDS)[1]
    a = _difference_of_accelerations(arm)
    rows = (
        bound_row("accelerations of 1000 random states, relative difference", a, 1e-12, "", MATCH),
        bound_row("free fall, largest difference from the explicit equations", largest_difference, 1e-8, "rad", MATCH),
        Row(
            "forced, both are within 0.01 rad until",
            MATCH,
            "7 s or later" if agreement_time > 7.0 else f"{agreement_time:g} s",
            "",
            agreement_time > 7.0,
        ),
        Row("growth factor of a small error in the forced run", "", float(sizes.max())),
        Row("free fall: energy error, relative to the largest kinetic energy", "", float(free.residuals()["energy"])),
    )
    panels = []
    for name, r in (("free", free), ("forced", forced)):
        for i in range(3):
            k = round((SECONDS if name == "free" else COMPARABLE_SECONDS) / STEP / EVERY) + 1
            t, q, theirs = r.t[:k], r.q[:k, i], explicit[name][:k, i]
            lines = [Line("explicit equations", t, theirs, wide=True), Line("bellcrank", t, q)]
            panels.append(Panel(f"{name}, theta {i + 1} [rad]", lines))
    motion_figure = figure("Planar arm of three links, from rest (Saha's section 4; he shows no plots)", panels, 3)
    return Result(rows, {"free-fall": free, "forced": forced}, {"motion": motion_figure})
