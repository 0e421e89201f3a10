"""Draw docs/figures/kernels.svg: operations of kernels of one arm, by method and by quantity.

Command: `python docs/figures/kernels.py`
"""

from __future__ import annotations

from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

METHODS = ("crba", "denoc", "aba", "walker_orin", "featherstone", "joint_coordinates")
QUANTITIES = ("kinetic_energy", "mass_matrix", "inverse_dynamics", "forward_dynamics", "forward_dynamics_derivatives")


def main() -> None:
    arm = bc.zoo.puma600()
    methods = {name: bc.kernel(arm, "forward_dynamics", method=name).graph.count().arithmetic for name in METHODS}
    quantities = {name: bc.kernel(arm, name).graph.count().arithmetic for name in QUANTITIES}
    figure = Figure(figsize=(7.2, 2.5))
    left, right = figure.subplots(1, 2)
    for axes, counts, title in ((left, methods, "forward dynamics, by method"), (right, quantities, "by quantity")):
        names = list(reversed(counts))
        bars = axes.barh(names, [counts[name] for name in names], color="tab:blue")
        axes.bar_label(bars, padding=2, fontsize=8)
        axes.set(title=title, xlabel="operations", xlim=(0, 1.15 * max(counts.values())))
    figure.tight_layout()
    write(figure, "kernels")


if __name__ == "__main__":
    main()
