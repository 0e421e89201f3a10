"""Draw docs/figures/digging_ground.svg: a section of the ground while a machine digs, and the resistance of soils.

Command: `python docs/figures/digging_ground.py`
"""

from __future__ import annotations

from math import radians

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

from bellcrank.excavators.linkage_machine import machine
from bellcrank.excavators.offline import dug
from bellcrank.ground.soils import SOILS, plane_of_failure, resistance

SECONDS, SHOWN = 12.0, (0.0, 4.0, 6.0, 8.0, 12.0)
WIDTH, RAKE = 1.2, radians(60.0)  # m, of the blade


def main() -> None:
    figure = Figure(figsize=(7.2, 2.6))
    left, right = figure.subplots(1, 2)
    m = machine()
    ground = dug(m, SECONDS, m.pilots["dig"](), integrator="rk4").ground
    end = ground.at(SECONDS)
    row = int(np.argmin(end.min(axis=1)))
    x = ground.cell * (np.arange(ground.rows) - ground.rows // 2)
    used = np.flatnonzero(np.abs(end[row]) > 1e-3)
    part = slice(max(used[0] - 4, 0), used[-1] + 5)
    for t in SHOWN:
        left.plot(x[part], ground.at(t)[row][part], label=f"{t:g} s")
    left.set(xlabel="x [m]", ylabel="height [m]", title="section of the ground")
    left.legend(fontsize=7)
    depths = np.linspace(0.02, 0.5, 25)
    for name, soil in SOILS.items():
        beta = [plane_of_failure(soil, WIDTH, RAKE, 0.0, d) for d in depths]
        force = [resistance(soil, WIDTH, RAKE, 0.0, b).force(d) / 1e3 for b, d in zip(beta, depths, strict=True)]
        right.semilogy(depths, force, label=name)
    right.set(xlabel="depth [m]", ylabel="force [kN]", title="resistance: blade of 1.2 m, rake 60°")
    right.legend(fontsize=6, ncols=2)
    figure.tight_layout()
    write(figure, "digging_ground")


if __name__ == "__main__":
    main()
