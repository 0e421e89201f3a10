"""Curves through measured points, linear or cubic, with their integral.

The integral is the energy that a spring with such a law stores. It is computed exactly, piece by piece. Outside the
points a curve keeps the value at the first or last point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError
from bellcrank.interpolation import interp, polynomial_pieces
from bellcrank.scalar import Scalar, clip, is_real, where

# Gauss-Legendre points on [-1, 1], exact for polynomials up to degree 31.
GAUSS_NODES, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class Curve:
    """Interpolated curve through points, usable as a law: curve(x) is its value.

    Parameters
    ----------
    xs : tuple of float
        Abscissas, increasing.
    ys : tuple of float
        Values at `xs`.
    kind : str, default "linear"
        Interpolation, as in `bc.interp`.
    """

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    kind: str = "linear"

    def __post_init__(self) -> None:
        interp(0.0, self.xs, self.ys, self.kind)  # raises for invalid points

    def __call__(self, x: Scalar) -> Scalar:
        """Return the value at x, as `bc.interp` does."""
        return interp(x, self.xs, self.ys, self.kind)

    def area(self, x: Scalar) -> Scalar:
        """Return the integral from 0 to `x`."""
        return self._integral_from_first(x) - float(self._integral_from_first(0.0))

    def _integral_from_first(self, x: Scalar) -> Scalar:
        rows = polynomial_pieces(self.xs, self.ys, self.kind)
        first, last = float(self.xs[0]), float(self.xs[-1])
        clipped, total = clip(x, first, last), 0.0
        integral: Scalar = 0.0
        for row, end in zip(rows, [*rows[1:, 0], last], strict=True):
            piece_integral = _polynomial_integral(row[1:], clipped - float(row[0])) + total
            integral = where(clipped < float(row[0]), integral, piece_integral)
            total += float(_polynomial_integral(row[1:], float(end - row[0])))
        outside_integral = (x - clipped) * where(x < first, float(self.ys[0]), float(self.ys[-1]))
        return integral + outside_integral


def _polynomial_integral(coefficients: Any, along: Scalar) -> Scalar:
    """Return the integral of c0 + c1 s + c2 s^2 + ... from 0 to `along`."""
    total: Scalar = 0.0
    for k in reversed(range(len(coefficients))):
        total = (total + float(coefficients[k]) / (k + 1)) * along
    return total


def law_integral(law: Callable[[Scalar], Scalar], x: Scalar) -> Scalar:
    """Return the integral of `law` from 0 to `x`: exact for a Curve, by 16-point Gauss quadrature for a function."""
    if isinstance(law, Curve):
        return law.area(x)
    total: Scalar = 0.0
    for node, weight in zip(GAUSS_NODES, GAUSS_WEIGHTS, strict=True):
        total = total + law(x * (0.5 + 0.5 * float(node))) * (0.5 * float(weight))
    return total * x


@explain_argument_errors
def curve(points: Iterable[tuple[float, float]], kind: str = "linear") -> Curve:
    """Return a curve through measured points.

    Parameters
    ----------
    points : iterable of (float, float)
        Pairs (x, y) with increasing x.
    kind : str, default "linear"
        Interpolation, as in `bc.interp`.

    Returns
    -------
    Curve
        Law for springs, dampers and other elements.

    Raises
    ------
    InputError
        If the points are not pairs of numbers or x does not increase.
    """
    pairs = [tuple(p) if isinstance(p, Sequence | np.ndarray) else (p,) for p in points]
    if not all(len(p) == 2 and all(map(is_real, p)) for p in pairs):
        raise InputError("curve: expected pairs (x, y), as in curve([(0, 0), (0.01, 200)]).")
    xs, ys = [p[0] for p in pairs], [p[1] for p in pairs]
    return Curve(tuple(map(float, xs)), tuple(map(float, ys)), kind)
