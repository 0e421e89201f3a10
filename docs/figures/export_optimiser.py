"""Draw docs/figures/export_optimiser.svg: an optimal motion found by Ipopt with an exported rate, and its torques.

Command: `python docs/figures/export_optimiser.py`
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import casadi
import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

INTERVALS, STEP = 10, 0.05  # s
GOAL = (0.3, -0.2, 0.1)  # rad


def optimum(rate: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return states (6, intervals + 1) and torques (3, intervals) of the motion with the least effort."""
    y, u = casadi.MX.sym("y", 6), casadi.MX.sym("u", 3)
    k1 = rate(0, y, u)
    k2 = rate(0, y + STEP / 2 * k1, u)
    k3 = rate(0, y + STEP / 2 * k2, u)
    k4 = rate(0, y + STEP * k3, u)
    step = casadi.Function("step", [y, u], [y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])
    ocp = casadi.Opti()
    Y, U = ocp.variable(6, INTERVALS + 1), ocp.variable(3, INTERVALS)
    ocp.minimize(casadi.sumsqr(U))
    for k in range(INTERVALS):
        ocp.subject_to(Y[:, k + 1] == step(Y[:, k], U[:, k]))
    ocp.subject_to(Y[:, 0] == [0.0] * 6)
    ocp.subject_to(Y[:, INTERVALS] == [*GOAL, 0.0, 0.0, 0.0])
    quiet = {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "max_iter": 500}
    ocp.solver("ipopt", {"print_time": False, "ipopt": quiet})
    result = ocp.solve()
    return np.array(result.value(Y)), np.array(result.value(U))


def main() -> None:
    plant = bc.zoo.planar3r()
    with tempfile.TemporaryDirectory() as folder:
        path = bc.export(plant, Path(folder) / "planar3r.so", to="casadi")
        states, torques = optimum(casadi.external("rate", str(path)))
    drive = bc.system(plant, control=lambda t, q, v, x, u: list(u), inputs={"a": 0.0, "b": 0.0, "c": 0.0})
    run = bc.simulate(
        drive, INTERVALS * STEP, step=1e-3, input_step=STEP, inputs=dict(zip("abc", torques.tolist(), strict=True))
    )
    figure = Figure(figsize=(7.2, 2.8))
    angles, effort = figure.subplots(1, 2)
    grid = STEP * np.arange(INTERVALS + 1)
    for k, color in enumerate(("C0", "C1", "C2")):
        name = plant.columns[0][k]
        angles.plot(run.t, run.q[:, k], color=color, label=name)
        angles.plot(grid, states[k], "o", ms=3, color=color)
        effort.step(grid, [*torques[k], torques[k][-1]], where="post", color=color, label=name)
    angles.set(xlabel="time [s]", ylabel="angle [rad]", title="motion: Ipopt (dots), bc.simulate (lines)")
    angles.legend(fontsize=7)
    effort.set(xlabel="time [s]", ylabel="torque [N m]", title="torques of the optimum")
    figure.tight_layout()
    write(figure, "export_optimiser")


if __name__ == "__main__":
    main()
