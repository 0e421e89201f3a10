"""Checks of numbers from users and files, and rotation matrices with exact quarter turns.

A mechanism whose right angles are 0 and 1, not 6e-17, folds to half the operations. Real files contain 1.570796325, so
an angle within a tolerance of a quarter turn is taken as exact, and the report lists it (`AngleReader.notes`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.argument_errors import sequence_elements
from bellcrank.errors import InputError, ModelError, brief
from bellcrank.model.part_checks import MAX_NUMBER
from bellcrank.model.parts import Array, Matrix, Number, Triple, matrix, triple
from bellcrank.model.pose import orthonormal_axes, perpendicular
from bellcrank.parameters import Free, has_free, nominal
from bellcrank.scalar import cos, is_real, sin

QUARTER_TURN = math.pi / 2
RIGHT_ANGLES = 1e-8  # rad: an angle of a file this close to a quarter turn is taken as exact
NEAR_RIGHT_ANGLE = 2e-3  # rad: more than the error of "1.57"; such an angle is kept as typed, with a note


def number(value: Any, where: str, what: str) -> Number:
    """Return `value` as a finite float, or as it is if it is a free parameter; `where` and `what` are for errors."""
    if isinstance(value, Free):
        number(value.value, where, f"{what} (nominal)")
        return value
    if not is_real(value):
        raise ModelError(f"{where}: {what} is {brief(value)}; expected a number.")
    if not -MAX_NUMBER < value < MAX_NUMBER:  # also refuses NaN
        raise ModelError(
            f"{where}: {what} is {brief(value)}; expected a finite number below {MAX_NUMBER:g}. Correct the source."
        )
    return float(value)


def limit(value: Any, where: str, what: str) -> Number:
    """Return `value` as a number that may be infinite, for no limit; `where` and `what` are for errors."""
    return float(value) if isinstance(value, float) and math.isinf(value) else number(value, where, what)


def vector(value: Any, where: str, what: str) -> Triple:
    """Return the sequence `value` as three finite floats; `where` and `what` are for errors."""
    given = sequence_elements(value)
    if given is None or len(given) != 3:
        raise ModelError(f"{where}: {what} is {brief(value)}; expected three numbers.")
    return triple(number(x, where, what) for x in given)


def inertia(value: Any, where: str) -> Matrix:
    """Return `value`, 3 moments, 6 numbers (xx, yy, zz, xy, xz, yz) or 3x3, as a 3x3 matrix; `where` is for errors."""
    expected = "expected 3 moments, 6 numbers (xx, yy, zz, xy, xz, yz) or a 3x3 matrix"
    given = sequence_elements(value)
    if given is None:
        raise ModelError(f"{where}: inertia is {brief(value)}; {expected}.")
    if len(given) == 3 and all(sequence_elements(row) is not None for row in given):
        return matrix(vector(row, where, "a row of the inertia") for row in given)
    if len(given) not in (3, 6):
        raise ModelError(f"{where}: inertia has {len(given)} numbers; {expected}.")
    xx, yy, zz, xy, xz, yz = (*(number(x, where, "inertia") for x in given), 0.0, 0.0, 0.0)[:6]
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


def rotation_matrix(value: Any, where: str) -> Matrix:
    """Return `value` as a matrix after checking that it is a proper rotation; `where` is for errors."""
    try:
        R = np.array(nominal(value), dtype=float)
    except (TypeError, ValueError, OverflowError):
        R = np.zeros(0)
    if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-9) or not np.linalg.det(R) > 0.0:
        raise ModelError(f"{where}: rotation is {brief(value)}; expected a 3x3 rotation matrix.")
    return matrix(value if has_free(value) else R)


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
