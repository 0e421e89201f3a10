"""Friction of bearings, solved together with the accelerations: each depends on the other (Wong 1991, section 6.4.4).

The force through a joint is linear in all forces x that friction exerts along the axes of the joints, and the friction
of a pad follows from its normal force (forces/bearings.py):

    N_k(x) = |c_k + sum_j C_kj x_j|               c: load without friction, C: change by a unit of x
    x_i = -sum_k g_ki N_k(x)                      g_ki = mu (B_k^T w_k)_i / max(|w_k|, slow), known from the velocities

Let P_ij = sum_k |g_ki| |C_kj|. If the spectral radius of P is below 1, the map of x is a contraction in some weighted
maximum norm: there is exactly one solution. 1 - P has off-diagonal elements <= 0, so that this is the case exactly if
all pivots of its elimination are positive (A. Berman and R. J. Plemmons, Nonnegative Matrices in the Mathematical
Sciences, 1994, theorem 6.2.3). Otherwise the joint may jam while it moves: rigid bodies with Coulomb friction then have
several solutions or none (P. Painleve, 1895), and the result is not a number.

Newton's method solves the equations; as N_k is a norm of a linear map, each step costs one small linear system. The
last step must change x by less than LAST_CHANGE of the friction that acts, so that the error after it is about its
square; otherwise the result is not a number either. One step from a solution also has the derivatives of the solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from bellcrank.forces.bearings import BearingFriction, Pad, product
from bellcrank.integrate.implicit import lu_factors
from bellcrank.scalar import Scalar, fabs, is_zero, maximum, minimum, ordered_sum, sqrt, step, where

Vector = Sequence[Scalar]
NEWTON_STEPS = 6
LAST_CHANGE = 1e-5  # of the friction that acts: the error after the last step is about its square
LEAST_SQUARE = 1e-200  # N^2, and (m/s)^2: a shorter vector counts as zero, so that its direction is not 0/0


def length(x: Vector) -> Scalar:
    """Return the length of the vector `x`; its derivative at zero is zero."""
    terms = [y for y in x if not is_zero(y)]
    if len(terms) < 2:
        return fabs(terms[0]) if terms else 0.0
    square = ordered_sum(y * y for y in terms)
    some = square > LEAST_SQUARE
    return where(some, sqrt(where(some, square, 1.0)), 0.0)


def direction(x: Vector) -> list[Scalar]:
    """Return `x` divided by its length; zero for a zero vector."""
    size = length(x)
    some = size > LEAST_SQUARE
    return [0.0 if is_zero(y) else where(some, y / where(some, size, 1.0), 0.0) for y in x]


@dataclass(frozen=True)
class LoadedPad:
    """A pad with its load as a function of all friction forces x."""

    free_load: list[Scalar]  # c
    responses: list[list[Scalar]]  # C, one vector for each element of x
    drag: dict[int, Scalar]  # g, by element of x
    slopes: dict[int, Scalar]  # mu B^T B / max(|w|, slow), by element of x: resistance for each unit of load

    def load(self, x: Vector) -> list[Scalar]:
        """Return the force on the pad with the friction `x`."""
        return [c + product(row, x) for c, row in zip(self.free_load, zip(*self.responses, strict=True), strict=True)]


def loaded_pads(
    e: BearingFriction, kind: str, u: Vector, first: int, free: Vector, responses: Sequence[Vector]
) -> list[LoadedPad]:
    """Return the pads of a bearing with their loads.

    Parameters
    ----------
    e
        The bearing.
    kind
        Kind of its joint.
    u
        Velocities of the joint.
    first
        Element of x with the friction along the first axis of the joint.
    free
        [force, moment] that the joint transmits without friction.
    responses
        Change of them for a unit of each element of x.
    """
    return [_loaded_pad(e, pad, u, first, free, responses) for pad in e.pads(kind)]


def _loaded_pad(
    e: BearingFriction, pad: Pad, u: Vector, first: int, free: Vector, responses: Sequence[Vector]
) -> LoadedPad:
    w = [product(row, u) for row in pad.slide]
    share = e.coefficient / maximum(length(w), e.slow)
    columns = list(zip(*pad.slide, strict=True))
    return LoadedPad(
        [product(row, free) for row in pad.load],
        [[product(row, change) for row in pad.load] for change in responses],
        {first + i: share * product(column, w) for i, column in enumerate(columns)},
        {first + i: share * product(column, column) for i, column in enumerate(columns)},
    )


@dataclass(frozen=True)
class BearingForces:
    """Friction of all bearings: x, and the normal force on each pad. Not numbers where there is no sure solution."""

    x: list[Scalar]
    loads: list[Scalar]
    margin: Scalar  # smallest pivot of 1 - P: the solution is unique if it is positive


def solved_friction(pads: Sequence[LoadedPad], size: int) -> BearingForces:
    """Return the friction with which forces, loads and accelerations agree.

    Parameters
    ----------
    pads
        Pads of all bearings.
    size
        Number of elements of x.
    """
    step("friction")
    x = _frictions(pads, [0.0] * size)
    change: list[Scalar] = x
    for _ in range(NEWTON_STEPS):
        change = _newton_change(pads, x)
        x = [a + b for a, b in zip(x, change, strict=True)]
    step("friction solved")
    margin = _least_pivot(pads, size)
    solved = where(margin > 0.0, 1.0, -1.0)
    for dx, most in zip(change, _scales(pads, x), strict=True):
        solved = where(fabs(dx) <= LAST_CHANGE * most, solved, -1.0)
    trusted = sqrt(solved)  # a factor of 1 and not an added 0, because the derivative of a product keeps NaN
    x = [y * trusted for y in x]
    return BearingForces(x, [length(pad.load(x)) for pad in pads], margin)


def _frictions(pads: Sequence[LoadedPad], x: Vector) -> list[Scalar]:
    """Return the friction -sum of g_k N_k(x)."""
    out: list[Scalar] = [0.0] * len(x)
    for pad in pads:
        N = length(pad.load(x))
        for i, g in pad.drag.items():
            out[i] = out[i] - g * N
    return out


def _newton_change(pads: Sequence[LoadedPad], x: Vector) -> list[Scalar]:
    """Return the change of x in a step of Newton's method on x + sum of g_k N_k(x) = 0."""
    n = len(x)
    J: list[list[Scalar]] = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
    for pad in pads:
        along = direction(pad.load(x))
        slopes = [product(along, change) for change in pad.responses]
        for i, g in pad.drag.items():
            for j, slope in enumerate(slopes):
                if not is_zero(slope):
                    J[i][j] = J[i][j] + g * slope
    residual = [b - a for a, b in zip(x, _frictions(pads, x), strict=True)]
    return lu_factors(J).solve(residual)


def _least_pivot(pads: Sequence[LoadedPad], n: int) -> Scalar:
    """Return the smallest pivot of 1 - P; once one is not positive, the following ones do not matter."""
    rows: list[list[Scalar]] = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
    for pad in pads:
        sizes = [length(change) for change in pad.responses]
        for i, g in pad.drag.items():
            for j, size in enumerate(sizes):
                if not is_zero(size):
                    rows[i][j] = rows[i][j] - fabs(g) * size
    least: Scalar = 1.0
    for k in range(n):
        least = where(least > 0.0, minimum(least, rows[k][k]), least)
        pivot = where(rows[k][k] > 0.0, rows[k][k], 1.0)
        for i in range(k + 1, n):
            if is_zero(rows[i][k]):
                continue
            factor = rows[i][k] / pivot
            rows[i] = [x if is_zero(y) else x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return least


def _scales(pads: Sequence[LoadedPad], x: Vector) -> list[Scalar]:
    """Return the friction along each axis if no parts of the loads cancelled each other."""
    out: list[Scalar] = [0.0] * len(x)
    for pad in pads:
        terms = [length(pad.free_load), *(length(change) * fabs(y) for change, y in zip(pad.responses, x, strict=True))]
        total = reduce(lambda a, b: a + b, terms)
        for i, g in pad.drag.items():
            out[i] = out[i] + fabs(g) * total
    return out
