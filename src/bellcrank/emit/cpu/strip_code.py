"""LLVM IR of a graph with rolled loops (graph/strips.py): a function, and one function for each of its loops.

    void @name(ptr ws, ptr in..., ptr out...)

Arrays are as in routine.py. Values that wait between loops, and arguments and results of calls, lie in the workspace
behind that of the called functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate

from bellcrank.emit.cpu.lanes import Writer, data
from bellcrank.emit.cpu.plan import order
from bellcrank.emit.cpu.speller import SPELL, Speller
from bellcrank.graph import Graph, Node
from bellcrank.graph.strips import At, Call, Fold, Loop, Strips, Turn
from bellcrank.quoting import symbol


class StripCode:
    """LLVM IR of a graph with rolled loops."""

    def __init__(
        self,
        graph: Graph,
        made: Strips,
        lanes: int,
        trig_width: int,
        dtype: str,
        name: str,
        called: Mapping[int, tuple[str, int]],
    ) -> None:
        """Lay out the workspace.

        Parameters
        ----------
        graph
            The graph.
        made
            Its rolled loops.
        lanes
            Lanes of an element.
        trig_width
            Lanes of one vector of @sincos.
        dtype
            Floating-point type.
        name
            Name of the function.
        called
            Name and workspace slots of each function it may call, by id of its graph.
        """
        self.graph, self.made, self.trig_width, self.name, self.called = graph, made, trig_width, name, called
        self.w = Writer(lanes, dtype)
        below = max((size for _, size in called.values()), default=0)
        sizes = [-(-n // trig_width) * trig_width for n in (below, *made.sizes.values())]  # vectors are aligned
        ends = list(accumulate(sizes))
        self.starts = dict(zip(made.sizes, ends, strict=False))
        self.size = ends[-1] + 1
        arrays = [*(f"in_{symbol(n)}" for n in graph.inputs), *(f"out_{symbol(n)}" for n in graph.outputs)]
        self.parameters = ", ".join(f"ptr noalias %{n}" for n in ("ws", *arrays))

    def text(self) -> str:
        """Return all functions and the table."""
        parts, lines = [], []
        if self.made.table.size:
            parts.append(data(f"{self.name}_strip_table", self.made.table.astype(self.w.dtype)))
        for k, s in enumerate(self.made.steps):
            if isinstance(s, Call):
                self.w.lines = []
                self._call(s)
                lines += self.w.lines
            elif isinstance(s, Turn):
                self.w.lines = []
                self._turn(s)
                lines += self.w.lines
            else:
                parts.append(self._defined(f"{self.name}_strip{k}", self._loop(s)))
                lines.append(f"call void @{self.name}_strip{k}({self.parameters})")
        parts.append(self._defined(self.name, ["entry:", *lines]))
        return "\n".join(parts)

    def _defined(self, name: str, lines: list[str]) -> str:
        body = "\n".join(line if line.endswith(":") else f"  {line}" for line in lines)
        return f"define internal void @{name}({self.parameters}) noinline nounwind {{\n{body}\n  ret void\n}}"

    def _call(self, call: Call) -> None:
        name, _ = self.called[id(call.graph)]
        arrays = []
        for side, shapes in (("given", call.graph.inputs), ("got", call.graph.shapes)):
            ends = accumulate(map(math.prod, shapes.values()), initial=self.starts[side, call.number])
            arrays += [self.w.at("%ws", start * self.w.align) for start, _ in zip(ends, shapes, strict=False)]
        self.w.do(f"call void @{name}({', '.join(f'ptr {a}' for a in ('%ws', *arrays))})")

    def _turn(self, turn: Turn) -> None:
        w, given, got = self.w, self.starts["given", turn.number], self.starts["got", turn.number]
        x, s, c = (w.at("%ws", start * w.align) for start in (given, got, got + turn.angles))
        w.do(f"call void @sincos(ptr {x}, ptr {s}, ptr {c}, i64 {turn.angles * w.lanes // self.trig_width})")

    def _loop(self, loop: Loop) -> list[str]:
        w = self.w
        w.lines = []
        bases = [self._base(at) for at in (*loop.reads, *loop.writes)]
        firsts = [w.immediate(f.first) if isinstance(f.first, float) else self._first(f.first) for f in loop.folds]
        entry, w.lines = w.lines, []
        rounds = [w.name("c") for _ in loop.folds]
        values = self._body(loop, bases)
        ends = [self._folded(f, c, values[f.element]) for f, c in zip(loop.folds, rounds, strict=True)]
        w.do("%next = add i64 %i, 1")
        w.do(f"%more = icmp ult i64 %next, {loop.count}")
        phis = [
            "%i = phi i64 [0, %entry], [%next, %loop]",
            *(f"{c} = phi {w.type} [{a}, %entry], [{b}, %loop]" for c, a, b in zip(rounds, firsts, ends, strict=True)),
        ]
        body, w.lines = w.lines, []
        for f, value in zip(loop.folds, ends, strict=True):
            w.store(value, self._base(f.to))
        ending = ["br i1 %more, label %loop, label %done", "done:", *w.lines]
        return ["entry:", *entry, "br label %loop", "loop:", *phis, *body, *ending]

    def _body(self, loop: Loop, bases: list[str]) -> list[str]:
        """Emit the operations for one element; return its values, in the order of y."""
        w = self.w
        speller = Speller(loop.graph, w.lanes, self.trig_width, w.dtype, [], called={})
        speller.w = w
        for n in order(loop.graph):
            if n.op == "input":
                at = loop.reads[n.args[1]]
                speller.names[n.serial] = self._read(at, self._element(at, bases[n.args[1]]))
            elif not speller.inline(n):
                speller.names[n.serial] = speller._operation(n)
        values = [speller._value(x) if isinstance(x, Node) else w.immediate(x) for x in loop.graph.outputs["y"]]
        for at, base, value in zip(loop.writes, bases[len(loop.reads) :], values, strict=False):
            w.store(value, self._element(at, base))
        return values

    def _folded(self, fold: Fold, carried: str, value: str) -> str:
        w = self.w
        return w.let(SPELL[fold.op].format(carried, value, t=w.type, m=w.mangled, b=w.mask), "v")

    def _first(self, at: At) -> str:
        return self.w.load(self._base(at))

    def _width(self, at: At) -> int:
        """Return the bytes of an element: numbers of a table are the same in all lanes."""
        return self.w.bytes if at.array[0] == "table" else self.w.align

    def _base(self, at: At) -> str:
        kind, which = at.array
        width = self._width(at)
        if kind in ("in", "out"):
            return self.w.at(f"%{kind}_{symbol(which)}", at.start * width)
        if kind == "table":
            return self.w.at(f"@{self.name}_strip_table", at.start * width)
        return self.w.at("%ws", (self.starts[at.array] + at.start) * width)

    def _element(self, at: At, base: str) -> str:
        if not at.stride:
            return base
        offset = self.w.let(f"mul i64 %i, {at.stride * self._width(at)}")
        return self.w.let(f"getelementptr i8, ptr {base}, i64 {offset}", "p")

    def _read(self, at: At, pointer: str) -> str:
        w = self.w
        if at.array[0] != "table" or w.lanes == 1:
            return w.load(pointer)
        x = w.load(pointer, w.element, w.bytes)
        one = w.let(f"insertelement {w.type} poison, {w.element} {x}, i64 0")
        return w.let(f"shufflevector {w.type} {one}, {w.type} poison, <{w.lanes} x i32> zeroinitializer")
