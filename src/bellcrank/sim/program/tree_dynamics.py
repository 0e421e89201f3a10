"""Dynamics of systems whose mechanism is a tree, without constraints between its coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, final

import numpy as np

from bellcrank.build import graphs, policy
from bellcrank.build.kernels import auto_method
from bellcrank.dynamics import METHODS
from bellcrank.dynamics.ltl_factorisation import Rows
from bellcrank.dynamics.quantity_requests import Request
from bellcrank.errors import InputError, unknown
from bellcrank.graph import CustomPullbackGraph, Graph
from bellcrank.integrate.problem import LowRankMatrix, MatrixFreeJacobian, State, Step, plus
from bellcrank.scalar import Scalar
from bellcrank.sim.program.closure_interface import Closure, RunGroup
from bellcrank.sim.program.implicit_forces import (
    augmented_solver,
    filtered_accelerations,
    implicit_forces,
    symmetric_product,
)
from bellcrank.sim.program.jacobian_operator import JacobianOperator, OperatorJacobian
from bellcrank.sim.program.system_graphs import Dynamics, Integral, check_sensitivities
from bellcrank.sim.program.tree_pullback import pullback
from bellcrank.sim.settings import Solver
from bellcrank.sim.system.systems import System

Array = np.ndarray[Any, Any]
# States from which df/dy is an operator: as fast as written-out code, and compiled in a tenth of the time.
OPERATOR_FROM_STATES = 48


@final
@dataclass(frozen=True, eq=False)
class TreeDynamics(Dynamics):
    """Dynamics of a tree: every state is admissible, and a step needs no projection."""

    @cached_property
    def f(self) -> Graph:
        """Return the graph (t, y, u, p) -> dy/dt, with a shorter pullback where one applies.

        A recursion has a pullback of its own, made of calls.
        """
        f, s = self.traced_rate(), self.system
        if self.wrt or s.motions or s.mechanism.springs or s.quaternions or self.recursion is not None:
            return f
        return CustomPullbackGraph(f.name, f.inputs, f.outputs, f.tape, make_pullback=partial(pullback, self))

    @cached_property
    def closure(self) -> TreeClosure:
        """Return the loop handling of a tree, which has no loops."""
        return TreeClosure(self)

    @property
    def measured_fields(self) -> tuple[str, ...]:
        """Return additional fields of the state of a Program: none."""
        return ()

    @cached_property
    def recursion(self) -> Graph | None:
        """Return forward dynamics as a separate graph if it has rolled loops over identical bodies, else None."""
        request = Request("forward_dynamics", self.method.name)
        m = self.system.mechanism
        plan = policy.plan(m, request, self.method)
        return graphs.trace_plan(m, request, plan) if plan.form == policy.ROLLED else None

    def accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        """Return the accelerations by the generalised forces `tau` at the state `y`."""
        q, v, _ = self.system.split(y)
        if self.recursion is not None:
            free = self.system.mechanism.parameters
            arguments = {"q": list(q), "v": list(v), "tau": list(tau)} | ({"p": free.leaves} if free else {})
            return list(self.recursion.call(**arguments)["forward_dynamics"])
        tree = graphs.quantity_tree(self.system.mechanism, "forward_dynamics", self.method)
        return list(self.method.function("forward_dynamics")(tree, list(q), list(v), list(tau)))

    def linearised(
        self, t: Scalar, y: State, u: Sequence[Scalar]
    ) -> tuple[list[State] | LowRankMatrix | MatrixFreeJacobian, State]:
        """Return df/dy, as a matrix or for large systems as an operator, and df/dt.

        Parameters
        ----------
        t, y, u
            Time, state and inputs.
        """
        if self.size < OPERATOR_FROM_STATES:
            return super().linearised(t, y, u)
        return OperatorJacobian(self._jacobian_operator, t, y, u), list(
            self.call(self.time_derivative, t, y, u)["ddy_dt"]
        )

    @cached_property
    def _jacobian_operator(self) -> JacobianOperator:
        return JacobianOperator(self)

    def force_response(self, y: Sequence[Scalar], force: Sequence[Scalar], shown: bool) -> list[Scalar]:
        """Return the change of the accelerations by a generalised force.

        Parameters
        ----------
        y
            State.
        force
            Generalised force.
        shown
            True for rows of a record; no difference for a tree.
        """
        q, v, _ = self.system.split(y)
        from bellcrank.dynamics.loops.constrained_dynamics import without_forces

        tree = without_forces(graphs.quantity_tree(self.system.mechanism, "forward_dynamics", self.method))
        return list(self.method.function("forward_dynamics")(tree, list(q), [0.0] * len(v), list(force)))

    def filtered_accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar], a: State, added: Rows) -> State:
        """Return a - (1 - S)^2 a of the accelerations a.

        With S a, which needs no M^-1, it is S a + (1 - S) S a. A method of the user may imply another M and is used as
        it is.

        Parameters
        ----------
        y
            State.
        tau
            Generalised forces.
        a
            Their accelerations.
        added
            Matrix that implicit forces add to the mass matrix.
        """
        q, v, _ = self.system.split(y)
        if not isinstance(self.method.module, str):
            return filtered_accelerations(a, added, augmented_solver(self.system.mechanism.tree, q, added))
        tree = graphs.quantity_tree(self.system.mechanism, "forward_dynamics", METHODS["crba"])
        solve = augmented_solver(tree, q, added)
        bias_forces = METHODS["rnea"].function("inverse_dynamics")(tree, list(q), list(v), [0.0] * len(v))
        slow = solve([f - g for f, g in zip(tau, bias_forces, strict=True)])
        return plus(slow, solve(symmetric_product(added, slow)))

    def record_accelerations(self, y: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
        """Return the accelerations for a row of a record, by the generalised forces `tau` at the state `y`."""
        return self.accelerations(y, tau)

    def stage_state(self, y: State) -> State:
        """Return the state `y` inside a step, unchanged."""
        return y

    @property
    def independent(self) -> list[int]:
        """Return the independent elements of v: all."""
        return list(range(self.system.mechanism.nv))

    def consistent_state(self, y: State) -> State:
        """Return `y`: all elements of a tree's state are independent."""
        return y

    def step_end_state(self, step: Step, old: dict[str, Any]) -> tuple[State, Scalar, dict[str, Any]]:
        """Return the state after `step`, status 0 and no new fields; `old` is not used."""
        return step.y, 0.0, {}

    def constrained_state(self, y: State) -> State:
        """Return the state `y` between steps, unchanged."""
        return y

    def observed_row(self, y: State) -> tuple[State, Scalar]:
        """Return the row `y` between two steps, unchanged, and 0.0: it does not need `closure.polished`."""
        return y, 0.0


@final
class TreeClosure(Closure):
    """Loop handling of a tree: nothing to close."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics = dynamics

    def neutral(self) -> Array:
        """Return the neutral positions."""
        return self.dynamics.system.mechanism.neutral()

    def checked(self, y: Array, parameters: Array) -> Array:
        """Return the start `y`, which is admissible for any `parameters`."""
        return y

    def grouped(self, y: Array, parameters: Array) -> list[RunGroup]:
        """Return one group with all states `y`, for any `parameters`."""
        return [RunGroup(self.dynamics, np.arange(len(y)))]

    def common_dynamics(self, y: Array, parameters: Array, independent: Sequence[str] = ()) -> Dynamics:
        """Return the dynamics, which suit all states.

        Parameters
        ----------
        y, parameters
            States and values of free parameters.
        independent
            Names of requested independent joints, which are checked.
        """
        m = self.dynamics.system.mechanism
        for name in independent:
            if name not in m.columns[1]:
                raise InputError(f'independent, of "{m.name}": {unknown("joint", name, m.columns[1])}')
        return self.dynamics

    def closed_points(self, y: Array, parameters: Array) -> tuple[Array, Array]:
        """Return the starts `y` and a mask of singular ones: none, for any `parameters`."""
        return y, np.zeros(len(y), bool)

    def polished(self, y: Array, parameters: Array) -> Array:
        """Return the row `y` unchanged, for any `parameters`."""
        return y

    def provenance(self, widest: float, switched: int) -> dict[str, Any]:
        """Return the provenance of loops: none; `widest` and `switched` are not needed."""
        return {}

    def open_loop_message(self, y: Array, parameters: Array, t: float) -> str:
        """Return an empty text: a tree has no loop that could be open at `y`, `parameters` and `t`."""
        return ""

    def singular_ahead(self, y: Array, parameters: Array, h: float) -> bool:
        """Return False: a tree has no singular loops at `y`, `parameters` and `h`."""
        return False

    def near_singular_text(self, y: Array, parameters: Array) -> str:
        """Return an empty text: a tree has no singular loops at `y` and `parameters`."""
        return ""


def tree_dynamics(
    system: System, solver: Solver, wrt: Sequence[str] = (), integrals: tuple[Integral, ...] = ()
) -> TreeDynamics:
    """Return the dynamics of a tree by the solver's method, or for "auto" by the fastest one.

    Parameters
    ----------
    system
        System.
    solver
        Settings of the integration.
    wrt
        Names with respect to which states are differentiated.
    integrals
        Integrals that summaries need.
    """
    method = auto_method(system.mechanism, Request("forward_dynamics", solver.method))
    dynamics = TreeDynamics(system, method, tuple(wrt), integrals, implicit_forces(system, solver))
    check_sensitivities(dynamics)
    return dynamics
