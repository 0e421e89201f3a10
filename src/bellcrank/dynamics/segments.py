"""Chain segments reduced to their two ends, and the joining of two segments (dca.py).

A segment is a row of bodies, with the joint that carries the first of them. Its inner end is the frame of the body to
which it is attached, its outer end the frame of its last body. A segment is fully described by

    f  = IA a + pA - K g           force at the inner end, whose frame has the acceleration a
    a' = K^T a + W g + b           acceleration of the outer end, where the force g acts

IA and pA are those of articulated bodies whose outer end is free; W is the compliance of the outer end while the inner
one is held. For a segment that ends at a tip K, W and b are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics import aba
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Link
from bellcrank.scalar import Scalar, dot, is_zero, step, where
from bellcrank.spatial.inertia import (
    ArticulatedInertia,
    SixMatrix,
    SixVector,
    column_dot,
    dense_matrix,
    matrix_product,
    six_numbers,
    symmetric_matrix,
    to_articulated,
    to_force,
    to_motion,
)
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import NO_FORCE, ZERO, Force, Motion

# A pivot smaller than this fraction of its element of the matrix is rounding: the motion has no inertia.
ZERO_PIVOT_RATIO = 1e-13


@dataclass(slots=True, eq=False)
class EndResponse:
    """Response at the outer end of a segment: K by columns, W by rows of its lower triangle, and b."""

    K: tuple[Force, ...]
    W: tuple[tuple[Scalar, ...], ...]
    b: Motion


@dataclass(slots=True, eq=False)
class Segment:
    """A segment: articulated-body inertia and bias force at its inner end, and the response at its outer end."""

    IA: ArticulatedInertia
    pA: Force
    response: EndResponse


def _unit_forces() -> tuple[Force, ...]:
    return tuple(to_force([float(i == k) for i in range(6)]) for k in range(6))


# The free end of a segment: a force there acts directly on its body.
FREE_END = EndResponse(_unit_forces(), tuple((0.0,) * (i + 1) for i in range(6)), Motion(ZERO, ZERO))


# The end of a segment at a tip: no force acts there.
TIP_END = EndResponse((NO_FORCE,) * 6, FREE_END.W, FREE_END.b)


@dataclass(slots=True, eq=False)
class EliminatedAxis:
    """Values of an eliminated axis for the forward sweep: psi, D, u, and the contribution k of the end force to u."""

    psi: Force
    D: Scalar
    u: Scalar
    k: SixVector


def add_body(
    link: Link, X: Transform, S: Sequence[Motion], c: Motion, driven: Vector, beyond: Segment
) -> tuple[Segment, list[EliminatedAxis]]:
    """Add a body to the segment beyond it, and eliminate its joint.

    Parameters
    ----------
    link
        Joint and its body.
    X
        Transform from the parent frame.
    S
        Motion subspace, one column for each axis.
    c
        Acceleration of the body due to velocities.
    driven
        Drive and passive force on each axis.
    beyond
        Segment whose inner end is the body's frame; its IA and pA include the body's.
    """
    IA, pA, reach = beyond.IA, beyond.pA, beyond.response
    freed = []
    for s, t in reversed(list(zip(S, driven, strict=True))):
        psi, D, u, IA, pA = aba.eliminate_axis(link, s, t, IA, pA)
        step("K", link.name)
        k = [s.dot(column) for column in reach.K]
        K = tuple(column - psi * x for column, x in zip(reach.K, k, strict=True))
        step("W", link.name)
        kD = [x * D for x in k]
        W = tuple(tuple(w + k[i] * kD[j] for j, w in enumerate(row)) for i, row in enumerate(reach.W))
        step("b", link.name)
        reach = EndResponse(K, W, reach.b + to_motion([x * u for x in kD]))
        freed.append(EliminatedAxis(psi, D, u, k))
    step("pA", link.name)
    IA, pA = X.articulated(IA), X.force(pA + IA @ c)
    step("b", link.name)
    b = reach.b + to_motion([c.dot(column) for column in reach.K])
    step("K", link.name)
    return Segment(IA, pA, EndResponse(tuple(X.force(column) for column in reach.K), reach.W, b)), freed[::-1]


def joint_accelerations(
    X: Transform, S: Sequence[Motion], c: Motion, freed: Sequence[EliminatedAxis], a: Motion, g: SixVector
) -> tuple[list[Scalar], Motion]:
    """Return the accelerations of a joint and of its body.

    Parameters
    ----------
    X
        Transform from the parent frame.
    S
        Motion subspace, one column for each axis.
    c
        Acceleration of the body due to velocities.
    freed
        Values of the joint's axes.
    a
        Acceleration of the parent.
    g
        Force at the segment's outer end.
    """
    A, accelerations_found = X.motion(a) + c, []
    for s, axis in zip(S, freed, strict=True):
        accelerations_found.append((axis.u + dot(axis.k, g)) * axis.D - A.dot(axis.psi))
        A = A + s * accelerations_found[-1]
    return accelerations_found, A


# -- two segments, one beyond the other


@dataclass(slots=True, eq=False)
class SegmentJoint:
    """Values of two joined segments for the forward sweep: the factors R, e and Q = R W, and the acceleration b."""

    R: list[list[Scalar]]  # with R^T diag(e) R = (IA^-1 + W)^-1, for far's IA and near's W
    e: list[Scalar]
    Q: list[list[Scalar]]  # R W
    b: list[Scalar]  # acceleration of the frame where they meet, while the outer end is free and the inner held


def join_segments(near: Segment, far: Segment) -> tuple[Segment, SegmentJoint]:
    """Join two segments.

    They meet at a frame with acceleration a = K1^T a1 + b1 - W1 f, where f = IA2 a + pA2 - K2 g2.

    Parameters
    ----------
    near
        Segment towards the ground.
    far
        Segment beyond it.
    """
    step("R")
    W = symmetric_matrix(near.response.W)
    R, e = _factor_compliance(dense_matrix(far.IA), W)
    Q = matrix_product(R, W)
    step("b")
    pA = six_numbers(far.pA)
    b = [x - dot(row, pA) for x, row in zip(six_numbers(near.response.b), W, strict=True)]
    segment_joint = SegmentJoint(R, e, Q, b)
    step("IA")
    K1 = [six_numbers(column) for column in near.response.K]  # rows of K1^T
    Y = [[dot(row, [K1[m][j] for m in range(6)]) for j in range(6)] for row in R]  # R K1^T
    eY = [[x * d for x in row] for row, d in zip(Y, e, strict=True)]
    rho = [dot(row, b) for row in R]
    IA = near.IA + to_articulated([[column_dot(Y, i, eY, j) for j in range(i + 1)] for i in range(6)])
    step("pA")
    carried = [dot([K1[m][i] for m in range(6)], pA) for i in range(6)]
    pA1 = near.pA + to_force([x + column_dot(eY, i, [[r] for r in rho], 0) for i, x in enumerate(carried)])
    return Segment(IA, pA1, _joined_response(far.response, K1, eY, W, segment_joint, rho)), segment_joint


def _joined_response(
    far: EndResponse, K1: SixMatrix, eY: SixMatrix, W: SixMatrix, both: SegmentJoint, rho: SixVector
) -> EndResponse:
    K2 = [six_numbers(column) for column in far.K]  # columns of K2
    step("K")
    V = [[dot(row, column) for column in K2] for row in both.Q]  # Q K2
    K = []
    for j, column in enumerate(K2):
        K1K2 = [dot([K1[m][i] for m in range(6)], column) for i in range(6)]
        K.append(to_force([x - column_dot(eY, i, V, j) for i, x in enumerate(K1K2)]))
    step("W")
    WK2 = [[dot(row, column) for column in K2] for row in W]
    eV = [[x * d for x in row] for row, d in zip(V, both.e, strict=True)]
    rows = tuple(
        tuple(far.W[i][j] + (dot(K2[i], [WK2[m][j] for m in range(6)]) - column_dot(V, i, eV, j)) for j in range(i + 1))
        for i in range(6)
    )
    step("b")
    b = [x + (dot(K2[i], both.b) - column_dot(eV, i, [[r] for r in rho], 0)) for i, x in enumerate(six_numbers(far.b))]
    return EndResponse(tuple(K), rows, to_motion(b))


def split_solution(
    near: Segment, far: Segment, both: SegmentJoint, a1: Motion, g2: SixVector
) -> tuple[SixVector, Motion]:
    """Return the force at near's outer end, and the acceleration of far's inner end.

    Parameters
    ----------
    near
        Segment towards the ground.
    far
        Segment beyond it.
    both
        As `join_segments` returns it.
    a1
        Acceleration of near's inner end.
    g2
        Force at far's outer end.
    """
    step("a")
    free = [x + a1.dot(column) for x, column in zip(both.b, near.response.K, strict=True)]
    columns = [six_numbers(column) for column in far.response.K]
    pulled = [dot([columns[m][i] for m in range(6)], g2) for i in range(6)]
    free = [x + dot(row, pulled) for x, row in zip(free, symmetric_matrix(near.response.W), strict=True)]
    phi = [dot(row, free) * d for row, d in zip(both.R, both.e, strict=True)]
    a = [x - dot([row[i] for row in both.Q], phi) for i, x in enumerate(free)]
    step("g")
    bias = six_numbers(far.pA)
    g = [pulled[i] - bias[i] - dot([row[i] for row in both.R], phi) for i in range(6)]
    return g, to_motion(a)


def _factor_compliance(M: SixMatrix, W: SixMatrix) -> tuple[list[list[Scalar]], list[Scalar]]:
    """Return R and e with R^T diag(e) R = M (1 + W M)^-1, for symmetric, positive semidefinite M and W.

    M = L D L^T, without the columns of vanishing pivots; the eigenvalues of D^-1 + L^T W L are not smaller than those
    of D^-1, and it is eliminated in turn.
    """
    L, inverse = _factors(M)
    WL = [[dot(row, [L[m][j] for m in range(6)]) for j in range(6)] for row in W]
    P = [[column_dot(L, i, WL, j) for j in range(i + 1)] for i in range(6)]
    for i in range(6):
        P[i][i] = P[i][i] + inverse[i]
    R = [[L[m][i] for m in range(6)] for i in range(6)]  # L^T, and then eliminated with P
    e: list[Scalar] = []
    for k in range(6):
        e.append(1.0 / P[k][k])
        for i in range(k + 1, 6):
            factor = P[i][k] * e[k]
            for j in range(k + 1, i + 1):
                P[i][j] = P[i][j] - factor * P[j][k]
            R[i] = [x - factor * y for x, y in zip(R[i], R[k], strict=True)]
    return R, e


def _factors(M: SixMatrix) -> tuple[list[list[Scalar]], list[Scalar]]:
    """Return L and 1/D of M = L D L^T; for a vanishing pivot the column of L is zero and 1/D is one."""
    A = [list(row) for row in M]
    L: list[list[Scalar]] = [[0.0] * 6 for _ in range(6)]
    inverse: list[Scalar] = [1.0] * 6
    for k in range(6):
        d = A[k][k]
        if is_zero(d):
            continue
        seen = d > ZERO_PIVOT_RATIO * M[k][k]
        inverse[k] = 1.0 / where(seen, d, 1.0)
        L[k][k] = where(seen, 1.0, 0.0)
        for i in range(k + 1, 6):
            L[i][k] = where(seen, A[i][k] * inverse[k], 0.0) if not is_zero(A[i][k]) else 0.0
        for i in range(k + 1, 6):
            for j in range(k + 1, i + 1):
                A[i][j] = A[i][j] - L[i][k] * A[j][k]
    return L, inverse
