"""Draw the crane of docs/reactions.md and the forces in its joints: `python docs/figures/joint_forces.py`."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc


def crane() -> bc.Mechanism:
    """Return the crane of the page."""
    b = bc.Builder("crane")
    b.body("jib", mass=400.0, com=(3, 0, 0), inertia=(20, 1200, 1200))
    b.joint("luff", "revolute", "ground", "jib", axis=(0, -1, 0), stiffness=60e3, damping=4e3)
    b.body("load", mass=500.0, com=(6, 0, -4), inertia=(10, 10, 10))
    b.joint("hook", "revolute", "jib", "load", point=(6, 0, 0), axis=(0, 1, 0))
    return b.build()


def main() -> None:
    """Draw the crane with its largest force at the hook, and both forces over time."""
    m = crane()
    run = bc.simulate(m, seconds=6.0, q0={"hook": 0.6}, every=0.01)
    forces = m.reactions(run.q, run.v, np.zeros_like(run.v))
    size = np.linalg.norm(forces[:, :, :3], axis=-1)
    worst = int(size[:, 1].argmax())
    figure = Figure(figsize=(8.4, 3.4))
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1, 1.7]})
    for row, colour in ((0, "0.75"), (worst, "C0")):
        hook = m.pose(run.q[row], "load")
        load = hook[:3, 3] + hook[:3, :3] @ [0, 0, -4]
        line = np.array([[0, 0, 0], hook[:3, 3], load])
        left.plot(line[:2, 0], line[:2, 2], color=colour, lw=4, solid_capstyle="round")
        left.plot(line[1:, 0], line[1:, 2], color=colour, lw=1.2)
        left.plot(*line[2, [0, 2]], "s", color=colour, ms=9)
        left.plot(line[:2, 0], line[:2, 2], "o", mfc="white", mec="black", ms=5)
    tip = m.pose(run.q[worst], "load")[[0, 2], 3]
    arrow = 2.5e-4 * forces[worst, 1, [0, 2]]
    left.annotate("", tip + arrow, tip, arrowprops={"arrowstyle": "-|>", "color": "C3", "lw": 1.8})
    left.text(*(tip + arrow + [0.15, 0.0]), f"{size[worst, 1] / 1e3:.1f} kN", color="C3")
    left.set_aspect("equal")
    left.set_xlim(-0.5, 7.5)
    left.set_ylim(-10.0, 1.0)
    left.set_xlabel("x, m")
    left.set_ylabel("z, m")
    left.set_title(f"grey: start; blue: t = {run.t[worst]:.2f} s", fontsize=9)
    for k, name in enumerate(("luff", "hook")):
        right.plot(run.t, size[:, k] / 1e3, label=f"{name}: force on {m.bodies[k].name}")
        case = int(size[:, k].argmax())
        right.plot(run.t[case], size[case, k] / 1e3, "o", color=f"C{k}")
    right.axhline(500 * 9.81 / 1e3, color="black", lw=0.8, ls="--", label="weight of the load")
    right.set_xlabel("t, s")
    right.set_ylabel("kN")
    right.set_ylim(0, None)
    right.legend(fontsize=8)
    figure.tight_layout()
    write(figure, "joint_forces")


if __name__ == "__main__":
    main()
