"""Systems whose mechanism has closed loops: the rate in one of the forms, and what each step ends with.

minimal     as many equations as freedoms; dependent coordinates by Newton's method, so nothing drifts
projected   multipliers; after each step position and velocity go back onto the loops, the nearest way
lagrange    multipliers; drift is held down by Baumgarte's springs
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

FINAL = 2  # rounds of Newton's method at the end of a step
LOOSE = 1e-2  # against natural sizes: what a step may leave open where only springs hold it
# How far from singular the loops are is a pivot against what is usual: 1 or so far away, and rounding errors count one
# over its square. A step may end at SINGULAR, with no digit left, if by chance, on its way past. Steps that are chosen
# end there because they creep towards it, so they must stay farther away, and jump.
SINGULAR, CREEPING = 1e-6, 1e-6
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23}
TRUSTED = 1e-3  # a row between two steps must be farther away still
# Where it is nearer than NEAR, stages that differ by the part ROUGH of the velocity do not see what they pass: a
# mechanism that only just misses a singular configuration turns over there, in no time. Below SLOW it does not matter.
NEAR, ROUGH, SLOW = 0.01, 1e-3, 1e-3
LEAP = 10.0  # times as fast after a step as before: more is not believed


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LoopedDynamics(Dynamics):
    """A system by one form, and in the minimal form by one partition into dependent and independent coordinates."""

    form: str
    part: forms.Partition
    baumgarte: float  # 1/s
    rounds: int  # of Newton's method inside a step
    dtype: str = "float64"  # of the numbers it will be computed with
    others: dict[Any, LoopedDynamics] = field(default_factory=dict)  # by other partitions; all share it

    @cached_property
    def closure(self) -> LoopClosure:
        return LoopClosure(self)

    @property
    def rank(self) -> Rank:
        return self.part.rank

    @property
    def analysis(self) -> Analysis:
        return analysis(self.system.mechanism)

    @property
    def tree(self) -> Tree:
        return graphs.tree(self.system.mechanism, "forward_dynamics", METHODS["crba"])

    @cached_property
    def terms(self) -> By:
        """The method, or where the tree is large what calls its recursions."""
        m = self.system.mechanism
        return Beneath(m, self.method) if rolls_beneath(m, self.method) else self.method

    def _forward(self, tree: Tree, *given: Any) -> Any:
        return self.terms.function("forward_dynamics")(tree, *given)

    def mass(self, tree: Tree, q: Any) -> Any:
        """The matrix; or what it does to a vector, which is less work where freedoms are few and bodies many."""
        if not few(tree, tree.nv - self.rank.rank):
            return self.dense(tree, q)
        empty, still = forms.bare(tree), [0.0] * tree.nv
        return forms.MassProduct(lambda x: self._inverse(empty, q, still, list(x)))

    def dense(self, tree: Tree, q: Any) -> Any:
        return METHODS["crba"].function("mass_matrix")(tree, q)

    def _inverse(self, tree: Tree, *given: Any) -> Any:
        return METHODS["rnea"].function("inverse_dynamics")(tree, *given)

    def staged(self, y: State) -> State:
        y = turned(self.system, y)
        return self._closed(y, self.rounds)[0] if self.form == "minimal" else y

    @property
    def independent(self) -> list[int]:
        return self.part.independent(self.system.mechanism.nv)

    def determined(self, y: State) -> State:
        """One round of Newton's method has the derivatives of the solution, where it begins there."""
        s = self.system
        q, v, x = s.split(y)
        moved = forms.corrected(self.tree, self.part, list(q), 1)
        found = forms.reduced(self.tree, self.mass, self.part, moved)
        return [*moved, *found.moved([v[i] for i in self.independent], [0.0] * len(v)), *x, *y[s.size :]]

    def _closed(self, y: State, rounds: int) -> tuple[State, forms.Reduced]:
        """The state with its dependent coordinates solved for."""
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
        q, v, _ = self.system.split(y)
        given = (list(q), list(v), list(tau))
        if self.form == "minimal":
            return forms.minimal(self.tree, self._inverse, self.mass, self.part, *given)
        alpha = self.baumgarte if self.form == "lagrange" else 0.0
        tree = graphs.tree(self.system.mechanism, "forward_dynamics", self.method)
        return forms.lagrange(tree, self._forward, self.rank, *given, alpha)[0]

    def answer(self, y: Sequence[Scalar], force: Sequence[Scalar], shown: bool) -> list[Scalar]:
        q, v, _ = self.system.split(y)
        given = (list(q), [0.0] * len(v), list(force))
        tree = forms.bare(graphs.tree(self.system.mechanism, "forward_dynamics", self.method))
        if shown:
            return Layer(self.terms, self.rank).forward_dynamics(tree, *given)
        if self.form == "minimal":
            return forms.minimal(forms.bare(self.tree), self._inverse, self.mass, self.part, *given)
        return forms.lagrange(tree, self._forward, self.rank, *given)[0]

    def filtered(self, y: Sequence[Scalar], tau: Sequence[Scalar], a: State, added: Rows) -> State:
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
        """Whether some equations are between velocities only."""
        return any(name.rpartition(": ")[2] in NONHOLONOMIC for name in self.analysis.names)

    def linearised(self, t: Scalar, y: State, u: Sequence[Scalar]) -> tuple[list[State] | Product | Slopes, State]:
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
        """(y, p) -> y, how far the loops are from closed, how large E is, and how far from singular they are."""

        def correct(y: Any) -> dict[str, Any]:
            size: Scalar = 0.0
            sound: Scalar = 1.0
            new = list(y)
            if self.form == "minimal":
                new, found = self._closed(new, FINAL)
                size, sound = found.largest, found.sound
                if self.rank.groups:  # the equations that are solved may be the wrong ones, while E is small
                    size = maximum(size, WEAK / sound)
            elif self.form == "projected":
                new, sound = self._projected(new, FINAL)
            else:
                q, _, _ = self.system.split(new)
                tree = graphs.tree(self.system.mechanism, "forward_dynamics", self.method)
                sound = forms.singularity(tree, self._forward, self.rank, list(q))
            q, v, _ = self.system.split(new)
            found_open = [e.value for e in equations(self.tree, list(q), list(v))]
            worst = forms.largest(found_open)  # as it is, to be told
            gap = forms.largest([x * k for x, k in zip(found_open, self._sizes, strict=True)])
            return {"y": new, "measures": [worst, size, sound, gap]}

        return self.trace("correction", correct, {"y": (self.size,)})

    @cached_property
    def anywhere(self) -> LoopedDynamics:
        """The same by a form that has no partition, for states that may be far from where this one is good."""
        return replace(self, form="projected", others={}) if self.form == "minimal" else self

    @property
    def measured(self) -> tuple[str, ...]:
        """The worst that loops were open, a bound for E, and how large rounding errors are."""
        return ("open", "bound", "noise")

    @cached_property
    def observation(self) -> Graph:
        """The same for a row that may be far from where the partition was chosen: which equations it solves must not
        matter there.
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
        """What is taken from a velocity is what a blow through the loops would take."""
        return list(self._corrected(y)["y"])

    def observed(self, y: State) -> tuple[State, Scalar]:
        """Near a singular configuration what is interpolated is better than what the loops make of it."""
        found = self._corrected(y, self.observation)
        _, _, sound, gap = found["measures"]
        if self.form == "lagrange":
            return list(found["y"]), 0.0
        good = where(gap < self._shut, where(sound > TRUSTED, 1.0, 0.0), 0.0) > 0.0
        return [where(good, a, b) for a, b in zip(found["y"], y, strict=True)], where(good, 0.0, 1.0)

    def shown(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        """Accelerations by no partition, for none is good in all rows; NaN where the configuration is singular."""
        q, v, _ = self.system.split(y)
        tree = graphs.tree(self.system.mechanism, "forward_dynamics", self.method)
        return Layer(self.terms, self.rank).forward_dynamics(tree, list(q), list(v), list(tau))

    @property
    def _sizes(self) -> list[float]:
        """One over the natural size of each equation."""
        return [float(x) for x in self.analysis.scales.rows]

    @property
    def _shut(self) -> float:
        """What loops may be open by, against the natural size of each equation."""
        return LOOSE if self.form == "lagrange" else max(CLOSED[self.dtype], self.analysis.slack)

    def settled(self, made: Step, old: dict[str, Any]) -> tuple[State, Scalar, dict[str, Any]]:
        found = self._corrected(made.y)
        worst, size, sound, gap = found["measures"]
        trouble: Scalar = 0.0
        if self.form == "minimal":
            trouble = where(size > old["bound"], float(REPARTITION), 0.0)
        trouble = where(gap < self._shut, trouble, float(NOT_CLOSED))
        least = SINGULAR if made.error is None else CREEPING
        trouble = where(sound > least, trouble, float(NOT_CLOSED))
        unit = EPSILON[self.dtype]
        began = sqrt(unit / maximum(old["noise"], unit * unit))  # how far from singular the step before ended
        passed = where(minimum(sound, began) > NEAR, 1.0, self._agrees(made, old, found["y"]))
        trouble = where(passed > 0.5, trouble, float(NOT_CLOSED))
        noise = unit / (sound * sound)
        return list(found["y"]), trouble, {"open": maximum(old["open"], worst), "bound": old["bound"], "noise": noise}

    def _agrees(self, made: Step, old: dict[str, Any], y: State) -> Scalar:
        """1 where the stages of a step agree, so that it sees what it passes near a singular configuration; else 0."""
        differ = made.error or made.rough
        if differ is None:
            return 1.0
        before, after = (forms.largest(self.system.split(state)[1]) for state in (old["y"], y))
        fastest = maximum(maximum(before, minimum(after, LEAP * before)), SLOW)  # a wild step is no measure of itself
        return where(forms.largest(self.system.split(differ)[1]) < ROUGH * fastest, 1.0, 0.0)

    def by(self, order: tuple[tuple[int, int], ...]) -> LoopedDynamics:
        """The same system by another partition; made once."""
        if order not in self.others:
            self.others[order] = replace(self, part=replace(self.part, order=order))
        return self.others[order]


def method_of(system: System, solver: Solver) -> Method:
    """The method whose terms a form takes."""
    if solver.form != "minimal":
        return method_for(system.mechanism, Request("forward_dynamics", solver.method))
    if solver.method not in ("auto", "crba"):
        raise InputError(
            f'method "{solver.method}": the minimal form of a mechanism with loops takes the mass matrix of composite '
            "bodies (crba) and inverse dynamics; give form=projected or form=lagrange to choose a method."
        )
    return METHODS["crba"]


def rounds_for(order: int) -> int:
    """Inside a step of size h a state misses the loops by h^2, after one round by h^4, after two by h^8.

    What a rate is wrong by counts h times as much: one round is enough where a step is wrong by h^5 anyway.
    """
    return 1 if order <= 4 else 2


def looped_dynamics(
    system: System,
    solver: Solver,
    wrt: Sequence[str] = (),
    integrals: tuple[Integral, ...] = (),
    dtype: str = "float64",
) -> LoopedDynamics:
    """The system by one of the forms; its first partition suits the configuration that the analysis began with."""
    m = system.mechanism
    if wrt:
        raise InputError(
            f'sensitivities: "{m.name}" has closed loops, and for those there are none: where one element of the start '
            "moves, or a length, others must move along, and nobody says which. Run a batch with parameters or starts "
            "that differ a little, and take differences."
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
