"""Joint axes and body inertias about the origin of the inertial frame.

Shared by the methods that refer everything to the inertial frame, which is the internal ground frame of the tree, not
the user's world. The 6x6 inertia about its origin, [[m 1, -m [x]], [m [x], J - m [x]^2]] for [linear, angular] (Wong
1991, 2.22), is stored as the ten numbers m, h = m x and I = J - m [x]^2. These are linear in the body's own, so
regrouped inertias are possible.

    R_i, p_i  axes and origin of body i's frame       x_i, J_i  its centre of mass and central inertia
"""

from __future__ import annotations

from dataclasses import replace

from bellcrank.dynamics.tree_sweeps import Vector, poses
from bellcrank.model.tree import Tree
from bellcrank.scalar import step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import IDENTITY_TRANSFORM, FullRotation, Shift
from bellcrank.spatial.vector import Mat, Motion, Vec

Poses = list[tuple[Mat, Vec]]


def inertial_poses(tree: Tree, q: Vector) -> Poses:
    """Return the pose of every body of `tree` at positions `q` in the inertial frame."""
    return poses(replace(tree, ground=IDENTITY_TRANSFORM), q)


def inertial_axes(tree: Tree, q: Vector, X: Poses) -> list[list[Motion]]:
    """Return the columns [z, p x z] of every joint: motions of the body's point at the origin.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    X
        Poses of the bodies.
    """
    joint_axes = []
    for link, (R, p) in zip(tree.links, X, strict=True):
        step("s", link.name)
        S = [s.rotated(R) for s in link.subspace(q)]
        joint_axes.append([Motion(s.ang, s.lin + p.cross(s.ang)) for s in S])
    return joint_axes


def inertial_inertias(tree: Tree, X: Poses) -> list[Inertia]:
    """Return the inertia of every body of `tree` with poses `X` about the origin."""
    inertias = []
    for link, (R, p) in zip(tree.links, X, strict=True):
        step("J", link.name)
        inertias.append(Shift(p).inertia(FullRotation(R).inertia(link.inertia)))
    return inertias
