"""Draw docs/figures/contact.svg: bounces by restitution, and friction on a slope with and without bristles.

Command: `python docs/figures/contact.py`
"""

from __future__ import annotations

from math import atan, cos, sin

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc
from bellcrank.forces import Contact, Plane, Sphere, damping_of

SLOPE = 0.3  # rise over run; friction is 0.6
SPEED = (2 * 9.81 * 0.5) ** 0.5  # m/s, after a fall of 0.5 m


def bounce(restitution: float) -> bc.Record:
    b = bc.Builder("ball")
    b.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    b.joint("height", "prismatic", "ground", "ball", axis=(0, 0, 1))
    damping = damping_of(restitution, SPEED)
    floor = Contact("floor", "ground", "ball", Plane(), Sphere(0.1), stiffness=2e5, damping=damping)
    return bc.simulate(bc.system(b.build(), elements=[floor]), 1.5, q0=[0.6], step=2e-5, every=0.01)


def slope(**friction: float) -> bc.Record:
    """Return a run of a block of 1 kg that slides along a slope: a slide with a contact at rest depth."""
    angle = atan(SLOPE)
    g = 9.81
    b = bc.Builder("block", gravity=(g * sin(angle), 0, -g * cos(angle)))
    b.body("carrier", mass=1e-3, inertia=(1e-6, 1e-6, 1e-6))
    b.body("block", mass=1.0, inertia=(0.004, 0.004, 0.004))
    b.joint("along", "prismatic", "ground", "carrier", axis=(1, 0, 0))
    b.joint("normal", "prismatic", "carrier", "block", axis=(0, 0, 1))
    floor = Contact(
        "floor", "ground", "block", Plane(), Sphere(0.1), stiffness=2e5, damping=1.0, friction=0.6, **friction
    )
    depth = 1.001 * g * cos(angle) / 2e5
    return bc.simulate(bc.system(b.build(), elements=[floor]), 2.0, q0=[0.0, 0.1 - depth], step=2e-4, every=0.02)


def main() -> None:
    figure = Figure(figsize=(7.2, 2.6))
    left, right = figure.subplots(1, 2)
    for restitution in (0.8, 0.5, 0.2):
        run = bounce(restitution)
        left.plot(run.t, run["height.q"] - 0.1, label=f"{restitution:g}")
    left.set(xlabel="time [s]", ylabel="gap [m]", title="a ball falls by 0.5 m")
    left.legend(title="restitution at impact", fontsize=7, title_fontsize=7)
    for label, friction in (
        ("slow = 10 mm/s", {"slow": 1e-2}),
        ("slow = 1 mm/s", {}),
        ("bristles = 5e3", {"bristles": 5e3}),
    ):
        run = slope(**friction)
        right.plot(run.t, 1e3 * np.asarray(run["along.q"]), label=label)
    right.set(xlabel="time [s]", ylabel="way [mm]", title=f"a block on a slope of {SLOPE:g}, friction 0.6")
    right.legend(fontsize=7)
    figure.tight_layout()
    write(figure, "contact")


if __name__ == "__main__":
    main()
