"""Where the results of Columns go, if they are outputs: then a loop writes them there itself, and nobody moves them."""

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
        """In how large pieces the columns lie side by side, `width` of them from each of some starts on."""
        return next(
            n for n in (width, 8, 4, 2, 1) if n <= width and width % n == 0 and self._side_by_side(starts, width, n)
        )

    def _side_by_side(self, starts: list[int], width: int, n: int) -> bool:
        begins = [b for start in starts for b in range(start, start + width, n)]
        return all(self.columns[b + j] == self.columns[b] + j for b in begins for j in range(n))

    @property
    def together(self) -> list[tuple[int, int]]:
        """Columns [begin, end) that lie side by side, as many as do."""
        breaks = [k for k in range(1, len(self.columns)) if self.columns[k] != self.columns[k - 1] + 1]
        return list(pairwise([0, *breaks, len(self.columns)]))

    @property
    def taken(self) -> set[int]:
        return {r + c for r in self.rows for c in self.columns}


@dataclass(frozen=True)
class Units:
    """Columns of a loop in units of `size`, beginning at `begins`, and the sizes of the pieces of a unit, all in a row:
    results of a piece lie side by side.
    """

    begins: list[int]
    size: int
    pieces: list[int]

    @property
    def starts(self) -> list[int]:
        """Where in a unit each piece begins."""
        return [0, *accumulate(self.pieces)][:-1]


def units(number: int, most: int, to: Places | None, any_size: bool) -> Units:
    """Of so many columns, `most` to a unit. The last unit is moved back to end with the last column, and what it shares
    with another is computed twice. any_size: a unit, and every piece of it, can be stored however large it is.
    Else pieces are powers of two; and other units are moved back, too, to end with a run of columns, if else every
    result would be a piece by itself.
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
    """The function of a loop: see column_code.py."""

    name: str

    def homes(self, over: Collection[int]) -> Homes:
        """Of several states: over are rows of what is given that may be overwritten."""

    def text(self, slots: Sequence[int], home: Homes | None = None) -> str:
        """Where the shared numbers lie in the workspace of the caller is known when that has been spelled."""


@dataclass(frozen=True)
class ColumnCalls:
    """The loops that a graph calls, by the serial numbers of its calls."""

    codes: Mapping[int, Code]
    places: Mapping[int, Places]  # where they write what they give, if that is an output
    written: Mapping[str, set[int]]  # elements of outputs that they write so


NO_COLUMNS = ColumnCalls({}, {}, {})


def written(places: Iterable[Places]) -> dict[str, set[int]]:
    """The elements of outputs in these places."""
    found: dict[str, set[int]] = {}
    for p in places:
        found.setdefault(p.array, set()).update(p.taken)
    return found


def places(graph: Graph) -> dict[int, Places]:
    """By the serial number of a call, where all that it gives is an output, and nothing else."""
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
