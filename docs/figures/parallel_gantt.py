"""Draw the schedule of the PUMA 600's forward dynamics on four transputers: python docs/figures/parallel_gantt.py"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Patch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from svg_file import write

import bellcrank as bc

COLOURS = {"X": "#8da0cb", "c": "#a6d854", "IA": "#fc8d62", "pA": "#66c2a5", "u": "#e5c494", "a": "#ffd92f"}
RED = "#c00000"


def main() -> None:
    s = bc.schedule(bc.zoo.puma600(), machine="complete:4", kind="t800", method="aba", level="cluster")
    figure = Figure(figsize=(8.0, 3.0))
    axes = figure.add_subplot()
    critical = set(s.critical)
    steps: dict[str, Patch] = {}
    for i, (p, start, finish) in enumerate(zip(s.where, s.start, s.finish, strict=True)):
        step = s.tasks[i].step.split("[")[0]
        edge, width, order = (RED, 1.4, 3) if i in critical else ("white", 0.4, 2)
        colour = COLOURS.get(step, "#b3b3b3")
        axes.barh(
            p, finish - start, left=start, height=0.6, color=colour, edgecolor=edge, linewidth=width, zorder=order
        )
        steps.setdefault(step, Patch(color=colour))
    for link in s.chain:
        if link.message >= 0:
            message = s.messages[link.message]
            axes.plot([link.start, link.finish], [message.source, message.target], color=RED, lw=1.2, zorder=4)
    axes.axvline(s.bound, color="black", lw=0.8, ls="--")
    axes.text(s.bound, 2.55, " work/p: lower bound", fontsize=8)
    axes.set_yticks(range(s.machine.processors), [f"processor {p}" for p in range(s.machine.processors)])
    axes.invert_yaxis()
    axes.set_xlabel("time in microseconds (red: critical path with its messages)")
    axes.set_title(f"PUMA 600, aba, 4 T800: {s.makespan:.0f} us, speed-up {s.speedup:.2f}", fontsize=9)
    axes.legend(steps.values(), steps.keys(), title="step", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    write(figure, "parallel_gantt")


if __name__ == "__main__":
    main()
