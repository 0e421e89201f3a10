"""Draw the speed-up of schedules over the number of processors: python docs/figures/parallel_speedup.py"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parent))

from svg_file import write

import bellcrank as bc

PROCESSORS = [1, 2, 4, 8, 16]
ROBOTS = {"puma600 (6 joints in a chain)": bc.zoo.puma600(), "tree of 15 bodies": bc.zoo.tree(15)}
KINDS = {"ideal": "messages are free", "t800": "T800 transputers"}


def main() -> None:
    figure = Figure(figsize=(8.0, 3.0))
    for column, (kind, title) in enumerate(KINDS.items()):
        axes = figure.add_subplot(1, 2, column + 1)
        for colour, (name, robot) in zip(("tab:blue", "tab:orange"), ROBOTS.items(), strict=True):
            runs = [bc.schedule(robot, machine=f"complete:{p}", kind=kind, method="aba") for p in PROCESSORS]
            axes.plot(PROCESSORS, [s.work / s.bound for s in runs], ls=":", color=colour, label=f"{name}, limit")
            axes.plot(PROCESSORS, [s.speedup for s in runs], marker="o", ms=3, color=colour, label=name)
        axes.set_xlabel("processors")
        axes.set_title(title, fontsize=9)
        axes.set_ylim(0, 17)
        if not column:
            axes.set_ylabel("speed-up")
            axes.legend(fontsize=7, frameon=False, loc="upper left")
    figure.tight_layout()
    write(figure, "parallel_speedup")


if __name__ == "__main__":
    main()
