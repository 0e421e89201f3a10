"""LLVM IR of a graph with rolled loops (graph/loop_rolling.py): a function, and one function for each of its loops.

    void @name(ptr ws, ptr in..., ptr out...)

Arrays are as in subroutines.py. Values that wait between loops, and arguments and results of calls, lie in the
workspace behind that of the called functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate

from bellcrank.emit.llvm.lanes import Writer, constant_array
from bellcrank.emit.llvm.llvm_printer import IR_TEMPLATES, LLVMPrinter
from bellcrank.emit.llvm.scheduling import order
from bellcrank.graph import Graph, Node
from bellcrank.graph.loop_rolling import ArrayLoop, ArraySlice, GraphCall, LoopReduction, RolledGraph, SinCos
from bellcrank.quoting import symbol


class LoopRollingCode:
    """LLVM IR of a graph with rolled loops."""

    def __init__(
        self,
        graph: Graph,
        rolled: RolledGraph,
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
        rolled
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
        self.graph, self.rolled, self.trig_width, self.name, self.called = graph, rolled, trig_width, name, called
        self.w = Writer(lanes, dtype)
        below = max((size for _, size in called.values()), default=0)
        sizes = [-(-n // trig_width) * trig_width for n in (below, *rolled.sizes.values())]  # vectors are aligned
        ends = list(accumulate(sizes))
        self.starts = dict(zip(rolled.sizes, ends, strict=False))
        self.size = ends[-1] + 1
        arrays = [*(f"in_{symbol(n)}" for n in graph.inputs), *(f"out_{symbol(n)}" for n in graph.outputs)]
        self.parameters = ", ".join(f"ptr noalias %{n}" for n in ("ws", *arrays))

    def text(self) -> str:
        """Return all functions and the table."""
        parts, lines = [], []
        if self.rolled.table.size:
            parts.append(constant_array(f"{self.name}_strip_table", self.rolled.table.astype(self.w.dtype)))
        for k, s in enumerate(self.rolled.steps):
            if isinstance(s, GraphCall):
                self.w.lines = []
                self._call(s)
                lines += self.w.lines
            elif isinstance(s, SinCos):
                self.w.lines = []
                self._emit_sincos(s)
                lines += self.w.lines
            else:
                parts.append(self._function(f"{self.name}_strip{k}", self._loop(s)))
                lines.append(f"call void @{self.name}_strip{k}({self.parameters})")
        parts.append(self._function(self.name, ["entry:", *lines]))
        return "\n".join(parts)

    def _function(self, name: str, lines: list[str]) -> str:
        body = "\n".join(line if line.endswith(":") else f"  {line}" for line in lines)
        return f"define internal void @{name}({self.parameters}) noinline nounwind {{\n{body}\n  ret void\n}}"

    def _call(self, call: GraphCall) -> None:
        name, _ = self.called[id(call.graph)]
        arrays = []
        for side, shapes in (("given", call.graph.inputs), ("got", call.graph.shapes)):
            ends = accumulate(map(math.prod, shapes.values()), initial=self.starts[side, call.number])
            arrays += [self.w.at("%ws", start * self.w.align) for start, _ in zip(ends, shapes, strict=False)]
        self.w.do(f"call void @{name}({', '.join(f'ptr {a}' for a in ('%ws', *arrays))})")

    def _emit_sincos(self, turn: SinCos) -> None:
        w, given, got = self.w, self.starts["given", turn.number], self.starts["got", turn.number]
        x, s, c = (w.at("%ws", start * w.align) for start in (given, got, got + turn.angles))
        w.do(f"call void @sincos(ptr {x}, ptr {s}, ptr {c}, i64 {turn.angles * w.lanes // self.trig_width})")

    def _loop(self, loop: ArrayLoop) -> list[str]:
        w = self.w
        w.lines = []
        bases = [self._base_address(array_slice) for array_slice in (*loop.reads, *loop.writes)]
        firsts = [
            w.immediate(f.first) if isinstance(f.first, float) else self._load_initial(f.first) for f in loop.reductions
        ]
        entry, w.lines = w.lines, []
        carried_names = [w.name("c") for _ in loop.reductions]
        values = self._body(loop, bases)
        carried_values = [
            self._reduce(f, c, values[f.element]) for f, c in zip(loop.reductions, carried_names, strict=True)
        ]
        w.do("%next = add i64 %i, 1")
        w.do(f"%more = icmp ult i64 %next, {loop.count}")
        phis = [
            "%i = phi i64 [0, %entry], [%next, %loop]",
            *(
                f"{c} = phi {w.type} [{a}, %entry], [{b}, %loop]"
                for c, a, b in zip(carried_names, firsts, carried_values, strict=True)
            ),
        ]
        body, w.lines = w.lines, []
        for f, value in zip(loop.reductions, carried_values, strict=True):
            w.store(value, self._base_address(f.to))
        ending = ["br i1 %more, label %loop, label %done", "done:", *w.lines]
        return ["entry:", *entry, "br label %loop", "loop:", *phis, *body, *ending]

    def _body(self, loop: ArrayLoop, bases: list[str]) -> list[str]:
        """Emit the operations for one element; return its values, in the order of y."""
        w = self.w
        printer = LLVMPrinter(loop.graph, w.lanes, self.trig_width, w.dtype, [], called={})
        printer.w = w
        for n in order(loop.graph):
            if n.op == "input":
                array_slice = loop.reads[n.args[1]]
                printer.value_names[n.serial] = self._load_element(
                    array_slice, self._element_address(array_slice, bases[n.args[1]])
                )
            elif not printer.inline(n):
                printer.value_names[n.serial] = printer.operation(n)
        values = [printer.value(x) if isinstance(x, Node) else w.immediate(x) for x in loop.graph.outputs["y"]]
        for array_slice, base, value in zip(loop.writes, bases[len(loop.reads) :], values, strict=False):
            w.store(value, self._element_address(array_slice, base))
        return values

    def _reduce(self, fold: LoopReduction, carried: str, value: str) -> str:
        w = self.w
        return w.let(IR_TEMPLATES[fold.op].format(carried, value, t=w.type, m=w.mangled, b=w.mask), "v")

    def _load_initial(self, array_slice: ArraySlice) -> str:
        return self.w.load(self._base_address(array_slice))

    def _width(self, array_slice: ArraySlice) -> int:
        """Return the bytes of an element: numbers of a table are the same in all lanes."""
        return self.w.bytes if array_slice.array[0] == "table" else self.w.align

    def _base_address(self, array_slice: ArraySlice) -> str:
        kind, array_name = array_slice.array
        width = self._width(array_slice)
        if kind in ("in", "out"):
            return self.w.at(f"%{kind}_{symbol(array_name)}", array_slice.start * width)
        if kind == "table":
            return self.w.at(f"@{self.name}_strip_table", array_slice.start * width)
        return self.w.at("%ws", (self.starts[array_slice.array] + array_slice.start) * width)

    def _element_address(self, array_slice: ArraySlice, base: str) -> str:
        if not array_slice.stride:
            return base
        offset = self.w.let(f"mul i64 %i, {array_slice.stride * self._width(array_slice)}")
        return self.w.let(f"getelementptr i8, ptr {base}, i64 {offset}", "p")

    def _load_element(self, array_slice: ArraySlice, pointer: str) -> str:
        w = self.w
        if array_slice.array[0] != "table" or w.lanes == 1:
            return w.load(pointer)
        x = w.load(pointer, w.element, w.bytes)
        one = w.let(f"insertelement {w.type} poison, {w.element} {x}, i64 0")
        return w.let(f"shufflevector {w.type} {one}, {w.type} poison, <{w.lanes} x i32> zeroinitializer")
