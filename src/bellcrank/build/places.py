"""Where the bodies of a recursion stand: their classes, the order in which they are gone through, and which elements of
the inputs are each body's own.

Coordinates are, by the mechanism; wrenches, by the frames that they act on; and constants that depend on free numbers
of the model, each of which there is once, however many bodies have it.
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
Own = Sequence[tuple[int, ...]]  # of every link, its elements of an input
SEEN, TURNED = 6, 18  # results of a frame: place and velocity; and angular velocity and axes
TAU = "tau"  # input of those that answer for coordinates
WRENCH, NUMBERS = "wrench", "numbers"  # inputs: of frames, [force, moment] each; and of constants that are free


@dataclass(frozen=True)
class Asked:
    """What bodies are told beside their states, and what they say. pushed: frames that wrenches act on. seen: frames
    that are constants of their bodies, and if turned how they are turned. of: what has results, `width` of each
    (dynamics/body_quantities.py). coupled: whether links must know which coordinates others have as well. shared:
    inputs that all bodies read, by their sizes.
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
    """groups: members and rows in the order of the places. numbers: what the elements of that input are. size: of the
    result. shared: what links have of coordinates of others.
    """

    groups: list[Alike]
    places: Places
    numbers: list[Scalar]
    size: int
    shared: Shared | None


def laid_out(tree: Tree, inputs: Sequence[str], asked: Asked) -> Laid:
    """Where frames are in their bodies are constants of these, and so is a gravity that is free of those that stand on
    the ground.
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
    """Of every link, the constants that it has of its frames, of gravity, and of how its body bends."""
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
    """Of every link, its elements of the result, and how many there are in all."""
    width = asked.width
    if asked.of == FRAMES:
        return _by_frames(tree, asked.seen, width), width * len(asked.seen)
    if asked.of == SUM:  # of each that stands on the ground
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
    """The coordinates that its joints have: of a path not all."""
    return sorted({k for link in tree.links for k in link.v_index})


def path(tree: Tree, frame: str) -> Tree:
    """As much of the tree as moves a frame."""
    body, R, p = tree.frames[frame]
    links = [replace(tree.links[i], parent=k - 1) for k, i in enumerate(reversed(tree.path(body)))]
    return replace(tree, links=tuple(links), frames={frame: (len(links) - 1, R, p)}, loops=(), springs=(), flexible=())


def _pose(tree: Tree, frame: str, turned: bool) -> list[Scalar]:
    _, R, p = tree.frames[frame]
    return [*p, *(x for row in R.rows for x in row)] if turned else [*p]


def _by_frames(tree: Tree, frames: Sequence[str], width: int) -> Own:
    """Of every link, its elements of what has so many of each frame."""
    return [tuple(width * k + e for k in mine for e in range(width)) for mine in _frames_on(tree, frames)]


def _frames_on(tree: Tree, frames: Sequence[str]) -> list[list[int]]:
    """Of every link, which of the frames it carries; those of the ground feel nothing."""
    found: list[list[int]] = [[] for _ in tree.links]
    for k, name in enumerate(frames):
        body = tree.frames[name][0]
        if body >= 0:
            found[body].append(k)
    return found


def _numbered(groups: Sequence[Alike], links: int, numbers: dict[Scalar, int]) -> Own:
    """Of every link, which of the numbers are its free constants; they are numbered as they come."""
    found: list[tuple[int, ...]] = [()] * links
    for g in groups:
        for i, row in zip(g.members.tolist(), g.free, strict=True) if g.numbers else ():
            found[i] = tuple(numbers.setdefault(x, len(numbers)) for x in row)
    return found


def _sorted(groups: Sequence[Alike], order: Array) -> list[Alike]:
    """The same classes with their members, and rows, in the order of the places."""
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
    rank[order], rank[n] = np.arange(n), -1  # the last for -1: the ground
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
    """A row for each, filled up with -1."""
    found = np.full((len(indices), max(1, *map(len, indices))), -1)
    for i, mine in enumerate(indices):
        found[i, : len(mine)] = mine
    return found
