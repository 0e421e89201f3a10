"""Columns of a graph (graph/columns.py) as LLVM IR: a loop over the columns, and in it the graph of one.

    void @name(ptr ws, ptr given, ptr x)                  results to the workspace
    void @name(ptr ws, ptr given, ptr out, i64 stride)    or to an output, rows of states; one lane has no stride

Numbers that all columns share are read where they lie in the caller's workspace.
Elements are as wide as the lanes, and matrices lie row by row. A state that is computed alone has its columns in the
lanes of vectors. Some columns or vectors go abreast, so that a shared number is fetched once for all of them; the last
ones are moved back so that they end with the last column, and what they share with others is computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.emit.cpu import lanes
from bellcrank.emit.cpu.column_places import ColumnCalls, Places, places, written
from bellcrank.emit.cpu.plan import Tile
from bellcrank.emit.cpu.rolled import data
from bellcrank.emit.cpu.speller import Speller
from bellcrank.emit.cpu.writer import Writer
from bellcrank.graph import Graph, Node
from bellcrank.graph.columns import Columns

VECTORS, STATES = 2, 4  # abreast: vectors of columns of one state, columns of as many states as there are lanes


class ColumnCode:
    def __init__(self, graph: Columns, to: Places | None, name: str, lanes: int, width: int, dtype: str) -> None:
        """lanes: as many as an element has; width: as many as the processor has."""
        self.graph, self.name, self.lanes, self.to = graph, name, lanes, to
        alone = lanes == 1 and 2 * graph.number > width  # fewer columns than lanes: what is in the others is not kept
        self.w = Writer(width if alone else lanes, dtype)
        self.step = width if alone else 1  # columns in a vector
        self.abreast = max(1, min(VECTORS if alone else STATES, graph.number // self.step))
        self.element = self.w.bytes * lanes
        self.slots: Sequence[int] = ()
        self.block = min(graph.number, self.step * self.abreast)
        self.last = graph.number - self.block
        self.run = to.run([*range(0, self.last, self.block), self.last], self.block) if to is not None else self.block

    def text(self, slots: Sequence[int]) -> str:
        """slots: of the shared numbers, in the workspace."""
        w = self.w
        w.lines, self.slots = [], slots
        starts = self._starts()
        self._body(starts)
        stride = ", i64 %stride" if self.to is not None and self.lanes > 1 else ""
        lines = [
            f"define internal void @{self.name}(ptr %ws, ptr noalias %given, ptr noalias %x{stride}) "
            f"noinline nounwind{f' alignstack({w.align})' if w.align > 16 else ''} {{",
            "entry:",
            "  br label %loop",
            "loop:",
            "  %k = phi i64 [0, %entry], [%next, %loop]",
            f"  %offset = mul i64 %k, {self.element}",
            "  %from = getelementptr i8, ptr %given, i64 %offset",
            *(f"  {line}" for line in w.lines),
            f"  %after = add i64 %k, {self.block}",
            f"  %inside = icmp ule i64 %after, {self.last}",
            f"  %next = select i1 %inside, i64 %after, i64 {self.last}",
            f"  %more = icmp ult i64 %k, {self.last}",
            "  br i1 %more, label %loop, label %done",
            "done:",
            "  ret void",
            "}",
        ]
        if self.to is not None:
            offsets = np.array(self.to.columns, np.int64) * w.bytes
            lines.insert(0, data(f"{self.name}_columns", offsets))
        return "\n".join(lines)

    def _starts(self) -> list[str]:
        """Where each run of results of a block begins."""
        w = self.w
        if self.to is None:
            return [w.let("getelementptr i8, ptr %x, i64 %offset", "p")]
        found = []
        here = w.let(f"getelementptr i64, ptr @{self.name}_columns, i64 %k", "p")
        for k in range(0, self.block, self.run):
            offset = w.let(f"load i64, ptr {w.at(here, 8 * k)}, align 8", "x")
            found.append(w.let(f"getelementptr i8, ptr %x, i64 {offset}", "p"))
        return found

    def _body(self, starts: list[str]) -> None:
        body = self.graph.body
        spellers = [Speller(body, self.w.lanes, self.w.lanes, self.w.dtype, [], called={}) for _ in range(self.abreast)]
        for s in spellers:
            s.w = self.w
        rows: dict[int, list[int]] = {}  # of a result, where it goes
        for i, x in enumerate(body.outputs["x"].flat):
            if isinstance(x, Node):
                rows.setdefault(x.serial, []).append(i)
            else:
                self._store(i, [self.w.immediate(x)] * self.abreast, starts)
        for n in body.nodes:
            if n.op == "input" and n.serial not in rows:
                continue
            for a in (n, *n.operands):
                self._fetch(a, spellers)
            if n.op != "input" and not spellers[0].inline(n):
                for s in spellers:
                    s.names[n.serial] = s._operation(n)
            for i in rows.get(n.serial, ()):
                self._store(i, [s.names[n.serial] for s in spellers], starts)

    def _fetch(self, n: Node, spellers: list[Speller]) -> None:
        """An input, before its first use."""
        if n.op != "input" or n.serial in spellers[0].names:
            return
        array, i = n.args
        for k, s in enumerate(spellers):
            if array == "shared":
                s.names[n.serial] = spellers[0].names[n.serial] if k else self._shared(i)
            else:
                place = (i * self.graph.number + k * self.step) * self.element
                s.names[n.serial] = self.w.load(self.w.at("%from", place), align=self.w.bytes)

    def _shared(self, i: int) -> str:
        w, at = self.w, self.w.at("%ws", self.slots[i] * self.element)
        if self.step == 1:
            return w.load(at, align=w.bytes)
        one = w.let(f"insertelement {w.type} poison, {w.element} {w.load(at, w.element, w.bytes)}, i64 0")
        return w.let(f"shufflevector {w.type} {one}, {w.type} poison, <{w.lanes} x i32> zeroinitializer")

    def _store(self, row: int, values: list[str], starts: list[str]) -> None:
        """A row of a block."""
        w = self.w
        if self.to is None:
            at = w.at(starts[0], row * self.graph.number * self.element)
            for k, value in enumerate(values):
                self._columns(value, [(w.at(at, k * self.step * self.element), min(self.step, self.block))])
        elif self.step == 1:
            for k, start in enumerate(starts):
                mine = values[k * self.run : (k + 1) * self.run]
                stride = "%stride" if self.lanes > 1 else ""
                lanes.store(w, Tile("", self.to.rows[row], len(mine)), start, stride, mine)
        else:
            each = min(self.run, self.step)
            to = [w.at(start, self.to.rows[row] * w.bytes) for start in starts]
            for k, value in enumerate(values):
                columns = range(k * self.step, min((k + 1) * self.step, self.block), each)
                self._columns(
                    value,
                    [(w.at(to[c // self.run], c % self.run * w.bytes), min(each, self.block - c)) for c in columns],
                )

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
