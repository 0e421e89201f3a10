"""Numerical treatment of closed loops: starts, singular configurations, partitions, and reasons for failed steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from bellcrank.dynamics import crba
from bellcrank.dynamics.loops import assemble
from bellcrank.dynamics.loops.assembly import assemble_batch, consistent_velocity, residual_summary
from bellcrank.dynamics.loops.constraint_equations import equation_names
from bellcrank.dynamics.loops.constraint_values import Array, ConstraintValues, displace, evaluate_constraints
from bellcrank.dynamics.loops.coordinate_partitioning import (
    choose_pivots,
    is_stable,
    largest_null_space_element,
    least_pivot,
)
from bellcrank.dynamics.loops.equation_analysis import Analysis
from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.errors import InputError, ModelError
from bellcrank.graph import Layout
from bellcrank.graph.program import FINISHED, NEVER_TIME, RUNNING
from bellcrank.integrate import interpolate
from bellcrank.integrate.problem import hermite_polynomial
from bellcrank.model import Mechanism, Tree
from bellcrank.sim.program.system_graphs import Closure, Dynamics, RunGroup, ToEnd

if TYPE_CHECKING:
    from bellcrank.sim.constraints.looped_dynamics import LoopedDynamics

MAX_START_GAP = 1e-6  # largest gap of a start, relative to the natural size of an equation (constraint_values.py)
SINGULAR_RATIO = 1e7  # condition number, relative to the usual one, above which a start determines no motion
USUAL_SINGULAR_VALUE = 0.1  # typical lower bound of the smallest singular values of small linkages
# For each coordinate, smallest eigenvalue of the mass matrix with a unit diagonal that counts as inertia.
MIN_INERTIA = 1e-15
# Condition number, relative to the usual one, above which a failure is due to the configuration.
NEAR_SINGULAR_RATIO = 1e3


@dataclass(frozen=True)
class JacobianCondition:
    """Condition number of the constraint Jacobian C in natural sizes, each row relative to its usual size."""

    number: float
    equation: str  # the equation that follows from the others where the number is infinite
    joint: str  # the joint whose element of v the loops then leave free
    usual: float = 1.0  # the number in most configurations

    @property
    def near(self) -> bool:
        """True near a singular configuration."""
        return self.number > NEAR_SINGULAR_RATIO * self.usual

    @property
    def singular(self) -> bool:
        """True so near a singular configuration that no motion follows from the state."""
        return self.number > SINGULAR_RATIO * self.usual

    @property
    def words(self) -> str:
        """The number, with the equation and the joint that make it large."""
        number = f"{self.number:.3g}" if self.number < 1e16 else "infinite"
        return f'the condition number of C is {number}, worst in loop "{self.equation}", for "{self.joint}"'


def jacobian_condition(m: Mechanism, tree: Tree, loops: Analysis, q: Array) -> JacobianCondition:
    """Return the condition of the constraint Jacobian.

    Parameters
    ----------
    m
        The mechanism.
    tree
        Its tree with the values of free parameters.
    loops
        Analysis of its loops.
    q
        Positions.
    """
    rank = loops.rank
    U, s, V = np.linalg.svd(scaled_jacobian(tree, rank, evaluate_constraints(tree, q).C))
    n = rank.rank - 1  # later columns of U belong to redundant constraints, later rows of V to degrees of freedom
    equation = equation_names(tree)[rank.rows[int(np.argmax(np.abs(U[:, n])))]]
    joint = m.columns[1][int(np.argmax(np.abs(V[n])))]
    return JacobianCondition(float(s[0] / max(s[n], 1e-300)), equation, joint, usual_condition(loops))


def usual_condition(loops: Analysis) -> float:
    """Return the condition number of C in most configurations, from the analysis `loops`; at least 1."""
    return max(1.0, USUAL_SINGULAR_VALUE / max(loops.gap[0], 1e-300))


def scaled_jacobian(tree: Tree, rank: LoopRank, C: Array) -> Array:
    """Return the relevant rows of the constraint Jacobian in natural sizes of coordinates and rows.

    Parameters
    ----------
    tree
        The tree.
    rank
        Rank analysis of the loop equations.
    C
        Constraint Jacobian, (..., equations, nv).
    """
    return np.asarray(C[..., list(rank.rows), :] * rank.natural(tree.nv) / np.array(rank.scale)[:, None])


def checked_starts(m: Mechanism, tree: Tree, loops: Analysis, q: Array, v: Array, names: Sequence[str]) -> Array:
    """Return q with small gaps closed, or raise an error if gaps are large or no motion follows from a state.

    Parameters
    ----------
    m
        The mechanism.
    tree
        Its tree with the values of free parameters.
    loops
        Analysis of its loops.
    q, v
        Positions (n, nq) and velocities (n, nv).
    names
        Names of the states in an error; empty for a single one.
    """
    faulty = np.flatnonzero(~acceptable_starts(tree, loops, q, v))
    if len(faulty):
        k = int(faulty[0])
        _raise_start_error(m, tree, loops, q[k], v[k], names[k])
    if not loops.rank.rank:
        return q
    if len(q) == 1:
        return assemble_batch(tree, q[0], rough=loops.zero_threshold)[0][None]
    return assemble_batch(tree, q, rough=loops.zero_threshold)[0]


def _raise_start_error(m: Mechanism, tree: Tree, loops: Analysis, q: Array, v: Array, run: str) -> None:
    """Raise the error about one state that `acceptable_starts` does not accept; `run` names it."""
    row_names, equations = equation_names(tree), evaluate_constraints(tree, q)
    gap, speed, fastest = gaps(loops, equations, v)
    if gap > max(MAX_START_GAP, loops.contradiction_gap):
        raise InputError(
            f'q0{run} does not close the loops of "{m.name}": '
            f"{residual_summary(row_names, equations.value, loops.scales.rows)} (m, or 1 for directions). "
            "mechanism.assemble(q0) gives the nearest configuration that does."
        )
    if speed > max(MAX_START_GAP, loops.contradiction_gap * max(1.0, float(fastest))):
        raise InputError(
            f'v0{run} opens the loops of "{m.name}": {residual_summary(row_names, equations.C @ v, loops.scales.rows)} '
            "(m/s, or rad/s). mechanism.assemble(q0, v0) gives the nearest velocity that does not."
        )
    jacobian_state = jacobian_condition(m, tree, loops, q)
    if jacobian_state.singular:
        raise InputError(
            f'q0{run} is a singular configuration of "{m.name}": {jacobian_state.words}. It can move there in more '
            "ways than elsewhere, so its motion is not determined. Start slightly away from it: move a joint, and "
            "mechanism.assemble(q0, fixed=[...]) closes the loops (simulate --start NAME=VALUE does both)."
        )
    C = scaled_jacobian(tree, loops.rank, equations.C) / loops.rank.natural(tree.nv)
    _, motions = _motion_inertias(C, np.array(crba.mass_matrix(tree, q.tolist()), float), loops.rank)
    worst = m.columns[1][int(np.argmax(np.abs(motions[:, 0])))]
    raise ModelError(
        f'mechanism "{m.name}": the loops allow a motion, mostly of "{worst}", that moves no inertia, so no force '
        "determines its acceleration. Give the bodies there a mass and an inertia, or the joint an armature."
    )


def gaps(loops: Analysis, values: ConstraintValues, v: Array) -> tuple[Array, Array, Array]:
    """Return the largest gap, the largest speed of a gap, and the largest velocity, all in natural sizes.

    Parameters
    ----------
    loops
        Analysis of the loops.
    values
        Values and Jacobians of the equations.
    v
        Velocities.
    """
    gap = np.abs(values.value * loops.scales.rows).max(axis=-1, initial=0.0)
    speed = np.abs(np.einsum("...mk,...k->...m", values.C, v) * loops.scales.rows).max(axis=-1, initial=0.0)
    return np.asarray(gap), np.asarray(speed), np.asarray(np.abs(v / loops.scales.columns).max(axis=-1, initial=0.0))


def acceptable_starts(tree: Tree, loops: Analysis, q: Array, v: Array) -> Array:
    """Return a mask of the states with closed loops from which a motion follows.

    Parameters
    ----------
    tree
        The tree with the values of free parameters.
    loops
        Analysis of its loops.
    q, v
        Positions (n, nq) and velocities (n, nv) of n states.
    """
    equations, rank = evaluate_constraints(tree, q), loops.rank
    gap, speed, fastest = gaps(loops, equations, v)
    accepted = gap <= max(MAX_START_GAP, loops.contradiction_gap)
    accepted &= speed <= np.maximum(MAX_START_GAP, loops.contradiction_gap * np.maximum(1.0, fastest))
    if not rank.rank:
        return np.asarray(accepted)
    C = scaled_jacobian(tree, rank, equations.C)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(C).all(axis=(1, 2)) & accepted
    accepted &= finite
    C = np.where(finite[:, None, None], C, 0.0)
    size = np.linalg.svd(C, compute_uv=False)
    accepted &= size[:, 0] <= SINGULAR_RATIO * usual_condition(loops) * np.maximum(size[:, rank.rank - 1], 1e-300)
    rows = crba.mass_matrix(tree, list(np.moveaxis(q, -1, 0)))
    M = np.stack([np.stack(np.broadcast_arrays(*row, q[:, 0])[:-1], axis=-1) for row in rows], axis=1)
    inertias, _ = _motion_inertias(C / rank.natural(tree.nv), np.where(np.isfinite(M), M, 0.0), rank)
    accepted &= inertias[..., :1].min(axis=-1, initial=1.0) >= MIN_INERTIA * tree.nv
    return np.asarray(accepted)


def _motion_inertias(C: Array, M: Array, rank: LoopRank) -> tuple[Array, Array]:
    """Return the inertias of the motions that the loops allow, the least first, and the motions as columns.

    Each coordinate is scaled to an inertia of 1, so that units, sizes and masses do not matter.
    """
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    size = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 1.0)
    rows = C * size[..., None, :]
    rows = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-300)
    N = np.swapaxes(np.linalg.svd(rows)[2][..., rank.rank :, :], -1, -2)
    values, vectors = np.linalg.eigh(np.swapaxes(N, -1, -2) @ (M * size[..., None, :] * size[..., :, None]) @ N)
    return values, N @ vectors


# Largest gap of loops at the end of a step, relative to the natural size of each equation (constraint_values.py).
GAP_TOLERANCES = {"float64": 1e-10, "float32": 2e-5}
ROW_RANK_TOLERANCE = 1e-3  # relative singular values below this are dropped in rows near a singular configuration
CLOSURE_ATTEMPTS = 10  # largest number of attempts to close the loops of a row
SAMPLED_STATES = 32  # states from which a common partition is chosen
CROSSING_STEPS = (0.55, 0.72, 0.73)  # lengths of three steps in steps; no stage of them lies at the singular end
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
        # Near a singular configuration `assemble_batch` converges slowly and gives up early.
        for _ in range(CLOSURE_ATTEMPTS):
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
            q = checked_starts(m, tree, self.dynamics.analysis, q, v, words)
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
        orders = {tuple(choose_pivots(C * dependence_mask, self.dynamics.analysis.pattern, rank)) for C in Cs}
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
        sizes = np.linalg.svd(scaled_jacobian(tree, rank, equations.C), compute_uv=False)
        bad = np.zeros(len(y), bool)
        if rank.rank:
            bad = sizes[:, 0] > SINGULAR_RATIO * usual_condition(loops) * sizes[:, rank.rank - 1]
        largest_gaps = gaps(loops, equations, v)[:2]
        # The points with the largest gaps represent all points.
        for k in {int(np.argmax(np.where(bad, -1.0, gap))) for gap in largest_gaps if not bad.all()}:
            words = [f" (point {runs[k]})" if len(y) > 1 else ""]
            checked_starts(m, tree, loops, q[k : k + 1], v[k : k + 1], words)
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

    def condition(self, y: Array, parameters: Array) -> JacobianCondition:
        """Return how near the state `y` with `parameters` is to a singular configuration, and in which loop."""
        m = self.dynamics.system.mechanism
        return jacobian_condition(m, self._plain_tree(parameters), self.dynamics.analysis, y[: m.nq])

    def open_loop_message(self, y: Array, parameters: Array, t: float) -> str:
        """Return why loops could not be closed in a step from `y` with `parameters` at the time `t`."""
        m, condition = self.dynamics.system.mechanism, self.condition(y, parameters)
        failure = f"the loops could not be followed in the step after {t:.6g} s: {condition.words}"
        if not condition.near:
            v = y[m.nq : m.nq + m.nv]
            k = int(np.argmax(np.abs(v)))
            return (
                f"{failure}, which is not a singular configuration: the step is too long for the motion "
                f'("{m.columns[1][k]}" moves at {v[k]:.3g}). Take a smaller step, and look at gains and stiffnesses.'
            )
        other = "projected" if self.dynamics.form == "minimal" else "minimal"
        return (
            f"{failure}. It is at, or passes close to, a singular configuration; the record ends before it. Take a "
            f"smaller step, adaptive steps (integrator=dopri5, tolerance=1e-8), form={other}, or another path."
        )

    def near_singular_text(self, y: Array, parameters: Array) -> str:
        """Return a description if `y` with `parameters` is near a singular configuration, else an empty string."""
        condition = self.condition(y, parameters)
        return condition.words if condition.near else ""

    # -- crossing of a singular configuration on which a fixed step ends

    def crossed(self, layout: Layout, state: Array, p: Array, run: ToEnd) -> tuple[Array, list[Array]] | None:
        """Return the state behind the singular configuration and the rows due on the way, or None if it is not crossed.

        The loop equations have a rank deficiency in that configuration, so that a step that ends on it fails, while
        steps that end on both sides do not notice it. Two steps are therefore replaced by three of other lengths, and
        the row between the two is interpolated. Memory, inputs and sampled controllers would need whole steps.

        Parameters
        ----------
        layout
            Layout of the state of the program.
        state
            State of the program whose next step fails.
        p
            Free parameters.
        run
            Function that runs a state to its end by the graphs of some dynamics.
        """
        index, y, memory, s = layout.place, layout.span("y"), layout.span("memory"), self.dynamics.system
        if "stride" not in layout or memory.start != memory.stop or s.inputs or s.sampled:
            return None
        n, h, begin, last = (state[index(name)] for name in ("n", "h", "begin", "last"))
        if not self._singular_ahead(state[y], p, float(h)):
            return None
        ahead, ends = state, []
        for part in CROSSING_STEPS:
            (group,) = self.grouped(ahead[y][None], p[None])
            step = {"n": 0.0, "begin": ahead[index("t")], "h": part * h, "last": 1.0, "next": NEVER_TIME, "live": 1.0}
            step |= {"due": 0.0, "status": RUNNING, "bound": np.inf}
            ahead = run(group.dynamics, layout.with_fields(ahead, step))
            if ahead[index("status")] != FINISHED:
                return None
            ends.append((float(ahead[index("t")]), ahead[y].copy(), group.dynamics))
        between = self.polished(_interpolated(ends[0], ends[1], begin + (n + 1) * h, p), p)
        fields = {name: state[index(name)] for name in ("h", "begin", "last", "next", "stride", "bound")}
        rows = []
        for k, row_state in ((n + 1, between), (n + 2, ends[-1][1])):
            if k > last:
                break
            reached = {"t": begin + k * h, "y": row_state, "n": k, "status": RUNNING, "live": 1.0}
            ahead = layout.with_fields(ahead, fields | reached)
            if k >= fields["next"] or k >= last:
                rows.append(ahead[: y.stop].copy())
                fields["next"] += fields["stride"]
        ended = ahead[index("n")] >= last
        end = {"next": fields["next"], "live": float(not ended), "status": FINISHED if ended else RUNNING, "due": 0.0}
        return layout.with_fields(ahead, end), rows

    def _singular_ahead(self, y: Array, parameters: Array, h: float) -> bool:
        """Return True if the step `h` from `y` with `parameters` ends near a singular configuration."""
        m, loops, tree = self.dynamics.system.mechanism, self.dynamics.analysis, self._plain_tree(parameters)
        moved = displace(tree, y[: m.nq], h * y[m.nq : m.nq + m.nv])
        return jacobian_condition(m, tree, loops, assemble_batch(tree, moved, rough=loops.zero_threshold)[0]).near


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
        best = tuple(choose_pivots(C, self.dynamics.analysis.pattern, self.dynamics.rank))
        limit = max(SUFFICIENT_E, SUFFICIENT_E_RATIO * self.partition_cost(C, best))
        first = next(iter(self.dynamics.others.values()))
        if is_stable(C, first.part.order) and self.partition_cost(C, first.part.order) <= limit:
            return first
        known = [x for x in self.dynamics.others.values() if is_stable(C, x.part.order)]
        sizes = [self.partition_cost(C, x.part.order) for x in known]
        if min(sizes, default=np.inf) <= limit:
            return known[int(np.argmin(sizes))]
        return self.dynamics.with_partition(best)


def _has_equal_starts(y: Array, parameters: Array) -> bool:
    """Return True if there are several runs with equal starts, so that one of them represents all."""
    return len(y) > 1 and all(bool((a == a[:1]).all()) for a in (y, parameters))


def _interpolated(
    one: tuple[float, Array, Dynamics], other: tuple[float, Array, Dynamics], t: float, p: Array
) -> Array:
    """Interpolate by the cubic through two states and their rates."""
    (t0, y0, _), (t1, y1, _) = one, other
    slopes = []
    for time, y, dynamics in (one, other):
        values = {"t": np.array(time), "y": y, "p": p}
        rate = dynamics.f.evaluate(**{name: values[name] for name in dynamics.f.inputs})["dy"]
        slopes.append(list((t1 - t0) * np.asarray(rate)))
    return np.array(
        interpolate(hermite_polynomial(list(y0), slopes[0], list(y1), slopes[1], None), (t - t0) / (t1 - t0))
    )
