"""What is on top of a method where there are loops or springs; and the tree beneath loops where it is large, whose
forward dynamics are recursions that are called.

Loops take two things from a method: accelerations without the loops, and for each equation of a loop what its force
does to the accelerations, M^-1 C^T (dynamics/loops/forms.py). Each is one pass over the bodies, so that the work grows
with the bodies times the equations; the code has each of them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from bellcrank.build.forecast import EQUATION
from bellcrank.build.rolling import as_shipped, rolled
from bellcrank.dynamics import Method, estimate, quantity, shape_of
from bellcrank.dynamics.alike import classes
from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.loops.actuation import actuated
from bellcrank.dynamics.loops.layer import Layer
from bellcrank.dynamics.loops.rank import Rank
from bellcrank.dynamics.requests import Request
from bellcrank.dynamics.sweep import Vector
from bellcrank.graph import Graph, Node
from bellcrank.model import Mechanism, Tree
from bellcrank.model.parts import EQUATIONS, Loop
from bellcrank.scalar import Scalar

# Operations, written out, from which on bodies share their code.
MOST_STRAIGHT = 100_000
ALIKE = 4  # bodies that a class has on average, where it pays
WASTE = 3.0  # times the operations of straight-line code, which leaves out all that an equation does not move


def layered(mechanism: Mechanism, request: Request, by: Method) -> Layer:
    """What answers where there are loops or springs: the layer on top of a method."""
    driven = quantity(request.quantity).driven
    if not mechanism.loops:
        return Layer(by, Rank(), tuple(range(mechanism.nv)) if driven else ())
    found = analysis(mechanism)
    terms = Beneath(mechanism, by) if rolls_beneath(mechanism, by) and not request.wrenches else by
    return Layer(terms, found.rank, actuated(mechanism, found, request.actuated) if driven else ())


def rolls_beneath(mechanism: Mechanism, by: Method) -> bool:
    """Whether the tree beneath loops is called as recursions."""
    tree = mechanism.tree
    plain = not (tree.coupled or tree.springs or tree.flexible or mechanism.parameters)
    if not (mechanism.loops and plain and by.name == "aba" and as_shipped(tree)):
        return False
    work, rows = estimate(by.name, "forward_dynamics", tree), analysis(mechanism).rank
    share = moved(tree)
    straight = work * (1.0 + sum(share[k] for k in rows.loop))
    worth = straight > MOST_STRAIGHT and work * (1 + len(rows.rows)) <= WASTE * straight
    return worth and ALIKE * len(classes(tree)) <= len(tree.links)


def moved(tree: Tree) -> list[float]:
    """Of every loop, the share of all bodies that it can move: those that hang on the ground where its ends do."""
    root, n = list[int](), len(tree.links)
    for i, link in enumerate(tree.links):
        root.append(root[link.parent] if link.parent >= 0 else i)
    size = Counter(root)

    def share(loop: Loop) -> float:
        ends = [tree.frames[end][0] for end in (loop.a, loop.b)] if not loop.joints else []
        return sum(size[r] for r in {root[i] for i in ends if i >= 0}) / n if ends else 1.0

    return [share(loop) for loop in tree.loops]


def passes(tree: Tree) -> float:
    """Through the bodies: one, and for every equation of a loop what its force takes."""
    equations = (EQUATIONS.get(loop.kind, 1) * share for loop, share in zip(tree.loops, moved(tree), strict=True))
    return 1.0 + EQUATION * sum(equations)


@dataclass(frozen=True, eq=False)
class Beneath:
    """As much of a Method as loops need, for one mechanism."""

    mechanism: Mechanism
    by: Method

    @property
    def solves(self) -> tuple[str, ...]:
        return self.by.solves

    def function(self, name: str) -> Callable[..., Any]:
        return self.forward_dynamics if name == "forward_dynamics" else self.by.function(name)

    @property
    def tree(self) -> Tree:
        """Bodies as they are, and nothing that closes: alike ones stay alike."""
        return replace(self.mechanism.tree, loops=())

    @cached_property
    def free(self) -> Graph:
        return self._rolled("forward_dynamics", ("q", "v", "tau"))

    @cached_property
    def response(self) -> Graph:
        return self._rolled("response", ("q", "tau"))

    def _rolled(self, quantity: str, names: Sequence[str]) -> Graph:
        inputs = {name: shape_of(name, self.tree) for name in names}
        return rolled(f"{self.mechanism.name}.{quantity}", self.tree, "aba", quantity, inputs)

    def forward_dynamics(self, tree: Tree, q: Vector, v: Vector, tau: Vector, **options: Any) -> list[Scalar]:
        """Of the tree with all that acts on it; or, where it is at rest without weight and springs (forms.bare), of the
        forces alone.
        """
        if options:
            return list(self.by.function("forward_dynamics")(tree, q, v, tau, **options))
        if _still(v) and not any(tree.gravity):
            return list(self.response.call(q=list(q), tau=list(tau))["response"])
        return list(self.free.call(q=list(q), v=list(v), tau=list(tau))["forward_dynamics"])


def _still(v: Vector) -> bool:
    return not any(isinstance(x, Node) or x != 0.0 for x in v)
