"""Draw docs/figures/export_ball.svg: a bouncing ball, as an FMU that CVode integrates and as a run of bc.simulate.

Command: `python docs/figures/export_ball.py`
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from fmpy import simulate_fmu
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

HEIGHT, SECONDS, RESTITUTION = 2.0, 3.0, 0.8  # m, s


def ball() -> bc.Mechanism:
    b = bc.Builder("ball")
    b.body("ball", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    b.joint("height", "prismatic", "ground", "ball", axis=(0, 0, 1))
    return b.build()


def main() -> None:
    bounce = bc.Event("bounce", lambda t, q, v, x, u: q[0], "switch", -1, lambda t, q, v, x, u: {"v": -RESTITUTION * v})
    with tempfile.TemporaryDirectory() as folder:
        path = bc.export(ball(), Path(folder) / "ball.fmu", to="fmu2", events=[bounce])
        imported = simulate_fmu(
            str(path), stop_time=SECONDS, start_values={"height.q": HEIGHT}, output=["height.q"],
            fmi_type="ModelExchange", output_interval=0.1,
        )  # fmt: skip
    run = bc.simulate(ball(), SECONDS, q0=[HEIGHT], events=[bounce], step=1e-3, every=0.01)
    figure = Figure(figsize=(6.4, 2.6))
    axes = figure.subplots()
    axes.plot(run.t, run["height.q"], label="bc.simulate, steps of 1 ms")
    axes.plot(imported["time"], imported["height.q"], ".", label="FMU 2.0, Model Exchange, CVode of FMPy")
    axes.set(xlabel="time [s]", ylabel="height [m]", title="a ball that bounces: an event in the run and in the FMU")
    axes.legend(fontsize=7)
    figure.tight_layout()
    write(figure, "export_ball")


if __name__ == "__main__":
    main()
