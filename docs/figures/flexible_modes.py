"""Draw mode shapes and a large deflection as on docs/flexible.md: `python docs/figures/flexible_modes.py`."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

DIRECTIONS = {"sideways (y)": 1, "up (z)": 2}


def boom() -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies, Hz, and displacements (nodes, 6, modes) of the tapered boom of the page."""
    b = bc.Builder("crane")
    sections = (bc.Section.box(0.20, 0.30, 0.008), bc.Section.box(0.12, 0.15, 0.008))
    table = b.beam("boom", length=8.0, section=sections, material=bc.Material.steel(), elements=16, modes=2,
                   below=100.0, damping=0.01)  # fmt: skip
    assert table is not None
    shapes = np.asarray(table.shapes)
    return table.hertz, shapes.reshape(-1, 6, shapes.shape[-1])


def strip() -> bc.Mechanism:
    """Return a thin strip as a large beam."""
    b = bc.Builder("strip")
    nodes = {f"p{k}": k / 8 for k in range(1, 9)}
    b.beam("strip", length=1.0, section=bc.Section.rectangle(0.05, 0.0005), material=bc.Material.steel(), elements=16,
           motions=("bend_y",), rayleigh=(0.0, 0.01), large=True, nodes=nodes)  # fmt: skip
    b.joint("clamp", "fixed", "ground", "strip")
    return b.build()


def main() -> None:
    """Draw the shapes of the modes by direction, and the strip while it falls."""
    figure = Figure(figsize=(9.0, 3.0))
    panels = figure.subplots(1, 3)
    hertz, shapes = boom()
    along = np.linspace(0.0, 8.0, len(shapes))
    for axes, (name, direction) in zip(panels, DIRECTIONS.items(), strict=False):
        for k, frequency in enumerate(hertz):
            shape = shapes[:, direction, k]
            if abs(shape).max() < 0.1 * abs(shapes[:, 1:3, k]).max():
                continue
            axes.plot(along, shape / shape[abs(shape).argmax()], label=f"mode {k + 1}, {frequency:.1f} Hz")
        axes.set_title(f"boom: {name}", fontsize=9)
        axes.set_xlabel("along the boom, m")
        axes.legend(fontsize=7)
    m = strip()
    run = bc.simulate(m, 0.6, integrator="rodas4", every=0.1)
    places = [np.zeros((len(run.t), 3)), *(m.pose(run.q, f"strip.p{k}")[:, :3, 3] for k in range(1, 9))]
    for row, line in enumerate(np.stack(places, axis=1)):
        panels[2].plot(line[:, 0], line[:, 2], color=(0.1, 0.3, 0.5 + 0.08 * row), label=f"{run.t[row]:.1f} s")
    panels[2].set_aspect("equal")
    panels[2].set_title("large=True: a thin strip is let go", fontsize=9)
    panels[2].set_xlabel("x, m")
    panels[2].set_ylabel("z, m")
    figure.tight_layout()
    write(figure, "flexible_modes")


if __name__ == "__main__":
    main()
