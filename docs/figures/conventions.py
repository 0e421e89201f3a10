"""Draw docs/figures/conventions.svg: frames and the axis of a joint, and the sign of a reaction.

Command: `python docs/figures/conventions.py`
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from svg_file import write

import bellcrank as bc

ANGLE = 0.6  # rad, of the hinge in the left panel
ARROW = {"width": 0.004, "angles": "xy", "scale_units": "xy", "scale": 1.0}


def crank() -> bc.Mechanism:
    """Return a body on a hinge about the world's -y, so that a positive angle turns x towards z."""
    b = bc.Builder("crank")
    b.body("arm", mass=1.0, com=(0.9, 0, 0.5), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "arm", point=(0.5, 0, 0.5), axis=(0, -1, 0))
    b.frame("tool", "arm", point=(1.5, 0, 0.5))
    return b.build()


def axes_of(axes: Axes, X: np.ndarray, name: str, colour: str, label_at: tuple[float, float]) -> None:
    """Draw the x and z axes of the frame with the pose `X`, seen along the world's y."""
    x, z = X[0, 3], X[2, 3]
    for column, label in ((0, "x"), (2, "z")):
        dx, dz = 0.3 * X[0, column], 0.3 * X[2, column]
        axes.quiver(x, z, dx, dz, color=colour, **ARROW)
        axes.text(x + 1.2 * dx, z + 1.2 * dz, label, color=colour, ha="center", va="center")
    axes.text(*label_at, name, color=colour, va="center")


def frames(axes: Axes) -> None:
    """Draw the world, the frame of a body on its joint, and a frame on the body."""
    m = crank()
    arm, tool = m.pose([ANGLE], "arm"), m.pose([ANGLE], "tool")
    axes.plot([arm[0, 3], tool[0, 3]], [arm[2, 3], tool[2, 3]], color="0.75", linewidth=8, solid_capstyle="round")
    axes.plot([arm[0, 3], arm[0, 3] + 1.0], [arm[2, 3]] * 2, "k:", linewidth=0.8)
    turn = np.linspace(0.0, ANGLE, 30)
    axes.plot(arm[0, 3] + 0.75 * np.cos(turn), arm[2, 3] + 0.75 * np.sin(turn), "k-", linewidth=0.8)
    axes.text(arm[0, 3] + 0.8, arm[2, 3] + 0.12, "q > 0")
    axes_of(axes, np.eye(4), "ground (world)", "black", (0.05, -0.12))
    axes_of(axes, arm, 'frame "arm", on the joint', "tab:blue", (0.55, 0.36))
    axes_of(axes, tool, 'frame "tool"', "tab:red", (1.3, 0.92))
    axes.set(title="frames (the joint axis points to you)", xlim=(-0.35, 2.0), ylim=(-0.25, 1.6), aspect="equal")


def reaction(axes: Axes) -> None:
    """Draw the forces on the pendulum of the page at its lowest point."""
    bob = bc.zoo.pendulum(length=0.5, mass=2.0)
    fz = bob.reactions([0.0], [3.0], [0.0])[0][2]
    axes.plot([0, 0], [0, -0.5], color="0.75", linewidth=5)
    axes.plot([0], [-0.5], "o", color="0.4", markersize=14)
    axes.plot([0], [0], "o", color="black", markersize=5)
    newton = 0.6 / fz  # m of arrow for a newton
    axes.quiver(0, 0, 0, newton * fz, color="tab:blue", **ARROW)
    axes.text(0.06, 0.5 * newton * fz, f"reactions: [0 0 {fz:.2f} 0 0 0]\nfrom the ground on the bob", color="tab:blue")
    axes.quiver(0, -0.5, 0, -newton * 2.0 * 9.81, color="tab:red", **ARROW)
    axes.text(0.06, -0.75, "weight 19.62 N", color="tab:red")
    axes.quiver(0.0, -0.5, -0.3, 0, color="tab:green", **ARROW)  # v > 0 turns z towards x
    axes.text(-0.7, -0.42, "1.5 m/s", color="tab:green")
    axes.set(title="sign of a reaction", xlim=(-0.75, 1.35), ylim=(-1.2, 0.75), aspect="equal")


def main() -> None:
    figure = Figure(figsize=(7.2, 3.4))
    left, right = figure.subplots(1, 2)
    frames(left)
    reaction(right)
    for axes in (left, right):
        axes.set(xlabel="x [m]", ylabel="z [m]")
    figure.tight_layout()
    write(figure, "conventions")


if __name__ == "__main__":
    main()
