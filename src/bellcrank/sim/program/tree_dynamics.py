"""Dynamics of systems whose mechanism is a tree, without constraints between its coordinates.

In implicit steps of large systems, df/dy is an operator that is applied to directions, not written out:

    (1 - g df/dy) x = b                  q' = dq/dt = N(q) v depends on q and v only, so that
    (1 - g dq'/dq) x_q = b_q + g dq'/dv x_v           gives x_q from x_v, joint by joint; with it
    x_r - g df_r/dy [x_q of x_v, x_r] = b_r           remains for the rest r of y: v and further states

For b_q = 0 the left side of the last equation is a linear map of x_r: one call of the tangent of f. Loops build its
matrix, factorise it and solve with it (graph/linear_solve.py), so the code has the length of one column for any number
of columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from bellcrank.build import graphs, policy
from bellcrank.build.kernels import auto_method
from bellcrank.dynamics import METHODS, crba
from bellcrank.dynamics.ltl_factorisation import Rows
from bellcrank.dynamics.quantities import Request
from bellcrank.graph import CustomPullbackGraph, Graph, Node, derivative, linear_solve
from bellcrank.graph.autodiff import tangent
from bellcrank.integrate.implicit import LUFactors, lu_factors
from bellcrank.integrate.problem import LowRankMatrix, MatrixFreeJacobian, State, plus
from bellcrank.jets import Jet
from bellcrank.model.kind import Kind
from bellcrank.model.mechanism import warn_once
from bellcrank.scalar import Scalar
from bellcrank.sim.program.implicit_forces import (
    augmented_solver,
    filtered_accelerations,
    implicit_forces,
    symmetric_product,
)
from bellcrank.sim.program.system_graphs import Dynamics, Integral, check_sensitivities
from bellcrank.sim.settings import Solver
from bellcrank.sim.system.systems import System

if TYPE_CHECKING:
    from bellcrank.sim.program.system_graphs import Dynamics


@dataclass(frozen=True, eq=False)
class JacobianOperator:
    """Graphs of one system for implicit steps, each made once."""

    dynamics: Dynamics

    @property
    def nq(self) -> int:
        """Return the number of positions."""
        return self.dynamics.system.mechanism.nq

    @property
    def reduced_size(self) -> int:
        """Return the number of remaining equations, without those of q."""
        return self.dynamics.size - self.nq

    @cached_property
    def factors(self) -> Graph:
        """Return the graph (t, y, u, p, g) -> rows, reciprocal: the factorised matrix."""

        def mapped(t: Scalar, y: Any, g: Scalar, x: Any, u: Any = ()) -> dict[str, Any]:
            moved = self._rate_derivative(t, y, u, g, [0.0] * self.nq, x)
            return {"b": [a - g * b for a, b in zip(x, moved, strict=True)]}

        shapes = {**self.dynamics.arguments, "g": (), "x": (self.reduced_size,)}
        name = f"{self.dynamics.system.mechanism.name}.factors"
        return linear_solve.LUFactors(name, self.dynamics.trace("slope", mapped, shapes), "x")

    @cached_property
    def right_side(self) -> Graph:
        """Return the graph (t, y, u, p, g, b) -> right side of the remaining equations."""

        def side(t: Scalar, y: Any, g: Scalar, b: Any, u: Any = ()) -> dict[str, Any]:
            still = [0.0] * self.reduced_size
            moved = self._rate_derivative(t, y, u, g, list(b[: self.nq]), still)
            return {"r": [a + g * m for a, m in zip(b[self.nq :], moved, strict=True)]}

        return self.dynamics.trace("right_side", side, {**self.dynamics.arguments, "g": (), "b": (self.dynamics.size,)})

    @cached_property
    def solution(self) -> Graph:
        """Return the graph that solves with the factors."""
        return linear_solve.Substitution(f"{self.dynamics.system.mechanism.name}.solution", self.reduced_size)

    @cached_property
    def complete_solution(self) -> Graph:
        """Return the graph (t, y, u, p, g, b, x) -> complete solution."""

        def lifted(t: Scalar, y: Any, g: Scalar, b: Any, x: Any, u: Any = ()) -> dict[str, Any]:
            return {"x": [*self._position_part(y, g, list(b), list(x)), *x]}

        shapes = {**self.dynamics.arguments, "g": (), "b": (self.nq,), "x": (self.reduced_size,)}
        return self.dynamics.trace("whole", lifted, shapes)

    @cached_property
    def _tangent(self) -> Graph:
        return tangent(self.dynamics.f, ["y"])

    def _rate_derivative(self, t: Scalar, y: Any, u: Any, g: Scalar, b: State, x: Any) -> State:
        """Return the derivative of the rates of v and further states along [x_q, x]."""
        along = [*self._position_part(y, g, b, list(x)), *x]
        derivative = self.dynamics.call(self._tangent, t, list(y), u, d_y=along)["d_dy"]
        return list(derivative)[self.nq :]

    def _position_part(self, y: Any, g: Scalar, b: State, x: State) -> State:
        """Return x_q from b_q and x, joint by joint; mimic joints have no coordinates of their own."""
        m, x_q = self.dynamics.system.mechanism, list(b)
        for link in m.tree.links:
            if link.joint.mimic is not None:
                continue
            q, v = [y[i] for i in link.q_index], [y[self.nq + i] for i in link.v_index]
            x_v = [x[i] for i in link.v_index]
            joint_part = [b[i] + g * r for i, r in zip(link.q_index, link.kind.rate(q, x_v), strict=True)]
            if type(link.kind).rate is not Kind.rate:
                joint_part = _rate_factors(link.kind, q, v, g).solve(joint_part)
            for i, one in zip(link.q_index, joint_part, strict=True):
                x_q[i] = one
        return x_q


def _rate_factors(kind: Kind, q: State, v: State, g: Scalar) -> LUFactors:
    """Factorise 1 - g dq'/dq of a joint whose rates depend on its coordinates."""
    n = len(q)
    columns = []
    for j in range(n):
        moved = kind.rate([Jet(a, 1.0 if i == j else 0.0) for i, a in enumerate(q)], v)
        columns.append([r.d if isinstance(r, Jet) else 0.0 for r in moved])
    return lu_factors([[(1.0 if i == j else 0.0) - g * columns[j][i] for j in range(n)] for i in range(n)])


@dataclass(frozen=True)
class OperatorJacobian(MatrixFreeJacobian):
    """The Jacobian operator at one state, as an integrator uses it."""

    operator: JacobianOperator
    t: Scalar
    y: State
    u: Sequence[Scalar]

    def implicit(self, g: Scalar) -> OperatorSolver:
        """Return a solver for (1 - `g` df/dy) x = b."""
        return OperatorSolver(self, g, self.call(self.operator.factors, g))

    def call(self, graph: Graph, g: Scalar, **more: Any) -> dict[str, Any]:
        """Call a `graph` at this state with the factor `g` and further arguments (`more`)."""
        return self.operator.dynamics.call(graph, self.t, self.y, self.u, g=g, **more)


@dataclass(frozen=True)
class OperatorSolver:
    """Solver for (1 - g df/dy) x = b with a factorised matrix."""

    jacobian: OperatorJacobian
    g: Scalar
    factors: dict[str, Any]

    def solve(self, b: Sequence[Scalar]) -> State:
        """Return x for the right side `b`."""
        maps, b = self.jacobian.operator, list(b)
        right = self.jacobian.call(maps.right_side, self.g, b=b)["r"]
        x = maps.solution.call(**self.factors, b=right)["x"]
        return list(self.jacobian.call(maps.complete_solution, self.g, b=b[: maps.nq], x=list(x))["x"])


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
        has_other_forces = s.motions or s.solved_elements or s.mechanism.springs
        if self.wrt or has_other_forces or s.quaternions or self.recursion is not None:
            return f
        return CustomPullbackGraph(f.name, f.inputs, f.outputs, f.tape, make_pullback=partial(pullback, self))

    @cached_property
    def recursion(self) -> Graph | None:
        """Return forward dynamics as a separate graph if it has rolled loops over identical bodies, else None."""
        request = Request("forward_dynamics", self.method.name)
        m = self.system.mechanism
        plan = policy.plan(m, request, self.method)
        return graphs.trace_plan(m, request, plan) if plan.form == policy.ROLLED else None

    def solved(self, q: State, v: State, tau: State, bare: bool = False) -> State:
        """Return the accelerations.

        Parameters
        ----------
        q, v
            Positions and velocities.
        tau
            Forces on the coordinates.
        bare
            Without all other forces: gravity, springs, damping and friction.
        """
        if self.recursion is not None and not bare:
            free = self.system.mechanism.parameters
            arguments = {"q": q, "v": v, "tau": tau} | ({"p": free.leaves} if free else {})
            return list(self.recursion.call(**arguments)["forward_dynamics"])
        tree = graphs.quantity_tree(self.system.mechanism, "forward_dynamics", self.method)
        if bare:
            from bellcrank.dynamics.loops.constrained_dynamics import without_forces

            tree = without_forces(tree)
        return list(self.method.function("forward_dynamics")(tree, q, v, tau))

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
        by_time = list(self.call(self.time_derivative, t, y, u)["ddy_dt"])
        return OperatorJacobian(self._jacobian_operator, t, y, u), by_time

    @cached_property
    def _jacobian_operator(self) -> JacobianOperator:
        return JacobianOperator(self)

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
    m = system.mechanism
    method = auto_method(m, Request("forward_dynamics", solver.method))
    if not m.tree.has_massive_bodies:
        from bellcrank.build.rounding_doubts import rounding_doubts  # most mechanisms do not need it

        warn_once(m, rounding_doubts(m, method))
    dynamics = TreeDynamics(system, method, tuple(wrt), integrals, implicit_forces(system, solver))
    check_sensitivities(dynamics)
    return dynamics


NodeWeights = dict[int, Any]  # weights by the serial of a node


def pullback(dynamics: TreeDynamics) -> Graph:
    """Return the graph (t, y, u, p, r_dy, w_dy) -> g_t, g_y, g_u, g_p of `dynamics`."""
    m, f, n = dynamics.system.mechanism, dynamics.f, dynamics.plain_size
    rate_inputs = {name: shape for name, shape in f.inputs.items() if name != "p"}

    def residual(t: Scalar, y: Any, r_dy: Any, u: Any = (), **_: Any) -> dict[str, Any]:
        y, a = list(y), list(r_dy[m.nq : m.nq + m.nv])
        residual_forces = dynamics.force_residual(t, y, u, a)
        return {"h": dynamics.rate(t, y, u, a), "R": residual_forces}

    plain = dynamics.trace("residual", residual, {**rate_inputs, "r_dy": (n,), "w_dy": (n,)})
    tape, names = plain.tape, list(f.inputs)
    rate_weights = _weights(plain.outputs["h"], tape.inputs("w_dy", (n,)))
    # w dh/da: mostly the weights of the rates of the velocities.
    rates = Graph("h", plain.inputs, {"h": plain.outputs["h"]}, tape)
    acceleration_weights = derivative.reverse_sweep(rates.nodes, rate_weights)
    a = tape.inputs("r_dy", (n,))[m.nq : m.nq + m.nv]
    q = list(tape.inputs("y", (n,))[: m.nq])
    tree = graphs.quantity_tree(m, "forward_dynamics", METHODS["crba"])
    mu = crba.accelerations(tree, q, [acceleration_weights.get(x.serial, 0.0) for x in a])
    input_weights = derivative.reverse_sweep(plain.nodes, _weights(plain.outputs["R"], mu, rate_weights))
    outputs = {}
    for name in names:
        shape = f.inputs[name]
        array = np.empty(shape, dtype=object)
        for k, index in enumerate(np.ndindex(*shape)):
            array[index] = input_weights.get(tape.node("input", name, k).serial, 0.0)
        outputs[f"g_{name}"] = array
    inputs = {name: f.inputs[name] for name in names} | {"r_dy": (n,), "w_dy": (n,)}
    return Graph(f"{f.name}.pullback", inputs, outputs, tape)


def _weights(rows: Iterable[Any], weights: Iterable[Any], further: NodeWeights | None = None) -> NodeWeights:
    total = dict(further or {})
    for x, w in zip(rows, weights, strict=True):
        if isinstance(x, Node):
            total[x.serial] = total[x.serial] + w if x.serial in total else w
    return total
