"""Data of flexible bodies for pages: sections and skins that move with elastic coordinates, coloured by stress.

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

from typing import Any

import numpy as np

from bellcrank.model import Mechanism
from bellcrank.model.outline import LOAD_NAMES, BeamSlice, Skin
from bellcrank.model.parts import Array

DIGITS = 7
SKIN_LINE_RATIO = 0.004  # thickness of a skin's lines, relative to the body's size


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
