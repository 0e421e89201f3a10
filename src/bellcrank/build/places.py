"""Where the bodies of a recursion stand: their classes, the order in which they are gone through, and which elements of
the inputs are each body's own.

Coordinates are, by the mechanism; wrenches, by the frames that they act on; and constants that depend on free numbers
of the model, each of which there is once, however many bodies have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.dynamics.alike import Alike, Arrangement, arranged, classes
from bellcrank.dynamics.quantities import POSITIONS
from bellcrank.graph.cells import RESULT
from bellcrank.graph.recursion import Run
from bellcrank.graph.recursion import Tree as Places
from bellcrank.model import Tree
from bellcrank.scalar import Scalar

Array = np.ndarray[Any, Any]
Own = Sequence[tuple[int, ...]]  # of every link, its elements of an input
SEEN, TURNED = 6, 18  # results of a frame: place and velocity; and angular velocity and axes
WRENCH, NUMBERS = "wrench", "numbers"  # inputs: of frames, [force, moment] each; and of constants that are free


@dataclass(frozen=True)
class Laid:
    """groups: members and rows in the order of the places. numbers: what the elements of that input are."""

    groups: list[Alike]
    places: Places
    numbers: list[Scalar]


def laid_out(tree: Tree, inputs: Sequence[str], frames: Sequence[str] = (), results: int = 0) -> Laid:
    """frames: what the wrenches act on, or else what has so many results each, and coordinates none. Where a frame is
    are constants of its body, and with more than SEEN results how it is turned.
    """
    on = _frames_on(tree, frames)
    told = [_pose(tree, name, results > SEEN) for name in frames]
    groups = classes(tree, more=[[x for k in mine for x in told[k]] for mine in on] if frames else None)
    arrangement = arranged(tree, groups)
    groups = _sorted(groups, arrangement.order)
    own: dict[str, Own] = {
        x: [link.q_index if x in POSITIONS else link.v_index for link in tree.links] for x in (*inputs, RESULT)
    }
    if frames:
        width = results or 6
        mine_of = [tuple(width * k + e for k in mine for e in range(width)) for mine in on]
        own[RESULT if results else WRENCH] = mine_of
    numbers: dict[Scalar, int] = {}
    own[NUMBERS] = _numbered(groups, len(tree.links), numbers)
    return Laid(groups, _places(tree, groups, arrangement, own), list(numbers))


def _pose(tree: Tree, frame: str, turned: bool) -> list[Scalar]:
    _, R, p = tree.frames[frame]
    return [*p, *(x for row in R.rows for x in row)] if turned else [*p]


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
