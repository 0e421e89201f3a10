"""Closed-loop layer: extend the methods for trees to mechanisms with loops.

A method computes the quantities of a tree. The loops' multipliers come from its own forward dynamics
(constrained_dynamics.py), and the effect of the loops is then a set of wrenches on bodies and forces in joints, which
every method accepts.

    forward_dynamics        M a = Q + C^T lam, C a = -bias
    loop_forces             the force and moment of lam at each loop
    reactions, multipliers  the method's own, with the loops' and springs' forces as wrenches on the bodies
    inverse_dynamics        S u + C^T lam = M a + bias - passive: only some joints are actuated (actuation.py)

All other quantities are those of the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bellcrank.dynamics import aba, crba
from bellcrank.dynamics.loops.constrained_dynamics import lagrange
from bellcrank.dynamics.loops.constraint_equations import loop_equations
from bellcrank.dynamics.loops.loop_loads import joint_forces, loop_forces, loop_wrenches
from bellcrank.dynamics.loops.rank import LoopRank, solve_multipliers
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, sqrt, step, where

# Smallest independent part of an equation: the relative error of results is 1e-16 over its square.
LEAST_CONDITIONING = 1e-6


class MethodInterface(Protocol):
    """Part of the interface of a Method that is needed here."""

    @property
    def solves(self) -> tuple[str, ...]:
        """Return the names of the quantities that the method solves."""

    def function(self, name: str) -> Callable[..., Any]:
        """Return the method's function called `name`."""


@dataclass(frozen=True)
class LoopLayer:
    """A method, extended to mechanisms with loops."""

    method: MethodInterface
    rank: LoopRank  # rank of the loop equations (equation_analysis.py)
    active: tuple[int, ...] = ()  # actuated elements of v

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function of the quantity `name` for mechanisms with loops."""
        layered: dict[str, Callable[..., Any]] = {
            "forward_dynamics": self.forward_dynamics,
            "inverse_dynamics": self.inverse_dynamics,
            "loop_forces": self.loop_forces,
            "reactions": lambda *given, **options: self._joint_quantity("reactions", *given, **options),
            "multipliers": lambda *given, **options: self._joint_quantity("multipliers", *given, **options),
        }
        return layered[name] if name in layered else self.method.function(name)

    def _lagrange(
        self, tree: Tree, q: Vector, v: Vector, tau: Vector, **options: object
    ) -> tuple[list[Scalar], list[Scalar]]:
        forward = (crba if tree.coupled else aba).forward_dynamics  # for methods that only compute reactions
        if "forward_dynamics" in self.method.solves:
            forward = self.method.function("forward_dynamics")
        a, lam = lagrange(tree, forward, self.rank, q, v, tau, **options)
        return _nan_if_singular(a, lam.conditioning), _nan_if_singular(lam.values, lam.conditioning)

    def forward_dynamics(self, tree: Tree, q: Vector, v: Vector, tau: Vector, **options: object) -> list[Scalar]:
        """Return the accelerations.

        Parameters
        ----------
        tree
            Kinematic tree of the mechanism.
        q
            Positions, nq elements.
        v
            Velocities, nv elements.
        tau
            Joint forces and moments, nv elements.
        options
            External wrenches.
        """
        return self._lagrange(tree, q, v, tau, **options)[0]

    def loop_forces(self, tree: Tree, q: Vector, v: Vector, tau: Vector, **options: object) -> list[list[Scalar]]:
        """Return the [force, moment] that each loop joint transmits to its second body.

        Parameters
        ----------
        tree
            Kinematic tree of the mechanism.
        q
            Positions, nq elements.
        v
            Velocities, nv elements.
        tau
            Joint forces and moments, nv elements.
        options
            External wrenches.
        """
        return loop_forces(tree, self.rank, self._lagrange(tree, q, v, tau, **options)[1], q)

    def _joint_quantity(
        self,
        name: str,
        tree: Tree,
        q: Vector,
        v: Vector,
        tau: Vector,
        frames: Sequence[str] = (),
        wrench: Wrenches = None,
    ) -> Any:
        """Return a quantity of the joints of the tree, with the forces of loops and springs on its bodies."""
        options = {"frames": frames, "wrench": wrench} if frames else {}
        lam = self._lagrange(tree, q, v, tau, **options)[1] if self.rank.rows else []
        more = loop_wrenches(tree, self.rank, lam, q, v)
        step("tau + C^T lam")
        driven = [a + b for a, b in zip(tau, joint_forces(tree, self.rank, lam, q), strict=True)]
        given = [] if wrench is None else list(wrench)  # not `or`: arrays and graph nodes have no truth value
        every = [*frames, *(name for name, _ in more)], [*given, *(w for _, w in more)]
        return self.method.function(name)(replace(tree, loops=(), springs=()), q, v, driven, *every)

    def inverse_dynamics(self, tree: Tree, q: Vector, v: Vector, a: Vector, **options: object) -> list[Scalar]:
        """Return forces in the actuated joints, zero in the others, for accelerations that the loops allow.

        The passive joints determine the loop forces: C_p^T lam = f_p. Of all solutions the smallest is used, from C_p
        C_p^T, because no order of pivots is good in all configurations.

        Parameters
        ----------
        tree
            Kinematic tree of the mechanism.
        q
            Positions, nq elements.
        v
            Velocities, nv elements.
        a
            Accelerations, nv elements.
        options
            External wrenches.
        """
        f = list(self.method.function("inverse_dynamics")(tree, q, v, a, **options))
        rows = self.rank.select(loop_equations(tree, q, [0.0] * tree.nv))
        idle = [{k: x for k, x in e.row.items() if k not in self.active} for e in rows]
        step("C C^T")
        size = [x * x for x in self.rank.natural(tree.nv)]
        sized = [{k: x if size[k] == 1.0 else x * size[k] for k, x in row.items()} for row in idle]
        rank = replace(self.rank, usual_conditioning=self.rank.usual_pivot)

        def product(i: int, j: int) -> Scalar:
            return _sparse_inner(idle[i], sized[j])

        solution = solve_multipliers(rank, product, [_sparse_inner(row, dict(enumerate(f))) for row in sized])
        lam = solution.values
        for _ in range(rank.refinements):
            step("refinement")
            left = dict(enumerate(f))
            for x, row in zip(lam, idle, strict=True):
                left |= {k: left[k] - e * x for k, e in row.items()}
            more = solve_multipliers(rank, product, [_sparse_inner(row, left) for row in sized]).values
            lam = [x + y for x, y in zip(lam, more, strict=True)]
        lam = _nan_if_singular(lam, solution.conditioning)
        step("u")
        out: list[Scalar] = [0.0] * tree.nv
        for k in self.active:
            out[k] = f[k]
            for x, e in zip(lam, rows, strict=True):
                if k in e.row:
                    out[k] = out[k] - e.row[k] * x
        return out


def _nan_if_singular(x: Sequence[Scalar], conditioning: Scalar) -> list[Scalar]:
    """Return NaN where the configuration is singular, or so near that rounding errors dominate.

    This is a factor of one, not an added zero: the derivative of a product keeps it.
    """
    step("trusted")
    factor = sqrt(where(conditioning > LEAST_CONDITIONING, 1.0, -1.0))
    return [y * factor for y in x]


def _sparse_inner(a: dict[int, Scalar], b: dict[int, Scalar]) -> Scalar:
    total: Scalar = 0.0
    for k, x in a.items():
        if k in b:
            total = total + x * b[k]
    return total
