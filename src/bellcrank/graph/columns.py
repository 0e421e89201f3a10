"""Parts of a graph in which the same is done for many columns, as calls: the products of an inverse with a matrix.

A trace notes them (scalar.columnwise), and the graph itself has every operation of every column. `condensed` is the
same graph with a call where such a part was, of a `Columns`: one column's graph, for as many as there are. Targets that
make loops of it have less code to fetch, and one state fills the lanes with its columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.graph.graph import Array, Count, Graph, Shape, trace
from bellcrank.nodes.node import Alike, Node, Value
from bellcrank.nodes.tape import Tape
from bellcrank.scalar import step

FEWEST = 3  # columns that are worth a loop
SIDE = 4  # columns side by side that are written together


class Columns(Graph):
    """x[:, k] = body(shared, given[:, k]), for k below `count`."""

    opaque = True

    def __init__(self, body: Graph, count: int) -> None:
        inputs = {"shared": body.inputs["shared"], "given": (*body.inputs["given"], count)}
        self.__dict__.update(name=f"{body.name}s", inputs=inputs, only="", body=body, number=count)

    body: Graph
    number: int

    @property
    def shapes(self) -> dict[str, Shape]:
        return {"x": (*self.body.shapes["x"], self.number)}

    @property
    def calls(self) -> list[Graph]:
        return []

    @property
    def size(self) -> int:
        return self.number * self.body.size

    def count(self) -> Count:
        return Count({kind: self.number * n for kind, n in self.body.count().by_kind.items()})

    def evaluate(self, **values: Any) -> dict[str, Array]:
        shared, given = np.asarray(values["shared"]), np.asarray(values["given"])
        found = self.body.evaluate(shared=shared[..., None, :], given=np.swapaxes(given, -1, -2))
        return {"x": np.swapaxes(found["x"], -1, -2)}

    @cached_property
    def nodes(self) -> list[Node]:
        raise NotImplementedError("a target that takes graphs with columns spells their body")


@dataclass(eq=False)
class _Part:
    """What is live of a note: rows of the results and numbers of the columns that somebody needs."""

    note: Alike
    rows: list[int]
    columns: list[int]

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Which shared numbers and which elements of the columns are inputs: no constants, and used."""
        first, *others = (self.note.columns[k] for k in self.columns)
        moving = [i for i, x in enumerate(first) if isinstance(x, Node) or any(c[i] != x for c in others)]
        every = {"shared": [i for i, x in enumerate(self.note.shared) if isinstance(x, Node)], "given": moving}
        used = {n.args for n in self.traced(every).nodes if n.op == "input"}
        return {name: [i for k, i in enumerate(places) if (name, k) in used] for name, places in every.items()}

    @cached_property
    def inputs(self) -> list[Value]:
        """In the order of the inputs of a Columns."""
        shared, given = self.places.values()
        return [self.note.shared[i] for i in shared] + [self.note.columns[k][i] for i in given for k in self.columns]

    @cached_property
    def last(self) -> int:
        """The serial number of the input that is known last."""
        return max((x.serial for x in self.inputs if isinstance(x, Node)), default=-1)

    def traced(self, places: Mapping[str, Sequence[int]]) -> Graph:
        """What is done for one column, with inputs in these places, and elsewhere the constants of all."""

        def body(**symbols: Sequence[Node]) -> Mapping[str, Any]:
            values = {"shared": _constants(self.note.shared), "given": _constants(self.note.columns[self.columns[0]])}
            for name, mine in places.items():
                for symbol, i in zip(symbols[name], mine, strict=True):
                    values[name][i] = symbol
            found = self.note.body(values["shared"], values["given"])
            return {"x": [found[i] for i in self.rows]}

        return trace("column", body, {name: (len(mine),) for name, mine in places.items()})

    def called(self) -> Columns:
        return Columns(self.traced(self.places), len(self.columns))


def _taken(x: Value | None, live: set[int]) -> bool:
    return isinstance(x, Node) and x.serial in live


def _opposite(x: Value) -> Node | None:
    """What it is the negative of: who adds to a negative is made to subtract from that."""
    return x.operands[0] if isinstance(x, Node) and x.op == "neg" else None


def _constants(values: Sequence[Value]) -> list[Value]:
    return [0.0 if isinstance(x, Node) else x for x in values]


def condensed(graph: Graph, fewest: int = 0, known: bool = False, apart: bool = False) -> Graph:
    """With calls of Columns where that leaves out so many operations; else the graph as it is. known: also for what is
    known by fewer operations one by one. apart: columns that are written in other ways have a call of their own.
    """
    parts = _parts(graph, known, apart) if graph.tape.alike and graph.size > fewest else []
    if not parts:
        return graph
    short = _Condensed(graph, parts)
    return short.graph() if short.spared >= fewest else graph


def _parts(graph: Graph, known: bool, apart: bool) -> list[_Part]:
    live = {n.serial for n in graph.nodes}
    found = []
    for note in (note for note in graph.tape.alike if known or not note.known):
        taken = np.array([[_taken(x, live) or _taken(_opposite(x), live) for x in row] for row in note.found])
        columns, rows = np.flatnonzero(taken.any(axis=1)).tolist(), np.flatnonzero(taken.any(axis=0)).tolist()
        if len(columns) >= FEWEST:
            first = [note.found[k][rows[0]] for k in columns]
            found += [_Part(note, rows, mine) for mine in (_bands(graph, first, columns) if apart else [columns])]
    return found


def _bands(graph: Graph, first: Sequence[Value], columns: Sequence[int]) -> list[list[int]]:
    """Columns whose results lie side by side in an output, `SIDE` of them at least, and the others: those are written
    in other ways. first: of each column, one result.
    """
    at = {x.serial: k for array in graph.outputs.values() for k, x in enumerate(array.flat) if isinstance(x, Node)}
    places = [at.get(x.serial, -1) if isinstance(x, Node) else -1 for x in first]
    if -1 in places:
        return [list(columns)]
    runs: list[list[int]] = []
    for i, place in enumerate(places):
        if i and place == places[i - 1] + 1:
            runs[-1].append(columns[i])
        else:
            runs.append([columns[i]])
    bands = [[k for run in runs if (len(run) >= SIDE) is long for k in run] for long in (True, False)]
    return [band for band in bands if band]


class _Condensed:
    """The graph again on a new tape."""

    def __init__(self, graph: Graph, parts: Sequence[_Part]) -> None:
        self.whole, self.tape = graph, Tape()
        # Of a result, or what it is the negative of, by serial: which part makes it, its place there, and the sign.
        self.home: dict[int, tuple[_Part, int, float]] = {}
        for part in parts:
            for r, i in enumerate(part.rows):
                for c, k in enumerate(part.columns):
                    x, place = part.note.found[k][i], r * len(part.columns) + c
                    if isinstance(x, Node) and x.serial > part.last and x.op != "input":
                        self.home.setdefault(x.serial, (part, place, 1.0))
                    if (y := _opposite(x)) is not None and y.serial > part.last and y.op != "input":
                        self.home.setdefault(y.serial, (part, place, -1.0))
        self.reached: dict[_Part, None] = {}  # parts of which anything is needed
        self.results: dict[_Part, list[Value]] = {}
        self.needed = self._needed()
        self.spared = len(graph.nodes) - len(self.needed)

    def _needed(self) -> set[int]:
        found: set[int] = set()
        stack = [x for array in self.whole.outputs.values() for x in array.flat if isinstance(x, Node)]
        while stack:
            n = stack.pop()
            if n.serial in found:
                continue
            found.add(n.serial)
            if n.serial not in self.home:
                stack.extend(n.operands)
            elif (part := self.home[n.serial][0]) not in self.reached:
                self.reached[part] = None
                stack.extend(x for x in part.inputs if isinstance(x, Node))
        return found

    def graph(self) -> Graph:
        known: dict[int, Any] = {}
        waiting = sorted(self.reached, key=lambda part: part.last)
        for serial in sorted(self.needed):
            while waiting and waiting[0].last < serial:  # as soon as it can, so that little waits in memory
                part = waiting.pop(0)
                given = [known[x.serial] if isinstance(x, Node) else x for x in part.inputs]
                self.results[part] = self.tape.call(part.called(), *given)
            n = self.whole.tape.nodes[serial]
            step(n.label)
            if n.serial in self.home:
                part, place, sign = self.home[n.serial]
                known[n.serial] = sign * self.results[part][place]
            else:
                known[n.serial] = self.tape.node(n.op, *(known[a.serial] if isinstance(a, Node) else a for a in n.args))
        step("")
        outputs = {}
        for name, array in self.whole.outputs.items():
            outputs[name] = np.empty(array.shape, dtype=object)
            for index in np.ndindex(*array.shape):
                x = array[index]
                outputs[name][index] = known[x.serial] if isinstance(x, Node) else x
        return Graph(self.whole.name, self.whole.inputs, outputs, self.tape, self.whole.only)
