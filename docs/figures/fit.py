"""Draw the fit of docs/fit.md before and after: `python docs/figures/fit.py`."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc


def main() -> None:
    """Draw the measured angle, the model before the fit and after it, and what each leaves."""
    b = bc.Builder("pendulum")
    b.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=0.1)
    plant = bc.system(b.build(), control=lambda t, q, v, x, u: {"hinge": u["torque"]}, inputs=["torque"])
    free = bc.system(plant.mechanism.free("bob.mass", "hinge.damping"), control=plant.control, inputs=["torque"])
    t = np.arange(0.0, 6.0, 0.01)
    torque = 2.0 * np.sin(2.0 * t) + np.sin(5.3 * t)

    def angle(mass: float, damping: float, start: float) -> np.ndarray:
        run = bc.simulate(free, t[-1], q0=[start], inputs={"torque": torque}, input_step=0.01, every=0.01, step=0.01,
                          parameters={"bob.mass": mass, "hinge.damping": damping})  # fmt: skip
        return np.asarray(run["hinge.q"])

    measured = angle(1.3, 0.3, 0.4) + 0.01 * np.random.default_rng(0).normal(size=t.size)
    found = bc.fit(plant, {"t": t, "torque": torque, "hinge.q": measured}, step=0.01,
                   free=["bob.mass", "hinge.damping", "hinge.q"])  # fmt: skip
    before, after = angle(1.0, 0.1, 0.0), angle(*(found[name] for name in found.names))
    figure = Figure(figsize=(8.4, 2.8))
    left, right = figure.subplots(1, 2)
    left.plot(t[::8], measured[::8], ".", ms=3, color="0.6", label="measured (every 8th sample)")
    for name, values, colour in (("before", before, "C3"), ("after", after, "C0")):
        left.plot(t, values, color=colour, lw=1.2, label=f"{name} the fit")
        right.plot(t[::3], np.maximum(abs(values - measured), 1e-4)[::3], color=colour, lw=0.8, label=name)
    right.axhline(0.01, color="black", lw=0.8, ls="--", label="noise: 0.01 rad")
    right.set_yscale("log")
    left.set_title("hinge.q, rad", fontsize=9)
    right.set_title("absolute residual of hinge.q, rad", fontsize=9)
    for axes in (left, right):
        axes.set_xlabel("t, s")
        axes.legend(fontsize=7)
    figure.tight_layout()
    write(figure, "fit")


if __name__ == "__main__":
    main()
