"""Meshes of a robot's file as shapes of a scene: simplified to a number of triangles, and packed as text."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from bellcrank.formats.visuals import visuals
from bellcrank.meshes import Mesh, simpler
from bellcrank.model import Mechanism

LEAST = 60  # minimum number of triangles of a part


def looks(m: Mechanism, triangles: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Return shapes of kind "mesh" of `m`, with at most about `triangles` together, and notes on missing meshes."""
    found, notes = visuals(m)
    whole = sum(len(v.mesh.triangles) for v in found)
    made = []
    for v in found:
        share = max(LEAST, int(triangles * len(v.mesh.triangles) / max(whole, 1)))
        few = simpler(v.mesh, share) if whole > triangles else v.mesh
        if len(few.triangles):
            made.append({"kind": "mesh", "body": v.body, "colour": [float(x) for x in v.colour], **_packed(few)})
    return made, notes


def _packed(mesh: Mesh) -> dict[str, str]:
    """Return corners as f32 and triangles' indices as u32, in base64."""
    pairs = (("corners", mesh.corners, "<f4"), ("faces", mesh.triangles, "<u4"))
    return {name: base64.b64encode(np.ascontiguousarray(x, kind).tobytes()).decode() for name, x, kind in pairs}
