"""Draw the operation counts of docs/counting.md: python docs/figures/counting_regrouping.py"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parent))

from page_tables import number, table
from svg_file import write


def main() -> None:
    names, totals, unchanged = [], [], []
    robot = ""
    for name, method, total, before in table("counting.md", "| robot | method |"):
        robot = name.partition(",")[0] or robot
        names.append(f"{robot}, {method}")
        totals.append(number(total))
        unchanged.append(number(before))
    figure = Figure(figsize=(6.5, 2.4))
    axes = figure.add_subplot()
    places = range(len(names))
    axes.barh([i - 0.2 for i in places], totals, height=0.38, label="regrouped inertias")
    axes.barh([i + 0.2 for i in places], unchanged, height=0.38, color="#b3b3b3", label="inertias of the file")
    for i in places:
        saved = 1 - totals[i] / unchanged[i]
        axes.text(
            unchanged[i] + 60,
            i,
            f"{totals[i]:.0f} instead of {unchanged[i]:.0f}: -{saved:.0%}",
            va="center",
            fontsize=7,
        )
    axes.set_yticks(places, names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 9500)
    axes.set_xlabel("operations of forward dynamics")
    axes.legend(fontsize=8, frameon=False, loc="upper right")
    write(figure, "counting_regrouping")


if __name__ == "__main__":
    main()
