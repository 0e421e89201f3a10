"""Shared coordinates: those of a joint and its mimic joints, and those of a flexible body and its nodes.

Such a coordinate ends at the nearest link that carries all links that have it. Beyond that link it is open: the values
that links hand to their parents include its effect (aba.py, rnea.py). Each open coordinate has one slot along
its whole path; two that meet in a link have different slots, so that the number of slots is that of the coordinates
open at one place, not of all coordinates.

Nested structures (vectors, matrices, dataclasses) are flattened into numbers, so that bodies with other numbers can
share one equation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from bellcrank.dynamics.frame_pairs import last_carrier
from bellcrank.dynamics.tree_sweeps import LinkShare, LocalLink, SharingLink, localise
from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.model.kind import Fixed
from bellcrank.model.parts import Joint
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import NO_INERTIA
from bellcrank.spatial.moves import IDENTITY_TRANSFORM

MAX_OPEN_SLOTS = 16  # the values that are sent grow with the square of this number
MODAL_CONSTANTS = ("stiffness", "damping", "A", "E", "I1", "I2", "C0", "C1", "M")  # attributes of a flexible body
CARRIER = Link("ground", -1, Joint("ground", "fixed", "", ""), Fixed(), IDENTITY_TRANSFORM, NO_INERTIA, (), ())


def flatten(thing: Any) -> Iterator[Any]:
    """Yield the numbers in the structure `thing`, always in the same order; strings and None are skipped."""
    if is_dataclass(thing):
        for f in fields(thing):
            yield from flatten(getattr(thing, f.name))
    elif isinstance(thing, tuple | list):
        for x in thing:
            yield from flatten(x)
    elif not (thing is None or isinstance(thing, str)):
        yield thing


def unflatten(thing: Any, numbers: Iterator[Any]) -> Any:
    """Return a structure like `thing` with other `numbers`."""
    if is_dataclass(thing):
        return type(thing)(*(unflatten(getattr(thing, f.name), numbers) for f in fields(thing)))  # type: ignore[misc]
    if isinstance(thing, tuple | list):
        return type(thing)(unflatten(x, numbers) for x in thing)
    return thing if thing is None or isinstance(thing, str) else next(numbers)


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


def with_carriers(tree: Tree) -> tuple[Tree, list[int]]:
    """Return a tree where every shared coordinate ends at a link, and the index of each link of `tree` in it.

    A massless link on the ground carries all others, and each link has one flexible body at most: a further one has a
    massless link of its own.
    """
    links, flexible, nodes_on = [CARRIER], list[FlexibleBody](), dict[tuple[int, ...], int]()
    places = {-1: 0}
    for i in range(-1, len(tree.links)):
        if i >= 0:
            link, places[i] = tree.links[i], len(links)
            links.append(replace(link, parent=nodes_on.get(link.v_index, places[link.parent])))
        for n, body in enumerate(body for body in tree.flexible if body.link == i):
            if n:
                links.append(replace(CARRIER, parent=places[i]))
            nodes_on[body.v_index] = len(links) - 1
            flexible.append(replace(body, link=len(links) - 1))
    frames = {name: (places[i] if i >= 0 else -1, R, p) for name, (i, R, p) in tree.frames.items()}
    carried = replace(tree, links=tuple(links), flexible=tuple(flexible), frames=frames)
    return carried, [places[i] for i in range(len(tree.links))]


def collect_shared_coordinates(tree: Tree, unlimited: bool = False) -> SharedCoordinates | None:
    """Return the shares of `tree`; None if a coordinate is open at the ground, or too many are open at one place.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    unlimited
        Allow any number of open coordinates at one place.
    """
    bending: list[FlexibleBody | None] = [None] * len(tree.links)
    for body in tree.flexible:
        if body.link < 0 or bending[body.link] is not None:
            return None
        bending[body.link] = body
    links_of_coordinate = _links_by_coordinate(tree, bending)
    ends = {k: last_carrier(tree, links) for k, links in links_of_coordinate.items()}
    if -1 in ends.values():
        return None
    slots, open_ = _assign_slots(tree, links_of_coordinate, ends)
    if max(slots.values(), default=-1) >= MAX_OPEN_SLOTS and not unlimited:
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


def local_coupled_links(tree: Tree) -> tuple[list[LocalLink], list[int]]:
    """Return the same as `local_links` for a `tree` with shared coordinates; there are more links than in the tree."""
    tree, places = with_carriers(tree)
    common = collect_shared_coordinates(tree, unlimited=True)
    assert common is not None, "every coordinate ends at a link"
    rows = zip(tree.links, common.share, common.bending, common.q, common.v, common.answers, strict=True)
    return [
        LocalLink(sharing_link(localise(link), share, body, modal_constants(body)), link.parent, *indices)
        for link, share, body, *indices in rows
    ], places
