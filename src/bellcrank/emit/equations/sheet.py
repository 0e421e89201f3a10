"""Graph to a readable sheet of equations.

Each output is expanded to a trigonometric polynomial, or, where that would be too long to read, written in the steps of
the graph; the sheet notes which.

    Graph --walk--> polynomials --grouping--> harmonics --collected--> formulas --> Sheet; a Language spells it
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from keyword import kwlist
from typing import Any

import numpy as np

from bellcrank.emit.equations import steps
from bellcrank.emit.equations.formula import Block, Index, Sheet, Sum, Symbol, SymbolNames, element_symbol
from bellcrank.emit.equations.formula_writer import FormulaWriter
from bellcrank.emit.equations.harmonics import group_angles, product_to_sum
from bellcrank.emit.equations.polynomial import MAX_TERMS, POLYNOMIAL, Polynomial, Ring, constant
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import OPS

RESERVED = ("pi", "array", "symbols", "Matrix", "Rational", "Piecewise", "Min", "Max", "Abs")  # imports of targets
MAX_ENTRY_TERMS = 60  # terms of an entry that is still readable
GROUPING_TERMS = 2_000  # terms of the shortest entries on which the choice of groups is based

Array = np.ndarray[Any, Any]
Entries = dict[Index, Polynomial | None]


def build_sheet(
    graph: Graph,
    name: str,
    title: str,
    outputs: Mapping[str, tuple[str, tuple[str, ...]]],
    relation: str = "",
    columns: Mapping[str, Sequence[str]] | None = None,
    remarks: tuple[str, ...] = (),
    longest: int = MAX_ENTRY_TERMS,
) -> Sheet:
    """Return the sheet of equations of a graph.

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
    """
    ring = Ring()
    values = ring.node_polynomials(graph)
    ring.angles.sort(key=lambda pair: max(m for m, _ in ring.generators[pair[0]].args[0]))
    written = {key: _entries(array, values) for key, array in graph.outputs.items()}
    polynomials = sorted((p for e in written.values() for p in e.values() if p), key=len)
    lengths = accumulate(map(len, polynomials))
    groups = group_angles(ring, [p for p, so_far in zip(polynomials, lengths, strict=True) if so_far <= GROUPING_TERMS])
    names = SymbolNames({*_identifiers(graph), *OPS, *kwlist, *RESERVED})
    writer = FormulaWriter(ring, groups, graph.inputs, names)
    worked: dict[Symbol, Sum] = {}
    blocks = []
    for key, entries in written.items():
        shape = graph.outputs[key].shape
        symmetric = len(shape) == 2 and _symmetric(graph.outputs[key])
        known_terms = {i: product_to_sum(ring, groups, p) for i, p in entries.items() if p is not None}
        most = max(map(len, known_terms.values()), default=0)
        note = _steps_reason(graph, key, len(known_terms) < len(entries), most, longest)
        if note:
            lines, entry_sums = steps.step_equations(
                graph, key, names, lambda n: _shared_symbol(writer, values[n.serial], n)
            )
            worked |= lines
        else:
            entry_sums = writer.collect_entries(key, known_terms, _collected_inputs(graph))
        if symmetric:
            entry_sums = {i: x for i, x in entry_sums.items() if i[0] <= i[1]}
        blocks.append(Block(key, shape, entry_sums, symmetric, *outputs[key], note))
    definitions = writer.definitions() | worked
    remarks += writer.remarks
    return Sheet(name, title, graph.inputs, definitions, tuple(blocks), relation, columns or {}, remarks)


def _identifiers(graph: Graph) -> Collection[str]:
    """Return the identifiers of inputs and outputs."""
    shapes = [*graph.inputs.items(), *((key, a.shape) for key, a in graph.outputs.items())]
    elements = {str(element_symbol(name, shape, i)) for name, shape in shapes for i in range(int(np.prod(shape)))}
    return elements.union(graph.inputs, graph.outputs)


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
