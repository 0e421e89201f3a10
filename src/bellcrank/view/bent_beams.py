"""Beams as the pages draw them: sections that move with coordinates, coloured by stress, the bending scaled on request.

bent      which elements of q beams depend on; "q" below are places in this list
beams     of each its slices: body, point and axes there, corners, and what a unit of each q does: shift and turn in
          the body's axes, stress at the corners (none where the section is not known)
skins     of bodies that are not made of beams: points, what a unit of each q does to each, and the lines or faces
          between them
nodes     bodies that stand on one that bends: where, and how they move with q. Who scales the bending moves all
          that hangs on them along
parents   of the bodies; -1 is the ground
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.model import Mechanism
from bellcrank.model.outline import LOADS, Skin, Slice
from bellcrank.model.parts import Array

DIGITS = 7
LINE = 0.004  # thickness of a line of a skin, of the body's size


def bent_beams(m: Mechanism) -> dict[str, Any]:
    names = {x for o in m.outlines for s in o.slices for x in s.coordinates}
    names |= {x for o in m.outlines if o.skin for x in o.skin.coordinates}
    used = sorted(m.columns[0].index(x) for x in names)
    place = {name: used.index(i) for i, name in enumerate(m.columns[0]) if i in used}
    index = {m.ground: -1} | {b.name: i for i, b in enumerate(m.bodies)}
    beams = [{"name": o.name, "slices": [_slice(s, index, place) for s in o.slices]} for o in m.outlines if o.slices]
    skins = [_skin(o.skin, index, place) for o in m.outlines if o.skin]
    return {"bent": used, "beams": beams, "skins": skins, "nodes": _nodes(m, index, place), "parents": list(m.parent)}


def _slice(s: Slice, index: dict[str, int], place: dict[str, int]) -> dict[str, Any]:
    loads = np.array(s.loads, dtype=float).reshape(-1, len(LOADS))
    fibres = np.array(s.fibres, dtype=float).reshape(-1, 3)
    return {
        "body": index[s.body], "point": _short(s.point), "axes": _short(s.axes), "corners": _short(s.corners),
        "q": [place[x] for x in s.coordinates], "shift": _short(s.shift), "turn": _short(s.turn),
        "stress": _short(loads[:, [LOADS.index(x) for x in ("N", "My", "Mz")]] @ fibres.T) if s.fibres else None,
    }  # fmt: skip


def _skin(s: Skin, index: dict[str, int], place: dict[str, int]) -> dict[str, Any]:
    size = float(np.linalg.norm(np.ptp(s.points, axis=0)))
    return {
        "body": index[s.body], "points": _short(s.points), "q": [place[x] for x in s.coordinates],
        "shift": _short(s.shift), "cells": [list(c) for c in s.cells], "thick": _short(LINE * size),
    }  # fmt: skip


def _nodes(m: Mechanism, index: dict[str, int], place: dict[str, int]) -> list[dict[str, Any]]:
    bends, joints = {body: o.coordinates for o in m.outlines for body in o.bodies}, {j.name: j for j in m.joints}
    found = []
    for node in (node for body in m.flexible for node in body.nodes if node.joint in bends):
        j = joints[node.joint]
        R = np.asarray(j.rotation, dtype=float)  # a node's shifts are in the axes of its joint
        found.append({
            "body": index[j.child], "point": _short(j.point), "axes": _short(R),
            "q": [place[x] for x in bends[node.joint]],
            "shift": _short(np.array(node.shift) @ R.T), "turn": _short(np.array(node.turn) @ R.T),
        })  # fmt: skip
    return found


def largest_stress(m: Mechanism, q: Array) -> float:
    """Of all slices in all rows of q, in Pa."""
    found = [0.0]
    for o in m.outlines:
        found += [
            float(s.stress(q[:, [m.columns[0].index(x) for x in s.coordinates]]).max()) for s in o.slices if s.fibres
        ]
    return max(found)


def _short(x: Any) -> Any:
    """Rounded: a page needs no more digits than a picture has."""
    if isinstance(x, (list, tuple)) or np.ndim(x):
        return [_short(y) for y in x]
    return float(f"{float(x):.{DIGITS}g}")
