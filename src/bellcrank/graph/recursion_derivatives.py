"""Derivatives of a recursion in forward mode (jvp) and in reverse mode (vjp): recursions over the same tree.

In forward mode each cell becomes its own tangent: a channel carries values followed by their rates.

In reverse mode the channels of the recursion are followed by the channels of the reverse sweep, the last one first and
each in the opposite direction. A place sends there the derivative of the weighted sum with respect to the values it
received. A parent that sent the same values to all its children adds up their adjoints. All children receive the same
adjoint from their parent, which is right if the parent adds their values, as all methods do; other recursions are not
supported here.

So the derivative of a chain of thousands of bodies is traced and compiled once per link class, as the chain itself is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.graph import derivative
from bellcrank.graph.cells import RESULT, Cell, channel_input, channel_output
from bellcrank.graph.graph import Array, Graph, Shape, trace, value_array
from bellcrank.graph.recursion import Recursion
from bellcrank.nodes.node import Node


def jvp(r: Recursion, names: Sequence[str]) -> Graph:
    """Return a graph of the result y and its rate d_y when each input x of `names` moves by d_x: two calls.

    Parameters
    ----------
    r
        The recursion.
    names
        Inputs that move.
    """
    moving = tangent(r, names)
    y = r.output[0]

    def both(**given: Any) -> dict[str, Any]:
        return {y: r.call(**{x: given[x] for x in r.inputs})[y], f"d_{y}": moving.call(**given)[f"d_{y}"]}

    return trace(f"{r.name}.jvp", both, dict(moving.inputs))


def tangent(r: Recursion, names: Sequence[str]) -> Recursion:
    """Return the recursion of d_y alone, from the inputs and their rates d_x.

    Parameters
    ----------
    r
        The recursion.
    names
        Inputs that move.
    """
    moving = rate_names(r.inputs, names)
    inputs = {**r.inputs, **{d: r.inputs[x] for x, d in moving.items()}}
    elements = {**r.tree.elements, **{d: r.tree.elements[x] for x, d in moving.items()}}
    widths = [r.cells[0].graph.outputs[channel_output(k)].size for k in range(len(r.outwards))]
    cells = [_tangent_cell(cell, moving, widths) for cell in r.cells]
    output, places = (f"d_{r.output[0]}", r.output[1]), replace(r.tree, elements=elements)
    return Recursion(f"{r.name}.tangent", inputs, output, cells, r.tables, places, shape=r.shape)


def rate_names(inputs: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Return the name of the rate of each input: d_x, or dd_x if d_x exists already, as in a tangent.

    Parameters
    ----------
    inputs
        The existing inputs.
    names
        Inputs that move.
    """
    rate_name_of: dict[str, str] = {}
    for x in names:
        name = f"d_{x}"
        while name in inputs or name in rate_name_of.values():
            name = f"d{name}"
        rate_name_of[x] = name
    return rate_name_of


def _tangent_cell(cell: Cell, moving: Mapping[str, str], widths: Sequence[int]) -> Cell:
    """Return the tangent of a cell; it sends twice as many numbers: values, then their rates."""
    g = cell.graph
    wide = {name: widths[k] for k in range(len(widths)) for name in cell.sources(k)}
    seeds = {}
    for n in g.nodes:
        name, element = n.args[:2] if n.op == "input" else ("", 0)
        if name in wide:
            seeds[n.serial] = {0: g.tape.node("input", name, wide[name] + element)}
        elif name in moving:
            seeds[n.serial] = {0: g.tape.node("input", moving[name], element)}
    rows = [x for array in g.outputs.values() for x in array.flat]
    rates = iter([row[0] for row in derivative.forward_along(g.nodes, rows, seeds, 1)])
    outputs = {}
    for key, array in g.outputs.items():
        output_rates = [next(rates) for _ in range(array.size)]
        values = output_rates if key == RESULT else [*array.flat, *output_rates]
        outputs[key] = value_array([g.tape.value(x) for x in values])
    inputs: dict[str, Shape] = {x: (2 * wide[x],) if x in wide else shape for x, shape in g.inputs.items()}
    inputs |= {d: (math.prod(g.inputs[x]),) for x, d in moving.items() if x in g.inputs}
    return replace(cell, graph=Graph(g.name, inputs, outputs, g.tape))


GRADIENT = "g"


def vjp(r: Recursion, names: Sequence[str]) -> Graph | None:
    """Return the graph (inputs x, w_y) -> g_x, or None if a parent does not treat its children alike.

    Parameters
    ----------
    r
        The recursion.
    names
        Inputs x of the gradient.
    """
    weight = f"w_{r.output[0]}"
    cells = [_adjoint_cell(cell, names, weight) for cell in r.cells]
    if r.has_parallel_runs or weight in r.inputs or any(cell is None for cell in cells):
        return None
    inputs = {**r.inputs, weight: r.shape}
    gradient_slots, readers = _slots(r, names)
    elements = {**r.tree.elements, weight: r.tree.elements[RESULT], RESULT: gradient_slots}
    size = int(gradient_slots.max(initial=-1)) + 1
    known = [cell for cell in cells if cell is not None]
    back = Recursion(f"{r.name}.adjoint", inputs, (GRADIENT, size), known, r.tables, replace(r.tree, elements=elements))

    def gradients(**given: Any) -> dict[str, Any]:
        slot_gradients = back.call(**given)[GRADIENT]
        return {f"g_{x}": _sum_slots(readers[x], slot_gradients, r.inputs[x]) for x in names}

    return trace(f"{r.name}.vjp", gradients, inputs)


def _adjoint_cell(cell: Cell, names: Sequence[str], weight: str) -> Cell | None:
    """Return the cell extended by the channels of the reverse sweep; None if its children are not treated alike."""
    g, n = cell.graph, len(cell.outwards)
    widths = [g.outputs[channel_output(k)].size for k in range(n)]
    extended = Cell(g, (*cell.outwards, *(not out for out in reversed(cell.outwards))), cell.children, cell.on_ground)
    seeds: dict[int, Any] = {}

    def matters(x: Any, name: str, element: int) -> None:
        w = g.tape.node("input", name, element)
        seeds[x.serial] = seeds[x.serial] + w if x.serial in seeds else w

    for j, x in enumerate(g.outputs[RESULT].flat):
        if isinstance(x, Node):
            matters(x, weight, j)
    for k in range(n):
        for e, x in enumerate(g.outputs[channel_output(k)].flat):
            for name in extended.sources(2 * n - 1 - k) if isinstance(x, Node) else ():
                matters(x, name, e)
    back = derivative.reverse_sweep(g.nodes, seeds)
    outputs = dict(g.outputs)
    for k, width in enumerate(widths):
        adjoints = [_incoming_adjoint(cell, k, e, back) for e in range(width)]
        if None in adjoints:
            return None
        outputs[channel_output(2 * n - 1 - k)] = value_array([g.tape.value(x) for x in adjoints])
    input_nodes = [g.tape.node("input", x, e) for x in names for e in range(math.prod(g.inputs.get(x, (0,))))]
    outputs[RESULT] = value_array([g.tape.value(back.get(x.serial, 0.0)) for x in input_nodes])
    inputs: dict[str, Shape] = {**g.inputs, weight: (g.outputs[RESULT].size,)}
    for k, width in enumerate(widths):
        inputs |= dict.fromkeys(extended.sources(2 * n - 1 - k), (width,))
    return replace(extended, graph=Graph(g.name, inputs, outputs, g.tape))


def _incoming_adjoint(cell: Cell, k: int, e: int, back: dict[int, Any]) -> Any:
    """Return the adjoint of element e of channel k at its receivers: the same for all children, or None."""
    if cell.outwards[k]:
        return 0.0 if cell.on_ground else back.get(cell.graph.tape.node("input", channel_input(k), e).serial, 0.0)
    symbols = cell.graph.tape.table["input"]
    arrived = [
        symbols[channel_input(k, j), e] for j in range(cell.children) if (channel_input(k, j), e) in symbols
    ]  # else it is constant
    adjoints = {back.get(x.serial, 0.0) for x in arrived} or {0.0}
    return adjoints.pop() if len(adjoints) == 1 else None


def _slots(r: Recursion, names: Sequence[str]) -> tuple[Array, dict[str, list[list[int]]]]:
    """Assign result slots to the gradients.

    Returns the slots of each place, and for every element of an input the slots that add up to its gradient: several
    places may have read it, or none.
    """
    rows: list[list[int]] = [[] for _ in r.tree.parent]
    readers: dict[str, list[list[int]]] = {}
    sizes = [{x: math.prod(cell.graph.inputs.get(x, (0,))) for x in names} for cell in r.cells]
    count = 0
    for x in names:
        readers[x] = [[] for _ in range(math.prod(r.inputs[x]))]
        for i, cell in enumerate(r.tree.cell_of_place.tolist()):
            for element in r.tree.elements[x][i, : sizes[cell][x]].tolist():
                readers[x][element].append(count)
                rows[i].append(count)
                count += 1
    slots = np.full((len(rows), max(1, *map(len, rows))), -1)
    for i, row in enumerate(rows):
        slots[i, : len(row)] = row
    return slots, readers


def _sum_slots(readers: Sequence[Sequence[int]], slot_gradients: Array, shape: Shape) -> Array:
    total = np.full(len(readers), 0.0, dtype=object)
    for i, places in enumerate(readers):
        for k in places:
            total[i] = total[i] + slot_gradients[k]
    return total.reshape(shape)
