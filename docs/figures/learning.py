"""Draw docs/figures/learning.svg: cart-poles in a stepper, with and without a controller, until their ends.

Command: `python docs/figures/learning.py`
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

RUNS, ACTIONS, EVERY, SHOWN = 1000, 75, 0.02, 10
COLOURS = {"no push": "C3", "push = 4 angle + rate": "C0"}


def stepper() -> bc.Stepper:
    b = bc.Builder("cart_pole")
    b.body("cart", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.body("pole", mass=0.1, com=(0, 0, 0.5), inertia=(0.01, 0.01, 0.001))
    b.joint("slide", "prismatic", "ground", "cart", axis=(1, 0, 0))
    b.joint("hinge", "revolute", "cart", "pole", axis=(0, 1, 0))
    plant = bc.system(b.build(), control=lambda t, q, v, x, u: {"slide": 10.0 * u["push"]}, inputs=["push"])
    return bc.stepper(
        plant,
        batch=RUNS,
        every=EVERY,
        step=0.005,
        ends=lambda t, q, v, x, u: bc.fabs(q["hinge"]) > 0.2,
        start=lambda random: {"hinge.q": random.uniform(-0.05, 0.05)},
        seed=1,
    )


def main() -> None:
    env = stepper()
    figure = Figure(figsize=(7.2, 2.6))
    left, right = figure.subplots(1, 2)
    t = EVERY * np.arange(ACTIONS + 1)
    for label, colour in COLOURS.items():
        y = env.reset(seed=1)
        angles, live = [y[:, 1].copy()], [1.0]
        for _ in range(ACTIONS):
            if live[-1] > 0.0:
                push = np.clip(4.0 * y[:, 1:2] + y[:, 3:4], -1.0, 1.0) if colour == "C0" else np.zeros((RUNS, 1))
                y = env.step(push)
            angles.append(np.where(env.ended, np.nan, y[:, 1]))
            live.append(float(np.mean(np.asarray(env.ended) == 0)))
        left.plot(t, np.array(angles)[:, :SHOWN], color=colour, linewidth=0.6)
        right.plot(t, 100.0 * np.array(live), color=colour, label=label)
    left.axhline(0.2, color="0.5", linestyle="--", linewidth=0.8)
    left.axhline(-0.2, color="0.5", linestyle="--", linewidth=0.8)
    left.set(xlabel="time [s]", ylabel="hinge.q [rad]", title=f"{SHOWN} of {RUNS} runs")
    right.set(xlabel="time [s]", ylabel="runs that go on [%]", title="all runs")
    right.legend(fontsize=7)
    figure.tight_layout()
    write(figure, "learning")


if __name__ == "__main__":
    main()
