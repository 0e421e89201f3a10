"""Which values wait in registers and which in the workspace, of straight-line code that is known from end to end; and
where arguments and results of calls lie there, so that nothing is copied that lies well already.

Where a value must leave, it is the one whose next use is farthest away: no other choice needs fewer loads (L. A.
Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems J. 5, 1966). LLVM, which has to be
good at code with branches, stores half as many values again as that, and has little left to do where it is written out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bellcrank.emit.cpu.plan import Item
from bellcrank.graph import Graph, Node
from bellcrank.graph.columns import Columns
from bellcrank.quoting import symbol

SPARE = 2  # registers for what is between two operations: a negated factor, rows that are exchanged with lanes


def departures(
    piece: Sequence[Item], reads: Callable[[Item], Iterable[Node]], inline: Callable[[Node], bool], registers: int
) -> list[list[Node]]:
    """After each item of a piece, the values that leave. reads: what an item needs, looking through what is `inline`,
    which is spelled where it is used and never waits.
    """
    needs = [[] if _nothing(item, inline) else [n for n in reads(item) if not inline(n)] for item in piece]
    uses: dict[int, list[int]] = {}  # of a value, the items that read it, the next one last
    for t in reversed(range(len(piece))):
        for n in {n.serial for n in needs[t]}:
            uses.setdefault(n, []).append(t)
    here: dict[int, Node] = {}
    kept: set[int] = set()  # has a place in the workspace, and need not be stored again
    found: list[list[Node]] = []
    for item, needed in zip(piece, needs, strict=True):
        for serial in {n.serial for n in needed}:
            uses[serial].pop()
        if item.kind in ("trig", "call"):
            kept.update(n.serial for n in item.defines)
        elif not _nothing(item, inline):
            here |= {n.serial: n for n in item.defines}
        here |= {n.serial: n for n in needed}
        here = {serial: n for serial, n in here.items() if uses.get(serial)}
        found.append([])
        while len(here) > registers - SPARE:
            farthest = max(here, key=lambda serial: (uses[serial][-1], serial in kept))
            kept.add(farthest)
            found[-1].append(here.pop(farthest))
    return found


def _nothing(item: Item, inline: Callable[[Node], bool]) -> bool:
    """What is spelled elsewhere, and a matrix, whose elements are all in the workspace when it is stored."""
    return (item.kind == "op" and inline(item.defines[0])) or (item.tile is not None and item.tile.whole)


def homes(pieces: Sequence[Sequence[Item]]) -> dict[int, tuple[Node, int]]:
    """Of what loops over columns are given, by serial: the call, and the place among all that it is given."""
    found: dict[int, tuple[Node, int]] = {}
    for call in (item.defines[0] for piece in pieces for item in piece if item.kind == "call"):
        if isinstance(call.args[0], Columns):
            for i, x in enumerate(call.args[1 + math.prod(call.args[0].inputs["shared"]) :]):
                if isinstance(x, Node):
                    found.setdefault(x.serial, (call, i))
    return found


def elements(pieces: Sequence[Sequence[Item]]) -> set[int]:
    """Of all matrices that are stored as wholes, by serial."""
    whole = (item for piece in pieces for item in piece if item.tile is not None and item.tile.whole)
    return {n.serial for item in whole for n in item.uses}


@dataclass
class Lodgings:
    """Rows of slots for the results of calls. A row is taken again once no later chunk reads any of it."""

    now: int = 0  # the chunk being spelled
    last: Mapping[int, int] = field(default_factory=dict)  # of each node, the chunk that reads it last
    guests: set[int] = field(default_factory=set)  # nodes that lie here, by serial
    rows: list[tuple[int, int, int]] = field(default_factory=list)  # until which chunk, how long, where

    def found(self, results: Sequence[Node], size: int, end: int) -> tuple[int, int]:
        """Where a row for so many results begins, and where the workspace, which ended at `end`, ends with it."""
        self.guests |= {n.serial for n in results}
        until = max((self.last.get(n.serial, self.now) for n in results), default=self.now)
        idle = [row for row in self.rows if row[0] < self.now and row[1] >= size]
        if idle:
            row = min(idle, key=lambda row: row[1])
            self.rows.remove(row)
            self.rows.append((until, row[1], row[2]))
            return row[2], end
        self.rows.append((until, size, end))
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
