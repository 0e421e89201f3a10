"""Frames in which as many constants as possible are 0 or 1: from a mechanism's parts to its Tree.

The user's frames stay as given at the API; inside, a body's frame F has z along its joint's axis and x along the
common perpendicular to the axis of its largest subtree (W. Khalil and J. F. Kleinfinger, A new geometric notation for
open and closed-loop robots, 1986); where it carries nothing, x points to its own mass. From frame to frame the
constant moves are then: shift by a along x, turn about x by alpha, shift by d along z, with an additional turn about z
by gamma only for further branches. Quarter turns are exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bellcrank.model.joints import KINDS
from bellcrank.model.parts import Array, Body, Frame, Joint, Triple
from bellcrank.model.tree import Link, Tree
from bellcrank.spatial.inertia import Inertia, about_centre
from bellcrank.spatial.moves import Move, Shift, Transform, Turn
from bellcrank.spatial.vector import Mat, Vec, sym, vec

# Geometry below this (relative to the mechanism's size, or in radians) is the rounding of our own arithmetic.
NOISE = 1e-13
# Axes closer to parallel than this have no trustworthy common perpendicular.
PARALLEL = 1e-6
# Nor is one any good whose foot is further away than this many sizes of the mechanism: inertias about it would drown.
FAR = 10.0
# And lines that pass closer than this (in units of FAR) are taken to meet: their direction apart would be rounding.
CLOSE = 1e-8


@dataclass(frozen=True)
class _Pose:
    R: Array
    p: Array

    def __matmul__(self, o: _Pose) -> _Pose:
        return _Pose(self.R @ o.R, self.p + self.R @ o.p)

    def inverse(self) -> _Pose:
        return _Pose(self.R.T, -self.R.T @ self.p)


def tree_of(
    bodies: Sequence[Body], joints: Sequence[Joint], frames: Mapping[str, Frame], gravity: Triple, ground: str
) -> Tree:
    index = {ground: -1} | {b.name: i for i, b in enumerate(bodies)}
    parent = [index[j.parent] for j in joints]
    weight = [1] * len(joints)  # bodies in the subtree
    for i in reversed(range(len(joints))):
        if parent[i] >= 0:
            weight[parent[i]] += weight[i]
    children: dict[int, list[int]] = {i: [] for i in range(-1, len(joints))}
    for i, up in enumerate(parent):
        children[up].append(i)
    main = {up: max(c, key=lambda i: (weight[i], -i)) if c else None for up, c in children.items()}
    # Where the mechanism stands in the world says nothing of its size: joints on the ground do not count.
    lengths = [j.point for j, up in zip(joints, parent, strict=True) if up >= 0] + [b.com for b in bodies]
    size = max(1e-9, *(float(np.linalg.norm(x)) for x in lengths)) if lengths else 1.0
    given = [_Pose(np.asarray(j.rotation), np.asarray(j.point)) for j in joints]

    # F of every body in the user's body frame; -1 is the ground's in the world.
    F: dict[int, _Pose] = {-1: _ground_frame(joints, given, main, gravity)}
    links: list[Link] = []
    for i, j in enumerate(joints):
        at_zero = F[parent[i]].inverse() @ given[i]  # the user's body frame in the parent's F
        child = main[i]
        ahead = (given[child], joints[child]) if child is not None else None
        F[i] = _frame(j, at_zero, ahead, np.asarray(bodies[i].com), FAR * size)
        place = at_zero @ F[i]
        R, p = place.R, _clean(place.p, size if parent[i] >= 0 else size + float(np.linalg.norm(j.point)))
        gamma, alpha, theta = _zxz(R)
        kind = KINDS[j.kind](**({"pitch": j.pitch} if j.kind == "helical" else {}))
        turns: list[Move] = [_constant_turn(2, gamma), _constant_turn(0, alpha)]
        if kind.has_axis:
            along = float(p @ R[:, 2]) if j.kind != "revolute" else 0.0  # a slide starts there instead of being shifted
            p = _clean(p - along * R[:, 2], size)
            kind = replace(kind, angle0=theta, distance0=along if abs(along) > NOISE * size else 0.0)
        else:
            turns.append(_constant_turn(2, theta))
        p, offset = _apart(p, R[:, 2], size)
        moves: list[Move] = [Shift(vec(p.tolist()))] if p.any() else []
        moves += [t for t in turns if not (isinstance(t, Turn) and t.c == 1.0 and t.s == 0.0)]
        moves += [Shift(Vec(0.0, 0.0, offset))] if offset else []
        links.append(
            Link(
                bodies[i].name,
                parent[i],
                j,
                kind,
                Transform(moves),
                _inertia(bodies[i], F[i], size),
                *_indices(i, joints),
            )
        )
    g = _clean(F[-1].R.T @ np.asarray(gravity), max(1e-3, float(np.linalg.norm(gravity))))
    return Tree(
        tuple(links),
        sum(KINDS[j.kind].nq for j in joints if j.mimic is None),
        sum(KINDS[j.kind].nv for j in joints if j.mimic is None),
        vec(g.tolist()),
        Transform(_constant_moves(F[-1])),
        {f.name: (index[f.body], *_in_frame(F[index[f.body]].inverse() @ _pose_of(f), size)) for f in frames.values()},
    )


def _apart(p: Array, z: Array, size: float) -> tuple[Array, float]:
    """A shift p, or what is left of it before one along z: two shifts by one number each are cheaper than one by three.

    The second may stand behind the constant turns, because a turn about z does not change it.
    """
    offset = float(p @ z)
    rest = _clean(p - offset * z, size)
    return (rest, offset) if p.all() and np.count_nonzero(rest) == 1 else (p, 0.0)


def _indices(i: int, joints: Sequence[Joint]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where joint i's coordinates stand in q and v; a mimic's are its master's."""
    m = joints[i].mimic
    at = i if m is None else next(k for k, j in enumerate(joints) if j.name == m.joint)
    before = [KINDS[j.kind] for j in joints[:at] if j.mimic is None]
    q, v, kind = sum(k.nq for k in before), sum(k.nv for k in before), KINDS[joints[at].kind]
    return tuple(range(q, q + kind.nq)), tuple(range(v, v + kind.nv))


def _ground_frame(
    joints: Sequence[Joint], given: Sequence[_Pose], main: Mapping[int, int | None], gravity: Triple
) -> _Pose:
    """The ground's frame is free: put it where the main joint finds it, turned so that gravity has no y component."""
    first = main[-1]
    if first is None or not KINDS[joints[first].kind].has_axis:
        return given[first] if first is not None else _Pose(np.eye(3), np.zeros(3))
    z = given[first].R @ np.asarray(joints[first].axis)
    g = np.asarray(gravity)
    across = g - (g @ z) * z
    x = _some_normal(z, across / np.linalg.norm(across) if np.linalg.norm(across) > 1e-9 else given[first].R[:, 0])
    return _Pose(_axes(z, x), given[first].p)


def _frame(j: Joint, at_zero: _Pose, child: tuple[_Pose, Joint] | None, com: Array, reach: float) -> _Pose:
    """F in the user's body frame."""
    kind = KINDS[j.kind]
    z = np.asarray(j.axis)
    if j.kind == "universal":
        return _Pose(_axes(z, np.asarray(j.second_axis)), np.zeros(3))
    if j.kind == "planar":
        return _Pose(_axes(z, _some_normal(z, np.array([1.0, 0.0, 0.0]))), np.zeros(3))
    if not kind.has_axis:
        return _Pose(np.eye(3), np.zeros(3))
    towards, foot = _towards(at_zero.R.T @ np.array([0.0, 0.0, 1.0]), -at_zero.R.T @ at_zero.p, z, reach)
    if child is not None:
        pose, next_joint = child
        direction = pose.R @ np.asarray(next_joint.axis) if KINDS[next_joint.kind].has_axis else z
        next_towards, foot = _towards(direction, pose.p, z, reach)
        towards = next_towards if next_towards is not None else towards
    # With nothing to look at, it stands as the parent does, with no offset of the angle.
    x = towards if towards is not None else _some_normal(z, at_zero.R.T @ np.array([1.0, 0.0, 0.0]))
    if child is None and min(abs(com @ x), abs(com @ np.cross(z, x))) > CLOSE * reach:
        x = com  # towards the mass: one first moment instead of two
    return _Pose(_axes(z, x), foot * z)


def _axes(z: Array, x: Array) -> Array:
    """A right-handed frame with this z and x in the plane of z and x, orthonormal to the last digit."""
    for _ in range(2):  # once more, because the first difference may be of nearly equal numbers
        x = x - (x @ z) * z
        x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _towards(direction: Array, point: Array, z: Array, reach: float) -> tuple[Array | None, float]:
    """Common perpendicular from the axis z through the origin to another line: its direction and its foot on z."""
    n = np.cross(z, direction)
    length = float(np.linalg.norm(n))
    if length > PARALLEL:
        foot = float(np.cross(point, direction) @ n) / length**2
        if abs(foot) <= reach:
            return n / length, foot
    across = point - (point @ z) * z
    gap = float(np.linalg.norm(across))
    return (across / gap if gap > CLOSE * reach else None), float(point @ z)


def _some_normal(z: Array, hint: Array) -> Array:
    """A unit vector across z, as near to the hint as can be."""
    for h in (hint, np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])):
        x = h - (h @ z) * z
        if np.linalg.norm(x) > 1e-3:
            return x / np.linalg.norm(x)  # type: ignore[no-any-return]
    raise AssertionError("two axes cannot both be along z")


def _zxz(R: Array) -> tuple[float, float, float]:
    """R = Rz(gamma) Rx(alpha) Rz(theta), with gamma = 0 where that is a choice, in [-pi/2, pi/2] otherwise, quarters
    exact.
    """
    s = math.hypot(R[0, 2], R[1, 2])
    if s < NOISE:
        gamma, alpha = 0.0, 0.0 if R[2, 2] > 0 else math.pi
    else:
        gamma, sign = math.atan2(R[0, 2], -R[1, 2]), 1.0
        if abs(gamma) > math.pi / 2 + NOISE:  # turn the other way round, so that gamma = pi becomes 0
            gamma, sign = gamma - math.copysign(math.pi, gamma), -1.0
        gamma, alpha = _quarter(gamma), _quarter(sign * math.atan2(s, R[2, 2]))
    # theta is what is left, so that it makes up for a gamma that is nearly a choice.
    cg, sg, (x, y, z) = math.cos(gamma), math.sin(gamma), R[:, 0]
    return (
        gamma,
        alpha,
        _quarter(math.atan2(math.cos(alpha) * (cg * y - sg * x) + math.sin(alpha) * z, cg * x + sg * y)),
    )


def _quarter(angle: float) -> float:
    """The angle, or the multiple of a quarter turn that rounding hid."""
    nearest = round(angle / (math.pi / 2)) * (math.pi / 2)
    return nearest if abs(angle - nearest) < NOISE else angle


def _constant_turn(axis: int, angle: float) -> Turn:
    quarters = angle / (math.pi / 2)
    if quarters == round(quarters):
        return Turn(axis, *[(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][round(quarters) % 4])
    return Turn(axis, math.cos(angle), math.sin(angle))


def _constant_moves(pose: _Pose) -> list[Move]:
    gamma, alpha, theta = _zxz(pose.R)
    return [Shift(vec(pose.p.tolist())), _constant_turn(2, gamma), _constant_turn(0, alpha), _constant_turn(2, theta)]


def _clean(x: Array, scale: float) -> Array:
    return np.where(np.abs(x) < NOISE * scale, 0.0, x)


def _pose_of(f: Frame) -> _Pose:
    return _Pose(np.asarray(f.rotation), np.asarray(f.point))


def _in_frame(pose: _Pose, size: float) -> tuple[Mat, Vec]:
    rows = _clean(pose.R, 1.0).tolist()
    return Mat(vec(rows[0]), vec(rows[1]), vec(rows[2])), vec(_clean(pose.p, size).tolist())


def _inertia(b: Body, F: _Pose, size: float) -> Inertia:
    com = _clean(F.R.T @ (np.asarray(b.com) - F.p), size)
    I = F.R.T @ np.asarray(b.inertia) @ F.R
    return about_centre(b.mass, vec(com.tolist()), sym(_clean(I, float(np.abs(I).max()) or 1.0).tolist()))
