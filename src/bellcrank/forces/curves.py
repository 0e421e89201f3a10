"""A law that was measured: points, and straight lines or smooth cubics between them, with the area below it.

The area is what a spring with such a law has stored, so it is exact piece by piece. Beyond the points the law stays
what it is at the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.misfits import explained
from bellcrank.scalar import Scalar, clip, is_real, where
from bellcrank.tables import interp, pieces

# Gauss and Legendre's points on [-1, 1]: exact for polynomials of degree 31.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True)
class Curve:
    """bc.interp of points, as a law: curve(x), and its area from 0 to x."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    kind: str = "linear"

    def __post_init__(self) -> None:
        interp(0.0, self.xs, self.ys, self.kind)  # what is wrong with the points is said here

    def __call__(self, x: Scalar) -> Scalar:
        return interp(x, self.xs, self.ys, self.kind)

    def area(self, x: Scalar) -> Scalar:
        """The integral from 0 to x."""
        return self._from_first(x) - float(self._from_first(0.0))

    def _from_first(self, x: Scalar) -> Scalar:
        rows = pieces(self.xs, self.ys, self.kind)
        first, last = float(self.xs[0]), float(self.xs[-1])
        inside, total = clip(x, first, last), 0.0
        found: Scalar = 0.0
        for row, end in zip(rows, [*rows[1:, 0], last], strict=True):
            mine = _polynomial(row[1:], inside - float(row[0])) + total
            found = where(inside < float(row[0]), found, mine)
            total += float(_polynomial(row[1:], float(end - row[0])))
        beyond = (x - inside) * where(x < first, float(self.ys[0]), float(self.ys[-1]))
        return found + beyond


def _polynomial(coefficients: Any, along: Scalar) -> Scalar:
    """The area below c0 + c1 s + c2 s^2 + ... from 0 to `along`."""
    total: Scalar = 0.0
    for k in reversed(range(len(coefficients))):
        total = (total + float(coefficients[k]) / (k + 1)) * along
    return total


def area(law: Callable[[Scalar], Scalar], x: Scalar) -> Scalar:
    """The integral of a law from 0 to x: exact of a Curve; of a function by Gauss's rule with 16 points."""
    if isinstance(law, Curve):
        return law.area(x)
    total: Scalar = 0.0
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        total = total + law(x * (0.5 + 0.5 * float(node))) * (0.5 * float(weight))
    return total * x


@explained
def curve(points: Iterable[tuple[float, float]], kind: str = "linear") -> Curve:
    """A Curve of pairs (x, y)."""
    pairs = [tuple(p) if isinstance(p, Sequence | np.ndarray) else (p,) for p in points]
    if not all(len(p) == 2 and all(map(is_real, p)) for p in pairs):
        raise InputError("curve: expected pairs (x, y), as in curve([(0, 0), (0.01, 200)]).")
    xs, ys = [p[0] for p in pairs], [p[1] for p in pairs]
    return Curve(tuple(map(float, xs)), tuple(map(float, ys)), kind)
