"""Numerical treatment of closed loops: starts, coordinate partitions and their bounds, and reasons for failed steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from bellcrank.dynamics.loops import assemble
from bellcrank.dynamics.loops.assembly import assemble_batch, consistent_velocity
from bellcrank.dynamics.loops.constraint_values import displace, evaluate_constraints
from bellcrank.dynamics.loops.coordinate_partitioning import (
    choose_pivots,
    is_stable,
    largest_null_space_element,
    least_pivot,
)
from bellcrank.errors import InputError
from bellcrank.model import Tree
from bellcrank.sim.constraints import loop_state as closing
from bellcrank.sim.program.system_graphs import Array, Closure, RunGroup

if TYPE_CHECKING:
    from bellcrank.sim.constraints.looped_dynamics import LoopedDynamics

# Largest gap of loops at the end of a step, relative to the natural size of each equation (constraint_values.py).
GAP_TOLERANCES = {"float64": 1e-10, "float32": 2e-5}
ROW_RANK_TOLERANCE = 1e-3  # relative singular values below this are dropped in rows near a singular configuration
CLOSURE_ATTEMPTS = 10  # largest number of attempts to close the loops of a row
SAMPLED_STATES = 32  # states from which a common partition is chosen
WEAK_PIVOT = 0.1  # size of a pivot: other equations would be better where it is a third of that, or of its first value
MAX_E = 3.0  # largest element of E above which other independent coordinates would be better
MAX_E_GROWTH = 3.0  # growth of E that is allowed where it is large from the start
# A partition suffices if E is below the first, or below the second times the best E.
SUFFICIENT_E, SUFFICIENT_E_RATIO = 2.0, 1.5


class LoopClosure(Closure):
    """The loops of a system, by one of its coordinate partitions."""

    dynamics: LoopedDynamics

    def neutral(self) -> Array:
        """Return the nearest configuration with closed loops to the one with all joints at zero."""
        m = self.dynamics.system.mechanism
        return np.asarray(assemble(m, m.neutral())[0])

    def polished(self, y: Array, parameters: Array) -> Array:
        """Return the nearest state to `y` with closed loops; `parameters` are the values of free parameters.

        Velocities hardly change, because singular directions are left alone.
        """
        m, tree = self.dynamics.system.mechanism, self._plain_tree(parameters)
        q, v = y[: m.nq], y[m.nq : m.nq + m.nv]
        size = self.dynamics.analysis.scales.rows
        shut, gap = assemble_batch(tree, q, rough=self.dynamics.analysis.zero_threshold)
        for _ in range(
            CLOSURE_ATTEMPTS
        ):  # near a singular configuration `assemble_batch` converges slowly and gives up early
            if np.abs(gap * size).max(initial=0.0) < 0.1 * GAP_TOLERANCES["float64"]:
                break
            shut, gap = assemble_batch(tree, shut, rough=self.dynamics.analysis.zero_threshold)
        return np.concatenate([shut, consistent_velocity(tree, shut, v, rough=ROW_RANK_TOLERANCE), y[m.nq + m.nv :]])

    def _plain_tree(self, p: Array) -> Tree:
        m = self.dynamics.system.mechanism
        if not m.parameters:
            return m.tree
        names = list(self.dynamics.system.parameters)
        return m.at({name: float(p[names.index(name)]) for name in m.parameters}).tree

    def checked(self, y: Array, parameters: Array) -> Array:
        """Return the starts `y` with `parameters`, loops closed; if all runs start alike, only one is computed."""
        if _has_equal_starts(y, parameters):
            return np.broadcast_to(self._checked(y[:1], parameters[:1]), y.shape)
        return self._checked(y, parameters)

    def _checked(self, y: Array, parameters: Array) -> Array:
        m, y = self.dynamics.system.mechanism, np.array(y)
        for runs in self._equal_parameter_groups(parameters):
            tree, q, v = self._plain_tree(parameters[runs[0]]), y[runs, : m.nq], y[runs, m.nq : m.nq + m.nv]
            words = [f" (run {k})" if len(y) > 1 else "" for k in runs]
            q = closing.checked_starts(m, tree, self.dynamics.analysis, q, v, words)
            y[runs, : m.nq] = q
        return y

    def _equal_parameter_groups(self, parameters: Array) -> list[Array]:
        """Return groups of runs with equal free parameters of the mechanism; methods take each group at once."""
        free = parameters if self.dynamics.system.mechanism.parameters else parameters[:, :0]
        _, group = np.unique(free, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        return np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)

    def _jacobians(self, y: Array, parameters: Array) -> Array:
        """Return C of the equations that matter, in natural sizes of coordinates: (states, rows, nv)."""
        m, rows = self.dynamics.system.mechanism, list(self.dynamics.rank.rows)
        out = np.zeros((len(y), len(rows), m.nv))
        for some in self._equal_parameter_groups(parameters[: len(y)]):
            out[some] = evaluate_constraints(self._plain_tree(parameters[some[0]]), y[some, : m.nq]).C[:, rows]
        return out * self.dynamics.rank.natural(m.nv)

    def common_dynamics(self, y: Array, parameters: Array, independent: Sequence[str] = ()) -> LoopedDynamics:
        """Return the dynamics by the partition whose largest E is least over (a sample of) the states.

        Parameters
        ----------
        y
            States, (runs, size).
        parameters
            Free parameters, (runs, np).
        independent
            Joints that must be independent coordinates.
        """
        m, rank = self.dynamics.system.mechanism, self.dynamics.rank
        sampled_runs = np.unique(np.linspace(0, len(y) - 1, min(len(y), SAMPLED_STATES)).astype(int))
        Cs = [C for C in self._jacobians(y[sampled_runs], parameters[sampled_runs]) if np.isfinite(C).all()]
        dependence_mask = self._dependence_mask(independent)
        orders = {tuple(choose_pivots(C * dependence_mask, self.dynamics.analysis.pattern, rank)[0]) for C in Cs}
        full_orders = sorted(order for order in orders if len(order) == rank.rank)
        if not full_orders:
            raise InputError(
                f'independent, of "{m.name}": {", ".join(independent)} do not determine its motion, or depend on '
                f"each other; it has {m.nv - rank.rank} independent coordinates (mechanism.loop_analysis)."
            )

        def largest(order: tuple[tuple[int, int], ...]) -> float:
            return max(self.partition_cost(C, order) for C in Cs)

        best = min(full_orders, key=largest)
        limit = max(SUFFICIENT_E, SUFFICIENT_E_RATIO * largest(best))
        for x in self.dynamics.others.values():  # prefer a partition that exists already, if it is nearly as good
            fits = all(dependence_mask[c] for c in x.part.dependent) and all(is_stable(C, x.part.order) for C in Cs)
            if fits and largest(x.part.order) <= limit:
                return x
        return self.dynamics.with_partition(best)

    def _dependence_mask(self, independent: Sequence[str]) -> Array:
        """Return 0 for elements of v that must be independent, 1 for the others."""
        self.check_independent(independent)
        return np.array([0.0 if name in independent else 1.0 for name in self.dynamics.system.mechanism.columns[1]])

    def closed_points(self, y: Array, parameters: Array) -> tuple[Array, Array]:
        """Return the states `y` with `parameters`, loops closed, and a mask of the singular ones, which are unchanged.

        States with equal parameters are computed together.
        """
        m, y, bad = self.dynamics.system.mechanism, np.array(y), np.zeros(len(y), bool)
        for runs in self._equal_parameter_groups(parameters):
            y[runs, : m.nq], bad[runs] = self._closed_points(y[runs], parameters[runs[0]], runs)
        return y, bad

    def _closed_points(self, y: Array, p: Array, runs: Array) -> tuple[Array, Array]:
        m, loops, tree = self.dynamics.system.mechanism, self.dynamics.analysis, self._plain_tree(p)
        rank = loops.rank
        q, v = y[:, : m.nq], y[:, m.nq : m.nq + m.nv]
        equations = evaluate_constraints(tree, q)
        sizes = np.linalg.svd(closing.scaled_jacobian(tree, rank, equations.C), compute_uv=False)
        bad = np.zeros(len(y), bool)
        if rank.rank:
            bad = sizes[:, 0] > closing.SINGULAR_RATIO * closing.usual_condition(loops) * sizes[:, rank.rank - 1]
        gaps = closing.gaps(loops, equations, v)[:2]
        # The points with the largest gaps represent all points.
        for k in {int(np.argmax(np.where(bad, -1.0, gap))) for gap in gaps if not bad.all()}:
            words = [f" (point {runs[k]})" if len(y) > 1 else ""]
            closing.checked_starts(m, tree, loops, q[k : k + 1], v[k : k + 1], words)
        out = np.array(q)
        out[~bad] = assemble_batch(tree, q[~bad], rough=loops.zero_threshold)[0]
        return out, bad

    def partition_cost(self, C: Array, order: tuple[tuple[int, int], ...]) -> float:
        """Return how bad a partition is, by the measure of a run (see `correction`).

        Parameters
        ----------
        C
            Constraint Jacobian, in natural sizes of coordinates.
        order
            Pivots of the partition: pairs of an equation and a coordinate.
        """
        size = largest_null_space_element(C, [c for _, c in order])
        if not self.dynamics.rank.groups:
            return size
        rows = C / np.array(self.dynamics.rank.scale)[:, None]
        return max(size, WEAK_PIVOT * self.dynamics.rank.usual_pivot / max(least_pivot(rows, order), 1e-300))

    def provenance(self, widest: float, switched: int) -> dict[str, Any]:
        """Return the provenance entries for the loops.

        Parameters
        ----------
        widest
            Largest distance by which loops were open.
        switched
            Number of changes of the partition.
        """
        return {"form": self.dynamics.form, "loops open by at most": float(widest), "partitions changed": switched}

    def condition(self, y: Array, parameters: Array) -> closing.JacobianCondition:
        """Return how near the state `y` with `parameters` is to a singular configuration, and in which loop."""
        m = self.dynamics.system.mechanism
        return closing.jacobian_condition(m, self._plain_tree(parameters), self.dynamics.analysis, y[: m.nq])

    def open_loop_message(self, y: Array, parameters: Array, t: float) -> str:
        """Return why loops could not be closed in a step from `y` with `parameters` at the time `t`."""
        m = self.dynamics.system.mechanism
        return closing.open_loop_message(m, self.condition(y, parameters), y[m.nq : m.nq + m.nv], self.dynamics.form, t)

    def singular_ahead(self, y: Array, parameters: Array, h: float) -> bool:
        """Return True if the step `h` from `y` with `parameters` ends near a singular configuration."""
        m, tree = self.dynamics.system.mechanism, self._plain_tree(parameters)
        ahead, _ = assemble_batch(
            tree, displace(tree, y[: m.nq], h * y[m.nq : m.nq + m.nv]), rough=self.dynamics.analysis.zero_threshold
        )
        return closing.jacobian_condition(m, tree, self.dynamics.analysis, ahead).near

    def near_singular_text(self, y: Array, parameters: Array) -> str:
        """Return a description if `y` with `parameters` is near a singular configuration, else an empty string."""
        condition = self.condition(y, parameters)
        return condition.words if condition.near else ""


@final
class PartitionClosure(LoopClosure):
    """The loops of a system in the minimal form, whose runs use the partition that suits their states."""

    def grouped(self, y: Array, parameters: Array) -> list[RunGroup]:
        """Return the runs in states `y` with `parameters`, grouped by their best partition."""
        alike = _has_equal_starts(y, parameters)
        members_by_dynamics: dict[LoopedDynamics, list[tuple[int, float]]] = {}
        choices: dict[bytes, tuple[LoopedDynamics, float]] = {}  # by C: many runs differ only in velocities
        for k, C in enumerate(self._jacobians(y[:1] if alike else y, parameters)):
            if C.tobytes() not in choices:
                dynamics = self.best_dynamics(C)
                # Where even the best partition has a large E, let E grow: the run may get past that region.
                choices[C.tobytes()] = dynamics, max(MAX_E, MAX_E_GROWTH * self.partition_cost(C, dynamics.part.order))
            dynamics, bound = choices[C.tobytes()]
            members_by_dynamics.setdefault(dynamics, []).append((k, bound))
        if alike:
            ((dynamics, ((_, bound),)),) = members_by_dynamics.items()
            return [RunGroup(dynamics, np.arange(len(y)), np.broadcast_to(bound, len(y)))]
        return [
            RunGroup(dynamics, np.array([k for k, _ in some]), np.array([b for _, b in some]))
            for dynamics, some in members_by_dynamics.items()
        ]

    def best_dynamics(self, C: Array) -> LoopedDynamics:
        """Return the dynamics by the best partition for the constraint Jacobian `C`, in natural sizes of coordinates.

        The first partition is preferred if it is nearly as good, so that runs do not depend on earlier ones and use the
        coordinates of a stepper (multi_partition_program.py); then others that exist already.
        """
        best = tuple(choose_pivots(C, self.dynamics.analysis.pattern, self.dynamics.rank)[0])
        limit = max(SUFFICIENT_E, SUFFICIENT_E_RATIO * self.partition_cost(C, best))
        first = next(iter(self.dynamics.others.values()))
        if is_stable(C, first.part.order) and self.partition_cost(C, first.part.order) <= limit:
            return first
        known = [x for x in self.dynamics.others.values() if is_stable(C, x.part.order)]
        sizes = [self.partition_cost(C, x.part.order) for x in known]
        return (
            known[int(np.argmin(sizes))] if min(sizes, default=np.inf) <= limit else self.dynamics.with_partition(best)
        )


def _has_equal_starts(y: Array, parameters: Array) -> bool:
    """Return True if there are several runs with equal starts, so that one of them represents all."""
    return len(y) > 1 and all(bool((a == a[:1]).all()) for a in (y, parameters))
