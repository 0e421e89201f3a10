"""Dynamics of mechanisms with closed loops in three forms, each with its rate and its correction at the end of a step.

minimal     as many equations as degrees of freedom; dependent coordinates by Newton's method, so that nothing drifts
projected   multipliers; after each step position and velocity are projected onto the constraints
lagrange    multipliers; Baumgarte stabilisation limits the drift
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, final

from bellcrank.build import graphs, policy
from bellcrank.build.kernels import auto_method
from bellcrank.build.rolled_tree_terms import moved_fractions, tree_terms
from bellcrank.dynamics import METHODS, Method
from bellcrank.dynamics.loops import Analysis, analysis, constrained_dynamics
from bellcrank.dynamics.loops.constraint_equations import NONHOLONOMIC, loop_equations
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints
from bellcrank.dynamics.loops.coordinate_partitioning import choose_pivots
from bellcrank.dynamics.loops.loop_layer import LoopLayer, MethodInterface
from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.dynamics.ltl_factorisation import Rows, full_matrix
from bellcrank.dynamics.quantities import Request
from bellcrank.errors import InputError
from bellcrank.graph import Graph
from bellcrank.graph.program import NOT_CLOSED, REPARTITION
from bellcrank.integrate import integrator
from bellcrank.integrate.problem import LowRankMatrix, MatrixFreeJacobian, State, Step
from bellcrank.model import Loop, Mechanism, Tree
from bellcrank.model.mechanism import warn_once
from bellcrank.quoting import quoted_name
from bellcrank.scalar import Scalar, maximum, minimum, sqrt, where
from bellcrank.sim.constraints import loop_jacobian as slopes
from bellcrank.sim.constraints.loop_closure import GAP_TOLERANCES, WEAK_PIVOT, LoopClosure, PartitionClosure
from bellcrank.sim.program.implicit_forces import (
    augmented_mass,
    augmented_solver,
    filtered_accelerations,
    implicit_forces,
)
from bellcrank.sim.program.system_graphs import Dynamics, Integral, normalised
from bellcrank.sim.settings import Solver
from bellcrank.sim.system.joint_loads import undetermined_bearings
from bellcrank.sim.system.systems import System

UNDETERMINED = (
    "the load of the bearings {} is not determined by rigid bodies, because redundant constraints may be under any "
    "stress; their friction uses that of `reactions` and `loop_forces`. Replace joints until no constraint is "
    "redundant (mechanism.loop_analysis), or move all bodies of a planar loop into its plane"
)
FINAL_ITERATIONS = 2  # Newton iterations at the end of a step
LAGRANGE_GAP = 1e-2  # relative to natural sizes: largest gap after a step with Baumgarte stabilisation only
# The distance from a singular configuration is a pivot relative to its usual size: about 1 far away. Rounding errors
# grow with one over its square. A fixed step may by chance end at MIN_DISTANCE_FIXED, with no digit left, on its way
# past. Adaptive steps end there because they creep towards it, so they have their own bound.
MIN_DISTANCE_FIXED, MIN_DISTANCE_ADAPTIVE = 1e-6, 1e-6
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23}
MIN_DISTANCE_ROW = 1e-3  # smallest distance from a singular configuration of a row between two steps
# Nearer than NEAR_DISTANCE, stages that differ by the part MAX_STAGE_DIFFERENCE of the velocity miss the motion between
# them: a mechanism that barely misses a singular configuration reverses there almost instantly. A projection that
# changes the velocity at the end by as much has the same cause, and would take energy away. Below the speed
# MIN_CHECKED_SPEED it does not matter.
NEAR_DISTANCE, MAX_STAGE_DIFFERENCE, MIN_CHECKED_SPEED = 0.01, 1e-3, 1e-3
MAX_SPEED_RATIO = 10.0  # largest growth of speed in a step that is trusted


@dataclass(frozen=True, eq=False, kw_only=True)
class LoopedDynamics(Dynamics):
    """A system with closed loops and one coordinate partition; each form is a subclass.

    A form solves for the accelerations (`solved`, `_augmented_response`) and corrects states (`_corrected_end`).
    """

    form: ClassVar[str]
    part: constrained_dynamics.CoordinatePartition
    baumgarte: float  # 1/s
    rounds: int  # Newton iterations inside a step
    dtype: str = "float64"  # floating-point type of the compiled code
    others: dict[Any, LoopedDynamics] = field(default_factory=dict)  # by partition, shared between all of them

    @cached_property
    def closure(self) -> LoopClosure:
        """Numerical treatment of the loops between steps."""
        return LoopClosure(self)

    @property
    def rank(self) -> LoopRank:
        """Rank analysis of the loop equations."""
        return self.part.rank

    @property
    def analysis(self) -> Analysis:
        """Analysis of the loops of the mechanism."""
        return analysis(self.system.mechanism)

    @property
    def tree(self) -> Tree:
        """The tree on which the minimal form works."""
        return graphs.quantity_tree(self.system.mechanism, "forward_dynamics", METHODS["crba"])

    @property
    def method_tree(self) -> Tree:
        """The tree on which the method works."""
        return graphs.quantity_tree(self.system.mechanism, "forward_dynamics", self.method)

    @cached_property
    def terms(self) -> MethodInterface:
        """The method, or for a large tree an object that calls its recursions."""
        m = self.system.mechanism
        return tree_terms(m, policy.plan(m, Request("forward_dynamics"), self.method))

    def _forward(self, tree: Tree, *given: Any) -> Any:
        return self.terms.function("forward_dynamics")(tree, *given)

    def _inverse(self, tree: Tree, *given: Any) -> Any:
        return METHODS["rnea"].function("inverse_dynamics")(tree, *given)

    def mass_operator(self, tree: Tree, q: Any) -> Any:
        """Return the mass matrix of `tree` at `q`, or its product with vectors.

        The product is less work where degrees of freedom are few and bodies many.
        """
        if not prefers_mass_products(tree, tree.nv - self.rank.rank):
            return self.mass_matrix(tree, q)
        empty, still = constrained_dynamics.without_forces(tree), [0.0] * tree.nv
        return constrained_dynamics.MassProduct(lambda x: self._inverse(empty, q, still, list(x)))

    def mass_matrix(self, tree: Tree, q: Any) -> Any:
        """Return the mass matrix of `tree` at `q`."""
        return METHODS["crba"].function("mass_matrix")(tree, q)

    def solved_in_rows(self, q: State, v: State, tau: State, bare: bool = False) -> State:
        """Return the accelerations without a partition, since no partition is valid in all rows.

        Parameters
        ----------
        q, v
            Positions and velocities; the result is NaN in a singular configuration.
        tau
            Forces on the coordinates.
        bare
            Without all other forces.
        """
        tree = constrained_dynamics.without_forces(self.method_tree) if bare else self.method_tree
        return LoopLayer(self.terms, self.rank).forward_dynamics(tree, q, v, tau)

    @property
    def stabilisation(self) -> float:
        """Gain of the Baumgarte stabilisation, 1/s."""
        return 0.0

    def multipliers(
        self, y: Sequence[Scalar], tau: Sequence[Scalar], bare: bool, shown: bool
    ) -> tuple[LoopRank, State]:
        """Return the rank of the loop equations and their multipliers; see `Dynamics.multipliers`.

        Parameters
        ----------
        y, tau, bare, shown
            State, forces, whether other forces are left out, and whether any row of a record is possible.
        """
        q, v = (list(x) for x in self.system.split(y)[:2])
        tree, alpha = self.method_tree, 0.0 if shown else self.stabilisation
        if bare:
            tree, v, alpha = constrained_dynamics.without_forces(tree), [0.0] * len(v), 0.0
        lam = constrained_dynamics.lagrange(tree, self._forward, self.rank, q, v, list(tau), alpha)[1]
        return self.rank, lam.values

    def filtered_accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar], a: State, added: Rows) -> State:
        """Return a - (1 - S)^2 a of the accelerations `a` by the forces `tau` in the state `y`; see implicit_forces.py.

        `added` is the lower triangle of the matrix that is added to the mass matrix.
        """
        q, tree = list(self.system.split(y)[0]), constrained_dynamics.without_forces(self.tree)
        return filtered_accelerations(a, added, self._augmented_response(tree, q, added))

    @abstractmethod
    def _augmented_response(self, tree: Tree, q: State, added: Rows) -> Callable[[State], State]:
        """Return the map from forces to accelerations that keep the loops closed, with `added` to the mass matrix."""

    # -- states

    def stage_state(self, y: State) -> State:
        """Return the state `y` of a stage with unit quaternions and, in the minimal form, closed loops."""
        return normalised(self.system, y)

    @property
    def independent(self) -> list[int]:
        """Elements of v that are independent coordinates."""
        return self.part.independent(self.system.mechanism.nv)

    def consistent_state(self, y: State) -> State:
        """Return the state that follows from the independent elements of `y`.

        One Newton iteration from a solution has the derivatives of the solution.
        """
        s = self.system
        q, v, x = s.split(y)
        moved = constrained_dynamics.correct_dependent(self.tree, self.part, list(q), 1)
        reduced = constrained_dynamics.reduce_to_null_space(self.tree, self.mass_operator, self.part, moved)
        return [*moved, *reduced.lift([v[i] for i in self.independent], [0.0] * len(v)), *x, *y[s.size :]]

    @cached_property
    def nonholonomic(self) -> bool:
        """True if some equations are between velocities only."""
        return any(name.rpartition(": ")[2] in NONHOLONOMIC for name in self.analysis.names)

    # -- ends of steps

    @abstractmethod
    def _corrected_end(self, y: State) -> tuple[State, Scalar, Scalar]:
        """Return a corrected state, the largest element of E (0 without a partition), the distance from singular."""

    @cached_property
    def correction(self) -> Graph:
        """(y, p) -> y, the largest gap, the largest element of E, the distance from singular, and the relative gap."""

        def correct(y: Any) -> dict[str, Any]:
            new, size, conditioning = self._corrected_end(list(y))
            q, v, _ = self.system.split(new)
            gaps = [e.value for e in loop_equations(self.tree, list(q), list(v))]
            worst = constrained_dynamics.largest_magnitude(gaps)  # unscaled, for the record
            relative = [x * k for x, k in zip(gaps, self._inverse_sizes, strict=True)]
            gap = constrained_dynamics.largest_magnitude(relative)
            return {"y": new, "measures": [worst, size, conditioning, gap]}

        return self.trace("correction", correct, {"y": (self.size,)})

    @property
    def without_partition(self) -> LoopedDynamics:
        """The system in a form without a partition, for states far from those where this partition is valid."""
        return self

    @property
    def measured_fields(self) -> tuple[str, ...]:
        """The largest gap of loops, the bound of E, and the size of rounding errors."""
        return ("open", "bound", "noise")

    @property
    def observation(self) -> Graph:
        """Graph of the correction for rows far from the state where the partition was chosen."""
        return self.correction

    def constrained_state(self, y: State) -> State:
        """Return `y` with its velocity projected onto the constraints, as an impulse would, and its loops closed."""
        return self.latched_state(list(self.call_with(self.correction, {"y": y})["y"]))

    def observed_row(self, y: State) -> tuple[State, Scalar]:
        """Return a corrected row `y` and 0, or the interpolated row and 1 near a singular configuration.

        There the interpolated row is better than the corrected one.
        """
        corrected = self.call_with(self.observation, {"y": y})
        _, _, conditioning, gap = corrected["measures"]
        good = where(gap < self._gap_tolerance, where(conditioning > MIN_DISTANCE_ROW, 1.0, 0.0), 0.0) > 0.0
        return [where(good, a, b) for a, b in zip(corrected["y"], y, strict=True)], where(good, 0.0, 1.0)

    @property
    def _inverse_sizes(self) -> list[float]:
        """One over the natural size of each equation."""
        return [float(x) for x in self.analysis.scales.rows]

    @property
    def _gap_tolerance(self) -> float:
        """Largest gap of closed loops, relative to the natural size of each equation."""
        return max(GAP_TOLERANCES[self.dtype], self.analysis.contradiction_gap)

    def _partition_trouble(self, size: Scalar, bound: Scalar) -> Scalar:
        """Return REPARTITION if the largest element of E, `size`, exceeds its `bound`, else 0."""
        return 0.0

    def step_end_state(self, step: Step, old: Mapping[str, Any]) -> tuple[State, Scalar, dict[str, Any]]:
        """Return the corrected state at the end of a step, trouble (a status, or 0), and new measured fields.

        Parameters
        ----------
        step
            The step of the integrator.
        old
            Fields of the program's state before the step.
        """
        corrected = self.call_with(self.correction, {"y": step.y})
        worst, size, conditioning, gap = corrected["measures"]
        trouble = self._partition_trouble(size, old["bound"])
        trouble = where(gap < self._gap_tolerance, trouble, float(NOT_CLOSED))
        least = MIN_DISTANCE_FIXED if step.error is None else MIN_DISTANCE_ADAPTIVE
        trouble = where(conditioning > least, trouble, float(NOT_CLOSED))
        unit = EPSILON[self.dtype]
        # Distance from a singular configuration at the start of the step.
        start_distance = sqrt(unit / maximum(old["noise"], unit * unit))
        is_far = minimum(conditioning, start_distance) > NEAR_DISTANCE
        is_resolved = where(is_far, 1.0, self._stages_agree(step, old, corrected["y"]))
        trouble = where(is_resolved > 0.5, trouble, float(NOT_CLOSED))
        noise = unit / (conditioning * conditioning)
        measured = {"open": maximum(old["open"], worst), "bound": old["bound"], "noise": noise}
        return list(corrected["y"]), trouble, measured

    def _stages_agree(self, step: Step, old: Mapping[str, Any], y: State) -> Scalar:
        """Return 1 if the stages and the end of a step agree on the motion near a singular configuration, else 0."""
        before, after = (constrained_dynamics.largest_magnitude(self.system.split(state)[1]) for state in (old["y"], y))
        # The speed after the step counts only up to a limit, so that a wild step does not set its own scale.
        fastest = maximum(maximum(before, minimum(after, MAX_SPEED_RATIO * before)), MIN_CHECKED_SPEED)
        differences = [[a - b for a, b in zip(y, step.y, strict=True)]]
        if between_stages := step.error or step.rough:
            differences.append(list(between_stages))
        worst = constrained_dynamics.largest_magnitude([x for d in differences for x in self.system.split(d)[1]])
        return where(worst < MAX_STAGE_DIFFERENCE * fastest, 1.0, 0.0)

    def with_partition(self, order: tuple[tuple[int, int], ...]) -> LoopedDynamics:
        """Return this system by the partition with the pivots `order`, cached."""
        if order not in self.others:
            self.others[order] = replace(self, part=replace(self.part, order=order))
        return self.others[order]


@final
class MinimalDynamics(LoopedDynamics):
    """As many equations as degrees of freedom; the dependent coordinates follow from the partition."""

    form = "minimal"

    @cached_property
    def closure(self) -> LoopClosure:
        """Numerical treatment of the loops between steps, with the choice of a partition for each run."""
        return PartitionClosure(self)

    def solved(self, q: State, v: State, tau: State, bare: bool = False) -> State:
        """Return the accelerations from those of the independent coordinates; see `Dynamics.solved`.

        Parameters
        ----------
        q, v, tau, bare
            Positions, velocities, forces, and whether other forces are left out.
        """
        tree = constrained_dynamics.without_forces(self.tree) if bare else self.tree
        return constrained_dynamics.minimal(tree, self._inverse, self.mass_operator, self.part, q, v, tau)

    def _augmented_response(self, tree: Tree, q: State, added: Rows) -> Callable[[State], State]:
        def mass(tree: Tree, q: Any) -> Any:
            return full_matrix(augmented_mass(self.mass_matrix(tree, q), added))

        reduced = constrained_dynamics.reduce_to_null_space(tree, mass, self.part, q)
        return lambda b: reduced.lift(reduced.solve_reduced(b), [0.0] * tree.nv)

    def stage_state(self, y: State) -> State:
        """Return the state `y` of a stage with unit quaternions and closed loops."""
        return self._closed(normalised(self.system, y), self.rounds)[0]

    def _closed(self, y: State, rounds: int) -> tuple[State, constrained_dynamics.NullSpaceForm]:
        """Return the state with solved dependent coordinates, and its null space."""
        s = self.system
        q, v, x = s.split(y)
        moved = constrained_dynamics.correct_dependent(self.tree, self.part, list(q), rounds)
        allowed, reduced = constrained_dynamics.allowed_velocity(
            self.tree, self.mass_operator, self.part, moved, list(v)
        )
        return [*moved, *allowed, *x, *y[s.size :]], reduced

    def _corrected_end(self, y: State) -> tuple[State, Scalar, Scalar]:
        new, reduced = self._closed(y, FINAL_ITERATIONS)
        size = reduced.largest
        if self.rank.groups:  # the selected equations may be the wrong ones although E is small
            size = maximum(size, WEAK_PIVOT / reduced.conditioning)
        return new, size, reduced.conditioning

    def _partition_trouble(self, size: Scalar, bound: Scalar) -> Scalar:
        return where(size > bound, float(REPARTITION), 0.0)

    @cached_property
    def without_partition(self) -> LoopedDynamics:
        """The system in the projected form, for states far from those where this partition is valid."""
        same = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "others"}
        return ProjectedDynamics(**same)

    @property
    def observation(self) -> Graph:
        """Graph of the correction for rows far from the state where the partition was chosen.

        There the result must not depend on which redundant equations the partition solves.
        """
        return self.without_partition.correction if self.rank.groups else self.correction

    def linearised(
        self, t: Scalar, y: State, u: Sequence[Scalar]
    ) -> tuple[list[State] | LowRankMatrix | MatrixFreeJacobian, State]:
        """Return df/dy as a product, and df/dt, at the time `t`, state `y` and inputs `u`."""
        if self.nonholonomic or self.system.solved_elements:
            return super().linearised(t, y, u)
        products = self.call(self._jacobian_product, t, y, u)
        left, right = ([list(row) for row in products[key]] for key in ("left", "right"))
        return LowRankMatrix(left, right), list(self.call(self.time_derivative, t, y, u)["ddy_dt"])

    @cached_property
    def _jacobian_product(self) -> Graph:
        return slopes.jacobian_product(self, self.tree, self.mass_matrix, self.part)


class MultiplierDynamics(LoopedDynamics):
    """Accelerations with one multiplier for each loop equation; `stabilisation` is Baumgarte's gain, 1/s."""

    def solved(self, q: State, v: State, tau: State, bare: bool = False) -> State:
        """Return the accelerations with multipliers; see `Dynamics.solved`.

        Parameters
        ----------
        q, v, tau, bare
            Positions, velocities, forces, and whether other forces are left out.
        """
        tree, alpha = self.method_tree, self.stabilisation
        if bare:
            tree, alpha = constrained_dynamics.without_forces(tree), 0.0
        return constrained_dynamics.lagrange(tree, self._forward, self.rank, q, v, tau, alpha)[0]

    def _augmented_response(self, tree: Tree, q: State, added: Rows) -> Callable[[State], State]:
        solve = augmented_solver(tree, q, added)

        def forward(tree: Tree, q: Any, v: Any, tau: Any) -> State:
            return solve(list(tau))

        return lambda b: constrained_dynamics.lagrange(tree, forward, self.rank, q, [0.0] * tree.nv, b)[0]

    @cached_property
    def state_jacobian(self) -> Graph:
        """(t, y, u, p) -> df/dy."""
        if not slopes.is_applicable(self):
            return super().state_jacobian
        return slopes.implicit_state_jacobian(self, self.stabilisation)


@final
class ProjectedDynamics(MultiplierDynamics):
    """Multipliers; after each step position and velocity are projected onto the constraints."""

    form = "projected"

    def _corrected_end(self, y: State) -> tuple[State, Scalar, Scalar]:
        s = self.system
        q, v, x = s.split(y)
        moved, allowed, conditioning = constrained_dynamics.project_state(
            self.tree, self._forward, self.rank, list(q), list(v), FINAL_ITERATIONS
        )
        return [*moved, *allowed, *x, *y[s.size :]], 0.0, conditioning


@final
class LagrangeDynamics(MultiplierDynamics):
    """Multipliers with Baumgarte stabilisation, which limits the drift; the end of a step is not corrected."""

    form = "lagrange"

    @property
    def stabilisation(self) -> float:
        """Gain of the Baumgarte stabilisation, 1/s."""
        return self.baumgarte

    @property
    def _gap_tolerance(self) -> float:
        return LAGRANGE_GAP

    def _corrected_end(self, y: State) -> tuple[State, Scalar, Scalar]:
        q, _, _ = self.system.split(y)
        return y, 0.0, constrained_dynamics.singularity_distance(self.method_tree, self._forward, self.rank, list(q))

    def observed_row(self, y: State) -> tuple[State, Scalar]:
        """Return the row `y` and 0: there is no better one."""
        return list(self.call_with(self.observation, {"y": y})["y"]), 0.0


FORM_CLASSES = {kind.form: kind for kind in (MinimalDynamics, ProjectedDynamics, LagrangeDynamics)}


def method_for_form(system: System, solver: Solver) -> Method:
    """Return the method of `system` that gives the terms of the form in `solver`."""
    if solver.form != "minimal":
        return auto_method(system.mechanism, Request("forward_dynamics", solver.method))
    if solver.method not in ("auto", "crba"):
        raise InputError(
            f'method "{solver.method}": the minimal form of a mechanism with loops uses the composite-rigid-body mass '
            "matrix (crba) and inverse dynamics; use form=projected or form=lagrange to choose a method."
        )
    return METHODS["crba"]


def stage_iterations(order: int) -> int:
    """Return the Newton iterations inside a step for a method of the given `order`.

    Inside a step of size h the loops are open by h^2, after one iteration by h^4, after two by h^8. An error of a rate
    is multiplied by h in a step, so that one iteration is enough where the error of a step is h^5 anyway.
    """
    return 1 if order <= 4 else 2


def looped_dynamics(
    system: System,
    solver: Solver,
    wrt: Sequence[str] = (),
    integrals: tuple[Integral, ...] = (),
    dtype: str = "float64",
) -> LoopedDynamics:
    """Return the dynamics in one of the forms; the first partition suits the configuration of the loop analysis.

    Parameters
    ----------
    system
        The system.
    solver
        Settings: form, method, integrator and Baumgarte rate.
    wrt
        Must be empty: there are no sensitivities with closed loops.
    integrals
        Integrals over a run.
    dtype
        Floating-point type of the compiled code.
    """
    m = system.mechanism
    if wrt:
        raise InputError(
            f'sensitivities do not support closed loops, which "{m.name}" has: a change of one element of '
            "the start, or of a length, requires changes of others, which are not determined. Run a batch with "
            "slightly different parameters or starts, and take differences."
        )
    if solver.form == "auto":
        solver = replace(solver, form=form_for(m))
    if system.bearings and (names := undetermined_bearings(system)):
        warn_once(m, [UNDETERMINED.format(", ".join(map(quoted_name, names)))])
    method, loops = method_for_form(system, solver), analysis(m)
    C = evaluate_constraints(m.tree if not m.parameters else m.at().tree, loops.samples[0]).C[list(loops.rank.rows)]
    C = C * loops.rank.natural(m.nv)
    order = tuple(choose_pivots(C, loops.pattern, loops.rank))
    part = constrained_dynamics.CoordinatePartition(loops.rank, order)
    kind, rounds = FORM_CLASSES[solver.form], stage_iterations(integrator(solver.integrator).order)
    parts = system, method, (), integrals, implicit_forces(system, solver)
    dynamics: LoopedDynamics = kind(*parts, part=part, baumgarte=solver.baumgarte, rounds=rounds, dtype=dtype)
    dynamics.others[order] = dynamics
    return dynamics


MINIMAL_FORM_OPERATIONS = 20_000.0  # operations of a rate up to which the minimal form is always used
# Approximate operation counts from rings, scissor lifts, rows of four-bars and tied trees: for an element of a mass
# matrix, for a product of its elimination, and for one coordinate of a pass.
ELEMENT_OPERATIONS, PRODUCT_OPERATIONS, PASS_OPERATIONS = 16.0, 1.5, 60.0
# Elements of a mass matrix from which inverse dynamics may be cheaper; elements that cost as much as one coordinate
# of inverse dynamics.
MIN_PAIRS, PAIRS_PER_COORDINATE = 200, 3


def form_for(mechanism: Mechanism) -> str:
    """Return "minimal" for `mechanism`, or "projected" if the minimal form is large and more work."""
    tree, rank = mechanism.tree, analysis(mechanism).rank
    share = moved_fractions(tree)
    passes = 1.0 + sum(share[k] for k in rank.loop)
    nearest = PASS_OPERATIONS * tree.nv * passes + len(rank.rows) ** 3 / 6
    return "projected" if minimal_work(tree, tree.nv - rank.rank) > max(MINIMAL_FORM_OPERATIONS, nearest) else "minimal"


def minimal_work(tree: Tree, freedoms: int) -> float:
    """Return the operations of a rate in the minimal form of `tree` with `freedoms` degrees of freedom."""
    if prefers_mass_products(tree, freedoms):
        return PASS_OPERATIONS * tree.nv * (1 + freedoms)
    _, pairs, triples, _ = tree.work_sizes
    # All independent coordinates of a loop are coupled to each other.
    full = sum(len(_loop_bodies(tree, loop)) ** 3 for loop in tree.loops)
    return ELEMENT_OPERATIONS * pairs + PRODUCT_OPERATIONS * triples + full / 2


def _loop_bodies(tree: Tree, loop: Loop) -> set[int]:
    """Return the bodies that a loop passes through."""
    if loop.joints:
        return set()
    a, b = (set(tree.path(tree.frames[end][0])) for end in (loop.a, loop.b))
    return a ^ b


def prefers_mass_products(tree: Tree, freedoms: int) -> bool:
    """Return whether `freedoms` are so few that products with the mass matrix of `tree` cost less than the matrix."""
    pairs = tree.work_sizes[1]
    return pairs > MIN_PAIRS and PAIRS_PER_COORDINATE * tree.nv * (1 + freedoms) < pairs
