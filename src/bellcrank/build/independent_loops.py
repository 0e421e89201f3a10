"""Loops over independent identical elements, such as springs and other force elements.

Elements of one kind do the same with other constants and other elements of the inputs. Each kind is traced once and is
a cell of a recursion (graph/recursion.py) over places that do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from bellcrank.build.cell_tracing import CellClass, trace_cells
from bellcrank.build.recursion_layout import CONSTANTS_INPUT, place_tree
from bellcrank.build.rolled_recursion import with_free_constants
from bellcrank.dynamics.recursion.link_classes import extract_parameters
from bellcrank.dynamics.tree_sweeps import FromParent, Send
from bellcrank.graph.cells import RESULT
from bellcrank.graph.graph import Array, Graph, Shape
from bellcrank.scalar import Scalar

Law = Callable[..., list[Scalar]]  # (constants, elements of each input, in order) -> results
ElementRows = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class ElementClass:
    """A class of identical elements.

    label: what they are. name: of one of them. constants: a row for each. element_rows: for every input the elements
    that each one reads, and under RESULT those that it writes.
    """

    law: Law
    label: str
    name: str
    constants: list[list[Scalar]]
    element_rows: Mapping[str, ElementRows]


def independent_loops(
    name: str,
    inputs: dict[str, Shape],
    output: tuple[str, int],
    kinds: Sequence[ElementClass],
    parameters: Collection[str],
) -> Graph:
    """Return the graph of the results of all elements.

    Parameters
    ----------
    name
        Name of the graph.
    inputs
        Shapes of the inputs.
    output
        Name and size of the output.
    kinds
        The classes of elements.
    parameters
        Free parameters that constants depend on.
    """
    parts, tables, numbers = list[CellClass](), list[Array](), dict[Scalar, int]()
    element_rows = {x: [row for kind in kinds for row in kind.element_rows[x]] for x in (*inputs, RESULT)}
    element_rows[CONSTANTS_INPUT] = []
    for kind in kinds:
        first, table, free = extract_parameters(kind.constants)
        columns, free_columns = [f"k{i}" for i in range(table.shape[1])], [f"n{i}" for i in range(free.shape[1])]
        sizes = {x: len(kind.element_rows[x][0]) for x in inputs}
        start = partial(_isolated_body, kind.law, first)
        parts.append(CellClass(start, kind.label, kind.name, sizes, columns, True, 0, free_columns))
        tables.append(table)
        element_rows[CONSTANTS_INPUT] += [tuple(numbers.setdefault(x, len(numbers)) for x in row) for row in free]
    cell_of_place = [k for k, kind in enumerate(kinds) for _ in kind.constants]
    ends = accumulate(len(kind.constants) for kind in kinds)
    runs = [(begin, end, 1) for begin, end in pairwise([0, *ends])]
    places = place_tree([-1] * len(cell_of_place), cell_of_place, runs, element_rows, chained=False)
    cells = trace_cells(parts, places, list(inputs))
    return with_free_constants(name, inputs, output, cells, tables, places, list(numbers), parameters)


def _isolated_body(
    law: Law, constants: Sequence[Scalar], *given: Sequence[Scalar]
) -> Generator[Any, Any, list[Scalar]]:
    """Evaluate a law as a body that exchanges nothing with its neighbours."""
    yield FromParent(())
    yield Send(())
    return law(constants, *given)
