"""Draw docs/figures/linearize.svg: poles and mode shapes of the excavator on its oil, and the response with an LQR.

Command: `python docs/figures/linearize.py`
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure
from scipy.linalg import solve_continuous_are
from svg_file import write

import bellcrank as bc
from bellcrank.excavators.linkage_system import holding, hydraulics

NAMES = ("swing", "boom", "stick", "bucket")


def main() -> None:
    machine = bc.zoo.excavator_linkage()
    drives = [replace(a, valve=replace(a.valve, overlap=0.0)) for a in holding(hydraulics())]
    plant = bc.system(machine, drives)
    rest = bc.equilibrium(plant, hold="q")
    lin = bc.linearize(plant, at=rest)

    unit = np.array([1e6 if ".p_" in name else 1.0 for name in lin.states])
    weights = {"q": 10.0, "v": 1.0}
    Q = np.diag([weights.get(name.rpartition(".")[2], 0.0) for name in lin.states])
    A, B = lin.A * unit / unit[:, None], lin.B / unit[:, None]
    K = B.T @ solve_continuous_are(A - 0.01 * np.eye(len(A)), B, Q, np.eye(4)) / unit
    start, _ = machine.assemble({"boom": 0.05, "stick": -0.05, "swing": 0.1}, fixed=list(NAMES))
    run = bc.simulate(bc.system(machine, drives, lin.feedback(K)), 4.0, q0=start, x0=rest.x, every=0.02)

    figure = Figure(figsize=(7.2, 2.8))
    poles, shapes, response = figure.subplots(1, 3)
    for values, mark, label in (
        (np.linalg.eigvals(lin.A), "x", "plant"),
        (np.linalg.eigvals(lin.A - lin.B @ K), "+", "with LQR"),
    ):
        poles.plot(values.real, values.imag, mark, label=label)
    poles.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]", title="poles", xlim=(-40, 3))
    poles.legend(fontsize=7)
    columns = list(machine.columns[1])
    for k, mode in enumerate(lin.modes().oscillating):
        sizes = [abs(mode.shape[columns.index(name)]) for name in NAMES]
        shapes.bar(np.arange(4) + 0.27 * (k - 1), sizes, 0.25, label=f"{mode.frequency:.1f} Hz")
    shapes.set_xticks(range(4), NAMES, fontsize=7)
    shapes.set(title="mode shapes", ylabel="amplitude")
    shapes.set_ylim(0.0, 1.5)
    shapes.legend(fontsize=7, loc="upper right")
    for name in NAMES[:3]:
        k = columns.index(name)
        response.plot(run.t, run[f"{name}.q"] - rest.q[k], label=name)
    response.set(xlabel="time [s]", ylabel="angle [rad]", title="response with LQR")
    response.legend(fontsize=7)
    figure.tight_layout()
    write(figure, "linearize")


if __name__ == "__main__":
    main()
