"""Jacobian operators for implicit steps of large systems: df/dy is applied to directions, not written out.

    (1 - g df/dy) x = b                  q' = dq/dt = N(q) v depends on q and v only, so that
    (1 - g dq'/dq) x_q = b_q + g dq'/dv x_v           gives x_q from x_v, joint by joint; with it
    x_r - g df_r/dy [x_q of x_v, x_r] = b_r           remains for the rest r of y: v and further states

For b_q = 0 the left side of the last equation is a linear map of x_r: one call of the tangent of f. Loops build its
matrix, factorise it and solve with it (graph/linear_solve.py), so the code has the length of one column for any number
of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.graph import Graph, Node, linear_solve, trace
from bellcrank.graph.autodiff import tangent
from bellcrank.integrate.implicit import LUFactors, WoodburySolver, implicit_solver, lu_factors
from bellcrank.integrate.problem import LowRankMatrix, MatrixFreeJacobian, State
from bellcrank.jets import Jet
from bellcrank.model.kind import Kind
from bellcrank.scalar import Scalar

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


Array = np.ndarray[Any, Any]
MIN_CALL_OPERATIONS = 500  # operations of the smallest solution that is worth a call


@dataclass(frozen=True)
class FactoredSystem:
    """Solver with given factors. bound_inputs: inputs of the graph besides the right-hand side."""

    graph: Graph
    bound_inputs: Mapping[str, Any]

    def solve(self, b: Sequence[Scalar]) -> State:
        """Return the solution for the right-hand side `b`."""
        return list(self.graph.call(**self.bound_inputs, b=list(b))["x"])


@dataclass(frozen=True)
class ImplicitSystems:
    """Graphs for one system, cached for all matrices with the same constants in the same places."""

    name: str
    graphs: dict[Any, Graph] = field(default_factory=dict)

    def implicit(self, jacobian: Sequence[Sequence[Scalar]] | LowRankMatrix | MatrixFreeJacobian, g: Scalar) -> Any:
        """Return a solver for 1 - g df/dy, by calls where it is large.

        Parameters
        ----------
        jacobian
            df/dy: a matrix, a product of two matrices, or an operator.
        g
            The factor, s.
        """
        if isinstance(jacobian, MatrixFreeJacobian):
            return jacobian.implicit(g)
        product = isinstance(jacobian, LowRankMatrix)
        matrices: dict[str, Any] = {"J": jacobian}
        if isinstance(jacobian, LowRankMatrix):
            matrices = {"left": jacobian.left, "right": jacobian.right}
        arrays = {name: np.array(x, dtype=object) for name, x in (matrices | {"g": g}).items()}

        def matrix(values: Mapping[str, Any]) -> Any:
            return LowRankMatrix(values["left"], values["right"]) if product else values["J"]

        def factored(**values: Any) -> dict[str, Any]:
            solver = implicit_solver(matrix(values), values["g"])
            middle = solver.middle if isinstance(solver, WoodburySolver) else solver
            return {"rows": middle.rows, "reciprocal": middle.reciprocal}

        def solved(rows: Any, reciprocal: Any, b: Any, **values: Any) -> dict[str, Any]:
            middle = LUFactors(rows, reciprocal)
            return {"x": (WoodburySolver(matrix(values), values["g"], middle) if product else middle).solve(b)}

        factors = self._graph("factors", factored, arrays)
        parts = factors.call(**arrays)
        known = {**parts, **arrays} if product else parts
        solution = self._graph("solution", solved, known, b=len(arrays.get("left", arrays.get("J", ()))))
        return FactoredSystem(solution, known) if solution.size >= MIN_CALL_OPERATIONS else implicit_solver(jacobian, g)

    def _graph(self, name: str, function: Any, arrays: Mapping[str, Array], **more: int) -> Graph:
        """Return the graph of a function of arrays, in which elements that are constants here stay constants.

        `more` are names and lengths of further inputs.
        """
        fixed = {key: [None if isinstance(x, Node) else float(x) for x in array.flat] for key, array in arrays.items()}
        key = name, tuple((k, arrays[k].shape, tuple(v)) for k, v in fixed.items())
        if key not in self.graphs:

            def body(**symbols: Any) -> dict[str, Any]:
                values = dict(symbols)
                for k, numbers in fixed.items():
                    argument = np.array(symbols[k], dtype=object)
                    for i, x in enumerate(numbers):
                        if x is not None:
                            argument.flat[i] = x
                    values[k] = argument.tolist()
                return function(**values)  # type: ignore[no-any-return]

            shapes = {**{k: array.shape for k, array in arrays.items()}, **{k: (n,) for k, n in more.items()}}
            self.graphs[key] = trace(f"{self.name}.{name}", body, shapes)
        return self.graphs[key]
