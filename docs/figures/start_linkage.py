"""Draw docs/figures/start_linkage.svg: the four-bar of docs/start/linkage.md in five positions, and a run of it.

Command: `python docs/figures/start_linkage.py`
"""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

TIMES = (0.0, 0.3, 0.6, 0.9, 1.2)  # s


def fourbar() -> bc.Mechanism:
    b = bc.Builder("fourbar", gravity=(0, -9.81, 0))
    b.body("crank", mass=1, com=(0, 0.5, 0), inertia=(0.0833, 0, 0.0833))
    b.body("coupler", mass=2, com=(1, 1, 0), inertia=(0, 0.667, 0.667))
    b.body("rocker", mass=1, com=(2, 0.5, 0), inertia=(0.0833, 0, 0.0833))
    b.joint("motor", "revolute", "ground", "crank", axis=(0, 0, 1))
    b.joint("elbow", "revolute", "crank", "coupler", point=(0, 1, 0), axis=(0, 0, 1))
    b.joint("wrist", "revolute", "coupler", "rocker", point=(2, 1, 0), axis=(0, 0, 1))
    b.joint("pivot", "revolute", "rocker", "ground", point=(2, 0, 0), axis=(0, 0, 1))
    return b.build()


def main() -> None:
    linkage = fourbar()
    q, _ = linkage.assemble({"motor": 0.4}, fixed=["motor"])
    run = bc.simulate(linkage, 5.0, q0=q, every=0.025)
    figure = Figure(figsize=(7.2, 2.6))
    left, right = figure.subplots(1, 2)
    for k, time in enumerate(TIMES):
        angle = run.q[int(np.argmin(np.abs(run.t - time))), 0]
        elbow = np.array([-np.sin(angle), np.cos(angle)])  # the crank is 1 m long and points along y at the angle 0
        wrist = elbow + np.array([2.0, 0.0])  # the four-bar is a parallelogram
        pins = np.array([[0.0, 0.0], elbow, wrist, [2.0, 0.0]])
        left.plot(*pins.T, "o-", color=colormaps["viridis"](k / len(TIMES)), markersize=3, label=f"{time:g} s")
    left.set(xlabel="x [m]", ylabel="y [m]", title="positions", aspect="equal", xlim=(-1.3, 4.4))
    left.legend(fontsize=7)
    right.plot(run.t, run["motor.q"])
    right.set(xlabel="time [s]", ylabel="motor.q [rad]", title="angle of the motor")
    figure.tight_layout()
    write(figure, "start_linkage")


if __name__ == "__main__":
    main()
