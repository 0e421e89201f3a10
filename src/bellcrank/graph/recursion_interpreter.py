"""Interpreters of a recursion, place after place: values with numpy, the nodes of all places, and the critical path.

evaluate    the reference for every target
expand      a graph with one node per operation, for targets without support for recursions
span        the longest dependent path, exact and without writing the recursion out
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.graph.cells import RESULT, Cell, CellOperand, LoopBody, channel_input, channel_output
from bellcrank.graph.graph import Array, Graph, Shape
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import PARAMETERS, SCALAR_OPERATIONS, Tape, topological_order

if TYPE_CHECKING:
    from bellcrank.graph.recursion import Recursion, Run


def evaluate(r: Recursion, arrays: Mapping[str, Array]) -> Array:
    """Return the output of recursion `r` for inputs `arrays`, which may have leading axes."""
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in arrays.values()))
    state = PlaceValues(r, {k: np.broadcast_to(a, (*batch, a.shape[-1])) for k, a in arrays.items()}, batch)
    for run in r.tree.runs:
        state.run_loop([cut.angles for cut in r.cell_loops], run, True)
    state.compute_sines()
    for k, outwards in enumerate(r.outwards):
        for run in r.tree.runs if outwards else reversed(r.tree.runs):
            state.run_loop([cut.bodies[k] for cut in r.cell_loops], run, outwards)
    return state.result.reshape((*batch, *r.shape))


class PlaceValues:
    """Values of all places, as numpy arrays."""

    def __init__(self, r: Recursion, inputs: Mapping[str, Array], batch: Shape) -> None:
        """Allocate the values.

        Parameters
        ----------
        r
            The recursion.
        inputs
            Its inputs, shape (*batch, size), by name.
        batch
            Shape of the leading axes.
        """
        n = len(r.tree.parent)
        self.r, self.inputs, self.batch = r, inputs, batch
        self.stored = np.full((n, max(c.stored_values for c in r.cell_loops), *batch), np.nan)
        self.angles = np.zeros((n, max(c.angle_count for c in r.cell_loops), *batch))
        self.handed = [np.full((n, len(w), *batch), np.nan) for w in r.wanted]
        self.result = np.full((*batch, r.output[1]), np.nan)

    def compute_sines(self) -> None:
        """Compute the sines and cosines of all angles."""
        self.sine, self.cosine = np.sin(self.angles), np.cos(self.angles)

    def run_loop(self, bodies: Sequence[LoopBody], run: Run, forwards: bool) -> None:
        """Run one loop over a run: place by place, or all at once if no place depends on another.

        Parameters
        ----------
        bodies
            The loop body of each cell.
        run
            The run.
        forwards
            Direction of the loop.
        """
        if not self.r.tree.chained:
            self.run_body(bodies[run.cells[0]], run.places_of_cell(0))
            return
        places = range(run.begin, run.end)
        for place in places if forwards else reversed(places):
            self.run_body(bodies[self.r.tree.cell_of_place[place]], np.array([place]))

    def run_body(self, body: LoopBody, places: Array) -> None:
        """Run a loop `body` at some `places` of its cell."""
        if not body.writes:
            return
        x = [self.read(p, places) for p in body.reads]
        columns = np.stack(x, axis=-1) if x else np.zeros((len(places), *self.batch, 0))
        y = np.broadcast_to(body.graph.evaluate(x=columns)["y"], (len(places), *self.batch, len(body.writes)))
        for i, p in enumerate(body.writes):
            self.write(p, places, y[..., i])

    def read(self, p: CellOperand, places: Array) -> Array:
        """Return operand `p` of some `places` of one cell."""
        tree = self.r.tree
        if p.kind == "input":
            return np.moveaxis(self.inputs[p.name][..., tree.elements[p.name][places, p.element]], -1, 0)
        if p.kind == "table":
            column = self.r.tables[tree.cell_of_place[places[0]]][tree.row_of_place[places], p.element]
            return np.broadcast_to(column.reshape((-1, *[1] * len(self.batch))), (len(places), *self.batch))
        if p.kind == "parent":
            places, source = tree.parent[places], self.handed[int(p.name)]
        elif p.kind == "child":
            places, source = tree.children[places, p.child], self.handed[int(p.name)]
        else:
            source = {"kept": self.stored, "sine": self.sine, "cosine": self.cosine}[p.kind]
        values: Array = source[places, p.element]
        return values

    def write(self, p: CellOperand, places: Array, y: Array) -> None:
        """Store the values `y` of operand `p` at `places`."""
        if p.kind == "output":
            self.result[..., self.r.tree.elements[RESULT][places, p.element]] = np.moveaxis(y, 0, -1)
        elif p.kind == "handed":
            self.handed[int(p.name)][places, p.element] = y
        else:
            {"kept": self.stored, "angle": self.angles}[p.kind][places, p.element] = y


def expand(r: Recursion) -> Graph:
    """Return the recursion `r` as one graph of nodes."""
    return _Expansion(r).graph()


class _Expansion:
    """All places on one tape, as one trace of the whole tree would have them."""

    def __init__(self, r: Recursion) -> None:
        self.r, self.tape, n = r, Tape(), len(r.tree.parent)
        self.symbols = {name: self.tape.inputs(name, (math.prod(shape),)) for name, shape in r.inputs.items()}
        self.known: list[dict[Node, Any]] = [{} for _ in range(n)]
        self.sent_values: dict[tuple[int, int], list[Any]] = {}

    def graph(self) -> Graph:
        r, n = self.r, len(self.r.tree.parent)
        for k, outwards in enumerate(r.outwards):
            for i in range(n) if outwards else reversed(range(n)):
                given = zip(self.cell(i).outputs[channel_output(k)].flat, r.wanted[k], strict=True)
                self.sent_values[k, i] = [self.value(i, x) if w else 0.0 for x, w in given]
        out = np.full(r.output[1], 0.0, dtype=object)
        for i in range(n):
            for j, x in enumerate(self.cell(i).outputs[RESULT].flat):
                out[r.tree.elements[RESULT][i, j]] = self.value(i, x)
        return Graph(r.name, r.inputs, {r.output[0]: out.reshape(r.shape)}, self.tape)

    def cell(self, i: int) -> Graph:
        return self.r.cells[int(self.r.tree.cell_of_place[i])].graph

    def value(self, i: int, x: Any) -> Any:
        """Return the counterpart on the new tape of a node of the cell at place i."""
        if not isinstance(x, Node):
            return x
        known_here = self.known[i]
        for n in topological_order(x, known=known_here):
            args = [known_here[a] if isinstance(a, Node) else a for a in n.args]
            known_here[n] = self.input_value(i, *n.args) if n.op == "input" else SCALAR_OPERATIONS[n.op](*args)
        return known_here[x]

    def input_value(self, i: int, name: str, element: int) -> Any:
        r = self.r
        if name == PARAMETERS:
            return float(r.tables[r.tree.cell_of_place[i]][r.tree.row_of_place[i], element])
        if not name.startswith("from"):
            return self.symbols[name][r.tree.elements[name][i, element]]
        channel, _, child = name.removeprefix("from").partition(".")
        source = r.tree.children[i, int(child)] if child else r.tree.parent[i]
        return self.sent_values[int(channel), int(source)][element]


MINUS_INFINITY = -np.inf
MAX_STEP_NUMBERS = 1_000_000  # numbers in the arrays of one step


def span(r: Recursion, weight: Mapping[str, float]) -> float:
    """Return the length of the longest dependent path of recursion `r`, with a `weight` for each operation."""
    widths = [len(w) for w in r.wanted]
    path_lengths = [_path_lengths(cell, widths, weight) for cell in r.cells]
    finish_times = [np.full((len(r.tree.parent), width), MINUS_INFINITY) for width in widths]
    cell_of = r.tree.cell_of_place

    def arrived(places: Array, cell: Cell, channels: int) -> Array:
        """Return the times at which the values received so far are known; the last column is time zero."""
        times = [np.zeros((len(places), 1))]
        for k in reversed(range(channels)):
            if r.outwards[k]:
                times += [] if cell.on_ground else [finish_times[k][r.tree.parent[places]]]
            else:
                times += [finish_times[k][r.tree.children[places, j]] for j in reversed(range(cell.children))]
        return np.concatenate(times[::-1], axis=1)

    def after(places: Array, cell_number: int, output: str, channels: int) -> Array:
        times = arrived(places, r.cells[cell_number], channels)
        matrix = path_lengths[cell_number][output]
        if not len(matrix):
            return np.empty((len(places), 0))
        if times.shape[1] < matrix.shape[1]:
            matrix = np.concatenate([matrix[:, : times.shape[1] - 1], matrix[:, -1:]], axis=1)
        share = max(1, MAX_STEP_NUMBERS // matrix.size)
        parts = [times[i : i + share, None, :] for i in range(0, len(places), share)]
        return np.concatenate([np.max(matrix + part, axis=2) for part in parts])

    for k, outwards in enumerate(r.outwards):
        for places in _independent_places(_depths(r.tree.parent) if outwards else _heights(r.tree.parent), cell_of):
            finish_times[k][places] = after(places, int(cell_of[places[0]]), channel_output(k), k + 1)
    last = [
        after(places, int(cell_of[places[0]]), RESULT, len(widths))
        for places in _independent_places(np.zeros_like(cell_of), cell_of)
    ]
    return max((float(x.max(initial=0.0)) for x in last), default=0.0)


def _independent_places(level: Array, cell_of: Array) -> list[Array]:
    """Group places of one level and one cell, which do not depend on each other; lower levels first."""
    order = np.lexsort((cell_of, level))
    changes = (np.diff(level[order]) != 0) | (np.diff(cell_of[order]) != 0)
    return np.split(order, np.flatnonzero(changes) + 1)


def _depths(parent: Array) -> Array:
    """Return the number of places between each place and the ground."""
    depths: list[int] = []
    for p in parent.tolist():
        depths.append(depths[p] + 1 if p >= 0 else 0)
    return np.array(depths)


def _heights(parent: Array) -> Array:
    """Return the number of places on the longest branch outward of each place."""
    heights, places = [0] * len(parent), parent.tolist()
    for i in reversed(range(len(heights))):
        if (p := places[i]) >= 0 and heights[p] <= heights[i]:
            heights[p] = heights[i] + 1
    return np.array(heights)


def _path_lengths(cell: Cell, widths: list[int], weight: Mapping[str, float]) -> dict[str, Array]:
    """Return for each output the path lengths, shape (its elements, received values and one more for time zero)."""
    column: dict[tuple[str, int], int] = {}
    for k, width in enumerate(widths):
        sources = cell.sources(k)
        assert sources in ([], [channel_input(k)]) or not cell.outwards[k]
        for source in sources:
            for e in range(width):
                column[source, e] = len(column)
    wide = len(column) + 1
    finish: dict[int, Array] = {}
    for node in cell.graph.nodes:
        if node.op == "input":
            finish[node.serial] = np.full(wide, MINUS_INFINITY)
            finish[node.serial][column.get(node.args, wide - 1)] = 0.0
        else:
            finish[node.serial] = weight[node.op] + np.max([finish[a.serial] for a in node.operands], axis=0)
    path_lengths = {}
    for name, array in cell.graph.outputs.items():
        rows = [finish[x.serial] if hasattr(x, "serial") else np.full(wide, MINUS_INFINITY) for x in array.flat]
        path_lengths[name] = np.array(rows).reshape(len(rows), wide)
    return path_lengths
