"""Graph to a readable sheet of equations.

Each output is expanded to a trigonometric polynomial, or, where that would be too long to read, written in the steps of
the graph; the sheet notes which.

    Graph --walk--> polynomials --grouping--> harmonics --collected--> formulas --> Sheet; a Language spells it

The steps are one line for each value that is used again, named after the step that computes it. A value that is used
once is written where it is used, as long as the line stays short:

    F_boom_1 = 3.2 c_3 + 0.5 s_3
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from keyword import kwlist
from typing import Any

import numpy as np

from bellcrank.emit.equations.formula import (
    Block,
    Call,
    ElementSymbols,
    Index,
    Product,
    Sheet,
    Sum,
    Symbol,
    SymbolNames,
    add_sums,
    iter_symbols,
    multiply,
    scale,
    sum_of_factor,
)
from bellcrank.emit.equations.formula_writer import FormulaWriter
from bellcrank.emit.equations.polynomial import (
    MAX_TERMS,
    POLYNOMIAL,
    Polynomial,
    Ring,
    constant,
    group_angles,
    product_to_sum,
)
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import OPS
from bellcrank.quoting import identifier

Array = np.ndarray[Any, Any]
Entries = dict[Index, Polynomial | None]
SharedSymbol = Callable[[Node], Symbol | None]  # names sines and cosines that other outputs use too
MAX_INLINE_SYMBOLS = 6  # most symbols of an expression that is inlined into another line

RESERVED = ("pi", "array", "symbols", "Matrix", "Rational", "Piecewise", "Min", "Max", "Abs")  # imports of targets
MAX_ENTRY_TERMS = 60  # terms of an entry that is still readable
GROUPING_TERMS = 2_000  # terms of the shortest entries on which the choice of groups is based


@dataclass(frozen=True)
class KnownSymbols:
    """Symbols that steps may use: of inputs, and of sines and cosines."""

    elements: ElementSymbols
    wave: SharedSymbol


def step_equations(
    graph: Graph, key: str, names: SymbolNames, symbols: KnownSymbols
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
    symbols
        Symbols that are known already.
    """
    part = Graph(graph.name, graph.inputs, {key: graph.outputs[key]}, graph.tape)
    rehearsal = _StepWriter(part, SymbolNames(), symbols, Counter())  # first pass: finds labels that need a number
    rehearsal.lines(key)
    return _StepWriter(part, names, symbols, rehearsal.seen_labels).lines(key)


def symbol_of(label: str) -> Symbol:
    """Return the symbol of a `label`: F[boom] is F with the index boom."""
    words = [identifier(w).strip("_") for w in re.split(r"\W+", label) if w]
    return Symbol(words[0] if words else "x", tuple(words[1:]))


class _StepWriter:
    """Conversion of a graph's nodes to formulas."""

    def __init__(self, graph: Graph, names: SymbolNames, symbols: KnownSymbols, several: Counter[Symbol]) -> None:
        self.graph, self.names, self.symbols, self.label_counts = graph, names, symbols, several
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
            return sum_of_factor(self.symbols.elements(node.args[0], node.args[1]))
        shared = self.symbols.wave(node)
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


def build_sheet(
    graph: Graph,
    name: str,
    title: str,
    outputs: Mapping[str, tuple[str, tuple[str, ...]]],
    relation: str = "",
    columns: Mapping[str, Sequence[str]] | None = None,
    remarks: tuple[str, ...] = (),
    longest: int = MAX_ENTRY_TERMS,
    elements: ElementSymbols | None = None,
) -> Sheet:
    """Return the sheet of equations of a graph.

    An input with the name of an output stands for that output: E_31 = C_13/det where C is both. It is no argument of
    the printed functions.

    Parameters
    ----------
    graph
        Graph with the outputs to print.
    name
        Name of the sheet.
    title
        Title.
    outputs
        Description and input names of each output.
    relation
        Relation between the outputs ("M a + h = tau").
    columns
        Names of the elements of inputs.
    remarks
        Remarks to print.
    longest
        Most terms of an entry; outputs with longer entries are written in steps.
    elements
        Symbols of the inputs' elements; by default q_1, q_2, ...
    """
    elements = elements or ElementSymbols(graph.inputs)
    ring = Ring()
    values = ring.node_polynomials(graph)
    ring.angles.sort(key=lambda pair: max(m for m, _ in ring.generators[pair[0]].args[0]))
    written = {key: _entries(array, values) for key, array in graph.outputs.items()}
    polynomials = sorted((p for e in written.values() for p in e.values() if p), key=len)
    lengths = accumulate(map(len, polynomials))
    groups = group_angles(ring, [p for p, so_far in zip(polynomials, lengths, strict=True) if so_far <= GROUPING_TERMS])
    writer = FormulaWriter(ring, groups, elements, SymbolNames(taken_names(graph, elements)))
    worked: dict[Symbol, Sum] = {}
    arguments = {name: shape for name, shape in graph.inputs.items() if name not in graph.outputs}
    blocks = []
    for key, entries in written.items():
        lines, block = _block(graph, key, outputs[key], entries, values, writer, longest)
        blocks.append(block)
        worked |= lines
        if key in graph.inputs:
            worked |= {block.symbol(index): x for index, x in block.entries.items()}
    definitions = writer.definitions() | worked
    remarks += writer.remarks
    return Sheet(name, title, arguments, definitions, tuple(blocks), relation, columns or {}, remarks, elements)


def _block(
    graph: Graph,
    key: str,
    output: tuple[str, tuple[str, ...]],
    entries: Entries,
    values: Mapping[int, Polynomial | None],
    writer: FormulaWriter,
    longest: int,
) -> tuple[dict[Symbol, Sum], Block]:
    """Return (intermediate values, block) of one output, as polynomials or in steps."""
    shape = graph.outputs[key].shape
    symmetric = len(shape) == 2 and _symmetric(graph.outputs[key])
    known_terms = {i: product_to_sum(writer.ring, writer.groups, p) for i, p in entries.items() if p is not None}
    most = max(map(len, known_terms.values()), default=0)
    note = _steps_reason(graph, key, len(known_terms) < len(entries), most, longest)
    lines: dict[Symbol, Sum] = {}
    if note:
        known = KnownSymbols(writer.elements, lambda n: _shared_symbol(writer, values[n.serial], n))
        lines, sums = step_equations(graph, key, writer.names, known)
    else:
        sums = writer.collect_entries(key, known_terms, _collected_inputs(graph))
    if symmetric:
        sums = {i: x for i, x in sums.items() if i[0] <= i[1]}
    return lines, Block(key, shape, sums, symmetric, *output, note)


def taken_names(graph: Graph, elements: ElementSymbols | None = None) -> set[str]:
    """Return the spellings of inputs and outputs, and the words of the languages.

    Parameters
    ----------
    graph
        Graph to print.
    elements
        Symbols of the inputs' elements; by default q_1, q_2, ...
    """
    elements = elements or ElementSymbols(graph.inputs)
    outputs = ElementSymbols({key: a.shape for key, a in graph.outputs.items()})
    spelled = {
        str(table(name, i))
        for table in (elements, outputs)
        for name, shape in table.inputs.items()
        for i in range(int(np.prod(shape)))
    }
    return spelled.union(graph.inputs, graph.outputs, OPS, kwlist, RESERVED)


def _entries(array: Array, values: Mapping[int, Polynomial | None]) -> Entries:
    flat = (values[x.serial] if isinstance(x, Node) else constant(x) for x in array.flat)
    return dict(zip(np.ndindex(*array.shape), flat, strict=True))


def _symmetric(array: Array) -> bool:
    if array.shape[0] != array.shape[1]:
        return False
    pairs = ((array[i], array[i[::-1]]) for i in np.ndindex(*array.shape))
    return all(a is b or (isinstance(a, float) and a == b) for a, b in pairs)


def _steps_reason(graph: Graph, key: str, unknown: bool, most: int, longest: int) -> str:
    """Return the reason why an output is written in steps; empty if it is not."""
    part = Graph(graph.name, graph.inputs, {key: graph.outputs[key]}, graph.tape)
    other = sorted({n.op for n in part.nodes} - {*POLYNOMIAL})
    if unknown and other:
        return f"written in steps, because it is not a polynomial ({', '.join(other)})"
    if unknown or most > longest:
        count = f"more than {MAX_TERMS}" if unknown else str(most)
        return f"written in steps, because one entry alone would have {count} terms"
    return ""


def _collected_inputs(graph: Graph) -> Collection[str]:
    """Return all inputs but the first, the configuration."""
    return list(graph.inputs)[1:]


def _shared_symbol(writer: FormulaWriter, value: Polynomial | None, node: Node) -> Symbol | None:
    """Return the shared symbol of a sine or cosine whose angle is a polynomial."""
    if node.op not in ("sin", "cos") or value is None:
        return None
    ((generator, _),) = writer.ring.powers(*value)
    factor = writer.factor(generator)
    return factor if isinstance(factor, Symbol) else None
