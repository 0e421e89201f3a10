"""Draw the optimisation of docs/derivatives.md: `python docs/figures/optimised_torque.py`."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

SHOWN = (0, 1, 2, 4, 30)  # iterations


def main() -> None:
    """Draw torque and angle after some iterations, and the cost of all."""
    plant = bc.system(bc.zoo.load("pendulum"), control=lambda t, q, v, x, u: u, inputs=["torque"])
    gradient = bc.Adjoint(
        plant,
        running=lambda t, q, v, x, u: 0.01 * u["torque"] ** 2,
        final=lambda t, q, v, x, u: 100.0 * (q["hinge"] - 0.5) ** 2 + 10.0 * v["hinge"] ** 2,
    )
    torque, costs = np.zeros(100), []
    figure = Figure(figsize=(9.0, 2.7))
    left, middle, right = figure.subplots(1, 3)
    for iteration in range(SHOWN[-1] + 1):
        result = gradient.run(1.0, inputs={"torque": torque}, input_step=0.01)
        costs.append(float(result.value))
        if iteration in SHOWN:
            run = bc.simulate(plant, 1.0, inputs={"torque": torque}, input_step=0.01, every=0.01)
            left.plot(0.01 * np.arange(100), torque, label=f"{iteration} iterations")
            middle.plot(run.t, run["hinge.q"])
        torque = torque - 5.0 * result.inputs["torque"]
    middle.axhline(0.5, color="black", lw=0.8, ls="--")
    right.semilogy(costs, color="black")
    left.legend(fontsize=7)
    for axes, title, label in ((left, "torque, N m", "t, s"), (middle, "hinge.q, rad; goal: 0.5", "t, s"),
                               (right, "scalar of the run", "iterations")):  # fmt: skip
        axes.set_title(title, fontsize=9)
        axes.set_xlabel(label)
    figure.tight_layout()
    write(figure, "optimised_torque")


if __name__ == "__main__":
    main()
