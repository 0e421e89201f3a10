"""From a System to graphs: its rate f, the Jacobian of f, its outputs, and the Problem an integrator works on.

f is traced once and called by every stage of every step, so its code exists once. What depends on whether there are
closed loops is left open here: tree_dynamics.py and looped_dynamics.py fill it in, and nobody else asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.dynamics import Method, kinematics
from bellcrank.dynamics.inertia_matrix import Rows
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Node, Ports, trace
from bellcrank.integrate.problem import Problem, Product, Slopes, State, Step, identity
from bellcrank.record.contents import COMPONENTS
from bellcrank.scalar import Scalar, step
from bellcrank.sim.allowed_states import projection, rolled
from bellcrank.sim.closure import Closure
from bellcrank.sim.columns import Columns, units
from bellcrank.sim.implicit_forces import ImplicitForces
from bellcrank.sim.implicit_systems import ImplicitSystems
from bellcrank.sim.motions import forced
from bellcrank.sim.nominals import nominals
from bellcrank.sim.sampling import clocks
from bellcrank.sim.systems import System

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Integral:
    """An integral over time, of a power of a column."""

    column: str
    power: int = 1

    @property
    def name(self) -> str:
        return f"integral({self.column}{f'^{self.power}' if self.power > 1 else ''})"


@dataclass(frozen=True, eq=False)
class Dynamics(ABC):
    """The graphs of one system by one method of forward dynamics.

    integrals: y carries them behind the state. wrt: parameters and elements of the initial state ("boom.mass",
    "boom.q"); y then carries, behind all that, its derivatives with respect to each of them.
    """

    system: System
    method: Method
    wrt: tuple[str, ...] = ()
    integrals: tuple[Integral, ...] = ()
    implicit: ImplicitForces | None = None  # what fixed steps take implicitly

    @property
    def own(self) -> int:
        """How many elements y has, without its derivatives."""
        return self.system.size + len(self.integrals)

    @property
    def size(self) -> int:
        """How many elements y has, with its derivatives."""
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
        self, graph: Graph, t: Scalar, y: Sequence[Scalar], u: Sequence[Scalar] = (), **more: Scalar | Sequence[Scalar]
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
        return self.traced_rate()

    def traced_rate(self) -> Graph:
        """The same, made anew."""

        def rehearsed(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            return {"command": list(self.system.commanded(t, list(y), u)[0])}

        # A control that keeps a symbol for its next call would pass for one without memory, if there were no next.
        self.trace("rehearsal", rehearsed, self._plain)

        def rate(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            return {"dy": self.rate(t, self.staged(list(y)), u)}

        return self._varied(self.trace("rate", rate, self._plain))

    @cached_property
    def stepped(self) -> Graph:
        """(t, y, u, p, h) -> dy/dt as fixed steps of h take it: with what is too stiff for them filtered."""

        def rate(t: Scalar, y: Any, h: Scalar, u: Any = ()) -> dict[str, Any]:
            return {"dy": self.rate(t, self.staged(list(y)), u, h=h)}

        return self._varied(self.trace("stepped_rate", rate, {**self._plain, "h": ()}))

    def rate(self, t: Scalar, y: State, u: Any, a: State | None = None, h: Scalar | None = None) -> State:
        """dy/dt over any scalar, at a state whose loops are closed; a: accelerations, where they are known.

        h: the length of a fixed step that is implicit in some forces (implicit_forces.py); None gives the plain rate.
        """
        s, m = self.system, self.system.mechanism
        s = s if self.implicit is None or h is None else self.implicit.stepped(s, h)
        step("control")
        commands, own = s.commanded(t, y, u)
        step("actuators")
        tau, rates = s.forces(t, y, commands)
        pushed = [] if a is not None else s.pushed(t, y, tau)
        known = a if a is not None else self.moved(t, y, pushed)[0]
        step("rate")
        q, v, _ = s.split(y)
        grown: State = []
        if self.integrals:
            seen = Columns(s, lambda y, tau: known, t, y, u)
            grown = [seen[i.column] ** i.power for i in self.integrals]
        still = [0.0] * sum(len(c.variables) for c in s.sampled)
        if any(e.states for e in s.elements):
            rates = [*rates, *(x for act in s.acts(t, y) for x in act.rates)]
        if self.implicit is not None and h is not None:
            added = self.implicit.matrix(s, t, y, commands, h)
            known = self.filtered(y, pushed, known, added) if any(added) else known
        return [*kinematics.rate(m.tree, list(q), list(v)), *known, *rates, *own, *still, *grown]

    def moved(
        self, t: Scalar, y: Sequence[Scalar], tau: Sequence[Scalar], shown: bool = False
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """Accelerations with all prescribed motions; what each of those takes; and that on the coordinates."""
        s = self.system
        a = (self.shown if shown else self.accelerations)(y, tau)
        if not s.motions:
            return a, [], []
        q, v, _ = s.split(y)
        return forced(s.mechanism, s.motions, t, list(q), list(v), a, lambda f: self.answer(y, f, shown))

    # -- what a mechanism with closed loops does otherwise than a tree

    @abstractmethod
    def answer(self, y: Sequence[Scalar], force: Sequence[Scalar], shown: bool) -> list[Scalar]:
        """What a force on the coordinates adds to the accelerations."""

    @abstractmethod
    def filtered(self, y: Sequence[Scalar], tau: Sequence[Scalar], a: State, added: Rows) -> State:
        """Return a - (1 - S)^2 a of the accelerations a by the forces tau, with `added` to the mass matrix; see
        implicit_forces.py.
        """

    @property
    @abstractmethod
    def closure(self) -> Closure:
        """What numbers say of loops in a state, between steps: graphs cannot."""

    @property
    @abstractmethod
    def measured(self) -> tuple[str, ...]:
        """Fields of a program's state beside those of every run."""

    @abstractmethod
    def accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        """Accelerations by the forces tau."""

    @abstractmethod
    def shown(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        """Accelerations of any row of a record."""

    @abstractmethod
    def staged(self, y: State) -> State:
        """A state inside a step, as the rate sees it."""

    @property
    @abstractmethod
    def independent(self) -> list[int]:
        """The elements of v, and as displacements those of q, that determine all others."""

    @abstractmethod
    def determined(self, y: State) -> State:
        """The state that follows from its independent elements: as it was, if it was a possible one, and its
        derivatives are those along possible ones.
        """

    @abstractmethod
    def settled(self, made: Step, old: dict[str, Any]) -> tuple[State, Scalar, dict[str, Any]]:
        """The state that a step ends with, trouble (a status, or 0), and new values of what is measured."""

    @abstractmethod
    def rejoined(self, y: State) -> State:
        """A state between steps, or one that an event made, with what must hold between its elements."""

    @abstractmethod
    def observed(self, y: State) -> tuple[State, Scalar]:
        """A row between two steps, and 1 where it must be looked at again, by `closure.polished`."""

    # -- slopes

    @cached_property
    def by_state(self) -> Graph:
        """(t, y, u, p) -> df/dy."""
        return self.f.jacobian("dy", "y")

    @cached_property
    def by_time(self) -> Graph:
        """(t, y, u, p) -> df/dt."""
        return self.f.jacobian("dy", "t")

    def linearised(self, t: Scalar, y: State, u: Sequence[Scalar]) -> tuple[list[State] | Product | Slopes, State]:
        """df/dy and df/dt inside another trace."""
        J = self.call(self.by_state, t, y, u)["ddy_dy"]
        return [list(row) for row in J], list(self.call(self.by_time, t, y, u)["ddy_dt"])

    @cached_property
    def outputs(self) -> Graph:
        """(t, y, u, p) -> accelerations, forces of drives and from outside, commands, outputs of the user."""
        s = self.system

        def seen(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            y = list(y)
            commands, _ = s.commanded(t, y, u)
            tau, _ = s.forces(t, y, commands)
            external, acts = s.outside(t, y)
            a, drive, motion = self.moved(t, y, s.pushed(t, y, tau), shown=True)
            out = {"a": a, "tau": tau, "external": external, "command": commands}
            out |= {"motion": motion, "drive": drive} if s.motions else {}
            between = s.acts(t, y, shown=True)
            if between:
                out |= {"element": s.summed(between, y), "acts": [x for act in between for x in act.shown]}
            wrench = [x for w in acts.values() for x in w]
            user = list(s.observed(t, y, u).values())
            return out | ({"wrench": wrench} if wrench else {}) | ({"output": user} if user else {})

        return self._varied(self.trace("outputs", seen, self._plain))

    def watching(self, names: Sequence[str]) -> Graph:
        """(t, y, u, p) -> columns of the record, and behind them their derivatives."""

        def seen(t: Scalar, y: Any, u: Any = ()) -> dict[str, Any]:
            columns = Columns(self.system, lambda y, tau: self.moved(t, y, tau)[0], t, list(y), u)
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

    def problem(self, u: Sequence[Scalar] = (), h: Scalar | None = None) -> Problem:
        """What an integrator works on, in a trace in which y and t are nodes and u are the inputs.

        h: the length of steps that are fixed; None where they are chosen by an error estimate.
        """
        s, m = self.system, self.system.mechanism

        def f(t: Scalar, y: State) -> State:
            if self.implicit is None or h is None:
                return list(self.call(self.f, t, y, u)["dy"])
            return list(self.call(self.stepped, t, y, u, h=h)["dy"])

        def jacobian(t: Scalar, y: State) -> tuple[list[State] | Product | Slopes, State]:
            return self.linearised(t, y, u)

        def moved(q: State, displacement: State) -> State:
            return kinematics.integrate(m.tree, q, displacement)

        project = projection(s) if s.quaternions or any(s.limits()) else identity
        roll = rolled(s) if s.quaternions else None
        solver = self._systems.implicit
        return Problem(f, m.nq, m.nv, self.size - m.nq - m.nv, jacobian, moved, project, roll, solver)

    @cached_property
    def _systems(self) -> ImplicitSystems:
        return ImplicitSystems(self.system.mechanism.name)

    @cached_property
    def columns(self) -> dict[str, tuple[str, int]]:
        """Columns that follow from the state: each with its place in `outputs`."""
        s, v = self.system, self.system.mechanism.columns[1]
        names = {key: [f"{name}.{key}" for name in v] for key in ("a", "tau", "external")}
        names["wrench"] = [f"{frame}.{c}" for frame in s.wrenches for c in COMPONENTS]
        if s.elements:
            names["element"] = [f"{name}.element" for name in v]
            names["acts"] = list(s.element_units)
        if s.motions:
            names["motion"] = [f"{name}.motion" for name in v]
            names["drive"] = [f"{name}.drive" for name in s.motions]
        names["command"] = [f"{name}.command" for name in s.commands]
        names["output"] = list(s.outputs)
        shown = {key: mine for key, mine in names.items() if key != "command" or s.actuators}
        found = {name: (key, i) for key, mine in shown.items() for i, name in enumerate(mine)}
        plain = list(found.items())
        for j, w in enumerate(self.wrt, 1):
            found |= {derivative(name, w): (key, j * len(names[key]) + i) for name, (key, i) in plain}
        return found

    @cached_property
    def ports(self) -> Ports:
        """What the numbers of a program of this system mean."""
        s = self.system
        still = [*[0.0] * s.mechanism.nv, *(x.initial for x in s.states)]
        return Ports(
            (*self.elements, *(derivative(name, w) for w in self.wrt for name in self.elements)),
            {name: s.defaults.get(name, 0.0) for name in s.inputs},
            s.parameters,
            self.columns,
            lambda: units(s) | s.motion_units,
            lambda: self.started(np.array([*self.closure.neutral(), *still], float)),
            lambda: self.outputs,
            lambda: self.f,
            sizing=lambda: nominals(s),
            clocks=clocks(s),
        )


def derivative(of: str, wrt: str) -> str:
    """The name of a column of sensitivities."""
    return f"d({of})/d({wrt})"


def checked_names(found: Dynamics) -> None:
    """An error where a run is to be differentiated with respect to something that it has not."""
    known = [*found.system.parameters, *found.elements]
    for name in (x for x in found.wrt if x not in known):
        raise InputError(f"sensitivities: {unknown('parameter or state', name, known)}")
