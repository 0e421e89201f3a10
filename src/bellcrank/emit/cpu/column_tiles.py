"""In which order the sums of a column are added up: some of them together, so that what they all read is loaded once.

A column is sums of products (graph/columns.py), each of a number that all columns share and one of its own. Sums that
are added up together, term by term, are a tile: for every number of its own, which is in a register then, all of them
take their term. Between tiles nothing waits in registers, so that no compiler stores what lies in memory already.
The order within a sum is not changed, and so neither is the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from bellcrank.graph import Graph, Node

Tile = list[list[Node]]  # operations, and together those that read the same number of a column's own
Chain = list[Node]  # operations, each of which adds to the one before; others see the last alone


def tiles(graph: Graph, inline: Callable[[Node], bool], sums: Mapping[int, Node], most: int) -> list[Tile]:
    """All operations, `most` sums to a tile. inline: what is spelled where it is used; sums: by the serial number of an
    operation, what it adds to.
    """
    found: list[list[Chain]] = []
    inside: set[int] = set()  # of the last tile, what its sums are
    for chain in _chains(graph, inline, sums):
        reads = {a.serial for n in chain for a in operands(n, inline)}
        if not found or len(found[-1]) == most or reads & inside:
            found.append([])
            inside = set()
        found[-1].append(chain)
        inside.add(chain[-1].serial)
    return _freeing([_merged(tile, inline, sums) for tile in found], inline)


def _freeing(tiles: Sequence[Tile], inline: Callable[[Node], bool]) -> list[Tile]:
    """Of those that can be next the one that reads most that no other reads any more: its sums take that place."""
    made = [{n for group in tile for n in group} for tile in tiles]
    read = [{a for n in mine for a in operands(n, inline) if a.args[:1] != ("shared",)} - mine for mine in made]
    left, found = list(range(len(tiles))), list[Tile]()
    while left:
        waiting = set[Node]().union(*(made[k] for k in left))
        users = Counter(a for k in left for a in read[k])
        best = max((k for k in left if not read[k] & waiting), key=lambda k: (sum(users[a] == 1 for a in read[k]), -k))
        left.remove(best)
        found.append(tiles[best])
    return found


def _chains(graph: Graph, inline: Callable[[Node], bool], sums: Mapping[int, Node]) -> list[Chain]:
    ending: dict[int, Chain] = {}  # by the serial number of the last operation
    for n in graph.nodes:
        if n.op == "input" or inline(n):
            continue
        before = sums.get(n.serial)
        chain = ending.pop(before.serial, []) if before is not None else []
        chain.append(n)
        ending[n.serial] = chain
    return sorted(ending.values(), key=lambda chain: chain[-1].serial)


def operands(n: Node, inline: Callable[[Node], bool]) -> list[Node]:
    """What an operation reads, looking through what is inline."""
    return [x for a in n.operands for x in (operands(a, inline) if inline(a) else [a])]


def _merged(tile: Sequence[Chain], inline: Callable[[Node], bool], sums: Mapping[int, Node]) -> Tile:
    """Operations of some chains."""

    def key(n: Node) -> int:
        before = sums.get(n.serial)
        own = [a.serial for a in operands(n, inline) if a is not before and a.args[:1] != ("shared",)]
        return min(own, default=-1)

    waiting = [[(key(n), n) for n in reversed(chain)] for chain in tile]
    order: Tile = []
    while waiting := [chain for chain in waiting if chain]:
        least = min(chain[-1][0] for chain in waiting)
        order.append([chain.pop()[1] for chain in waiting if chain[-1][0] == least])
    return order
