"""Poses of frames as numpy arrays, for model/internal_frames.py: of floats, or of objects where a parameter is free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import Array, Joint, triple
from bellcrank.parameters import Free, has_free, nominal
from bellcrank.scalar import where

# Geometry below this (relative to the mechanism's size, or in radians) is rounding error.
RELATIVE_NOISE = 1e-13


@dataclass(frozen=True)
class Pose:
    """A rotation R (3, 3) and a position p (3,)."""

    R: Array
    p: Array

    def __matmul__(self, o: Pose) -> Pose:
        return Pose(clean_product(self.R, o.R), self.p + clean_product(self.R, o.p))

    def inverse(self) -> Pose:
        """Return the inverse pose."""
        return Pose(self.R.T, -clean_product(self.R.T, self.p))


def clean_product(a: Array, b: Array) -> Array:
    """Return `a` @ `b`, without rounding errors of a rotation as coefficients of a parameter."""
    if a.dtype == object or b.dtype == object:
        a, b = (zero_noise(x, 1.0) if x.ndim == 2 else x for x in (a, b))
    return np.asarray(a @ b)


def zero_noise(x: Array, scale: float) -> Array:
    """Return `x` with zeros for values that are noise relative to `scale`.

    Expressions of parameters are kept, whatever their nominal values.
    """
    if x.dtype != object:
        return np.where(np.abs(x) < RELATIVE_NOISE * scale, 0.0, x)
    flat = [e if isinstance(e, Free) or abs(e) >= RELATIVE_NOISE * scale else 0.0 for e in x.flat]
    out = np.empty(x.size, dtype=object)
    out[:] = flat
    return out.reshape(x.shape) if has_free(flat) else np.array(flat, dtype=float).reshape(x.shape)


def constant_part(xyz: Array) -> Array:
    """Return `xyz` with zeros for expressions of parameters."""
    return np.array([0.0 if isinstance(x, Free) else x for x in xyz], dtype=float)


def constant_poses(poses: Sequence[Pose]) -> list[Pose]:
    """Return `poses` at nominal rotations, with positions that no parameter moves."""
    return [Pose(nominal(pose.R), constant_part(pose.p)) for pose in poses]


def orthonormal_axes(z: Array, x: Array) -> Array:
    """Return a right-handed orthonormal frame with this `z`, and x in the plane of `z` and `x`."""
    for _ in range(2):  # twice, because the first difference may cancel
        x = x - (x @ z) * z
        x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def perpendicular(z: Array, hint: Array) -> Array:
    """Return a unit vector perpendicular to `z`, as near to `hint` as possible."""
    for h in (hint, np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])):
        if np.linalg.norm(nominal(h - (h @ z) * z)) > 1e-3:
            x = h - (h @ z) * z
            return x / np.linalg.norm(x)  # type: ignore[no-any-return]
    raise AssertionError("two axes cannot both be along z")


def nominal_joint(j: Joint) -> Joint:
    """Return joint `j` at nominal values, with a unit axis."""
    if not has_free(j):
        return j
    j = nominal(j)
    return replace(j, axis=triple(np.asarray(j.axis) / (np.linalg.norm(j.axis) or 1.0)))


def align_with_free_axis(R: Array, j: Joint) -> Array:
    """Return `R`, whose z is along the axis of joint `j`, for every direction of an axis that is free.

    Where x and y are arbitrary, R is turned the shortest way from the nominal axis to the axis, which is defined for
    all directions but the opposite one.
    """
    used = KINDS[j.kind].has_axis or j.kind in ("universal", "planar")
    if not used or not has_free(j.axis, j.second_axis):
        return R
    z = np.asarray(j.axis)
    if has_free(z) and np.count_nonzero(z) < 2:  # its sign would switch between opposite directions
        raise ModelError(
            f'joint "{j.name}": axis is {j.axis}; varying only its free element cannot change its direction. Let '
            "another element of it be free or different from zero, or leave this one constant."
        )
    z = z / np.linalg.norm(z)
    if j.kind == "universal":
        return orthonormal_axes(z, np.asarray(j.second_axis))
    if j.kind == "planar":
        # As `perpendicular` does for numbers, but at every value, because x determines the meaning of the coordinates.
        usual = z[1] * z[1] + z[2] * z[2] > 1e-6
        return orthonormal_axes(z, np.array([where(usual, 1.0, 0.0), where(usual, 0.0, 1.0), 0.0]))
    n = nominal(z)
    v, k = np.cross(n, z), 1.0 / (1.0 + n @ z)
    across = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    turned = np.eye(3) + across + clean_product(across, across) * k
    return clean_product(turned, zero_noise(R, 1.0))
