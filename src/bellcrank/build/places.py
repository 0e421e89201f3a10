"""Layout of a recursion: link classes, the order of the bodies, and each body's elements of the inputs.

Coordinates are assigned by the mechanism; wrenches, by the frames that they act on; constants that depend on free
parameters of the model exist once each, however many bodies use them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np

from bellcrank.dynamics.alike import Alike, Arrangement, arranged, classes
from bellcrank.dynamics.body_quantities import FRAMES, POSITIONS, SUM, VELOCITIES
from bellcrank.dynamics.quantities import POSITIONS as COORDINATES
from bellcrank.dynamics.shares import Shared, constants
from bellcrank.dynamics.shares import shared as shared_of
from bellcrank.graph.cells import RESULT
from bellcrank.graph.recursion import Run
from bellcrank.graph.recursion import Tree as Places
from bellcrank.model import Tree
from bellcrank.parameters import depends
from bellcrank.scalar import Scalar

Array = np.ndarray[Any, Any]
Own = Sequence[tuple[int, ...]]  # for each link, its elements of an input
SEEN, TURNED = 6, 18  # results of a frame: position and velocity; these with angular velocity and axes
TAU = "tau"  # input of the links that own coordinates
WRENCH, NUMBERS = "wrench", "numbers"  # inputs: [force, moment] on each frame, and the free constants


@dataclass(frozen=True)
class Asked:
    """Inputs and results of bodies besides their states.

    pushed: frames on which wrenches act. seen: frames whose poses are constants of their bodies, with rotation if
    `turned`. of: the owners of the results (dynamics/body_quantities.py), with `width` results each. coupled: whether
    links also need the coordinates that they share with others. shared: inputs that all bodies read, with their sizes.
    """

    pushed: Sequence[str] = ()
    seen: Sequence[str] = ()
    turned: bool = True
    of: str = VELOCITIES
    width: int = 1
    coupled: bool = False
    shared: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Laid:
    """The layout of a recursion.

    groups: classes, with members and rows in the order of the places. numbers: expressions of the free constants. size:
    of the result. shared: coordinates that links share with others.
    """

    groups: list[Alike]
    places: Places
    numbers: list[Scalar]
    size: int
    shared: Shared | None


def laid_out(tree: Tree, inputs: Sequence[str], asked: Asked) -> Laid:
    """Return the layout of a tree.

    Poses of frames in their bodies are constants of the bodies, and so is a free gravity for the bodies on the ground.

    Parameters
    ----------
    tree
        The tree.
    inputs
        Names of the inputs.
    asked
        Further inputs, and the results.
    """
    shared = shared_of(tree) if asked.coupled and tree.coupled else None
    groups = classes(tree, more=_told(tree, asked, shared), shares=shared.share if shared else None)
    arrangement = arranged(tree, groups)
    groups = _sorted(groups, arrangement.order)
    own: dict[str, Own] = {}
    for x in inputs:
        if x in asked.shared:
            own[x] = [tuple(range(asked.shared[x]))] * len(tree.links)
        elif x == WRENCH:
            own[x] = _by_frames(tree, asked.pushed, 6)
        elif shared:
            own[x] = shared.answers if x == TAU else shared.q if x in COORDINATES else shared.v
        else:
            own[x] = [link.q_index if x in COORDINATES else link.v_index for link in tree.links]
    own[RESULT], size = _results(tree, asked)
    if shared and asked.of == VELOCITIES:
        own[RESULT] = shared.answers
    numbers: dict[Scalar, int] = {}
    own[NUMBERS] = _numbered(groups, len(tree.links), numbers)
    return Laid(groups, _places(tree, groups, arrangement, own), list(numbers), size, shared)


def _told(tree: Tree, asked: Asked, shared: Shared | None) -> list[list[Scalar]] | None:
    """Return for each link its constants from frames, gravity and flexibility."""
    weighs = depends(tree.gravity)
    if not (asked.pushed or asked.seen or weighs or shared):
        return None
    found: list[list[Scalar]] = [[] for _ in tree.links]
    for names, turned in ((asked.pushed, False), (asked.seen, asked.turned)):
        for mine, row in zip(_frames_on(tree, names), found, strict=True):
            row += [x for k in mine for x in _pose(tree, names[k], turned)]
    for link, row in zip(tree.links, found, strict=True):
        row += [*tree.gravity] if weighs and link.parent < 0 else []
    for body, row in zip(shared.bending if shared else (), found, strict=False):
        row += constants(body)
    return found


def _results(tree: Tree, asked: Asked) -> tuple[Own, int]:
    """Return for each link its elements of the result, and the size of the result."""
    width = asked.width
    if asked.of == FRAMES:
        return _by_frames(tree, asked.seen, width), width * len(asked.seen)
    if asked.of == SUM:  # one sum for each branch on the ground
        counted = accumulate(link.parent < 0 for link in tree.links)
        mine = [(k - 1, link.parent < 0) for k, link in zip(counted, tree.links, strict=True)]
        own = [tuple(range(width * k, width * k + width)) if root else () for k, root in mine]
        return own, sum(map(len, own))
    if asked.of == POSITIONS:
        return [link.q_index for link in tree.links], tree.nq
    if asked.of == VELOCITIES:
        return [link.v_index for link in tree.links], tree.nv
    order = {k: i for i, k in enumerate(columns_of(tree))}
    n = len(order)
    return [tuple(e * n + order[k] for k in link.v_index for e in range(width)) for link in tree.links], width * n


def columns_of(tree: Tree) -> list[int]:
    """Return the coordinates of the joints of `tree`; a path has only some of those of the mechanism."""
    return sorted({k for link in tree.links for k in link.v_index})


def path(tree: Tree, frame: str) -> Tree:
    """Return the part of `tree` that moves `frame`."""
    body, R, p = tree.frames[frame]
    links = [replace(tree.links[i], parent=k - 1) for k, i in enumerate(reversed(tree.path(body)))]
    return replace(tree, links=tuple(links), frames={frame: (len(links) - 1, R, p)}, loops=(), springs=(), flexible=())


def _pose(tree: Tree, frame: str, turned: bool) -> list[Scalar]:
    _, R, p = tree.frames[frame]
    return [*p, *(x for row in R.rows for x in row)] if turned else [*p]


def _by_frames(tree: Tree, frames: Sequence[str], width: int) -> Own:
    """Return for each link its elements of an input or result with `width` elements for each frame."""
    return [tuple(width * k + e for k in mine for e in range(width)) for mine in _frames_on(tree, frames)]


def _frames_on(tree: Tree, frames: Sequence[str]) -> list[list[int]]:
    """Return for each link the frames that it carries; frames on the ground are left out."""
    found: list[list[int]] = [[] for _ in tree.links]
    for k, name in enumerate(frames):
        body = tree.frames[name][0]
        if body >= 0:
            found[body].append(k)
    return found


def _numbered(groups: Sequence[Alike], links: int, numbers: dict[Scalar, int]) -> Own:
    """Return for each link the indices of its free constants, which are numbered in order of appearance."""
    found: list[tuple[int, ...]] = [()] * links
    for g in groups:
        for i, row in zip(g.members.tolist(), g.free, strict=True) if g.numbers else ():
            found[i] = tuple(numbers.setdefault(x, len(numbers)) for x in row)
    return found


def _sorted(groups: Sequence[Alike], order: Array) -> list[Alike]:
    """Return the same classes with members, and rows, in the order of the places."""
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    found = []
    for g in groups:
        by = np.argsort(rank[g.members], kind="stable")
        found.append(replace(g, members=g.members[by], table=g.table[by], free=g.free[by]))
    return found


def _places(tree: Tree, groups: Sequence[Alike], arrangement: Arrangement, own: Mapping[str, Own]) -> Places:
    order, n = arrangement.order, len(arrangement.order)
    rank = np.empty(n + 1, int)
    rank[order], rank[n] = np.arange(n), -1  # the last entry is for -1, the ground
    parent = rank[np.array([tree.links[i].parent for i in order.tolist()])]
    count = np.zeros(n, int)
    children = np.full((n, max(1, int(np.bincount(parent[parent >= 0], minlength=1).max(initial=1)))), -1)
    for i, up in enumerate(parent.tolist()):
        if up >= 0:
            children[up, count[up]] = i
            count[up] += 1
    found = {x: elements([mine[i] for i in order.tolist()]) for x, mine in own.items()}
    of = np.empty(n, int)
    for k, g in enumerate(groups):
        of[rank[g.members]] = k
    done, made = [0] * len(groups), []
    for begin, end, period in arrangement.runs:
        cells, rows = of[begin : begin + period].tolist(), []
        for i, k in enumerate(cells):
            rows.append(done[k] + cells[:i].count(k))
        for k in cells:
            done[k] += (end - begin) // period
        made.append(Run(tuple(cells), begin, end, tuple(rows)))
    return Places(parent, children, found, tuple(made), arrangement.chained)


def elements(indices: Sequence[tuple[int, ...]]) -> Array:
    """Return `indices` as an array with one row each, padded with -1."""
    found = np.full((len(indices), max(1, *map(len, indices))), -1)
    for i, mine in enumerate(indices):
        found[i, : len(mine)] = mine
    return found
