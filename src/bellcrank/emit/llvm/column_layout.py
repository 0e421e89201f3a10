"""Plan of a loop over columns: tiles of its sums, rows in which they wait, and where its results lie in outputs.

A column (graph/loops/column_loop.py) consists of sums of products, each of a number that all columns share and a number
of its own. Sums that are accumulated together, term by term, form a tile: while a number of the column is in a
register, all sums of the tile add their term. No value stays in a register from tile to tile, so that a compiler has no
reason to spill what lies in memory already. The order within a sum is not changed, and therefore neither is the result.

Waiting sums and results overwrite rows that nothing reads any more, because such rows are in the nearest cache. A row
has as many elements as there are columns; the first rows are the arguments of the loop. All columns pass through a tile
before the next tile (column_code.py), and a tile reads everything before it stores anything. So a row can be reused by
the very tile that reads it last.

Where all results of a loop are elements of an output, it stores them there directly, without a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from bellcrank.graph import Graph, Node
from bellcrank.graph.graph import Shape
from bellcrank.graph.loops.column_loop import ColumnLoop
from bellcrank.nodes.node import Value

SumTile = list[list[Node]]  # operations, grouped by the number of the column that they read
SumChain = list[Node]  # operations, each of which adds to the one before; only the last has other users


@dataclass(frozen=True)
class OutputLayout:
    """Element (r, c) of the results is element rows[r] + columns[c] of an output."""

    array: str
    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def contiguous_width(self, starts: list[int], width: int) -> int:
        """Return the largest n so that the `width` columns from each of `starts` on lie in contiguous pieces of n."""
        return next(
            n for n in (width, 8, 4, 2, 1) if n <= width and width % n == 0 and self._is_contiguous(starts, width, n)
        )

    def _is_contiguous(self, starts: list[int], width: int, n: int) -> bool:
        begins = [b for start in starts for b in range(start, start + width, n)]
        return all(self.columns[b + j] == self.columns[b] + j for b in begins for j in range(n))

    @property
    def contiguous_ranges(self) -> list[tuple[int, int]]:
        """Ranges [begin, end) of columns that are contiguous in the output, each as long as possible."""
        breaks = [k for k in range(1, len(self.columns)) if self.columns[k] != self.columns[k - 1] + 1]
        return list(pairwise([0, *breaks, len(self.columns)]))

    @property
    def elements(self) -> set[int]:
        """Elements of the output that are written."""
        return {r + c for r in self.rows for c in self.columns}


@dataclass(frozen=True)
class ColumnUnits:
    """Division of the columns of a loop into units of `size` columns, which begin at `begins`.

    A unit consists of consecutive `pieces` (their sizes); the results of a piece are contiguous.
    """

    begins: list[int]
    size: int
    pieces: list[int]

    @property
    def starts(self) -> list[int]:
        """First column of each piece, counted from the begin of the unit."""
        return [0, *accumulate(self.pieces)][:-1]


def divide_columns(number: int, max_columns: int, layout: OutputLayout | None, any_size: bool) -> ColumnUnits:
    """Divide `number` columns into units of at most `max_columns` columns.

    The last unit is moved back to end with the last column, and the columns that it shares with another are computed
    twice. Without `any_size`, pieces are powers of two; then other units are also moved back to end with a contiguous
    run of columns, if otherwise every result would be a piece by itself.

    Parameters
    ----------
    number
        Number of columns.
    max_columns
        Columns of a unit at most.
    layout
        Where the results lie in an output; None for the workspace.
    any_size
        True if units and pieces of every size can be stored.
    """
    if any_size:
        size = -(-number // -(-number // max_columns))
        unit_starts = _unit_starts(0, number, size)
        ends = {b - k for k in unit_starts for _, b in (layout.contiguous_ranges if layout else ()) if 0 < b - k < size}
        return ColumnUnits(unit_starts, size, [b - a for a, b in pairwise([0, *sorted(ends), size])])
    size = min(number, max_columns)
    unit_starts = _unit_starts(0, number, size)
    run = size if layout is None else layout.contiguous_width(unit_starts, size)
    if layout is not None and run == 1 < size and all(end - begin >= size for begin, end in layout.contiguous_ranges):
        unit_starts, run = [k for begin, end in layout.contiguous_ranges for k in _unit_starts(begin, end, size)], size
    return ColumnUnits(unit_starts, size, [run] * (size // run))


def _unit_starts(begin: int, end: int, size: int) -> list[int]:
    return [*range(begin, end - size, size), end - size]


def output_layouts(graph: Graph) -> dict[int, OutputLayout]:
    """Return the layout of each call in `graph`, by serial number, if all its results are outputs and nothing else."""
    users: dict[int, int] = {}
    for n in graph.nodes:
        for a in n.operands:
            users[a.serial] = users.get(a.serial, 0) + 1
    output_positions: dict[int, list[tuple[str, int]]] = {}
    for name, array in graph.outputs.items():
        for flat, x in enumerate(array.flat):
            if isinstance(x, Node) and x.op == "result":
                output_positions.setdefault(x.serial, []).append((name, flat))
    results: dict[Node, dict[int, Node]] = {}
    for n in graph.nodes:
        if n.op == "result":
            results.setdefault(n.args[0], {})[n.args[1]] = n
    single_positions = {
        s: positions[0] for s, positions in output_positions.items() if len(positions) == 1 and not users.get(s)
    }
    layouts = {
        call.serial: _output_layout(call.args[0].shapes["x"], call_results, single_positions)
        for call, call_results in results.items()
    }
    return {serial: p for serial, p in layouts.items() if p is not None}


def _output_layout(
    shape: Shape, results: Mapping[int, Node], single_positions: Mapping[int, tuple[str, int]]
) -> OutputLayout | None:
    if len(results) < np.prod(shape) or any(n.serial not in single_positions for n in results.values()):
        return None
    positions = [single_positions[results[k].serial] for k in range(len(results))]
    flat = np.array([k for _, k in positions]).reshape(shape)
    rows, columns = flat[:, 0] - flat[0, 0], flat[0]
    if len({name for name, _ in positions}) > 1 or (flat != rows[:, None] + columns).any():
        return None
    return OutputLayout(positions[0][0], tuple(rows.tolist()), tuple(columns.tolist()))


def tile_sums(
    loop: ColumnLoop, inline: Callable[[Node], bool], sums: Mapping[int, Node], max_sums: int
) -> list[SumTile]:
    """Return all operations in tiles.

    Parameters
    ----------
    loop
        The loop over columns.
    inline
        True for nodes that are emitted at their use.
    sums
        Serial number of an operation -> the partial sum that it adds to.
    max_sums
        Sums in a tile at most.
    """
    chains_of_tiles: list[list[SumChain]] = []
    tile_serials: set[int] = set()  # serials of the sums of the last tile
    for chain in _chains(loop.graph, inline, sums):
        reads = {a.serial for n in chain for a in visible_operands(n, inline)}
        if not chains_of_tiles or len(chains_of_tiles[-1]) == max_sums or reads & tile_serials:
            chains_of_tiles.append([])
            tile_serials = set()
        chains_of_tiles[-1].append(chain)
        tile_serials.add(chain[-1].serial)

    def operands(n: Node) -> list[Node]:
        return [a for a in visible_operands(n, inline) if not loop.is_shared(a)]

    return _order_tiles([_interleave_chains(tile, operands, sums) for tile in chains_of_tiles], operands)


def _order_tiles(tiles: Sequence[SumTile], operands: Callable[[Node], list[Node]]) -> list[SumTile]:
    """Schedule next the ready tile that reads most values that no other tile reads any more: its sums replace them."""
    tile_nodes = [{n for group in tile for n in group} for tile in tiles]
    tile_inputs = [{a for n in nodes for a in operands(n)} - nodes for nodes in tile_nodes]
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


def _interleave_chains(
    tile: Sequence[SumChain], operands: Callable[[Node], list[Node]], sums: Mapping[int, Node]
) -> SumTile:
    """Interleave the operations of some chains, grouped by the number of the column that they read."""

    def key(n: Node) -> int:
        return min((a.serial for a in operands(n) if a is not sums.get(n.serial)), default=-1)

    waiting = [[(key(n), n) for n in reversed(chain)] for chain in tile]
    order: SumTile = []
    while waiting := [chain for chain in waiting if chain]:
        least = min(chain[-1][0] for chain in waiting)
        order.append([chain.pop()[1] for chain in waiting if chain[-1][0] == least])
    return order


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
    shared: int = 0,
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
    shared
        Number of shared inputs, which come before those of the rows.
    """
    last_tile = {n: t for t, nodes in enumerate(tile_inputs) for n in nodes}
    last_tile_of_row = {n.args[1] - shared: t for n, t in last_tile.items() if n.op == "input"}
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
