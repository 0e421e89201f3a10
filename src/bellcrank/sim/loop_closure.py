"""Numerical treatment of closed loops: starts, coordinate partitions and their bounds, and reasons for failed steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from bellcrank.dynamics.loops import assemble
from bellcrank.dynamics.loops.assembly import assembled, consistent
from bellcrank.dynamics.loops.numbers import closed, moved
from bellcrank.dynamics.loops.partition import least_pivot, pivots, size_of_E, stable
from bellcrank.errors import InputError, unknown
from bellcrank.model import Tree
from bellcrank.sim import loop_state as closing
from bellcrank.sim.closure import Array, Closure, Group

if TYPE_CHECKING:
    from bellcrank.sim.looped_dynamics import LoopedDynamics

# Largest gap of loops at the end of a step, relative to the natural size of each equation (scaling.py).
CLOSED = {"float64": 1e-10, "float32": 2e-5}
BLURRED = 1e-3  # relative singular values below this are dropped in rows near a singular configuration
PATIENCE = 10  # largest number of attempts to close the loops of a row
TRIED = 32  # states from which a common partition is chosen
WEAK = 0.1  # size of a pivot: other equations would be better where it is a third of that, or of its first value
BOUND = 3.0  # largest element of E above which other independent coordinates would be better
GROWTH = 3.0  # growth of E that is allowed where it is large from the start
EASY, NEARLY = 2.0, 1.5  # a partition suffices if E is below the first, or below the second times the best E


@final
class LoopClosure(Closure):
    """The loops of a system, by one of its coordinate partitions."""

    def __init__(self, by: LoopedDynamics) -> None:
        self.by = by

    def neutral(self) -> Array:
        """Return the nearest configuration with closed loops to the one with all joints at zero."""
        m = self.by.system.mechanism
        return np.asarray(assemble(m, m.neutral())[0])

    def polished(self, y: Array, parameters: Array) -> Array:
        """Return the nearest state to `y` with closed loops; `parameters` are the values of free parameters.

        Velocities hardly change, because singular directions are left alone.
        """
        m, tree = self.by.system.mechanism, self._plain_tree(parameters)
        q, v = y[: m.nq], y[m.nq : m.nq + m.nv]
        size = self.by.analysis.scales.rows
        shut, gap = assembled(tree, q, rough=self.by.analysis.rough)
        for _ in range(PATIENCE):  # near a singular configuration `assembled` converges slowly and gives up early
            if np.abs(gap * size).max(initial=0.0) < 0.1 * CLOSED["float64"]:
                break
            shut, gap = assembled(tree, shut, rough=self.by.analysis.rough)
        return np.concatenate([shut, consistent(tree, shut, v, rough=BLURRED), y[m.nq + m.nv :]])

    def _plain_tree(self, p: Array) -> Tree:
        m = self.by.system.mechanism
        if not m.parameters:
            return m.tree
        names = list(self.by.system.parameters)
        return m.at({name: float(p[names.index(name)]) for name in m.parameters}).tree

    def checked(self, y: Array, parameters: Array) -> Array:
        """Return the starts `y` with `parameters`, loops closed; if all runs start alike, only one is computed."""
        if _alike(y, parameters):
            return np.broadcast_to(self._checked(y[:1], parameters[:1]), y.shape)
        return self._checked(y, parameters)

    def _checked(self, y: Array, parameters: Array) -> Array:
        m, y = self.by.system.mechanism, np.array(y)
        for some in self._alike_parameters(parameters):
            tree, q, v = self._plain_tree(parameters[some[0]]), y[some, : m.nq], y[some, m.nq : m.nq + m.nv]
            doubtful = np.ones(1, bool) if len(some) == 1 else ~closing.sound(tree, self.by.analysis, q, v)
            for k in np.flatnonzero(doubtful):  # one after another, for an error message about the state
                run = f" (run {some[k]})" if len(y) > 1 else ""
                q[k] = closing.started(m, tree, self.by.analysis, q[k], v[k], run)
            if self.by.analysis.rank.rank and not doubtful.all():
                q[~doubtful] = assembled(tree, q[~doubtful], rough=self.by.analysis.rough)[0]
            y[some, : m.nq] = q
        return y

    def _alike_parameters(self, parameters: Array) -> list[Array]:
        """Return groups of runs with equal free parameters of the mechanism; methods take each group at once."""
        free = parameters if self.by.system.mechanism.parameters else parameters[:, :0]
        _, which = np.unique(free, axis=0, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        return np.split(order, np.flatnonzero(np.diff(which.ravel()[order])) + 1)

    def grouped(self, y: Array, parameters: Array) -> list[Group]:
        """Return the runs in states `y` with `parameters`, in the minimal form grouped by their best partition."""
        if self.by.form != "minimal":
            return [Group(self.by, np.arange(len(y)))]
        alike = _alike(y, parameters)
        found: dict[LoopedDynamics, list[tuple[int, float]]] = {}
        known: dict[bytes, tuple[LoopedDynamics, float]] = {}  # by C: many runs differ only in velocities
        for k, C in enumerate(self._jacobians(y[:1] if alike else y, parameters)):
            if C.tobytes() not in known:
                by = self.suited(C)
                # Where even the best partition has a large E, let E grow: the run may get past that region.
                known[C.tobytes()] = by, max(BOUND, GROWTH * self.size(C, by.part.order))
            by, bound = known[C.tobytes()]
            found.setdefault(by, []).append((k, bound))
        if alike:
            ((by, ((_, bound),)),) = found.items()
            return [Group(by, np.arange(len(y)), np.broadcast_to(bound, len(y)))]
        return [Group(by, np.array([k for k, _ in some]), np.array([b for _, b in some])) for by, some in found.items()]

    def _jacobians(self, y: Array, parameters: Array) -> Array:
        """Return C of the equations that matter, in natural sizes of coordinates: (states, rows, nv)."""
        m, rows = self.by.system.mechanism, list(self.by.rank.rows)
        out = np.zeros((len(y), len(rows), m.nv))
        for some in self._alike_parameters(parameters[: len(y)]):
            out[some] = closed(self._plain_tree(parameters[some[0]]), y[some, : m.nq]).C[:, rows]
        return out * self.by.rank.natural(m.nv)

    def common(self, y: Array, parameters: Array, independent: Sequence[str] = ()) -> LoopedDynamics:
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
        m, rank = self.by.system.mechanism, self.by.rank
        some = np.unique(np.linspace(0, len(y) - 1, min(len(y), TRIED)).astype(int))
        trees = [self._plain_tree(parameters[k]) for k in some]
        size = rank.natural(m.nv)
        Cs = [closed(tree, y[k, : m.nq]).C[list(rank.rows)] * size for tree, k in zip(trees, some, strict=True)]
        Cs = [C for C in Cs if np.isfinite(C).all()]
        kept = self._kept(independent)
        orders = {tuple(pivots(C * kept, self.by.analysis.pattern, rank)[0]) for C in Cs}
        whole = sorted(order for order in orders if len(order) == rank.rank)
        if not whole:
            raise InputError(
                f'independent, of "{m.name}": {", ".join(independent)} do not determine its motion, or depend on '
                f"each other; it has {m.nv - rank.rank} independent coordinates (mechanism.loop_analysis)."
            )

        def largest(order: tuple[tuple[int, int], ...]) -> float:
            return max(self.size(C, order) for C in Cs)

        best = min(whole, key=largest)
        limit = max(EASY, NEARLY * largest(best))
        for x in self.by.others.values():  # prefer a partition that exists already, if it is nearly as good
            fits = all(kept[c] for c in x.part.dependent) and all(stable(C, x.part.order) for C in Cs)
            if fits and largest(x.part.order) <= limit:
                return x
        return self.by.by(best)

    def _kept(self, independent: Sequence[str]) -> Array:
        """Return 0 for elements of v that must be independent, 1 for the others."""
        names = list(self.by.system.mechanism.columns[1])
        kept = np.ones(len(names))
        for name in independent:
            if name not in names:
                raise InputError(f'independent, of "{self.by.system.mechanism.name}": {unknown("joint", name, names)}')
            kept[names.index(name)] = 0.0
        return kept

    def surveyed(self, y: Array, parameters: Array) -> tuple[Array, Array]:
        """Return the states `y` with `parameters`, loops closed, and a mask of the singular ones, which are unchanged.

        States with equal parameters are computed together.
        """
        m, y, bad = self.by.system.mechanism, np.array(y), np.zeros(len(y), bool)
        for some in self._alike_parameters(parameters):
            y[some, : m.nq], bad[some] = self._surveyed(y[some], parameters[some[0]], some)
        return y, bad

    def _surveyed(self, y: Array, p: Array, which: Array) -> tuple[Array, Array]:
        m, rank, loops, tree = self.by.system.mechanism, self.by.rank, self.by.analysis, self._plain_tree(p)
        q, v = y[:, : m.nq], y[:, m.nq : m.nq + m.nv]
        now = closed(tree, q)
        sizes = np.linalg.svd(closing.natural(tree, rank, now.C), compute_uv=False)
        bad = np.zeros(len(y), bool)
        if rank.rank:
            bad = sizes[:, 0] > closing.SINGULAR * closing.usual_condition(loops) * sizes[:, rank.rank - 1]
        gaps = (
            np.abs(now.value * loops.scales.rows).max(axis=1, initial=0.0),
            np.abs(np.einsum("rmv,rv->rm", now.C, v) * loops.scales.rows).max(axis=1, initial=0.0),
        )
        # The points with the largest gaps represent all points.
        for k in {int(np.argmax(np.where(bad, -1.0, gap))) for gap in gaps if not bad.all()}:
            closing.started(m, tree, loops, q[k], v[k], f" (point {which[k]})" if len(y) > 1 else "")
        out = np.array(q)
        out[~bad] = assembled(tree, q[~bad], rough=loops.rough)[0]
        return out, bad

    def suited(self, C: Array) -> LoopedDynamics:
        """Return the dynamics by the best partition for the constraint Jacobian `C`, in natural sizes of coordinates.

        A partition that exists already is preferred if it is nearly as good.
        """
        best = tuple(pivots(C, self.by.analysis.pattern, self.by.rank)[0])
        limit = max(EASY, NEARLY * self.size(C, best))
        known = [x for x in self.by.others.values() if stable(C, x.part.order)]
        sizes = [self.size(C, x.part.order) for x in known]
        return known[int(np.argmin(sizes))] if min(sizes, default=np.inf) <= limit else self.by.by(best)

    def size(self, C: Array, order: tuple[tuple[int, int], ...]) -> float:
        """Return how bad a partition is, by the measure of a run (see `correction`).

        Parameters
        ----------
        C
            Constraint Jacobian, in natural sizes of coordinates.
        order
            Pivots of the partition: pairs of an equation and a coordinate.
        """
        size = size_of_E(C, [c for _, c in order])
        if not self.by.rank.groups:
            return size
        rows = C / np.array(self.by.rank.scale)[:, None]
        return max(size, WEAK * self.by.rank.usual_pivot / max(least_pivot(rows, order), 1e-300))

    def told(self, widest: float, switched: int) -> dict[str, Any]:
        """Return the provenance entries for the loops.

        Parameters
        ----------
        widest
            Largest distance by which loops were open.
        switched
            Number of changes of the partition.
        """
        return {"form": self.by.form, "loops open by at most": float(widest), "partitions changed": switched}

    def condition(self, y: Array, parameters: Array) -> closing.Condition:
        """Return how near the state `y` with `parameters` is to a singular configuration, and in which loop."""
        m = self.by.system.mechanism
        return closing.condition(m, self._plain_tree(parameters), self.by.analysis, y[: m.nq])

    def why_open(self, y: Array, parameters: Array, t: float) -> str:
        """Return why loops could not be closed in a step from `y` with `parameters` at the time `t`."""
        m = self.by.system.mechanism
        return closing.why_open(m, self.condition(y, parameters), y[m.nq : m.nq + m.nv], self.by.form, t)

    def singular_ahead(self, y: Array, parameters: Array, h: float) -> bool:
        """Return True if the step `h` from `y` with `parameters` ends near a singular configuration."""
        m, tree = self.by.system.mechanism, self._plain_tree(parameters)
        ahead, _ = assembled(tree, moved(tree, y[: m.nq], h * y[m.nq : m.nq + m.nv]), rough=self.by.analysis.rough)
        return closing.condition(m, tree, self.by.analysis, ahead).near

    def near(self, y: Array, parameters: Array) -> str:
        """Return a description if `y` with `parameters` is near a singular configuration, else an empty string."""
        found = self.condition(y, parameters)
        return found.words if found.near else ""


def _alike(y: Array, parameters: Array) -> bool:
    """Return True if there are several runs with equal starts, so that one of them represents all."""
    return len(y) > 1 and all(bool((a == a[:1]).all()) for a in (y, parameters))
