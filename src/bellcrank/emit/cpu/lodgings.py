"""Where arguments and results of calls lie in a workspace, so that nothing is copied that lies well already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.graph import Graph, Node
from bellcrank.quoting import symbol


class Lodgings:
    """Rows of slots for the results of calls. A row is taken again once no later chunk reads any of it."""

    def __init__(self) -> None:
        self.now = 0  # the chunk being spelled
        self.last: Mapping[int, int] = {}  # of each node, the chunk that reads it last
        self.guests: set[int] = set()  # nodes that lie here, by serial
        self._rows: list[tuple[int, int, int]] = []  # until which chunk, how long, where

    def found(self, results: Sequence[Node], size: int, end: int) -> tuple[int, int]:
        """Where a row for so many results begins, and where the workspace, which ended at `end`, ends with it."""
        self.guests |= {n.serial for n in results}
        until = max((self.last.get(n.serial, self.now) for n in results), default=self.now)
        idle = [row for row in self._rows if row[0] < self.now and row[1] >= size]
        if idle:
            row = min(idle, key=lambda row: row[1])
            self._rows.remove(row)
            self._rows.append((until, row[1], row[2]))
            return row[2], end
        self._rows.append((until, size, end))
        return end, end + size


def in_a_row(values: Sequence[tuple[int, Node | float]], slots: Mapping[int, int]) -> tuple[str, int] | None:
    """Which array, and where in it, has the values at these distances from there: an input, or the workspace.

    None where they lie elsewhere, or are numbers.
    """
    found = {_home(i, x, slots) for i, x in values}
    return found.pop() if len(found) == 1 else None


def _home(i: int, x: Node | float, slots: Mapping[int, int]) -> tuple[str, int] | None:
    if not isinstance(x, Node):
        return None
    if x.op == "input":
        array, place = x.args
        return f"in_{symbol(array)}", place - i
    return ("ws", slots[x.serial] - i) if x.serial in slots else None


def taken(graph: Graph) -> set[tuple[str, int]]:
    """The elements of its inputs that a graph looks at, also to see if it is needed; of one that does not say, all."""
    if graph.opaque:
        return set(graph.elements)
    return {n.args for n in graph.nodes if n.op == "input"} | ({(graph.only, 0)} if graph.only else set())


def known_before(graph: Graph) -> dict[str, set[int]]:
    """Elements of its outputs that whoever calls it knows already: numbers, and inputs that are handed on."""
    return {
        name: {i for i, x in enumerate(array.flat) if not isinstance(x, Node) or x.op == "input"}
        for name, array in graph.outputs.items()
    }
