"""Columns of a graph (graph/columns.py) as LLVM IR: a loop over the columns, and in it the graph of one.

    void @name(ptr ws, ptr given, ptr x)                  results to the workspace
    void @name(ptr ws, ptr given, ptr out, i64 stride)    or to an output, rows of states; one lane has no stride

Numbers that all columns share are read where they lie in the caller's workspace. Sums are added up in tiles
(column_tiles.py), each in a loop of its own over the columns.
Elements are as wide as the lanes, and matrices lie row by row. A state that is computed alone has its columns in the
lanes of vectors. Some columns or vectors go abreast, so that a shared number is fetched once for all of them; the last
ones are moved back so that they end with the last column, and what they share with others is computed twice. So are
those that end where the columns of an output do not go on, if else every element would be stored by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.emit.cpu import lanes, registers
from bellcrank.emit.cpu.column_places import ColumnCalls, Places, begins, places, written
from bellcrank.emit.cpu.column_tiles import operands, tiles
from bellcrank.emit.cpu.host import host
from bellcrank.emit.cpu.lanes import Writer
from bellcrank.emit.cpu.plan import Tile
from bellcrank.emit.cpu.rolled_code import data
from bellcrank.emit.cpu.speller import Speller
from bellcrank.graph import Graph, Node
from bellcrank.graph.columns import Columns

VECTORS, STATES = 4, 4  # abreast: vectors of columns of one state, columns of as many states as there are lanes


@dataclass(frozen=True)
class Round:
    """Addresses of a round: of its units in `given`, of all their runs of results, and of the sums that wait."""

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
        self.waiting: dict[int, int] = {}  # of a sum that a later tile reads, its place among those of a round
        self.unit = min(graph.number, width if alone else STATES)  # columns that lie side by side in `given`
        units, self.run = begins(graph.number, self.unit, to)
        rounds = -(-len(units) // VECTORS) if alone else len(units)
        each = -(-len(units) // rounds)
        self.rounds = [units[k : k + each] for k in [*range(0, len(units) - each, each), len(units) - each]]
        self.abreast = each if alone else self.unit

    def text(self, slots: Sequence[int]) -> str:
        """slots: of the shared numbers, in the workspace."""
        w = self.w
        w.lines, self.slots = [], slots
        self._tiles()
        stride = ", i64 %stride" if self.to is not None and self.lanes > 1 else ""
        lines = [
            data(f"{self.name}_units", np.array([self._offsets(units) for units in self.rounds], np.int64)),
            f"define internal void @{self.name}(ptr %ws, ptr noalias %given, ptr noalias %x{stride}) "
            f"noinline nounwind{f' alignstack({w.align})' if w.align > 16 else ''} {{",
            "entry:",
            f"  %waiting = alloca [{len(self.rounds) * self._wait} x i8], align {w.align}",
            *(f"  {line}" for line in w.lines),
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
                found += [self.to.columns[c] * self.w.bytes for c in range(k, k + self.unit, self.run)]
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
        wait = w.let(f"getelementptr i8, ptr %waiting, i64 {w.let(f'mul i64 {k}, {self._wait}')}", "p")
        return Round(given, starts, wait)

    def _tiles(self) -> None:
        """All rounds of a tile before the next one: what its sums share is read again from nearby, and so are the lines
        that its results are written to, a few columns at a time.
        """
        body, w = self.graph.body, self.w
        spellers = [Speller(body, w.lanes, w.lanes, w.dtype, [], called={}) for _ in range(self.abreast)]
        for s in spellers:
            s.w = w
        one = spellers[0]
        rows: dict[Node | float, list[int]] = {}  # of a result, where it goes
        for i, x in enumerate(body.outputs["x"].flat):
            rows.setdefault(x, []).append(i)
        sums = tiles(body, one.inline, one.added, self._together())
        for n in (n for tile in sums for n in tile):
            for a in operands(n, one.inline):
                if a.op != "input" and a is not one.added.get(n.serial):
                    self.waiting.setdefault(a.serial, len(self.waiting))
        known = [x for x in rows if not isinstance(x, Node) or x.op == "input"]
        order: list[Sequence[Node | float]] = [known, *sums] if known else [*sums]
        for k, tile in enumerate(order):
            w.do(f"br label %tile{k}\ntile{k}:")
            w.do(f"%k{k} = phi i64 [0, %{f'done{k - 1}' if k else 'entry'}], [%next{k}, %tile{k}]")
            self._tile(tile, spellers, rows, self._round(f"%k{k}"))
            w.do(f"%next{k} = add i64 %k{k}, 1")
            w.do(f"%more{k} = icmp ult i64 %next{k}, {len(self.rounds)}")
            w.do(f"br i1 %more{k}, label %tile{k}, label %done{k}\ndone{k}:")

    def _tile(
        self,
        tile: Sequence[Node | float],
        spellers: list[Speller],
        rows: Mapping[Node | float, list[int]],
        at: Round,
    ) -> None:
        for s in spellers:
            s.names.clear()
        for n in (n for n in tile if isinstance(n, Node)):
            for a in [n] if n.op == "input" else operands(n, spellers[0].inline):
                self._fetch(a, spellers, at)
            for s in spellers if n.op != "input" else ():
                s.names[n.serial] = s._operation(n)
        for x in tile:
            values = [s.names[x.serial] if isinstance(x, Node) else self.w.immediate(x) for s in spellers]
            if isinstance(x, Node) and x.serial in self.waiting:
                for k, value in enumerate(values):
                    self.w.store(value, self._waiting(x, k, at))
            for i in rows.get(x, ()):
                self._store(i, values, at.starts)

    @property
    def _wait(self) -> int:
        """Bytes of what waits, of a round."""
        return len(self.waiting) * self.abreast * self.w.align

    def _waiting(self, n: Node, k: int, at: Round) -> str:
        return self.w.at(at.wait, (self.waiting[n.serial] * self.abreast + k) * self.w.align)

    def _together(self) -> int:
        """Sums in a tile: as many as there are registers for, beside a number of each column and one of all."""
        return max(1, (host().registers - registers.SPARE - self.abreast) // self.abreast)

    def _fetch(self, n: Node, spellers: list[Speller], at: Round) -> None:
        """An input, or a sum of an earlier tile, before its first use in this one."""
        if n.serial in spellers[0].names:
            return
        w = self.w
        for k, s in enumerate(spellers):
            if n.op != "input":
                s.names[n.serial] = w.load(self._waiting(n, k, at))
            elif n.args[0] == "shared":
                s.names[n.serial] = spellers[0].names[n.serial] if k else self._shared(n.args[1])
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
        w = self.w
        at = [w.at(p, (row * self.graph.number * self.element) if self.to is None else 0) for p in starts]
        if self.step > 1:
            each = min(self.run, self.unit)
            down = 0 if self.to is None else self.to.rows[row] * w.bytes
            pieces = self.unit // each
            for k, value in enumerate(values):
                self._columns(value, [(w.at(p, down), each) for p in at[k * pieces : (k + 1) * pieces]])
        elif self.to is None:
            for k, value in enumerate(values):
                w.store(value, w.at(at[0], k * self.element), align=w.bytes)
        else:
            stride = "%stride" if self.lanes > 1 else ""
            for k, start in enumerate(at):
                mine = values[k * self.run : (k + 1) * self.run]
                lanes.store(w, Tile("", self.to.rows[row], len(mine)), start, stride, mine)

    def _columns(self, value: str, pieces: list[tuple[str, int]]) -> None:
        """Lanes of a vector, so many of them to each of some places."""
        w, lane = self.w, 0
        for at, size in pieces:
            if size == self.step:
                w.store(value, at, align=w.bytes)
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
    """The functions of all columns that a graph calls."""
    to = places(graph)
    made = {
        n.serial: ColumnCode(n.args[0], to.get(n.serial), f"{prefix}columns{k}", lanes, width, dtype)
        for k, n in enumerate(n for n in graph.nodes if n.op == "call")
    }
    return ColumnCalls(made, to, written(to.values()))
