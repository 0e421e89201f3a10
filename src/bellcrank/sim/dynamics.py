"""From a System to graphs: its rate f, the Jacobian of f, its outputs, and the Problem an integrator works on.

f is traced once and called by every stage of every step, so its code exists once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.build import graphs
from bellcrank.dynamics import Method, kinematics
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Node, trace
from bellcrank.integrate.problem import Problem, Product, State, Step
from bellcrank.scalar import Scalar, clip, sqrt, step
from bellcrank.sim.columns import Columns
from bellcrank.sim.systems import System

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Integral:
    """Over time, of a power of a column."""

    column: str
    power: int = 1

    @property
    def name(self) -> str:
        return f"integral({self.column}{f'^{self.power}' if self.power > 1 else ''})"


@dataclass(frozen=True, eq=False)
class Traced:
    """The graphs of one system by one method of forward dynamics.

    integrals: y carries them behind the state. wrt: parameters and elements of the initial state ("boom.mass",
    "boom.q"); y then carries, behind all that, its derivatives with respect to each of them.
    """

    system: System
    method: Method
    wrt: tuple[str, ...] = ()
    integrals: tuple[Integral, ...] = ()

    @property
    def own(self) -> int:
        """Of y, without derivatives."""
        return self.system.size + len(self.integrals)

    @property
    def size(self) -> int:
        """Of y, with its derivatives."""
        return self.own * (1 + len(self.wrt))

    @property
    def arguments(self) -> dict[str, Shape]:
        """What every graph here takes, beside the free numbers of the model, which it finds by itself (`p`)."""
        return {**self._plain, "y": (self.size,)}

    @property
    def _plain(self) -> dict[str, Shape]:
        s = self.system
        return {"t": (), "y": (self.own,)} | ({"u": (len(s.inputs),)} if s.inputs else {})

    def trace(self, name: str, function: Callable[..., Any], shapes: Mapping[str, Shape]) -> Graph:
        """A graph of this system: what it meets of free numbers are elements of p."""
        return trace(f"{self.system.mechanism.name}.{name}", function, shapes, self.system.parameters)

    def call(
        self, graph: Graph, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar] = (), **more: Sequence[Scalar]
    ) -> dict[str, Any]:
        """One of the graphs here inside another trace."""
        given: dict[str, Any] = {"t": t, "y": y, **more} | ({"u": u} if self.system.inputs else {})
        if self.system.parameters:
            tape = next(x.tape for x in (t, *y, *u) if isinstance(x, Node))
            given["p"] = tape.inputs("p", (len(self.system.parameters),))
        return graph.call(**given)

    def _varied(self, graph: Graph) -> Graph:
        if not self.wrt:
            return graph
        names = list(self.system.parameters)
        moving = {"p": [names.index(w) if w in names else -1 for w in self.wrt]} if names else {}
        return graph.varied("y", len(self.wrt), **moving)

    @cached_property
    def f(self) -> Graph:
        """(t, y, u, p) -> dy/dt."""

        def rehearsed(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            return {"command": list(self.system.commanded(t, list(y), u)[0])}

        # A control that keeps a symbol for its next call would pass for one without memory, if there were no next.
        self.trace("rehearsal", rehearsed, self._plain)

        def rate(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            return {"dy": self.rate(t, self._staged(list(y)), u)}

        return self._varied(self.trace("rate", rate, self._plain))

    def rate(self, t: Scalar, y: State, u: Any) -> State:
        """dy/dt over any scalar, at a state whose loops are closed."""
        s, m = self.system, self.system.mechanism
        step("control")
        commands, own = s.commanded(t, y, u)
        step("actuators")
        tau, rates = s.forces(t, y, commands)
        a = self._accelerations(y, s.pushed(t, y, tau))
        step("rate")
        q, v, _ = s.split(y)
        seen = Columns(s, self._accelerations, t, y, u)
        grown = [seen[i.column] ** i.power for i in self.integrals]
        return [*kinematics.rate(m.tree, list(q), list(v)), *a, *rates, *own, *grown]

    def _staged(self, y: State) -> State:
        """A state inside a step, as the rate sees it."""
        return y

    @property
    def measured(self) -> tuple[str, ...]:
        """Fields of the loop's state beside those of every run."""
        return ()

    def settled(self, made: Step, old: dict[str, Any]) -> tuple[State, Scalar, dict[str, Any]]:
        """The state that a step ends with, trouble (a status, or 0), and new values of what is measured."""
        return made.y, 0.0, {}

    def rejoined(self, y: State) -> State:
        """A state between steps, or one that an event made, with what must hold between its elements."""
        return y

    def observed(self, y: State) -> tuple[State, Scalar]:
        """A row between two steps, and 1 where it must be looked at again, by `polished`."""
        return self.rejoined(y), 0.0

    def polished(self, y: Array, parameters: Array) -> Array:
        """Such a row by numbers, at leisure."""
        return y

    def _accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        m = self.system.mechanism
        q, v, _ = self.system.split(y)
        tree = graphs.tree(m, "forward_dynamics", self.method)
        return list(self.method.function("forward_dynamics")(tree, list(q), list(v), list(tau)))

    def _shown(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        """Accelerations of any row of a record."""
        return self._accelerations(y, tau)

    @cached_property
    def slopes(self) -> tuple[Graph, Graph]:
        """df/dy and df/dt."""
        return self.f.jacobian("dy", "y"), self._by_time

    @cached_property
    def _by_time(self) -> Graph:
        return self.f.jacobian("dy", "t")

    def linearised(self, t: Scalar, y: State, u: Sequence[Scalar]) -> tuple[list[State] | Product, State]:
        """df/dy and df/dt inside another trace."""
        J = self.call(self.slopes[0], t, y, u)["ddy_dy"]
        return [list(row) for row in J], list(self.call(self._by_time, t, y, u)["ddy_dt"])

    @cached_property
    def outputs(self) -> Graph:
        """(t, y, u, p) -> accelerations, forces of drives and from outside, commands, outputs of the user."""
        s = self.system

        def seen(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            y = list(y)
            commands, _ = s.commanded(t, y, u)
            tau, _ = s.forces(t, y, commands)
            external, acts = s.outside(t, y)
            felt = [a + b for a, b in zip(tau, external, strict=True)] if acts else tau
            out = {"a": self._shown(y, felt), "tau": tau, "external": external, "command": commands}
            wrench = [x for w in acts.values() for x in w]
            user = list(s.observed(t, y, u).values())
            return out | ({"wrench": wrench} if wrench else {}) | ({"output": user} if user else {})

        return self._varied(self.trace("outputs", seen, self._plain))

    def watching(self, names: Sequence[str]) -> Graph:
        """(t, y, u, p) -> columns of the record, and behind them their derivatives."""

        def seen(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            columns = Columns(self.system, self._accelerations, t, list(y), u)
            return {"z": [columns[name] for name in names]}

        return self._varied(self.trace("watching", seen, self._plain))

    @property
    def elements(self) -> list[str]:
        """Names of the elements of the state, and of its integrals."""
        m = self.system.mechanism
        names = [*(f"{n}.q" for n in m.columns[0]), *(f"{n}.v" for n in m.columns[1])]
        return [*names, *(x.name for x in self.system.states), *(i.name for i in self.integrals)]

    def started(self, y: Array) -> Array:
        """The state at the start, followed by integrals of nothing yet, and by its derivatives there."""
        if self.size == y.shape[-1]:
            return y
        n, elements = self.own, self.elements
        out = np.zeros((*y.shape[:-1], self.size))
        out[..., : y.shape[-1]] = y
        for j, w in enumerate(self.wrt):
            if w in elements:
                out[..., n * (1 + j) + elements.index(w)] = 1.0
        return out

    def checked(self, y: Array, parameters: Array) -> Array:
        """A start (runs, size), or an error where the mechanism cannot be so; here anything goes."""
        return y

    def bounds(self, y: Array, parameters: Array) -> Array:
        """How large E may become before a run asks for another partition."""
        return np.full(len(y), np.inf)

    def told(self, widest: float, switched: int) -> dict[str, Any]:
        """What the record's provenance says of closed loops."""
        return {}

    def why_open(self, y: Array, parameters: Array, t: float) -> str:
        """Why loops could not be closed in a step from here."""
        return ""

    def singular_ahead(self, y: Array, parameters: Array, h: float) -> bool:
        """Whether the next step ends on, or beside, a singular configuration."""
        return False

    def near(self, y: Array, parameters: Array) -> str:
        """In words, how near to a singular configuration it is; nothing where it is not."""
        return ""

    def grouped(self, y: Array, parameters: Array) -> dict[Traced, Array]:
        """Which of the runs go by which graphs."""
        return {self: np.arange(len(y))}

    def problem(self, u: Sequence[Scalar] = ()) -> Problem:
        """For a trace in which y and t are nodes and u are the inputs."""
        s, m = self.system, self.system.mechanism

        def f(t: Scalar, y: State) -> State:
            return list(self.call(self.f, t, y, u)["dy"])

        def jacobian(t: Scalar, y: State) -> tuple[list[State] | Product, State]:
            return self.linearised(t, y, u)

        def moved(q: State, displacement: State) -> State:
            return kinematics.integrate(m.tree, q, displacement)

        return Problem(f, m.nq, m.nv, self.size - m.nq - m.nv, jacobian, moved, projection(s), rolled(s))


def projection(s: System) -> Callable[[State], State]:
    """Puts a state back where it belongs: quaternions to unit length, actuator states inside their limits."""
    m = s.mechanism
    bounds = s.limits()

    def project(y: State) -> State:
        y = turned(s, y)
        for k, pair in enumerate(bounds, m.nq + m.nv):
            if pair is not None:
                y[k] = clip(y[k], *pair)
        return y

    return project


def turned(s: System, y: State) -> State:
    """With quaternions of unit length."""
    y = list(y)
    for i in quaternions(s):
        n = 1.0 / sqrt(sum((x * x for x in y[i + 1 : i + 4]), y[i] * y[i]))
        y[i : i + 4] = [x * n for x in y[i : i + 4]]
    return y


def rolled(s: System) -> Callable[[State, State, State], State]:
    """(q, q1, displacement): (1 + w/2) behind the quaternion of q is Cayley's map of w, but for its length."""

    def roll(q: State, q1: State, displacement: State) -> State:
        change, out = kinematics.rate(s.mechanism.tree, q, displacement), list(q1)
        for i in quaternions(s):
            out[i : i + 4] = [a + b for a, b in zip(q[i : i + 4], change[i : i + 4], strict=True)]
        return out

    return roll


def quaternions(s: System) -> list[int]:
    """Where in y a quaternion begins."""
    return [i for i, name in enumerate(s.mechanism.columns[0]) if name.endswith(".qx")]


def derivative(of: str, wrt: str) -> str:
    """The name of a column of sensitivities."""
    return f"d({of})/d({wrt})"


def chosen(s: System, method: str, dtype: str, wrt: Sequence[str] = (), integrals: tuple[Integral, ...] = ()) -> Traced:
    by, _ = graphs.chosen(s.mechanism, graphs.Request("forward_dynamics", method))
    found = Traced(s, by, tuple(wrt), integrals)
    for name in wrt:
        if name not in s.parameters and name not in found.elements:
            raise InputError(f"sensitivities: {unknown('parameter or state', name, [*s.parameters, *found.elements])}")
    return found
