"""Tracing of the cells of rolled recursions: each class of identical parts is traced once.

The values that neighbouring parts exchange (dynamics/neighbours.py) are made of numbers. Some are constants, which the
receiving cell can fold. They are found by a fixed-point iteration: at first nothing is known, a body on the ground
receives what the ground provides, and every element in which two senders to one class differ becomes a symbol there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.build.places import NUMBERS
from bellcrank.dynamics.leaves import leaves, rebuilt
from bellcrank.dynamics.neighbours import FromChildren, FromParent, Hands
from bellcrank.graph.cells import RESULT, Cell, handed, taken
from bellcrank.graph.graph import Graph, Shape
from bellcrank.graph.recursion import Tree as Places
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import Tape
from bellcrank.scalar import step

Array = np.ndarray[Any, Any]
VARIES = object()


@dataclass(frozen=True)
class Part:
    """One link class, as tracing needs it.

    start: makes its generator from its elements of the inputs. sizes: their number for each input. names: of the
    columns of its table. numbers: names of its constants that depend on free parameters.
    """

    start: Callable[..., Any]
    label: str
    name: str
    sizes: Mapping[str, int]
    names: Sequence[str]
    on_ground: bool
    children: int
    numbers: Sequence[str] = ()


class _CellTape(Tape):
    """A tape on which varying constants are elements of a table row, and free ones elements of an input."""

    def __init__(self, names: Sequence[str], numbers: Sequence[str]) -> None:
        super().__init__(names)
        self.numbers = {name: i for i, name in enumerate(numbers)}

    def _parameter(self, leaf: Node) -> Node:
        at = self.numbers.get(leaf.args[0])
        return super()._parameter(leaf) if at is None else self.node("input", NUMBERS, at)


def traced(parts: Sequence[Part], places: Places, inputs: Sequence[str]) -> list[Cell]:
    """Return the traced cell of every class.

    Parameters
    ----------
    parts
        The classes.
    places
        Order and tree of the bodies.
    inputs
        Names of the inputs.
    """
    return _Tracing(parts, inputs, _neighbours(places, len(parts))).cells()


def _neighbours(places: Places, groups: int) -> list[set[tuple[int, int]]]:
    """Return for each class the classes of its children, each with the child's position."""
    of = np.empty(len(places.parent), int)
    for run in places.runs:
        of[run.begin : run.end] = run.cells * run.repeats
    found: list[set[tuple[int, int]]] = [set() for _ in range(groups)]
    for j in range(places.children.shape[1]):
        has = places.children[:, j] >= 0
        for up, child in np.unique(np.stack([of[has], of[places.children[has, j]]], axis=1), axis=0).tolist():
            found[up].add((child, j))
    return found


class _Tracing:
    """Runs the body of every class on symbols, channel by channel."""

    def __init__(self, groups: Sequence[Part], inputs: Sequence[str], children: Sequence[set[tuple[int, int]]]) -> None:
        self.groups, self.names, self.children = groups, inputs, children
        self.tapes = [_CellTape(g.names, g.numbers) for g in groups]
        self.shapes = [{x: (g.sizes[x],) for x in inputs} for g in groups]
        self.symbols = [
            {x: tape.inputs(x, shape) for x, shape in shapes.items()}
            for tape, shapes in zip(self.tapes, self.shapes, strict=True)
        ]
        self.received: list[list[Any]] = [[] for _ in groups]  # for each class, by channel
        self.outwards: list[bool] = []
        self.widths: list[int] = []

    def cells(self) -> list[Cell]:
        while True:
            asked = self._asked(0)
            if asked is None:
                break
            self.outwards.append(isinstance(asked, FromParent))
            self._settle(asked)
        return [self._cell(k) for k in range(len(self.groups))]

    def _start(self, k: int) -> Any:
        step("")
        return self.groups[k].start(*(list(x) for x in self.symbols[k].values()))

    def _asked(self, k: int) -> FromParent | FromChildren | None:
        """Return the request of the body after everything it has received; None where it has ended."""
        running, asked = self._start(k), None
        asked = next(running)
        try:
            for x in self.received[k]:
                asked = running.send(x)
                assert isinstance(asked, Hands)
                asked = next(running)
        except StopIteration:
            return None
        return asked  # type: ignore[no-any-return]

    def _ground(self, k: int) -> Any:
        """Return the values that the ground provides to a class on it; its free constants belong to the class."""
        asked = self._asked(k)
        assert isinstance(asked, FromParent)
        return asked.ground

    def _given(self, k: int, more: Sequence[Any]) -> list[Any]:
        """Return the values that the body hands on, by channel, and at the end its results."""
        running, given = self._start(k), list[Any]()
        next(running)
        try:
            for x in [*self.received[k], *more]:
                asked = running.send(x)
                assert isinstance(asked, Hands)
                given.append(asked.value)
                next(running)
        except StopIteration as end:
            given.append(end.value)
        return given

    def _settle(self, asked: FromParent | FromChildren) -> None:
        """Find the values that every class receives through one more channel."""
        channel, n = len(self.outwards) - 1, len(self.groups)
        outwards = self.outwards[channel]
        like: Any = asked.ground if isinstance(asked, FromParent) else None
        known: dict[tuple[int, int], list[Any]] = {}  # (class, child or -1) -> constants, or VARIES
        if outwards:
            for k, g in enumerate(self.groups):
                if g.on_ground:
                    known[k, -1] = [self.tapes[k].value(x) for x in leaves(self._ground(k))]
        waiting = set(range(n))
        while waiting:
            k = next(k for k in sorted(waiting) if self._ready(k, outwards, known))  # parents, or children, come first
            waiting.discard(k)
            value = self._value(k, channel, outwards, like, known)
            given = self._given(k, [value])[channel]
            like = given if like is None else like
            mine = [VARIES if isinstance(x, Node) else float(x) for x in leaves(given)]
            for other, slot in self._receivers(k, outwards):
                before = known.get((other, slot))
                after = mine if before is None else [_joined(a, b) for a, b in zip(before, mine, strict=True)]
                if before is None or any(a is not b and a != b for a, b in zip(before, after, strict=True)):
                    known[other, slot] = after
                    waiting.add(other)
        self.widths.append(len(list(leaves(like))))
        for k in range(n):
            self.received[k].append(self._value(k, channel, outwards, like, known))

    def _ready(self, k: int, outwards: bool, known: dict[tuple[int, int], list[Any]]) -> bool:
        slots = [-1] if outwards else range(self.groups[k].children)
        return all((k, j) in known for j in slots)

    def _receivers(self, k: int, outwards: bool) -> Iterator[tuple[int, int]]:
        if outwards:
            yield from sorted({(child, -1) for child, _ in self.children[k]})
        else:
            for up, mine in enumerate(self.children):
                yield from ((up, j) for child, j in sorted(mine) if child == k)

    def _value(self, k: int, channel: int, outwards: bool, like: Any, known: dict[tuple[int, int], list[Any]]) -> Any:
        """Return the value that class k receives, with symbols for elements that vary."""
        if outwards and self.groups[k].on_ground:
            return rebuilt(like, iter(known[k, -1]))
        tape = self.tapes[k]

        def symbols(name: str, constants: Sequence[Any]) -> Any:
            values = (tape.node("input", name, e) if c is VARIES else c for e, c in enumerate(constants))
            return rebuilt(like, values)

        if outwards:
            return symbols(taken(channel), known[k, -1])
        return [symbols(taken(channel, j), known[k, j]) for j in range(self.groups[k].children)]

    def _cell(self, k: int) -> Cell:
        g = self.groups[k]
        *given, result = self._given(k, [])
        outputs = {handed(i): _array(list(leaves(x))) for i, x in enumerate(given)} | {RESULT: _array(list(result))}
        tape = self.tapes[k]
        outputs = {key: _array([tape.value(x) for x in array]) for key, array in outputs.items()}
        cell = Cell(Graph(g.name, {}, {}, tape), tuple(self.outwards), g.children, g.on_ground)
        inputs: dict[str, Shape] = dict(self.shapes[k])
        for i, width in enumerate(self.widths):
            inputs |= dict.fromkeys(cell.sources(i), (width,))
        if g.names:
            inputs["p"] = (len(g.names),)
        if g.numbers:
            inputs[NUMBERS] = (len(g.numbers),)
        return Cell(Graph(g.label, inputs, outputs, tape), cell.outwards, g.children, g.on_ground)


def _joined(a: Any, b: Any) -> Any:
    return a if a is not VARIES and b is not VARIES and a == b else VARIES


def _array(values: Sequence[Any]) -> Array:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
