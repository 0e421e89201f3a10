"""Forces of loops and springs on the bodies, in world axes.

The forces of a multiplier on both ends of a loop are dual to its row of C: they have the power that the row has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bellcrank.dynamics import springs
from bellcrank.dynamics.frame_pairs import common_body, frame_pair
from bellcrank.dynamics.loops.constraint_equations import loop_equations, rows_by_loop
from bellcrank.dynamics.loops.loop_equation import Equation
from bellcrank.dynamics.loops.rank import LoopRank
from bellcrank.dynamics.tree_sweeps import Vector, poses
from bellcrank.model.parts import Loop
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, ordered_sum, step
from bellcrank.spatial.vector import IDENTITY, ZERO, Force, Mat, Vec

Wrench = tuple[str, list[Scalar]]  # frame, and [force, moment] there


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
        f = R @ springs.tension_force(s, a, b)
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
