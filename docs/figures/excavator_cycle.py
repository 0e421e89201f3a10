"""Draw docs/figures/excavator_cycle.svg: one dig-swing-dump cycle of docs/excavator.md with its loads and pressures.

Command: `python docs/figures/excavator_cycle.py`
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc
from bellcrank.excavators.geometry import CYCLE, CYLINDERS
from bellcrank.excavators.linkage_system import parts

SECONDS = 30.0  # length of the cycle
DRAWN = {4.0: "C0", 9.0: "C2", 16.0: "0.3"}  # time of a drawn arm in s, and its colour


def draw_arm(axes: Any, m: bc.Mechanism, q: np.ndarray, colour: str) -> None:
    """Draw boom, stick, bucket and cylinders of `m` at `q`, in the plane of the arm."""
    q = q.copy()
    q[0] = 0.0
    frames = ("boom", "stick", "bucket", "tip", *(f"{n}_{end}" for n in CYLINDERS for end in ("barrel", "eye.b")))
    at = {name: m.pose(q, name)[[0, 2], 3] for name in frames}
    for name in CYLINDERS:
        axes.plot(*np.transpose([at[f"{name}_barrel"], at[f"{name}_eye.b"]]), color=colour, lw=1.0)
    boom = [at["boom"], at["boom_eye.b"], at["stick_barrel"], at["stick"]]
    stick = [at["stick_eye.b"], at["bucket_barrel"], at["bucket"], at["stick"], at["stick_eye.b"]]
    axes.plot(*np.transpose(boom), color=colour, lw=3.0)
    axes.fill(*np.transpose(stick), color=colour, alpha=0.6)
    axes.plot(*np.transpose([at["bucket"], at["tip"]]), color=colour, lw=5.0)
    axes.plot(*np.transpose([at["boom"], at["stick"], at["bucket"]]), "o", color="white", mec=colour, ms=4)


def main() -> None:
    """Run one cycle, and draw the path of the teeth, the force of the soil and the pressures."""
    m = bc.zoo.excavator_linkage()
    digger = bc.system(**parts())
    run = bc.simulate(digger, SECONDS, step=5e-4, every=0.1, inputs={"autopilot": 1.0}, form="projected")
    figure = Figure(figsize=(8.0, 6.6))
    grid = figure.add_gridspec(4, 2, width_ratios=[1.0, 1.3], height_ratios=[0.2, 1.0, 1.0, 1.0])
    side, force = figure.add_subplot(grid[:, 0]), figure.add_subplot(grid[1, 1])
    head, rod = figure.add_subplot(grid[2, 1], sharex=force), figure.add_subplot(grid[3, 1], sharex=force)

    for t, colour in DRAWN.items():
        draw_arm(side, m, run.q[np.argmin(np.abs(run.t - t))], colour)
        side.plot([], [], color=colour, lw=2.5, label=f"arm at {t:g} s")
    side.plot(np.hypot(run["tip.x"], run["tip.y"]), run["tip.z"], color="C3", lw=1.0, label="path of the teeth")
    side.axhline(0.0, color="#8a6410", lw=1.0, label="ground")
    side.set(xlabel="distance from the swing axis [m]", ylabel="height [m]", aspect="equal")
    side.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=2)

    soil = np.linalg.norm([run[f"tip.f{axis}"] for axis in "xyz"], axis=0)
    force.plot(run.t, soil / 1e3, color="C3")
    force.set_ylabel("kN")
    for axes, chamber, title in ((head, "A", "pressure, bore side"), (rod, "B", "pressure, rod side")):
        for name in CYLINDERS:
            axes.plot(run.t, run[f"{name}_cylinder.p_{chamber}"] / 1e6, lw=1.0, label=name)
        axes.set(ylabel="MPa", title=title)
    rod.set(xlabel="time [s]", xlim=(0.0, SECONDS))
    head.legend(fontsize=8, ncols=3, loc="upper right")
    head.set_ylim(-0.5, 17.0)
    for axes in (force, head, rod):
        axes.locator_params(nbins=4)
        axes.grid(visible=False)
    begin, top = 0.0, force.get_ylim()[1]
    for move in CYCLE:
        force.axvline(begin, color="0.6", lw=0.6, ls=":")
        force.text(begin + 0.2, top, move.label, fontsize=7, rotation=60, va="bottom", color="0.3")
        begin += move.seconds
    force.set_title("force of the soil on the teeth", pad=32)
    figure.tight_layout()
    write(figure, "excavator_cycle")


if __name__ == "__main__":
    main()
