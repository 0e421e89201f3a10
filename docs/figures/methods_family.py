"""Draw the family tree of the methods of docs/methods/family.md: `python docs/figures/methods_family.py`."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from svg_file import write

GROUPS = [
    ("columns of J multiplied,\none element after the other", "O(n³)", "#f6d5c9",
     ["ness", "hemami", "angeles", "oke, oke_parallel*", "joint_coordinates", "newton_euler_symbolic"]),
    ("composite bodies or\none column at a time", "O(n²)", "#d7e6f5",
     ["crba", "walker_orin, ocrb", "vke", "bae_hwang", "oneb, vneb, vcrb", "vneb_parallel*", "vcrb_parallel"]),
    ("elimination while\nthe product is formed", "O(n)", "#d9eed9",
     ["aba", "dca*", "featherstone", "denoc", "joint_coordinates_recursive"]),
    ("forces only,\nno mass matrix", "O(n)", "#ece3f3", ["rnea", "reactions"]),
    ("all bodies free,\njoints are constraints", "O(n)", "#f5edcd", ["absolute"]),
]  # fmt: skip


def box(axes: Any, x: float, y: float, text: str, colour: str, bold: bool = False) -> None:
    """Draw text in a box around (x, y)."""
    axes.text(x, y, text, ha="center", va="center", fontsize=8, fontweight="bold" if bold else "normal",
              bbox={"boxstyle": "round,pad=0.35", "fc": colour, "ec": "0.45", "lw": 0.8})  # fmt: skip


def main() -> None:
    """Draw the root, the choice of order, and the methods below it."""
    figure = Figure(figsize=(10.0, 4.4))
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(0, 10)
    axes.set_ylim(0.6, 6)
    box(axes, 5, 5.7, "Newton-Euler equations of all bodies: I dV/dt = applied forces + joint forces", "white", True)
    box(axes, 4, 4.9, "V = J(q) v removes the joint forces:  M a + C = tau,  M = Jᵀ I J", "white", bold=True)
    axes.plot([5, 4], [5.55, 5.05], color="0.45", lw=0.9)
    axes.plot([5, 9.1], [5.55, 4.1], color="0.45", lw=0.9)
    for k, (title, work, colour, names) in enumerate(GROUPS):
        x = 0.95 + 2.04 * k
        if k < 4:
            axes.plot([4, x], [4.75, 4.1], color="0.45", lw=0.9)
        box(axes, x, 3.9, f"{title}\n{work}", colour, bold=True)
        for row, name in enumerate(names):
            axes.text(x, 3.2 - 0.36 * row, name, ha="center", va="center", fontsize=8, family="monospace")
    axes.text(0.1, 0.62, "* other work or a path of O(log n): see the table", fontsize=7, color="0.3")
    write(figure, "methods_family")


if __name__ == "__main__":
    main()
