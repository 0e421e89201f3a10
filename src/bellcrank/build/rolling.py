"""Rolled recursions of mechanisms with many bodies: each link class is traced once (cell_tracing.py)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bellcrank.build.cell_tracing import Part, traced
from bellcrank.build.places import NUMBERS, SEEN, TAU, WRENCH, Asked, columns_of, laid_out, path
from bellcrank.dynamics.alike import Alike, classes
from bellcrank.dynamics.body_quantities import BODIES, COLUMNS, FRAMES, OWN, SHARED, SUM, Said
from bellcrank.dynamics.neighbours import Frames, Ground, ground_of
from bellcrank.dynamics.quantities import POSITIONS, QUANTITIES
from bellcrank.dynamics.shares import Shared, constants, shared, sharing
from bellcrank.graph.cells import Cell
from bellcrank.graph.graph import Graph, Shape, trace
from bellcrank.graph.recursion import Recursion
from bellcrank.graph.recursion import Tree as Places
from bellcrank.model import Tree
from bellcrank.model.joints import SHIPPED
from bellcrank.model.joints.modal import Modal
from bellcrank.model.tree import Link
from bellcrank.parameters import Parameters, depends
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import ZERO, Mat, Vec, vec

Array = np.ndarray[Any, Any]
CLOSED = ("forward_dynamics", "inverse_dynamics", "reactions")  # quantities that loops change


def rollable(tree: Tree, method: str, quantity: str) -> bool:
    """Return whether a recursion over bodies exists for the quantity.

    The method must be defined body by body, and the tree must have no element that involves more than neighbouring
    bodies. Springs, which act on frames, are added to the quantities that depend on them (springs_apart.py); loops
    change few quantities, and the others are those of the tree (dynamics/loops/layer.py).

    Parameters
    ----------
    tree
        The tree of the mechanism.
    method
        Name of the method.
    quantity
        Name of the quantity.
    """
    if (method, quantity) not in BODIES or depends(tree.ground.moves) or (tree.loops and quantity in CLOSED):
        return False
    how = BODIES[method, quantity].coupled
    return not tree.coupled or how == OWN or (how == SHARED and shared(tree) is not None)


def kinds(tree: Tree) -> int:
    """Return the number of link classes of `tree`."""
    found = shared(tree) if tree.coupled else None
    return len(classes(tree, shares=found.share if found else None))


def told(tree: Tree, method: str, quantity: str, frame: str = "") -> int:
    """Return how many numbers the bodies of a tree read and write.

    Parameters
    ----------
    tree
        The tree.
    method
        Name of the method.
    quantity
        Name of the quantity.
    frame
        Frame of a quantity that takes one.
    """
    said, coordinates = BODIES[method, quantity], sum(len(link.v_index) for link in tree.links)
    results = {FRAMES: 1 if frame else len(tree.links), SUM: 1}.get(said.of, coordinates)
    return coordinates * len(QUANTITIES[quantity].inputs) + math.prod(said.shape) * results


def as_shipped(tree: Tree) -> bool:
    """Return whether all joints of `tree` are of the package's own types.

    The branches of other joint types are unknown.
    """
    types = {type(link.kind) for link in tree.links}
    return all(SHIPPED.get(kind.name) is kind or issubclass(kind, Modal) for kind in types)


def rolled(
    name: str,
    tree: Tree,
    method: str,
    quantity: str,
    inputs: dict[str, Shape],
    frames: Sequence[str] = (),
    parameters: Collection[str] = (),
    **frame: str,
) -> Graph:
    """Return the graph of a quantity, with one cell for each link class.

    Parameters
    ----------
    name
        Name of the graph.
    tree
        The tree of the mechanism.
    method
        Name of the method.
    quantity
        Name of the quantity.
    inputs
        Shapes of the inputs.
    frames
        Frames on which wrenches act.
    parameters
        Free parameters of the model.
    frame
        `frame` and `reference` of a quantity that takes them.
    """
    said, one = BODIES[method, quantity], frame.pop("frame", "")
    stretch = path(tree, one) if one else tree
    seen = [one] if one else [link.name for link in tree.links] if said.of == FRAMES else []
    everybody = dict.fromkeys(said.shared, 3)
    asked = Asked(frames, seen, said.turned, said.of, math.prod(said.shape), said.coupled == SHARED, everybody)
    shapes = {**inputs, **{x: (size,) for x, size in everybody.items()}}
    shape = _shape(stretch, said, bool(one))
    found = recursion(name, stretch, said.body, quantity, shapes, asked, parameters, shape, **frame)
    if not (said.last or said.shared or (said.of == COLUMNS and shape[1] < tree.nv)):
        return found
    known = {
        x: rolled(f"{name}.{of}", tree, method_of(of), of, _inputs(of, inputs), (), parameters)
        for x, of in said.shared.items()
    }
    free = {"p": parameters.leaves} if isinstance(parameters, Parameters) and parameters else {}

    def whole(**given: Any) -> dict[str, Any]:
        more = {x: g.call(**{k: given[k] for k in g.inputs if k in given}, **free) for x, g in known.items()}
        values = found.call(**given, **{x: y[said.shared[x]] for x, y in more.items()}, **free)[quantity]
        return {quantity: _made(tree, stretch, said, values)}

    return trace(name, whole, inputs, parameters)


def method_of(quantity: str) -> str:
    """Return the first method that defines `quantity` body by body."""
    return next(method for method, of in BODIES if of == quantity)


def _inputs(quantity: str, inputs: dict[str, Shape]) -> dict[str, Shape]:
    return {x: inputs[x] for x in QUANTITIES[quantity].inputs}


def _shape(tree: Tree, said: Said, one: bool) -> Shape:
    """Return the shape of the results of all bodies; () where they are consecutive."""
    if said.of == COLUMNS:
        return (*said.shape, len(columns_of(tree)))
    if said.of == FRAMES:
        return said.shape if one else (len(tree.links), *said.shape)
    return ()


def _made(tree: Tree, stretch: Tree, said: Said, values: Array) -> Any:
    """Return the quantity from the results of the bodies."""
    if said.of == SUM:
        assert said.last is not None
        rows = values.reshape(-1, *said.shape)
        return said.last(tree, [_added(column) for column in rows.T])
    if said.of == COLUMNS and said.last is not None:
        values = np.array([said.last(tree, row) for row in values], dtype=object)
    if said.of == COLUMNS:
        found = np.full((len(values), tree.nv), 0.0, dtype=object)
        found[:, columns_of(stretch)] = values
        return found
    return values


def _added(terms: Sequence[Scalar]) -> Scalar:
    total = terms[0]
    for x in terms[1:]:
        total = total + x
    return total


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
    """Return the recursion of a function that is defined for one body.

    Parameters
    ----------
    name
        Name of the graph.
    tree
        The tree of the mechanism.
    body
        The function, for one body.
    quantity
        Name of the output.
    inputs
        Shapes of the inputs.
    frames
        Frames on which wrenches act, or with `results` frames whose motion is returned.
    parameters
        Free parameters of the model.
    results
        Results for each frame; 0 for results for each coordinate.
    """
    asked = Asked((), frames, results > SEEN, FRAMES, results) if results else Asked(frames)
    return recursion(name, tree, body, quantity, inputs, asked, parameters)


def recursion(
    name: str,
    tree: Tree,
    body: Callable[..., Any],
    quantity: str,
    inputs: dict[str, Shape],
    asked: Asked,
    parameters: Collection[str] = (),
    shape: Shape = (),
    **told: Any,
) -> Graph:
    """Return a Recursion; with free constants, a graph that computes them from p and calls it.

    Parameters
    ----------
    name
        Name of the graph.
    tree
        The tree of the mechanism.
    body
        The function, for one body.
    quantity
        Name of the output.
    inputs
        Shapes of the inputs.
    asked
        Further inputs, and the results.
    parameters
        Free parameters of the model.
    shape
        Shape of the output; () for a vector.
    told
        Further arguments of `body`.
    """
    laid = laid_out(tree, list(inputs), asked)
    parts = []
    for g in laid.groups:
        link, vectors = _sharing(g, laid.shared)
        ground, pushed, seen = _constants(tree, g, asked, vectors)
        options = told | ({"pushed": pushed} if asked.pushed else {}) | ({"seen": seen} if asked.seen else {})
        more = {**asked.shared, **({WRENCH: 6 * len(pushed.points)} if WRENCH in inputs else {})}
        more |= _sizes(g, laid.shared, [x for x in inputs if x not in more])
        parts.append(part(g, list(inputs), partial(body, link, ground, **options), **more))
    cells, tables = traced(parts, laid.places, list(inputs)), [g.table for g in laid.groups]
    output = quantity, laid.size
    return of_numbers(name, inputs, output, cells, tables, laid.places, laid.numbers, parameters, shape)


def _sharing(g: Alike, found: Shared | None) -> tuple[Link, list[Vec]]:
    """Return the link of a class, with the coordinates it shares, and its remaining constants, which are vectors."""
    link, more = g.link, list(g.more)
    if found is not None:
        first = int(g.members[0])
        own = len(more) - len(constants(found.bending[first]))
        link, more = sharing(link, found.share[first], found.bending[first], more[own:]), more[:own]
    return link, [vec(more[i : i + 3]) for i in range(0, len(more), 3)]


def _sizes(g: Alike, found: Shared | None, inputs: Sequence[str]) -> dict[str, int]:
    """Return the number of elements that a body reads of each input, where they are not its joint's coordinates."""
    if found is None:
        return {}
    first = int(g.members[0])
    of = {x: found.answers if x == TAU else found.q if x in POSITIONS else found.v for x in inputs}
    return {x: len(rows[first]) for x, rows in of.items()}


def _constants(tree: Tree, g: Alike, asked: Asked, vectors: list[Vec]) -> tuple[Ground, Frames, Frames]:
    """Return what a class has besides the constants of its links: the ground, and its frames."""
    ground = ground_of(tree)
    if depends(tree.gravity):  # only bodies on the ground use it
        ground = replace(ground, gravity=vectors.pop() if g.on_ground else ZERO)
    at = _pushed(tree, g, asked)
    here = vectors[at:]
    if not asked.turned:
        return ground, Frames(vectors[:at]), Frames(here)
    axes = [Mat(*here[i + 1 : i + 4]) for i in range(0, len(here), 4)]
    return ground, Frames(vectors[:at]), Frames(here[::4], axes)


def _pushed(tree: Tree, g: Alike, asked: Asked) -> int:
    """Return how many frames with wrenches each body of the class has."""
    first = int(g.members[0])
    return sum(tree.frames[name][0] == first for name in asked.pushed)


def of_numbers(
    name: str,
    inputs: dict[str, Shape],
    output: tuple[str, int],
    cells: Sequence[Cell],
    tables: Sequence[Array],
    places: Places,
    numbers: Sequence[Scalar],
    parameters: Collection[str],
    shape: Shape = (),
) -> Graph:
    """Return the recursion of cells, with its free constants computed from the parameters p.

    Parameters
    ----------
    name
        Name of the graph.
    inputs
        Shapes of the inputs.
    output
        Name and size of the output.
    cells
        The traced classes.
    tables
        Their constants, a row for each body.
    places
        Order and tree of the bodies.
    numbers
        Expressions of the free constants.
    parameters
        Free parameters of the model; without any, the Recursion itself is returned.
    shape
        Shape of the output; () for a vector.
    """
    if not parameters:
        return Recursion(name, inputs, output, cells, tables, places, shape=shape)
    told: dict[str, Shape] = {**inputs, NUMBERS: (len(numbers),)}
    found = Recursion(f"{name}.of_numbers", told, output, cells, tables, places, shape=shape)

    def calling(**given: Any) -> dict[str, Any]:
        return {output[0]: found.call(**given, **{NUMBERS: numbers})[output[0]]}

    return trace(name, calling, inputs, parameters)


def part(g: Alike, inputs: Sequence[str], start: Callable[..., Any], **more: int) -> Part:
    """Return a class as the Part that tracing needs.

    Parameters
    ----------
    g
        The class.
    inputs
        Names of the inputs.
    start
        Makes its generator.
    more
        Number of elements that a body reads of inputs that are not coordinates.
    """
    sizes = {x: len(g.link.q_index if x in POSITIONS else g.link.v_index) for x in inputs} | more
    label = f"{type(g.link.kind).__name__.lower()} as {g.link.name}"
    return Part(start, label, g.link.name, sizes, g.names, g.on_ground, g.children, g.numbers)
