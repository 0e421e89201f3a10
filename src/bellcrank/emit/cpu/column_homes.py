"""Where the sums of a loop over columns wait, and where its results stay: in place of what nobody reads any more, which
is in the nearest cache.

A place is a row of as many elements as there are columns; the first ones are those of what the loop is given. All
columns go through a tile before the next (column_code.py), and there what is read is read before anything is stored.
So a place can be taken by the tile that reads it last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bellcrank.graph import Node
from bellcrank.nodes.node import Value


@dataclass(frozen=True)
class Homes:
    given: int  # rows that the loop is given
    over: Collection[int]  # those of them that it may overwrite
    values: Mapping[Value, int]  # the place of what waits or is a result
    results: Sequence[int]  # of every row of the results, its place

    @property
    def beyond(self) -> int:
        """Places that there are beside those of what is given."""
        return max([self.given - 1, *self.values.values()]) + 1 - self.given

    @property
    def left(self) -> list[int]:
        """Places that are free when the loop is done."""
        mine = [*self.over, *range(self.given, self.given + self.beyond)]
        return [place for place in mine if place not in self.results]


def homes(
    given: int,
    over: Collection[int],
    results: Sequence[Value],
    made: Sequence[Sequence[Value]],
    read: Sequence[Sequence[Node]],
    again: bool = True,
) -> Homes:
    """made, read: by each tile; over: rows of what is given that nobody else reads later; again: whether a place may
    have one value after another, which it may not where a column is computed twice.
    """
    last = {n: t for t, nodes in enumerate(read) for n in nodes}
    rows = {n.args[1]: t for n, t in last.items() if n.op == "input"}
    leaving: list[list[int]] = [[] for _ in made]  # by tile, places of what it reads last
    for i in over if again else ():
        leaving[rows.get(i, 0)].append(i)
    kept, size = set(results), given
    free: list[int] = []
    values: dict[Value, int] = {}
    for t, tile in enumerate(made):
        free += leaving[t]
        for x in tile:
            waits = isinstance(x, Node) and last.get(x, t) > t
            if not waits and x not in kept:
                continue
            if not free:
                free.append(size)
                size += 1
            values[x] = free.pop()
            if again and isinstance(x, Node) and x not in kept:
                leaving[last[x]].append(values[x])
    return Homes(given, over, values, [values[x] for x in results])
