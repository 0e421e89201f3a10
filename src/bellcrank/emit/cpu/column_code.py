"""LLVM IR for the columns of a graph (graph/columns.py): a loop over the columns with the graph of one column inside.

    void @name(ptr ws, ptr given, ptr x)     results to the workspace; in scalar code, to an output if they are one

Numbers that all columns share are read from the caller's workspace in place. Sums are accumulated in tiles
(column_tiles.py), each in a loop of its own over the columns. In vector code, waiting sums and results lie in rows
chosen by column_homes.py: first those of the arguments, then further ones at x. Elements are as wide as the lanes, and
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

from bellcrank.emit.cpu import lanes, registers
from bellcrank.emit.cpu.column_homes import Homes, homes
from bellcrank.emit.cpu.column_places import ColumnCalls, Places, places, units, written
from bellcrank.emit.cpu.column_tiles import Tile, operands, tiles
from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.lanes import Writer, data
from bellcrank.emit.cpu.reach import near
from bellcrank.emit.cpu.speller import Speller
from bellcrank.graph import Graph, Node
from bellcrank.graph.columns import Columns
from bellcrank.nodes.node import Value

VECTORS, STATES = 4, 4  # processed together: vectors of columns in scalar code, columns in vector code


@dataclass(frozen=True)
class Round:
    """Addresses of one round of the loop: its units in `given`, all their runs of results, and the waiting sums.

    The address of waiting sums is empty if they have rows of their own (column_homes.py).
    """

    given: list[str]
    starts: list[str]
    wait: str


class ColumnCode:
    """LLVM IR of a loop over columns, for scalar or vector code."""

    def __init__(self, graph: Columns, to: Places | None, name: str, lanes: int, width: int, dtype: str) -> None:
        """Prepare the code of a loop over columns.

        Parameters
        ----------
        graph
            The columns.
        to
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
        self.graph, self.name, self.lanes, self.to = graph, name, lanes, to
        alone = lanes == 1 and 2 * graph.number > width  # with fewer columns, the surplus lanes are not stored
        self.w = Writer(width if alone else lanes, dtype)
        self.step = width if alone else 1  # columns in a vector
        self.element = self.w.bytes * lanes
        self.slots: Sequence[int] = ()
        self.home: Homes | None = None
        self.waiting: dict[int, int] = {}  # sum that a later tile reads -> its place among those of a round
        self.masks = host().avx512
        self.units = units(graph.number, width if alone else STATES, to, self.masks or lanes > 1)
        begins = self.units.begins
        rounds = -(-len(begins) // VECTORS) if alone else len(begins)
        each = -(-len(begins) // rounds)
        self.rounds = [begins[k : k + each] for k in [*range(0, len(begins) - each, each), len(begins) - each]]
        self.abreast = each if alone else self.units.size

    def homes(self, over: Collection[int]) -> Homes:
        """Assign rows to waiting sums and results; `over` lists the rows of arguments that may be overwritten."""
        once = len(self.units.begins) * self.units.size == self.graph.number
        made = [[x for group in tile for x in group] for tile in self.order]
        read = [[a for x in tile for a in self._read(x) if a.args[:1] != ("shared",)] for tile in made]
        return homes(self.graph.inputs["given"][0], over, [*self.graph.body.outputs["x"].flat], made, read, once)

    @cached_property
    def spellers(self) -> list[Speller]:
        """One printer for each of the columns or vectors that are processed together."""
        w = self.w
        made = [Speller(self.graph.body, w.lanes, w.lanes, w.dtype, [], called={}) for _ in range(self.abreast)]
        for s in made:
            s.w = w
        return made

    @cached_property
    def sums(self) -> list[Tile]:
        """Tiles of sums."""
        one = self.spellers[0]
        return tiles(self.graph.body, one.inline, one.added, self._together())

    @property
    def known(self) -> list[Value]:
        """Results that are constants, or inputs passed through."""
        found = dict.fromkeys(self.graph.body.outputs["x"].flat)
        return [x for x in found if not isinstance(x, Node) or x.op == "input"]

    @cached_property
    def order(self) -> list[Sequence[Sequence[Value]]]:
        """All tiles, after the results that need no computation."""
        return [[self.known], *self.sums] if self.known else [*self.sums]

    def _operands(self, n: Node) -> list[Node]:
        return operands(n, self.spellers[0].inline)

    def _read(self, x: Value) -> list[Node]:
        """Return the nodes that must be loaded for it."""
        if not isinstance(x, Node):
            return []
        return [x] if x.op == "input" else self._operands(x)

    def text(self, slots: Sequence[int], home: Homes | None = None) -> str:
        """Return the function; `slots` are those of the shared numbers in the workspace, `home` the rows to use."""
        w = self.w
        w.lines, self.slots, self.home = [], slots, home
        self._tiles()
        wait = [] if home else [f"  %waiting = alloca [{len(self.rounds) * self._wait} x i8], align {w.align}"]
        lines = [
            data(f"{self.name}_units", np.array([self._offsets(units) for units in self.rounds], np.int64)),
            f"define internal void @{self.name}(ptr %ws, ptr %given, ptr %x) "
            f"noinline nounwind{f' alignstack({w.align})' if w.align > 16 else ''} {{",
            "entry:",
            *wait,
            *(f"  {line}" for line in (near(w.lines, w.align) if self.masks and self.lanes > 1 else w.lines)),
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    def _offsets(self, units: Sequence[int]) -> list[int]:
        """Return byte offsets of some units: of each in `given`, and of each of its runs of results."""
        found = []
        for k in units:
            found.append(k * self.element)
            if self.to is not None:
                found += [self.to.columns[k + c] * self.w.bytes for c in self.units.starts]
        return found

    def _round(self, k: str) -> Round:
        w, table = self.w, self._offsets(self.rounds[0])
        if len(self.rounds) == 1:
            offsets = [str(x) for x in table]
        else:
            at = w.let(f"mul i64 {k}, {8 * len(table)}")
            here = w.let(f"getelementptr i8, ptr @{self.name}_units, i64 {at}", "p")
            offsets = [w.let(f"load i64, ptr {w.at(here, 8 * i)}, align 8", "x") for i in range(len(table))]
        each = len(table) // len(self.rounds[0])
        given = [w.let(f"getelementptr i8, ptr %given, i64 {x}", "p") for x in offsets[::each]]
        mine = [x for i, x in enumerate(offsets) if i % each] if self.to is not None else offsets
        starts = [w.let(f"getelementptr i8, ptr %x, i64 {x}", "p") for x in mine]
        if self.home:
            return Round(given, starts, "")
        wait = w.let(f"getelementptr i8, ptr %waiting, i64 {w.let(f'mul i64 {k}, {self._wait}')}", "p")
        return Round(given, starts, wait)

    def _tiles(self) -> None:
        """Emit every tile with all its rounds before the next tile.

        What the sums of a tile share is then read again from the nearest cache, and so are the cache lines that its
        results are written to, a few columns at a time.
        """
        body, w, spellers = self.graph.body, self.w, self.spellers
        added = spellers[0].added
        rows: dict[Value, list[int]] = {}  # result -> rows that it is stored in
        for i, x in enumerate(body.outputs["x"].flat):
            rows.setdefault(x, []).append(i)
        for n in (n for tile in self.sums for group in tile for n in group):
            for a in self._operands(n):
                if a.op != "input" and a is not added.get(n.serial):
                    self.waiting.setdefault(a.serial, len(self.waiting))
        for k, tile in enumerate(self.order):
            w.do(f"br label %tile{k}\ntile{k}:")
            w.do(f"%k{k} = phi i64 [0, %{f'done{k - 1}' if k else 'entry'}], [%next{k}, %tile{k}]")
            self._tile(tile, spellers, rows, self._round(f"%k{k}"))
            w.do(f"%next{k} = add i64 %k{k}, 1")
            w.do(f"%more{k} = icmp ult i64 %next{k}, {len(self.rounds)}")
            w.do(f"br i1 %more{k}, label %tile{k}, label %done{k}\ndone{k}:")

    def _tile(
        self,
        tile: Sequence[Sequence[Value]],
        spellers: list[Speller],
        rows: Mapping[Value, list[int]],
        at: Round,
    ) -> None:
        for s in spellers:
            s.names.clear()
        for group in tile:
            self._terms([n for n in group if isinstance(n, Node)], spellers, at)
        for x in (x for group in tile for x in group):
            if not isinstance(x, Node) or x.serial in self.waiting or x in rows:
                values = [s.names[x.serial] if isinstance(x, Node) else self.w.immediate(x) for s in spellers]
                if self.home or (isinstance(x, Node) and x.serial in self.waiting):
                    for k, value in enumerate(values):
                        self.w.store(value, self._waiting(x, k, at))
                for i in rows.get(x, ()) if not self.home else ():
                    self._store(i, values, at.starts)

    def _terms(self, group: Sequence[Node], spellers: list[Speller], at: Round) -> None:
        """Emit one term of each sum of a tile, for all columns that are processed together.

        Registers hold the smaller set: the shared numbers, of which every sum has one, or the numbers of the columns,
        of which every column has one.
        """
        inputs = [(n, self._read(n)) for n in group]
        if len(group) < len(spellers):
            for _, read in inputs:
                self._fetch([a for a in read if a.args[:1] == ("shared",)], spellers, range(len(spellers)), at)
            for k, s in enumerate(spellers):
                for n, read in inputs:
                    self._fetch(read, spellers, [k], at)
                    if n.op != "input":
                        s.names[n.serial] = s._operation(n)
            return
        for n, read in inputs:
            self._fetch(read, spellers, range(len(spellers)), at)
            for s in spellers if n.op != "input" else ():
                s.names[n.serial] = s._operation(n)

    @property
    def _wait(self) -> int:
        """Bytes of the waiting sums of a round."""
        return len(self.waiting) * self.abreast * self.w.align

    def _waiting(self, x: Value, k: int, at: Round) -> str:
        if self.home:
            place = self.home.values[x]
            start, row = (at.given, place) if place < self.home.given else (at.starts, place - self.home.given)
            return self.w.at(start[0], (row * self.graph.number + k) * self.element)
        assert isinstance(x, Node)
        return self.w.at(at.wait, (self.waiting[x.serial] * self.abreast + k) * self.w.align)

    def _together(self) -> int:
        """Return how many sums form a tile, so that they fit into registers with one number per sum or per column."""
        room, k = host().registers - registers.SPARE - 1, self.abreast
        return max(1, (room - k) // k, min(k, room // (k + 1)))

    def _fetch(self, nodes: Sequence[Node], spellers: list[Speller], columns: Iterable[int], at: Round) -> None:
        """Load inputs, or sums of an earlier tile, before their first use in this one."""
        w = self.w
        for n in nodes:
            for k in columns:
                s = spellers[k]
                if n.serial in s.names:
                    continue
                if n.op != "input":
                    s.names[n.serial] = w.load(self._waiting(n, k, at))
                elif n.args[0] == "shared":
                    one = spellers[0].names
                    if n.serial not in one:
                        one[n.serial] = self._shared(n.args[1])
                    s.names[n.serial] = one[n.serial]
                else:
                    start, column = (at.given[0], k) if self.step == 1 else (at.given[k], 0)
                    place = (n.args[1] * self.graph.number + column) * self.element
                    s.names[n.serial] = w.load(w.at(start, place), align=w.bytes)

    def _shared(self, i: int) -> str:
        w, at = self.w, self.w.at("%ws", self.slots[i] * self.element)
        if self.step == 1:
            return w.load(at, align=w.bytes)
        one = w.let(f"insertelement {w.type} poison, {w.element} {w.load(at, w.element, w.bytes)}, i64 0")
        return w.let(f"shufflevector {w.type} {one}, {w.type} poison, <{w.lanes} x i32> zeroinitializer")

    def _store(self, row: int, values: list[str], starts: list[str]) -> None:
        """Store a row of a round."""
        w, unit = self.w, self.units
        at = [w.at(p, (row * self.graph.number * self.element) if self.to is None else 0) for p in starts]
        if self.step > 1:
            down = 0 if self.to is None else self.to.rows[row] * w.bytes
            count = len(unit.pieces)
            for k, value in enumerate(values):
                mine = [w.at(p, down) for p in at[k * count : (k + 1) * count]]
                self._columns(value, [*zip(mine, unit.pieces, strict=True)])
        elif self.to is None:
            for k, value in enumerate(values):
                w.store(value, w.at(at[0], k * self.element), align=w.bytes)
        else:
            for first, start, size in zip(unit.starts, at, unit.pieces, strict=True):
                for k, value in enumerate(values[first : first + size], self.to.rows[row]):
                    w.store(value, w.at(start, k * w.bytes))

    def _columns(self, value: str, pieces: list[tuple[str, int]]) -> None:
        """Store consecutive lanes of a vector in pieces: (address, number of lanes)."""
        w, lane = self.w, 0
        for at, size in pieces:
            if size == self.step:
                w.store(value, at, align=w.bytes)
            elif self.masks:
                lanes.masked(w, value, w.lanes, w.at(at, -lane * w.bytes), lane, size)
            elif size & (size - 1):
                for j in range(size):
                    self._columns_lane(value, lane + j, w.at(at, j * w.bytes))
            elif size == 1:
                self._columns_lane(value, lane, at)
            else:
                part = w.shuffle(w.type, value, "poison", list(range(lane, lane + size)))
                w.store(part, at, f"<{size} x {w.element}>", w.bytes)
            lane += size

    def _columns_lane(self, value: str, lane: int, at: str) -> None:
        w = self.w
        w.store(w.let(f"extractelement {w.type} {value}, i64 {lane}"), at, w.element, w.bytes)


def calls(graph: Graph, lanes: int, width: int, dtype: str, prefix: str = "") -> ColumnCalls:
    """Return the functions of all loops over columns that `graph` calls; vector code leaves results in the workspace.

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
    to = places(graph) if lanes == 1 else {}
    made = {
        n.serial: ColumnCode(n.args[0], to.get(n.serial), f"{prefix}columns{k}", lanes, width, dtype)
        for k, n in enumerate(n for n in graph.nodes if n.op == "call")
    }
    return ColumnCalls(made, to, written(to.values()))
