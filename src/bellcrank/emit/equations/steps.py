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
    Product,
    Sum,
    Symbol,
    SymbolNames,
    add_sums,
    element_symbol,
    iter_symbols,
    multiply,
    scale,
    sum_of_factor,
)
from bellcrank.graph import Graph, Node
from bellcrank.quoting import identifier

MAX_INLINE_SYMBOLS = 6  # most symbols of an expression that is inlined into another line


SharedSymbol = Callable[[Node], Symbol | None]  # names sines and cosines that other outputs use too


def step_equations(
    graph: Graph, key: str, names: SymbolNames, wave: SharedSymbol
) -> tuple[dict[Symbol, Sum], dict[Index, Sum]]:
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
    rehearsal = _StepWriter(part, SymbolNames(), wave, Counter())  # first pass: finds the labels that need a number
    rehearsal.lines(key)
    return _StepWriter(part, names, wave, rehearsal.seen_labels).lines(key)


def symbol_of(label: str) -> Symbol:
    """Return the symbol of a `label`: F[boom] is F with the index boom."""
    words = [identifier(w).strip("_") for w in re.split(r"\W+", label) if w]
    return Symbol(words[0] if words else "x", tuple(words[1:]))


class _StepWriter:
    """Conversion of a graph's nodes to formulas."""

    def __init__(self, graph: Graph, names: SymbolNames, wave: SharedSymbol, several: Counter[Symbol]) -> None:
        self.graph, self.names, self.wave, self.label_counts = graph, names, wave, several
        self.uses = Counter(a.serial for n in graph.nodes for a in n.operands)
        self.seen_labels = Counter[Symbol]()
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
            return sum_of_factor(element_symbol(node.args[0], self.graph.inputs[node.args[0]], node.args[1]))
        shared = self.wave(node)
        if shared is not None:
            return sum_of_factor(shared)
        formula_sum = self.formula(node, [self.argument(a) for a in node.args])
        simple = len(formula_sum.terms) == 1 and len(list(iter_symbols(formula_sum))) <= 1
        once = self.uses[node.serial] == 1 and len(list(iter_symbols(formula_sum))) <= MAX_INLINE_SYMBOLS
        if simple or once or not self.uses[node.serial]:  # unused values are entries, which have names already
            return formula_sum
        base = symbol_of(node.label)
        self.seen_labels[base] += 1
        symbol = self.names.fresh(base, numbered=self.label_counts[base] > 1)
        self.definitions[symbol] = formula_sum
        return sum_of_factor(symbol)

    def formula(self, node: Node, args: list[Sum]) -> Sum:
        match node.op:
            case "add":
                return add_sums(args[0], args[1])
            case "sub":
                return add_sums(args[0], scale(args[1], -1.0))
            case "neg":
                return scale(args[0], -1.0)
            case "mul":
                return multiply(*args)
        return sum_of_factor(Call(node.op, tuple(args)))
