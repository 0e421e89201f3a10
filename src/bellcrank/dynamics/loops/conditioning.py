"""Usual conditioning of the loop equations, as the reference for run-time checks.

The distance of a configuration from a singular one is measured by pivots. In a long linkage, and in one whose masses
differ by many orders of magnitude, pivots are small everywhere; only pivots that are small relative to these usual ones
indicate a singularity. And where the elimination of C M^-1 C^T loses digits everywhere, multipliers are refined
iteratively: the residual of C a = gamma is solved for again, with the same factors.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.dynamics.loops.coordinate_partitioning import choose_pivots, least_pivot
from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.model.tree import Tree

Array = np.ndarray[Any, Any]
EXAMINED_CONFIGURATIONS = 4  # configurations examined
COMMON_PIVOT = 0.1  # usual size of pivots in small linkages, for which the thresholds are made
WANTED_MULTIPLIER_ERROR = 1e-12  # relative error of multipliers
MOST_REFINEMENTS = 4
LOSS_MARGIN = 100.0  # factor by which the loss may be larger in other configurations
EPSILON = 2.0**-52


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
    partition = np.median(
        [least_pivot(x, choose_pivots(y, pattern, rank)[0]) for x, y in zip(rows, natural, strict=True)]
    )
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
