"""Search for the independent coordinates of closed loops whose equations of motion have the shortest critical path.

Nikravesh, Gim, Arabyan and Rein 1989, section 5: the coordinates should be chosen so that the critical path of the
data-flow graph is short. Their minimal form (19) exists for every set of coordinates that determines the others
(16, 23). All sets have the same number of equations, but not the same graph: another set means other pivots, another
null space E, and another chain of operations.

A set is examined if E exists in every sampled configuration of the loops and its elements stay below a limit there.
Among equations with the same rank, pivots are chosen as runs choose them (coordinate_partitioning.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from bellcrank.build.schedule_search import SearchResult, Variant, shortest
from bellcrank.dynamics import METHODS, rnea
from bellcrank.dynamics.loops import analysis, constrained_dynamics
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints
from bellcrank.dynamics.loops.coordinate_partitioning import choose_pivots, largest_null_space_element
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism
from bellcrank.progress import progress_bar
from bellcrank.scheduling import Machine

MAX_E = 100.0  # largest element of E in the sampled configurations, in natural sizes of coordinates
MAX_SETS = 20_000  # sets whose E is examined
MAX_TRACED = 60  # sets whose graph is traced; those with the smallest E
MASS_METHODS = ("crba", "vcrb_parallel")


@dataclass(frozen=True)
class CoordinateSet:
    """One set of independent coordinates.

    Parameters
    ----------
    independent : tuple of str
        Names of the independent coordinates.
    mass_matrix : str
        Method of the mass matrix.
    largest : float
        Largest element of E in the sampled configurations, in natural sizes of coordinates.
    operations : int
        Operations of the accelerations.
    span : float
        Critical path of the accelerations, in steps.
    graph : Graph
        The accelerations as a function of q, v and tau.
    """

    independent: tuple[str, ...]
    mass_matrix: str
    largest: float
    operations: int
    span: float
    graph: Graph

    @property
    def name(self) -> str:
        """Independent coordinates and the method of the mass matrix, as text."""
        return f"{', '.join(self.independent)} ({self.mass_matrix})"


@dataclass(frozen=True)
class CoordinateSets:
    """All examined sets, the shortest critical path first, and how many were left out.

    Parameters
    ----------
    sets : tuple of CoordinateSet
        The sets whose graphs were traced.
    singular : int
        Sets that do not determine the motion in some sampled configuration, or have a large E there.
    omitted : int
        Further possible sets, beyond the limit of work.
    """

    sets: tuple[CoordinateSet, ...]
    singular: int
    omitted: int

    def schedule(self, machine: Machine, level: str = "auto") -> SearchResult:
        """Return the shortest schedule of all sets on a `machine`, with tasks of size `level`."""
        return shortest([Variant(s.name, "", s.graph) for s in self.sets], machine, level)


def coordinate_sets(
    mechanism: Mechanism, mass_methods: Sequence[str] = MASS_METHODS, progress: Any = None
) -> CoordinateSets:
    """Return the sets of independent coordinates of a mechanism with loops, and the critical path of each.

    Parameters
    ----------
    mechanism
        Mechanism with loops.
    mass_methods
        Methods of the mass matrix to try.
    progress
        Function of the share done, False for silence, True or None for a bar on a terminal after a second.

    Raises
    ------
    InputError
        If the mechanism has no loops, or too many sets.
    """
    if not mechanism.loops:
        raise InputError(f'"{mechanism.name}" has no loops: its joint coordinates are independent already.')
    loops = analysis(mechanism)
    rank, nv = loops.rank, mechanism.nv
    able = [k for k in range(nv) if loops.pattern[:, k].any()]
    if comb(len(able), rank.rank) > MAX_SETS:
        raise InputError(
            f'"{mechanism.name}" has {comb(len(able), rank.rank):,} sets of dependent coordinates; at most '
            f"{MAX_SETS:,} are examined. Lock joints, or divide the mechanism into its loops."
        )
    Cs = _jacobians(mechanism)
    possible: list[tuple[float, tuple[int, ...]]] = []
    singular = 0
    for dependent in combinations(able, rank.rank):
        largest = max(largest_null_space_element(C, dependent) for C in Cs)
        if largest <= MAX_E:
            possible.append((largest, dependent))
        else:
            singular += 1
    possible.sort()
    sets: list[CoordinateSet] = []
    with progress_bar(f"coordinates of {mechanism.name}", progress, "") as update:
        for k, (largest, dependent) in enumerate(possible[:MAX_TRACED]):
            sets += _sets(mechanism, Cs[0], largest, dependent, mass_methods)
            if update:
                update((k + 1) / min(len(possible), MAX_TRACED))
    sets.sort(key=lambda s: (s.span, s.operations))
    return CoordinateSets(tuple(sets), singular, max(0, len(possible) - MAX_TRACED))


def _jacobians(mechanism: Mechanism) -> list[Any]:
    """Return C of the equations that matter in the sampled configurations, in natural sizes of coordinates."""
    loops = analysis(mechanism)
    tree = mechanism.tree if not mechanism.parameters else mechanism.at().tree
    Cs = evaluate_constraints(tree, np.atleast_2d(loops.samples)).C[:, list(loops.rank.rows)]
    return list(Cs * loops.rank.natural(mechanism.nv))


def _sets(
    mechanism: Mechanism, C: Any, largest: float, dependent: Sequence[int], mass_methods: Sequence[str]
) -> Iterator[CoordinateSet]:
    """Yield a set by each method of the mass matrix."""
    loops = analysis(mechanism)
    mask = np.array([float(k in dependent) for k in range(mechanism.nv)])
    order = tuple(choose_pivots(C * mask, loops.pattern & (mask > 0.0), loops.rank))
    part = constrained_dynamics.CoordinatePartition(loops.rank, order)
    names = tuple(mechanism.columns[1][k] for k in part.independent(mechanism.nv))
    for method in mass_methods:
        if METHODS[method].applies(mechanism.tree, "mass_matrix"):
            graph = minimal_graph(mechanism, part, method)
            yield CoordinateSet(names, method, largest, graph.count().arithmetic, graph.span(), graph)


def minimal_graph(
    mechanism: Mechanism, part: constrained_dynamics.CoordinatePartition, mass_method: str = "crba"
) -> Graph:
    """Trace the accelerations in the minimal form (19).

    Parameters
    ----------
    mechanism
        Mechanism with loops.
    part
        Its dependent coordinates, in the order of elimination.
    mass_method
        Method of the mass matrix.
    """
    tree, mass = mechanism.tree, METHODS[mass_method].function("mass_matrix")

    def body(q: Any, v: Any, tau: Any) -> dict[str, Any]:
        a = constrained_dynamics.minimal(tree, rnea.inverse_dynamics, mass, part, list(q), list(v), list(tau))
        return {"forward_dynamics": a}

    inputs = {"q": (mechanism.nq,), "v": (mechanism.nv,), "tau": (mechanism.nv,)}
    return trace(f"{mechanism.name}.forward_dynamics", body, inputs, mechanism.parameters)
