"""Transforms to one fixed frame, that of the first body, body by body or by recursive doubling.

M does not change when the whole mechanism is moved, and it does not depend on other bodies attached to the ground.

Recursive doubling is that of A. Fijany 1989, the unnamed slides of the parallel algorithm, "For eta = 1 step 1 until
ceil(log2(n+1-i))". On a chain, the value of 2^eta neighbours is combined from two halves. On a tree the neighbours of a
body towards the ground are still a chain; away from it they are its descendants within that distance, and there are
many halves. The span of each function is the logarithm of the depth (times that of the branching).

    up[eta][j]   the body 2^eta joints below body j, or -1
    towards[j]   the neighbour of body j on the way to the reference body, or -1

The fixed frame is that of a reference body: the first one ("base"), or the one that is farthest from the ground
("end"), to which the slides refer everything; on a chain that is the last body. "body" leaves the equations of every
body in its own frame (body_frames.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from bellcrank.dynamics.ltl_factorisation import pairwise_sum
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.errors import check_known
from bellcrank.model.tree import Tree
from bellcrank.scalar import step
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec

Levels = Sequence[Sequence[int]]


def fixed_frame(tree: Tree, q: Vector, relative: bool = False) -> tuple[list[Mat], list[Vec]]:
    """Return R(i) from body i's axes to the fixed ones, and P(i) from its parent's origin to its own, in fixed axes.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    relative
        Use the axes of each body's parent instead of the fixed ones.
    """
    R: list[Mat] = []
    P: list[Vec] = []
    for link in tree.links:
        step("R", link.name)
        axes = IDENTITY if relative or link.parent < 0 else R[link.parent]
        r, p = (IDENTITY, ZERO) if link.parent < 0 else link.transform(q).pose(axes, ZERO)
        R.append(r)
        P.append(p)
    return R, P


def neighbours_towards(tree: Tree, projection: str) -> list[int]:
    """Return for every body of `tree` its neighbour on the way to the reference body of a `projection`, or -1."""
    check_known("frame of projection", projection, ("base", "end"))
    towards = [link.parent for link in tree.links]
    if projection == "base":
        return towards
    paths = [tree.path(i) for i in range(len(tree.links))]
    farthest: dict[int, list[int]] = {}
    for path in paths:
        if len(path) > len(farthest.get(path[-1], ())):
            farthest[path[-1]] = path
    for path in farthest.values():
        towards[path[0]] = -1
        for child, parent in pairwise(path):
            towards[parent] = child
    return towards


def subtrees(tree: Tree) -> list[list[int]]:
    """Return for every link of `tree` itself and its descendants, parents before children."""
    descendants = [[i] for i in range(len(tree.links))]
    for i in reversed(range(len(descendants))):
        if tree.links[i].parent >= 0:
            descendants[tree.links[i].parent] += descendants[i]
    return [sorted(links) for links in descendants]


def doubling_ancestors(tree: Tree) -> Levels:
    """Return the ancestors of every body of `tree` at distances 1, 2, 4, ..."""
    return doubled_neighbours([link.parent for link in tree.links])


def doubled_neighbours(level: Sequence[int]) -> Levels:
    """Return the bodies at distances 1, 2, 4, ... from every body; `level` has those at distance 1 (-1: none)."""
    up: list[Sequence[int]] = []
    while any(j >= 0 for j in level):
        up.append(level)
        level = [level[j] if j >= 0 else -1 for j in level]
    return up


def doubled_fixed_frame(
    tree: Tree, q: Vector, up: Levels, projection: str = "base"
) -> tuple[list[Mat], list[Vec], list[Vec]]:
    """Return rotations R, vectors P and positions p of all bodies in the fixed frame.

    R(j) leads from the axes of body j to the fixed ones, P(j) from its parent's origin to its own, and p(j) from the
    origin of the first body.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    up
        As `doubling_ancestors` returns it.
    projection
        Frame of projection: "base" or "end".
    """
    R, P = fixed_frame(tree, q, relative=True)
    towards = neighbours_towards(tree, projection)
    if projection != "base":
        R = _turned_towards(tree, R, towards)
    for eta, low in enumerate(doubled_neighbours(towards)):
        before = R
        R = []
        for j, link in enumerate(tree.links):
            step(f"R{eta}", link.name)
            R.append(before[j] if low[j] < 0 else before[low[j]].times(before[j]))
    for j, link in enumerate(tree.links):
        step("P", link.name)
        P[j] = P[j] if link.parent < 0 else R[link.parent] @ P[j]
    p_0 = P
    for eta, low in enumerate(up):
        shorter = p_0
        p_0 = []
        for j, link in enumerate(tree.links):
            step(f"P{eta}", link.name)
            p_0.append(shorter[j] if low[j] < 0 else shorter[low[j]] + shorter[j])
    return R, P, p_0


def _turned_towards(tree: Tree, R: Sequence[Mat], towards: Sequence[int]) -> list[Mat]:
    """Return the rotation from every body's axes to those of its next neighbour, from rotations R to parents."""
    turned = []
    for link, r, j in zip(tree.links, R, towards, strict=True):
        turned.append(IDENTITY if j < 0 else r if j == link.parent else R[j].T)
    return turned


def subtree_totals(
    tree: Tree,
    up: Levels,
    terms: Mapping[int, Any],
    what: str,
    pr: str,
    brought: Callable[[Any, int, int], Any] = lambda x, d, j: x,
) -> dict[int, Any]:
    """Return for every body the sum of the terms over its subtree, of those bodies that have one.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    up
        As `doubling_ancestors` returns it.
    terms
        Term of each body.
    what
        Label of the steps.
    pr
        Processor, for the label.
    brought
        `brought(x, d, j)` expresses the term x of body d in body j.
    """
    for eta, low in enumerate(up):
        parts: dict[int, list[Any]] = {j: [x] for j, x in terms.items()}
        for d, x in terms.items():
            if low[d] in parts:
                j = low[d]
                step(f"{what}{eta}{pr}", tree.links[j].name)
                parts[j].append(brought(x, d, j))
        terms = {}
        for j, some in parts.items():
            step(f"{what}{eta}{pr}", tree.links[j].name)
            terms[j] = pairwise_sum(some)
    return dict(terms)
