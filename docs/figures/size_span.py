"""Draw the operations and spans of aba and dca in docs/size.md: python docs/figures/size_span.py"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parent))

from page_tables import number, table
from svg_file import write


def main() -> None:
    columns = list(
        zip(*([number(cell) for cell in row] for row in table("size.md", "| `aba`: operations |")), strict=True)
    )
    bodies, aba, aba_span, dca, dca_span = columns
    figure = Figure(figsize=(6.0, 2.8))
    axes = figure.add_subplot()
    for name, colour, work, span in (("aba", "tab:blue", aba, aba_span), ("dca", "tab:orange", dca, dca_span)):
        axes.loglog(bodies, work, marker="o", ms=3, color=colour, label=f"{name}, operations")
        axes.loglog(bodies, span, marker="o", ms=3, ls="--", color=colour, label=f"{name}, span")
    axes.set_xlabel("bodies of the chain")
    axes.set_ylabel("operations")
    axes.legend(fontsize=8, frameon=False)
    write(figure, "size_span")


if __name__ == "__main__":
    main()
