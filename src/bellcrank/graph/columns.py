"""Outlining of repeated columns: calls of one column graph where a trace did the same for many columns.

Products of an inverse with a matrix are the main case. A trace records them (scalar.columnwise), and the graph itself
has every operation of every column. `outline_columns` returns the same graph with a call of `ColumnGraph` in place of
such a part: a loop over the columns (loops/column_loop.py). Targets that emit it have less code to fetch, and the
columns of one state fill the vector lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.graph.graph import Array, Count, Graph, Shape, mapped_outputs, structure, trace
from bellcrank.graph.inline import without_calls
from bellcrank.graph.loop_graph import LoopGraph
from bellcrank.graph.loops.column_loop import ColumnLoop, column_loop
from bellcrank.graph.loops.statements import LoopProgram
from bellcrank.nodes.node import ColumnwiseNote, Node, Value
from bellcrank.nodes.tape import Tape
from bellcrank.scalar import step

MIN_COLUMNS = 3  # columns; fewer are not worth a loop
MIN_ADJACENT_COLUMNS = 4  # adjacent columns that are stored together


class ColumnGraph(LoopGraph):
    """x[:, k] = y of the graph of the `loop` from (shared, given[:, k]), for every column k."""

    loop: ColumnLoop

    def __init__(self, loop: ColumnLoop) -> None:
        inputs: dict[str, Shape] = {"shared": (loop.shared,), "given": (loop.rows, loop.number)}
        super().__init__(f"{loop.graph.name}s", inputs, {"x": (*loop.graph.shapes["y"], loop.number)}, loop=loop)

    def loops(self) -> LoopProgram:
        """Return the loop over all columns."""
        return LoopProgram((self.loop,), {}, {}, {})

    @property
    def extent(self) -> str:
        """Number of columns, for messages."""
        return f"{self.loop.number} columns"

    def code_key(self, known: dict[int, Any]) -> tuple[Any, ...]:
        """Return the number of columns, that of shared elements, and the code of one; `known` as in `structure`."""
        return type(self).__name__, self.loop.number, self.loop.shared, structure(self.loop.graph, known)

    def write_out(self) -> Graph:
        """Return the graph of all columns, one after the other."""

        def columns(shared: Array, given: Array) -> dict[str, Any]:
            return {"x": np.stack([self.loop.graph.call(x=[*shared, *x])["y"] for x in given.T], axis=-1)}

        return without_calls(trace(self.name, columns, self.inputs))

    def count(self) -> Count:
        """Count the operations of all columns."""
        return Count({kind: self.loop.number * n for kind, n in self.loop.graph.count().by_kind.items()})


@dataclass(eq=False)
class _LiveColumns:
    """The live part of one recorded computation: the result rows and the columns that are used."""

    note: ColumnwiseNote
    rows: list[int]
    columns: list[int]

    @cached_property
    def places(self) -> list[tuple[bool, int]]:
        """Inputs of a column, (whether it is its own, index): used, and not the same constant in all columns.

        Shared ones come first.
        """
        first, *others = (self.note.columns[k] for k in self.columns)
        moving = [i for i, x in enumerate(first) if isinstance(x, Node) or any(c[i] != x for c in others)]
        every = [(False, i) for i, x in enumerate(self.note.shared) if isinstance(x, Node)]
        every += [(True, i) for i in moving]
        used = {n.args[1] for n in self.trace_column(every).nodes if n.op == "input"}
        return [place for k, place in enumerate(every) if k in used]

    @cached_property
    def inputs(self) -> list[Value]:
        """Values of the inputs of the Columns, in its order."""
        columns = [self.note.columns[k] for k in self.columns]
        rows = [[c[i] for c in columns] if own else [self.note.shared[i]] for own, i in self.places]
        return [x for row in rows for x in row]

    @cached_property
    def last_input(self) -> int:
        """Serial number of the input that is created last."""
        return max((x.serial for x in self.inputs if isinstance(x, Node)), default=-1)

    def trace_column(self, places: Sequence[tuple[bool, int]]) -> Graph:
        """Trace one column with inputs at these places; the other places hold constants common to all columns."""

        def body(x: Sequence[Node]) -> dict[str, list[Value]]:
            values = _constants(self.note.shared), _constants(self.note.columns[self.columns[0]])
            for symbol, (own, i) in zip(x, places, strict=True):
                values[own][i] = symbol
            results = self.note.body(*values)
            return {"y": [results[i] for i in self.rows]}

        return trace("column", body, {"x": (len(places),)})

    def column_graph(self) -> ColumnGraph:
        shared = sum(not own for own, _ in self.places)
        return ColumnGraph(column_loop(self.trace_column(self.places), shared, len(self.columns)))


def _is_live(x: Value | None, live: set[int]) -> bool:
    return isinstance(x, Node) and x.serial in live


def _negated_operand(x: Value) -> Node | None:
    """Return the operand of a negation: the trace subtracts that operand instead of adding its negative."""
    return x.operands[0] if isinstance(x, Node) and x.op == "neg" else None


def _constants(values: Sequence[Value]) -> list[Value]:
    return [0.0 if isinstance(x, Node) else x for x in values]


def outline_columns(graph: Graph, fewest: int = 0, known: bool = False, apart: bool = False) -> Graph:
    """Replace repeated columns by calls of Columns where that saves enough operations.

    Parameters
    ----------
    graph
        The graph; returned unchanged if too little is saved.
    fewest
        Number of nodes that must be saved.
    known
        Include computations that take fewer operations column by column.
    apart
        Give a call of its own to each set of columns that is stored differently.
    """
    parts = _live_columns(graph, known, apart) if graph.tape.columnwise_notes and graph.size > fewest else []
    if not parts:
        return graph
    outlined = _Outlining(graph, parts)
    return outlined.graph() if outlined.saved_nodes >= fewest else graph


def _live_columns(graph: Graph, known: bool, apart: bool) -> list[_LiveColumns]:
    live = {n.serial for n in graph.nodes}
    parts = []
    for note in (note for note in graph.tape.columnwise_notes if known or not note.fewer_operations_known):
        live_results = np.array(
            [[_is_live(x, live) or _is_live(_negated_operand(x), live) for x in row] for row in note.results]
        )
        columns, rows = (np.flatnonzero(live_results.any(axis=axis)).tolist() for axis in (1, 0))
        if len(columns) >= MIN_COLUMNS:
            first = [note.results[k][rows[0]] for k in columns]
            parts += [
                _LiveColumns(note, rows, band) for band in (_bands(graph, first, columns) if apart else [columns])
            ]
    return parts


def _bands(graph: Graph, first: Sequence[Value], columns: Sequence[int]) -> list[list[int]]:
    """Split columns into those whose results are adjacent in an output and the others.

    Adjacent are runs of at least MIN_ADJACENT_COLUMNS. The two sets are stored differently. first: one result of each
    column.
    """
    positions = {
        x.serial: k for array in graph.outputs.values() for k, x in enumerate(array.flat) if isinstance(x, Node)
    }
    places = [positions.get(x.serial, -1) if isinstance(x, Node) else -1 for x in first]
    if -1 in places:
        return [list(columns)]
    runs: list[list[int]] = []
    for i, place in enumerate(places):
        if i and place == places[i - 1] + 1:
            runs[-1].append(columns[i])
        else:
            runs.append([columns[i]])
    bands = [[k for run in runs if (len(run) >= MIN_ADJACENT_COLUMNS) is long for k in run] for long in (True, False)]
    return [band for band in bands if band]


class _Outlining:
    """The outlined graph, built on a new tape."""

    def __init__(self, graph: Graph, parts: Sequence[_LiveColumns]) -> None:
        self.original, self.tape = graph, Tape()
        # For each result, or the operand it negates, by serial: the part that computes it, its index, the sign.
        self.result_location: dict[int, tuple[_LiveColumns, int, float]] = {}
        for part in parts:
            for r, i in enumerate(part.rows):
                for c, k in enumerate(part.columns):
                    x, place = part.note.results[k][i], r * len(part.columns) + c
                    if isinstance(x, Node) and x.serial > part.last_input and x.op != "input":
                        self.result_location.setdefault(x.serial, (part, place, 1.0))
                    if (y := _negated_operand(x)) is not None and y.serial > part.last_input and y.op != "input":
                        self.result_location.setdefault(y.serial, (part, place, -1.0))
        self.used_parts: dict[_LiveColumns, None] = {}  # parts with a result that is needed
        self.results: dict[_LiveColumns, list[Value]] = {}
        self.needed = self._needed()
        self.saved_nodes = len(graph.nodes) - len(self.needed)

    def _needed(self) -> set[int]:
        needed: set[int] = set()
        stack = [x for array in self.original.outputs.values() for x in array.flat if isinstance(x, Node)]
        while stack:
            n = stack.pop()
            if n.serial in needed:
                continue
            needed.add(n.serial)
            if n.serial not in self.result_location:
                stack.extend(n.operands)
            elif (part := self.result_location[n.serial][0]) not in self.used_parts:
                self.used_parts[part] = None
                stack.extend(x for x in part.inputs if isinstance(x, Node))
        return needed

    def graph(self) -> Graph:
        known: dict[int, Any] = {}
        waiting = sorted(self.used_parts, key=lambda part: part.last_input)
        for serial in sorted(self.needed):
            while waiting and waiting[0].last_input < serial:  # as early as possible, to keep live ranges short
                part = waiting.pop(0)
                given = [known[x.serial] if isinstance(x, Node) else x for x in part.inputs]
                self.results[part] = self.tape.call(part.column_graph(), *given)
            n = self.original.tape.nodes[serial]
            step(n.label)
            if n.serial in self.result_location:
                part, place, sign = self.result_location[n.serial]
                known[n.serial] = sign * self.results[part][place]
            else:
                known[n.serial] = self.tape.node(n.op, *(known[a.serial] if isinstance(a, Node) else a for a in n.args))
        step("")
        outputs = mapped_outputs(self.original, lambda x: known[x.serial])
        return Graph(self.original.name, self.original.inputs, outputs, self.tape, self.original.only)
