"""Dynamics of mechanisms with closed loops: the rate in one of three forms, and the correction at the end of a step.

minimal     as many equations as degrees of freedom; dependent coordinates by Newton's method, so that nothing drifts
projected   multipliers; after each step position and velocity are projected onto the constraints
lagrange    multipliers; Baumgarte stabilisation limits the drift
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

from bellcrank.build import graphs
from bellcrank.build.beneath import Beneath, rolls_beneath
from bellcrank.build.kernels import method_for
from bellcrank.dynamics import METHODS, Method
from bellcrank.dynamics.inertia_matrix import Rows, square
from bellcrank.dynamics.loops import Analysis, analysis, forms
from bellcrank.dynamics.loops.layer import By, Layer
from bellcrank.dynamics.loops.numbers import closed
from bellcrank.dynamics.loops.partition import pivots
from bellcrank.dynamics.loops.rank import Rank
from bellcrank.dynamics.loops.rows import NONHOLONOMIC, equations
from bellcrank.dynamics.requests import Request
from bellcrank.errors import InputError, warn
from bellcrank.graph import Graph, Node
from bellcrank.graph.program import NOT_CLOSED, REPARTITION
from bellcrank.integrate import integrator
from bellcrank.integrate.problem import Product, Slopes, State, Step
from bellcrank.model import Tree
from bellcrank.scalar import Scalar, maximum, minimum, sqrt, where
from bellcrank.sim import looped_slopes as slopes
from bellcrank.sim import residual_slopes
from bellcrank.sim.allowed_states import turned
from bellcrank.sim.dynamics import Dynamics, Integral
from bellcrank.sim.implicit_forces import implicit_forces, less_stiff, raised, solved_with
from bellcrank.sim.loop_closure import CLOSED, WEAK, LoopClosure
from bellcrank.sim.loop_form import few, form_for
from bellcrank.sim.settings import Solver
from bellcrank.sim.systems import System

FINAL = 2  # Newton iterations at the end of a step
LOOSE = 1e-2  # relative to natural sizes: largest gap after a step with Baumgarte stabilisation only
# The distance from a singular configuration is a pivot relative to its usual size: about 1 far away. Rounding errors
# grow with one over its square. A fixed step may by chance end at SINGULAR, with no digit left, on its way past.
# Adaptive steps end there because they creep towards it, so they have their own bound.
SINGULAR, CREEPING = 1e-6, 1e-6
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23}
TRUSTED = 1e-3  # smallest distance from a singular configuration of a row between two steps
# Nearer than NEAR, stages that differ by the part ROUGH of the velocity miss the motion between them: a mechanism that
# barely misses a singular configuration reverses there almost instantly. Below the speed SLOW it does not matter.
NEAR, ROUGH, SLOW = 0.01, 1e-3, 1e-3
LEAP = 10.0  # largest growth of speed in a step that is trusted


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LoopedDynamics(Dynamics):
    """A system with closed loops in one form and, for the minimal form, with one coordinate partition."""

    form: str
    part: forms.Partition
    baumgarte: float  # 1/s
    rounds: int  # Newton iterations inside a step
    dtype: str = "float64"  # floating-point type of the compiled code
    others: dict[Any, LoopedDynamics] = field(default_factory=dict)  # by partition, shared between all of them

    @cached_property
    def closure(self) -> LoopClosure:
        """Numerical treatment of the loops between steps."""
        return LoopClosure(self)

    @property
    def rank(self) -> Rank:
        """Rank analysis of the loop equations."""
        return self.part.rank

    @property
    def analysis(self) -> Analysis:
        """Analysis of the loops of the mechanism."""
        return analysis(self.system.mechanism)

    @property
    def tree(self) -> Tree:
        """The tree on which the minimal form works."""
        return graphs.tree(self.system.mechanism, "forward_dynamics", METHODS["crba"])

    @cached_property
    def terms(self) -> By:
        """The method, or for a large tree an object that calls its recursions."""
        m = self.system.mechanism
        return Beneath(m, self.method) if rolls_beneath(m, self.method) else self.method

    def _forward(self, tree: Tree, *given: Any) -> Any:
        return self.terms.function("forward_dynamics")(tree, *given)

    def mass(self, tree: Tree, q: Any) -> Any:
        """Return the mass matrix of `tree` at `q`, or its product with vectors.

        The product is less work where degrees of freedom are few and bodies many.
        """
        if not few(tree, tree.nv - self.rank.rank):
            return self.dense(tree, q)
        empty, still = forms.bare(tree), [0.0] * tree.nv
        return forms.MassProduct(lambda x: self._inverse(empty, q, still, list(x)))

    def dense(self, tree: Tree, q: Any) -> Any:
        """Return the mass matrix of `tree` at `q`."""
        return METHODS["crba"].function("mass_matrix")(tree, q)

    def _inverse(self, tree: Tree, *given: Any) -> Any:
        return METHODS["rnea"].function("inverse_dynamics")(tree, *given)

    def staged(self, y: State) -> State:
        """Return the state `y` of a stage with unit quaternions and, in the minimal form, closed loops."""
        y = turned(self.system, y)
        return self._closed(y, self.rounds)[0] if self.form == "minimal" else y

    @property
    def independent(self) -> list[int]:
        """Elements of v that are independent coordinates."""
        return self.part.independent(self.system.mechanism.nv)

    def determined(self, y: State) -> State:
        """Return the state that follows from the independent elements of `y`.

        One Newton iteration from a solution has the derivatives of the solution.
        """
        s = self.system
        q, v, x = s.split(y)
        moved = forms.corrected(self.tree, self.part, list(q), 1)
        found = forms.reduced(self.tree, self.mass, self.part, moved)
        return [*moved, *found.moved([v[i] for i in self.independent], [0.0] * len(v)), *x, *y[s.size :]]

    def _closed(self, y: State, rounds: int) -> tuple[State, forms.Reduced]:
        """Return the state with solved dependent coordinates, and its null space."""
        s = self.system
        q, v, x = s.split(y)
        moved = forms.corrected(self.tree, self.part, list(q), rounds)
        allowed, found = forms.velocities(self.tree, self.mass, self.part, moved, list(v))
        return [*moved, *allowed, *x, *y[s.size :]], found

    def _projected(self, y: State, rounds: int) -> tuple[State, Scalar]:
        s = self.system
        q, v, x = s.split(y)
        moved, allowed, sound = forms.projected(self.tree, self._forward, self.rank, list(q), list(v), rounds)
        return [*moved, *allowed, *x, *y[s.size :]], sound

    def accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        """Return the accelerations in the state `y` under the forces `tau`."""
        q, v, _ = self.system.split(y)
        given = (list(q), list(v), list(tau))
        if self.form == "minimal":
            return forms.minimal(self.tree, self._inverse, self.mass, self.part, *given)
        alpha = self.baumgarte if self.form == "lagrange" else 0.0
        tree = graphs.tree(self.system.mechanism, "forward_dynamics", self.method)
        return forms.lagrange(tree, self._forward, self.rank, *given, alpha)[0]

    def answer(self, y: Sequence[Scalar], force: Sequence[Scalar], shown: bool) -> list[Scalar]:
        """Return what a `force` on the coordinates adds to the accelerations in the state `y`.

        With `shown`, the result does not depend on the partition.
        """
        q, v, _ = self.system.split(y)
        given = (list(q), [0.0] * len(v), list(force))
        tree = forms.bare(graphs.tree(self.system.mechanism, "forward_dynamics", self.method))
        if shown:
            return Layer(self.terms, self.rank).forward_dynamics(tree, *given)
        if self.form == "minimal":
            return forms.minimal(forms.bare(self.tree), self._inverse, self.mass, self.part, *given)
        return forms.lagrange(tree, self._forward, self.rank, *given)[0]

    def filtered(self, y: Sequence[Scalar], tau: Sequence[Scalar], a: State, added: Rows) -> State:
        """Return a - (1 - S)^2 a of the accelerations `a` by the forces `tau` in the state `y`; see implicit_forces.py.

        `added` is the lower triangle of the matrix that is added to the mass matrix.
        """
        return less_stiff(a, added, self._heavier(y, added))

    def _heavier(self, y: Sequence[Scalar], added: Rows) -> Callable[[State], State]:
        """Return the map from forces to accelerations that keep the loops closed, with `added` to the mass matrix."""
        q, tree = list(self.system.split(y)[0]), forms.bare(self.tree)
        if self.form == "minimal":
            found = forms.reduced(tree, lambda tree, q: square(raised(self.dense(tree, q), added)), self.part, q)
            return lambda b: found.moved(found.freedoms(b), [0.0] * tree.nv)
        solve = solved_with(tree, q, added)

        def forward(tree: Tree, q: Any, v: Any, tau: Any) -> State:
            return solve(list(tau))

        return lambda b: forms.lagrange(tree, forward, self.rank, q, [0.0] * tree.nv, b)[0]

    @cached_property
    def nonholonomic(self) -> bool:
        """True if some equations are between velocities only."""
        return any(name.rpartition(": ")[2] in NONHOLONOMIC for name in self.analysis.names)

    def linearised(self, t: Scalar, y: State, u: Sequence[Scalar]) -> tuple[list[State] | Product | Slopes, State]:
        """Return df/dy and df/dt at the time `t`, state `y` and inputs `u`; df/dy is a product in the minimal form."""
        if self.form != "minimal" or self.nonholonomic:
            return super().linearised(t, y, u)
        found = self.call(self._product, t, y, u)
        left, right = ([list(row) for row in found[key]] for key in ("left", "right"))
        return Product(left, right), list(self.call(self.by_time, t, y, u)["ddy_dt"])

    @cached_property
    def by_state(self) -> Graph:
        """(t, y, u, p) -> df/dy."""
        if self.form == "minimal" or not residual_slopes.applies(self):
            return super().by_state
        return residual_slopes.by_state(self, self.baumgarte if self.form == "lagrange" else 0.0)

    @cached_property
    def _product(self) -> Graph:
        return slopes.product(self, self.tree, self.dense, self.part)

    @cached_property
    def correction(self) -> Graph:
        """(y, p) -> y, the largest gap, the largest element of E, the distance from singular, and the relative gap."""

        def correct(y: Any) -> dict[str, Any]:
            size: Scalar = 0.0
            sound: Scalar = 1.0
            new = list(y)
            if self.form == "minimal":
                new, found = self._closed(new, FINAL)
                size, sound = found.largest, found.sound
                if self.rank.groups:  # the selected equations may be the wrong ones although E is small
                    size = maximum(size, WEAK / sound)
            elif self.form == "projected":
                new, sound = self._projected(new, FINAL)
            else:
                q, _, _ = self.system.split(new)
                tree = graphs.tree(self.system.mechanism, "forward_dynamics", self.method)
                sound = forms.singularity(tree, self._forward, self.rank, list(q))
            q, v, _ = self.system.split(new)
            found_open = [e.value for e in equations(self.tree, list(q), list(v))]
            worst = forms.largest(found_open)  # unscaled, for the record
            gap = forms.largest([x * k for x, k in zip(found_open, self._sizes, strict=True)])
            return {"y": new, "measures": [worst, size, sound, gap]}

        return self.trace("correction", correct, {"y": (self.size,)})

    @cached_property
    def anywhere(self) -> LoopedDynamics:
        """Copy of the system in a form without a partition, for states far from those where this partition is valid."""
        return replace(self, form="projected", others={}) if self.form == "minimal" else self

    @property
    def measured(self) -> tuple[str, ...]:
        """The largest gap of loops, the bound of E, and the size of rounding errors."""
        return ("open", "bound", "noise")

    @cached_property
    def observation(self) -> Graph:
        """Graph of the correction for rows far from the state where the partition was chosen.

        There the result must not depend on which redundant equations the partition solves.
        """
        if self.form != "minimal" or not self.rank.groups:
            return self.correction
        return replace(self, form="projected", others={}).correction

    def _corrected(self, y: State, by: Graph | None = None) -> dict[str, Any]:
        given: dict[str, Any] = {"y": y}
        if self.system.parameters:
            tape = next(x.tape for x in y if isinstance(x, Node))
            given["p"] = tape.inputs("p", (len(self.system.parameters),))
        return (by or self.correction).call(**given)

    def rejoined(self, y: State) -> State:
        """Return `y` with its velocity projected onto the constraints, as an impulse would, and its loops closed."""
        return list(self._corrected(y)["y"])

    def observed(self, y: State) -> tuple[State, Scalar]:
        """Return a corrected row `y` and 0, or the interpolated row and 1 near a singular configuration.

        There the interpolated row is better than the corrected one.
        """
        found = self._corrected(y, self.observation)
        _, _, sound, gap = found["measures"]
        if self.form == "lagrange":
            return list(found["y"]), 0.0
        good = where(gap < self._shut, where(sound > TRUSTED, 1.0, 0.0), 0.0) > 0.0
        return [where(good, a, b) for a, b in zip(found["y"], y, strict=True)], where(good, 0.0, 1.0)

    def shown(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        """Return the accelerations in the state `y` under the forces `tau`, without a partition.

        No partition is valid in all rows. The result is NaN in a singular configuration.
        """
        q, v, _ = self.system.split(y)
        tree = graphs.tree(self.system.mechanism, "forward_dynamics", self.method)
        return Layer(self.terms, self.rank).forward_dynamics(tree, list(q), list(v), list(tau))

    @property
    def _sizes(self) -> list[float]:
        """One over the natural size of each equation."""
        return [float(x) for x in self.analysis.scales.rows]

    @property
    def _shut(self) -> float:
        """Largest gap of closed loops, relative to the natural size of each equation."""
        return LOOSE if self.form == "lagrange" else max(CLOSED[self.dtype], self.analysis.slack)

    def settled(self, made: Step, old: dict[str, Any]) -> tuple[State, Scalar, dict[str, Any]]:
        """Return the corrected state at the end of a step, trouble (a status, or 0), and new measured fields.

        Parameters
        ----------
        made
            The step of the integrator.
        old
            Fields of the program's state before the step.
        """
        found = self._corrected(made.y)
        worst, size, sound, gap = found["measures"]
        trouble: Scalar = 0.0
        if self.form == "minimal":
            trouble = where(size > old["bound"], float(REPARTITION), 0.0)
        trouble = where(gap < self._shut, trouble, float(NOT_CLOSED))
        least = SINGULAR if made.error is None else CREEPING
        trouble = where(sound > least, trouble, float(NOT_CLOSED))
        unit = EPSILON[self.dtype]
        # Distance from a singular configuration at the start of the step.
        began = sqrt(unit / maximum(old["noise"], unit * unit))
        passed = where(minimum(sound, began) > NEAR, 1.0, self._agrees(made, old, found["y"]))
        trouble = where(passed > 0.5, trouble, float(NOT_CLOSED))
        noise = unit / (sound * sound)
        return list(found["y"]), trouble, {"open": maximum(old["open"], worst), "bound": old["bound"], "noise": noise}

    def _agrees(self, made: Step, old: dict[str, Any], y: State) -> Scalar:
        """Return 1 if the stages of a step agree and so resolve the motion near a singular configuration, else 0."""
        differ = made.error or made.rough
        if differ is None:
            return 1.0
        before, after = (forms.largest(self.system.split(state)[1]) for state in (old["y"], y))
        # The speed after the step counts only up to a limit, so that a wild step does not set its own scale.
        fastest = maximum(maximum(before, minimum(after, LEAP * before)), SLOW)
        return where(forms.largest(self.system.split(differ)[1]) < ROUGH * fastest, 1.0, 0.0)

    def by(self, order: tuple[tuple[int, int], ...]) -> LoopedDynamics:
        """Return this system by the partition with the pivots `order`, cached."""
        if order not in self.others:
            self.others[order] = replace(self, part=replace(self.part, order=order))
        return self.others[order]


def method_of(system: System, solver: Solver) -> Method:
    """Return the method of `system` that gives the terms of the form in `solver`."""
    if solver.form != "minimal":
        return method_for(system.mechanism, Request("forward_dynamics", solver.method))
    if solver.method not in ("auto", "crba"):
        raise InputError(
            f'method "{solver.method}": the minimal form of a mechanism with loops uses the composite-rigid-body mass '
            "matrix (crba) and inverse dynamics; use form=projected or form=lagrange to choose a method."
        )
    return METHODS["crba"]


def rounds_for(order: int) -> int:
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
            f'sensitivities: "{m.name}" has closed loops, and for those there are none: a change of one element of '
            "the start, or of a length, requires changes of others, which are not determined. Run a batch with "
            "slightly different parameters or starts, and take differences."
        )
    if solver.form == "auto":
        solver = replace(solver, form=form_for(m))
    by, found = method_of(system, solver), analysis(m)
    C = closed(m.tree if not m.parameters else m.at().tree, found.samples[0]).C[list(found.rank.rows)]
    C = C * found.rank.natural(m.nv)
    order = tuple(pivots(C, found.pattern, found.rank)[0])
    for doubt in found.doubts:
        warn(f'"{m.name}": {doubt}.')
    made = LoopedDynamics(
        system,
        by,
        integrals=integrals,
        implicit=implicit_forces(system, solver),
        form=solver.form,
        part=forms.Partition(found.rank, order),
        baumgarte=solver.baumgarte,
        rounds=rounds_for(integrator(solver.integrator).order),
        dtype=dtype,
    )
    made.others[order] = made
    return made
