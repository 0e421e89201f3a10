"""Systems whose mechanism is a tree: nothing must hold between its coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, final

import numpy as np

from bellcrank.build import graphs
from bellcrank.build.kernels import method_for
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.inertia_matrix import Rows
from bellcrank.dynamics.requests import Request
from bellcrank.errors import InputError, unknown
from bellcrank.graph import Graph, Pulled
from bellcrank.integrate.problem import Product, Slopes, State, Step, plus
from bellcrank.scalar import Scalar
from bellcrank.sim.closure import Closure, Group
from bellcrank.sim.dynamics import Dynamics, Integral, checked_names
from bellcrank.sim.implicit_forces import implicit_forces, less_stiff, solved_with, times
from bellcrank.sim.settings import Solver
from bellcrank.sim.slope_maps import Mapped, SlopeMaps
from bellcrank.sim.systems import System
from bellcrank.sim.tree_pullback import pullback

Array = np.ndarray[Any, Any]
MANY = 48  # states from which on slopes are not written out: loops are no slower from there on, and compile in a tenth


@final
@dataclass(frozen=True, eq=False)
class TreeDynamics(Dynamics):
    """Every state is as good as any other, and stays as a step leaves it."""

    @cached_property
    def f(self) -> Graph:
        """(t, y, u, p) -> dy/dt, with a short way back where there is one. (A recursion has its own, of calls.)"""
        f, s = self.traced_rate(), self.system
        if self.wrt or s.motions or s.mechanism.springs or s.quaternions or self.recursion is not None:
            return f
        return Pulled(f.name, f.inputs, f.outputs, f.tape, way=partial(pullback, self))

    @cached_property
    def closure(self) -> NoLoops:
        return NoLoops(self)

    @property
    def measured(self) -> tuple[str, ...]:
        return ()

    @cached_property
    def recursion(self) -> Graph | None:
        """Forward dynamics as a graph of its own, which is called, where alike bodies share their code."""
        asked = Request("forward_dynamics", self.method.name)
        m = self.system.mechanism
        return graphs.traced(m, asked, self.method) if graphs.rolls(m, asked, self.method) else None

    def accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        q, v, _ = self.system.split(y)
        if self.recursion is not None:
            free = self.system.mechanism.parameters
            given = {"q": list(q), "v": list(v), "tau": list(tau)} | ({"p": free.leaves} if free else {})
            return list(self.recursion.call(**given)["forward_dynamics"])
        tree = graphs.tree(self.system.mechanism, "forward_dynamics", self.method)
        return list(self.method.function("forward_dynamics")(tree, list(q), list(v), list(tau)))

    def linearised(self, t: Scalar, y: State, u: Sequence[Scalar]) -> tuple[list[State] | Product | Slopes, State]:
        if self.size < MANY:
            return super().linearised(t, y, u)
        return Mapped(self._maps, t, y, u), list(self.call(self.by_time, t, y, u)["ddy_dt"])

    @cached_property
    def _maps(self) -> SlopeMaps:
        return SlopeMaps(self)

    def answer(self, y: Sequence[Scalar], force: Sequence[Scalar], shown: bool) -> list[Scalar]:
        q, v, _ = self.system.split(y)
        from bellcrank.dynamics.loops.forms import bare

        tree = bare(graphs.tree(self.system.mechanism, "forward_dynamics", self.method))
        return list(self.method.function("forward_dynamics")(tree, list(q), [0.0] * len(v), list(force)))

    def filtered(self, y: Sequence[Scalar], tau: Sequence[Scalar], a: State, added: Rows) -> State:
        """With S a at hand, which needs no M^-1, a - (1 - S)^2 a is S a + (1 - S) S a. Methods of others may have
        another M.
        """
        q, v, _ = self.system.split(y)
        if not isinstance(self.method.module, str):
            return less_stiff(a, added, solved_with(self.system.mechanism.tree, q, added))
        tree = graphs.tree(self.system.mechanism, "forward_dynamics", METHODS["crba"])
        solve = solved_with(tree, q, added)
        overcome = METHODS["rnea"].function("inverse_dynamics")(tree, list(q), list(v), [0.0] * len(v))
        slow = solve([f - g for f, g in zip(tau, overcome, strict=True)])
        return plus(slow, solve(times(added, slow)))

    def shown(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        return self.accelerations(y, tau)

    def staged(self, y: State) -> State:
        return y

    @property
    def independent(self) -> list[int]:
        return list(range(self.system.mechanism.nv))

    def determined(self, y: State) -> State:
        return y

    def settled(self, made: Step, old: dict[str, Any]) -> tuple[State, Scalar, dict[str, Any]]:
        return made.y, 0.0, {}

    def rejoined(self, y: State) -> State:
        return y

    def observed(self, y: State) -> tuple[State, Scalar]:
        return y, 0.0


@final
class NoLoops(Closure):
    """A tree has nothing to close."""

    def __init__(self, by: Dynamics) -> None:
        self.by = by

    def neutral(self) -> Array:
        return self.by.system.mechanism.neutral()

    def checked(self, y: Array, parameters: Array) -> Array:
        return y

    def grouped(self, y: Array, parameters: Array) -> list[Group]:
        return [Group(self.by, np.arange(len(y)))]

    def common(self, y: Array, parameters: Array, independent: Sequence[str] = ()) -> Dynamics:
        m = self.by.system.mechanism
        for name in independent:
            if name not in m.columns[1]:
                raise InputError(f'independent, of "{m.name}": {unknown("joint", name, m.columns[1])}')
        return self.by

    def surveyed(self, y: Array, parameters: Array) -> tuple[Array, Array]:
        return y, np.zeros(len(y), bool)

    def polished(self, y: Array, parameters: Array) -> Array:
        return y

    def told(self, widest: float, switched: int) -> dict[str, Any]:
        return {}

    def why_open(self, y: Array, parameters: Array, t: float) -> str:
        return ""

    def singular_ahead(self, y: Array, parameters: Array, h: float) -> bool:
        return False

    def near(self, y: Array, parameters: Array) -> str:
        return ""


def tree_dynamics(
    system: System, solver: Solver, wrt: Sequence[str] = (), integrals: tuple[Integral, ...] = ()
) -> TreeDynamics:
    """The system by the solver's method, or by "auto" the one that will be fastest here."""
    by = method_for(system.mechanism, Request("forward_dynamics", solver.method))
    found = TreeDynamics(system, by, tuple(wrt), integrals, implicit_forces(system, solver))
    checked_names(found)
    return found
