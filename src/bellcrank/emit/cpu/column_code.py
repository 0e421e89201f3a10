"""Columns of a graph (graph/columns.py) as LLVM IR: a loop over the columns, and in it the graph of one.

    void @name(ptr ws, ptr given, ptr x)     results to the workspace; of one state, to an output where they are one

Numbers that all columns share are read where they lie in the caller's workspace. Sums are added up in tiles
(column_tiles.py), each in a loop of its own over the columns. Of several states, sums that wait and results lie in
places (column_homes.py): in those of what was given, and beyond them at x.
Elements are as wide as the lanes, and matrices lie row by row. A state that is computed alone has its columns in the
lanes of vectors. Some columns or vectors go abreast, so that a shared number is fetched once for all of them; the last
ones are moved back so that they end with the last column, and what they share with others is computed twice. Where
some lanes of a vector cannot be stored, so are those that end where the columns of an output do not go on, if else
every element would be stored by itself.
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

VECTORS, STATES = 4, 4  # abreast: vectors of columns of one state, columns of as many states as there are lanes


@dataclass(frozen=True)
class Round:
    """Addresses of a round: of its units in `given`, of all their runs of results, and of the sums that wait, unless
    those have homes.
    """

    given: list[str]
    starts: list[str]
    wait: str


class ColumnCode:
    def __init__(self, graph: Columns, to: Places | None, name: str, lanes: int, width: int, dtype: str) -> None:
        """lanes: as many as an element has; width: as many as the processor has."""
        self.graph, self.name, self.lanes, self.to = graph, name, lanes, to
        alone = lanes == 1 and 2 * graph.number > width  # fewer columns than lanes: what is in the others is not kept
        self.w = Writer(width if alone else lanes, dtype)
        self.step = width if alone else 1  # columns in a vector
        self.element = self.w.bytes * lanes
        self.slots: Sequence[int] = ()
        self.home: Homes | None = None
        self.waiting: dict[int, int] = {}  # of a sum that a later tile reads, its place among those of a round
        self.masks = host().avx512
        self.units = units(graph.number, width if alone else STATES, to, self.masks or lanes > 1)
        begins = self.units.begins
        rounds = -(-len(begins) // VECTORS) if alone else len(begins)
        each = -(-len(begins) // rounds)
        self.rounds = [begins[k : k + each] for k in [*range(0, len(begins) - each, each), len(begins) - each]]
        self.abreast = each if alone else self.units.size

    def homes(self, over: Collection[int]) -> Homes:
        """over: rows of what is given that may be overwritten."""
        once = len(self.units.begins) * self.units.size == self.graph.number
        made = [[x for group in tile for x in group] for tile in self.order]
        read = [[a for x in tile for a in self._read(x) if a.args[:1] != ("shared",)] for tile in made]
        return homes(self.graph.inputs["given"][0], over, [*self.graph.body.outputs["x"].flat], made, read, once)

    @cached_property
    def spellers(self) -> list[Speller]:
        """One for each of the columns or vectors that go abreast."""
        w = self.w
        made = [Speller(self.graph.body, w.lanes, w.lanes, w.dtype, [], called={}) for _ in range(self.abreast)]
        for s in made:
            s.w = w
        return made

    @cached_property
    def sums(self) -> list[Tile]:
        one = self.spellers[0]
        return tiles(self.graph.body, one.inline, one.added, self._together())

    @property
    def known(self) -> list[Value]:
        """Results that are numbers, or handed on as they came."""
        found = dict.fromkeys(self.graph.body.outputs["x"].flat)
        return [x for x in found if not isinstance(x, Node) or x.op == "input"]

    @cached_property
    def order(self) -> list[Sequence[Sequence[Value]]]:
        """All tiles, and what is known before them."""
        return [[self.known], *self.sums] if self.known else [*self.sums]

    def _operands(self, n: Node) -> list[Node]:
        return operands(n, self.spellers[0].inline)

    def _read(self, x: Value) -> list[Node]:
        """What is fetched for it."""
        if not isinstance(x, Node):
            return []
        return [x] if x.op == "input" else self._operands(x)

    def text(self, slots: Sequence[int], home: Homes | None = None) -> str:
        """slots: of the shared numbers, in the workspace."""
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
        """Of some units, in bytes: where each is in `given`, and where each of its runs of results goes."""
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
        """All rounds of a tile before the next one: what its sums share is read again from nearby, and so are the lines
        that its results are written to, a few columns at a time.
        """
        body, w, spellers = self.graph.body, self.w, self.spellers
        added = spellers[0].added
        rows: dict[Value, list[int]] = {}  # of a result, where it goes
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
        """A term of each sum of a tile, of all columns abreast. Registers hold what is fewer: numbers that all columns
        share, of which every sum has one, or those of the columns, of which every column has one.
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
        """Bytes of what waits, of a round."""
        return len(self.waiting) * self.abreast * self.w.align

    def _waiting(self, x: Value, k: int, at: Round) -> str:
        if self.home:
            place = self.home.values[x]
            start, row = (at.given, place) if place < self.home.given else (at.starts, place - self.home.given)
            return self.w.at(start[0], (row * self.graph.number + k) * self.element)
        assert isinstance(x, Node)
        return self.w.at(at.wait, (self.waiting[x.serial] * self.abreast + k) * self.w.align)

    def _together(self) -> int:
        """Sums in a tile: as many as there are registers for, beside one number of each sum or of each column."""
        room, k = host().registers - registers.SPARE - 1, self.abreast
        return max(1, (room - k) // k, min(k, room // (k + 1)))

    def _fetch(self, nodes: Sequence[Node], spellers: list[Speller], columns: Iterable[int], at: Round) -> None:
        """Inputs, or sums of an earlier tile, before their first use in this one."""
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
        """A row of a round."""
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
        """Lanes of a vector, so many of them to each of some places."""
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
    """The functions of all columns that a graph calls. Several states leave all results in the workspace."""
    to = places(graph) if lanes == 1 else {}
    made = {
        n.serial: ColumnCode(n.args[0], to.get(n.serial), f"{prefix}columns{k}", lanes, width, dtype)
        for k, n in enumerate(n for n in graph.nodes if n.op == "call")
    }
    return ColumnCalls(made, to, written(to.values()))
