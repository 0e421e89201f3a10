"""Rotations of MuJoCo's quaternions."""

from __future__ import annotations

import numpy as np

from bellcrank.model.parts import Array
from bellcrank.model.quaternion import rotation_matrix


def rotation(wxyz: Array) -> Array:
    """Return the rotation of a quaternion with its scalar first; quarter turns are exact to rounding."""
    w, x, y, z = (float(e) for e in wxyz / np.linalg.norm(wxyz))
    rows = rotation_matrix((x, y, z, w))
    R = np.array([[float(e) for e in row] for row in (rows.a, rows.b, rows.c)])
    return np.where(np.abs(R - np.round(R)) < 1e-15, np.round(R), R) + 0.0
