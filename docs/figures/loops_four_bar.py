"""Draw the four-bar of docs/loops.md with its coordinates, and a run of it: `python docs/figures/loops_four_bar.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

COLOURS = {"crank": "#c0392b", "coupler": "#2a6fb0", "rocker": "#3a8a4d"}
PINS = {"A": "C0", "B": "C1", "D": "C2"}


def pins(m: bc.Mechanism, q: Any) -> dict[str, Any]:
    """Return the position of each pin, m."""
    bodies = {"A": "crank", "B": "coupler", "D": "rocker", "C": "C.a"}
    return {pin: m.pose(q, frame)[:2, 3] for pin, frame in bodies.items()}


def arc(axes: Any, at: Any, start: float, turn: float, radius: float, text: str, colour: str) -> None:
    """Draw an arrow along an arc from the angle `start` by `turn`, rad, and its name."""
    angles = start + turn * np.linspace(0.0, 1.0, 20)
    line = at + radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    axes.plot(*line.T, color=colour, lw=1.2)
    axes.annotate("", line[-1], line[-4], arrowprops={"arrowstyle": "->", "color": colour, "lw": 1.2})
    middle = start + turn / 2
    at_text = at + 1.3 * radius * np.array([np.cos(middle), np.sin(middle)])
    axes.text(*at_text, text, color=colour, ha="right" if text == "$q_D$" else "center", va="center")


def draw(axes: Any, m: bc.Mechanism, q: Any) -> None:
    """Draw the linkage at zero in grey and at `q` in colours."""
    zero, now = pins(m, m.assemble()[0]), pins(m, q)
    for place, shade in ((zero, True), (now, False)):
        for body, ends in (("crank", "AB"), ("coupler", "BC"), ("rocker", "DC")):
            line = np.array([place[end] for end in ends])
            axes.plot(*line.T, color="0.8" if shade else COLOURS[body], lw=3, solid_capstyle="round")
            if not shade:
                at = line.mean(axis=0) + np.array([0.008, -0.02] if body == "rocker" else [-0.012, 0.012])
                axes.text(*at, body, color=COLOURS[body], ha="left" if body == "rocker" else "right")
    for name, place in now.items():
        cut = name == "C"
        axes.plot(*place, "o", mfc="white" if not cut else "#f4c542", mec="black", ms=7, zorder=5)
        axes.annotate(name, place, (6, 6 if cut else -13), textcoords="offset points")
    bar = {name: np.arctan2(*(now[b] - now[a])[::-1]) for name, a, b in (("A", "A", "B"), ("D", "D", "C"))}
    arc(axes, now["A"], bar["A"] - q[0], q[0], 0.05, "$q_A$", PINS["A"])
    arc(axes, now["D"], bar["D"] - q[2], q[2], 0.15, "$q_D$", PINS["D"])
    coupler = np.arctan2(*(now["C"] - now["B"])[::-1])
    arc(axes, now["B"], coupler - q[1], q[1], 0.07, "$q_B$", PINS["B"])
    far = now["B"] + 0.12 * np.array([np.cos(coupler - q[1]), np.sin(coupler - q[1])])
    axes.plot(*np.array([now["B"], far]).T, ":", color=PINS["B"], lw=1)
    axes.annotate("C is cut:\n5 equations", now["C"], (0.47, 0.19), ha="center", arrowprops={"arrowstyle": "->"})
    axes.set_aspect("equal")
    axes.set_xlim(-0.06, 0.54)
    axes.set_ylim(-0.04, 0.28)
    axes.set_xlabel("x, m")
    axes.set_ylabel("y, m")
    axes.set_title("grey: zero configuration; colours: $q_A$ = 1 rad", fontsize=9)


def main() -> None:
    """Draw both panels."""
    m = bc.zoo.four_bar()
    q, v = m.assemble({"A": 1.0}, {"A": 10.0}, fixed=["A"])
    run = bc.simulate(m, 1.5, q, v, step=5e-4, every=0.01)
    figure = Figure(figsize=(8.4, 3.2))
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.25, 1]})
    draw(left, m, q)
    for name, colour in PINS.items():
        right.plot(run.t, run[f"{name}.q"], color=colour, label=f"$q_{name}$")
    right.set_xlabel("t, s")
    right.set_ylabel("rad")
    right.set_title("the crank turns, the rocker swings", fontsize=9)
    right.legend()
    figure.tight_layout()
    write(figure, "loops_four_bar")


if __name__ == "__main__":
    main()
