"""Forward-mode derivative (jvp) of a recursion: a recursion over the same tree.

Each cell becomes its own tangent: a channel carries values followed by their rates. So the derivative of a chain of
thousands of bodies is traced and compiled once per link class, as the chain itself is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bellcrank.graph import derivative
from bellcrank.graph.cells import RESULT, Cell, channel_output
from bellcrank.graph.graph import Graph, Shape, trace, value_array
from bellcrank.graph.recursion import Recursion


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
