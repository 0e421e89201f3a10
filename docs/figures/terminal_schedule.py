"""Draw docs/figures/terminal_schedule.svg: the excavator's forward dynamics on Wong's triangle, by processor.

Command: `python docs/figures/terminal_schedule.py`
"""

from __future__ import annotations

from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

GREY, RED = "#8da0cb", "#c00000"


def main() -> None:
    """Draw when each processor is busy; adjacent tasks of a processor are joined, the critical path is red."""
    s = bc.schedule(bc.zoo.excavator(), machine="triangle")
    critical = set(s.critical)
    busy: dict[tuple[int, bool], list[tuple[float, float]]] = {}
    for i, (p, start, finish) in enumerate(zip(s.where, s.start, s.finish, strict=True)):
        busy.setdefault((p, i in critical), []).append((float(start), float(finish)))
    figure = Figure(figsize=(7.6, 3.2))
    axes = figure.add_subplot()
    for (p, red), times in busy.items():
        joined: list[list[float]] = []
        for start, finish in sorted(times):
            if joined and start <= joined[-1][1] + 1e-9:
                joined[-1][1] = max(joined[-1][1], finish)
            else:
                joined.append([start, finish])
        spans = [(start, finish - start) for start, finish in joined]
        axes.broken_barh(spans, (p - 0.35, 0.7), color=RED if red else GREY, zorder=3 if red else 2)
    axes.axvline(s.makespan, color="black", lw=0.8, ls="--")
    axes.set_yticks(range(s.machine.processors))
    axes.set_ylim(s.machine.processors - 0.5, -0.5)
    axes.set(xlabel="time in steps (red: critical path; dashed: makespan)", ylabel="processor")
    axes.set_title(f"{s.makespan:g} steps, speed-up {s.speedup:.2f}", fontsize=9)
    figure.tight_layout()
    write(figure, "terminal_schedule")


if __name__ == "__main__":
    main()
