"""Bodies that are alike: classes of links whose equations differ by nothing but constants.

Two links are of one class if their joints are of one type, their constants are 0, 1 and -1 at the same places (which is
what folds away), and they have as many children and both or neither stand on the ground. A class has one link as its
example, in which the constants that differ from body to body are free numbers k0, k1, ...; their values are the rows of
a table. What is equal in all of a class stays a number. Where a constant is a free number of the model, of one body of
the class at least, it is none of the table: it is n0, n1, ..., and each body says what those are of the model's.

Classes of a few bodies are not worth their code where there are many of them: those are joined to one for each type of
joint, with every constant in its place, zero or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bellcrank.dynamics.leaves import leaves, rebuilt
from bellcrank.model.tree import Link, Tree
from bellcrank.parameters import Free, depends, nominal, parameter
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import FullRotation, Move, Shift, Transform, Turn
from bellcrank.spatial.vector import Mat, Sym, Vec

Array = np.ndarray[Any, Any]
LAWS = ("armature", "damping", "friction", "friction_speed", "stiffness", "rest")  # of a joint
MANY_CLASSES = 24  # from so many on, those of fewer than FEW bodies are joined
FEW = 4
LONGEST_PERIOD = 6  # of different bodies in a row that come again and again
# Every placement is these moves, some of which are nothing (model/frames.py).
PLACED = ("shift", "z", "x", "z", "shift")
FULL = "full"  # but for those whose axes are free


@dataclass(frozen=True)
class Alike:
    """One class. table: a row for each of its members, in their order, of what differs between them. free: likewise, of
    numbers that depend on the model's free ones. more: of what was given beside the links' own constants.
    """

    link: Link
    members: Array
    table: Array
    on_ground: bool
    children: int
    free: Array = field(default_factory=lambda: np.zeros((0, 0), object))
    more: tuple[Scalar, ...] = ()

    @property
    def names(self) -> list[str]:
        """Of the columns of the table."""
        return [f"k{i}" for i in range(self.table.shape[1])]

    @property
    def numbers(self) -> list[str]:
        """Of the columns of what is free."""
        return [f"n{i}" for i in range(self.free.shape[1])]


def classes(
    tree: Tree,
    apart: Sequence[Any] | None = None,
    more: Sequence[Sequence[Scalar]] | None = None,
    shares: Sequence[Any] | None = None,
) -> list[Alike]:
    """Every link in one of them. The numbers of a class are those of its members, and of nobody else. apart: what keeps
    links apart beside their own equations, unless it is the ground and how many children they have. more: further
    constants of every link. shares: what it has to do with coordinates of others (shares.py), which keeps links apart,
    too.
    """
    numbers = [_numbers(link) for link in tree.links]
    more = more or [()] * len(tree.links)
    children = np.zeros(len(tree.links), int)
    for link in tree.links:
        if link.parent >= 0:
            children[link.parent] += 1
    apart = apart or [(link.parent < 0, int(children[i])) for i, link in enumerate(tree.links)]
    apart = list(zip(apart, shares, strict=True)) if shares else apart
    keys: list[Any] = [
        (type(link.kind), *shape, _pattern(values), folded(more[i]), apart[i])
        for i, (link, (shape, values)) in enumerate(zip(tree.links, numbers, strict=True))
    ]
    groups = _grouped(keys)
    if len(groups) > MANY_CLASSES:
        for members in list(groups.values()):
            for i in members if len(members) < FEW else ():
                if set(numbers[i][0]) <= set(PLACED):
                    numbers[i] = PLACED, _in_full(tree.links[i], numbers[i])
                sizes = len(numbers[i][1]), len(more[i])  # a joint that follows another has more
                keys[i] = (type(tree.links[i].kind), "in full", numbers[i][0], *sizes, apart[i])
        groups = _grouped(keys)
    return [_alike(tree.links, members, numbers, more, int(children[members[0]])) for members in groups.values()]


def _grouped(keys: Sequence[Any]) -> dict[Any, list[int]]:
    groups: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    return groups


def _alike(
    links: Sequence[Link],
    members: Sequence[int],
    numbers: Sequence[tuple[tuple[str, ...], list[Scalar]]],
    more: Sequence[Sequence[Scalar]],
    children: int,
) -> Alike:
    own, link = len(numbers[members[0]][1]), links[members[0]]
    first, table, free = columns([[*numbers[i][1], *more[i]] for i in members])
    made = _with(link, numbers[members[0]][0], iter(first[:own]))
    return Alike(made, np.array(members), table, link.parent < 0, children, free, tuple(first[own:]))


def columns(rows: list[list[Scalar]]) -> tuple[list[Scalar], Array, Array]:
    """Constants of alike things, a row each: those of the first with free numbers k0, k1, ... where they differ and n0,
    n1, ... where the model's are free, and what these are of each.
    """
    free = np.zeros(len(rows[0]), bool)
    if depends(rows):
        free[:] = [any(isinstance(x, Free) for x in column) for column in zip(*rows, strict=True)]
    depending = np.empty((len(rows), int(free.sum())), object)
    for j, column in enumerate(np.flatnonzero(free).tolist()):
        for i, row in enumerate(rows):
            depending[i, j], row[column] = row[column], 0.0
    values = np.array(rows, float)
    varies = (values != values[0]).any(axis=0)
    first: list[Scalar] = values[0].tolist()
    for k, column in enumerate(np.flatnonzero(varies).tolist()):
        first[column] = parameter(f"k{k}", first[column])
    for k, column in enumerate(np.flatnonzero(free).tolist()):
        first[column] = parameter(f"n{k}", nominal(depending[0, k]))
    return first, values[:, varies], depending


def _numbers(link: Link) -> tuple[tuple[str, ...], list[Scalar]]:
    """The shape of its placement, and all its constants in a row."""
    shape: list[str] = []
    placed: list[Scalar] = []
    for move in link.placement.moves:
        if isinstance(move, Shift):
            shape.append("shift")
            placed += [move.r.x, move.r.y, move.r.z]
        elif isinstance(move, Turn):
            shape.append("xyz"[move.axis])
            placed += [move.c, move.s]
        else:
            assert isinstance(move, FullRotation)
            shape.append(FULL)
            placed += [x for row in move.R.rows for x in row]
    return tuple(shape), [*_own(link), *placed]


def _own(link: Link) -> list[Scalar]:
    """Constants of joint and body."""
    inertia, joint, I = link.inertia, link.joint, link.inertia.I
    laws = [*(getattr(joint, law) for law in LAWS), *leaves(joint.mimic)]
    h = inertia.h
    return [*leaves(link.kind), inertia.m, h.x, h.y, h.z, I.xx, I.yy, I.zz, I.xy, I.xz, I.yz, *laws]


def _pattern(values: Sequence[Scalar]) -> tuple[Any, ...]:
    """Which constants fold away, by their values. The angle at zero, which is the first, does by quarter turns."""
    angle = 9
    if not isinstance(values[0], Free):
        quarters = values[0] / (math.pi / 2)
        angle = round(quarters) % 4 if quarters == round(quarters) else 9
    return (angle, *folded(values[1:]))


def folded(values: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Which of them fold away, and as what."""
    return tuple(x if x in (0.0, 1.0, -1.0) else 9.0 for x in values)  # a free number equals none


def _in_full(link: Link, numbers: tuple[tuple[str, ...], list[Scalar]]) -> list[Scalar]:
    """The same constants, with every move that there can be in its place."""
    shape, values = numbers
    own = len(_own(link))
    rest, out, at = list(shape), values[:own], own
    for move in PLACED:
        size = 3 if move == "shift" else 2
        if rest and rest[0] == move:
            out = [*out, *values[at : at + size]]
            at += size
            rest.pop(0)
        else:
            out = [*out, *([0.0, 0.0, 0.0] if move == "shift" else [1.0, 0.0])]
    assert not rest, f"moves {shape} are in no order that placements have"
    return out


def _with(link: Link, shape: Sequence[str], numbers: Iterator[Scalar]) -> Link:
    """The link with other constants, and with its own coordinates alone."""
    kind = rebuilt(link.kind, numbers)

    def some(n: int) -> list[Scalar]:
        return [next(numbers) for _ in range(n)]

    inertia = Inertia(next(numbers), Vec(*some(3)), Sym(*some(6)))
    joint = replace(link.joint, **dict(zip(LAWS, some(len(LAWS)), strict=True)))
    joint = replace(joint, mimic=rebuilt(joint.mimic, numbers))
    moves: list[Move] = []
    for move in shape:
        if move == FULL:
            moves.append(FullRotation(Mat(*(Vec(*some(3)) for _ in range(3)))))
        else:
            moves.append(Shift(Vec(*some(3))) if move == "shift" else Turn("xyz".index(move), *some(2)))
    q, v = tuple(range(link.kind.nq)), tuple(range(link.kind.nv))
    return replace(link, kind=kind, inertia=inertia, joint=joint, placement=Transform(moves), q_index=q, v_index=v)


# -- the order in which bodies are gone through


@dataclass(frozen=True)
class Arrangement:
    """order: the links as they are gone through, parents before children. runs: (begin, end, period) of places where
    the same classes come again and again; each hangs on the one before (`chained`), or none hangs on another.
    """

    order: Array
    chained: bool
    runs: list[tuple[int, int, int]]


def arranged(tree: Tree, groups: Sequence[Alike]) -> Arrangement:
    """Along the branches, or, where branches are many and short, level by level: whatever makes fewer runs."""
    parent = np.array([link.parent for link in tree.links])
    of = np.empty(len(parent), int)
    for k, group in enumerate(groups):
        of[group.members] = k
    along, across, depth = _along(parent), _across(parent, of), _depth(parent)
    hangs = np.zeros(len(parent), bool)
    hangs[1:] = parent[along[1:]] == along[:-1]
    branches = periodic(of[along].tolist(), np.flatnonzero(~hangs).tolist())
    level = np.ones(len(parent), bool)
    level[1:] = (of[across[1:]] != of[across[:-1]]) | (depth[across[1:]] != depth[across[:-1]])
    begins = np.flatnonzero(level).tolist()
    levels = [(a, b, 1) for a, b in zip(begins, [*begins[1:], len(parent)], strict=True)]
    chained = len(branches) <= len(levels)
    return Arrangement(along if chained else across, chained, branches if chained else levels)


def periodic(of: Sequence[int], starts: Sequence[int]) -> list[tuple[int, int, int]]:
    """Stretches of a sequence that repeat, by the period that covers most; starts: where one cannot go on."""
    found = []
    for begin, end in zip(starts, [*starts[1:], len(of)], strict=True):
        at = begin
        while at < end:
            best = (1, 1)
            for period in range(1, min(LONGEST_PERIOD, (end - at) // 2) + 1):
                same = period
                while at + same < end and of[at + same] == of[at + same - period]:
                    same += 1
                whole = same // period * period
                if whole > best[0] and whole >= 2 * period:
                    best = (whole, period)
                if whole > 8 * period:  # long enough: no other is looked for
                    break
            found.append((at, at + best[0], best[1]))
            at += best[0]
    return found


def _depth(parent: Array) -> Array:
    depth = np.zeros(len(parent), int)
    for i, up in enumerate(parent.tolist()):
        depth[i] = depth[up] + 1 if up >= 0 else 0
    return depth


def _along(parent: Array) -> Array:
    """Depth first, into the largest subtree first: so that a branch lies in one piece."""
    size = [1] * len(parent)
    children: dict[int, list[int]] = {}
    for i in range(len(parent) - 1, -1, -1):
        up = int(parent[i])
        children.setdefault(up, []).append(i)
        if up >= 0:
            size[up] += size[i]
    order: list[int] = []
    stack = sorted(children.get(-1, []), key=lambda i: (size[i], -i))
    while stack:
        i = stack.pop()
        order.append(i)
        stack += sorted(children.get(i, []), key=lambda c: (size[c], -c))
    return np.array(order, int)


def _across(parent: Array, of: Array) -> Array:
    """By depth, and in one depth by class."""
    return np.lexsort((np.arange(len(parent)), of, _depth(parent)))
