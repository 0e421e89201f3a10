"""Draw docs/figures/records.svg with `run.plot`: a pole that is pushed, with its energy and the three powers.

Command: `python docs/figures/records.py`
"""

from __future__ import annotations

from svg_file import write

import bellcrank as bc


def main() -> None:
    b = bc.Builder("pole")
    b.body("rod", mass=2.0, com=(0, 0, 0.5), inertia=(0.2, 0.2, 0.01))
    b.joint("hinge", "revolute", "ground", "rod", axis=(0, 1, 0), damping=0.3, stiffness=40.0)
    b.frame("tip", "rod", point=(0, 0, 1))
    pushed = bc.system(
        b.build(),
        control=lambda t, q, v, x, u: [-2.0 * v[0]],
        forces={"tip": lambda t, X, V: ([3.0, 0.0, 0.0], [0.0, 0.0, 0.0])},
    )
    run = bc.simulate(pushed, 1.0, q0=[0.2], every=0.005)
    columns = ("hinge.q", "energy", "drive_power", "passive_power", "external_power")
    figure = run.plot(*columns)
    figure.set_size_inches(7.2, 5.0)
    write(figure, "records")


if __name__ == "__main__":
    main()
