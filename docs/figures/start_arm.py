"""Draw docs/figures/start_arm.svg: the arm of docs/start/arm.md, held by a controller, with three masses of link 2.

Command: `python docs/figures/start_arm.py`
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

MASSES = (10.0, 15.0, 20.0)  # kg
START = (0.0, 0.2, 0.0, 0.0, 0.0, 0.0)


def hold(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[Any]:
    return [
        2000 * (u["aim"] - q[0]) - 300 * v[0],
        -900 * q[1] - 150 * v[1],
        *(-80 * q[k] - 8 * v[k] for k in range(2, 6)),
    ]


def main() -> None:
    plant = bc.system(bc.zoo.puma600().free("link2.mass"), control=hold, inputs={"aim": 0.5})
    run = bc.simulate(plant, 2.0, q0=list(START), every=0.02)
    heavy = bc.simulate(plant, 2.0, q0=list(START), every=0.02, parameters={"link2.mass": list(MASSES)})
    figure = Figure(figsize=(7.2, 2.6))
    left, right = figure.subplots(1, 2)
    for joint in range(3):
        left.plot(run.t, run.q[:, joint], label=f"joint{joint + 1}")
    left.set(xlabel="time [s]", ylabel="angle [rad]", title="the held arm")
    left.legend()
    for mass, angle in zip(MASSES, heavy["joint2.q"], strict=True):
        right.plot(run.t, angle, label=f"{mass:g} kg")
    right.set(xlabel="time [s]", ylabel="joint2.q [rad]", title="three masses of link 2")
    right.legend()
    figure.tight_layout()
    write(figure, "start_arm")


if __name__ == "__main__":
    main()
