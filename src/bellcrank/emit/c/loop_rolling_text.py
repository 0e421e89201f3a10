"""Rolled loops of a graph (graph/loop_rolling.py) in C: a function that calls one function per loop.

It is the counterpart of emit/llvm/loop_rolling_code.py. Values that are live between loops, and arguments and results
of calls, lie in one array on the stack.
"""

from __future__ import annotations

import math
from itertools import accumulate

from bellcrank.emit.c import sincos_text
from bellcrank.emit.c.routine import FIXED_LOOPS, OPERATION_TEMPLATES, Declaration, Routine, unique_name
from bellcrank.emit.llvm.scheduling import order
from bellcrank.graph import Graph, Node
from bellcrank.graph.loop_rolling import ArrayLoop, ArraySlice, GraphCall, RolledGraph, SinCos


class ArrayLoopText(Routine):
    """Graph with rolled loops as a C function."""

    loops = FIXED_LOOPS

    def __init__(self, graph: Graph, d: Declaration, rolled: RolledGraph) -> None:
        super().__init__(graph, d)
        self.rolled, self.workspace, self.i = (
            rolled,
            unique_name("w", self.used_names),
            unique_name("i", self.used_names),
        )
        self.calls_sincos = any(
            isinstance(step, SinCos) and step.angles >= sincos_text.GROUP_SIZE for step in rolled.steps
        )
        self.table = unique_name(f"{self.name}_table", self.used_names)
        ends = list(accumulate(rolled.sizes.values(), initial=0))
        self.starts, self.size = dict(zip(rolled.sizes, ends, strict=False)), max(1, ends[-1])
        loops = [k for k, step in enumerate(rolled.steps) if isinstance(step, ArrayLoop)]
        self.functions = {k: unique_name(f"{self.name}_strip", self.used_names, numbered=True) for k in loops}
        self.bodies = {
            k: self.loop_statements(step) for k, step in enumerate(rolled.steps) if isinstance(step, ArrayLoop)
        }

    @property
    def stack(self) -> int:
        """Upper bound of stack usage in bytes, including callees except libm."""
        longest = max((len(body) for body in self.bodies.values()), default=0)
        deepest = max((self.callees[id(g)].stack for g in self.graph.calls), default=0)
        frame_bytes = (self.size + longest) * 8 + 32 * len(self.arrays) + 512
        return frame_bytes + max(deepest, self.sincos_stack)

    def code(self) -> str:
        """Return table, loop functions and the function that calls them."""
        arrays, lines, driver = [self.workspace, *self.arrays], list[str](), list[str]()
        if self.rolled.table.size:
            numbers = ", ".join(self.value(float(x)) for x in self.rolled.table)
            lines.append(f"static const {self.real} {self.table}[] = {{{numbers}}};\n")
        for k, step in enumerate(self.rolled.steps):
            if isinstance(step, ArrayLoop):
                lines += self.function(f"static void {self.functions[k]}", arrays, self.bodies[k])
                driver.append(f"{self.functions[k]}({', '.join(arrays)});")
            else:
                driver += self.call(step) if isinstance(step, GraphCall) else self.sincos_call(step)
        room = f"{self.real} {self.workspace}[{self.size}];"
        return "\n".join([*lines, *self.function(f"{self.return_type} {self.name}", self.arrays, [room, *driver])])

    def call(self, step: GraphCall) -> list[str]:
        """Return the statements of the call `step`."""
        given = accumulate(map(math.prod, step.graph.inputs.values()), initial=self.starts["given", step.number])
        got = accumulate(map(math.prod, step.graph.shapes.values()), initial=self.starts["got", step.number])
        places = [*zip(given, step.graph.inputs, strict=False), *zip(got, step.graph.shapes, strict=False)]
        call = (
            f"{self.callees[id(step.graph)].name}({', '.join(f'{self.workspace} + {start}' for start, _ in places)});"
        )
        if not step.graph.only:
            return [call]
        sign = self.starts["given", step.number] + step.graph.elements.index((step.graph.only, 0))
        first, count = self.starts["got", step.number], self.rolled.sizes["got", step.number]
        nothing = f"{self.workspace}[{first} + {self.i}] = {self.value(0.0)};"
        none = [self.loop_head(count), f"    {nothing}", "}"]
        return [f"if ({self.workspace}[{sign}] > {self.value(0.0)}) {{", f"    {call}", "} else {", *none, "}"]

    def sincos_call(self, step: SinCos) -> list[str]:
        """Return the statements of `step`: sines, and behind them cosines."""
        given, got = self.starts["given", step.number], self.starts["got", step.number]
        places = given, got, got + step.angles
        return sincos_text.sincos_statements(
            self.sincos_names[0], self.suffix, self.workspace, step.angles, places, self.i
        )

    def loop_head(self, count: int) -> str:
        """Return the head of a loop of `count` iterations."""
        return f"for (int {self.i} = 0; {self.i} < {count}; ++{self.i}) {{"

    def loop_statements(self, loop: ArrayLoop) -> list[str]:
        """Return the statements of `loop`."""
        used_names = dict.fromkeys(self.used_names, 0)
        self.names, loop_body = {}, list[str]()
        for n in order(loop.graph):
            self.names[n.serial] = unique_name("t", used_names, numbered=True)
            if n.op == "input":
                loop_body.append(
                    f"const {self.real} {self.names[n.serial]} = {self.array_element(loop.reads[n.args[1]])};"
                )
            else:
                loop_body.append(self.statement(n))
        values = [self.value(x) if isinstance(x, Node) else self.value(float(x)) for x in loop.graph.outputs["y"]]
        loop_body += [
            f"{self.array_element(array_slice)} = {value};"
            for array_slice, value in zip(loop.writes, values, strict=False)
        ]
        accumulators = [unique_name("c", used_names, numbered=True) for _ in loop.reductions]
        before, after = list[str](), list[str]()
        for fold, c in zip(loop.reductions, accumulators, strict=True):
            first = self.value(fold.first) if isinstance(fold.first, float) else self.array_element(fold.first)
            before.append(f"{self.real} {c} = {first};")
            loop_body.append(f"{c} = {OPERATION_TEMPLATES[fold.op].format(c, values[fold.element], f=self.suffix)};")
            after.append(f"{self.array_element(fold.to)} = {c};")
        return [*before, self.loop_head(loop.count), *(f"    {line}" for line in loop_body), "}", *after]

    def array_element(self, array_slice: ArraySlice) -> str:
        """Return the array element `array_slice` in the current iteration."""
        kind, key = array_slice.array
        names = {"in": self.inputs, "out": self.outputs}.get(kind)
        array = names[key] if names is not None else self.table if kind == "table" else self.workspace
        start = array_slice.start + (self.starts[array_slice.array] if array == self.workspace else 0)
        step = (
            "" if not array_slice.stride else self.i if array_slice.stride == 1 else f"{array_slice.stride} * {self.i}"
        )
        return f"{array}[{' + '.join(x for x in (str(start) if start or not step else '', step) if x)}]"
