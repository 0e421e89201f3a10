"""Tracing of the cells of rolled recursions: each class of identical parts is traced once.

The values that neighbouring parts exchange (dynamics/tree_sweeps.py) are made of numbers. Some are
constants, which the receiving cell can fold. They are found by a fixed-point iteration: at first nothing is known, a
body on the ground receives what the ground provides, and every element in which two senders to one class differ becomes
a symbol there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.build.recursion_layout import CONSTANTS_INPUT
from bellcrank.dynamics.shared_coordinates import flatten, unflatten
from bellcrank.dynamics.tree_sweeps import FromChildren, FromParent, Send, SendInwards, Sum
from bellcrank.graph.cells import RESULT, Cell, channel_input, channel_output
from bellcrank.graph.graph import Graph, Shape, value_array
from bellcrank.graph.recursion import PlaceTree
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import Tape
from bellcrank.scalar import step

VARYING = object()


@dataclass(frozen=True)
class CellClass:
    """One link class, as tracing needs it.

    make_body: makes its generator from its elements of the inputs. sizes: their number for each input. column_names:
    those of its table. constant_names: those of its constants that depend on free parameters.
    """

    make_body: Callable[..., Any]
    label: str
    name: str
    sizes: Mapping[str, int]
    column_names: Sequence[str]
    on_ground: bool
    children: int
    constant_names: Sequence[str] = ()


class _CellTape(Tape):
    """A tape on which varying constants are elements of a table row, and free ones elements of an input."""

    def __init__(self, names: Sequence[str], numbers: Sequence[str]) -> None:
        super().__init__(names)
        self.constant_indices = {name: i for i, name in enumerate(numbers)}

    def _parameter(self, leaf: Node) -> Node:
        index = self.constant_indices.get(leaf.args[0])
        return super()._parameter(leaf) if index is None else self.node("input", CONSTANTS_INPUT, index)


def trace_cells(parts: Sequence[CellClass], places: PlaceTree, inputs: Sequence[str]) -> list[Cell]:
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
    return _CellTracer(parts, inputs, _child_classes(places, len(parts))).trace_all()


def _child_classes(places: PlaceTree, groups: int) -> list[set[tuple[int, int]]]:
    """Return for each class the classes of its children, each with the child's position."""
    child_classes: list[set[tuple[int, int]]] = [set() for _ in range(groups)]
    for j in range(places.children.shape[1]):
        has = places.children[:, j] >= 0
        for up, child in np.unique(
            np.stack([places.cell_of_place[has], places.cell_of_place[places.children[has, j]]], axis=1), axis=0
        ).tolist():
            child_classes[up].add((child, j))
    return child_classes


class _CellTracer:
    """Runs the body of every class on symbols, channel by channel."""

    def __init__(
        self, groups: Sequence[CellClass], inputs: Sequence[str], children: Sequence[set[tuple[int, int]]]
    ) -> None:
        self.classes, self.input_names, self.children = groups, inputs, children
        self.tapes = [_CellTape(g.column_names, g.constant_names) for g in groups]
        self.shapes = [{x: (g.sizes[x],) for x in inputs} for g in groups]
        self.symbols = [
            {x: tape.inputs(x, shape) for x, shape in shapes.items()}
            for tape, shapes in zip(self.tapes, self.shapes, strict=True)
        ]
        self.received_values: list[list[Any]] = [[] for _ in groups]  # for each class, by channel
        self.outward_channels: list[bool] = []
        self.channel_widths: list[int] = []

    def trace_all(self) -> list[Cell]:
        while True:
            request = self._next_request(0)
            if request is None:
                break
            self.outward_channels.append(isinstance(request, FromParent))
            self._settle_channel(request)
        return [self._make_cell(k) for k in range(len(self.classes))]

    def _start_body(self, k: int) -> Any:
        step("")
        return self.classes[k].make_body(*(list(x) for x in self.symbols[k].values()))

    def _next_request(self, k: int) -> FromParent | FromChildren | Sum | None:
        """Return the request of the body after everything it has received; None where it has ended."""
        return self._run_body(k, self.received_values[k])[1]

    def _ground_value(self, k: int) -> Any:
        """Return the values that the ground provides to a class on it; its free constants belong to the class."""
        request = self._next_request(k)
        assert isinstance(request, FromParent)
        return request.ground

    def _run_body(self, k: int, received: Sequence[Any]) -> tuple[list[Any], FromParent | FromChildren | Sum | None]:
        """Return the values that the body sends, by channel, and at the end its results; and its next request."""
        running, sent = self._start_body(k), list[Any]()
        request = next(running)
        try:
            for x in received:
                answer = running.send(request.received(x))
                assert isinstance(answer, Send | SendInwards)
                sent.append(answer.value)
                request = next(running)
        except StopIteration as end:
            return [*sent, end.value], None
        return sent, request

    def _settle_channel(self, request: FromParent | FromChildren | Sum) -> None:
        """Find the values that every class receives through one more channel."""
        channel, n = len(self.outward_channels) - 1, len(self.classes)
        outwards = self.outward_channels[channel]
        template: Any = request.ground if isinstance(request, FromParent) else None
        known_constants: dict[tuple[int, int], list[Any]] = {}  # (class, child or -1) -> constants, or VARYING
        if outwards:
            for k, g in enumerate(self.classes):
                if g.on_ground:
                    known_constants[k, -1] = [self.tapes[k].value(x) for x in flatten(self._ground_value(k))]
        waiting = set(range(n))
        while waiting:
            k = next(
                k for k in sorted(waiting) if self._is_ready(k, outwards, known_constants)
            )  # parents, or children, come first
            waiting.discard(k)
            value = self._received_value(k, channel, outwards, template, known_constants)
            sent = self._run_body(k, [*self.received_values[k], value])[0][channel]
            template = sent if template is None else template
            constants = [VARYING if isinstance(x, Node) else float(x) for x in flatten(sent)]
            for other, slot in self._receivers(k, outwards):
                before, after = known_constants.get((other, slot)), constants
                if before is not None:
                    after = [_join_constants(a, b) for a, b in zip(before, constants, strict=True)]
                if before is None or any(a is not b and a != b for a, b in zip(before, after, strict=True)):
                    known_constants[other, slot] = after
                    waiting.add(other)
        self.channel_widths.append(len(list(flatten(template))))
        for k in range(n):
            self.received_values[k].append(self._received_value(k, channel, outwards, template, known_constants))

    def _is_ready(self, k: int, outwards: bool, known: dict[tuple[int, int], list[Any]]) -> bool:
        slots = [-1] if outwards else range(self.classes[k].children)
        return all((k, j) in known for j in slots)

    def _receivers(self, k: int, outwards: bool) -> Iterator[tuple[int, int]]:
        if outwards:
            yield from sorted({(child, -1) for child, _ in self.children[k]})
        else:
            for up, child_slots in enumerate(self.children):
                yield from ((up, j) for child, j in sorted(child_slots) if child == k)

    def _received_value(
        self, k: int, channel: int, outwards: bool, template: Any, known: dict[tuple[int, int], list[Any]]
    ) -> Any:
        """Return the value that class k receives, with symbols for elements that vary."""
        if outwards and self.classes[k].on_ground:
            return unflatten(template, iter(known[k, -1]))
        tape = self.tapes[k]

        def symbols(name: str, constants: Sequence[Any]) -> Any:
            values = (tape.node("input", name, e) if c is VARYING else c for e, c in enumerate(constants))
            return unflatten(template, values)

        if outwards:
            return symbols(channel_input(channel), known[k, -1])
        return [symbols(channel_input(channel, j), known[k, j]) for j in range(self.classes[k].children)]

    def _make_cell(self, k: int) -> Cell:
        g = self.classes[k]
        *sent, result = self._run_body(k, self.received_values[k])[0]
        tape, sent_values = self.tapes[k], {channel_output(i): flatten(x) for i, x in enumerate(sent)}
        outputs = {key: value_array([*map(tape.value, x)]) for key, x in {**sent_values, RESULT: result}.items()}
        cell = Cell(Graph(g.name, {}, {}, tape), tuple(self.outward_channels), g.children, g.on_ground)
        inputs: dict[str, Shape] = dict(self.shapes[k])
        for i, width in enumerate(self.channel_widths):
            inputs |= dict.fromkeys(cell.sources(i), (width,))
        if g.column_names:
            inputs["p"] = (len(g.column_names),)
        if g.constant_names:
            inputs[CONSTANTS_INPUT] = (len(g.constant_names),)
        return Cell(Graph(g.label, inputs, outputs, tape), cell.outwards, g.children, g.on_ground)


def _join_constants(a: Any, b: Any) -> Any:
    return a if a is not VARYING and b is not VARYING and a == b else VARYING
