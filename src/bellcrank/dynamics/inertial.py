"""What the methods share that refer everything to the inertial frame: axes and inertias about its origin.

The inertial frame is the internal ground frame of the tree, not the user's world. The 6x6 inertia about its origin,
[[m 1, -m [x]], [m [x], J - m [x]^2]] for [linear, angular] (Wong 1991, 2.22), is kept as the ten numbers m, h = m x and
I = J - m [x]^2. These are linear in the body's own, so regrouped bodies will do.

    R_i, p_i  axes and origin of body i's frame       x_i, J_i  its centre of mass and central inertia
"""

from __future__ import annotations

from dataclasses import replace

from bellcrank.dynamics.sweep import Vector, poses
from bellcrank.model.tree import Tree
from bellcrank.scalar import step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import STILL, FullRotation, Shift
from bellcrank.spatial.vector import Mat, Motion, Vec

Poses = list[tuple[Mat, Vec]]


def inertial_poses(tree: Tree, q: Vector) -> Poses:
    return poses(replace(tree, ground=STILL), q)


def axes(tree: Tree, q: Vector, X: Poses) -> list[list[Motion]]:
    """Columns [z, p x z] of every joint, as a body there would move that fills all space."""
    found = []
    for link, (R, p) in zip(tree.links, X, strict=True):
        step("s", link.name)
        S = [s.turned(R) for s in link.subspace(q)]
        found.append([Motion(s.ang, s.lin + p.cross(s.ang)) for s in S])
    return found


def inertias(tree: Tree, X: Poses) -> list[Inertia]:
    found = []
    for link, (R, p) in zip(tree.links, X, strict=True):
        step("J", link.name)
        found.append(Shift(p).inertia(FullRotation(R).inertia(link.inertia)))
    return found
