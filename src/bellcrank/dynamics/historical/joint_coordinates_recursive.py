"""Recursive joint-coordinate formulation: O(n) elimination from the leaves.

P. E. Nikravesh, G. Gim, A. Arabyan and U. Rein, 1989, sections 4 and 6. With B = G^-1 H the equations of
joint_coordinates.py are eliminated body by body from the leaves, after R. A. Wehage, Application of matrix partitioning
and recursive projection to O(n) solution of constraint equations of motion, 1988: a block LU factorisation.

Solves: forward_dynamics. Any tree without mimic joints; bodies may be flexible. Work O(n), span O(depth).

    G_j, H_j   v_j = G_j v_i + H_j theta_j'                  M_j   inertia of body j with its projected subtree
    gamma_j    G_j' v_i + H_j' theta_j' (free_bodies.py)     g_j   force on it, likewise

A flexible body moves as a rigid body of its present shape, in its modal coordinates, or in nodal ones, if its modes are
as many as the displacements of its nodes. A node has these coordinates in its H_j. They are free motions of the body
that are eliminated once all its nodes are known, before its joint; until then they are open, as in aba.py.

Differences from the paper: the paper prints only eqs 27-30, and no equations of flexible bodies; a joint with several
axes is eliminated one axis after the other. M_j and -g_j are the IA and pA of the elimination in aba.py, here at the
centres of mass, in common axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bellcrank.dynamics.aba import Subtree, add_modes, no_open_terms
from bellcrank.dynamics.flexible_layer import rigid_snapshot
from bellcrank.dynamics.historical.free_bodies import (
    PlacedBody,
    VelocityPropagation,
    applied_forces,
    from_common,
    place_bodies,
    propagate_velocities,
    to_common,
)
from bellcrank.dynamics.shared_coordinates import collect_shared_coordinates, with_carriers
from bellcrank.dynamics.tree_sweeps import LinkShare, Vector, Wrenches, right_hand_side, unshared
from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import articulated_inertia
from bellcrank.spatial.vector import NO_MOTION, ZERO, Acceleration, Force, Motion


@dataclass(frozen=True)
class SharedTree:
    """Links with their shares of shared coordinates, and their flexible bodies."""

    tree: Tree
    shares: list[LinkShare]
    flexible: list[FlexibleBody | None]
    answers: list[tuple[int, ...]]  # coordinates that end at each link, those of its joint first


def shared_tree(tree: Tree) -> SharedTree:
    """Return `tree` with the shares of its links; massless links are added where a flexible body needs its own."""
    if not tree.coupled:
        own = [link.v_index for link in tree.links]
        return SharedTree(tree, [unshared(len(v)) for v in own], [None] * len(own), own)
    carried, _ = with_carriers(tree)
    common = collect_shared_coordinates(carried, unlimited=True)
    assert common is not None, "every coordinate ends at a link"
    return SharedTree(carried, common.share, common.bending, common.answers)


@dataclass(frozen=True)
class PlacedTree:
    """Bodies of a tree in their present shape and motion, in common axes."""

    shared: SharedTree
    snapshot: Tree  # the same tree of rigid bodies in their present shape
    bodies: list[PlacedBody]
    propagation: list[VelocityPropagation]

    def newton_euler(self, j: int) -> Force:
        """Return the force that moves body `j` without acceleration of its centre."""
        return self.bodies[j].M.newton_euler(Acceleration(self.propagation[j].w, ZERO, ZERO))

    def add_modes(self, j: int, subtree: Subtree, q: Vector, v: Vector) -> None:
        """Add the modes of body `j` to its `subtree`, at positions `q` and velocities `v`."""
        modes, body, w = self.shared.flexible[j], self.bodies[j], self.propagation[j].w
        if modes is None:
            return
        m, none = body.frame_acceleration(w, NO_MOTION, self.snapshot.gravity), [0.0] * len(modes.v_index)
        add_modes(subtree, modes, self.shared.shares[j].modes, q, v, m, none, body.force)


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return the accelerations theta''.

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
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    shared = shared_tree(replace(rigid_snapshot(tree, q), flexible=tree.flexible))
    snapshot = replace(shared.tree, flexible=())
    bodies = place_bodies(snapshot, q, v, common=True)
    theta = to_common(snapshot, bodies, v)
    pushed = to_common(snapshot, bodies, right_hand_side(shared.tree, q, v, tau, [0.0] * tree.nv))
    placed = PlacedTree(shared, snapshot, bodies, propagate_velocities(snapshot, bodies, theta))
    subtrees = []
    for j, g in enumerate(applied_forces(snapshot, q, bodies, frames, wrench)):
        share = shared.shares[j]
        step("g", snapshot.links[j].name)
        own = placed.newton_euler(j) - g  # 4
        subtrees.append(Subtree(articulated_inertia(bodies[j].M), own, no_open_terms(share.slots), range(share.slots)))
        placed.add_modes(j, subtrees[j], q, v)
    _eliminate(placed, subtrees, pushed)
    return from_common(
        snapshot, bodies, [motion.w for motion in placed.propagation], theta, _accelerations(placed, subtrees)
    )


def _eliminate(placed: PlacedTree, subtrees: list[Subtree], pushed: Vector) -> None:
    """Eliminate the modes and the joint of each body, and add what remains to its parent, from the leaves."""
    shared, links = placed.shared, placed.snapshot.links
    for j, link in reversed(list(enumerate(links))):
        subtree, share = subtrees[j], shared.shares[j]
        ends = list(zip(share.ends, shared.answers[j][sum(share.closes) :], strict=True))
        for slot, k in reversed(ends):
            subtree.open_terms.u[slot] = subtree.open_terms.u[slot] + pushed[k]
            subtree.eliminate(slot)
        driven = [pushed[k] if closes else 0.0 for k, closes in zip(link.v_index, share.closes, strict=True)]
        subtree.release_joint(link, share, placed.bodies[j].H, driven)
        if link.parent >= 0:
            up, by = subtrees[link.parent], placed.propagation[j]
            M, g, open_terms = subtree.in_parent_frame(link, by.G, by.gamma)
            step("M", links[link.parent].name)
            up.IA, up.pA, up.open_terms = up.IA + M, up.pA + g, up.open_terms + open_terms  # 29


def _accelerations(placed: PlacedTree, subtrees: Sequence[Subtree]) -> list[Scalar]:
    """Return theta'' of every coordinate, from the root."""
    shared, theta, dv = placed.shared, dict[int, Scalar](), list[tuple[Motion, list[Scalar]]]()
    for j, (link, share) in enumerate(zip(placed.snapshot.links, shared.shares, strict=True)):
        by, (up, opened) = (
            placed.propagation[j],
            dv[link.parent] if link.parent >= 0 else (NO_MOTION, [0.0] * share.slots),
        )
        step("theta''", link.name)
        A, a = by.G.motion(up) + by.gamma, [x if k in share.open else 0.0 for k, x in enumerate(opened)]  # 28, derived
        for forward_step in reversed(subtrees[j].forward_steps):
            A = forward_step(A, a)
        dv.append((A, a))
        joint = [subtrees[j].axis_accelerations[i] if k < 0 else a[k] for i, k in enumerate(share.axes)]
        ending = [x for x, closes in zip(joint, share.closes, strict=True) if closes] + [a[k] for k in share.ends]
        theta |= zip(shared.answers[j], ending, strict=True)
    return [theta[k] for k in range(len(theta))]
