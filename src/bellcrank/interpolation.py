"""Interpolation of tabulated functions, for any scalar."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError, brief
from bellcrank.scalar import Scalar, clip, float_array, is_scalar, where

INTERPOLATION_KINDS = ("linear", "smooth")


@explain_argument_errors
def interp(x: Scalar, xs: Sequence[float], ys: Sequence[float], kind: str = "linear") -> Scalar:
    """Interpolate a tabulated function; it is constant beyond the first and the last point.

    Parameters
    ----------
    x : scalar
        A number, an array, or a traced scalar.
    xs : sequence of float
        Points, increasing.
    ys : sequence of float
        Values at the points.
    kind : {"linear", "smooth"}
        "linear" is piecewise linear, as numpy.interp. "smooth" is piecewise cubic with continuous slope and never
        leaves the range of two adjacent points (F. N. Fritsch and J. Butland, A method for constructing local monotone
        piecewise cubic interpolants, 1984).

    Returns
    -------
    scalar
        The value at x.

    Raises
    ------
    InputError
        If the points do not increase, or the arguments are not numbers.

    Examples
    --------
    >>> float(bc.interp(0.5, [0.0, 1.0, 3.0], [0.0, 10.0, 10.0]))
    5.0
    """
    rows = polynomial_pieces(xs, ys, kind)
    if not is_scalar(x) and not _is_numeric_array(x):
        raise InputError(f"interp: x is {brief(x)}; expected a number, an array, or a traced scalar.")
    x = clip(x, float(xs[0]), float(xs[-1]))
    origin, *coefficients = _select_piece(x, rows)
    total, along = 0.0, x - origin
    for c in reversed(coefficients):
        total = total * along + c
    return total


def _is_numeric_array(x: object) -> bool:
    kind = getattr(getattr(x, "dtype", None), "kind", "")
    return kind in ("i", "u", "f", "O") if isinstance(x, np.ndarray) else bool(getattr(x, "ndim", 0))


def polynomial_pieces(xs: Sequence[float], ys: Sequence[float], kind: str = "linear") -> np.ndarray:
    """Return one row per piece: its start, and the coefficients of its polynomial from there.

    Parameters
    ----------
    xs
        Points, increasing.
    ys
        Values at the points.
    kind
        "linear" or "smooth".
    """
    breakpoints, value = _checked_points(xs, ys)
    if not isinstance(kind, str) or kind not in INTERPOLATION_KINDS:
        raise InputError(f'interp: no kind "{brief(kind)}". Known: {", ".join(INTERPOLATION_KINDS)}.')
    h = np.diff(breakpoints)
    slope = np.diff(value) / h
    if kind == "linear":
        return np.stack([breakpoints[:-1], value[:-1], slope], axis=-1)
    d = _monotone_slopes(h, slope)
    square, cube = (3.0 * slope - 2.0 * d[:-1] - d[1:]) / h, (d[:-1] + d[1:] - 2.0 * slope) / h**2
    return np.stack([breakpoints[:-1], value[:-1], d[:-1], square, cube], axis=-1)


def _select_piece(x: Scalar, rows: np.ndarray) -> list[Scalar]:
    """Return the coefficients of the piece that contains x; the first number of a row is the start of the piece."""
    coefficients: list[Scalar] = [float(number) for number in rows[0]]
    for row in rows[1:]:
        coefficients = [where(x < float(row[0]), old, float(new)) for old, new in zip(coefficients, row, strict=True)]
    return coefficients


def _monotone_slopes(h: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return the slope at every point: the harmonic mean of the slopes on both sides, zero at extrema."""
    d = np.zeros(len(h) + 1)
    d[0], d[-1] = slope[0], slope[-1]
    same = slope[1:] * slope[:-1] > 0.0
    left, right = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    inner = d[1:-1]
    with np.errstate(over="ignore"):  # next to a zero slope the mean is zero
        inner[same] = (left + right)[same] / (left[same] / slope[:-1][same] + right[same] / slope[1:][same])
    return d


def _checked_points(xs: Sequence[float], ys: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    try:
        breakpoints, value = float_array(xs), float_array(ys)
    except (TypeError, ValueError, OverflowError):
        raise InputError("interp: xs and ys must be numbers.") from None
    if breakpoints.ndim != 1 or breakpoints.shape != value.shape or breakpoints.size < 2:
        raise InputError(
            f"interp: xs has shape {breakpoints.shape} and ys {value.shape}; expected two rows of the same length, "
            "at least 2."
        )
    if not (np.isfinite(breakpoints).all() and np.isfinite(value).all()):
        raise InputError("interp: xs and ys must be finite.")
    if (np.diff(breakpoints) <= 0.0).any():
        k = int(np.argmax(np.diff(breakpoints) <= 0.0))
        raise InputError(
            f"interp: xs must increase; xs[{k}] is {breakpoints[k]:g} and xs[{k + 1}] is {breakpoints[k + 1]:g}."
        )
    return breakpoints, value
