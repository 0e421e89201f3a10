"""Systems whose mechanism has closed loops: the rate in one of the forms, and what each step ends with.

minimal     as many equations as freedoms; dependent coordinates by Newton's method, so nothing drifts
projected   multipliers; after each step position and velocity go back onto the loops, the nearest way
lagrange    multipliers; drift is held down by Baumgarte's springs
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.build import graphs
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.loops import Analysis, analysis, forms
from bellcrank.dynamics.loops.assembly import assembled, consistent
from bellcrank.dynamics.loops.layer import Layer
from bellcrank.dynamics.loops.numbers import Array, closed, moved
from bellcrank.dynamics.loops.partition import least_pivot, pivots, size_of_E, stable
from bellcrank.dynamics.loops.rank import Rank
from bellcrank.dynamics.loops.rows import equations
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Node
from bellcrank.integrate.problem import Integrator, Product, State, Step
from bellcrank.model import Tree
from bellcrank.scalar import Scalar, maximum, where
from bellcrank.sim import loop_state as closing
from bellcrank.sim import looped_slopes as slopes
from bellcrank.sim.dynamics import Integral, Traced, chosen, turned
from bellcrank.sim.layout import NOT_CLOSED, REPARTITION
from bellcrank.sim.systems import System

FORMS = ("minimal", "projected", "lagrange")
FINAL = 2  # rounds of Newton's method at the end of a step
CLOSED, LOOSE = 1e-10, 1e-2  # metres, or radians: a step that ends with more has failed; where only springs hold it
# How far from singular the loops are is a pivot against what is usual: 1 or so far away, and rounding errors count one
# over its square. A step may end at SINGULAR, with no digit left, if by chance, on its way past. Steps that are chosen
# end there because they creep towards it, so they must stay farther away, and jump.
EPSILON, SINGULAR, CREEPING = 2.0**-52, 1e-6, 1e-6
TRUSTED, BLURRED = 1e-3, 1e-3  # a row between two steps must be farther away still; singular values of one that is not
# Where it is nearer than NEAR, stages that differ by the part ROUGH of the velocity do not see what they pass: a
# mechanism that only just misses a singular configuration turns over there, in no time. Below SLOW it does not matter.
NEAR, ROUGH, SLOW = 0.01, 1e-3, 1e-3
PATIENCE = 10
BAUMGARTE = 20.0  # 1/s
WEAK = 0.1  # of a pivot: other equations would be better where it is a third of that, or of what it was
BOUND = 3.0  # of E: where it grows larger, other coordinates would be better
GROWTH = 3.0  # of E, where it was larger to begin with
EASY, NEARLY = 2.0, 1.5  # a partition whose E is not larger than this, or than so many times the best, will do


@dataclass(frozen=True, eq=False)
class Looped(Traced):
    form: str = "minimal"
    part: forms.Partition | None = None
    baumgarte: float = BAUMGARTE
    rounds: int = 1  # of Newton's method inside a step
    others: dict[Any, Looped] = field(default_factory=dict)  # the same by other partitions, shared by all of them

    @property
    def rank(self) -> Rank:
        assert self.part is not None
        return self.part.rank

    @property
    def analysis(self) -> Analysis:
        return analysis(self.system.mechanism)

    @property
    def tree(self) -> Tree:
        return graphs.tree(self.system.mechanism, "forward_dynamics", METHODS["crba"])

    def _forward(self, tree: Tree, *given: Any) -> Any:
        return self.method.function("forward_dynamics")(tree, *given)

    def _mass(self, tree: Tree, q: Any) -> Any:
        return METHODS["crba"].function("mass_matrix")(tree, q)

    def _inverse(self, tree: Tree, *given: Any) -> Any:
        return METHODS["rnea"].function("inverse_dynamics")(tree, *given)

    def _staged(self, y: State) -> State:
        """A state inside a step, as the rate sees it."""
        y = turned(self.system, y)
        return self._closed(y, self.rounds)[0] if self.form == "minimal" else y

    def _closed(self, y: State, rounds: int) -> tuple[State, forms.Reduced]:
        """The state with its dependent coordinates solved for."""
        assert self.part is not None
        s = self.system
        q, v, x = s.split(y)
        moved = forms.corrected(self.tree, self.part, list(q), rounds)
        allowed, found = forms.velocities(self.tree, self._mass, self.part, moved, list(v))
        return [*moved, *allowed, *x, *y[s.size :]], found

    def _projected(self, y: State, rounds: int) -> tuple[State, Scalar]:
        s = self.system
        q, v, x = s.split(y)
        moved, allowed, sound = forms.projected(self.tree, self._forward, self.rank, list(q), list(v), rounds)
        return [*moved, *allowed, *x, *y[s.size :]], sound

    def _accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        q, v, _ = self.system.split(y)
        given = (list(q), list(v), list(tau))
        if self.form == "minimal":
            assert self.part is not None
            return forms.minimal(self.tree, self._inverse, self._mass, self.part, *given)
        alpha = self.baumgarte if self.form == "lagrange" else 0.0
        tree = graphs.tree(self.system.mechanism, "forward_dynamics", self.method)
        return forms.lagrange(tree, self._forward, self.rank, *given, alpha)[0]

    def linearised(self, t: Scalar, y: State, u: Sequence[Scalar]) -> tuple[list[State] | Product, State]:
        if self.form != "minimal":
            return super().linearised(t, y, u)
        found = self.call(self._product, t, y, u)
        left, right = ([list(row) for row in found[key]] for key in ("left", "right"))
        return Product(left, right), list(self.call(self._by_time, t, y, u)["ddy_dt"])

    @cached_property
    def _product(self) -> Graph:
        assert self.part is not None
        return slopes.product(self, self.tree, self._mass, self.part)

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
            worst = forms.largest([e.value for e in equations(self.tree, list(q), list(v))])
            return {"y": new, "measures": [worst, size, sound]}

        return self.trace("correction", correct, {"y": (self.size,)})

    @property
    def measured(self) -> tuple[str, ...]:
        """Fields of the loop's state beside those of every run: the worst that loops were open, a bound for E, and how
        large rounding errors are.
        """
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
        worst, _, sound = found["measures"]
        if self.form == "lagrange":
            return list(found["y"]), 0.0
        good = where(worst < self._shut, where(sound > TRUSTED, 1.0, 0.0), 0.0) > 0.0
        return [where(good, a, b) for a, b in zip(found["y"], y, strict=True)], where(good, 0.0, 1.0)

    def polished(self, y: Array, parameters: Array) -> Array:
        """The nearest that closes the loops, with hardly any change of velocities: what is singular changes nothing."""
        m, tree = self.system.mechanism, self._plain_tree(parameters)
        q, v = y[: m.nq], y[m.nq : m.nq + m.nv]
        shut, missed = assembled(tree, q, rough=self.analysis.rough)
        for _ in range(PATIENCE):  # near a singular configuration it converges slowly, and gives up early
            if np.abs(missed).max(initial=0.0) < 0.1 * CLOSED:
                break
            shut, missed = assembled(tree, shut, rough=self.analysis.rough)
        return np.concatenate([shut, consistent(tree, shut, v, rough=BLURRED), y[m.nq + m.nv :]])

    def _shown(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        """By no partition, for none is good in all rows; NaN where the configuration is singular."""
        q, v, _ = self.system.split(y)
        tree = graphs.tree(self.system.mechanism, "forward_dynamics", self.method)
        return Layer(self.method, self.rank).forward_dynamics(tree, list(q), list(v), list(tau))

    @property
    def _shut(self) -> float:
        """What loops may be open by."""
        return LOOSE if self.form == "lagrange" else max(CLOSED, self.analysis.slack)

    def settled(self, made: Step, old: dict[str, Any]) -> tuple[State, Scalar, dict[str, Any]]:
        found = self._corrected(made.y)
        worst, size, sound = found["measures"]
        trouble: Scalar = 0.0
        if self.form == "minimal":
            trouble = where(size > old["bound"], float(REPARTITION), 0.0)
        trouble = where(worst < self._shut, trouble, float(NOT_CLOSED))
        trouble = where(sound > self._needed(made, old, found["y"]), trouble, float(NOT_CLOSED))
        noise = EPSILON / (sound * sound)
        return list(found["y"]), trouble, {"open": maximum(old["open"], worst), "bound": old["bound"], "noise": noise}

    def _needed(self, made: Step, old: dict[str, Any], y: State) -> Scalar:
        """How far from singular a step must end: further, where its stages do not agree."""
        differ = made.error or made.rough
        if differ is None:
            return SINGULAR
        fastest: Scalar = SLOW
        for state in (old["y"], y):
            fastest = maximum(fastest, forms.largest(self.system.split(state)[1]))
        least = SINGULAR if made.error is None else CREEPING
        return where(forms.largest(self.system.split(differ)[1]) < ROUGH * fastest, least, NEAR)

    # -- numbers

    def _plain_tree(self, p: Array) -> Tree:
        m = self.system.mechanism
        if not m.parameters:
            return m.tree
        names = list(self.system.parameters)
        return m.at({name: float(p[names.index(name)]) for name in m.parameters}).tree

    def checked(self, y: Array, parameters: Array) -> Array:
        if _alike(y, parameters):
            return np.broadcast_to(self._checked(y[:1], parameters), y.shape)
        return self._checked(y, parameters)

    def _checked(self, y: Array, parameters: Array) -> Array:
        m, y = self.system.mechanism, np.array(y)
        for k in range(len(y)):
            tree, run = self._plain_tree(parameters[k]), f" (run {k})" if len(y) > 1 else ""
            q, v = y[k, : m.nq], y[k, m.nq : m.nq + m.nv]
            y[k, : m.nq] = closing.started(m, tree, self.analysis, q, v, run)
        return y

    def grouped(self, y: Array, parameters: Array) -> dict[Traced, Array]:
        """By partition."""
        if self.form != "minimal":
            return {self: np.arange(len(y))}
        some, found = 1 if _alike(y, parameters) else len(y), dict[Traced, list[int]]()
        for k in range(some):
            C = closed(self._plain_tree(parameters[k]), y[k, : self.system.mechanism.nq]).C[list(self.rank.rows)]
            found.setdefault(self._suited(C), []).append(k)
        return {by: np.array(runs) if some == len(y) else np.arange(len(y)) for by, runs in found.items()}

    def _suited(self, C: Array) -> Looped:
        """By the best partition there, or by one that is compiled already and nearly as good."""
        best = tuple(pivots(C, self.analysis.pattern, self.rank)[0])
        limit = max(EASY, NEARLY * self._size(C, best))
        known = [(self._size(C, x.order), k) for k, x in enumerate(self.others.values()) if stable(C, x.order)]
        size, k = min(known, default=(np.inf, 0))
        return list(self.others.values())[k] if size <= limit else self._by(best)

    def _size(self, C: Array, order: tuple[tuple[int, int], ...]) -> float:
        """How bad a partition is, as a run measures it: see `correction`."""
        size = size_of_E(C, [c for _, c in order])
        if not self.rank.groups:
            return size
        rows = C / np.array(self.rank.scale)[:, None]
        return max(size, WEAK / max(least_pivot(rows, order), 1e-300))

    def bounds(self, y: Array, parameters: Array) -> Array:
        """Where even the best partition has a large E, it may grow further: perhaps the worst will pass."""
        if _alike(y, parameters):
            return np.broadcast_to(self._bounds(y[:1], parameters[:1]), len(y))
        return self._bounds(y, parameters)

    def _bounds(self, y: Array, parameters: Array) -> Array:
        nq = self.system.mechanism.nq
        found = [
            self._size(closed(self._plain_tree(p), x[:nq]).C[list(self.rank.rows)], self.order)
            for x, p in zip(y, parameters, strict=True)
        ]
        return np.maximum(BOUND, GROWTH * np.array(found))

    def told(self, widest: float, switched: int) -> dict[str, Any]:
        return {"form": self.form, "loops open by at most": float(widest), "partitions changed": switched}

    def condition(self, y: Array, parameters: Array) -> closing.Condition:
        m = self.system.mechanism
        return closing.condition(m, self._plain_tree(parameters), self.rank, y[: m.nq])

    def why_open(self, y: Array, parameters: Array, t: float) -> str:
        m = self.system.mechanism
        return closing.why_open(m, self.condition(y, parameters), y[m.nq : m.nq + m.nv], self.form, t)

    def singular_ahead(self, y: Array, parameters: Array, h: float) -> bool:
        m, tree = self.system.mechanism, self._plain_tree(parameters)
        ahead, _ = assembled(tree, moved(tree, y[: m.nq], h * y[m.nq : m.nq + m.nv]), rough=self.analysis.rough)
        return closing.condition(m, tree, self.rank, ahead).number > closing.NEAR

    def near(self, y: Array, parameters: Array) -> str:
        found = self.condition(y, parameters)
        return found.words if found.number > closing.NEAR else ""

    @property
    def order(self) -> tuple[tuple[int, int], ...]:
        assert self.part is not None
        return self.part.order

    def _by(self, order: tuple[tuple[int, int], ...]) -> Looped:
        """The same system by another partition; made once."""
        assert self.part is not None
        if order not in self.others:
            self.others[order] = replace(self, part=replace(self.part, order=order))
        return self.others[order]


def _alike(y: Array, parameters: Array) -> bool:
    """Whether there are many runs and all start the same: then one of them speaks for all."""
    return len(y) > 1 and all(bool((a == a[:1]).all()) for a in (y, parameters))


def by_form(system: System, form: str, method: str) -> Traced:
    """The system by the method whose terms a form takes."""
    if form not in FORMS:
        raise InputError(unknown("form", form, FORMS))
    if form != "minimal":
        return chosen(system, method, "float64")
    if method not in ("auto", "crba"):
        raise InputError(
            f'method "{method}": the minimal form of a mechanism with loops takes the mass matrix of composite bodies '
            "(crba) and inverse dynamics; give form=projected or form=lagrange to choose a method."
        )
    return Traced(system, METHODS["crba"])


def rounds_for(order: int) -> int:
    """Inside a step of size h a state misses the loops by h^2, after one round by h^4, after two by h^8.

    What a rate is wrong by counts h times as much: one round is enough where a step is wrong by h^5 anyway.
    """
    return 1 if order <= 4 else 2


def looped(
    system: System,
    form: str,
    method: str,
    baumgarte: float,
    integrator: Integrator,
    wrt: Sequence[str],
    integrals: tuple[Integral, ...] = (),
) -> Looped:
    """The system by one of the forms; its first partition suits the configuration that the analysis began with."""
    m = system.mechanism
    if wrt:
        raise InputError(
            f'sensitivities: "{m.name}" has closed loops, and for those there are none: where one element of the start '
            "moves, or a length, others must move along, and nobody says which. Run a batch with parameters or starts "
            "that differ a little, and take differences."
        )
    by, found = by_form(system, form, method), analysis(m)
    C = closed(m.tree if not m.parameters else m.at().tree, found.samples[0]).C[list(found.rank.rows)]
    order = tuple(pivots(C, found.pattern, found.rank)[0])
    part = forms.Partition(found.rank, order)
    for doubt in found.doubts:
        warnings.warn(f'"{m.name}": {doubt}.', RuntimeWarning, stacklevel=5)
    made = Looped(system, by.method, (), integrals, form, part, baumgarte, rounds_for(integrator.order))
    made.others[order] = made
    return made
