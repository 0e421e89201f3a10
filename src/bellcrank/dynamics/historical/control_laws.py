"""Control laws that are scheduled together with the equations of motion (Schäfer 1992, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bellcrank.dynamics import rnea
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step

STIFFNESS, DAMPING = 100.0, 20.0  # gains of the drives; any values except 0 and 1 cost the same


def proportional(tree: Tree, y: Vector, yd: Vector, w: Vector) -> list[Scalar]:
    """Return joint forces of a spring to the desired coordinates, with a damper.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    y
        Joint coordinates.
    yd
        Joint velocities.
    w
        Desired coordinates.
    """
    step("u")
    return [STIFFNESS * (a - b) - DAMPING * c for a, b, c in zip(w, y, yd, strict=True)]


def computed_torque(tree: Tree, y: Vector, yd: Vector, w: Vector) -> list[Scalar]:
    """Return the joint forces for the accelerations that the proportional law requests, by inverse dynamics.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    y
        Joint coordinates.
    yd
        Joint velocities.
    w
        Desired coordinates.
    """
    return list(rnea.inverse_dynamics(tree, y, yd, proportional(tree, y, yd, w)))


CONTROL_LAWS: Mapping[str, Callable[..., list[Scalar]]] = {
    "none": lambda tree, y, yd, w: list(w),  # external forces
    "proportional": proportional,
    "computed_torque": computed_torque,
}
