"""Loops over independent identical elements, such as springs and other force elements.

Elements of one kind do the same with other constants and other elements of the inputs. Each kind is traced once and is
a cell of a recursion (graph/recursion.py) over places that do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bellcrank.build.cell_tracing import Part, traced
from bellcrank.build.places import NUMBERS, elements
from bellcrank.build.rolling import of_numbers
from bellcrank.dynamics.alike import columns
from bellcrank.dynamics.neighbours import FromParent, Hands
from bellcrank.graph.cells import RESULT
from bellcrank.graph.graph import Array, Graph, Shape
from bellcrank.graph.recursion import Run
from bellcrank.graph.recursion import Tree as Places
from bellcrank.scalar import Scalar

Law = Callable[..., list[Scalar]]  # (constants, elements of each input, in order) -> results
Own = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class Kind:
    """A class of identical elements.

    label: what they are. name: of one of them. constants: a row for each. own: for every input the elements that each
    one reads, and under RESULT those that it writes.
    """

    law: Law
    label: str
    name: str
    constants: list[list[Scalar]]
    own: Mapping[str, Own]


def side_by_side(
    name: str, inputs: dict[str, Shape], output: tuple[str, int], kinds: Sequence[Kind], parameters: Collection[str]
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
    parts, tables, runs, begin = list[Part](), list[Array](), list[Run](), 0
    numbers: dict[Scalar, int] = {}
    own: dict[str, list[tuple[int, ...]]] = {x: [] for x in (*inputs, RESULT, NUMBERS)}
    for k, kind in enumerate(kinds):
        first, table, free = columns(kind.constants)
        names = [f"k{i}" for i in range(table.shape[1])], [f"n{i}" for i in range(free.shape[1])]
        sizes = {x: len(kind.own[x][0]) for x in inputs}
        parts.append(Part(partial(_alone, kind.law, first), kind.label, kind.name, sizes, names[0], True, 0, names[1]))
        tables.append(table)
        end = begin + len(kind.constants)
        runs.append(Run((k,), begin, end, (0,)))
        begin = end
        for x in (*inputs, RESULT):
            own[x] += kind.own[x]
        own[NUMBERS] += [tuple(numbers.setdefault(x, len(numbers)) for x in row) for row in free]
    at = {x: elements(mine) for x, mine in own.items()}
    places = Places(np.full(begin, -1), np.full((begin, 1), -1), at, tuple(runs), False)
    cells = traced(parts, places, list(inputs))
    return of_numbers(name, inputs, output, cells, tables, places, list(numbers), parameters)


def _alone(law: Law, constants: Sequence[Scalar], *given: Sequence[Scalar]) -> Generator[Any, Any, list[Scalar]]:
    """Evaluate a law as a body that exchanges nothing with its neighbours."""
    yield FromParent(())
    yield Hands(())
    return law(constants, *given)
