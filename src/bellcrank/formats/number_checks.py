"""Checks of numbers that users give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bellcrank.argument_errors import sequence_elements
from bellcrank.errors import ModelError, brief
from bellcrank.model.part_checks import MAX_NUMBER
from bellcrank.model.parts import Matrix, Number, Triple, matrix, triple
from bellcrank.parameters import Free, has_free, nominal
from bellcrank.scalar import is_real


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
