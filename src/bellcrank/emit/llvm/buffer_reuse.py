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
class RowAssignment:
    """Rows assigned to the waiting sums and results of a loop over columns."""

    argument_rows: int  # rows of arguments of the loop
    overwritable: Collection[int]  # those of them that the loop may overwrite
    row_of_value: Mapping[Value, int]  # waiting sum or result -> its row
    result_rows: Sequence[int]  # for each row of the results, the row that holds it

    @property
    def extra_rows(self) -> int:
        """Number of rows beside those of the arguments."""
        return max([self.argument_rows - 1, *self.row_of_value.values()]) + 1 - self.argument_rows

    @property
    def free_rows(self) -> list[int]:
        """Rows that are free after the loop."""
        usable_rows = [*self.overwritable, *range(self.argument_rows, self.argument_rows + self.extra_rows)]
        return [place for place in usable_rows if place not in self.result_rows]


def assign_rows(
    argument_rows: int,
    overwritable: Collection[int],
    results: Sequence[Value],
    tile_values: Sequence[Sequence[Value]],
    tile_inputs: Sequence[Sequence[Node]],
    reusable: bool = True,
) -> RowAssignment:
    """Assign rows to the waiting sums and results of a loop over columns.

    Parameters
    ----------
    argument_rows
        Number of rows of arguments.
    overwritable
        Rows of arguments that nothing else reads later.
    results
        Results of the loop.
    tile_values
        Values that each tile computes.
    tile_inputs
        Nodes that each tile reads.
    reusable
        True if a row may hold one value after another; not allowed where a column is computed twice.
    """
    last_tile = {n: t for t, nodes in enumerate(tile_inputs) for n in nodes}
    last_tile_of_row = {n.args[1]: t for n, t in last_tile.items() if n.op == "input"}
    released_rows: list[list[int]] = [[] for _ in tile_values]  # by tile, rows of the values that it reads last
    for i in overwritable if reusable else ():
        released_rows[last_tile_of_row.get(i, 0)].append(i)
    result_values, size = set(results), argument_rows
    free: list[int] = []
    values: dict[Value, int] = {}
    for t, tile in enumerate(tile_values):
        free += released_rows[t]
        for x in tile:
            waits = isinstance(x, Node) and last_tile.get(x, t) > t
            if not waits and x not in result_values:
                continue
            if not free:
                free.append(size)
                size += 1
            values[x] = free.pop()
            if reusable and isinstance(x, Node) and x not in result_values:
                released_rows[last_tile[x]].append(values[x])
    return RowAssignment(argument_rows, overwritable, values, [values[x] for x in results])
