"""Jacobian operators for implicit steps of large systems: df/dy is applied to directions, not written out.

    (1 - g df/dy) x = b                  q' = dq/dt = N(q) v depends on q and v only, so that
    (1 - g dq'/dq) x_q = b_q + g dq'/dv x_v           gives x_q from x_v, joint by joint; with it
    x_r - g df_r/dy [x_q of x_v, x_r] = b_r           remains for the rest r of y: v and further states

For b_q = 0 the left side of the last equation is a linear map of x_r: one call of the tangent of f. Loops build its
matrix, factorise it and solve with it (graph/elimination.py), so the code has the length of one column for any number
of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bellcrank.graph import Graph, elimination
from bellcrank.graph.variations import tangent
from bellcrank.integrate.linear import Factors, factored
from bellcrank.integrate.problem import Slopes, State
from bellcrank.jets import Jet
from bellcrank.model.kind import Kind
from bellcrank.model.tree import Link
from bellcrank.scalar import Scalar

if TYPE_CHECKING:
    from bellcrank.sim.dynamics import Dynamics


@dataclass(frozen=True, eq=False)
class SlopeMaps:
    """Graphs of one system for implicit steps, each made once."""

    by: Dynamics

    @property
    def nq(self) -> int:
        """Return the number of positions."""
        return self.by.system.mechanism.nq

    @property
    def left(self) -> int:
        """Return the number of remaining equations, without those of q."""
        return self.by.size - self.nq

    @cached_property
    def factors(self) -> Graph:
        """Return the graph (t, y, u, p, g) -> rows, reciprocal: the factorised matrix."""

        def mapped(t: Scalar, y: Any, g: Scalar, x: Any, u: Any = ()) -> dict[str, Any]:
            return {"b": [a - g * b for a, b in zip(x, self._moved(t, y, u, g, [0.0] * self.nq, x), strict=True)]}

        shapes = {**self.by.arguments, "g": (), "x": (self.left,)}
        name = f"{self.by.system.mechanism.name}.factors"
        return elimination.Factors(name, self.by.trace("slope", mapped, shapes), "x")

    @cached_property
    def right(self) -> Graph:
        """Return the graph (t, y, u, p, g, b) -> right side of the remaining equations."""

        def side(t: Scalar, y: Any, g: Scalar, b: Any, u: Any = ()) -> dict[str, Any]:
            still = [0.0] * self.left
            moved = self._moved(t, y, u, g, list(b[: self.nq]), still)
            return {"r": [a + g * m for a, m in zip(b[self.nq :], moved, strict=True)]}

        return self.by.trace("right_side", side, {**self.by.arguments, "g": (), "b": (self.by.size,)})

    @cached_property
    def solution(self) -> Graph:
        """Return the graph that solves with the factors."""
        return elimination.Substitution(f"{self.by.system.mechanism.name}.solution", self.left)

    @cached_property
    def whole(self) -> Graph:
        """Return the graph (t, y, u, p, g, b, x) -> complete solution."""

        def lifted(t: Scalar, y: Any, g: Scalar, b: Any, x: Any, u: Any = ()) -> dict[str, Any]:
            return {"x": [*self._of_q(y, g, list(b), list(x)), *x]}

        return self.by.trace("whole", lifted, {**self.by.arguments, "g": (), "b": (self.nq,), "x": (self.left,)})

    @cached_property
    def _tangent(self) -> Graph:
        return tangent(self.by.f, ["y"])

    def _moved(self, t: Scalar, y: Any, u: Any, g: Scalar, b: State, x: Any) -> State:
        """Return the derivative of the rates of v and further states along [x_q, x]."""
        along = [*self._of_q(y, g, b, list(x)), *x]
        found = self.by.call(self._tangent, t, list(y), u, d_y=along)["d_dy"]
        return list(found)[self.nq :]

    def _of_q(self, y: Any, g: Scalar, b: State, x: State) -> State:
        """Return x_q from b_q and x, joint by joint; mimic joints have no coordinates of their own."""
        m, found = self.by.system.mechanism, list(b)
        for link in m.tree.links:
            if link.joint.mimic is not None:
                continue
            q, v, x_v = ([of[i] for i in at] for of, at in self._own(link, y, x))
            pushed = [b[i] + g * r for i, r in zip(link.q_index, link.kind.rate(q, x_v), strict=True)]
            if type(link.kind).rate is not Kind.rate:
                pushed = _turned(link.kind, q, v, g).solve(pushed)
            for i, one in zip(link.q_index, pushed, strict=True):
                found[i] = one
        return found

    def _own(self, link: Link, y: Any, x: State) -> list[tuple[Any, Sequence[int]]]:
        """Return, for the q, v and x_v of a joint, the vector and the indices in it."""
        return [(y, link.q_index), (y, [self.nq + i for i in link.v_index]), (x, link.v_index)]


def _turned(kind: Kind, q: State, v: State, g: Scalar) -> Factors:
    """Factorise 1 - g dq'/dq of a joint whose rates depend on its coordinates."""
    n = len(q)
    columns = []
    for j in range(n):
        moved = kind.rate([Jet(a, 1.0 if i == j else 0.0) for i, a in enumerate(q)], v)
        columns.append([r.d if isinstance(r, Jet) else 0.0 for r in moved])
    return factored([[(1.0 if i == j else 0.0) - g * columns[j][i] for j in range(n)] for i in range(n)])


@dataclass(frozen=True)
class Mapped(Slopes):
    """The Jacobian operator at one state, as an integrator uses it."""

    maps: SlopeMaps
    t: Scalar
    y: State
    u: Sequence[Scalar]

    def implicit(self, g: Scalar) -> Solver:
        """Return a solver for (1 - `g` df/dy) x = b."""
        factors = self.call(self.maps.factors, g)
        return Solver(self, g, factors)

    def call(self, graph: Graph, g: Scalar, **more: Any) -> dict[str, Any]:
        """Call a `graph` at this state with the factor `g` and further arguments (`more`)."""
        return self.maps.by.call(graph, self.t, self.y, self.u, g=g, **more)


@dataclass(frozen=True)
class Solver:
    """Solver for (1 - g df/dy) x = b with a factorised matrix."""

    of: Mapped
    g: Scalar
    factors: dict[str, Any]

    def solve(self, b: Sequence[Scalar]) -> State:
        """Return x for the right side `b`."""
        maps, b = self.of.maps, list(b)
        right = self.of.call(maps.right, self.g, b=b)["r"]
        x = maps.solution.call(**self.factors, b=right)["x"]
        return list(self.of.call(maps.whole, self.g, b=b[: maps.nq], x=list(x))["x"])
