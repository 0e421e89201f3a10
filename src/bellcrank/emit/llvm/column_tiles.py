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

SumTile = list[list[Node]]  # operations, grouped by the number of the column that they read
SumChain = list[Node]  # operations, each of which adds to the one before; only the last has other users


def tile_sums(graph: Graph, inline: Callable[[Node], bool], sums: Mapping[int, Node], max_sums: int) -> list[SumTile]:
    """Return all operations in tiles.

    Parameters
    ----------
    graph
        The graph of one column.
    inline
        True for nodes that are emitted at their use.
    sums
        Serial number of an operation -> the partial sum that it adds to.
    max_sums
        Sums in a tile at most.
    """
    chains_of_tiles: list[list[SumChain]] = []
    tile_serials: set[int] = set()  # serials of the sums of the last tile
    for chain in _chains(graph, inline, sums):
        reads = {a.serial for n in chain for a in visible_operands(n, inline)}
        if not chains_of_tiles or len(chains_of_tiles[-1]) == max_sums or reads & tile_serials:
            chains_of_tiles.append([])
            tile_serials = set()
        chains_of_tiles[-1].append(chain)
        tile_serials.add(chain[-1].serial)
    return _order_tiles([_interleave_chains(tile, inline, sums) for tile in chains_of_tiles], inline)


def _order_tiles(tiles: Sequence[SumTile], inline: Callable[[Node], bool]) -> list[SumTile]:
    """Schedule next the ready tile that reads most values that no other tile reads any more: its sums replace them."""
    tile_nodes = [{n for group in tile for n in group} for tile in tiles]
    tile_inputs = [
        {a for n in nodes for a in visible_operands(n, inline) if a.args[:1] != ("shared",)} - nodes
        for nodes in tile_nodes
    ]
    remaining, ordered = list(range(len(tiles))), list[SumTile]()
    while remaining:
        waiting = set[Node]().union(*(tile_nodes[k] for k in remaining))
        users = Counter(a for k in remaining for a in tile_inputs[k])
        best = max(
            (k for k in remaining if not tile_inputs[k] & waiting),
            key=lambda k: (sum(users[a] == 1 for a in tile_inputs[k]), -k),
        )
        remaining.remove(best)
        ordered.append(tiles[best])
    return ordered


def _chains(graph: Graph, inline: Callable[[Node], bool], sums: Mapping[int, Node]) -> list[SumChain]:
    ending: dict[int, SumChain] = {}  # by the serial number of the last operation
    for n in graph.nodes:
        if n.op == "input" or inline(n):
            continue
        partial_sum = sums.get(n.serial)
        chain = ending.pop(partial_sum.serial, []) if partial_sum is not None else []
        chain.append(n)
        ending[n.serial] = chain
    return sorted(ending.values(), key=lambda chain: chain[-1].serial)


def visible_operands(n: Node, inline: Callable[[Node], bool]) -> list[Node]:
    """Return the nodes that the operation `n` reads, looking through `inline` ones."""
    return [x for a in n.operands for x in (visible_operands(a, inline) if inline(a) else [a])]


def _interleave_chains(tile: Sequence[SumChain], inline: Callable[[Node], bool], sums: Mapping[int, Node]) -> SumTile:
    """Interleave the operations of some chains, grouped by the number of the column that they read."""

    def key(n: Node) -> int:
        partial_sum = sums.get(n.serial)
        column_serials = [
            a.serial for a in visible_operands(n, inline) if a is not partial_sum and a.args[:1] != ("shared",)
        ]
        return min(column_serials, default=-1)

    waiting = [[(key(n), n) for n in reversed(chain)] for chain in tile]
    order: SumTile = []
    while waiting := [chain for chain in waiting if chain]:
        least = min(chain[-1][0] for chain in waiting)
        order.append([chain.pop()[1] for chain in waiting if chain[-1][0] == least])
    return order
