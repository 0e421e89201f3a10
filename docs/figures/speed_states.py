"""Draw the first table of docs/speed.md, time for one state: python docs/figures/speed_states.py"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parent))

from page_tables import number, table
from svg_file import write


def main() -> None:
    rows = [row for row in table("speed.md", "| Pinocchio |") if row[0] != "compile"]
    names, ours, theirs = [], [], []
    group = ""
    for kind, work, time, peer, _ in rows:
        group = kind or group
        if "/" in work or not peer:  # several robots in one row
            continue
        names.append(f"{group}: {work}")
        ours.append(number(time))
        theirs.append(number(peer))
    figure = Figure(figsize=(7.0, 2.6))
    axes = figure.add_subplot()
    places = range(len(names))
    axes.barh([i + 0.2 for i in places], theirs, height=0.38, color="#b3b3b3", label="Pinocchio, usual build")
    axes.barh([i - 0.2 for i in places], ours, height=0.38, color="tab:blue", label="bellcrank")
    for i in places:
        axes.text(theirs[i] * 1.1, i + 0.2, f"{theirs[i]:g} ns", va="center", fontsize=7)
        axes.text(ours[i] * 1.1, i - 0.2, f"{ours[i]:g} ns", va="center", fontsize=7)
    axes.set_yticks(places, names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(5, 50_000)
    axes.set_xlabel("ns for one state, one core (logarithmic)")
    axes.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    write(figure, "speed_states")


if __name__ == "__main__":
    main()
