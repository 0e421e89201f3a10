"""Draw docs/figures/parameters.svg: a sweep of a free parameter, and parameters found from measured torques.

Command: `python docs/figures/parameters.py`
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

TRUE = {"boom.mass": 2010.0, "boom.com.x": 2.1, "stick.damping": 40.0}


def torques() -> tuple[np.ndarray, np.ndarray]:
    """Return boom masses, kg, and the boom's torque that holds the arm at rest, N m."""
    arm = bc.zoo.excavator().free("boom.mass")
    mass = np.linspace(1500.0, 2500.0, 41)
    rest = np.zeros((len(mass), len(arm.columns[1])))
    tau = arm.inverse_dynamics(rest, rest, rest, parameters={"boom.mass": mass})
    return mass, tau[:, 1]


def fit() -> np.ndarray:
    """Return relative errors of the parameters after each iteration of Gauss and Newton."""
    arm = bc.zoo.excavator().free(*TRUE)
    q, v, a = arm.random(seed=2, batch=200)
    measured = arm.inverse_dynamics(q, v, a, parameters=TRUE)
    slope = bc.kernel(arm, "inverse_dynamics").graph.jacobian("inverse_dynamics", "p")
    p, exact = arm.parameters.nominal, arm.parameters.vector(TRUE)
    size = np.abs(exact - p)
    errors = [np.abs(p - exact) / size]
    for _ in range(5):
        off = measured - arm.inverse_dynamics(q, v, a, p)
        J = slope.evaluate(q=q, v=v, a=a, p=p)["dinverse_dynamics_dp"]
        p = p + np.linalg.lstsq(J.reshape(-1, p.size), off.reshape(-1), rcond=None)[0]
        errors.append(np.abs(p - exact) / size)
    return np.array(errors)


def main() -> None:
    figure = Figure(figsize=(7.2, 2.6))
    left, right = figure.subplots(1, 2)
    mass, tau = torques()
    left.plot(mass, tau / 1e3)
    left.set(xlabel="boom.mass [kg]", ylabel="boom torque at rest [kN m]", title="one call, 41 values")
    errors = fit()
    for name, error in zip(sorted(TRUE), errors.T, strict=True):
        right.semilogy(range(len(error)), np.maximum(error, 1e-10), "o-", markersize=3, label=name)
    right.set(xlabel="iteration", ylabel="error / first error", title="parameters from measured torques")
    right.legend(fontsize=7)
    figure.tight_layout()
    write(figure, "parameters")


if __name__ == "__main__":
    main()
