"""Layout of the results of Columns in outputs: a loop stores such results there directly, without a copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np

from bellcrank.emit.llvm.column_tiles import RowAssignment
from bellcrank.graph import Graph, Node
from bellcrank.graph.columns import ColumnGraph


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


class ColumnFunction(Protocol):
    """Code generator of a loop over columns (column_code.py)."""

    name: str

    def assign_rows(self, overwritable: Collection[int]) -> RowAssignment:
        """Assign rows for vector code; `overwritable` lists the rows of arguments that may be overwritten."""

    def text(self, slots: Sequence[int], assignment: RowAssignment | None = None) -> str:
        """Return the function; `slots` are those of shared numbers in the caller's workspace, `assignment` the rows."""


@dataclass(frozen=True)
class ColumnCalls:
    """Loops over columns that a graph calls, by the serial numbers of the calls."""

    codes: Mapping[int, ColumnFunction]
    layouts: Mapping[int, OutputLayout]  # where they store results that are outputs
    written: Mapping[str, set[int]]  # elements of outputs that they store directly


NO_COLUMNS = ColumnCalls({}, {}, {})


def written_elements(layouts: Iterable[OutputLayout]) -> dict[str, set[int]]:
    """Return the elements of outputs that `layouts` cover, by output."""
    elements: dict[str, set[int]] = {}
    for p in layouts:
        elements.setdefault(p.array, set()).update(p.elements)
    return elements


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
        if n.op == "result" and isinstance(n.args[0].args[0], ColumnGraph):
            results.setdefault(n.args[0], {})[n.args[1]] = n
    single_positions = {
        s: positions[0] for s, positions in output_positions.items() if len(positions) == 1 and not users.get(s)
    }
    layouts = {
        call.serial: _output_layout(call.args[0], call_results, single_positions)
        for call, call_results in results.items()
    }
    return {serial: p for serial, p in layouts.items() if p is not None}


def _output_layout(
    function: ColumnGraph, results: Mapping[int, Node], single_positions: Mapping[int, tuple[str, int]]
) -> OutputLayout | None:
    shape = function.shapes["x"]
    if len(results) < np.prod(shape) or any(n.serial not in single_positions for n in results.values()):
        return None
    positions = [single_positions[results[k].serial] for k in range(len(results))]
    flat = np.array([k for _, k in positions]).reshape(shape)
    rows, columns = flat[:, 0] - flat[0, 0], flat[0]
    if len({name for name, _ in positions}) > 1 or (flat != rows[:, None] + columns).any():
        return None
    return OutputLayout(positions[0][0], tuple(rows.tolist()), tuple(columns.tolist()))
