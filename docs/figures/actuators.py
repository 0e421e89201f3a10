"""Draw docs/figures/actuators.svg: a Stribeck curve with its stick-slip motion, and the step of a hydraulic cylinder.

Command: `python docs/figures/actuators.py`
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc
from bellcrank.actuators import HydraulicCylinder, ProportionalValve, StribeckFriction


def slide(mass: float, **joint: float) -> bc.Mechanism:
    b = bc.Builder("slide", gravity=(0, 0, 0))
    b.body("load", mass=mass, inertia=(1.0, 1.0, 1.0))
    b.joint("x", "prismatic", "ground", "load", axis=(1, 0, 0), **joint)
    return b.build()


FRICTION = StribeckFriction("x", F_c=2.0, F_s=4.0, v_s=0.05, v_t=0.001)


def stick_slip() -> bc.Record:
    """Return a run of 1 kg that a spring of 50 N/m pulls; the spring's other end moves with 0.1 m/s."""
    pull = bc.system(
        slide(1.0), [FRICTION], forces={"load": lambda t, X, V: ([50.0 * (0.1 * t - X[0][3]), 0.0, 0.0], [0.0] * 3)}
    )
    return bc.simulate(pull, 6.0, step=1e-4, every=0.01)


def cylinder() -> bc.Record:
    """Return a run in which the valve of a cylinder opens by half at 0.2 s and closes at 1.2 s."""
    valve = ProportionalValve(flow=1e-3, p_pump=2e7, relief=2.5e7, overlap=0.0)
    drive = HydraulicCylinder(
        "x", valve=valve, bore=0.08, rod=0.05, stroke=1.0, offset=0.2, friction=500.0, viscous=2000.0,
        p_A=4e6, p_B=4e6 * 0.08**2 / (0.08**2 - 0.05**2),
    )  # fmt: skip
    plant = bc.system(slide(2000.0), [drive], control=lambda t, q, v, x, u: {"x": u["spool"]}, inputs=["spool"])
    table = {"spool": np.array([0.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0])}
    return bc.simulate(plant, 2.0, inputs=table, input_step=0.2, integrator="rodas4", every=0.005)


def main() -> None:
    figure = Figure(figsize=(7.2, 4.8))
    (curve, motion), (speed, pressure) = figure.subplots(2, 2)
    v = np.linspace(-0.2, 0.2, 401)
    curve.plot(v, [float(FRICTION(0.0, 0.0, w, [])[0]) for w in v])
    curve.set(xlabel="speed [m/s]", ylabel="force [N]", title="Stribeck friction")
    run = stick_slip()
    motion.plot(run.t, run["x.q"], label="load")
    motion.plot(run.t, 0.1 * np.asarray(run.t), "--", color="0.5", label="end of the spring")
    motion.set(xlabel="time [s]", ylabel="position [m]", title="stick-slip: pulled by a spring")
    motion.legend(fontsize=7)
    run = cylinder()
    speed.plot(run.t, run["x.v"])
    speed.set(xlabel="time [s]", ylabel="speed [m/s]", title="hydraulic cylinder: half open from 0.2 to 1.2 s")
    for name in ("p_A", "p_B"):
        pressure.plot(run.t, run[f"x.{name}"] / 1e5, label=name)
    pressure.set(xlabel="time [s]", ylabel="pressure [bar]", title="its chambers")
    pressure.legend(fontsize=7)
    figure.tight_layout()
    write(figure, "actuators")


if __name__ == "__main__":
    main()
