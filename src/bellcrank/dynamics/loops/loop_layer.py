"""Closed-loop layer: extend the methods for trees to mechanisms with loops.

A method computes the quantities of a tree. The loops' multipliers come from its own forward dynamics
(constrained_dynamics.py), and the effect of the loops is then a set of wrenches on bodies and forces in joints, which
every method accepts.

    forward_dynamics        M a = Q + C^T lam, C a = -bias
    loop_forces             the force and moment of lam at each loop
    reactions, multipliers  the method's own, with the loops' and springs' forces as wrenches on the bodies
    inverse_dynamics        S u + C^T lam = M a + bias - passive: only some joints are actuated (loop_requests.py)

All other quantities are those of the tree. The forces of a multiplier on both ends of a loop are dual to its row of C:
they have the power that the row has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bellcrank.dynamics import aba, crba
from bellcrank.dynamics.frame_pairs import Equation, common_body, frame_pair, tension_force
from bellcrank.dynamics.loops.constrained_dynamics import lagrange
from bellcrank.dynamics.loops.constraint_equations import loop_equations, rows_by_loop
from bellcrank.dynamics.loops.rank import LoopRank, solve_multipliers
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, poses
from bellcrank.model.parts import Loop
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, ordered_sum, sqrt, step, where
from bellcrank.spatial.vector import IDENTITY, ZERO, Force, Mat, Vec

# Smallest independent part of an equation: the relative error of results is 1e-16 over its square.
LEAST_CONDITIONING = 1e-6
Wrench = tuple[str, list[Scalar]]  # frame, and [force, moment] there


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
    return ordered_sum(x * b[k] for k, x in a.items() if k in b)


def loop_forces(tree: Tree, rank: LoopRank, lam: Vector, q: Vector) -> list[list[Scalar]]:
    """Return the [force, moment] that each loop transmits to its body b, the moment about frame b.

    A gear or rack drives the body of its second joint: along the joint's axes, the moment about the body's own frame.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    rank
        Rank of the loop equations.
    lam
        Multipliers.
    q
        Positions, nq elements.
    """
    out = []
    for loop, pairs in _by_loop(tree, rank, lam, q):
        step("loop force", loop.name)
        if loop.joints:
            out.append(_coordinate_force(tree, loop.joints[1], ordered_sum(x for _, x in pairs), q))
            continue
        out.append(_sum_in_world(common_axes(tree, loop.a, loop.b, q), [(e.force, x) for e, x in pairs]))
    return out


def _sum_in_world(R: Mat, terms: Sequence[tuple[tuple[Vec, Vec], Scalar]]) -> list[Scalar]:
    """Return the sum of forces and moments, each times a multiplier, in the axes to which R leads."""
    force, moment = ZERO, ZERO
    for (f, n), x in terms:
        force, moment = force + f * x, moment + n * x
    return [*(R @ force), *(R @ moment)]


def joint_forces(tree: Tree, rank: LoopRank, lam: Vector, q: Vector) -> list[Scalar]:
    """Return the generalised forces of gears and racks.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    rank
        Rank of the loop equations.
    lam
        Multipliers.
    q
        Positions, nq elements.
    """
    out: list[Scalar] = [0.0] * tree.nv
    for loop, pairs in _by_loop(tree, rank, lam, q):
        if loop.joints:
            step("gear", loop.name)
            for e, x in pairs:
                for k, y in e.row.items():
                    out[k] = out[k] + y * x
    return out


def loop_wrenches(tree: Tree, rank: LoopRank, lam: Vector, q: Vector, v: Vector) -> list[Wrench]:
    """Return the wrenches of loops and springs on bodies.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    rank
        Rank of the loop equations.
    lam
        Multipliers.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    frame_wrenches: list[Wrench] = []
    for loop, pairs in _by_loop(tree, rank, lam, q):
        if loop.joints:
            continue
        R = common_axes(tree, loop.a, loop.b, q)
        step("loop force", loop.name)
        frame_wrenches.append((loop.b, _sum_in_world(R, [(e.force, x) for e, x in pairs])))
        frame_wrenches.append((loop.a, _sum_in_world(R, [(e.back, x) for e, x in pairs])))
    for s in tree.springs:
        a, b = frame_pair(tree, s.a, s.b, q, v)
        R = common_axes(tree, s.a, s.b, q)
        step("spring", s.name)
        f = R @ tension_force(s, a, b)
        frame_wrenches += [(s.a, [*f, 0.0, 0.0, 0.0]), (s.b, [*(-f), 0.0, 0.0, 0.0])]
    return frame_wrenches


def _by_loop(
    tree: Tree, rank: LoopRank, lam: Vector, q: Vector
) -> Iterator[tuple[Loop, list[tuple[Equation, Scalar]]]]:
    """Yield each loop with its nontrivial equations and their multipliers."""
    all_equations, multiplier_of = loop_equations(tree, q, [0.0] * tree.nv), dict(zip(rank.rows, lam, strict=True))
    for loop, rows in rows_by_loop(tree):
        yield loop, [(all_equations[k], multiplier_of[k]) for k in rows if k in multiplier_of]


def common_axes(tree: Tree, a: str, b: str, q: Vector) -> Mat:
    """Return the rotation from the axes of a loop's equations to those of the world.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    a
        Name of the first frame.
    b
        Name of the second frame.
    q
        Positions, nq elements.
    """
    common = common_body(tree, a, b)
    if common < 0:
        return IDENTITY
    R_WF, _ = poses(tree, q)[common]
    return R_WF.times(tree.frames[tree.links[common].name][1])


def _coordinate_force(tree: Tree, joint: str, x: Scalar, q: Vector) -> list[Scalar]:
    """Return the force on the body of a joint due to a force x on the joint's coordinate."""
    i = next(k for k, link in enumerate(tree.links) if link.joint.name == joint)
    link, (R_WF, _) = tree.links[i], poses(tree, q)[i]
    working, _ = link.kind.forces(link.coordinates(q))
    f: Force = working[0] * x
    p: Vec = tree.frames[link.name][2]
    return [*(R_WF @ f.lin), *(R_WF @ (f.ang - p.cross(f.lin)))]
