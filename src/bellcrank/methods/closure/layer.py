"""What closed loops make of the quantities of a tree: one layer on top of every method, and no case inside any.

A method knows trees. The loops' multipliers come from its own forward dynamics (forms.py), and what the loops then do
is wrenches on bodies and forces in joints, which every method understands.

    forward_dynamics        M a = Q + C^T lam, C a = -bias
    loop_forces             what lam is at each loop
    reactions, multipliers  the method's own, with the loops' and springs' forces as wrenches on the bodies
    inverse_dynamics        S u + C^T lam = M a + bias - passive: only some joints are driven (actuation.py)

All other quantities are those of the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bellcrank.methods import aba, crba
from bellcrank.methods.closure.forms import lagrange
from bellcrank.methods.closure.passed import joint_forces, loop_forces, wrenches
from bellcrank.methods.closure.rows import equations, names
from bellcrank.methods.state_space import Rows, solve
from bellcrank.methods.sweep import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, is_zero, step


class By(Protocol):
    """As much of a Method as is needed here."""

    @property
    def solves(self) -> tuple[str, ...]: ...

    def function(self, name: str) -> Callable[..., Any]: ...


@dataclass(frozen=True)
class Layer:
    by: By
    kept: tuple[int, ...]  # equations that say something new (analysis.py)
    active: tuple[int, ...] = ()  # elements of v that are driven

    def function(self, name: str) -> Callable[..., Any]:
        """The quantity of a mechanism with loops, by this method."""
        own: dict[str, Callable[..., Any]] = {
            "forward_dynamics": self.forward_dynamics,
            "inverse_dynamics": self.inverse_dynamics,
            "loop_forces": self.loop_forces,
            "reactions": lambda *given, **options: self._passed("reactions", *given, **options),
            "multipliers": lambda *given, **options: self._passed("multipliers", *given, **options),
        }
        return own[name] if name in own else self.by.function(name)

    def _lagrange(
        self, tree: Tree, q: Vector, v: Vector, tau: Vector, **options: object
    ) -> tuple[list[Scalar], list[Scalar]]:
        forward = (crba if tree.coupled else aba).forward_dynamics  # of methods that only know reactions
        if "forward_dynamics" in self.by.solves:
            forward = self.by.function("forward_dynamics")
        return lagrange(tree, forward, self.kept, q, v, tau, **options)

    def forward_dynamics(self, tree: Tree, q: Vector, v: Vector, tau: Vector, **options: object) -> list[Scalar]:
        return self._lagrange(tree, q, v, tau, **options)[0]

    def loop_forces(self, tree: Tree, q: Vector, v: Vector, tau: Vector, **options: object) -> list[list[Scalar]]:
        return loop_forces(tree, self.kept, self._lagrange(tree, q, v, tau, **options)[1], q)

    def _passed(
        self,
        name: str,
        tree: Tree,
        q: Vector,
        v: Vector,
        tau: Vector,
        frames: Sequence[str] = (),
        wrench: Wrenches = None,
    ) -> Any:
        """What passes through the joints of the tree, while loops and springs pull at its bodies."""
        options = {"frames": frames, "wrench": wrench} if frames else {}
        lam = self._lagrange(tree, q, v, tau, **options)[1] if self.kept else []
        more = wrenches(tree, self.kept, lam, q, v)
        step("tau + C^T lam")
        driven = [a + b for a, b in zip(tau, joint_forces(tree, self.kept, lam, q), strict=True)]
        given = [] if wrench is None else list(wrench)  # no `or`: nobody asks an array or a node for its truth
        every = [*frames, *(name for name, _ in more)], [*given, *(w for _, w in more)]
        return self.by.function(name)(replace(tree, loops=(), springs=()), q, v, driven, *every)

    def inverse_dynamics(self, tree: Tree, q: Vector, v: Vector, a: Vector, **options: object) -> list[Scalar]:
        """Forces in the driven joints, zero in the others, that go with accelerations which the loops allow.

        The joints that are not driven say what the loops must do: C_p^T lam = f_p, as many equations as unknowns, by
        C_p C_p^T because no order of pivots is good in all configurations.
        """
        f = list(self.by.function("inverse_dynamics")(tree, q, v, a, **options))
        every = equations(tree, q, [0.0] * tree.nv)
        rows = [every[k] for k in self.kept]
        idle = [{k: x for k, x in e.row.items() if k not in self.active} for e in rows]
        N: Rows = []
        right: list[Scalar] = []
        for i, mine in enumerate(idle):
            step("C C^T")
            N.append({})
            for j, other in enumerate(idle[: i + 1]):
                x = _inner(mine, other)
                if not is_zero(x):
                    N[i][j] = x
            right.append(_inner(mine, dict(enumerate(f))))
        every_name = names(tree)
        lam = solve(N, right, [every_name[k] for k in self.kept])
        step("u")
        out: list[Scalar] = [0.0] * tree.nv
        for k in self.active:
            out[k] = f[k]
            for x, e in zip(lam, rows, strict=True):
                if k in e.row:
                    out[k] = out[k] - e.row[k] * x
        return out


def _inner(a: dict[int, Scalar], b: dict[int, Scalar]) -> Scalar:
    total: Scalar = 0.0
    for k, x in a.items():
        if k in b:
            total = total + x * b[k]
    return total
