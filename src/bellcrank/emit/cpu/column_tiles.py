"""Loop tiling of the sums of a column: sums that read the same numbers are accumulated together, to load them once.

A column consists of sums of products (graph/columns.py), each of a number that all columns share and a number of its
own. Sums that are accumulated together, term by term, form a tile: while a number of the column is in a register, all
sums of the tile add their term. No value stays in a register from tile to tile, so that a compiler has no reason to
spill what lies in memory already. The order within a sum is not changed, and therefore neither is the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from bellcrank.graph import Graph, Node

Tile = list[list[Node]]  # operations, grouped by the number of the column that they read
Chain = list[Node]  # operations, each of which adds to the one before; only the last has other users


def tiles(graph: Graph, inline: Callable[[Node], bool], sums: Mapping[int, Node], most: int) -> list[Tile]:
    """Return all operations in tiles.

    Parameters
    ----------
    graph
        The graph of one column.
    inline
        True for nodes that are emitted at their use.
    sums
        Serial number of an operation -> the partial sum that it adds to.
    most
        Sums in a tile at most.
    """
    found: list[list[Chain]] = []
    inside: set[int] = set()  # serials of the sums of the last tile
    for chain in _chains(graph, inline, sums):
        reads = {a.serial for n in chain for a in operands(n, inline)}
        if not found or len(found[-1]) == most or reads & inside:
            found.append([])
            inside = set()
        found[-1].append(chain)
        inside.add(chain[-1].serial)
    return _freeing([_merged(tile, inline, sums) for tile in found], inline)


def _freeing(tiles: Sequence[Tile], inline: Callable[[Node], bool]) -> list[Tile]:
    """Schedule next the ready tile that reads most values that no other tile reads any more: its sums replace them."""
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
    """Return the nodes that the operation `n` reads, looking through `inline` ones."""
    return [x for a in n.operands for x in (operands(a, inline) if inline(a) else [a])]


def _merged(tile: Sequence[Chain], inline: Callable[[Node], bool], sums: Mapping[int, Node]) -> Tile:
    """Interleave the operations of some chains, grouped by the number of the column that they read."""

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
