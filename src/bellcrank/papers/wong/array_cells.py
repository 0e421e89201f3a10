"""Cells of the systolic solvers: rotations of two rows, and the programs of the cells (wong1991, 4.16 and 4.30).

A row moves east through a row of cells, and every cell rotates it with a row that comes from the north, so that one
element of the latter becomes zero. Rotations are linear, trigonometric or hyperbolic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import InputError
from bellcrank.papers.wong.systolic_array import Cell, SystolicArray, Words
from bellcrank.scalar import Scalar, fabs, is_real, maximum, sqrt, where


@dataclass(frozen=True)
class Rotation:
    """Rotation of two rows that eliminates an element of the second one."""

    coefficients: Callable[[Scalar, Scalar], Any]  # of the elements x and y; y is eliminated
    rotated: Callable[[Any, Scalar, Scalar], tuple[Scalar, Scalar]]  # coefficients, x and y; the new x and y


def linear_coefficients(x: Scalar, y: Scalar) -> Scalar:
    """Return alpha = -`y`/`x` (4.16)."""
    return -(y / x)


def linear_rotated(alpha: Scalar, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Return `x` and `y` + `alpha` `x`."""
    return x, y + alpha * x


def trigonometric_coefficients(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Return c and s with c `y` - s `x` = 0, computed without overflow; 1 and 0 where both are zero."""
    size = maximum(fabs(x), fabs(y))
    scale = where(size > 0, size, 1.0)
    u, w = x / scale, y / scale
    root = where(size > 0, sqrt(u * u + w * w), 1.0)
    return where(size > 0, u / root, 1.0), w / root


def trigonometric_rotated(coefficients: tuple[Scalar, Scalar], x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Return c `x` + s `y` and c `y` - s `x`, for the `coefficients` c and s."""
    c, s = coefficients
    return c * x + s * y, c * y - s * x


def hyperbolic_coefficients(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Return cosh and sinh of the angle with tanh = `y`/`x`, which a positive definite matrix keeps below 1."""
    t = y / x
    c = 1.0 / positive_root((1.0 - t) * (1.0 + t))
    return c, c * t


def hyperbolic_rotated(coefficients: tuple[Scalar, Scalar], x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Return c `x` - s `y` and c `y` - s `x`, for the `coefficients` c and s."""
    c, s = coefficients
    return c * x - s * y, c * y - s * x


LINEAR = Rotation(linear_coefficients, linear_rotated)
TRIGONOMETRIC = Rotation(trigonometric_coefficients, trigonometric_rotated)
HYPERBOLIC = Rotation(hyperbolic_coefficients, hyperbolic_rotated)


# -- programs


def turning_cell(sides: Sequence[str] = ("east",)) -> Cell:
    """Yield the words of a diagonal cell: the pivot row comes from the north and leaves to the given `sides`."""
    sent: Words = {}
    while True:
        got = yield sent
        sent = dict.fromkeys(sides, got["north"]) if "north" in got else {}


def rotating_cell(row: int, rotation: Rotation = LINEAR, is_last: bool = False) -> Cell:
    """Yield the words of a cell that eliminates element `row` of the north row with the west row (4.30).

    Parameters
    ----------
    row
        Row of the cell.
    rotation
        Kind of rotation.
    is_last
        If True, the pivot row ends here and is not sent east.
    """
    coefficients: Any = None
    i, sent, north = 0, Words(), list[Scalar]()
    while True:
        got = yield sent
        sent = {}
        if "north" in got:
            north.append(got["north"])  # waits one cycle where the pivot row comes on a bus
        if "west" not in got:
            continue
        i, x, y = i + 1, got["west"], north.pop(0)
        if i == row:
            coefficients = rotation.coefficients(x, y)
            x, y = rotation.rotated(coefficients, x, y)[0], 0
        else:
            x, y = rotation.rotated(coefficients, x, y) if i > row else (0, 0)
        sent = {"south": y} if is_last else {"east": x, "south": y}


def scaled_cell(row: int, n: int) -> Cell:
    """Yield the words of a cell of the column b with trigonometric rotations, which also passes on the scale k.

    Parameters
    ----------
    row
        Row of the cell; its first one starts with k = 1, and its last one divides by k.
    n
        Number of rows.
    """
    coefficients, k, i, sent = (1.0, 0.0), 1.0, 0, Words()
    while True:
        got = yield sent
        sent = {}
        if not got:
            continue
        i, x, y = i + 1, got["west"], got["north"]
        if i < row:
            k = y if i == row - 1 else 1.0
            sent = {"south": 0}
        elif i == row:
            coefficients = trigonometric_coefficients(x, y)
            k = k * coefficients[0]
            if is_real(k) and k == 0:
                raise InputError(f"pivot {row} of the rotated matrix is zero: the matrix is singular.")
            sent = {"south": k}
        else:
            y = trigonometric_rotated(coefficients, x, y)[1]
            sent = {"south": y / k if row == n else y}


def scaling_cell(row: int) -> Cell:
    """Yield the words of a cell that divides row `row` of [D + T 1] by the root of d: V goes east and W south."""
    scale: Scalar = 0.0
    i, sent = 0, Words()
    while True:
        got = yield sent
        if not got:
            sent = {}
            continue
        i, x = i + 1, got["north"]
        if i == row:
            scale = 1.0 / positive_root(x)
        v = x * scale if i >= row else 0
        sent = {"east": v, "south": v if i != row else 0}


# -- checks


def run_cycle(array: SystolicArray) -> None:
    """Run one cycle of an `array`; a division by a zero pivot raises InputError."""
    try:
        array.cycle()
    except ZeroDivisionError:
        raise InputError(
            f"a pivot is zero in cycle {array.cycles}: the matrix or one of its leading blocks is singular; "
            "expected pivots that are not zero. If the matrix itself is not singular, qr_feed_forward solves it."
        ) from None


def positive_root(x: Scalar) -> Scalar:
    """Return the square root of `x`; a number that is not positive raises InputError."""
    if is_real(x) and not x > 0:
        raise InputError(f"a pivot is {x}; expected a positive definite matrix. Solve others by qr_feed_forward.")
    return sqrt(x)
