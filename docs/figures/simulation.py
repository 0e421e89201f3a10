"""Draw docs/figures/simulation.svg: a ball that bounces at events, and a sweep over the damping of a pendulum.

Command: `python docs/figures/simulation.py`
"""

from __future__ import annotations

from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

DAMPING = (0.1, 0.5, 2.0, 8.0)  # N m s/rad


def bouncing() -> bc.Record:
    b = bc.Builder("ball")
    b.body("ball", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("height", "prismatic", "ground", "ball", axis=(0, 0, 1))
    bounce = bc.Event("bounce", lambda t, q, v, x, u: q["height"], "switch", -1, lambda t, q, v, x, u: {"v": -0.8 * v})
    return bc.simulate(b.build(), 2.0, q0=[1.0], integrator="dopri5", events=[bounce], every=0.01)


def sweep() -> bc.Record:
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=bc.parameter("damping", 0.5))
    return bc.simulate(b.build(), 8.0, q0=[1.0], every=0.04, parameters={"damping": list(DAMPING)})


def main() -> None:
    figure = Figure(figsize=(7.2, 2.6))
    left, right = figure.subplots(1, 2)
    run = bouncing()
    left.plot(run.t, run.q[:, 0])
    for event in run.provenance["events"]:
        left.plot(event["time"], 0.0, "k^", markersize=5)
    left.set(xlabel="time [s]", ylabel="height [m]", title="events: a ball that bounces")
    runs = sweep()
    for damping, t, q in zip(DAMPING, runs.t, runs.q[..., 0], strict=True):
        right.plot(t, q, label=f"{damping:g}")
    right.set(xlabel="time [s]", ylabel="angle [rad]", title="one batch: four values of a parameter")
    right.set_ylim(-1.1, 1.9)
    right.legend(title="damping [N m s/rad]", fontsize=7, title_fontsize=7, ncols=4)
    figure.tight_layout()
    write(figure, "simulation")


if __name__ == "__main__":
    main()
