"""Automatic differentiation of graphs: jvp, vjp, Jacobians, variations and sparsity, as new graphs.

Forward mode inlines called graphs first, except for recursions, which stay recursions. Reverse mode keeps calls, as
calls of the pullbacks of the called graphs. Both return graphs, so second derivatives are derivatives of derivatives:
the vjp of a jvp is a Hessian-vector product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.errors import InputError, check_known, warn
from bellcrank.graph import derivative, recursion_derivatives
from bellcrank.graph.graph import Array, Graph, mapped_outputs, value_array
from bellcrank.graph.inline import without_calls
from bellcrank.graph.recursion import Recursion
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import Tape

MAX_VARIATION_NUMBERS = 10_000_000  # rates of all directions; more would take minutes and gigabytes

# Operations whose vjp takes more than half a minute, and seconds per operation.
SLOW_VJP_OPERATIONS, COMPILE_SECONDS_PER_OPERATION = 150_000, 2e-4


def jvp(graph: Graph, wrt: Sequence[str] = ()) -> Graph:
    """Return a graph of the outputs y and their rates d_y when inputs x move by d_x.

    Parameters
    ----------
    graph
        The graph.
    wrt
        Inputs that move; all unless given.
    """
    names = _names(graph, wrt)
    for x in names:
        _check_unused(graph, f"d_{x}")
    if isinstance(graph, Recursion):  # the result is a recursion, too: nothing is written out
        return recursion_derivatives.jvp(graph, names)
    g = graph if any(called.opaque for called in graph.calls) else without_calls(graph)
    moving = tangent(g, names)
    return Graph(f"{g.name}.jvp", moving.inputs, {**g.outputs, **moving.outputs}, g.tape)


def tangent(graph: Graph, wrt: Sequence[str] = (), known_tangents: dict[int, Graph] | None = None) -> Graph:
    """Return the graph of the rates d_y alone, with calls of the tangents of the called graphs.

    Nothing is written out, even for a large mechanism.

    Parameters
    ----------
    graph
        The graph.
    wrt
        Inputs that move; all unless given.
    known_tangents
        Tangents created so far, by id of their graph; this call adds its own.
    """
    names = _names(graph, wrt)
    if isinstance(graph, Recursion):
        return recursion_derivatives.tangent(graph, names)
    tangent_of = _tangent_cache({} if known_tangents is None else known_tangents)
    rate_names = recursion_derivatives.rate_names(graph.inputs, names)
    moves = {x: graph.tape.inputs(d, graph.inputs[x]) for x, d in rate_names.items()}
    nodes, rows = graph.nodes, [x for array in graph.outputs.values() for x in array.flat]
    seeds = {
        graph.tape.node("input", x, i).serial: {0: d} for x, array in moves.items() for i, d in enumerate(array.flat)
    }
    rates = iter(derivative.forward_along(nodes, rows, seeds, 1, tangent_of))
    outputs = {
        f"d_{y}": value_array([next(rates)[0] for _ in array.flat], array.shape) for y, array in graph.outputs.items()
    }
    inputs = {**graph.inputs, **{d: graph.inputs[x] for x, d in rate_names.items()}}
    return Graph(f"{graph.name}.tangent", inputs, outputs, graph.tape)


def _tangent_cache(known: dict[int, Graph]) -> Callable[[Graph], Graph]:
    """Return a function that gives the tangent of a called graph and creates it once."""

    def cached_tangent(function: Graph) -> Graph:
        if id(function) not in known:
            known[id(function)] = tangent(function, (), known)
        return known[id(function)]

    return cached_tangent


def vjp(graph: Graph, wrt: Sequence[str] = ()) -> Graph:
    """Return a graph of the gradients g_x of the weighted sum of the outputs y, with weights w_y.

    Parameters
    ----------
    graph
        The graph.
    wrt
        Inputs of the gradient; all unless given.
    """
    g, names = graph, _names(graph, wrt)
    if isinstance(g, Recursion) and (adjoint := recursion_derivatives.vjp(g, names)) is not None:
        return adjoint
    if g.opaque and (operations := g.count().arithmetic) > SLOW_VJP_OPERATIONS:
        warn(
            f"{g.name}: reverse-mode derivatives write out {operations:,} operations one by one, some "
            f"{operations * COMPILE_SECONDS_PER_OPERATION / 60:.0f} minutes to compile. In forward mode (jvp) "
            "identical bodies share code."
        )
    seeds: dict[int, Any] = {}
    for y, array in g.outputs.items():
        for x, w in zip(array.flat, _new_input(g, f"w_{y}", array.shape).flat, strict=True):
            if isinstance(x, Node):
                seeds[x.serial] = seeds[x.serial] + w if x.serial in seeds else w
    back = derivative.reverse_sweep(g.nodes, seeds)
    outputs = {}
    for x in names:
        shape = g.inputs[x]
        places = [g.tape.node("input", x, i).serial for i in range(math.prod(shape))]
        outputs[f"g_{x}"] = value_array([back.get(k, 0.0) for k in places], shape)
    weights = {f"w_{y}": array.shape for y, array in g.outputs.items()}
    return Graph(f"{g.name}.vjp", {**g.inputs, **weights}, outputs, g.tape)


def jacobian(graph: Graph, of: str, wrt: str, mode: str) -> Graph:
    """Return d(of)/d(wrt) as a graph.

    Parameters
    ----------
    graph
        The graph.
    of
        Name of the output.
    wrt
        Name of the input.
    mode
        "forward", "reverse", or "auto", which decides by the sizes.
    """
    _checked_name(graph, of, graph.outputs)
    _checked_name(graph, wrt, graph.inputs)
    check_known("mode", mode, ["auto", *derivative.MODES])
    shape = graph.inputs[wrt]
    columns = list(graph.tape.inputs(wrt, shape).flat)
    rows = list(graph.outputs[of].flat)
    if mode == "auto":
        mode = "reverse" if len(rows) < len(columns) else "forward"
    if mode == "forward" and any(
        g.opaque for g in graph.calls
    ):  # one call per column instead of writing the callee out
        unit_seeds = {x.serial: {j: 1.0} for j, x in enumerate(columns)}
        matrix = _rates_by_calls(graph, rows, unit_seeds, len(columns), _tangent_cache({}))
    else:
        matrix = derivative.MODES[mode](graph.nodes, rows, columns)
    array = value_array([x for row in matrix for x in row], (*graph.outputs[of].shape, *shape))
    name = f"d{of}_d{wrt}"
    return Graph(f"{graph.name}.{name}", graph.inputs, {name: array}, graph.tape)


def varied(graph: Graph, wrt: str, directions: int, others: Mapping[str, Sequence[int]]) -> Graph:
    """Return the graph with its variations.

    Parameters
    ----------
    graph
        The graph.
    wrt
        The input that is followed by its rates.
    directions
        Number of directions.
    others
        For another input, the element that moves at unit speed in each direction (-1: none).
    """
    n = math.prod(graph.inputs[_checked_name(graph, wrt, graph.inputs)])
    if n * directions > MAX_VARIATION_NUMBERS:
        raise InputError(
            f"{graph.name}: directions is {directions}, of {n} numbers each; expected at most "
            f"{MAX_VARIATION_NUMBERS:,} in all."
        )
    for name, elements in others.items():
        size = math.prod(graph.inputs[_checked_name(graph, name, graph.inputs)])
        if len(elements) > directions or any(i >= size for i in elements):
            raise InputError(f"{graph.name}: {name} has {size} elements, and there are {directions} directions.")
    seeds: dict[int, dict[int, Any]] = {}
    for i in range(n):
        moves = {j: graph.tape.node("input", wrt, n + j * n + i) for j in range(directions)}
        seeds[graph.tape.node("input", wrt, i).serial] = dict(moves)
    for name, elements in others.items():
        for j, i in enumerate(elements):
            if i >= 0:
                seeds.setdefault(graph.tape.node("input", name, i).serial, {})[j] = 1.0
    outputs, tangent_of = {}, _tangent_cache({})
    for key, array in graph.outputs.items():
        rows = list(array.flat)
        if graph.calls:
            matrix = _rates_by_calls(graph, rows, seeds, directions, tangent_of)
        else:
            matrix = derivative.forward_along(graph.nodes, rows, seeds, directions)
        flat = [*rows, *(matrix[i][j] for j in range(directions) for i in range(len(rows)))]
        outputs[key] = value_array(flat)
    return Graph(f"{graph.name}.varied", {**graph.inputs, wrt: (n * (1 + directions),)}, outputs, graph.tape)


def _rates_by_calls(
    graph: Graph,
    rows: Sequence[Any],
    seeds: Mapping[int, Mapping[int, Any]],
    directions: int,
    tangent_of: Callable[[Graph], Graph],
) -> list[list[Any]]:
    """Return the rates of the rows, direction by direction, with one tangent call per call and direction."""
    columns = []
    for j in range(directions):
        moving = {k: {0: rates[j]} for k, rates in seeds.items() if j in rates}
        columns.append(derivative.forward_along(graph.nodes, rows, moving, 1, tangent_of))
    return [[x for (x,) in row] for row in zip(*columns, strict=True)]


def along(graph: Graph, moves: Mapping[str, Array], of: Sequence[str]) -> dict[str, Array]:
    """Return the rates of outputs when inputs move.

    Parameters
    ----------
    graph
        The graph.
    moves
        Numbers or nodes, shape (size, directions), for each input that moves.
    of
        Names of the outputs.
    """
    for key in of:
        _checked_name(graph, key, graph.outputs)
    moves = {_checked_name(graph, name, graph.inputs): np.asarray(array) for name, array in moves.items()}
    for name, array in moves.items():
        size = math.prod(graph.inputs[name])
        if array.ndim != 2 or size != len(array):
            raise InputError(
                f"{graph.name}: the directions of {name} have shape {array.shape}; expected ({size}, directions)."
            )
    if not moves:
        raise InputError(f"{graph.name}: no directions given; expected at least one input with its rates.")
    seeds: dict[int, dict[int, Any]] = {}
    for name, array in moves.items():
        for i, row in enumerate(array):
            moving = {j: x for j, x in enumerate(row) if isinstance(x, Node) or x != 0.0}
            seeds[graph.tape.node("input", name, i).serial] = moving
    directions = max(array.shape[1] for array in moves.values())
    rows = [x for key in of for x in graph.outputs[key].flat]
    rates = iter(derivative.forward_along(graph.nodes, rows, seeds, directions))
    results = {}
    for key in of:
        results[key] = np.full((graph.outputs[key].size, directions), 0.0, dtype=object)
        for line in results[key]:
            line[:] = next(rates)
    return results


def sparsity(graph: Graph, of: str, wrt: str) -> Array:
    """Return the mask of entries of d(of)/d(wrt) that may be nonzero, shape (*of, *wrt), by the operations.

    Parameters
    ----------
    graph
        The graph.
    of
        Name of the output.
    wrt
        Name of the input.
    """
    D = without_calls(graph).jacobian(of, wrt)
    (array,) = D.outputs.values()
    return np.array([isinstance(x, Node) or x != 0.0 for x in array.flat]).reshape(array.shape)


def with_known_values(graph: Graph, name: str, nodes: Sequence[Node]) -> Graph:
    """Return the graph with one more input, for values of nodes that the caller knows.

    Parameters
    ----------
    graph
        The graph.
    name
        Name of the new input.
    nodes
        The nodes whose values it holds.
    """
    tape = Tape()
    known: dict[int, Any] = {x.serial: tape.node("input", name, k) for k, x in enumerate(nodes)}
    for node in graph.nodes:
        if node.serial not in known:
            args = [known[a.serial] if isinstance(a, Node) else a for a in node.args]
            known[node.serial] = tape.node(node.op, *args)
    outputs = mapped_outputs(graph, lambda x: known[x.serial])
    return Graph(graph.name, {**graph.inputs, name: (len(nodes),)}, outputs, tape)


def _names(graph: Graph, wrt: Sequence[str]) -> list[str]:
    names = [wrt] if isinstance(wrt, str) else list(wrt) or list(graph.inputs)
    return [_checked_name(graph, name, graph.inputs) for name in names]


def _checked_name(graph: Graph, name: str, names: Mapping[str, Any]) -> str:
    """Return the name if it exists; raise InputError with the known names if not."""
    check_known("input" if names is graph.inputs else "output", name, names, graph.name)
    return name


def _new_input(g: Graph, name: str, shape: tuple[int, ...]) -> Array:
    _check_unused(g, name)
    return g.tape.inputs(name, shape)


def _check_unused(g: Graph, name: str) -> None:
    if name in g.inputs or name in g.shapes:
        raise InputError(f'{g.name}: the name "{name}" is used twice; rename the input or output that has it.')
