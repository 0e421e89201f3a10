"""Transforms to one fixed frame, that of the first body.

M does not change when the whole mechanism is moved, and it does not depend on other bodies attached to the ground.
"""

from __future__ import annotations

from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import step
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec


def transforms(tree: Tree, q: Vector) -> list[Transform]:
    """Return the transforms of `tree` at positions `q` from every parent's frame to the child's."""
    result = []
    for link in tree.links:
        step("X", link.name)
        result.append(link.transform(q))
    return result


def fixed_frame(tree: Tree, q: Vector) -> tuple[list[Mat], list[Vec]]:
    """Return R(i) from body i's axes to the fixed ones, and P(i) from its parent's origin to its own, in fixed axes.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    """
    R: list[Mat] = []
    P: list[Vec] = []
    for link in tree.links:
        step("R", link.name)
        r, p = (IDENTITY, ZERO) if link.parent < 0 else link.transform(q).pose(R[link.parent], ZERO)
        R.append(r)
        P.append(p)
    return R, P


def subtrees(tree: Tree) -> list[list[int]]:
    """Return for every link of `tree` itself and its descendants, parents before children."""
    descendants = [[i] for i in range(len(tree.links))]
    for i in reversed(range(len(descendants))):
        if tree.links[i].parent >= 0:
            descendants[tree.links[i].parent] += descendants[i]
    return [sorted(links) for links in descendants]
