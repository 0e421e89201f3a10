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
from bellcrank.emit.equations.formula import Block, Index, Names, Sheet, Sum, Symbol, element
from bellcrank.emit.equations.harmonics import grouping, rewritten
from bellcrank.emit.equations.polynomial import POLYNOMIAL, TERMS, Polynomial, Ring, constant
from bellcrank.emit.equations.terms import Writer
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import OPS

RESERVED = ("pi", "array", "symbols", "Matrix", "Rational", "Piecewise", "Min", "Max", "Abs")  # imports of targets
LONGEST_ENTRY = 60  # terms of an entry that is still readable
ENOUGH_TERMS = 2_000  # terms of the shortest entries on which the choice of groups is based

Array = np.ndarray[Any, Any]
Entries = dict[Index, Polynomial | None]


def sheet(
    graph: Graph,
    name: str,
    title: str,
    outputs: Mapping[str, tuple[str, tuple[str, ...]]],
    relation: str = "",
    columns: Mapping[str, Sequence[str]] | None = None,
    remarks: tuple[str, ...] = (),
    longest: int = LONGEST_ENTRY,
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
    values = ring.walk(graph)
    ring.angles.sort(key=lambda pair: max(m for m, _ in ring.generators[pair[0]].args[0]))
    written = {key: _entries(array, values) for key, array in graph.outputs.items()}
    known = sorted((p for e in written.values() for p in e.values() if p), key=len)
    lengths = accumulate(map(len, known))
    groups = grouping(ring, [p for p, so_far in zip(known, lengths, strict=True) if so_far <= ENOUGH_TERMS])
    names = Names({*_words(graph), *OPS, *kwlist, *RESERVED})
    writer = Writer(ring, groups, graph.inputs, names)
    worked: dict[Symbol, Sum] = {}
    blocks = []
    for key, entries in written.items():
        shape = graph.outputs[key].shape
        symmetric = len(shape) == 2 and _symmetric(graph.outputs[key])
        known_terms = {i: rewritten(ring, groups, p) for i, p in entries.items() if p is not None}
        most = max(map(len, known_terms.values()), default=0)
        note = _why(graph, key, len(known_terms) < len(entries), most, longest)
        if note:
            lines, found = steps.working(graph, key, names, lambda n: _wave(writer, values[n.serial], n))
            worked |= lines
        else:
            found = writer.collected(key, known_terms, _others(graph))
        if symmetric:
            found = {i: x for i, x in found.items() if i[0] <= i[1]}
        blocks.append(Block(key, shape, found, symmetric, *outputs[key], note))
    definitions = writer.definitions() | worked
    remarks += writer.remarks
    return Sheet(name, title, graph.inputs, definitions, tuple(blocks), relation, columns or {}, remarks)


def _words(graph: Graph) -> Collection[str]:
    """Return the identifiers of inputs and outputs."""
    shapes = [*graph.inputs.items(), *((key, a.shape) for key, a in graph.outputs.items())]
    elements = {str(element(name, shape, i)) for name, shape in shapes for i in range(int(np.prod(shape)))}
    return elements.union(graph.inputs, graph.outputs)


def _entries(array: Array, values: Mapping[int, Polynomial | None]) -> Entries:
    flat = (values[x.serial] if isinstance(x, Node) else constant(x) for x in array.flat)
    return dict(zip(np.ndindex(*array.shape), flat, strict=True))


def _symmetric(array: Array) -> bool:
    if array.shape[0] != array.shape[1]:
        return False
    pairs = ((array[i], array[i[::-1]]) for i in np.ndindex(*array.shape))
    return all(a is b or (isinstance(a, float) and a == b) for a, b in pairs)


def _why(graph: Graph, key: str, unknown: bool, most: int, longest: int) -> str:
    """Return the reason why an output is written in steps; empty if it is not."""
    part = Graph(graph.name, graph.inputs, {key: graph.outputs[key]}, graph.tape)
    other = sorted({n.op for n in part.nodes} - {*POLYNOMIAL})
    if unknown and other:
        return f"written in steps, for it is no polynomial ({', '.join(other)})"
    if unknown or most > longest:
        count = f"more than {TERMS}" if unknown else str(most)
        return f"written in steps, for one entry alone would have {count} terms"
    return ""


def _others(graph: Graph) -> Collection[str]:
    """Return all inputs but the first, the configuration."""
    return list(graph.inputs)[1:]


def _wave(writer: Writer, value: Polynomial | None, node: Node) -> Symbol | None:
    """Return the shared symbol of a sine or cosine whose angle is a polynomial."""
    if node.op not in ("sin", "cos") or value is None:
        return None
    ((generator, _),) = writer.ring.powers(*value)
    found = writer.factor(generator)
    return found if isinstance(found, Symbol) else None
