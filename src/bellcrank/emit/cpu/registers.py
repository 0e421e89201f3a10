"""Which values wait in registers and which in the workspace, of straight-line code that is known from end to end.

Where a value must leave, it is the one whose next use is farthest away: no other choice needs fewer loads (L. A.
Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems J. 5, 1966). LLVM, which has to be
good at code with branches, stores half as many values again as that, and has little left to do where it is written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bellcrank.emit.cpu.plan import Item
from bellcrank.graph import Node

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
    return item.kind == "op" and inline(item.defines[0])
