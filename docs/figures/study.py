"""Draw the Monte Carlo study of docs/studies.md: `python docs/figures/study.py`."""

from __future__ import annotations

import tempfile

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc


def main() -> None:
    """Draw the spread of a result, what it depends on, and some of the runs behind it."""
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=0.1)
    over = {"bob.mass": bc.uniform(0.5, 2.0), "hinge.q": bc.uniform(-1.0, 1.0)}
    with tempfile.TemporaryDirectory() as folder:
        study = bc.study(b.build(), over, runs=200, seconds=3.0, step=0.01, keep="rows", every=0.01, to=folder,
                         workers=1)  # fmt: skip
        t, angle, rate = study["rows(t)"], study["rows(hinge.q)"], study["rows(hinge.v)"]
        greatest, start, mass = rate.max(axis=1), study["hinge.q"], study["bob.mass"]
    figure = Figure(figsize=(9.0, 2.8))
    left, middle, right = figure.subplots(1, 3)
    left.plot(t[:20, ::10].T, angle[:20, ::10].T, color="C0", lw=0.6, alpha=0.6)
    left.set_title("hinge.q of 20 runs, rad", fontsize=9)
    left.set_xlabel("t, s")
    middle.hist(greatest, bins=20, color="C0")
    for part, style in ((0.5, "-"), (0.95, "--")):
        value = float(np.quantile(greatest, part))
        middle.axvline(value, color="C3", ls=style, label=f"{part:.0%} of the runs: below {value:.2f}")
    middle.set_title("runs by max(hinge.v), rad/s", fontsize=9)
    middle.legend(fontsize=7)
    for low, high, colour in ((0.5, 1.0, "C1"), (1.0, 1.5, "C0"), (1.5, 2.0, "C2")):
        some = (mass >= low) & (mass < high)
        right.plot(start[some][::2], greatest[some][::2], ".", ms=4, color=colour, label=f"{low:g} to {high:g} kg")
    right.legend(fontsize=7, title="bob.mass", title_fontsize=7)
    right.set_title("max(hinge.v) by hinge.q", fontsize=9)
    right.set_xlabel("hinge.q at the start, rad")
    figure.tight_layout()
    write(figure, "study")


if __name__ == "__main__":
    main()
