"""Draw docs/figures/start_machine.svg: the excavator of docs/start/machine.md in the first seconds of its autopilot.

Command: `python docs/figures/start_machine.py`
"""

from __future__ import annotations

from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc
from bellcrank.excavators.linkage_system import parts


def main() -> None:
    digger = bc.system(**parts())
    run = bc.simulate(digger, 3.0, step=5e-4, every=0.02, inputs={"autopilot": 1.0}, form="projected")
    figure = Figure(figsize=(7.2, 2.6))
    left, right = figure.subplots(1, 2)
    for side in "AB":
        left.plot(run.t, run[f"boom_cylinder.p_{side}"] / 1e6, label=f"boom_cylinder.p_{side}")
    left.set(xlabel="time [s]", ylabel="pressure [MPa]", title="boom cylinder")
    left.legend()
    for name in ("boom", "stick", "bucket"):
        right.plot(run.t, run[f"{name}.q"], label=name)
    right.set(xlabel="time [s]", ylabel="angle [rad]", title="joints of the arm")
    right.legend()
    figure.tight_layout()
    write(figure, "start_machine")


if __name__ == "__main__":
    main()
