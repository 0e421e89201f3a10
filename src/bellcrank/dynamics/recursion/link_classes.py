"""Link classes: groups of links whose equations differ only in constants.

Two links are of one class if their joints are of one type, their constants are 0, 1 and -1 in the same positions (these
are folded away), they have the same number of children, and both or neither are attached to the ground. A class has one
link as its example, in which the constants that differ from body to body are free parameters k0, k1, ...; their values
are the rows of a table. A constant that is equal for all members stays a number. A constant that is a free parameter of
the model, for one member of the class at least, is not in the table: it is n0, n1, ..., and each member has its own
expressions in the model's parameters for these.

If there are many classes, those with few bodies are not worth their code: they are merged into one class for each type
of joint, with every constant in its position, zero or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bellcrank.dynamics.shared_coordinates import flatten, unflatten
from bellcrank.model.tree import Link, Tree
from bellcrank.parameters import Free, has_free, nominal, parameter
from bellcrank.scalar import Scalar
from bellcrank.spatial.moves import FullRotation, Move, Shift, Transform, Turn
from bellcrank.spatial.vector import ZERO

Array = np.ndarray[Any, Any]
JOINT_CONSTANTS = ("armature", "damping", "friction", "friction_speed", "stiffness", "rest")  # constants of a joint
MERGE_ABOVE_CLASSES = 24  # with more classes than this, those with fewer than FEW_MEMBERS bodies are merged
FEW_MEMBERS = 4
LONGEST_PERIOD_BODIES = 6  # bodies in the longest repeating pattern
# Every placement consists of these moves, some of which may be identities (model/internal_frames.py).
PLACEMENT_MOVES = ("shift", "z", "x", "z", "shift")
FULL_ROTATION = "full"  # a rotation matrix: placements whose axes are free parameters


@dataclass(frozen=True)
class LinkClass:
    """One link class.

    `table` has a row for each member, in their order, with the constants that differ between members. `free_values` has
    the values that depend on free parameters. `extra_constants` has the constants that were given in addition to those
    of the links.
    """

    link: Link
    members: Array
    table: Array
    on_ground: bool
    children: int
    free_values: Array = field(default_factory=lambda: np.zeros((0, 0), object))
    extra_constants: tuple[Scalar, ...] = ()

    @property
    def table_columns(self) -> list[str]:
        """Return the names of the table's columns."""
        return [f"k{i}" for i in range(self.table.shape[1])]

    @property
    def free_columns(self) -> list[str]:
        """Return the names of the free-parameter columns."""
        return [f"n{i}" for i in range(self.free_values.shape[1])]


def link_classes(
    tree: Tree,
    apart: Sequence[Any] | None = None,
    more: Sequence[Sequence[Scalar]] | None = None,
    shares: Sequence[Any] | None = None,
) -> list[LinkClass]:
    """Partition the links into classes.

    The parameters of a class are those of its own members only.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    apart
        Further keys that keep links apart; by default attachment to the ground and number of children.
    more
        Further constants of every link.
    shares
        Relations to shared coordinates (shared_coordinates.py), which also keep links apart.
    """
    moves = [list(link.placement.moves) for link in tree.links]
    values = [_constants(*pair) for pair in zip(tree.links, moves, strict=True)]
    more = more or [()] * len(tree.links)
    children = np.zeros(len(tree.links), int)
    for link in tree.links:
        if link.parent >= 0:
            children[link.parent] += 1
    apart = apart or [(link.parent < 0, int(children[i])) for i, link in enumerate(tree.links)]
    apart = list(zip(apart, shares, strict=True)) if shares else apart
    keys: list[Any] = [
        (type(link.kind), *_shape(moves[i]), _folding_pattern(values[i]), folding_values(more[i]), apart[i])
        for i, link in enumerate(tree.links)
    ]
    groups = _group_by_key(keys)
    if len(groups) > MERGE_ABOVE_CLASSES:
        for members in list(groups.values()):
            for i in members if len(members) < FEW_MEMBERS else ():
                if FULL_ROTATION not in _shape(moves[i]):
                    moves[i] = _all_moves(moves[i])
                    values[i] = _constants(tree.links[i], moves[i])
                sizes = len(values[i]), len(more[i])  # a mimic joint has more
                keys[i] = (type(tree.links[i].kind), "in full", _shape(moves[i]), *sizes, apart[i])
        groups = _group_by_key(keys)
    classes = []
    for members in groups.values():
        first, own_count = members[0], len(values[members[0]])
        numbers, table, free = extract_parameters([[*values[i], *more[i]] for i in members])
        example = _with_constants(tree.links[first], moves[first], iter(numbers[:own_count]))
        on_ground, further = tree.links[first].parent < 0, tuple(numbers[own_count:])
        classes.append(LinkClass(example, np.array(members), table, on_ground, int(children[first]), free, further))
    return classes


def _group_by_key(keys: Sequence[Any]) -> dict[Any, list[int]]:
    groups: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    return groups


def extract_parameters(rows: list[list[Scalar]]) -> tuple[list[Scalar], Array, Array]:
    """Replace constants that differ between similar things by free parameters.

    Each of `rows` has the constants of one thing. Returned are the constants of the first, with free parameters k0, k1,
    ... where the rows differ and n0, n1, ... where they depend on the model's parameters; then the values of the k and
    of the n for every row.
    """
    free = np.zeros(len(rows[0]), bool)
    if has_free(rows):
        free[:] = [any(isinstance(x, Free) for x in column) for column in zip(*rows, strict=True)]
    depending = np.empty((len(rows), int(free.sum())), object)
    for j, column in enumerate(np.flatnonzero(free).tolist()):
        for i, row in enumerate(rows):
            depending[i, j], row[column] = row[column], 0.0
    values = np.array(rows, float)
    varies = (values != values[0]).any(axis=0)
    example_constants: list[Scalar] = values[0].tolist()
    for k, column in enumerate(np.flatnonzero(varies).tolist()):
        example_constants[column] = parameter(f"k{k}", example_constants[column])
    for k, column in enumerate(np.flatnonzero(free).tolist()):
        example_constants[column] = parameter(f"n{k}", nominal(depending[0, k]))
    return example_constants, values[:, varies], depending


def _shape(moves: Sequence[Move]) -> tuple[str, ...]:
    """Return the types of the moves of a placement."""
    return tuple(
        "shift" if isinstance(m, Shift) else "xyz"[m.axis] if isinstance(m, Turn) else FULL_ROTATION for m in moves
    )


def _parts(link: Link, moves: Sequence[Move]) -> list[Any]:
    """Return everything of a link that consists of constants, with these `moves` as its placement."""
    placed: list[Any] = []
    for move in moves:
        assert isinstance(move, Shift | Turn | FullRotation)
        placed.append(move.r if isinstance(move, Shift) else [move.c, move.s] if isinstance(move, Turn) else move.R)
    laws = [getattr(link.joint, law) for law in JOINT_CONSTANTS]
    return [link.kind, link.inertia, laws, link.joint.mimic, placed]


def _constants(link: Link, moves: Sequence[Move]) -> list[Scalar]:
    """Return the constants of a link in a row, with these `moves` as its placement."""
    return list(flatten(_parts(link, moves)))


def _folding_pattern(values: Sequence[Scalar]) -> tuple[Any, ...]:
    """Return which constants fold away; the first, the angle at zero, does for quarter turns."""
    angle = 9
    if not isinstance(values[0], Free):
        quarters = values[0] / (math.pi / 2)
        angle = round(quarters) % 4 if quarters == round(quarters) else 9
    return (angle, *folding_values(values[1:]))


def folding_values(values: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Return `values` with 9.0 in place of those that do not fold away."""
    return tuple(x if x in (0.0, 1.0, -1.0) else 9.0 for x in values)  # a free parameter equals none of these


def _all_moves(moves: Sequence[Move]) -> list[Move]:
    """Return `moves` with every possible move of a placement, some of which are identities."""
    given, every = list(moves), list[Move]()
    for kind in PLACEMENT_MOVES:
        identity = Shift(ZERO) if kind == "shift" else Turn("xyz".index(kind), 1.0, 0.0)
        every.append(given.pop(0) if _shape(given[:1]) == (kind,) else identity)
    assert not given, f"moves {_shape(moves)} do not match the standard order of placements"
    return every


def _with_constants(link: Link, moves: Sequence[Move], numbers: Iterator[Scalar]) -> Link:
    """Return the link with other constants, moves like these, and its own coordinates only."""
    kind, inertia, laws, mimic, placed = unflatten(_parts(link, moves), numbers)
    joint = replace(link.joint, **dict(zip(JOINT_CONSTANTS, laws, strict=True)), mimic=mimic)
    placement: list[Move] = []
    for move, x in zip(moves, placed, strict=True):
        if isinstance(move, Turn):
            placement.append(Turn(move.axis, *x))
        else:
            placement.append(Shift(x) if isinstance(move, Shift) else FullRotation(x))
    q, v = tuple(range(link.kind.nq)), tuple(range(link.kind.nv))
    return replace(link, kind=kind, inertia=inertia, joint=joint, placement=Transform(placement), q_index=q, v_index=v)


# -- the order in which bodies are processed


@dataclass(frozen=True)
class Arrangement:
    """Order in which the links are processed.

    order has the links, parents before children. runs are (begin, end, period) of positions where the same classes
    repeat; if `chained`, each link is a child of the one before it, otherwise the links of a run are independent.
    """

    order: Array
    chained: bool
    runs: list[tuple[int, int, int]]


def arrange(tree: Tree, groups: Sequence[LinkClass]) -> Arrangement:
    """Arrange the links of `tree`, with classes `groups`, in the order that gives fewer runs.

    The order is along the branches, or level by level if branches are many and short.
    """
    parent = np.array([link.parent for link in tree.links])
    class_of_link = np.empty(len(parent), int)
    for k, group in enumerate(groups):
        class_of_link[group.members] = k
    along, depth = _depth_first_order(parent), _depth(parent)
    across = np.lexsort((np.arange(len(parent)), class_of_link, depth))  # by depth, and by class within a depth
    hangs = np.zeros(len(parent), bool)
    hangs[1:] = parent[along[1:]] == along[:-1]
    branches = periodic_runs(class_of_link[along].tolist(), np.flatnonzero(~hangs).tolist())
    level = np.ones(len(parent), bool)
    level[1:] = (class_of_link[across[1:]] != class_of_link[across[:-1]]) | (depth[across[1:]] != depth[across[:-1]])
    begins = np.flatnonzero(level).tolist()
    levels = [(a, b, 1) for a, b in zip(begins, [*begins[1:], len(parent)], strict=True)]
    chained = len(branches) <= len(levels)
    return Arrangement(along if chained else across, chained, branches if chained else levels)


def periodic_runs(class_at: Sequence[int], starts: Sequence[int]) -> list[tuple[int, int, int]]:
    """Split a sequence into repeating runs, each with the period that covers most.

    Parameters
    ----------
    class_at
        Class of each position.
    starts
        Positions that a run may not cross.
    """
    runs = []
    for begin, end in zip(starts, [*starts[1:], len(class_at)], strict=True):
        position = begin
        while position < end:
            best = (1, 1)
            for period in range(1, min(LONGEST_PERIOD_BODIES, (end - position) // 2) + 1):
                run_length = period
                while (
                    position + run_length < end
                    and class_at[position + run_length] == class_at[position + run_length - period]
                ):
                    run_length += 1
                whole_periods = run_length // period * period
                if whole_periods > best[0] and whole_periods >= 2 * period:
                    best = (whole_periods, period)
                if whole_periods > 8 * period:  # long enough: stop searching
                    break
            runs.append((position, position + best[0], best[1]))
            position += best[0]
    return runs


def _depth(parent: Array) -> Array:
    depth = np.zeros(len(parent), int)
    for i, up in enumerate(parent.tolist()):
        depth[i] = depth[up] + 1 if up >= 0 else 0
    return depth


def _depth_first_order(parent: Array) -> Array:
    """Order links depth first, into the largest subtree first, so that each branch is contiguous."""
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
