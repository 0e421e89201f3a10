"""From a mechanism of many bodies to a Recursion: each class of alike bodies is traced once (cell_tracing.py)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from bellcrank.build.cell_tracing import Part, traced
from bellcrank.build.places import NUMBERS, SEEN, WRENCH, laid_out
from bellcrank.dynamics.alike import Alike
from bellcrank.dynamics.bodies import BODIES, Pushed
from bellcrank.dynamics.quantities import POSITIONS
from bellcrank.graph.cells import Cell
from bellcrank.graph.graph import Graph, Shape, trace
from bellcrank.graph.recursion import Recursion
from bellcrank.graph.recursion import Tree as Places
from bellcrank.model import Tree
from bellcrank.model.joints import SHIPPED
from bellcrank.parameters import depends
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec

Array = np.ndarray[Any, Any]


def rollable(tree: Tree, method: str, quantity: str) -> bool:
    """Whether the method is also written for one body, and the tree has nothing that concerns more than a neighbour
    (but springs, which pull at frames: springs_apart.py).
    """
    plain = not (tree.coupled or tree.loops or tree.flexible)
    return plain and (method, quantity) in BODIES and not depends(tree.gravity, tree.ground.moves)


def as_shipped(tree: Tree) -> bool:
    """Whether all joints are of the package: of others nobody knows what they branch on."""
    return all(SHIPPED.get(kind.name) is kind for kind in {type(link.kind) for link in tree.links})


def rolled(
    name: str,
    tree: Tree,
    method: str,
    quantity: str,
    inputs: dict[str, Shape],
    frames: Sequence[str] = (),
    parameters: Collection[str] = (),
) -> Graph:
    """The graph of a quantity, with a cell for each class of bodies. frames: those that wrenches act on. parameters:
    names of the model's free numbers.
    """
    return rolled_by(name, tree, BODIES[method, quantity], quantity, inputs, frames, parameters)


def rolled_by(
    name: str,
    tree: Tree,
    body: Callable[..., Any],
    quantity: str,
    inputs: dict[str, Shape],
    frames: Sequence[str] = (),
    parameters: Collection[str] = (),
    results: int = 0,
) -> Graph:
    """The same of anything that is said for one body: a Recursion, or, where constants of bodies are free, a graph that
    makes those of p and calls it. results: of each frame, where it gives nothing for coordinates.
    """
    laid = laid_out(tree, list(inputs), frames, results)
    output = quantity, results * len(frames) if results else tree.nv
    ground = tree.ground.pose(IDENTITY, ZERO)
    parts = []
    for g in laid.groups:
        points, axes = _told(g.more, results > SEEN)
        options = {"pushed": Pushed(*ground, points, axes)} if frames else {}
        more = {WRENCH: 6 * len(points)} if WRENCH in inputs else {}
        parts.append(part(g, list(inputs), partial(body, g.link, tree.gravity, **options), **more))
    cells, tables = traced(parts, laid.places, list(inputs)), [g.table for g in laid.groups]
    return of_numbers(name, inputs, output, cells, tables, laid.places, laid.numbers, parameters)


def _told(numbers: Sequence[Scalar], turned: bool) -> tuple[list[Vec], list[Mat]]:
    """Where the frames of a class are, and how they are turned."""
    vectors = [Vec(*numbers[i : i + 3]) for i in range(0, len(numbers), 3)]
    if not turned:
        return vectors, []
    return vectors[::4], [Mat(*vectors[i + 1 : i + 4]) for i in range(0, len(vectors), 4)]


def of_numbers(
    name: str,
    inputs: dict[str, Shape],
    output: tuple[str, int],
    cells: Sequence[Cell],
    tables: Sequence[Array],
    places: Places,
    numbers: Sequence[Scalar],
    parameters: Collection[str],
) -> Graph:
    """The recursion of cells; where the model has free numbers, with what its constants are of p."""
    if not parameters:
        return Recursion(name, inputs, output, cells, tables, places)
    found = Recursion(f"{name}.of_numbers", {**inputs, NUMBERS: (len(numbers),)}, output, cells, tables, places)

    def calling(**given: Any) -> dict[str, Any]:
        return {output[0]: found.call(**given, **{NUMBERS: numbers})[output[0]]}

    return trace(name, calling, inputs, parameters)


def part(g: Alike, inputs: Sequence[str], start: Callable[..., Any], **more: int) -> Part:
    """more: how many elements a body of the class has of inputs that are no coordinates."""
    sizes = {x: len(g.link.q_index if x in POSITIONS else g.link.v_index) for x in inputs} | more
    label = f"{type(g.link.kind).__name__.lower()} as {g.link.name}"
    return Part(start, label, g.link.name, sizes, g.names, g.on_ground, g.children, g.numbers)
