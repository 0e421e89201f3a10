"""Layout of a recursion: link classes, the order of the bodies, and each body's elements of the inputs.

Coordinates are assigned by the mechanism; wrenches, by the frames that they act on; constants that depend on free
parameters of the model exist once each, however many bodies use them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np

from bellcrank.dynamics.quantities import POSITIONS as COORDINATES
from bellcrank.dynamics.recursion.link_classes import Arrangement, LinkClass, arrange, link_classes
from bellcrank.dynamics.recursion.recursion_table import FRAMES, POSITIONS, SUM, VELOCITIES
from bellcrank.dynamics.shared_coordinates import SharedCoordinates, modal_constants
from bellcrank.dynamics.shared_coordinates import collect_shared_coordinates as shared_of
from bellcrank.graph.cells import RESULT
from bellcrank.graph.recursion import PlaceTree, Run
from bellcrank.model import Tree
from bellcrank.parameters import has_free
from bellcrank.scalar import Scalar

Array = np.ndarray[Any, Any]
ElementRows = Sequence[tuple[int, ...]]  # for each link, its elements of an input
# Results of a frame: position and velocity; these with angular velocity and axes.
MOTION_RESULTS, MOTION_AND_AXES_RESULTS = 6, 18
TAU_INPUT = "tau"  # input of the links that own coordinates
WRENCH_INPUT, CONSTANTS_INPUT = "wrench", "numbers"  # inputs: [force, moment] on each frame, and the free constants


@dataclass(frozen=True)
class LayoutRequest:
    """Inputs and results of bodies besides their states.

    wrench_frames: frames on which wrenches act. seen_frames: frames whose poses are constants of their bodies, with
    rotation if `with_rotation`. result_owner: the owners of the results (dynamics/recursion/recursion_table.py), with
    `width` results each. coupled: whether links also need the coordinates that they share with others. shared: inputs
    that all bodies read, with their sizes.
    """

    wrench_frames: Sequence[str] = ()
    seen_frames: Sequence[str] = ()
    with_rotation: bool = True
    result_owner: str = VELOCITIES
    width: int = 1
    coupled: bool = False
    shared: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RecursionLayout:
    """The layout of a recursion.

    groups: classes, with members and rows in the order of the places. free_constants: their expressions. size: of the
    result. shared: coordinates that links share with others.
    """

    groups: list[LinkClass]
    places: PlaceTree
    free_constants: list[Scalar]
    size: int
    shared: SharedCoordinates | None


def lay_out_recursion(tree: Tree, inputs: Sequence[str], request: LayoutRequest) -> RecursionLayout:
    """Return the layout of a tree.

    Poses of frames in their bodies are constants of the bodies, and so is a free gravity for the bodies on the ground.

    Parameters
    ----------
    tree
        The tree.
    inputs
        Names of the inputs.
    request
        Further inputs, and the results.
    """
    shared = shared_of(tree) if request.coupled and tree.coupled else None
    groups = link_classes(tree, more=_link_constants(tree, request, shared), shares=shared.share if shared else None)
    arrangement = arrange(tree, groups)
    groups = _sort_classes(groups, arrangement.order)
    element_rows: dict[str, ElementRows] = {}
    for x in inputs:
        if x in request.shared:
            element_rows[x] = [tuple(range(request.shared[x]))] * len(tree.links)
        elif x == WRENCH_INPUT:
            element_rows[x] = _frame_elements(tree, request.wrench_frames, 6)
        elif shared:
            element_rows[x] = shared.answers if x == TAU_INPUT else shared.q if x in COORDINATES else shared.v
        else:
            element_rows[x] = [link.q_index if x in COORDINATES else link.v_index for link in tree.links]
    element_rows[RESULT], size = _result_elements(tree, request)
    if shared and request.result_owner == VELOCITIES:
        element_rows[RESULT] = shared.answers
    constant_indices: dict[Scalar, int] = {}
    element_rows[CONSTANTS_INPUT] = _number_constants(groups, len(tree.links), constant_indices)
    return RecursionLayout(
        groups, _body_places(tree, groups, arrangement, element_rows), list(constant_indices), size, shared
    )


def _link_constants(tree: Tree, request: LayoutRequest, shared: SharedCoordinates | None) -> list[list[Scalar]] | None:
    """Return for each link its constants from frames, gravity and flexibility."""
    free_gravity = has_free(tree.gravity)
    if not (request.wrench_frames or request.seen_frames or free_gravity or shared):
        return None
    constants_of_links: list[list[Scalar]] = [[] for _ in tree.links]
    for names, turned in ((request.wrench_frames, False), (request.seen_frames, request.with_rotation)):
        for frame_indices, row in zip(_frames_of_links(tree, names), constants_of_links, strict=True):
            row += [x for k in frame_indices for x in _frame_pose(tree, names[k], turned)]
    for link, row in zip(tree.links, constants_of_links, strict=True):
        row += [*tree.gravity] if free_gravity and link.parent < 0 else []
    for body, row in zip(shared.bending if shared else (), constants_of_links, strict=False):
        row += modal_constants(body)
    return constants_of_links


def _result_elements(tree: Tree, request: LayoutRequest) -> tuple[ElementRows, int]:
    """Return for each link its elements of the result, and the size of the result."""
    width = request.width
    if request.result_owner == FRAMES:
        return _frame_elements(tree, request.seen_frames, width), width * len(request.seen_frames)
    if request.result_owner == SUM:  # one sum for each branch on the ground
        counted = accumulate(link.parent < 0 for link in tree.links)
        branches = [(k - 1, link.parent < 0) for k, link in zip(counted, tree.links, strict=True)]
        result_indices = [tuple(range(width * k, width * k + width)) if root else () for k, root in branches]
        return result_indices, sum(map(len, result_indices))
    if request.result_owner == POSITIONS:
        return [link.q_index for link in tree.links], tree.nq
    if request.result_owner == VELOCITIES:
        return [link.v_index for link in tree.links], tree.nv
    order = {k: i for i, k in enumerate(coordinate_columns(tree))}
    n = len(order)
    return [tuple(e * n + order[k] for k in link.v_index for e in range(width)) for link in tree.links], width * n


def coordinate_columns(tree: Tree) -> list[int]:
    """Return the coordinates of the joints of `tree`; a path has only some of those of the mechanism."""
    return sorted({k for link in tree.links for k in link.v_index})


def path_tree(tree: Tree, frame: str) -> Tree:
    """Return the part of `tree` that moves `frame`."""
    body, R, p = tree.frames[frame]
    links = [replace(tree.links[i], parent=k - 1) for k, i in enumerate(reversed(tree.path(body)))]
    return replace(tree, links=tuple(links), frames={frame: (len(links) - 1, R, p)}, loops=(), springs=(), flexible=())


def _frame_pose(tree: Tree, frame: str, turned: bool) -> list[Scalar]:
    _, R, p = tree.frames[frame]
    return [*p, *(x for row in R.rows for x in row)] if turned else [*p]


def _frame_elements(tree: Tree, frames: Sequence[str], width: int) -> ElementRows:
    """Return for each link its elements of an input or result with `width` elements for each frame."""
    return [
        tuple(width * k + e for k in frame_indices for e in range(width))
        for frame_indices in _frames_of_links(tree, frames)
    ]


def _frames_of_links(tree: Tree, frames: Sequence[str]) -> list[list[int]]:
    """Return for each link the frames that it carries; frames on the ground are left out."""
    frames_of_links: list[list[int]] = [[] for _ in tree.links]
    for k, name in enumerate(frames):
        body = tree.frames[name][0]
        if body >= 0:
            frames_of_links[body].append(k)
    return frames_of_links


def _number_constants(groups: Sequence[LinkClass], links: int, numbers: dict[Scalar, int]) -> ElementRows:
    """Return for each link the indices of its free constants, which are numbered in order of appearance."""
    indices: list[tuple[int, ...]] = [()] * links
    for g in groups:
        for i, row in zip(g.members.tolist(), g.free_values, strict=True) if g.free_columns else ():
            indices[i] = tuple(numbers.setdefault(x, len(numbers)) for x in row)
    return indices


def _sort_classes(groups: Sequence[LinkClass], order: Array) -> list[LinkClass]:
    """Return the same classes with members, and rows, in the order of the places."""
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    sorted_classes = []
    for g in groups:
        by_place = np.argsort(rank[g.members], kind="stable")
        members, table, free_values = g.members[by_place], g.table[by_place], g.free_values[by_place]
        sorted_classes.append(replace(g, members=members, table=table, free_values=free_values))
    return sorted_classes


def _body_places(
    tree: Tree, groups: Sequence[LinkClass], arrangement: Arrangement, element_rows: Mapping[str, ElementRows]
) -> PlaceTree:
    order, n = arrangement.order, len(arrangement.order)
    rank = np.empty(n + 1, int)
    rank[order], rank[n] = np.arange(n), -1  # the last entry is for -1, the ground
    parent = rank[np.array([tree.links[i].parent for i in order.tolist()])]
    class_of_place = np.empty(n, int)
    for k, g in enumerate(groups):
        class_of_place[rank[g.members]] = k
    rows_of_places = {x: [rows_of_links[i] for i in order.tolist()] for x, rows_of_links in element_rows.items()}
    return place_tree(parent.tolist(), class_of_place.tolist(), arrangement.runs, rows_of_places, arrangement.chained)


def place_tree(
    parent: Sequence[int],
    cell_of_place: list[int],
    stretches: Sequence[tuple[int, int, int]],
    elements: Mapping[str, ElementRows],
    chained: bool,
) -> PlaceTree:
    """Return the places of a recursion.

    Parameters
    ----------
    parent
        Parent of each place, or -1.
    cell_of_place
        Cell of each place.
    stretches
        The runs of repeating cells: begin, end and period.
    elements
        For each input and for the result, the elements of each place.
    chained
        Whether each place of a run is the child of the one before it.
    """
    children: list[list[int]] = [[] for _ in parent]
    for i, up in enumerate(parent):
        if up >= 0:
            children[up].append(i)
    rows_used, runs = Counter[int](), []
    for begin, end, period in stretches:
        cells = cell_of_place[begin : begin + period]
        rows = tuple(rows_used[k] + cells[:i].count(k) for i, k in enumerate(cells))
        runs.append(Run(tuple(cells), begin, end, rows))
        for k in cells:
            rows_used[k] += (end - begin) // period
    padded_elements = {x: padded_rows(rows) for x, rows in elements.items()}
    return PlaceTree(np.array(parent), padded_rows(children), padded_elements, tuple(runs), chained)


def padded_rows(indices: Sequence[Sequence[int]]) -> Array:
    """Return `indices` as an array with one row each, padded with -1."""
    rows = np.full((len(indices), max(1, *map(len, indices))), -1)
    for i, row in enumerate(indices):
        rows[i, : len(row)] = row
    return rows
