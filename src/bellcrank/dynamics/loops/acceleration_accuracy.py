"""Accuracy of accelerations with closed loops: rounding error, usual conditioning, and iterative refinements.

If a small linkage carries a large one, or masses differ by many orders of magnitude, the inertia matrix or C M^-1 C^T
may lose most digits of a double. Pivots do not show how much: articulated inertias of graded mechanisms are accurate
although the condition of M is 1e16, others are not. So the error is measured. In some configurations, accelerations are
computed as kernels do, and a second time from q and v that are changed by one rounding error, with an independent
choice of rows in place of each group of redundant ones. The difference is the estimate: it contains the rounding errors
of the arithmetic, the condition of the problem, and the contradictions between redundant equations.

If the estimate is too large, multipliers are refined more often, as long as that helps. Mechanisms whose inertia matrix
and singular values are clearly well conditioned are not measured, and their kernels do not change.

The distance of a configuration from a singular one is measured by pivots. In a long linkage, and in one whose masses
differ by many orders of magnitude, pivots are small everywhere; only pivots that are small relative to these usual ones
indicate a singularity. And where the elimination of C M^-1 C^T loses digits everywhere, multipliers are refined
iteratively: the residual of C a = gamma is solved for again, with the same factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics import aba, crba
from bellcrank.dynamics.loops.assembly import consistent_velocity
from bellcrank.dynamics.loops.constrained_dynamics import solutions
from bellcrank.dynamics.loops.constraint_values import displace, evaluate_constraints
from bellcrank.dynamics.loops.coordinate_partitioning import choose_pivots, least_pivot
from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.model.tree import Tree

Array = np.ndarray[Any, Any]
EPSILON = 2.0**-52
MAX_RELATIVE_ERROR = 1e-9  # relative error of accelerations; larger estimates are reported
REFINEMENT_GOAL = 1e-10  # estimated errors above this are refined
SAFE_CONDITION = 1e6  # condition of the scaled inertia matrix below which the loss of digits is negligible
SAFE_CONTRADICTION = 1e-12  # singular values that count as zero, relative to the smallest that counts
SAFE_LOSS = 1e-3  # relative error of one solution for multipliers; each refinement multiplies the error by it
MORE_REFINEMENTS = 8  # largest number of further refinements
ERROR_TOLERANCE_FACTOR = 2.0  # fewer refinements are preferred if their error is at most this multiple of the smallest
CONVERGED = 1e-15  # relative correction of accelerations that ends a refinement
MEASURED_STATES = 3
LARGE_PROBLEM_ELEMENTS = 5000  # equations times coordinates above which a mechanism is measured in one state only
COMPARABLE_ROW_RATIO = 0.3  # rows with this fraction of the largest independent part are an equally good choice
# Raised by float arithmetic where a kernel gives NaN.
ARITHMETIC_ERRORS = (ValueError, ZeroDivisionError, OverflowError)
EXAMINED_CONFIGURATIONS = 4  # configurations examined
COMMON_PIVOT = 0.1  # usual size of pivots in small linkages, for which the thresholds are made
WANTED_MULTIPLIER_ERROR = 1e-12  # relative error of multipliers
MOST_REFINEMENTS = 4
LOSS_MARGIN = 100.0  # factor by which the loss may be larger in other configurations


@dataclass(frozen=True)
class Accuracy:
    """Estimated relative error of accelerations, and the coordinate where it is largest."""

    error: float = 0.0
    coordinate: int = 0

    @property
    def sufficient(self) -> bool:
        """Return True if the error is within the promised limit."""
        return self.error <= MAX_RELATIVE_ERROR


def may_lose_digits(tree: Tree, rank: LoopRank, loss: float, contradiction: float, q: Array) -> bool:
    """Return True if accelerations may lose digits, judged by the inertia matrix and known properties of the loops.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    rank
        Rank of the loop equations.
    loss
        Relative error of one solution for multipliers, see `with_usual_pivots`.
    contradiction
        Largest singular value that counts as zero, beyond rounding, relative to the smallest that counts.
    q
        (configurations, nq)
    """
    if not rank.rank or rank.rank >= tree.nv or not len(q):
        return False
    if loss > SAFE_LOSS or (rank.groups and contradiction > SAFE_CONTRADICTION):
        return True
    return _condition(np.array(crba.mass_matrix(tree, q[0].tolist()), float)) > SAFE_CONDITION


def measure_accuracy(tree: Tree, rank: LoopRank, q: Array, rough: float) -> tuple[LoopRank, Accuracy]:
    """Return the rank with the number of refinements that improves accelerations, and their accuracy.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    rank
        Rank of the loop equations.
    q
        (configurations, nq), closed, none of them singular.
    rough
        Singular values below this count as zero.
    """
    states = _states(tree, rank, q, rough)
    errors = [[Accuracy(np.inf)] * (1 + MORE_REFINEMENTS) if x is None else _errors(tree, rank, x) for x in states]
    more = max(_useful_refinements(x) for x in errors)
    return replace(rank, refinements=rank.refinements + more), max((x[more] for x in errors), key=lambda x: x.error)


def _useful_refinements(errors: list[Accuracy]) -> int:
    """Return the number of further refinements after which a state gains nothing."""
    least = max(REFINEMENT_GOAL, ERROR_TOLERANCE_FACTOR * min(x.error for x in errors))
    return next(k for k, x in enumerate(errors) if x.error <= least)


@dataclass(frozen=True, eq=False)
class _State:
    q: Array
    v: Array
    reference: Array  # accelerations that differ only by rounding


def _states(tree: Tree, rank: LoopRank, q: Array, rough: float) -> list[_State | None]:
    """Return states in motion; None where accelerations are not finite."""
    rng = np.random.default_rng(0)
    natural = np.array(rank.natural(tree.nv))
    state_count = 1 if len(rank.rows) * tree.nv > LARGE_PROBLEM_ELEMENTS else MEASURED_STATES
    states: list[_State | None] = []
    for k in np.unique(np.linspace(0, len(q) - 1, min(len(q), state_count)).astype(int)):
        v = consistent_velocity(tree, q[k], rng.normal(size=tree.nv) * natural, rough=rough)
        dq, dv = EPSILON * rng.choice([-1.0, 1.0], size=(2, tree.nv))
        C = evaluate_constraints(tree, q[k]).C[list(rank.rows)] * natural / np.array(rank.scale)[:, None]
        near_v = v + dv * np.maximum(np.abs(v), natural)
        other = _refined_accelerations(
            tree, _independent_rows(rank, C, rng), displace(tree, q[k], dq * natural), near_v
        )
        states.append(None if other is None else _State(q[k], v, other[-1]))
    return states


def _errors(tree: Tree, rank: LoopRank, state: _State) -> list[Accuracy]:
    """Return the accuracy with rank.refinements, and with each further refinement."""
    natural = np.array(rank.natural(tree.nv))
    refined = _refined_accelerations(tree, rank, state.q, state.v)
    if refined is None:
        return [Accuracy(np.inf)] * (1 + MORE_REFINEMENTS)
    scale = max(float(np.abs(state.reference / natural).max()), float(np.abs(state.v / natural).max()) ** 2)
    differences = [np.abs(a - state.reference) / (natural * scale) for a in refined]
    errors = [Accuracy(float(x.max()), int(np.argmax(x))) for x in differences]
    return errors + [errors[-1]] * (1 + MORE_REFINEMENTS - len(errors))


def _refined_accelerations(tree: Tree, rank: LoopRank, q: Array, v: Array) -> list[Array] | None:
    """Return accelerations with rank.refinements and with each further one until they converge; None if not finite."""
    forward = (crba if tree.coupled else aba).forward_dynamics
    more = replace(rank, refinements=rank.refinements + MORE_REFINEMENTS)
    refined: list[Array] = []
    try:
        with np.errstate(all="ignore"):
            for k, (a, _) in enumerate(solutions(tree, forward, more, q.tolist(), v.tolist(), [0.0] * tree.nv)):
                if k >= rank.refinements:
                    refined.append(np.array(a, float))
                if len(refined) > 1 and _has_converged(refined[-2], refined[-1], np.array(rank.natural(tree.nv))):
                    break
    except ARITHMETIC_ERRORS:
        return None
    return refined if np.isfinite(refined).all() else None


def _has_converged(before: Array, after: Array, natural: Array) -> bool:
    return bool(np.abs((after - before) / natural).max() <= CONVERGED * np.abs(after / natural).max())


def _independent_rows(rank: LoopRank, C: Array, rng: np.random.Generator) -> LoopRank:
    """Return the same equations without redundant ones: from every group as many rows as it has independent ones.

    C (rows of the rank, nv) is in natural sizes. Among rows with comparable independent parts, the choice is random.
    """
    tied = {k for group in rank.groups for k in group.places}
    places = [k for k in range(len(rank.rows)) if k not in tied]
    for group in rank.groups:
        order = rng.permutation(group.places)
        remainder = C[order].copy()
        selected = np.zeros(len(order), bool)
        for _ in range(group.rank):
            new = np.where(selected, -1.0, np.linalg.norm(remainder, axis=1))
            k = int(np.flatnonzero(new >= COMPARABLE_ROW_RATIO * new.max())[0])
            unit = remainder[k] / max(float(new[k]), 1e-300)
            selected[k] = True
            remainder -= np.outer(remainder @ unit, unit)
        places += [int(k) for k in order[selected]]
    places.sort()
    return replace(
        rank,
        rows=tuple(rank.rows[k] for k in places),
        groups=(),
        scale=tuple(rank.scale[k] for k in places),
        loop=tuple(rank.loop[k] for k in places),
    )


def _condition(M: Array) -> float:
    """Return the condition of a mass matrix scaled to a unit diagonal; 1 if singular, which is checked elsewhere."""
    diagonal = np.diag(M)
    if not (diagonal > 0.0).all():
        return 1.0
    size = 1.0 / np.sqrt(diagonal)
    values = np.linalg.eigvalsh(M * size * size[:, None])
    return float(values[-1] / max(float(values[0]), EPSILON * EPSILON))


def with_usual_pivots(tree: Tree, rank: LoopRank, pattern: Array, q: Array, C: Array) -> tuple[LoopRank, float]:
    """Return the rank with the usual pivots, and the usual relative error of one solution for multipliers.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    rank
        Rank of the loop equations.
    pattern
        Nonzero pattern of C.
    q
        Configurations, none of them singular.
    C
        (configurations, rows of the rank, nv), not scaled.
    """
    if not rank.rank or not len(q):
        return rank, 0.0
    some = np.unique(np.linspace(0, len(q) - 1, min(len(q), EXAMINED_CONFIGURATIONS)).astype(int))
    natural = C[some] * np.array(rank.natural(tree.nv))
    rows = natural / np.array(rank.scale)[:, None]
    partition = np.median([least_pivot(x, choose_pivots(y, pattern, rank)) for x, y in zip(rows, natural, strict=True)])
    multipliers = float(np.median([_least_multiplier_pivot(tree, rank, q[k], C[k]) for k in some]))
    loss = EPSILON / max(multipliers, EPSILON) ** 2
    return replace(
        rank,
        usual_pivot=_relative_to_common(float(partition)),
        usual_conditioning=_relative_to_common(multipliers),
        refinements=_refinements(loss),
    ), loss


def _relative_to_common(size: float) -> float:
    return min(1.0, max(size, 1e-300) / COMMON_PIVOT)


def _refinements(loss: float) -> int:
    """Return the number of refinements that reduce the error, by `loss` each time, below the limit."""
    if loss < WANTED_MULTIPLIER_ERROR:
        return 0
    return min(
        MOST_REFINEMENTS, math.ceil(math.log(WANTED_MULTIPLIER_ERROR) / math.log(min(LOSS_MARGIN * loss, 0.1))) - 1
    )


def _least_multiplier_pivot(tree: Tree, rank: LoopRank, q: Array, C: Array) -> float:
    """Return the root of the smallest pivot of C M^-1 C^T, relative to its loop's rows.

    It is defined as in `Multipliers.conditioning`.
    """
    M = np.array(crba.mass_matrix(tree, q.tolist()), float)
    diagonal = np.diag(M)
    if not (diagonal > 0.0).all():
        return 1.0
    size = 1.0 / np.sqrt(diagonal)
    try:
        L = np.linalg.cholesky(M * size * size[:, None])
    except np.linalg.LinAlgError:  # singular mass matrices are rejected elsewhere (singular_mass.py)
        return 1.0
    W = np.linalg.solve(L, (C * size).T).T
    rows = np.linalg.norm(W, axis=1) / np.array(rank.scale)
    largest = {loop: max(x for x, other in zip(rows, rank.loop, strict=True) if other == loop) for loop in rank.loop}
    sizes = np.array([largest[loop] for loop in rank.loop])
    for group in rank.groups:
        sizes[list(group.places)] = sizes[list(group.places)].max()
    sizes *= np.array(rank.scale)
    return float(np.linalg.svd(W / np.where(sizes > 0.0, sizes, 1.0)[:, None], compute_uv=False)[rank.rank - 1])
