"""Places of frames as numpy arrays, for model/frames.py: of floats, or of objects where a parameter is free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import Array, Joint, triple
from bellcrank.parameters import Free, depends, nominal
from bellcrank.scalar import where

# Geometry below this (relative to the mechanism's size, or in radians) is the rounding of our own arithmetic.
NOISE = 1e-13


@dataclass(frozen=True)
class Pose:
    R: Array
    p: Array

    def __matmul__(self, o: Pose) -> Pose:
        return Pose(product(self.R, o.R), self.p + product(self.R, o.p))

    def inverse(self) -> Pose:
        return Pose(self.R.T, -product(self.R.T, self.p))


def product(a: Array, b: Array) -> Array:
    """a @ b. Rounding in a rotation does not become the coefficient of a parameter."""
    if a.dtype == object or b.dtype == object:
        a, b = (clean(x, 1.0) if x.ndim == 2 else x for x in (a, b))
    return np.asarray(a @ b)


def clean(x: Array, scale: float) -> Array:
    """Zeros for noise. What depends on a parameter is none, whatever its nominal value."""
    if x.dtype != object:
        return np.where(np.abs(x) < NOISE * scale, 0.0, x)
    flat = [e if isinstance(e, Free) or abs(e) >= NOISE * scale else 0.0 for e in x.flat]
    out = np.empty(x.size, dtype=object)
    out[:] = flat
    return out.reshape(x.shape) if depends(flat) else np.array(flat, dtype=float).reshape(x.shape)


def constant(xyz: Array) -> Array:
    """Without what depends on parameters."""
    return np.array([0.0 if isinstance(x, Free) else x for x in xyz], dtype=float)


def constants(poses: Sequence[Pose]) -> list[Pose]:
    """Places to stand that no parameter moves: there, or on the way to there."""
    return [Pose(nominal(pose.R), constant(pose.p)) for pose in poses]


def axes(z: Array, x: Array) -> Array:
    """A right-handed frame with this z and x in the plane of z and x, orthonormal to the last digit."""
    for _ in range(2):  # once more, because the first difference may be of nearly equal numbers
        x = x - (x @ z) * z
        x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def some_normal(z: Array, hint: Array) -> Array:
    """A unit vector across z, as near to the hint as can be."""
    for h in (hint, np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])):
        if np.linalg.norm(nominal(h - (h @ z) * z)) > 1e-3:
            x = h - (h @ z) * z
            return x / np.linalg.norm(x)  # type: ignore[no-any-return]
    raise AssertionError("two axes cannot both be along z")


def standing(j: Joint) -> Joint:
    """At nominal values, the axis of length 1."""
    if not depends(j):
        return j
    j = nominal(j)
    return replace(j, axis=triple(np.asarray(j.axis) / (np.linalg.norm(j.axis) or 1.0)))


def following(R: Array, j: Joint) -> Array:
    """R, whose z is along the joint's axis, for every direction of an axis that is free.

    Where the frame about it is ours to choose, R is turned the shortest way from the nominal axis to the axis, which is
    a way to all directions but the opposite one.
    """
    used = KINDS[j.kind].has_axis or j.kind in ("universal", "planar")
    if not used or not depends(j.axis, j.second_axis):
        return R
    z = np.asarray(j.axis)
    if depends(z) and np.count_nonzero(z) < 2:  # and its sign would say which of two opposite directions
        raise ModelError(
            f'joint "{j.name}": axis is {j.axis}; a free number alone does not turn it. Let another element of it '
            "be free or different from zero, or leave this one constant."
        )
    z = z / np.linalg.norm(z)
    if j.kind == "universal":
        return axes(z, np.asarray(j.second_axis))
    if j.kind == "planar":
        # As some_normal does for numbers, and at every value: which x it is says what the coordinates are.
        usual = z[1] * z[1] + z[2] * z[2] > 1e-6
        return axes(z, np.array([where(usual, 1.0, 0.0), where(usual, 0.0, 1.0), 0.0]))
    n = nominal(z)
    v, k = np.cross(n, z), 1.0 / (1.0 + n @ z)
    across = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    turned = np.eye(3) + across + product(across, across) * k
    return product(turned, clean(R, 1.0))
