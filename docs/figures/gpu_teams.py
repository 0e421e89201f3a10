"""Draw the throughput of teams of threads, from docs/gpu.md: python docs/figures/gpu_teams.py"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parent))

from page_tables import number, table
from svg_file import write

THREADS = [1, 2, 4, 8]


def main() -> None:
    figure = Figure(figsize=(6.0, 2.8))
    axes = figure.add_subplot()
    for row in table("gpu.md", "| one thread | two |"):
        rates = [number(cell) for cell in row[1:5]]
        axes.plot(THREADS, rates, marker="o", ms=3, label=row[0])
        best = max(range(4), key=lambda i: rates[i])
        axes.plot(THREADS[best], rates[best], marker="o", ms=9, mfc="none", color="black")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(THREADS, [str(n) for n in THREADS])
    axes.set_xlabel("threads that compute one state (circle: the fastest)")
    axes.set_ylabel("states per second, float64")
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    write(figure, "gpu_teams")


if __name__ == "__main__":
    main()
