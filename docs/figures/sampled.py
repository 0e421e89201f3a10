"""Draw docs/figures/sampled.svg: a sampled controller's output as a staircase, with its delay and quantum.

Command: `python docs/figures/sampled.py`
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

EVERY, DELAY, QUANTUM = 0.02, 0.02, 0.25  # s, s, N m
TARGET = 0.5  # rad


def joint() -> bc.Mechanism:
    b = bc.Builder("joint", gravity=(0, 0, 0))
    b.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "arm", axis=(0, 1, 0))
    return b.build()


def main() -> None:
    def law(t, q, v, x, u):  # type: ignore[no-untyped-def]
        return {"hinge": 10.0 * (TARGET - q["hinge"]) - 1.6 * v["hinge"]}

    sampled = bc.Sampled(law, every=EVERY, delay=DELAY, quantum=QUANTUM)
    runs = {
        "continuous": bc.simulate(bc.system(joint(), control=law), 1.0, step=1e-3),
        "sampled": bc.simulate(bc.system(joint(), control=sampled), 1.0, step=1e-3),
    }
    figure = Figure(figsize=(7.2, 2.6))
    left, right = figure.subplots(1, 2)
    for name, run in runs.items():
        t = np.asarray(run.t)
        if name == "sampled":
            held = run["hinge.held"]
            edges = np.concatenate([[0], np.flatnonzero(np.diff(held)) + 1, [len(t) - 1]])
            left.step(t[edges], held[edges], where="post", label=name)
        else:
            left.plot(t[::5], run["hinge.tau"][::5], label=name)
        right.plot(t[::5], run["hinge.q"][::5], label=name)
    left.set(xlabel="time [s]", ylabel="torque [N m]", title="command", xlim=(0, 0.6))
    right.set(xlabel="time [s]", ylabel="angle [rad]", title="motion")
    left.legend(fontsize=7)
    right.legend(fontsize=7)
    figure.tight_layout()
    write(figure, "sampled")


if __name__ == "__main__":
    main()
