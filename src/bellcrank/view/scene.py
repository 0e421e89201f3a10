"""Scene of the replay: shapes of the bodies, and the poses of the bodies over time.

A robot whose file has visuals is drawn with these meshes. For any other mechanism, the shapes are derived from joints,
centres of mass and inertias: a body is a bar from its joint to each joint that it carries (and to the user's frames on
it); a body that carries no joint is the box of its mass and inertia. Revolute joints are discs about their axis,
prismatic joints boxes along it on a rod, spherical joints balls.

Data of flexible bodies: sections and skins that move with elastic coordinates, coloured by stress.

bent      indices in q of the elastic coordinates; "q" below are indices in this list
beams     slices of each beam: body, point and axes, corners, and per unit of each q: translation and rotation in body
          axes, stress at the corners (none if the section is unknown)
skins     surfaces of flexible bodies that are not beams: points, translation of each per unit of each q, and the
          lines or faces between them
nodes     bodies that are attached to a flexible body: position, and motion with q. A page that magnifies the
          deformation also moves these bodies and their descendants
parents   parent of each body; -1 is the ground
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bellcrank.dynamics.tree_sweeps import poses as link_poses
from bellcrank.formats.visuals import read_visuals
from bellcrank.meshes import simplify
from bellcrank.model import Body, Frame, Joint, Mechanism
from bellcrank.model.internal_frames import tree_of
from bellcrank.model.joints.modal import MODAL_PREFIX
from bellcrank.model.outline import LOAD_NAMES, BeamSlice, Skin
from bellcrank.model.parts import Array
from bellcrank.parameters.parameter_table import nominal
from bellcrank.view.self_contained_page import packed

Shape = dict[str, Any]
BAR_RADIUS_RATIO = 0.085  # radius of a bar, relative to the typical length of bars
MIN_LENGTH_RATIO = 0.06  # minimum of the typical length, relative to the scene's radius: finer parts would be invisible
MIN_TRIANGLES = 60  # minimum number of triangles of a mesh
SLIDING_KINDS = ("prismatic", "cylindrical")
MAX_MOTION_RATIO = 3.0  # maximum radius of the shown region, relative to the mechanism
MAX_TRIANGLES = 20_000  # maximum of all meshes together, drawn by a graphics card
DIGITS = 7  # of numbers of flexible bodies
SKIN_LINE_RATIO = 0.004  # thickness of a skin's lines, relative to the body's size


def scene(m: Mechanism, q: Array, triangles: int = 6000) -> dict[str, Any]:
    """Return the scene of `m` without motion; `q` (rows, nq) determines its extent, `triangles` limits all meshes."""
    m = nominal(m)  # free parameters have their nominal values
    meshes, notes = mesh_shapes(m, triangles)
    seen = {s["body"] for s in meshes}
    unit = typical_length(m)
    placed = poses(m, q)
    spots = _body_points(m, placed)
    up = -np.asarray(m.gravity)
    up = up / np.linalg.norm(up) if np.linalg.norm(up) > 0.0 else np.array([0.0, 0.0, 1.0])
    free = _has_floating_base(m)
    centre, radius = _sphere(spots[0], unit)
    if not free:  # the camera follows a floating base
        around, reach = _sphere(spots.reshape(-1, 3), unit)
        centre, radius = (around, reach) if reach < MAX_MOTION_RATIO * radius else (centre, MAX_MOTION_RATIO * radius)
    unit = max(unit, MIN_LENGTH_RATIO * radius)
    return {
        "bodies": [b.name for b in m.bodies],
        "shapes": [
            *(s for i in range(len(m.bodies)) if i not in seen for s in body_shapes(m, i, unit)),
            *(_ground(m, unit) if -1 not in seen else ()),
            *meshes,
        ],
        "notes": notes,
        **flexible_shapes(m),
        "frames": _frames(m),
        "up": up.round(6).tolist(),
        "unit": unit,
        "centre": centre.tolist(),
        "radius": radius,
        "follow": free,
        "anchor": placed[0, 0, :3].tolist(),  # initial position of the body that the camera follows
    }


def _sphere(points: Array, least: float) -> tuple[Array, float]:
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    return centre, max(float(np.linalg.norm(points - centre, axis=-1).max()), least)


def poses(m: Mechanism, q: Array) -> Array:
    """Return [x y z qx qy qz qw] of all body frames of `m`, (rows, bodies, 7), for positions `q` (rows, nq)."""
    out = np.empty((len(q), len(m.bodies), 7))
    for i, (R, p) in enumerate(placements(m)(list(np.asarray(q, float).T))):
        for k, x in enumerate(p):
            out[:, i, k] = x
        elements = [np.broadcast_to(x, len(q)) for row in R.rows for x in row]
        out[:, i, 3:] = _quaternions(np.stack(elements, axis=-1))
    return out


def placements(m: Mechanism) -> Callable[[list[Any]], Iterator[tuple[Any, Any]]]:
    """Return a function from positions, of any scalar, to rotation and position of each body frame of `m`."""
    marks = {str(i): Frame(str(i), b.name) for i, b in enumerate(m.bodies)}  # the user's frames may have other origins
    tree = tree_of(m.bodies, m.joints, marks, m.gravity, m.ground, m.flexible)

    def placed(q: list[Any]) -> Iterator[tuple[Any, Any]]:
        of_links = link_poses(tree, q)
        for mark in marks:
            link, R_FB, p_FB = tree.frames[mark]
            R_WF, p_WF = of_links[link]
            yield R_WF.times(R_FB), p_WF + R_WF @ p_FB

    return placed


def in_world(pose: Array, points: Any) -> Array:
    """Return `points` of a body in the world, by the body's `pose` [x y z qx qy qz qw]; both may have leading axes."""
    u, w = pose[..., 3:6], pose[..., 6:]
    return np.asarray(pose[..., :3] + points + 2 * np.cross(u, np.cross(u, points) + w * points))


def _quaternions(R: Array) -> Array:
    """Convert rotation matrices (rows, 9) to quaternions (rows, 4); dividing by the largest element is stable."""
    R = R.reshape(-1, 3, 3)
    xx, yy, zz = R[:, 0, 0], R[:, 1, 1], R[:, 2, 2]
    a, b, c = R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]
    d, e, f = R[:, 0, 1] + R[:, 1, 0], R[:, 0, 2] + R[:, 2, 0], R[:, 1, 2] + R[:, 2, 1]
    each = np.stack([
        np.stack([1 + xx - yy - zz, d, e, a], -1),
        np.stack([d, 1 - xx + yy - zz, f, b], -1),
        np.stack([e, f, 1 - xx - yy + zz, c], -1),
        np.stack([a, b, c, 1 + xx + yy + zz], -1),
    ])  # fmt: skip
    size = np.linalg.norm(each, axis=-1)
    best = size.argmax(axis=0)
    rows = np.arange(len(R))
    return np.asarray(each[best, rows] / size[best, rows, None])


# -- shapes


def mesh_shapes(m: Mechanism, triangles: int) -> tuple[list[Shape], list[str]]:
    """Return shapes of kind "mesh" of `m`, with at most about `triangles` together, and notes on missing meshes."""
    visual_meshes, notes = read_visuals(m)
    total_triangles = sum(len(v.mesh.triangles) for v in visual_meshes)
    shapes = []
    for v in visual_meshes:
        share = max(MIN_TRIANGLES, int(triangles * len(v.mesh.triangles) / max(total_triangles, 1)))
        simplified = simplify(v.mesh, share) if total_triangles > triangles else v.mesh
        if len(simplified.triangles):
            numbers = {"corners": packed(simplified.corners, "<f4"), "faces": packed(simplified.triangles, "<u4")}
            shapes.append({"kind": "mesh", "body": v.body, "colour": [float(x) for x in v.colour], **numbers})
    return shapes, notes


def typical_length(m: Mechanism) -> float:
    """Return the median distance between joints of `m`; without joint offsets, from centres of mass and inertias."""
    lengths = [float(np.linalg.norm(j.point)) for j in m.joints]
    lengths += [float(np.linalg.norm(f.point)) for f in m.frames.values()]
    spans = [x for x in lengths if x > 1e-6 * max(lengths)]
    if not spans:
        spans = [2 * float(np.linalg.norm(b.com)) for b in m.bodies if np.any(b.com)]
    spans = spans or [2 * float(half.max()) for b in m.bodies if (half := inertia_box(b)[0]).max() > 0.0]
    return float(np.median(spans)) if spans else 1.0


def bar_radius(m: Mechanism, unit: float) -> float:
    """Return the radius of bars of `m` for the typical length `unit`, at most the size of its beams."""
    beams = [float(np.linalg.norm(corner)) for o in m.outlines for s in o.slices for corner in s.corners]
    skins = [BAR_RADIUS_RATIO / 3 * float(np.linalg.norm(np.ptp(o.skin.points, axis=0))) for o in m.outlines if o.skin]
    return min([BAR_RADIUS_RATIO * unit, *([float(np.median(beams))] if beams else []), *skins])


def inertia_box(b: Body) -> tuple[Array, Array]:
    """Return half edges and axes (columns) of the solid box with the mass and inertia of body `b`."""
    if b.mass <= 0.0:
        return np.zeros(3), np.eye(3)
    moments, axes = np.linalg.eigh(np.asarray(b.inertia))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    return np.sqrt(np.maximum(1.5 * (moments.sum() - 2 * moments) / b.mass, 0.0)), axes


def body_shapes(m: Mechanism, i: int, unit: float) -> list[Shape]:
    """Return the shapes of body `i` of `m` and of its joint, in the body frame; `unit` is the typical length."""
    b, r = m.bodies[i], bar_radius(m, unit)
    part = next((o.bodies.index(b.name) for o in m.outlines if b.name in o.bodies), None)
    if part is not None:  # a beam is drawn as a whole: only its joint and lumps at its nodes are left
        if part == 0:
            return _joint(m.joints[i], i, m.parent[i], r)
        return _lump(b, i, r, unit) if m.joints[i].kind.startswith(MODAL_PREFIX) and b.mass > 0.0 else []
    ends = [j.point for j in m.joints if j.parent == b.name]
    ends += [f.point for f in m.frames.values() if f.body == b.name and f.name not in b.links]
    bars = [e for e in dict.fromkeys(ends) if np.linalg.norm(e) > 0.5 * r]
    out: list[Shape] = []
    for end in bars:
        out.append({"body": i, "kind": "bar", "a": [0.0, 0.0, 0.0], "b": list(end), "ra": 1.15 * r, "rb": 0.8 * r})
    if not any(j.parent == b.name for j in m.joints):
        out += _lump(b, i, r, unit)
    return out + _joint(m.joints[i], i, m.parent[i], r)


def _lump(b: Body, i: int, r: float, unit: float) -> list[Shape]:
    """Return a box for the mass, and a bar to it if the box does not reach the joint."""
    half, axes = inertia_box(b)
    half = np.clip(half, 0.9 * r, 0.35 * unit)  # the rotor inertia of geared motors would give huge boxes
    com = np.asarray(b.com)
    out: list[Shape] = [{"body": i, "kind": "box", "at": com.tolist(), "axes": axes.tolist(), "half": half.tolist()}]
    if np.any(np.abs(axes.T @ com) > half):
        out.append({"body": i, "kind": "bar", "a": [0.0, 0.0, 0.0], "b": com.tolist(), "ra": r, "rb": 0.7 * r})
    return out


def _joint(j: Joint, i: int, parent: int, r: float) -> list[Shape]:
    origin, common = [0.0, 0.0, 0.0], {"body": i, "joint": True}
    if j.kind == "floating":
        return []
    if j.kind == "spherical":
        return [{**common, "kind": "ball", "at": origin, "r": 1.5 * r}]
    if j.kind in SLIDING_KINDS:
        rod = {**common, "kind": "rod", "parent": parent, "from": list(j.point), "r": 0.5 * r}  # from parent to child
        return [rod, {**common, "kind": "slide", "at": origin, "axis": list(j.axis), "r": 1.35 * r, "h": 2.2 * r}]
    parts = [{**common, "kind": "disc", "at": origin, "axis": list(j.axis), "r": 1.5 * r, "h": 1.35 * r}]
    if j.second_axis is not None:
        parts.append({**common, "kind": "disc", "at": origin, "axis": list(j.second_axis), "r": 1.3 * r, "h": 1.6 * r})
    return parts


def _ground(m: Mechanism, unit: float) -> list[Shape]:
    """Return bars from the origin to distant joints on the ground; body -1 is the ground."""
    r = BAR_RADIUS_RATIO * unit
    ends = [j.point for j in m.joints if j.parent == m.ground and j.kind != "floating"]
    far = [e for e in dict.fromkeys(ends) if np.linalg.norm(e) > 1.5 * r]
    return [{"body": -1, "kind": "bar", "a": [0.0, 0.0, 0.0], "b": list(e), "ra": 1.4 * r, "rb": r} for e in far]


def _frames(m: Mechanism) -> list[dict[str, Any]]:
    """Return points that can draw a trace: frames on moving bodies, then centres of the outermost bodies."""
    index = {b.name: i for i, b in enumerate(m.bodies)}
    moving = [f for f in m.frames.values() if f.body in index]
    points = [{"name": f.name, "body": index[f.body], "point": list(f.point)} for f in moving]
    leaves = [b for b in m.bodies if not any(j.parent == b.name for j in m.joints)]
    return points + [{"name": f"centre of {b.name}", "body": index[b.name], "point": list(b.com)} for b in leaves]


def _body_points(m: Mechanism, placed: Array) -> Array:
    """Return joints and centres of mass of the bodies in the world, (rows, points, 3)."""
    centres = in_world(placed, np.array([b.com for b in m.bodies], float).reshape(-1, 3))
    origin = placed[:, :1, :3] if _has_floating_base(m) else np.zeros((len(placed), 1, 3))
    return np.concatenate([placed[:, :, :3], centres, origin], axis=1)


def _has_floating_base(m: Mechanism) -> bool:
    return any(j.kind == "floating" and j.parent == m.ground for j in m.joints)


def joint_data(m: Mechanism) -> list[dict[str, Any]]:
    """Return the joints of `m` with parent, body (-1 is the ground) and the joint's origin in the parent frame."""
    index = {m.ground: -1} | {b.name: i for i, b in enumerate(m.bodies)}
    return [
        {"name": j.name, "parent": index[j.parent], "body": index[j.child], "point": [float(x) for x in j.point]}
        for j in m.joints
    ]


# -- flexible bodies


def flexible_shapes(m: Mechanism) -> dict[str, Any]:
    """Return the data of all flexible bodies of `m`."""
    names = {x for o in m.outlines for s in o.slices for x in s.coordinates}
    names |= {x for o in m.outlines if o.skin for x in o.skin.coordinates}
    used = sorted(m.columns[0].index(x) for x in names)
    place = {name: used.index(i) for i, name in enumerate(m.columns[0]) if i in used}
    index = {m.ground: -1} | {b.name: i for i, b in enumerate(m.bodies)}
    beams = [{"name": o.name, "slices": [_slice(s, index, place) for s in o.slices]} for o in m.outlines if o.slices]
    skins = [_skin(o.skin, index, place) for o in m.outlines if o.skin]
    return {"bent": used, "beams": beams, "skins": skins, "nodes": _nodes(m, index, place), "parents": list(m.parent)}


def _slice(s: BeamSlice, index: dict[str, int], place: dict[str, int]) -> dict[str, Any]:
    loads = np.array(s.loads, dtype=float).reshape(-1, len(LOAD_NAMES))
    fibres = np.array(s.fibres, dtype=float).reshape(-1, 3)
    return {
        "body": index[s.body], "point": _rounded(s.point), "axes": _rounded(s.axes), "corners": _rounded(s.corners),
        "q": [place[x] for x in s.coordinates], "shift": _rounded(s.shift), "turn": _rounded(s.turn),
        "stress": _rounded(loads[:, [LOAD_NAMES.index(x) for x in ("N", "My", "Mz")]] @ fibres.T) if s.fibres else None,
    }  # fmt: skip


def _skin(s: Skin, index: dict[str, int], place: dict[str, int]) -> dict[str, Any]:
    size = float(np.linalg.norm(np.ptp(s.points, axis=0)))
    return {
        "body": index[s.body], "points": _rounded(s.points), "q": [place[x] for x in s.coordinates],
        "shift": _rounded(s.shift), "cells": [list(c) for c in s.cells], "thick": _rounded(SKIN_LINE_RATIO * size),
    }  # fmt: skip


def _nodes(m: Mechanism, index: dict[str, int], place: dict[str, int]) -> list[dict[str, Any]]:
    bends, joints = {body: o.coordinates for o in m.outlines for body in o.bodies}, {j.name: j for j in m.joints}
    nodes = []
    for node in (node for body in m.flexible for node in body.nodes if node.joint in bends):
        j = joints[node.joint]
        R = np.asarray(j.rotation, dtype=float)  # a node's translations are in the axes of its joint
        nodes.append({
            "body": index[j.child], "point": _rounded(j.point), "axes": _rounded(R),
            "q": [place[x] for x in bends[node.joint]],
            "shift": _rounded(np.array(node.shift) @ R.T), "turn": _rounded(np.array(node.turn) @ R.T),
        })  # fmt: skip
    return nodes


def largest_stress(m: Mechanism, q: Array) -> float:
    """Return the largest stress in all slices of `m` over all rows of `q`, Pa."""
    stresses = [0.0]
    for o in m.outlines:
        stresses += [
            float(s.stress(q[:, [m.columns[0].index(x) for x in s.coordinates]]).max()) for s in o.slices if s.fibres
        ]
    return max(stresses)


def _rounded(x: Any) -> Any:
    """Round numbers to the digits that a picture can show."""
    if isinstance(x, (list, tuple)) or np.ndim(x):
        return [_rounded(y) for y in x]
    return float(f"{float(x):.{DIGITS}g}")
