"""Draw docs/figures/elements.svg: laws of force elements, and a gate on a chain between its stops.

Command: `python docs/figures/elements.py`
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc
from bellcrank.forces import Cable, EndStop, damping_of, joint_stops


def gate() -> bc.Record:
    b = bc.Builder("gate")
    b.body("gate", mass=20.0, com=(0.5, 0, 0), inertia=(0.1, 1.7, 1.7))
    b.joint("hinge", "revolute", "ground", "gate", axis=(0, 1, 0), lower=-0.1, upper=1.2)
    b.frame("post", "ground", point=(0, 0, 1.0))
    b.frame("edge", "gate", point=(1, 0, 0))
    built = b.build()
    chain = Cable("chain", "post", "edge", length=1.8, stiffness=4e4, damping=200.0)
    stops = joint_stops(built, stiffness=5e4, restitution=0.3, speed=2.0)
    return bc.simulate(bc.system(built, elements=[chain, *stops]), 2.0, step=5e-5, every=5e-3)


def impact(restitution: float) -> tuple[np.ndarray, np.ndarray]:
    """Return depth, m, and force, N, of a body of 1 kg that hits a stop with 2 m/s."""
    b = bc.Builder("slider", gravity=(0, 0, 0))
    b.body("mass", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.joint("x", "prismatic", "ground", "mass", axis=(1, 0, 0))
    damping = damping_of(restitution, 2.0) if restitution < 1.0 else 0.0
    stop = EndStop("stop", ("x",), upper=0.0, stiffness=1e5, damping=damping)
    run = bc.simulate(bc.system(b.build(), elements=[stop]), 0.02, v0=[2.0], step=1e-5, every=1e-4)
    inside = run["x.q"] >= 0.0
    return run["x.q"][inside], -run["stop.x"][inside]


def main() -> None:
    figure = Figure(figsize=(7.2, 2.6))
    left, right = figure.subplots(1, 2)
    for restitution in (1.0, 0.6, 0.3):
        depth, force = impact(restitution)
        left.plot(1e3 * depth, force, label=f"{restitution:g}")
    left.set(xlabel="depth [mm]", ylabel="force [N]", title="end stop: force over depth in one impact")
    left.legend(title="restitution", fontsize=7, title_fontsize=7)
    run = gate()
    right.plot(run.t, run["hinge.q"], label="angle [rad]")
    pull = np.hypot(run["chain.fx"], run["chain.fz"]) / 1e3
    right.plot(run.t, pull, label="chain force [kN]")
    right.set(xlabel="time [s]", title="a gate falls into its chain")
    right.legend(fontsize=7)
    figure.tight_layout()
    write(figure, "elements")


if __name__ == "__main__":
    main()
