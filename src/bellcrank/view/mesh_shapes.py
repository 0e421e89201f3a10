"""Meshes of a robot's file as shapes of a scene: simplified to a number of triangles, and packed as text."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from bellcrank.formats.visuals import read_visuals
from bellcrank.meshes import Mesh, simplify
from bellcrank.model import Mechanism

MIN_TRIANGLES = 60  # minimum number of triangles of a part


def mesh_shapes(m: Mechanism, triangles: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Return shapes of kind "mesh" of `m`, with at most about `triangles` together, and notes on missing meshes."""
    visual_meshes, notes = read_visuals(m)
    total_triangles = sum(len(v.mesh.triangles) for v in visual_meshes)
    shapes = []
    for v in visual_meshes:
        share = max(MIN_TRIANGLES, int(triangles * len(v.mesh.triangles) / max(total_triangles, 1)))
        simplified = simplify(v.mesh, share) if total_triangles > triangles else v.mesh
        if len(simplified.triangles):
            shapes.append(
                {"kind": "mesh", "body": v.body, "colour": [float(x) for x in v.colour], **_packed(simplified)}
            )
    return shapes, notes


def _packed(mesh: Mesh) -> dict[str, str]:
    """Return corners as f32 and triangles' indices as u32, in base64."""
    pairs = (("corners", mesh.corners, "<f4"), ("faces", mesh.triangles, "<u4"))
    return {name: base64.b64encode(np.ascontiguousarray(x, kind).tobytes()).decode() for name, x, kind in pairs}
