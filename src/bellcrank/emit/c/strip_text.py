"""Rolled loops of a graph (graph/strips.py) in C: a function that calls one function per loop.

It is the counterpart of emit/cpu/strip_code.py. Values that are live between loops, and arguments and results of calls,
lie in one array on the stack.
"""

from __future__ import annotations

import math
from itertools import accumulate

from bellcrank.emit.c import turns
from bellcrank.emit.c.routine import LOOPS, SPELL, Declaration, Routine, fresh
from bellcrank.emit.cpu.plan import order
from bellcrank.graph import Graph, Node
from bellcrank.graph.strips import At, Call, Loop, Strips, Turn


class StripText(Routine):
    """Graph with rolled loops as a C function."""

    loops = LOOPS

    def __init__(self, graph: Graph, d: Declaration, made: Strips) -> None:
        super().__init__(graph, d)
        self.made, self.workspace, self.i = made, fresh("w", self.taken), fresh("i", self.taken)
        self.turns = any(isinstance(step, Turn) and step.angles >= turns.FOUR for step in made.steps)
        self.table = fresh(f"{self.name}_table", self.taken)
        ends = list(accumulate(made.sizes.values(), initial=0))
        self.starts, self.size = dict(zip(made.sizes, ends, strict=False)), max(1, ends[-1])
        loops = [k for k, step in enumerate(made.steps) if isinstance(step, Loop)]
        self.functions = {k: fresh(f"{self.name}_strip", self.taken, numbered=True) for k in loops}
        self.bodies = {k: self.loop(step) for k, step in enumerate(made.steps) if isinstance(step, Loop)}

    @property
    def stack(self) -> int:
        """Upper bound of stack usage in bytes, including callees except libm."""
        longest = max((len(body) for body in self.bodies.values()), default=0)
        deepest = max((self.known[id(g)].stack for g in self.graph.calls), default=0)
        own = (self.size + longest) * 8 + 32 * len(self.arrays) + 512
        return own + max(deepest, self.turning_room)

    def code(self) -> str:
        """Return table, loop functions and the function that calls them."""
        arrays, lines, driver = [self.workspace, *self.arrays], list[str](), list[str]()
        if self.made.table.size:
            numbers = ", ".join(self.value(float(x)) for x in self.made.table)
            lines.append(f"static const {self.real} {self.table}[] = {{{numbers}}};\n")
        for k, step in enumerate(self.made.steps):
            if isinstance(step, Loop):
                lines += self.function(f"static void {self.functions[k]}", arrays, self.bodies[k])
                driver.append(f"{self.functions[k]}({', '.join(arrays)});")
            else:
                driver += self.call(step) if isinstance(step, Call) else self.turn(step)
        room = f"{self.real} {self.workspace}[{self.size}];"
        return "\n".join([*lines, *self.function(f"{self.kind} {self.name}", self.arrays, [room, *driver])])

    def call(self, step: Call) -> list[str]:
        """Return the statements of the call `step`."""
        given = accumulate(map(math.prod, step.graph.inputs.values()), initial=self.starts["given", step.number])
        got = accumulate(map(math.prod, step.graph.shapes.values()), initial=self.starts["got", step.number])
        places = [*zip(given, step.graph.inputs, strict=False), *zip(got, step.graph.shapes, strict=False)]
        call = f"{self.known[id(step.graph)].name}({', '.join(f'{self.workspace} + {at}' for at, _ in places)});"
        if not step.graph.only:
            return [call]
        sign = self.starts["given", step.number] + step.graph.elements.index((step.graph.only, 0))
        first, count = self.starts["got", step.number], self.made.sizes["got", step.number]
        nothing = f"{self.workspace}[{first} + {self.i}] = {self.value(0.0)};"
        none = [self.head(count), f"    {nothing}", "}"]
        return [f"if ({self.workspace}[{sign}] > {self.value(0.0)}) {{", f"    {call}", "} else {", *none, "}"]

    def turn(self, step: Turn) -> list[str]:
        """Return the statements of `step`: sines, and behind them cosines."""
        given, got = self.starts["given", step.number], self.starts["got", step.number]
        places = given, got, got + step.angles
        return turns.statements(self.turning[0], self.suffix, self.workspace, step.angles, places, self.i)

    def head(self, count: int) -> str:
        """Return the head of a loop of `count` iterations."""
        return f"for (int {self.i} = 0; {self.i} < {count}; ++{self.i}) {{"

    def loop(self, loop: Loop) -> list[str]:
        """Return the statements of `loop`."""
        taken = dict.fromkeys(self.taken, 0)
        self.names, inside = {}, list[str]()
        for n in order(loop.graph):
            self.names[n.serial] = fresh("t", taken, numbered=True)
            if n.op == "input":
                inside.append(f"const {self.real} {self.names[n.serial]} = {self.place(loop.reads[n.args[1]])};")
            else:
                inside.append(self.statement(n))
        values = [self.value(x) if isinstance(x, Node) else self.value(float(x)) for x in loop.graph.outputs["y"]]
        inside += [f"{self.place(at)} = {value};" for at, value in zip(loop.writes, values, strict=False)]
        rounds = [fresh("c", taken, numbered=True) for _ in loop.folds]
        before, after = list[str](), list[str]()
        for fold, c in zip(loop.folds, rounds, strict=True):
            first = self.value(fold.first) if isinstance(fold.first, float) else self.place(fold.first)
            before.append(f"{self.real} {c} = {first};")
            inside.append(f"{c} = {SPELL[fold.op].format(c, values[fold.element], f=self.suffix)};")
            after.append(f"{self.place(fold.to)} = {c};")
        return [*before, self.head(loop.count), *(f"    {line}" for line in inside), "}", *after]

    def place(self, at: At) -> str:
        """Return the array element `at` in the current iteration."""
        kind, which = at.array
        names = {"in": self.inputs, "out": self.outputs}.get(kind)
        array = names[which] if names is not None else self.table if kind == "table" else self.workspace
        start = at.start + (self.starts[at.array] if array == self.workspace else 0)
        step = "" if not at.stride else self.i if at.stride == 1 else f"{at.stride} * {self.i}"
        return f"{array}[{' + '.join(x for x in (str(start) if start or not step else '', step) if x)}]"
