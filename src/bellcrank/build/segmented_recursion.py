"""Divide and conquer along long branches: a Recursion whose segments run in parallel (dynamics/dca.py).

A branch that is long enough is divided into the bodies before the first segment, segments of equal length in which the
same classes repeat, a balanced binary tree of joins over them, and the remaining bodies. Other branches stay as they
are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from bellcrank.build.cell_tracing import CellClass, trace_cells
from bellcrank.build.recursion_layout import place_tree
from bellcrank.build.rolled_recursion import cell_class
from bellcrank.dynamics.dca import body_segment, branches, end, join, port
from bellcrank.dynamics.quantities import POSITIONS
from bellcrank.dynamics.recursion.link_classes import LinkClass, link_classes, periodic_runs
from bellcrank.dynamics.tree_sweeps import Body, BodyRecursion, Ground, Vector
from bellcrank.graph.cells import RESULT
from bellcrank.graph.graph import Array, Shape
from bellcrank.graph.recursion import Recursion
from bellcrank.model import Tree
from bellcrank.model.tree import Link
from bellcrank.spatial.vector import IDENTITY, ZERO, Vec

CONNECTORS = ("join", "near", "far", "end")  # places that are not bodies; ports are named after the half they select


@dataclass
class _PlaceBuilder:
    """Places under construction, parents before children."""

    contents: list[int | str] = field(default_factory=list)  # a link, or one of CONNECTORS
    parent: list[int] = field(default_factory=list)
    run_begins: list[int] = field(default_factory=list)  # where a run of identical places must end
    closed: list[bool] = field(default_factory=list)
    place_of_link: dict[int, int] = field(default_factory=dict)  # the place of a link

    def add(self, what: int | str, parent: int, closed: bool = False) -> int:
        place = len(self.contents)
        if isinstance(what, str) or not place or isinstance(self.contents[-1], str) or parent != place - 1:
            self.run_begins.append(place)
        self.contents.append(what)
        self.parent.append(parent)
        self.closed.append(closed)
        if not isinstance(what, str):
            self.place_of_link[what] = place
        return place

    def add_chain(self, links: Sequence[int], parent: int, closed: bool, apart: bool = True) -> int:
        """Add links that are connected in a chain; with `apart`, as the beginning of a new run."""
        if apart and links:
            self.run_begins.append(len(self.contents))
        for link in links:
            parent = self.add(link, parent, closed)
        return parent

    def add_joins(self, segments: Sequence[Sequence[int]], parent: int) -> int:
        """Add joins over segments; return the place of the last body, or of the end behind it."""
        if len(segments) == 1:
            return self.add_chain(segments[0], parent, closed=False)
        place, half = self.add("join", parent), len(segments) // 2
        last = self.add_joins(segments[:half], self.add("near", place))
        self.add("end", last)
        return self.add_joins(segments[half:], self.add("far", place))


def segmented_graph(
    name: str,
    tree: Tree,
    inputs: dict[str, Shape],
    most: int | None = None,
    shortest: int = 1,
    divide: Callable[[int | None, int], Recursion] | None = None,
) -> Recursion | None:
    """Return the divided graph of forward dynamics, or None if no branch is long enough.

    Parameters
    ----------
    name
        Name of the graph.
    tree
        The tree of the mechanism.
    inputs
        Shapes of the inputs.
    most
        Maximal number of segments of a branch; None for as many as possible.
    shortest
        Minimal length of a segment, in bodies.
    divide
        Divides the graph again, see `Graph.divided`.
    """
    class_of_link, places, cut = _class_numbers(tree), _PlaceBuilder(), False
    for row in branches(tree):
        above = tree.links[row[0]].parent
        up = places.place_of_link[above] if above >= 0 else -1
        segmentation = _segment_lengths(class_of_link[row].tolist(), most, shortest)
        if segmentation is None:
            places.add_chain(row, up, closed=True)
            continue
        start, lengths = segmentation
        ends = [start, *(start + bodies for bodies in accumulate(lengths))]
        stop, cut = ends[-1], True
        up = places.add_chain(row[:start], up, closed=False)
        last = places.add_joins([row[a:b] for a, b in pairwise(ends)], up)
        if stop < len(row):
            places.add_chain(row[stop:], last, closed=True)
        else:
            places.add("end", last)
    return _segmented_recursion(name, tree, inputs, places, divide) if cut else None


def has_long_branch(tree: Tree) -> bool:
    """Return whether a branch of `tree` is long enough to be divided."""
    class_of_link = _class_numbers(tree)
    return any(_segment_lengths(class_of_link[row].tolist(), None, 1) for row in branches(tree))


def _class_numbers(tree: Tree) -> Array:
    """Return for each link the number of its class."""
    class_of_link = np.empty(len(tree.links), int)
    for k, g in enumerate(link_classes(tree, [()] * len(tree.links))):
        class_of_link[g.members] = k
    return class_of_link


def finest_segmented_graph(name: str, tree: Tree, inputs: dict[str, Shape]) -> Recursion:
    """Return the graph divided as finely as possible; targets divide it again into the segments they need.

    The finest division gives the cost at its best. `Graph.divided` makes another one.

    Parameters
    ----------
    name
        Name of the graph.
    tree
        The tree of the mechanism, with a long branch.
    inputs
        Shapes of the inputs.
    """

    def divide(most: int | None, shortest: int) -> Recursion:
        recursion = None
        while recursion is None:
            recursion, shortest = segmented_graph(name, tree, inputs, most, shortest), shortest // 2
        return recursion

    recursion = segmented_graph(name, tree, inputs, divide=divide)
    if recursion is None:
        raise ValueError("the tree has no branch that is long enough to be divided")
    return recursion


def _segment_lengths(classes_of_bodies: Sequence[int], most: int | None, shortest: int) -> tuple[int, list[int]] | None:
    """Return where segments begin and their lengths, along the longest stretch of repeating classes."""
    begin, stop, period = max(periodic_runs(classes_of_bodies, [0]), key=lambda x: x[1] - x[0])
    while begin < 1:  # the first body stays out: it may stand on the ground
        begin += period
    periods, fewest = (stop - begin) // period, -(-shortest // period)  # in periods, which are never divided
    if most is None and fewest == 1:
        count = periods
    else:  # a power of two, so that all segments have the same depth in the tree of joins
        count = 1
        while periods // (2 * count) >= fewest and (most is None or 2 * count <= most):
            count *= 2
    if count <= 1:
        return None
    length, longer = divmod(periods, count)
    if most is not None:
        longer = 0  # lanes run through segments of equal length
    return begin, [period * (length + (k < longer)) for k in range(count)]


def _start_body(link: Link, gravity: Vec, closed: bool, q: Vector, v: Vector, tau: Vector) -> BodyRecursion:
    return body_segment(Body(link=link, ground=Ground(gravity, IDENTITY, ZERO), q=q, v=v, tau=tau), closed)


def _segmented_recursion(
    name: str,
    tree: Tree,
    inputs: dict[str, Shape],
    builder: _PlaceBuilder,
    divide: Callable[[int | None, int], Recursion] | None,
) -> Recursion:
    n, names = len(builder.contents), list(inputs)
    child_count = Counter(builder.parent)
    place_of_link = [builder.place_of_link[i] for i in range(len(tree.links))]
    class_keys = [(builder.parent[p] < 0, child_count[p], builder.closed[p]) for p in place_of_link]
    groups = link_classes(tree, class_keys)
    cell_of_place = np.empty(n, int)
    parts: list[CellClass] = []
    for k, g in enumerate(groups):
        p = place_of_link[g.members[0]]
        start = partial(_start_body, g.link, tree.gravity, builder.closed[p])
        parts.append(
            cell_class(LinkClass(g.link, g.members, g.table, class_keys[g.members[0]][0], child_count[p]), names, start)
        )
        cell_of_place[[place_of_link[i] for i in g.members]] = k
    none = dict.fromkeys(names, 0)
    starts: dict[str, Callable[..., Any]] = {
        "join": join,
        "near": partial(port, 0),
        "far": partial(port, 1),
        "end": end,
    }
    for kind in CONNECTORS:
        where = [i for i, what in enumerate(builder.contents) if what == kind]
        cell_of_place[where] = len(parts)
        carried = child_count[where[0]] if where else 0
        parts.append(CellClass(partial(starts[kind], tree.gravity), kind, kind, none, (), False, carried))
    tables = [g.table[np.argsort([place_of_link[i] for i in g.members])] for g in groups]
    links = [tree.links[what] if isinstance(what, int) else None for what in builder.contents]
    elements = {x: [(k.q_index if x in POSITIONS else k.v_index) if k else () for k in links] for x in names}
    elements[RESULT] = [k.v_index if k else () for k in links]
    cells = cell_of_place.tolist()
    places = place_tree(
        builder.parent, cells, periodic_runs(cells, sorted(set(builder.run_begins))), elements, chained=True
    )
    tables += [np.zeros((0, 0))] * len(CONNECTORS)
    output, traced = ("forward_dynamics", tree.nv), trace_cells(parts, places, names)
    return Recursion(name, inputs, output, traced, tables, places, has_parallel_runs=True, divide=divide)
