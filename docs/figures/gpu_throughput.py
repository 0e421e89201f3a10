"""Draw the throughput of forward dynamics on one GPU, from docs/gpu.md: python docs/figures/gpu_throughput.py"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parent))

from page_tables import number, table
from svg_file import write


def main() -> None:
    rows = [row for row in table("gpu.md", "| forward dynamics, per s |") if not row[0].startswith("rows")]
    names = [row[0].replace(", ", ",\n") for row in rows]
    figure = Figure(figsize=(7.0, 2.6))
    axes = figure.add_subplot()
    for k, (label, column, share) in enumerate((("float32", 1, 2), ("float64", 4, 5))):
        places = [i + 0.4 * k - 0.2 for i in range(len(rows))]
        heights = [number(row[column]) for row in rows]
        axes.bar(places, heights, width=0.38, label=label)
        for x, y, row in zip(places, heights, rows, strict=True):
            axes.text(x, y * 1.05, f"{y:.1e}\n{row[share]}", ha="center", va="bottom", fontsize=7)
    axes.set_yscale("log")
    axes.set_ylim(5e8, 2e11)
    axes.set_ylabel("states per second")
    axes.set_xticks(range(len(rows)), names, fontsize=8)
    axes.legend(fontsize=8, frameon=False)
    axes.set_title("forward dynamics on one H200; the percentage is the share of the roofline", fontsize=9)
    write(figure, "gpu_throughput")


if __name__ == "__main__":
    main()
