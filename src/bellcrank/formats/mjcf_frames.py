"""Rotations of MuJoCo's quaternions, and the position of our body frames in MuJoCo's."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.model.parts import Array
from bellcrank.model.quaternion import rotation_matrix

FREE = 0  # of mjtJoint


def body_frame_offsets(model: Any) -> Array:
    """Return (nbody, 3), m: the origin of each body frame, the last joint's anchor, in MuJoCo's frame of `model`."""
    origins = np.zeros((model.nbody, 3))
    for i in np.flatnonzero(model.body_jntnum):
        last = model.body_jntadr[i] + model.body_jntnum[i] - 1
        if model.jnt_type[last] != FREE:
            origins[i] = model.jnt_pos[last]
    return origins


def rotation(wxyz: Array) -> Array:
    """Return the rotation matrix of the quaternion `wxyz`, scalar first; quarter turns are exact to rounding."""
    w, x, y, z = (float(e) for e in wxyz / np.linalg.norm(wxyz))
    rows = rotation_matrix((x, y, z, w))
    R = np.array([[float(e) for e in row] for row in (rows.a, rows.b, rows.c)])
    return np.where(np.abs(R - np.round(R)) < 1e-15, np.round(R), R) + 0.0
