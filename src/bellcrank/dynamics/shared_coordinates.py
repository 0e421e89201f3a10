"""Shared coordinates: those of a joint and its mimic joints, and those of a flexible body and its nodes.

Such a coordinate ends at the nearest link that carries all links that have it. Beyond that link it is open: the values
that links hand to their parents include its effect (shared_aba_rnea.py). Each open coordinate has one slot along
its whole path; two that meet in a link have different slots, so that the number of slots is that of the coordinates
open at one place, not of all coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from bellcrank.dynamics.flatten import flatten, unflatten
from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar

MAX_OPEN_SLOTS = 16  # the values that are sent grow with the square of this number
MODAL_CONSTANTS = ("stiffness", "damping", "A", "E", "I1", "I2", "C0", "C1", "M")  # attributes of a flexible body


@dataclass(frozen=True)
class LinkShare:
    """Relations of one link to shared coordinates.

    axes has the slot of each axis of its joint, -1 if its coordinate is not shared; closes tells if the coordinate ends
    with the axis. modes are the slots of the modes of its body; ends those of coordinates that end in its body, before
    its joint; open those that are sent to its parent. slots is the number of slots.
    """

    axes: tuple[int, ...]
    closes: tuple[bool, ...]
    modes: tuple[int, ...]
    ends: tuple[int, ...]
    open: tuple[int, ...]
    slots: int


@dataclass(frozen=True)
class SharingLink(Link):
    """A link with its share, and the modes of its body, whose coordinates follow those of its joint."""

    share: LinkShare
    bending: FlexibleBody | None


@dataclass(frozen=True)
class SharedCoordinates:
    """Shares of all links.

    For every link: its share, its body if flexible, the elements of q and v that it reads, and the elements of v for
    which it returns results; each element of v is returned by one link.
    """

    share: list[LinkShare]
    bending: list[FlexibleBody | None]
    q: list[tuple[int, ...]]
    v: list[tuple[int, ...]]
    answers: list[tuple[int, ...]]


def modal_constants(body: FlexibleBody | None) -> list[Scalar]:
    """Return the numbers of the flexible body `body` in a row."""
    return [] if body is None else list(flatten([getattr(body, x) for x in MODAL_CONSTANTS]))


def localise(link: Link) -> Link:
    """Return `link` with its own coordinates only."""
    return replace(link, q_index=tuple(range(len(link.q_index))), v_index=tuple(range(len(link.v_index))))


def sharing_link(link: Link, share: LinkShare, body: FlexibleBody | None, numbers: Sequence[Scalar]) -> SharingLink:
    """Return the link with its share, and with a flexible body like `body` but with other numbers.

    Parameters
    ----------
    link
        Joint and its body.
    share
        Share of the link.
    body
        Flexible body, or None.
    numbers
        Its constants, as `modal_constants` returns them.
    """
    link_fields = {f.name: getattr(link, f.name) for f in fields(Link)}
    if body is None:
        return SharingLink(**link_fields, share=share, bending=None)
    (q, v), n, number_iterator = (len(link.q_index), len(link.v_index)), len(body.v_index), iter(numbers)
    local_constants: dict[str, Any] = {x: unflatten(getattr(body, x), number_iterator) for x in MODAL_CONSTANTS}
    local = replace(body, q_index=tuple(range(q, q + n)), v_index=tuple(range(v, v + n)))
    return SharingLink(**link_fields, share=share, bending=replace(local, **local_constants))


def collect_shared_coordinates(tree: Tree) -> SharedCoordinates | None:
    """Return the shares of `tree`; None if a coordinate is open at the ground, or too many are open at one place."""
    bending: list[FlexibleBody | None] = [None] * len(tree.links)
    for body in tree.flexible:
        if body.link < 0 or bending[body.link] is not None:
            return None
        bending[body.link] = body
    links_of_coordinate = _links_by_coordinate(tree, bending)
    depth: list[int] = []
    for link in tree.links:
        depth.append(depth[link.parent] + 1 if link.parent >= 0 else 0)
    ends = {k: _common_ancestor(tree, links, depth) for k, links in links_of_coordinate.items()}
    if -1 in ends.values():
        return None
    slots, open_ = _assign_slots(tree, links_of_coordinate, ends)
    if max(slots.values(), default=-1) >= MAX_OPEN_SLOTS:
        return None
    return _collect_shares(tree, bending, ends, slots, open_)


def _collect_shares(
    tree: Tree,
    bending: list[FlexibleBody | None],
    ends: dict[int, int],
    slots: dict[int, int],
    open_: Sequence[Sequence[int]],
) -> SharedCoordinates:
    """Collect the shares link by link."""
    ending: dict[int, list[int]] = {}
    for k, end in ends.items():
        ending.setdefault(end, []).append(k)
    result, count = SharedCoordinates([], bending, [], [], []), max(slots.values(), default=-1) + 1

    def of(coordinates: Sequence[int]) -> tuple[int, ...]:
        return tuple(slots.get(k, -1) for k in coordinates)

    for i, link in enumerate(tree.links):
        body = bending[i]
        q, v = (body.q_index, body.v_index) if body else ((), ())
        closes = tuple(ends.get(k, i) == i for k in link.v_index)
        ends_inside = [k for k in ending.get(i, ()) if k not in link.v_index]
        result.share.append(
            LinkShare(of(link.v_index), closes, of(v), of(ends_inside), tuple(sorted(of(open_[i]))), count)
        )
        result.q.append((*link.q_index, *q))
        result.v.append((*link.v_index, *v))
        result.answers.append(
            (*(k for k, closes_here in zip(link.v_index, closes, strict=True) if closes_here), *ends_inside)
        )
    return result


def _links_by_coordinate(tree: Tree, bending: list[FlexibleBody | None]) -> dict[int, list[int]]:
    """Return the links that have each shared coordinate."""
    links_with: dict[int, list[int]] = {}
    for i, link in enumerate(tree.links):
        for k in link.v_index:
            links_with.setdefault(k, []).append(i)
    links_with = {k: links for k, links in links_with.items() if len(links) > 1 or _is_node(tree, links[0])}
    for i, body in enumerate(bending):
        for k in body.v_index if body else ():
            links_with.setdefault(k, []).append(i)
    return links_with


def _is_node(tree: Tree, i: int) -> bool:
    return tree.links[i].kind.name == "modal"


def _common_ancestor(tree: Tree, links: Sequence[int], depth: Sequence[int]) -> int:
    """Return the last link that is or carries each of `links`; -1 if that is the ground."""
    ancestor = links[0]
    for other in links[1:]:
        while ancestor != other and -1 not in (ancestor, other):
            if depth[ancestor] >= depth[other]:
                ancestor = tree.links[ancestor].parent
            else:
                other = tree.links[other].parent
        ancestor = -1 if -1 in (ancestor, other) else ancestor
    return ancestor


def _assign_slots(
    tree: Tree, links_of_coordinate: dict[int, list[int]], ends: dict[int, int]
) -> tuple[dict[int, int], list[list[int]]]:
    """Return the slot of each coordinate, and the coordinates that are open at each link."""
    used_slots: list[set[int]] = [set() for _ in tree.links]
    open_: list[list[int]] = [[] for _ in tree.links]
    slots: dict[int, int] = {}
    for k in sorted(links_of_coordinate, key=lambda k: (ends[k], k)):
        meets = {ends[k]}
        for i in links_of_coordinate[k]:
            link_index = i
            while link_index != ends[k] and k not in open_[link_index]:
                open_[link_index].append(k)
                meets |= {link_index, tree.links[link_index].parent}
                link_index = tree.links[link_index].parent
        used = set().union(*(used_slots[i] for i in meets))
        slots[k] = next(s for s in range(len(used) + 1) if s not in used)
        for i in meets:
            used_slots[i].add(slots[k])
    return slots, open_
