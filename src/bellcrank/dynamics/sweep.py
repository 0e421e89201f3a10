"""What the methods share: the joints' motion at a state, and wrenches brought to the bodies."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.kinematics import poses
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.motion import NO_FORCE, NO_MOTION, Force, Motion
from bellcrank.spatial.vector import vec

Vector = Sequence[Scalar]
Wrenches = Sequence[Vector] | None  # one [force, moment] for each frame that is pushed


def along(S: Sequence[Motion], rates: Vector) -> Motion:
    """S v: the motion that the rates make along the columns."""
    total = NO_MOTION
    for s, rate in zip(S, rates, strict=True):
        total = total + s * rate
    return total


def own(link: Link, x: Vector) -> list[Scalar]:
    """The elements of a velocity-like vector that belong to a joint."""
    return [x[i] for i in link.v_index]


def external(tree: Tree, q: Vector, frames: Sequence[str], wrench: Wrenches) -> list[Force]:
    """Each body's outer force about its F. A wrench is [force, moment] in world axes, at the origin of its frame."""
    forces = [NO_FORCE] * len(tree.links)
    if not frames or wrench is None:
        return forces
    R_WF = [R for R, _ in poses(tree, q)]
    for name, w in zip(frames, wrench, strict=True):
        step("wrench", name)
        body, _, p = tree.frames[name]
        if body >= 0:
            f, n = R_WF[body].T @ vec(w[:3]), R_WF[body].T @ vec(w[3:])
            forces[body] = forces[body] + Force(n + p.cross(f), f)
    return forces
