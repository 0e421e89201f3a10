"""Register allocation for straight-line code, and spill slots for arguments and results of calls.

If a value must be spilled, it is the one whose next use is farthest away: no other choice needs fewer loads (L. A.
Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems J. 5, 1966). LLVM, whose allocator
is made for code with branches, stores half as many values again, and has little left to do if spills are explicit.
Arguments and results of calls are placed so that contiguous values need not be copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bellcrank.emit.cpu.plan import Item
from bellcrank.graph import Graph, Node
from bellcrank.graph.columns import Columns
from bellcrank.quoting import symbol

SPARE = 2  # registers for temporaries: a negated factor, rows that are exchanged with lanes


def departures(
    piece: Sequence[Item], reads: Callable[[Item], Iterable[Node]], inline: Callable[[Node], bool], registers: int
) -> list[list[Node]]:
    """Return the values to spill after each item.

    Parameters
    ----------
    piece
        The items of a chunk.
    reads
        Nodes that an item needs, looking through inline ones.
    inline
        True for nodes that are emitted at their use and never wait.
    registers
        Vector registers of the processor.
    """
    needs = [[] if _nothing(item, inline) else [n for n in reads(item) if not inline(n)] for item in piece]
    uses: dict[int, list[int]] = {}  # value -> items that read it, the next one last
    for t in reversed(range(len(piece))):
        for n in {n.serial for n in needs[t]}:
            uses.setdefault(n, []).append(t)
    here: dict[int, Node] = {}
    kept: set[int] = set()  # has a spill slot, and need not be stored again
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
    """Return True for items without register use: inline nodes, and matrices, which are stored from the workspace."""
    return (item.kind == "op" and inline(item.defines[0])) or (item.tile is not None and item.tile.whole)


def homes(pieces: Sequence[Sequence[Item]]) -> dict[int, tuple[Node, int]]:
    """Return the call and the position of each argument of loops over columns in `pieces`, by serial."""
    found: dict[int, tuple[Node, int]] = {}
    for call in (item.defines[0] for piece in pieces for item in piece if item.kind == "call"):
        if isinstance(call.args[0], Columns):
            for i, x in enumerate(call.args[1 + math.prod(call.args[0].inputs["shared"]) :]):
                if isinstance(x, Node):
                    found.setdefault(x.serial, (call, i))
    return found


def elements(pieces: Sequence[Sequence[Item]]) -> set[int]:
    """Return the elements of all matrices in `pieces` that are stored at once, by serial."""
    whole = (item for piece in pieces for item in piece if item.tile is not None and item.tile.whole)
    return {n.serial for item in whole for n in item.uses}


@dataclass
class Lodgings:
    """Slot allocator for the results of calls; a row of slots is reused once no later chunk reads any of it."""

    now: int = 0  # the chunk being printed
    last: Mapping[int, int] = field(default_factory=dict)  # node -> the last chunk that reads it
    guests: set[int] = field(default_factory=set)  # serials of nodes that reside here
    rows: list[tuple[int, int, int]] = field(default_factory=list)  # (last chunk that reads it, length, first slot)

    def found(self, results: Sequence[Node], size: int, end: int) -> tuple[int, int]:
        """Allocate a row of `size` slots for `results`; return its first slot and the new end of the workspace.

        `end` is the end of the workspace before.
        """
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
    """Return the array and the position where all `values` lie contiguously, at given distances; None if nowhere.

    The array is an input, or the workspace with the given `slots`. Constants lie nowhere.
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
    """Return the elements of its inputs that `graph` reads, also to decide if it is needed; all if it is opaque."""
    if graph.opaque:
        return set(graph.elements)
    return {n.args for n in graph.nodes if n.op == "input"} | ({(graph.only, 0)} if graph.only else set())


def known_before(graph: Graph) -> dict[str, set[int]]:
    """Return the elements of outputs of `graph` that a caller knows already: constants, and inputs passed through."""
    return {
        name: {i for i, x in enumerate(array.flat) if not isinstance(x, Node) or x.op == "input"}
        for name, array in graph.outputs.items()
    }
