"""Layout of the results of Columns in outputs: a loop stores such results there directly, without a copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np

from bellcrank.emit.cpu.column_homes import Homes
from bellcrank.graph import Graph, Node
from bellcrank.graph.columns import Columns


@dataclass(frozen=True)
class Places:
    """Element (r, c) of the results is element rows[r] + columns[c] of an output."""

    array: str
    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def run(self, starts: list[int], width: int) -> int:
        """Return the largest n so that the `width` columns from each of `starts` on lie in contiguous pieces of n."""
        return next(
            n for n in (width, 8, 4, 2, 1) if n <= width and width % n == 0 and self._side_by_side(starts, width, n)
        )

    def _side_by_side(self, starts: list[int], width: int, n: int) -> bool:
        begins = [b for start in starts for b in range(start, start + width, n)]
        return all(self.columns[b + j] == self.columns[b] + j for b in begins for j in range(n))

    @property
    def together(self) -> list[tuple[int, int]]:
        """Ranges [begin, end) of columns that are contiguous in the output, each as long as possible."""
        breaks = [k for k in range(1, len(self.columns)) if self.columns[k] != self.columns[k - 1] + 1]
        return list(pairwise([0, *breaks, len(self.columns)]))

    @property
    def taken(self) -> set[int]:
        """Elements of the output that are written."""
        return {r + c for r in self.rows for c in self.columns}


@dataclass(frozen=True)
class Units:
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


def units(number: int, most: int, to: Places | None, any_size: bool) -> Units:
    """Divide `number` columns into units of at most `most` columns.

    The last unit is moved back to end with the last column, and the columns that it shares with another are computed
    twice. Without `any_size`, pieces are powers of two; then other units are also moved back to end with a contiguous
    run of columns, if otherwise every result would be a piece by itself.

    Parameters
    ----------
    number
        Number of columns.
    most
        Columns of a unit at most.
    to
        Where the results lie in an output; None for the workspace.
    any_size
        True if units and pieces of every size can be stored.
    """
    if any_size:
        size = -(-number // -(-number // most))
        found = _units(0, number, size)
        ends = {b - k for k in found for _, b in (to.together if to else ()) if 0 < b - k < size}
        return Units(found, size, [b - a for a, b in pairwise([0, *sorted(ends), size])])
    size = min(number, most)
    found = _units(0, number, size)
    run = size if to is None else to.run(found, size)
    if to is not None and run == 1 < size and all(end - begin >= size for begin, end in to.together):
        found, run = [k for begin, end in to.together for k in _units(begin, end, size)], size
    return Units(found, size, [run] * (size // run))


def _units(begin: int, end: int, size: int) -> list[int]:
    return [*range(begin, end - size, size), end - size]


class Code(Protocol):
    """Code generator of a loop over columns (column_code.py)."""

    name: str

    def homes(self, over: Collection[int]) -> Homes:
        """Assign rows for vector code; `over` lists the rows of arguments that may be overwritten."""

    def text(self, slots: Sequence[int], home: Homes | None = None) -> str:
        """Return the function; `slots` are those of the shared numbers in the caller's workspace, `home` the rows."""


@dataclass(frozen=True)
class ColumnCalls:
    """Loops over columns that a graph calls, by the serial numbers of the calls."""

    codes: Mapping[int, Code]
    places: Mapping[int, Places]  # where they store results that are outputs
    written: Mapping[str, set[int]]  # elements of outputs that they store directly


NO_COLUMNS = ColumnCalls({}, {}, {})


def written(places: Iterable[Places]) -> dict[str, set[int]]:
    """Return the elements of outputs that `places` cover, by output."""
    found: dict[str, set[int]] = {}
    for p in places:
        found.setdefault(p.array, set()).update(p.taken)
    return found


def places(graph: Graph) -> dict[int, Places]:
    """Return the layout of each call in `graph`, by serial number, if all its results are outputs and nothing else."""
    users: dict[int, int] = {}
    for n in graph.nodes:
        for a in n.operands:
            users[a.serial] = users.get(a.serial, 0) + 1
    at: dict[int, list[tuple[str, int]]] = {}
    for name, array in graph.outputs.items():
        for flat, x in enumerate(array.flat):
            if isinstance(x, Node) and x.op == "result":
                at.setdefault(x.serial, []).append((name, flat))
    results: dict[Node, dict[int, Node]] = {}
    for n in graph.nodes:
        if n.op == "result" and isinstance(n.args[0].args[0], Columns):
            results.setdefault(n.args[0], {})[n.args[1]] = n
    alone = {s: where[0] for s, where in at.items() if len(where) == 1 and not users.get(s)}
    found = {call.serial: _places(call.args[0], mine, alone) for call, mine in results.items()}
    return {serial: p for serial, p in found.items() if p is not None}


def _places(function: Columns, results: Mapping[int, Node], alone: Mapping[int, tuple[str, int]]) -> Places | None:
    shape = function.shapes["x"]
    if len(results) < np.prod(shape) or any(n.serial not in alone for n in results.values()):
        return None
    where = [alone[results[k].serial] for k in range(len(results))]
    flat = np.array([k for _, k in where]).reshape(shape)
    rows, columns = flat[:, 0] - flat[0, 0], flat[0]
    if len({name for name, _ in where}) > 1 or (flat != rows[:, None] + columns).any():
        return None
    return Places(where[0][0], tuple(rows.tolist()), tuple(columns.tolist()))
