"""Graph as step-by-step equations: one line for each value that is used again, named after the step that computes it.

    F_boom_1 = 3.2 c_3 + 0.5 s_3

A value that is used once is written where it is used, as long as the line stays short.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import numpy as np

from bellcrank.emit.equations.formula import (
    Call,
    Index,
    Names,
    Product,
    Sum,
    Symbol,
    element,
    plain,
    product,
    scaled,
    symbols,
    total,
)
from bellcrank.graph import Graph, Node
from bellcrank.quoting import identifier

INLINE_SYMBOLS = 6  # most symbols of an expression that is inlined into another line


Wave = Callable[[Node], Symbol | None]  # names sines and cosines that other outputs use too


def working(graph: Graph, key: str, names: Names, wave: Wave) -> tuple[dict[Symbol, Sum], dict[Index, Sum]]:
    """Return (intermediate values, entries) of one output.

    Parameters
    ----------
    graph
        Graph of the output.
    key
        Name of the output.
    names
        Allocator of spellings.
    wave
        Returns the shared symbol of a sine or cosine, if any.
    """
    part = Graph(graph.name, graph.inputs, {key: graph.outputs[key]}, graph.tape)
    rehearsal = _Working(part, Names(), wave, Counter())  # first pass: finds the labels that need a number
    rehearsal.lines(key)
    return _Working(part, names, wave, rehearsal.same).lines(key)


def symbol_of(label: str) -> Symbol:
    """Return the symbol of a `label`: F[boom] is F with the index boom."""
    words = [identifier(w).strip("_") for w in re.split(r"\W+", label) if w]
    return Symbol(words[0] if words else "x", tuple(words[1:]))


class _Working:
    """Conversion of a graph's nodes to formulas."""

    def __init__(self, graph: Graph, names: Names, wave: Wave, several: Counter[Symbol]) -> None:
        self.graph, self.names, self.wave, self.several = graph, names, wave, several
        self.uses = Counter(a.serial for n in graph.nodes for a in n.operands)
        self.same = Counter[Symbol]()
        self.values: dict[int, Sum] = {}
        self.definitions: dict[Symbol, Sum] = {}

    def lines(self, key: str) -> tuple[dict[Symbol, Sum], dict[Index, Sum]]:
        for node in self.graph.nodes:
            self.values[node.serial] = self.value(node)
        array = self.graph.outputs[key]
        indices = np.ndindex(*array.shape)
        return self.definitions, {i: self.argument(x) for i, x in zip(indices, array.flat, strict=True)}

    def argument(self, x: Node | float) -> Sum:
        return self.values[x.serial] if isinstance(x, Node) else Sum((Product(x),) if x else ())

    def value(self, node: Node) -> Sum:
        if node.op == "input":
            return plain(element(node.args[0], self.graph.inputs[node.args[0]], node.args[1]))
        shared = self.wave(node)
        if shared is not None:
            return plain(shared)
        found = self.spelled(node, [self.argument(a) for a in node.args])
        simple = len(found.terms) == 1 and len(list(symbols(found))) <= 1
        once = self.uses[node.serial] == 1 and len(list(symbols(found))) <= INLINE_SYMBOLS
        if simple or once or not self.uses[node.serial]:  # unused values are entries, which have names already
            return found
        base = symbol_of(node.label)
        self.same[base] += 1
        symbol = self.names.fresh(base, numbered=self.several[base] > 1)
        self.definitions[symbol] = found
        return plain(symbol)

    def spelled(self, node: Node, args: list[Sum]) -> Sum:
        match node.op:
            case "add":
                return total(args[0], args[1])
            case "sub":
                return total(args[0], scaled(args[1], -1.0))
            case "neg":
                return scaled(args[0], -1.0)
            case "mul":
                return product(*args)
        return plain(Call(node.op, tuple(args)))
