"""Draw the GPU tables of docs/size.md, times as fast as one core: python docs/figures/size_gpu.py"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parent))

from page_tables import number, table
from svg_file import write

TABLES = {
    "forward dynamics": ("| forward dynamics | compile time |", (3, 5)),
    "steps of runs": ("| steps of runs |", (3, 5)),
}


def main() -> None:
    figure = Figure(figsize=(7.0, 2.6))
    for column, (title, (heading, cells)) in enumerate(TABLES.items()):
        rows = [row for row in table("size.md", heading) if row[0].count("chain") < 2]
        axes = figure.add_subplot(1, 2, column + 1)
        for k, (label, cell) in enumerate(zip(("float64", "float32"), cells, strict=True)):
            places = [i + 0.4 * k - 0.2 for i in range(len(rows))]
            ratios = [number(row[cell]) for row in rows]
            axes.bar(places, ratios, width=0.38, label=label)
            for x, y in zip(places, ratios, strict=True):
                axes.text(x, y, f"{y:g}", ha="center", va="bottom", fontsize=7)
        axes.set_xticks(range(len(rows)), [row[0] for row in rows], fontsize=8)
        axes.set_ylim(0, 130)
        axes.set_title(title, fontsize=9)
        if not column:
            axes.set_ylabel("times as fast as one core")
            axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper left")
    figure.tight_layout()
    write(figure, "size_gpu")


if __name__ == "__main__":
    main()
