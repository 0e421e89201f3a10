"""Internal frames in which as many constants as possible are 0 or 1: from a mechanism's parts to its Tree.

The user's frames stay as given at the API; inside, a body's frame F has z along its joint's axis and x along the
common perpendicular to the axis of its largest subtree (W. Khalil and J. F. Kleinfinger, A new geometric notation for
open and closed-loop robots, 1986); where it carries nothing, x points to its own mass. From frame to frame the
constant moves are then: shift by a along x, turn about x by alpha, shift by d along z, with an additional turn about z
by gamma only for further branches. Quarter turns are exact.

Free parameters: any frame with z along the axis is right, so frames are chosen by nominal values and are constants,
except for an axis that is free itself (model/pose.py). Expressions of parameters stay expressions and are not replaced
by 0 or 1. A foot of a perpendicular that a parameter would move is replaced by the origin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bellcrank.model.flexible_body import FlexibleBody, Modal, ModalNode, flexible_body
from bellcrank.model.joints import KINDS
from bellcrank.model.kind import Kind
from bellcrank.model.parts import Array, Body, Frame, Joint, Number, Triple
from bellcrank.model.pose import (
    RELATIVE_NOISE,
    Pose,
    align_with_free_axis,
    clean_product,
    constant_part,
    constant_poses,
    nominal_joint,
    orthonormal_axes,
    perpendicular,
    zero_noise,
)
from bellcrank.model.tree import Link, Tree
from bellcrank.parameters import has_free, nominal
from bellcrank.spatial.inertia import Inertia, about_centre
from bellcrank.spatial.moves import FullRotation, Move, Shift, Transform, Turn
from bellcrank.spatial.vector import Mat, Vec, sym, vec

# Axes with a smaller sine than this have no reliable common perpendicular.
PARALLEL_SINE = 1e-6
# Largest distance of a foot, in sizes of the mechanism: inertias about farther points lose their digits.
MAX_FOOT_SIZES = 10.0
# Lines closer than this, relative to the farthest foot, are taken to meet: the direction between them would be rounding
# error.
MEETING_GAP = 1e-8


def tree_of(
    bodies: Sequence[Body],
    joints: Sequence[Joint],
    frames: Mapping[str, Frame],
    gravity: Triple,
    ground: str,
    flexible: Sequence[Modal] = (),
) -> Tree:
    """Return the Tree of a mechanism's parts.

    Parameters
    ----------
    bodies
        The moving bodies.
    joints
        joints[i] moves bodies[i]; parents before children.
    frames
        The user's frames.
    gravity
        In the world, m/s^2.
    ground
        Name of the ground.
    flexible
        Modes of flexible bodies.
    """
    index = {ground: -1} | {b.name: i for i, b in enumerate(bodies)}
    parent = [index[j.parent] for j in joints]
    main = _main_children(parent)
    size = _longest_offset(bodies, joints, parent)
    joint_poses = [_given_pose(j) for j in joints]
    nodes = {node.joint: node for body in flexible for node in body.nodes}

    # F of every body in the user's body frame; key -1: F of the ground in the world.
    F: dict[int, Pose] = {-1: _ground_frame(joints, joint_poses, main[-1], nominal(gravity))}
    links: list[Link] = []
    poses: dict[tuple[object, ...], Pose] = {}
    indices, nq, nv = _coordinate_indices(joints)
    known_links: dict[tuple[object, ...], tuple[Pose, Kind, Transform, Inertia]] = {}
    for i, j in enumerate(joints):
        up, child, b = parent[i], main[i], bodies[i]
        main_child = (joint_poses[child], joints[child]) if child is not None else None
        # Identical numbers give identical links: large mechanisms repeat, and each is computed once.
        frame_keys = _frame_key(j), main_child and _frame_key(main_child[1])
        key = id(F[up]), up < 0, *frame_keys, b.mass, b.com, b.inertia, j.name in nodes and i
        if key not in known_links:
            pose, kind, moves, inertia = _internal_link(j, b, joint_poses[i], F[up], main_child, size, up < 0, nodes)
            pose_key = (i,) if has_free(pose.R, pose.p) else (pose.R.tobytes(), pose.p.tobytes())
            known_links[key] = poses.setdefault(pose_key, pose), kind, moves, inertia
        F[i], kind, moves, inertia = known_links[key]
        links.append(Link(b.name, up, j, kind, moves, inertia, *indices[i]))
    g = zero_noise(clean_product(F[-1].R.T, np.asarray(gravity)), max(1e-3, float(np.linalg.norm(nominal(gravity)))))
    ground_moves, user_frames = Transform(_constant_moves(F[-1])), _user_frames(frames, index, F, size)
    bodies_with_modes = tuple(_flexible_body(body, index, F, links) for body in flexible)
    return Tree(tuple(links), nq, nv, vec(g.tolist()), ground_moves, user_frames, flexible=bodies_with_modes)


def _frame_key(j: Joint) -> tuple[object, ...]:
    """Return the properties of a joint that determine its frame."""
    return j.kind, j.rotation, j.point, j.axis, j.second_axis, j.pitch


def _internal_link(
    j: Joint,
    b: Body,
    joint_pose: Pose,
    parent_frame: Pose,
    main_child: tuple[Pose, Joint] | None,
    size: float,
    on_ground: bool,
    nodes: Mapping[str, ModalNode],
) -> tuple[Pose, Kind, Transform, Inertia]:
    """Return F of a body, and in it the joint's kind, its placement and the body's inertia.

    parent_frame: F of its parent. main_child: pose and joint of its main child.
    """
    at_zero = parent_frame.inverse() @ joint_pose  # the user's body frame in the parent's F
    F = _body_frame(
        nominal_joint(j), nominal(at_zero), nominal(main_child), constant_part(np.asarray(b.com)), MAX_FOOT_SIZES * size
    )
    if has_free(j.axis, j.second_axis, main_child or at_zero):
        F = Pose(align_with_free_axis(F.R, j), np.zeros(3))
    place = at_zero @ F
    p = zero_noise(place.p, size + float(np.linalg.norm(nominal(j.point))) if on_ground else size)
    kind, moves = _kind_and_moves(j, place.R, p, size, nodes)
    return F, kind, Transform(moves), _link_inertia(b, F, size)


def _flexible_body(body: Modal, index: Mapping[str, int], F: Mapping[int, Pose], links: Sequence[Link]) -> FlexibleBody:
    i = index[body.body]
    seen = F[i].inverse()
    node = next(link for link in links if link.joint.name == body.nodes[0].joint)
    return flexible_body(body.seen_from(body.body, nominal(seen.R), nominal(seen.p)), i, node.q_index, node.v_index)


def _main_children(parent: Sequence[int]) -> dict[int, int | None]:
    """Return for each body, and for the ground (-1), the child that carries the largest subtree."""
    weight = [1] * len(parent)  # bodies in the subtree
    children: dict[int, list[int]] = {i: [] for i in range(-1, len(parent))}
    for i in reversed(range(len(parent))):
        children[parent[i]].append(i)
        if parent[i] >= 0:
            weight[parent[i]] += weight[i]
    return {up: max(c, key=lambda i: (weight[i], -i)) if c else None for up, c in children.items()}


def _longest_offset(bodies: Sequence[Body], joints: Sequence[Joint], parent: Sequence[int]) -> float:
    """Return the longest offset of the mechanism, without joints on the ground, whose position is arbitrary."""
    lengths = [j.point for j, up in zip(joints, parent, strict=True) if up >= 0] + [b.com for b in bodies]
    return max(1e-9, *(float(np.linalg.norm(x)) for x in nominal(lengths))) if lengths else 1.0


def _kind_and_moves(
    j: Joint, R: Array, p: Array, size: float, nodes: Mapping[str, ModalNode]
) -> tuple[Kind, list[Move]]:
    """Return the kind of joint j with its offsets, and the constant moves before it.

    R and p are its F in the F of its parent, at zero.
    """
    kind_options = {"node": nodes[j.name]} if j.name in nodes else {"pitch": j.pitch} if j.kind == "helical" else {}
    kind = KINDS[j.kind](**kind_options)
    turns, theta = _constant_turns(R)
    if kind.has_axis:
        along: Number = p @ R[:, 2] if j.kind != "revolute" else 0.0  # an offset of the slide instead of a shift
        p = zero_noise(p - along * R[:, 2], size)
        has_offset = has_free(along) or abs(along) > RELATIVE_NOISE * size
        kind = replace(kind, angle0=theta, distance0=along if has_offset else 0.0)
    else:
        turns.append(_constant_turn(2, theta))
    p, offset = _split_shift(p, R[:, 2], size)
    moves: list[Move] = [Shift(vec(p.tolist()))] if p.any() else []
    moves += [t for t in turns if not (isinstance(t, Turn) and t.c == 1.0 and t.s == 0.0)]
    return kind, moves + ([Shift(Vec(0.0, 0.0, offset))] if offset else [])


def _split_shift(p: Array, z: Array, size: float) -> tuple[Array, float]:
    """Split a shift p into a rest and a shift along z: two shifts by one number each are cheaper than one by three.

    The shift along z may follow the constant turns, because a turn about z does not change it.
    """
    if has_free(p, z):
        return p, 0.0
    offset = float(p @ z)
    perpendicular = zero_noise(p - offset * z, size)
    return (perpendicular, offset) if p.all() and np.count_nonzero(perpendicular) == 1 else (p, 0.0)


def _coordinate_indices(joints: Sequence[Joint]) -> tuple[list[tuple[tuple[int, ...], tuple[int, ...]]], int, int]:
    """Return the indices of each joint's coordinates in q and v, nq and nv; a mimic joint has those of its master."""
    indices_of_joints, q, v = {}, 0, 0
    for j in joints:
        if j.mimic is None:
            kind = KINDS[j.kind]
            indices_of_joints[j.name] = tuple(range(q, q + kind.nq)), tuple(range(v, v + kind.nv))
            q, v = q + kind.nq, v + kind.nv
    return [indices_of_joints[j.name if j.mimic is None else j.mimic.joint] for j in joints], q, v


def _ground_frame(joints: Sequence[Joint], poses: Sequence[Pose], first: int | None, gravity: Triple) -> Pose:
    """Return the ground's frame, at the main joint, turned so that gravity has no y component."""
    if first is None:
        return Pose(np.eye(3), np.zeros(3))
    (main_pose,), joint = constant_poses([poses[first]]), nominal_joint(joints[first])
    if not KINDS[joint.kind].has_axis:
        return main_pose
    z = main_pose.R @ np.asarray(joint.axis)
    g = np.asarray(gravity)
    across = g - (g @ z) * z
    x = perpendicular(z, across / np.linalg.norm(across) if np.linalg.norm(across) > 1e-9 else main_pose.R[:, 0])
    return Pose(orthonormal_axes(z, x), main_pose.p)


def _body_frame(j: Joint, at_zero: Pose, child: tuple[Pose, Joint] | None, com: Array, reach: float) -> Pose:
    """Return F in the user's body frame."""
    kind = KINDS[j.kind]
    z = np.asarray(j.axis)
    if j.kind == "universal":
        return Pose(orthonormal_axes(z, np.asarray(j.second_axis)), np.zeros(3))
    if j.kind == "planar":
        return Pose(orthonormal_axes(z, perpendicular(z, np.array([1.0, 0.0, 0.0]))), np.zeros(3))
    if not kind.has_axis:
        return Pose(np.eye(3), np.zeros(3))
    towards, foot = _common_perpendicular(at_zero.R.T @ np.array([0.0, 0.0, 1.0]), -at_zero.R.T @ at_zero.p, z, reach)
    if child is not None:
        pose, next_joint = child
        direction = pose.R @ np.asarray(next_joint.axis) if KINDS[next_joint.kind].has_axis else z
        next_towards, foot = _common_perpendicular(direction, pose.p, z, reach)
        towards = next_towards if next_towards is not None else towards
    # Without a direction to align with, x is parallel to the parent's, so that the angle has no offset.
    x = towards if towards is not None else perpendicular(z, at_zero.R.T @ np.array([1.0, 0.0, 0.0]))
    if child is None and min(abs(com @ x), abs(com @ np.cross(z, x))) > MEETING_GAP * reach:
        x = com  # towards the centre of mass: one first moment instead of two
    return Pose(orthonormal_axes(z, x), foot * z)


def _common_perpendicular(direction: Array, point: Array, z: Array, reach: float) -> tuple[Array | None, float]:
    """Return the direction of the common perpendicular of axis z and another line, and its foot on z.

    z goes through the origin, the other line through the point.
    """
    n = np.cross(z, direction)
    length = float(np.linalg.norm(n))
    if length > PARALLEL_SINE:
        foot = float(np.cross(point, direction) @ n) / length**2
        if abs(foot) <= reach:
            return n / length, foot
    across = point - (point @ z) * z
    gap = float(np.linalg.norm(across))
    return (across / gap if gap > MEETING_GAP * reach else None), float(point @ z)


def _zxz_angles(R: Array) -> tuple[float, float, float]:
    """Return angles with R = Rz(gamma) Rx(alpha) Rz(theta).

    gamma is 0 where it is arbitrary and in [-pi/2, pi/2] otherwise; quarter turns are exact.
    """
    s = math.hypot(R[0, 2], R[1, 2])
    if s < RELATIVE_NOISE:
        gamma, alpha = 0.0, 0.0 if R[2, 2] > 0 else math.pi
    else:
        gamma, sign = math.atan2(R[0, 2], -R[1, 2]), 1.0
        if abs(gamma) > math.pi / 2 + RELATIVE_NOISE:  # use the opposite turn, so that gamma = pi becomes 0
            gamma, sign = gamma - math.copysign(math.pi, gamma), -1.0
        gamma, alpha = _exact_quarter(gamma), _exact_quarter(sign * math.atan2(s, R[2, 2]))
    # theta follows from gamma and alpha, which compensates a nearly arbitrary gamma.
    cg, sg, (x, y, z) = math.cos(gamma), math.sin(gamma), R[:, 0]
    theta = math.atan2(math.cos(alpha) * (cg * y - sg * x) + math.sin(alpha) * z, cg * x + sg * y)
    return gamma, alpha, _exact_quarter(theta)


def _constant_turns(R: Array) -> tuple[list[Move], float]:
    """Return R as constant turns and the remaining angle about z; as one rotation where it depends on parameters."""
    if not has_free(R):
        gamma, alpha, theta = _zxz_angles(R)
        return [_constant_turn(2, gamma), _constant_turn(0, alpha)], theta
    rows = zero_noise(R, 1.0).tolist()
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        if rows[k][k] == 1.0 and rows[k][i] == rows[i][k] == rows[k][j] == rows[j][k] == 0.0:
            return [Turn(k, rows[i][i], rows[j][i])], 0.0
    return [FullRotation(Mat(*(vec(row) for row in rows)))], 0.0


def _exact_quarter(angle: float) -> float:
    """Return the angle, or the multiple of a quarter turn within rounding."""
    nearest = round(angle / (math.pi / 2)) * (math.pi / 2)
    return nearest if abs(angle - nearest) < RELATIVE_NOISE else angle


def _constant_turn(axis: int, angle: float) -> Turn:
    quarters = angle / (math.pi / 2)
    if quarters == round(quarters):
        return Turn(axis, *[(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][round(quarters) % 4])
    return Turn(axis, math.cos(angle), math.sin(angle))


def _constant_moves(pose: Pose) -> list[Move]:
    gamma, alpha, theta = _zxz_angles(pose.R)
    return [Shift(vec(pose.p.tolist())), _constant_turn(2, gamma), _constant_turn(0, alpha), _constant_turn(2, theta)]


def _given_pose(f: Frame | Joint) -> Pose:
    return Pose(np.asarray(f.rotation), np.asarray(f.point))


def _user_frames(
    frames: Mapping[str, Frame], index: Mapping[str, int], F: Mapping[int, Pose], size: float
) -> dict[str, tuple[int, Mat, Vec]]:
    """Return the user's frames in the internal frames of their bodies."""
    known_poses: dict[tuple[object, ...], tuple[Mat, Vec]] = {}
    user_frames = {}
    for f in frames.values():
        body = index[f.body]
        key = id(F[body]), f.rotation, f.point
        if key not in known_poses:
            known_poses[key] = _clean_pose(F[body].inverse() @ _given_pose(f), size)
        user_frames[f.name] = (body, *known_poses[key])
    return user_frames


def _clean_pose(pose: Pose, size: float) -> tuple[Mat, Vec]:
    rows = zero_noise(pose.R, 1.0).tolist()
    return Mat(vec(rows[0]), vec(rows[1]), vec(rows[2])), vec(zero_noise(pose.p, size).tolist())


def _link_inertia(b: Body, F: Pose, size: float) -> Inertia:
    com = zero_noise(clean_product(F.R.T, np.asarray(b.com) - F.p), size)
    I = clean_product(clean_product(F.R.T, np.asarray(b.inertia)), F.R)
    return about_centre(b.mass, vec(com.tolist()), sym(zero_noise(I, float(np.abs(nominal(I)).max()) or 1.0).tolist()))
