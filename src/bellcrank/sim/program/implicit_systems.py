"""Linear systems of implicit steps (integrate/linear_solver.py) as called graphs: one factors, another solves.

A step solves with the same factors four to six times. Inlined, the solutions would be most of the code of a step and
most of its compile time; as a call, the code exists once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank.graph import Graph, Node, trace
from bellcrank.integrate.linear_solver import LUFactors, WoodburySolver, implicit_solver
from bellcrank.integrate.problem import LowRankMatrix, MatrixFreeJacobian, State
from bellcrank.scalar import Scalar

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
        matrices = (
            {"left": jacobian.left, "right": jacobian.right} if isinstance(jacobian, LowRankMatrix) else {"J": jacobian}
        )
        arrays = {name: np.array(rows, dtype=object) for name, rows in matrices.items()} | {
            "g": np.array(g, dtype=object)
        }

        def matrix(values: Mapping[str, Any]) -> list[State] | LowRankMatrix:
            return LowRankMatrix(values["left"], values["right"]) if product else values["J"]

        def factored(**values: Any) -> dict[str, Any]:
            solver = implicit_solver(matrix(values), values["g"])
            middle = solver.middle if isinstance(solver, WoodburySolver) else solver
            return {"rows": middle.rows, "reciprocal": middle.reciprocal}

        def solved(rows: Any, reciprocal: Any, b: Any, **values: Any) -> dict[str, Any]:
            middle = LUFactors(rows, reciprocal)
            whole = (
                WoodburySolver(LowRankMatrix(values["left"], values["right"]), values["g"], middle)
                if product
                else middle
            )
            return {"x": whole.solve(b)}

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
