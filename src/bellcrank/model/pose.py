"""Poses and rotations as numpy arrays: of floats, or of objects where a parameter is free.

A mechanism whose right angles are 0 and 1, not 6e-17, folds to half the operations. Real files contain 1.570796325, so
an angle within a tolerance of a quarter turn is taken as exact, and the report lists it (`AngleReader.notes`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.errors import InputError, ModelError, brief
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import Array, Joint, Number, triple
from bellcrank.parameters import Free, has_free, nominal
from bellcrank.scalar import cos, sin, where

# Geometry below this (relative to the mechanism's size, or in radians) is rounding error.
RELATIVE_NOISE = 1e-13
QUARTER_TURN = math.pi / 2
RIGHT_ANGLES = 1e-8  # rad: an angle of a file this close to a quarter turn is taken as exact
NEAR_RIGHT_ANGLE = 2e-3  # rad: more than the error of "1.57"; such an angle is kept as typed, with a note


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


# -- rotations with exact quarter turns


def cos_sin(angle: Number) -> tuple[Number, Number]:
    """Return cosine and sine of `angle`, exact if it is the nearest float to a multiple of a quarter turn."""
    if isinstance(angle, Free):
        return cos(angle), sin(angle)
    quarters = angle / QUARTER_TURN
    if abs(quarters - round(quarters)) < 1e-12:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    return math.cos(angle), math.sin(angle)


def axis_rotation(axis: int, angle: Number) -> Array:
    """Return the matrix of a rotation by `angle` about the `axis` x (0), y (1) or z (2)."""
    c, s = cos_sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3, dtype=object if isinstance(angle, Free) else float)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def rotation_about(axis: Sequence[Number], angle: Number) -> Array:
    """Return the matrix of a rotation by `angle` about the unit vector `axis` (Rodrigues); its zeros stay exact."""
    c, s = cos_sin(angle)
    x, y, z = axis
    across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) * c + np.outer(axis, axis) * (1.0 - c) + across * s + 0.0)  # -0.0 becomes 0.0


def axes_along(z: Any, hint: Any = (1.0, 0.0, 0.0)) -> Array:
    """Return axes with z along the vector `z`, and x in the direction of `hint` as far as that is possible."""
    unit = np.asarray(z) / np.linalg.norm(z)
    return orthonormal_axes(unit, perpendicular(unit, np.asarray(hint)))


class AngleReader:
    """Reads angles with one tolerance, `right_angles` in radians, and collects notes about them."""

    def __init__(self, right_angles: float = RIGHT_ANGLES) -> None:
        if not isinstance(right_angles, (int, float)) or not 0.0 <= right_angles < 0.1:
            raise InputError(
                f"right_angles is {brief(right_angles)}; expected a small angle in radians, from 0 to 0.1."
            )
        self.tolerance = right_angles
        self.notes: list[str] = []

    def read(self, angle: Number) -> Number:
        """Return `angle`, or the quarter turn within the tolerance of it; a free parameter as it is."""
        if isinstance(angle, Free):
            return angle
        quarters = round(angle / QUARTER_TURN)
        exact = quarters * QUARTER_TURN
        off = abs(angle - exact)
        if off <= self.tolerance:
            if off > 4e-16 * max(1.0, abs(angle)):
                self.notes.append(f"{angle!r} rad taken as {_quarters_text(quarters)}")
            return exact
        if off < NEAR_RIGHT_ANGLE:
            self.notes.append(
                f"{angle!r} rad is {off:.0e} from {_quarters_text(quarters)} and is kept as typed "
                f"(right_angles={_round_tolerance(off):g} would take it as exact)"
            )
        return angle

    def rpy(self, roll: float, pitch: float, yaw: float) -> Array:
        """Return Rz(yaw) Ry(pitch) Rx(roll), the convention of robot files."""
        Z, Y, X = (axis_rotation(axis, self.read(angle)) for axis, angle in ((2, yaw), (1, pitch), (0, roll)))
        return np.asarray(Z @ Y @ X + 0.0)

    def pop_notes(self) -> list[str]:
        """Return the notes since the last call."""
        notes, self.notes = self.notes, []
        return notes


def _quarters_text(quarters: int) -> str:
    return {0: "0", 1: "pi/2", -1: "-pi/2", 2: "pi", -2: "-pi"}.get(quarters, f"{quarters} pi/2")


def _round_tolerance(off: float) -> float:
    """Return a round tolerance that includes it."""
    return float(f"{10 ** math.ceil(math.log10(off)):.0e}")
