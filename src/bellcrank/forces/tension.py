"""Tensions: force laws in one coordinate, a distance of frames or a sum of joint coordinates; and their curves.

T(z, dz/dt)      pulls z back: its power on the bodies is -T dz/dt
E(z)             stored energy, dE/dz = T(z, 0)
loss             (T(z, dz/dt) - T(z, 0)) dz/dt

A law may be a Curve through measured points, linear or cubic. Its integral is the energy that a spring with such a law
stores. It is computed exactly, piece by piece. Outside the points a curve keeps the value at the first or last point.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError
from bellcrank.forces.element import Coupling, ForcesAndRates
from bellcrank.interpolation import interp, polynomial_pieces
from bellcrank.scalar import Scalar, clip, is_real, ordered_sum, where

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


class Tension(ABC):
    """Force law in one coordinate: a distance in m or an angle in rad."""

    @abstractmethod
    def pull(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the tension in N or N m, positive if it reduces `z`, at the rate `dz`."""

    @abstractmethod
    def stored(self, z: Scalar) -> Scalar:
        """Return the energy stored at `z`, J."""

    def lost(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the dissipated power at `z` and its rate `dz`, W."""
        return (self.pull(z, dz) - self.pull(z, 0.0)) * dz


class SpringDamper(Tension):
    """Spring and damper, each a function, a Curve, or None."""

    spring: Callable[[Scalar], Scalar] | None
    damper: Callable[[Scalar], Scalar] | None

    @property
    @abstractmethod
    def unloaded(self) -> Scalar:
        """Coordinate at which the spring is unloaded."""

    def pull(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the tension in N or N m, positive if it reduces `z`, at the rate `dz`."""
        elastic = 0.0 if self.spring is None else self.spring(z - self.unloaded)
        return elastic + (0.0 if self.damper is None else self.damper(dz))

    def stored(self, z: Scalar) -> Scalar:
        """Return the energy stored at `z`, J."""
        return 0.0 if self.spring is None else law_integral(self.spring, z - self.unloaded)

    def lost(self, z: Scalar, dz: Scalar) -> Scalar:
        """Return the dissipated power at `z` and its rate `dz`, W."""
        return 0.0 if self.damper is None else self.damper(dz) * dz


@dataclass(frozen=True)
class JointTension(Coupling, Tension):
    """Base class of elements with a tension in a weighted sum of joint coordinates.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    joints : tuple of str
        Names of the joint coordinates on which the element acts.
    """

    @property
    def weights(self) -> tuple[Scalar, ...]:
        """Change of z for each unit of the joint coordinates."""
        return (1.0,)

    def coordinate(self, q: Sequence[Scalar]) -> Scalar:
        """Return z for the joint coordinates `q`, or its rate for their velocities."""
        return ordered_sum(w * x for w, x in zip(self.weights, q, strict=True))

    def __call__(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> ForcesAndRates:
        """Return the forces on the joints and the state rates; see `Coupling.__call__`."""
        T = self.pull(self.coordinate(q), self.coordinate(v))
        return [-w * T for w in self.weights], []

    def energy(self, t: Scalar, q: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the stored energy in J; `t`, `q` and `x` as in `Coupling.energy`."""
        return self.stored(self.coordinate(q))

    def loss(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power in W; `t`, `q`, `v` and `x` as in `Coupling.loss`."""
        return self.lost(self.coordinate(q), self.coordinate(v))
