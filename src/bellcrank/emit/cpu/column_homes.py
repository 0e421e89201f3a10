"""Buffer reuse in a loop over columns: waiting sums and results overwrite rows that nothing reads any more.

Such rows are in the nearest cache. A row has as many elements as there are columns; the first rows are the arguments of
the loop. All columns pass through a tile before the next tile (column_code.py), and a tile reads everything before it
stores anything. So a row can be reused by the very tile that reads it last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bellcrank.graph import Node
from bellcrank.nodes.node import Value


@dataclass(frozen=True)
class Homes:
    """Rows assigned to the waiting sums and results of a loop over columns."""

    given: int  # rows of arguments of the loop
    over: Collection[int]  # those of them that the loop may overwrite
    values: Mapping[Value, int]  # waiting sum or result -> its row
    results: Sequence[int]  # for each row of the results, the row that holds it

    @property
    def beyond(self) -> int:
        """Number of rows beside those of the arguments."""
        return max([self.given - 1, *self.values.values()]) + 1 - self.given

    @property
    def left(self) -> list[int]:
        """Rows that are free after the loop."""
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
    """Assign rows to the waiting sums and results of a loop over columns.

    Parameters
    ----------
    given
        Number of rows of arguments.
    over
        Rows of arguments that nothing else reads later.
    results
        Results of the loop.
    made
        Values that each tile computes.
    read
        Nodes that each tile reads.
    again
        True if a row may hold one value after another; not allowed where a column is computed twice.
    """
    last = {n: t for t, nodes in enumerate(read) for n in nodes}
    rows = {n.args[1]: t for n, t in last.items() if n.op == "input"}
    leaving: list[list[int]] = [[] for _ in made]  # by tile, rows of the values that it reads last
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
