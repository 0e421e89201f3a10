"""Tree terms for the equations of loops and springs, with rolled recursions for large trees.

The equations of loops need two terms from a method: the accelerations of the open tree, and for each loop equation the
accelerations caused by its constraint force, M^-1 C^T (dynamics/loops/constrained_dynamics.py). Each term is one pass
over the bodies, so the work grows with the number of bodies times the number of equations; where the tree is large, the
code of each pass exists once and is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from bellcrank.build.compile_time_forecast import EQUATION_PASSES
from bellcrank.build.policy import TREE_TERMS, Plan
from bellcrank.build.rolled_recursion import rolled_graph
from bellcrank.dynamics import Method, quantity, shape_of
from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.loops.loop_layer import LoopLayer, MethodInterface
from bellcrank.dynamics.loops.loop_requests import actuated_indices
from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.dynamics.quantities import Request
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.graph import Graph, Node
from bellcrank.model import Mechanism, Tree
from bellcrank.model.parts import EQUATIONS, Loop
from bellcrank.scalar import Scalar


def make_layer(mechanism: Mechanism, request: Request, plan: Plan) -> LoopLayer:
    """Return the layer for loops and springs on top of a method.

    Parameters
    ----------
    mechanism
        A mechanism with loops or springs.
    request
        The quantity and its options.
    plan
        The method for the open tree, and the form of its code.
    """
    driven = quantity(request.quantity).driven
    if not mechanism.loops:
        return LoopLayer(plan.method, LoopRank(), tuple(range(mechanism.nv)) if driven else ())
    loop_analysis = analysis(mechanism)
    return LoopLayer(
        plan.method if request.wrenches else tree_terms(mechanism, plan),
        loop_analysis.rank,
        actuated_indices(mechanism, loop_analysis, request.actuated) if driven else (),
    )


def tree_terms(mechanism: Mechanism, plan: Plan) -> MethodInterface:
    """Return the method of a `plan`, or where it rolls tree terms, an object that calls recursions of `mechanism`."""
    return TreeTerms(mechanism, plan.method) if plan.form == TREE_TERMS else plan.method


def moved_fractions(tree: Tree) -> list[float]:
    """Return for each loop of `tree` the fraction of all bodies that it can move.

    These are the bodies of the branches on the ground that hold the ends of the loop.
    """
    root_link, n = list[int](), len(tree.links)
    for i, link in enumerate(tree.links):
        root_link.append(root_link[link.parent] if link.parent >= 0 else i)
    size = Counter(root_link)

    def share(loop: Loop) -> float:
        ends = [tree.frames[end][0] for end in (loop.a, loop.b)] if not loop.joints else []
        return sum(size[r] for r in {root_link[i] for i in ends if i >= 0}) / n if ends else 1.0

    return [share(loop) for loop in tree.loops]


def count_passes(tree: Tree) -> float:
    """Return the work on `tree` in passes over its bodies: one, plus a share for each loop equation."""
    equations = (
        EQUATIONS.get(loop.kind, 1) * share for loop, share in zip(tree.loops, moved_fractions(tree), strict=True)
    )
    return 1.0 + EQUATION_PASSES * sum(equations)


@dataclass(frozen=True, eq=False)
class TreeTerms:
    """The functions of a Method that loop equations use, for one mechanism, as rolled recursions."""

    mechanism: Mechanism
    method: Method

    @property
    def solves(self) -> tuple[str, ...]:
        """Names of the quantities that the method computes directly."""
        return self.method.solves

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function for the quantity `name`."""
        return self.forward_dynamics if name == "forward_dynamics" else self.method.function(name)

    @property
    def tree(self) -> Tree:
        """The tree without loops and not regrouped, so that identical bodies stay identical."""
        return replace(self.mechanism.tree, loops=())

    @cached_property
    def forward_graph(self) -> Graph:
        """Graph of the forward dynamics of the open tree."""
        return self._rolled_graph("forward_dynamics", ("q", "v", "tau"))

    @cached_property
    def response_graph(self) -> Graph:
        """Graph of the accelerations caused by joint forces alone, M^-1 tau."""
        return self._rolled_graph("response", ("q", "tau"))

    def _rolled_graph(self, quantity: str, names: Sequence[str]) -> Graph:
        inputs = {name: shape_of(name, self.tree) for name in names}
        return rolled_graph(f"{self.mechanism.name}.{quantity}", self.tree, "aba", quantity, inputs)

    def forward_dynamics(self, tree: Tree, q: Vector, v: Vector, tau: Vector, **options: Any) -> list[Scalar]:
        """Return the accelerations of the tree under all forces that act on it.

        Where `v` is zero and there is no gravity (forms.bare), only the response to the forces is computed.

        Parameters
        ----------
        tree
            The tree, with or without gravity and springs.
        q, v, tau
            Joint positions, velocities and forces.
        options
            Further options of the method; with any of them the method itself is called.
        """
        if options:
            return list(self.method.function("forward_dynamics")(tree, q, v, tau, **options))
        if _is_zero(v) and not any(tree.gravity):
            return list(self.response_graph.call(q=list(q), tau=list(tau))["response"])
        return list(self.forward_graph.call(q=list(q), v=list(v), tau=list(tau))["forward_dynamics"])


def _is_zero(v: Vector) -> bool:
    return not any(isinstance(x, Node) or x != 0.0 for x in v)
