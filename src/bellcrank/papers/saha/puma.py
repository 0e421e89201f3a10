"""PUMA robot in free fall and driven along eq 18 from 0 to pi (Saha 2001, section 4).

Between 3 and 7 s errors stop growing, at a factor of about ten thousand, because the arm hangs down during that time.
Therefore the time at which the arm leaves its path depends strongly on the size of the first errors: with errors ten
times larger it leaves before the pause, with errors ten times smaller well after it. No printed number explains the
difference from the paper.
"""

from __future__ import annotations

from math import pi

import numpy as np

from bellcrank.papers.results import Result, Row
from bellcrank.papers.saha.arm_experiment import ArmExperiment, figures
from bellcrank.zoo import puma_saha


def run() -> Result:
    """Run free fall and the forced motion, and compare them with the paper."""
    arm = ArmExperiment(puma_saha(), (0.0,) * 6, (pi,) * 6)
    free = arm.free_fall()
    theta_2 = free["joint2.q"]
    t, sizes = arm.growth
    rows = (
        Row("free fall: theta_2 at 0.5 s", "positive", float(theta_2[50]), "rad", bool((theta_2[1:51] > 0.0).all())),
        Row("free fall: energy error, relative to the largest kinetic energy", "", float(free.residuals()["energy"])),
        *arm.departure_rows(6.0, 0.5),
        *(Row(f"growth factor of a small error in {s} s", "", float(np.interp(s, t, sizes))) for s in (3, 6, 10)),
    )
    records = {"free-fall": free, "rkf45": arm.forced("rkf45"), "abm4": arm.forced("abm4")}
    return Result(rows, records, figures(arm, free))
