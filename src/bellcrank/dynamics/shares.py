"""Coordinates that several links have: of a joint and those that follow it, of a body that bends and its nodes.

Such a coordinate ends at the nearest link that carries all that have it. Below that it is open: what links hand to
their parents says what it does to them (body_shares.py). Each open coordinate has a slot, the same all the way; two
that meet in a link have different ones, so that there are as many slots as coordinates are open in one place, and not
as many as there are in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from bellcrank.dynamics.leaves import leaves, rebuilt
from bellcrank.model.bending import Bending
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar

MOST_OPEN = 16  # what is handed on grows with their square
CONSTANTS = ("stiffness", "damping", "A", "E", "I1", "I2", "C0", "C1", "M")  # of a body that bends


@dataclass(frozen=True)
class Share:
    """What one link has to do with coordinates of others. axes: of each axis of its joint the slot, -1 where nobody
    else has its coordinate. closes: whether that ends with the axis. modes: slots of those of its body. ends: slots of
    coordinates that end in its body, before its joint. open: slots that its parent hears of. slots: how many there are.
    """

    axes: tuple[int, ...]
    closes: tuple[bool, ...]
    modes: tuple[int, ...]
    ends: tuple[int, ...]
    open: tuple[int, ...]
    slots: int


@dataclass(frozen=True)
class Sharing(Link):
    """A link with what it shares, and what its body does that bends, in coordinates that stand behind its joint's."""

    share: Share
    bending: Bending | None


@dataclass(frozen=True)
class Shared:
    """Of every link: its share, its body where it bends, and in which order which elements of the mechanism's vectors
    are its own to read (of q and of v), and to answer for (of v), each of which is somebody's, once.
    """

    share: list[Share]
    bending: list[Bending | None]
    q: list[tuple[int, ...]]
    v: list[tuple[int, ...]]
    answers: list[tuple[int, ...]]


def constants(body: Bending | None) -> list[Scalar]:
    """Its numbers in a row."""
    return [] if body is None else list(leaves([getattr(body, x) for x in CONSTANTS]))


def localised(link: Link) -> Link:
    """The link in its own coordinates alone."""
    return replace(link, q_index=tuple(range(len(link.q_index))), v_index=tuple(range(len(link.v_index))))


def sharing(link: Link, share: Share, body: Bending | None, numbers: Sequence[Scalar]) -> Sharing:
    """A link with its share, and a body like this one with other numbers."""
    own = {f.name: getattr(link, f.name) for f in fields(Link)}
    if body is None:
        return Sharing(**own, share=share, bending=None)
    (q, v), n, given = (len(link.q_index), len(link.v_index)), len(body.v_index), iter(numbers)
    made: dict[str, Any] = {x: rebuilt(getattr(body, x), given) for x in CONSTANTS}
    local = replace(body, q_index=tuple(range(q, q + n)), v_index=tuple(range(v, v + n)))
    return Sharing(**own, share=share, bending=replace(local, **made))


def shared(tree: Tree) -> Shared | None:
    """None where a coordinate is open down to the ground, or too many are in one place."""
    bending: list[Bending | None] = [None] * len(tree.links)
    for body in tree.flexible:
        if body.link < 0 or bending[body.link] is not None:
            return None
        bending[body.link] = body
    where = _havers(tree, bending)
    depth: list[int] = []
    for link in tree.links:
        depth.append(depth[link.parent] + 1 if link.parent >= 0 else 0)
    ends = {k: _nearest(tree, links, depth) for k, links in where.items()}
    if -1 in ends.values():
        return None
    slots, open_ = _slots(tree, where, ends)
    if max(slots.values(), default=-1) >= MOST_OPEN:
        return None
    return _told(tree, bending, ends, slots, open_)


def _told(
    tree: Tree,
    bending: list[Bending | None],
    ends: dict[int, int],
    slots: dict[int, int],
    open_: Sequence[Sequence[int]],
) -> Shared:
    """The same, link by link."""
    ending: dict[int, list[int]] = {}
    for k, end in ends.items():
        ending.setdefault(end, []).append(k)
    found, count = Shared([], bending, [], [], []), max(slots.values(), default=-1) + 1

    def of(coordinates: Sequence[int]) -> tuple[int, ...]:
        return tuple(slots.get(k, -1) for k in coordinates)

    for i, link in enumerate(tree.links):
        body = bending[i]
        q, v = (body.q_index, body.v_index) if body else ((), ())
        closes = tuple(ends.get(k, i) == i for k in link.v_index)
        inside = [k for k in ending.get(i, ()) if k not in link.v_index]
        found.share.append(Share(of(link.v_index), closes, of(v), of(inside), tuple(sorted(of(open_[i]))), count))
        found.q.append((*link.q_index, *q))
        found.v.append((*link.v_index, *v))
        found.answers.append((*(k for k, own in zip(link.v_index, closes, strict=True) if own), *inside))
    return found


def _havers(tree: Tree, bending: list[Bending | None]) -> dict[int, list[int]]:
    """Of every coordinate that is not one link's joint's alone: the links that have it."""
    found: dict[int, list[int]] = {}
    for i, link in enumerate(tree.links):
        for k in link.v_index:
            found.setdefault(k, []).append(i)
    found = {k: links for k, links in found.items() if len(links) > 1 or _of_modes(tree, links[0])}
    for i, body in enumerate(bending):
        for k in body.v_index if body else ():
            found.setdefault(k, []).append(i)
    return found


def _of_modes(tree: Tree, i: int) -> bool:
    return tree.links[i].kind.name == "modal"


def _nearest(tree: Tree, links: Sequence[int], depth: Sequence[int]) -> int:
    """The last link that is, or carries, each of them; -1 if the ground is."""
    found = links[0]
    for other in links[1:]:
        while found != other and -1 not in (found, other):
            if depth[found] >= depth[other]:
                found = tree.links[found].parent
            else:
                other = tree.links[other].parent
        found = -1 if -1 in (found, other) else found
    return found


def _slots(tree: Tree, where: dict[int, list[int]], ends: dict[int, int]) -> tuple[dict[int, int], list[list[int]]]:
    """Slots of coordinates; and of every link, the coordinates that are open beyond it."""
    taken: list[set[int]] = [set() for _ in tree.links]
    open_: list[list[int]] = [[] for _ in tree.links]
    slots: dict[int, int] = {}
    for k in sorted(where, key=lambda k: (ends[k], k)):
        meets = {ends[k]}
        for i in where[k]:
            at = i
            while at != ends[k] and k not in open_[at]:
                open_[at].append(k)
                meets |= {at, tree.links[at].parent}
                at = tree.links[at].parent
        used = set().union(*(taken[i] for i in meets))
        slots[k] = next(s for s in range(len(used) + 1) if s not in used)
        for i in meets:
            taken[i].add(slots[k])
    return slots, open_
