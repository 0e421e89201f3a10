"""What the methods share: the joints' motion at a state, and the forces on the bodies and on the coordinates."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics import springs
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import IDENTITY, NO_FORCE, NO_MOTION, ZERO, Force, Mat, Motion, Vec, vec

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


def poses(tree: Tree, q: Vector) -> list[tuple[Mat, Vec]]:
    """R_WF and p_WF of every body."""
    ground = tree.ground.pose(IDENTITY, ZERO)
    found: list[tuple[Mat, Vec]] = []
    for link in tree.links:
        step("pose", link.name)
        found.append(link.transform(q).pose(*(found[link.parent] if link.parent >= 0 else ground)))
    return found


def rate(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """dq/dt, joint by joint."""
    return of_each_joint(tree, "rate", q, v)


def of_each_joint(tree: Tree, function: str, q: Vector, v: Vector) -> list[Scalar]:
    """What the kinds of the joints say of their own coordinates, those that follow others aside."""
    out: list[Scalar] = []
    for link in tree.links:
        if link.joint.mimic is None:
            step(function, link.name)
            out += getattr(link.kind, function)([q[i] for i in link.q_index], [v[i] for i in link.v_index])
    return out


def passive_torque(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Damping, friction and springs in the joints, and springs between points, as forces on the coordinates."""
    out = springs.torque(tree, q, v) if tree.springs else [0.0] * tree.nv
    for body in tree.flexible:
        for i, f in zip(body.v_index, body.passive(q, v), strict=True):
            out[i] = out[i] + f
    for link in tree.links:
        step("passive", link.name)
        for i, f in zip(link.v_index, link.passive(q, v), strict=True):
            out[i] = out[i] + f
    return out


def felt(tree: Tree, q: Vector, forces: Sequence[Force]) -> list[Scalar]:
    """J^T f: forces on the bodies, each about its own frame, as the coordinates feel them."""
    f = list(forces)
    out: list[Scalar] = [0.0] * tree.nv
    for i, link in reversed(list(enumerate(tree.links))):
        step("felt", link.name)
        for s, k in zip(link.subspace(q), link.v_index, strict=True):
            out[k] = out[k] + s.dot(f[i])
        if link.parent >= 0:
            f[link.parent] = f[link.parent] + link.transform(q).force(f[i])
    return out


def right_hand_side(
    tree: Tree, q: Vector, v: Vector, tau: Vector, C: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """tau + passive + J^T wrench - C."""
    passive, outer = passive_torque(tree, q, v), [0.0] * tree.nv
    if frames:
        outer = felt(tree, q, external(tree, q, frames, wrench))
    step("tau - C")
    return [t + p + o - c for t, p, o, c in zip(tau, passive, outer, C, strict=True)]
