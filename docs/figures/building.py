"""Draw docs/figures/building.svg: the crane of docs/building.md, and the swing of its load when the trolley travels.

Command: `python docs/figures/building.py`
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

PULL, SECONDS = 100.0, 2.0  # N, s


def crane() -> bc.Mechanism:
    b = bc.Builder("crane")
    b.body("jib", mass=400.0, com=(3, 0, 0), inertia=(20, 1200, 1200))
    b.joint("slewing", "revolute", "ground", "jib", axis=(0, 0, 1), damping=50.0)
    b.body("trolley", mass=80.0, com=(1, 0, 0))
    b.joint("travel", "prismatic", "jib", "trolley", point=(1, 0, 0), axis=(1, 0, 0))
    b.body("load", mass=500.0, com=(1, 0, -4))
    b.joint("rope", "universal", "trolley", "load", point=(1, 0, 0), axis=(1, 0, 0), second_axis=(0, 1, 0))
    b.frame("hook", "load", point=(1, 0, -4))
    return b.build()


def pull(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[Any]:
    return [0.0, bc.where(t < SECONDS, PULL, 0.0), 0.0, 0.0]


def sketch(axes: Any) -> None:
    """Draw the parts in the zero configuration, from the side."""
    axes.plot([0, 6], [0, 0], color="#b07a10", lw=5, solid_capstyle="butt", label="jib")
    axes.plot([1], [0], "s", color="#2a6fb0", markersize=9, label="trolley")
    axes.plot([1, 1], [0, -4], color="#555", lw=1, label="rope")
    axes.plot([1], [-4], "o", color="#a33", markersize=12, label="load")
    axes.plot([0], [0], "o", color="#222", markersize=6, label="joint slewing")
    axes.plot([0, 0], [0, -5], color="#999", lw=3, zorder=0)
    axes.set(xlabel="x [m]", ylabel="z [m]", title="zero configuration", aspect="equal", xlim=(-1, 7), ylim=(-5, 1))
    axes.legend(loc="lower right", fontsize=7)


def main() -> None:
    m = crane()
    run = bc.simulate(bc.system(m, control=pull), 12.0, every=0.05)
    figure = Figure(figsize=(7.2, 2.9))
    left, right = figure.subplots(1, 2)
    sketch(left)
    right.plot(run.t, m.pose(run.q, "trolley")[:, 0, 3], label="trolley")
    right.plot(run.t, m.pose(run.q, "hook")[:, 0, 3], label="hook")
    right.set(xlabel="time [s]", ylabel="x [m]", title="the trolley travels, the load swings")
    right.legend()
    figure.tight_layout()
    write(figure, "building")


if __name__ == "__main__":
    main()
