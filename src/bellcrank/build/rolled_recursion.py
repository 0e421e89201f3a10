"""Rolled recursions of mechanisms with many bodies: each link class is traced once (cell_tracing.py)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bellcrank.build.cell_tracing import CellClass, trace_cells
from bellcrank.build.recursion_layout import (
    CONSTANTS_INPUT,
    MOTION_RESULTS,
    TAU_INPUT,
    WRENCH_INPUT,
    LayoutRequest,
    coordinate_columns,
    lay_out_recursion,
    path_tree,
)
from bellcrank.dynamics.kinematics import body_frame_motions
from bellcrank.dynamics.quantities import POSITIONS, QUANTITIES
from bellcrank.dynamics.recursion.link_classes import LinkClass, link_classes
from bellcrank.dynamics.recursion.recursion_table import (
    BODY_QUANTITIES,
    COLUMNS,
    FRAMES,
    OWN_COORDINATES,
    SHARED_COORDINATES,
    SUM,
    BodyQuantity,
)
from bellcrank.dynamics.shared_coordinates import (
    SharedCoordinates,
    collect_shared_coordinates,
    modal_constants,
    sharing_link,
)
from bellcrank.dynamics.tree_sweeps import Body, BodyFrames, Ground, ground_of
from bellcrank.graph.cells import Cell
from bellcrank.graph.graph import Array, Graph, Shape, trace
from bellcrank.graph.recursion import PlaceTree, Recursion
from bellcrank.model import Tree
from bellcrank.model.joints import SHIPPED
from bellcrank.model.joints.modal import ModalJoint
from bellcrank.model.tree import Link
from bellcrank.parameters import Parameters, has_free
from bellcrank.scalar import Scalar, ordered_sum
from bellcrank.spatial.vector import ZERO, Mat, Vec, vec

LOOP_QUANTITIES = ("forward_dynamics", "inverse_dynamics", "reactions")  # quantities that loops change
NO_PARAMETERS = Parameters()
# Quantities that depend on springs.
SPRING_QUANTITIES = ("forward_dynamics", "inverse_dynamics", "reactions", "passive_torque", "potential_energy")


def is_rollable(tree: Tree, method: str, quantity: str) -> bool:
    """Return whether a recursion over bodies exists for the quantity.

    The method must be defined body by body, and the tree must have no element that involves more than neighbouring
    bodies. Springs, which act on frames, are added to the quantities that depend on them (independent_loops.py); loops
    change few quantities, and the others are those of the tree (dynamics/loops/loop_layer.py).

    Parameters
    ----------
    tree
        The tree of the mechanism.
    method
        Name of the method.
    quantity
        Name of the quantity.
    """
    if (
        (method, quantity) not in BODY_QUANTITIES
        or has_free(tree.ground.moves)
        or (tree.loops and quantity in LOOP_QUANTITIES)
    ):
        return False
    how = BODY_QUANTITIES[method, quantity].coupled
    if not tree.coupled or how == OWN_COORDINATES:
        return True
    return how == SHARED_COORDINATES and collect_shared_coordinates(tree) is not None


def count_classes(tree: Tree) -> int:
    """Return the number of link classes of `tree`."""
    shared = collect_shared_coordinates(tree) if tree.coupled else None
    return len(link_classes(tree, shares=shared.share if shared else None))


def count_numbers(tree: Tree, method: str, quantity: str, frame: str = "") -> int:
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
    body_quantity, coordinates = BODY_QUANTITIES[method, quantity], sum(len(link.v_index) for link in tree.links)
    results = {FRAMES: 1 if frame else len(tree.links), SUM: 1}.get(body_quantity.owner, coordinates)
    return coordinates * len(QUANTITIES[quantity].inputs) + math.prod(body_quantity.shape) * results


def has_shipped_joints(tree: Tree) -> bool:
    """Return whether all joints of `tree` are of the package's own types.

    The branches of other joint types are unknown.
    """
    types = {type(link.kind) for link in tree.links}
    return all(SHIPPED.get(kind.name) is kind or issubclass(kind, ModalJoint) for kind in types)


def rolled_graph(
    name: str,
    tree: Tree,
    method: str,
    quantity: str,
    inputs: dict[str, Shape],
    frames: Sequence[str] = (),
    parameters: Parameters = NO_PARAMETERS,
    frame: str = "",
    **options: str,
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
        Frame of a quantity that takes one.
    options
        `reference` of a quantity that takes one.
    """
    if tree.springs and quantity in SPRING_QUANTITIES:
        from bellcrank.build.independent_loops import graph_with_springs  # only springs need it

        return graph_with_springs(name, tree, method, quantity, inputs, frames, parameters)
    body_quantity, relevant_tree = BODY_QUANTITIES[method, quantity], path_tree(tree, frame) if frame else tree
    seen_frames = [frame] if frame else [link.name for link in tree.links] if body_quantity.owner == FRAMES else []
    shared_inputs = dict.fromkeys(body_quantity.shared_inputs, 3)
    width, coupled = math.prod(body_quantity.shape), body_quantity.coupled == SHARED_COORDINATES
    oriented, owner = body_quantity.oriented, body_quantity.owner
    request = LayoutRequest(frames, seen_frames, oriented, owner, width, coupled, shared_inputs)
    shapes = {**inputs, **{x: (size,) for x, size in shared_inputs.items()}}
    shape = _result_shape(relevant_tree, body_quantity, bool(frame))
    recursion_graph = recursion(
        name, relevant_tree, body_quantity.body, quantity, shapes, request, parameters, shape, **options
    )
    if not (
        body_quantity.finish or body_quantity.shared_inputs or (body_quantity.owner == COLUMNS and shape[1] < tree.nv)
    ):
        return recursion_graph
    shared_graphs = {}
    for x, source in body_quantity.shared_inputs.items():
        own = {k: inputs[k] for k in QUANTITIES[source].inputs}
        shared_graphs[x] = rolled_graph(f"{name}.{source}", tree, method_of(source), source, own, (), parameters)
    free = {"p": parameters.leaves} if parameters else {}

    def quantity_of_inputs(**given: Any) -> dict[str, Any]:
        more = {}
        for x, g in shared_graphs.items():
            results = g.call(**{k: given[k] for k in g.inputs if k in given}, **free)
            more[x] = results[body_quantity.shared_inputs[x]]
        values = recursion_graph.call(**given, **more, **free)[quantity]
        return {quantity: _quantity_values(tree, relevant_tree, body_quantity, values)}

    return trace(name, quantity_of_inputs, inputs, parameters)


def method_of(quantity: str) -> str:
    """Return the first method that defines `quantity` body by body."""
    return next(method for method, known_quantity in BODY_QUANTITIES if known_quantity == quantity)


def _result_shape(tree: Tree, body_quantity: BodyQuantity, one: bool) -> Shape:
    """Return the shape of the results of all bodies; () where they are consecutive."""
    if body_quantity.owner == COLUMNS:
        return (*body_quantity.shape, len(coordinate_columns(tree)))
    if body_quantity.owner == FRAMES:
        return body_quantity.shape if one else (len(tree.links), *body_quantity.shape)
    return ()


def _quantity_values(tree: Tree, stretch: Tree, body_quantity: BodyQuantity, values: Array) -> Any:
    """Return the quantity from the results of the bodies."""
    if body_quantity.owner == SUM:
        assert body_quantity.finish is not None
        rows = values.reshape(-1, *body_quantity.shape)
        return body_quantity.finish(tree, [ordered_sum(column) for column in rows.T])
    if body_quantity.owner == COLUMNS and body_quantity.finish is not None:
        values = np.array([body_quantity.finish(tree, row) for row in values], dtype=object)
    if body_quantity.owner == COLUMNS:
        matrix = np.full((len(values), tree.nv), 0.0, dtype=object)
        matrix[:, coordinate_columns(stretch)] = values
        return matrix
    return values


def frame_graph(name: str, tree: Tree, frames: Sequence[str], parameters: Collection[str], width: int) -> Graph:
    """Return the graph (q, v, p) -> motion of frames.

    Parameters
    ----------
    name
        Name of the graph.
    tree
        The tree of the mechanism.
    frames
        The frames.
    parameters
        Free parameters of the model.
    width
        Numbers for each frame: MOTION_RESULTS or MOTION_AND_AXES_RESULTS.
    """
    shapes: dict[str, Shape] = {"q": (tree.nq,), "v": (tree.nv,)}
    request = LayoutRequest((), frames, width > MOTION_RESULTS, FRAMES, width)
    return recursion(name, tree, body_frame_motions, "frames", shapes, request, parameters)


def recursion(
    name: str,
    tree: Tree,
    body: Callable[..., Any],
    quantity: str,
    inputs: dict[str, Shape],
    request: LayoutRequest,
    parameters: Collection[str] = (),
    shape: Shape = (),
    **body_options: Any,
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
    request
        Further inputs, and the results.
    parameters
        Free parameters of the model.
    shape
        Shape of the output; () for a vector.
    body_options
        Further arguments of `body`.
    """
    layout = lay_out_recursion(tree, list(inputs), request)
    parts = []
    for g in layout.groups:
        link, vectors = _shared_link(g, layout.shared)
        ground, pushed, seen = _class_constants(tree, g, request, vectors)
        options = body_options | ({"pushed": pushed} if request.wrench_frames else {})
        options |= {"seen": seen} if request.seen_frames else {}
        input_sizes = {**request.shared, **({WRENCH_INPUT: 6 * len(pushed.points)} if WRENCH_INPUT in inputs else {})}
        input_sizes |= _input_sizes(g, layout.shared, [x for x in inputs if x not in input_sizes])
        start = partial(_start_body, body, partial(Body, link=link, ground=ground, **options), list(inputs))
        parts.append(cell_class(g, list(inputs), start, **input_sizes))
    cells, tables = trace_cells(parts, layout.places, list(inputs)), [g.table for g in layout.groups]
    output = quantity, layout.size
    return with_free_constants(
        name, inputs, output, cells, tables, layout.places, layout.free_constants, parameters, shape
    )


def _start_body(
    work: Callable[[Body], Any], body: Callable[..., Body], inputs: Sequence[str], *values: Sequence[Scalar]
) -> Any:
    """Start the work of a body with its elements of the inputs."""
    return work(body(**dict(zip(inputs, values, strict=True))))


def _shared_link(g: LinkClass, shared: SharedCoordinates | None) -> tuple[Link, list[Vec]]:
    """Return the link of a class, with the coordinates it shares, and its remaining constants, which are vectors."""
    link, more = g.link, list(g.extra_constants)
    if shared is not None:
        first = int(g.members[0])
        own_count = len(more) - len(modal_constants(shared.bending[first]))
        link, more = (
            sharing_link(link, shared.share[first], shared.bending[first], more[own_count:]),
            more[:own_count],
        )
    return link, [vec(more[i : i + 3]) for i in range(0, len(more), 3)]


def _input_sizes(g: LinkClass, shared: SharedCoordinates | None, inputs: Sequence[str]) -> dict[str, int]:
    """Return the number of elements that a body reads of each input, where they are not its joint's coordinates."""
    if shared is None:
        return {}
    first = int(g.members[0])
    rows_by_input = {x: shared.answers if x == TAU_INPUT else shared.q if x in POSITIONS else shared.v for x in inputs}
    return {x: len(rows[first]) for x, rows in rows_by_input.items()}


def _class_constants(
    tree: Tree, g: LinkClass, request: LayoutRequest, vectors: list[Vec]
) -> tuple[Ground, BodyFrames, BodyFrames]:
    """Return what a class has besides the constants of its links: the ground, and its frames."""
    ground = ground_of(tree)
    if has_free(tree.gravity):  # only bodies on the ground use it
        ground = replace(ground, gravity=vectors.pop() if g.on_ground else ZERO)
    pushed_count = sum(tree.frames[name][0] == int(g.members[0]) for name in request.wrench_frames)
    pushed, frame_vectors = BodyFrames(vectors[:pushed_count]), vectors[pushed_count:]
    if not request.with_rotation:
        return ground, pushed, BodyFrames(frame_vectors)
    axes = [Mat(*frame_vectors[i + 1 : i + 4]) for i in range(0, len(frame_vectors), 4)]
    return ground, pushed, BodyFrames(frame_vectors[::4], axes)


def with_free_constants(
    name: str,
    inputs: dict[str, Shape],
    output: tuple[str, int],
    cells: Sequence[Cell],
    tables: Sequence[Array],
    places: PlaceTree,
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
    all_inputs: dict[str, Shape] = {**inputs, CONSTANTS_INPUT: (len(numbers),)}
    recursion_graph = Recursion(f"{name}.of_numbers", all_inputs, output, cells, tables, places, shape=shape)

    def calling(**given: Any) -> dict[str, Any]:
        return {output[0]: recursion_graph.call(**given, **{CONSTANTS_INPUT: numbers})[output[0]]}

    return trace(name, calling, inputs, parameters)


def cell_class(g: LinkClass, inputs: Sequence[str], start: Callable[..., Any], **more: int) -> CellClass:
    """Return a class as the CellClass that tracing needs.

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
    return CellClass(start, label, g.link.name, sizes, g.table_columns, g.on_ground, g.children, g.free_columns)
