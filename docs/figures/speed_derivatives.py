"""Draw the speed-up tables of derivatives of docs/speed.md: python docs/figures/speed_derivatives.py"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parent))

from page_tables import table
from svg_file import write

ROBOTS = ["UR5", "Panda", "HyQ,\nfloating", "Talos,\nfloating"]
CORES = {"AVX-512 (eight lanes)": "| Zen 4, AVX-512 |", "AVX2 (four lanes)": "| Zen 3, AVX2 |"}


def main() -> None:
    figure = Figure(figsize=(7.0, 2.6))
    for column, (title, heading) in enumerate(CORES.items()):
        axes = figure.add_subplot(1, 2, column + 1)
        for k, (name, *cells) in enumerate(table("speed.md", heading)):
            ratios = [float(re.findall(r"([\d.]+) x", cell)[0]) for cell in cells]
            places = [i + 0.4 * k - 0.2 for i in range(len(ROBOTS))]
            axes.bar(places, ratios, width=0.38, label=name)
            for x, y in zip(places, ratios, strict=True):
                axes.text(x, y, f"{y:g}", ha="center", va="bottom", fontsize=7)
        axes.set_xticks(range(len(ROBOTS)), ROBOTS, fontsize=8)
        axes.set_ylim(0, 66)
        axes.set_title(title, fontsize=9)
        if not column:
            axes.set_ylabel("times as fast as Pinocchio")
            axes.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    write(figure, "speed_derivatives")


if __name__ == "__main__":
    main()
