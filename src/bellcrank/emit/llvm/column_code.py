"""LLVM IR of a loop over columns (graph/loops/column_loop.py) in tiles: several columns at once, and sums in registers.

    void @name(ptr ws, ptr given, ptr x)     results to the workspace; in scalar code, to an output if they are one

Numbers that all columns share are read from the caller's workspace in place. Sums are accumulated in tiles
(column_layout.py), each in a loop of its own over the columns. In vector code, waiting sums and results lie in rows
chosen by column_layout.py: first those of the arguments, then further ones at x. Elements are as wide as the lanes, and
matrices are stored row by row.

Scalar code puts columns into the lanes of vectors. Several columns or vectors are processed together, so that a shared
number is loaded once for all of them. The last ones are moved back to end with the last column, and the columns that
they share with others are computed twice. On a processor without masked stores, other vectors are also moved back to
end where the columns of an output are interrupted, if otherwise every element would be stored by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bellcrank.emit.llvm import lanes, register_allocation
from bellcrank.emit.llvm.column_layout import (
    OutputLayout,
    RowAssignment,
    SumTile,
    assign_rows,
    divide_columns,
    output_layouts,
    tile_sums,
    visible_operands,
)
from bellcrank.emit.llvm.host import host
from bellcrank.emit.llvm.lanes import Writer, constant_array
from bellcrank.emit.llvm.llvm_printer import LLVMPrinter
from bellcrank.emit.llvm.register_allocation import rebase
from bellcrank.graph import Graph, Node
from bellcrank.graph.loops.column_loop import ColumnLoop
from bellcrank.nodes.node import Value

# Processed together: vectors of columns in scalar code, columns in vector code.
PARALLEL_VECTORS, PARALLEL_COLUMNS = 4, 4


@dataclass(frozen=True)
class RoundAddresses:
    """Addresses of one round of the loop: its units in `given`, all their runs of results, and the waiting sums.

    The address of waiting sums is empty if they have rows of their own (column_layout.py).
    """

    given: list[str]
    starts: list[str]
    waiting_sums: str


class ColumnCode:
    """LLVM IR of a loop over columns, for scalar or vector code."""

    def __init__(
        self, loop: ColumnLoop, layout: OutputLayout | None, name: str, lanes: int, width: int, dtype: str
    ) -> None:
        """Prepare the code of a loop over columns.

        Parameters
        ----------
        loop
            The loop.
        layout
            Where the results lie in an output; None for the workspace.
        name
            Name of the function.
        lanes
            Lanes of an element.
        width
            Lanes of the processor.
        dtype
            Floating-point type.
        """
        self.loop, self.name, self.lanes, self.layout = loop, name, lanes, layout
        # With fewer columns, the surplus lanes are not stored.
        columns_in_lanes = lanes == 1 and 2 * loop.number > width
        self.w = Writer(width if columns_in_lanes else lanes, dtype)
        self.columns_per_vector = width if columns_in_lanes else 1  # columns in a vector
        self.element = self.w.bytes * lanes
        self.slots: Sequence[int] = ()
        self.assignment: RowAssignment | None = None
        self.waiting_sums: dict[int, int] = {}  # sum that a later tile reads -> its place among those of a round
        self.masks = host().avx512
        self.units = divide_columns(
            loop.number, width if columns_in_lanes else PARALLEL_COLUMNS, layout, self.masks or lanes > 1
        )
        begins = self.units.begins
        rounds = -(-len(begins) // PARALLEL_VECTORS) if columns_in_lanes else len(begins)
        units_per_round = -(-len(begins) // rounds)
        self.rounds = [
            begins[k : k + units_per_round]
            for k in [*range(0, len(begins) - units_per_round, units_per_round), len(begins) - units_per_round]
        ]
        self.parallel_count = units_per_round if columns_in_lanes else self.units.size

    def assign_rows(self, overwritable: Collection[int]) -> RowAssignment:
        """Assign rows to waiting sums and results; `overwritable` lists rows of arguments that may be overwritten."""
        reusable = len(self.units.begins) * self.units.size == self.loop.number
        tile_values = [[x for group in tile for x in group] for tile in self.order]
        tile_inputs = [
            [a for x in tile for a in self._loaded_nodes(x) if not self.loop.is_shared(a)] for tile in tile_values
        ]
        results = [*self.loop.graph.outputs["y"].flat]
        return assign_rows(self.loop.rows, overwritable, results, tile_values, tile_inputs, reusable, self.loop.shared)

    @cached_property
    def printers(self) -> list[LLVMPrinter]:
        """One printer for each of the columns or vectors that are processed together."""
        w = self.w
        return [
            LLVMPrinter(self.loop.graph, w.lanes, w.lanes, w.dtype, [], called={}, w=w)
            for _ in range(self.parallel_count)
        ]

    @cached_property
    def sum_tiles(self) -> list[SumTile]:
        """Tiles of sums."""
        one = self.printers[0]
        return tile_sums(self.loop, one.inline, one.addends, self._sums_per_tile())

    @property
    def trivial_results(self) -> list[Value]:
        """Results that are constants, or inputs passed through."""
        results = dict.fromkeys(self.loop.graph.outputs["y"].flat)
        return [x for x in results if not isinstance(x, Node) or x.op == "input"]

    @cached_property
    def order(self) -> list[Sequence[Sequence[Value]]]:
        """All tiles, after the results that need no computation."""
        return [[self.trivial_results], *self.sum_tiles] if self.trivial_results else [*self.sum_tiles]

    def _loaded_nodes(self, x: Value) -> list[Node]:
        """Return the nodes that must be loaded for it."""
        if not isinstance(x, Node):
            return []
        return [x] if x.op == "input" else visible_operands(x, self.printers[0].inline)

    def text(self, slots: Sequence[int], assignment: RowAssignment | None = None) -> str:
        """Return the function; `slots` are those of the shared numbers in the workspace, `assignment` the rows."""
        w = self.w
        w.lines, self.slots, self.assignment = [], slots, assignment
        self._emit_tiles()
        wait = (
            [] if assignment else [f"  %waiting = alloca [{len(self.rounds) * self._wait_bytes} x i8], align {w.align}"]
        )
        lines = [
            constant_array(f"{self.name}_units", np.array([self._offsets(units) for units in self.rounds], np.int64)),
            f"define internal void @{self.name}(ptr %ws, ptr %given, ptr %x) "
            f"noinline nounwind{f' alignstack({w.align})' if w.align > 16 else ''} {{",
            "entry:",
            *wait,
            *(f"  {line}" for line in (rebase(w.lines, w.align) if self.masks and self.lanes > 1 else w.lines)),
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    def _offsets(self, units: Sequence[int]) -> list[int]:
        """Return byte offsets of some units: of each in `given`, and of each of its runs of results."""
        offsets = []
        for k in units:
            offsets.append(k * self.element)
            if self.layout is not None:
                offsets += [self.layout.columns[k + c] * self.w.bytes for c in self.units.starts]
        return offsets

    def _round_addresses(self, k: str) -> RoundAddresses:
        w, table = self.w, self._offsets(self.rounds[0])
        if len(self.rounds) == 1:
            offsets = [str(x) for x in table]
        else:
            offset = w.let(f"mul i64 {k}, {8 * len(table)}")
            table_address = w.let(f"getelementptr i8, ptr @{self.name}_units, i64 {offset}", "p")
            offsets = [w.let(f"load i64, ptr {w.at(table_address, 8 * i)}, align 8", "x") for i in range(len(table))]
        offsets_per_unit = len(table) // len(self.rounds[0])
        given = [w.let(f"getelementptr i8, ptr %given, i64 {x}", "p") for x in offsets[::offsets_per_unit]]
        start_offsets = (
            [x for i, x in enumerate(offsets) if i % offsets_per_unit] if self.layout is not None else offsets
        )
        starts = [w.let(f"getelementptr i8, ptr %x, i64 {x}", "p") for x in start_offsets]
        if self.assignment:
            return RoundAddresses(given, starts, "")
        wait = w.let(f"getelementptr i8, ptr %waiting, i64 {w.let(f'mul i64 {k}, {self._wait_bytes}')}", "p")
        return RoundAddresses(given, starts, wait)

    def _emit_tiles(self) -> None:
        """Emit every tile with all its rounds before the next tile.

        What the sums of a tile share is then read again from the nearest cache, and so are the cache lines that its
        results are written to, a few columns at a time.
        """
        w, printers = self.w, self.printers
        added = printers[0].addends
        rows: dict[Value, list[int]] = {}  # result -> rows that it is stored in
        for i, x in enumerate(self.loop.graph.outputs["y"].flat):
            rows.setdefault(x, []).append(i)
        for n in (n for tile in self.sum_tiles for group in tile for n in group):
            for a in self._loaded_nodes(n):
                if a.op != "input" and a is not added.get(n.serial):
                    self.waiting_sums.setdefault(a.serial, len(self.waiting_sums))
        for k, tile in enumerate(self.order):
            w.do(f"br label %tile{k}\ntile{k}:")
            w.do(f"%k{k} = phi i64 [0, %{f'done{k - 1}' if k else 'entry'}], [%next{k}, %tile{k}]")
            self._emit_tile(tile, printers, rows, self._round_addresses(f"%k{k}"))
            w.do(f"%next{k} = add i64 %k{k}, 1")
            w.do(f"%more{k} = icmp ult i64 %next{k}, {len(self.rounds)}")
            w.do(f"br i1 %more{k}, label %tile{k}, label %done{k}\ndone{k}:")

    def _emit_tile(
        self,
        tile: Sequence[Sequence[Value]],
        printers: list[LLVMPrinter],
        rows: Mapping[Value, list[int]],
        addresses: RoundAddresses,
    ) -> None:
        for s in printers:
            s.value_names.clear()
        for group in tile:
            self._emit_terms([n for n in group if isinstance(n, Node)], printers, addresses)
        for x in (x for group in tile for x in group):
            if not isinstance(x, Node) or x.serial in self.waiting_sums or x in rows:
                values = [s.value_names[x.serial] if isinstance(x, Node) else self.w.immediate(x) for s in printers]
                if self.assignment or (isinstance(x, Node) and x.serial in self.waiting_sums):
                    for k, value in enumerate(values):
                        self.w.store(value, self._waiting_address(x, k, addresses))
                for i in rows.get(x, ()) if not self.assignment else ():
                    self._store_row(i, values, addresses.starts)

    def _emit_terms(self, group: Sequence[Node], printers: list[LLVMPrinter], addresses: RoundAddresses) -> None:
        """Emit one term of each sum of a tile, for all columns that are processed together.

        Registers hold the smaller set: the shared numbers, of which every sum has one, or the numbers of the columns,
        of which every column has one.
        """
        inputs = [(n, self._loaded_nodes(n)) for n in group]
        if len(group) < len(printers):
            for _, read in inputs:
                self._fetch([a for a in read if self.loop.is_shared(a)], printers, range(len(printers)), addresses)
            for k, s in enumerate(printers):
                for n, read in inputs:
                    self._fetch(read, printers, [k], addresses)
                    if n.op != "input":
                        s.value_names[n.serial] = s.operation(n)
            return
        for n, read in inputs:
            self._fetch(read, printers, range(len(printers)), addresses)
            for s in printers if n.op != "input" else ():
                s.value_names[n.serial] = s.operation(n)

    @property
    def _wait_bytes(self) -> int:
        """Bytes of the waiting sums of a round."""
        return len(self.waiting_sums) * self.parallel_count * self.w.align

    def _waiting_address(self, x: Value, k: int, addresses: RoundAddresses) -> str:
        if self.assignment:
            place = self.assignment.row_of_value[x]
            start, row = (
                (addresses.given, place)
                if place < self.assignment.argument_rows
                else (addresses.starts, place - self.assignment.argument_rows)
            )
            return self.w.at(start[0], (row * self.loop.number + k) * self.element)
        assert isinstance(x, Node)
        return self.w.at(addresses.waiting_sums, (self.waiting_sums[x.serial] * self.parallel_count + k) * self.w.align)

    def _sums_per_tile(self) -> int:
        """Return how many sums form a tile, so that they fit into registers with one number per sum or per column."""
        room, k = host().registers - register_allocation.TEMPORARY_REGISTERS - 1, self.parallel_count
        return max(1, (room - k) // k, min(k, room // (k + 1)))

    def _fetch(
        self, nodes: Sequence[Node], printers: list[LLVMPrinter], columns: Iterable[int], addresses: RoundAddresses
    ) -> None:
        """Load inputs, or sums of an earlier tile, before their first use in this one."""
        w = self.w
        for n in nodes:
            for k in columns:
                s = printers[k]
                if n.serial in s.value_names:
                    continue
                if n.op != "input":
                    s.value_names[n.serial] = w.load(self._waiting_address(n, k, addresses))
                elif self.loop.is_shared(n):
                    first_names = printers[0].value_names
                    if n.serial not in first_names:
                        first_names[n.serial] = self._broadcast(n.args[1])
                    s.value_names[n.serial] = first_names[n.serial]
                else:
                    start, column = (addresses.given[0], k) if self.columns_per_vector == 1 else (addresses.given[k], 0)
                    place = ((n.args[1] - self.loop.shared) * self.loop.number + column) * self.element
                    s.value_names[n.serial] = w.load(w.at(start, place), align=w.bytes)

    def _broadcast(self, i: int) -> str:
        w, address = self.w, self.w.at("%ws", self.slots[i] * self.element)
        if self.columns_per_vector == 1:
            return w.load(address, align=w.bytes)
        one = w.let(f"insertelement {w.type} poison, {w.element} {w.load(address, w.element, w.bytes)}, i64 0")
        return w.let(f"shufflevector {w.type} {one}, {w.type} poison, <{w.lanes} x i32> zeroinitializer")

    def _store_row(self, row: int, values: list[str], starts: list[str]) -> None:
        """Store a row of a round."""
        w, unit = self.w, self.units
        row_addresses = [w.at(p, (row * self.loop.number * self.element) if self.layout is None else 0) for p in starts]
        if self.columns_per_vector > 1:
            row_offset = 0 if self.layout is None else self.layout.rows[row] * w.bytes
            count = len(unit.pieces)
            for k, value in enumerate(values):
                addresses = [w.at(p, row_offset) for p in row_addresses[k * count : (k + 1) * count]]
                self._store_pieces(value, [*zip(addresses, unit.pieces, strict=True)])
        elif self.layout is None:
            for k, value in enumerate(values):
                w.store(value, w.at(row_addresses[0], k * self.element), align=w.bytes)
        else:
            for first, start, size in zip(unit.starts, row_addresses, unit.pieces, strict=True):
                for k, value in enumerate(values[first : first + size], self.layout.rows[row]):
                    w.store(value, w.at(start, k * w.bytes))

    def _store_pieces(self, value: str, pieces: list[tuple[str, int]]) -> None:
        """Store consecutive lanes of a vector in pieces: (address, number of lanes)."""
        w, lane = self.w, 0
        for address, size in pieces:
            if size == self.columns_per_vector:
                w.store(value, address, align=w.bytes)
            elif self.masks:
                lanes.store_masked(w, value, w.lanes, w.at(address, -lane * w.bytes), lane, size)
            elif size & (size - 1):
                for j in range(size):
                    self._store_lane(value, lane + j, w.at(address, j * w.bytes))
            elif size == 1:
                self._store_lane(value, lane, address)
            else:
                part = w.shuffle(w.type, value, "poison", list(range(lane, lane + size)))
                w.store(part, address, f"<{size} x {w.element}>", w.bytes)
            lane += size

    def _store_lane(self, value: str, lane: int, address: str) -> None:
        w = self.w
        w.store(w.let(f"extractelement {w.type} {value}, i64 {lane}"), address, w.element, w.bytes)


def column_calls(graph: Graph, lanes: int, width: int, dtype: str, prefix: str = "") -> dict[int, ColumnCode]:
    """Return the code of each loop over columns that `graph` calls, by the serial number of the call.

    Vector code leaves results in the workspace.

    Parameters
    ----------
    graph
        The calling graph.
    lanes
        Lanes of an element.
    width
        Lanes of the processor.
    dtype
        Floating-point type.
    prefix
        Prefix of the names of the functions.
    """
    layouts = output_layouts(graph) if lanes == 1 else {}
    loops = [(n.serial, s) for n in graph.nodes if n.op == "call" for s in n.args[0].loops().body]
    return {
        serial: ColumnCode(loop, layouts.get(serial), f"{prefix}columns{k}", lanes, width, dtype)
        for k, (serial, loop) in enumerate(loops)
        if isinstance(loop, ColumnLoop)
    }


def written_elements(codes: Mapping[int, ColumnCode]) -> dict[str, set[int]]:
    """Return the elements of outputs that the loops `codes` store directly, by output."""
    elements: dict[str, set[int]] = {}
    for layout in (code.layout for code in codes.values()):
        if layout is not None:
            elements.setdefault(layout.array, set()).update(layout.elements)
    return elements
