"""Draw docs/figures/integrators.svg: energy over time and error over step, for several integrators.

Command: `python docs/figures/integrators.py`
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

STEP, SECONDS = 0.02, 40.0  # s
STEPS = (0.05, 0.025, 0.0125, 0.00625)  # s
ORDERS = {"euler": "C3", "midpoint": "C2", "rk4": "C0", "dopri5": "C1"}


def stone() -> bc.Mechanism:
    b = bc.Builder("stone", gravity=(0, 0, 0))
    b.body("stone", mass=3.0, com=(0.1, 0.0, 0.2), inertia=(0.2, 0.3, 0.4))
    b.joint("free", "floating", "ground", "stone")
    return b.build()


def energy(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return times and the relative change of the energy of a body that tumbles without forces."""
    solver = bc.Solver(name, step=STEP, resolve=0.0)
    run = bc.simulate(stone(), SECONDS, v0=[0.3, -0.2, 0.5, 1.0, 2.0, -1.5], solver=solver, every=0.4)
    return run.t[1:], np.abs(run["energy"] / run["energy"][0] - 1.0)[1:]


def error(name: str) -> list[float]:
    """Return the error of a pendulum's angle after 2 s, for each step of STEPS."""
    pendulum = bc.zoo.pendulum()
    exact = bc.simulate(pendulum, 2.0, q0=[2.0], integrator="dopri5", tolerance=1e-12, every=2.0).q[-1, 0]
    runs = [bc.simulate(pendulum, 2.0, q0=[2.0], solver=bc.Solver(name, step=h, resolve=0.0)) for h in STEPS]
    return [abs(float(run.q[-1, 0] - exact)) for run in runs]


def main() -> None:
    figure = Figure(figsize=(7.2, 2.8))
    left, right = figure.subplots(1, 2)
    for name, colour in ORDERS.items():
        t, change = energy(name)
        left.semilogy(t, np.maximum(change, 1e-16), color=colour, label=name)
        right.loglog(STEPS, error(name), "o-", color=colour, markersize=3, label=name)
    left.set(xlabel="time [s]", ylabel="|E / E(0) - 1|", title=f"energy of a tumbling body, steps of {STEP:g} s")
    right.set(xlabel="step [s]", ylabel="error [rad]", title="pendulum after 2 s: the slope is the order")
    right.set_xticks(STEPS, [f"{h:g}" for h in STEPS], minor=False)
    right.set_xticks([], minor=True)
    left.legend(fontsize=7, loc="center right")
    right.legend(fontsize=7)
    figure.tight_layout()
    write(figure, "integrators")


if __name__ == "__main__":
    main()
