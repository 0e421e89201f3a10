"""Loops (graph/loops/statements.py) in C: a function that calls one function for each procedure.

Values that are live between loops, and arguments and results of calls, lie in one array on the stack. Constants that
differ from turn to turn, and indices for which there is no formula, are in tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from bellcrank.emit.c import sincos_text
from bellcrank.emit.c.routine import FIXED_LOOPS, Declaration, Routine, unique_name
from bellcrank.emit.llvm.scheduling import order
from bellcrank.graph import Graph, Node
from bellcrank.graph.loops.statements import (
    Block,
    Call,
    Counter,
    Element,
    Index,
    Invoke,
    Lookup,
    Loop,
    LoopProgram,
    SinCos,
    Statement,
    Variable,
    all_statements,
)
from bellcrank.quoting import identifier

MARGIN_BYTES, BYTES_PER_ARRAY = 1024, 32  # stack of a call of a function, and of its parameters


class LoopText(Routine):
    """Graph with loops as a C function."""

    loops = FIXED_LOOPS

    def __init__(self, graph: Graph, d: Declaration, program: LoopProgram) -> None:
        super().__init__(graph, d)
        self.program, self.workspace = program, unique_name("w", self.used_names)
        ends = list(accumulate(program.memory.values(), initial=0))
        self.starts, self.size = dict(zip(program.memory, ends, strict=False)), ends[-1]
        statements = list(all_statements((*program.body, *(s for f in program.procedures for s in f.body))))
        self.calls_sincos = any(isinstance(s, SinCos) and s.angle_count >= sincos_text.GROUP_SIZE for s in statements)
        self.called = [s.graph for s in statements if isinstance(s, Call)]
        name = self.name
        self.constants = {k: unique_name(f"{name}_table", self.used_names, numbered=True) for k in program.constants}
        self.tables = {k: unique_name(f"{name}_{identifier(k)}", self.used_names) for k in program.tables}
        self.functions = {f: unique_name(f"{name}_{identifier(f.name)}", self.used_names) for f in program.procedures}
        self.variables: dict[Variable, str] = {}
        self.carried = set[Variable]()  # variables that change from turn to turn
        self.lookups: dict[Lookup, str] = {}  # entries of tables that are known here
        self.outer_names = self.used_names
        self.bodies = {f: self.function_lines(f.body, f.parameters) for f in program.procedures}
        self.main = self.function_lines(program.body)

    @property
    def stack(self) -> int:
        """Upper bound of stack usage in bytes, including callees except libm."""
        longest = len(self.main) + max(map(len, self.bodies.values()), default=0)
        deepest = max((self.callees[id(g)].stack for g in self.called), default=0)
        frames = (self.size + longest) * 8 + BYTES_PER_ARRAY * len(self.arrays) + MARGIN_BYTES
        return frames + max(deepest, self.sincos_stack)

    def code(self) -> str:
        """Return the tables, one function for each procedure, and the function that calls them."""
        constants, tables = self.program.constants, self.program.tables
        lines = [self.table(self.constants[k], self.real, map(self.value, x.flat)) for k, x in constants.items()]
        lines += [self.table(self.tables[k], "int", map(str, x.flat)) for k, x in tables.items()]
        for f, body in self.bodies.items():
            numbers = [self.variables[x] for x in f.parameters]
            lines += self.function(f"static void {self.functions[f]}", self.shared_arrays, body, numbers)
        room = [f"{self.real} {self.workspace}[{self.size}];"] if self.size else []
        return "\n".join([*lines, *self.function(f"{self.return_type} {self.name}", self.arrays, [*room, *self.main])])

    @property
    def shared_arrays(self) -> list[str]:
        """The arrays of every function: the workspace, if there is one, inputs and outputs."""
        return [*([self.workspace] if self.size else []), *self.arrays]

    def table(self, name: str, kind: str, values: Iterable[str]) -> str:
        """Return the definition of the constant array `name` of the C type `kind` with the texts `values`."""
        return f"static const {kind} {name}[] = {{{', '.join(values)}}};\n"

    # -- statements

    def function_lines(self, body: Sequence[Statement], parameters: Sequence[Variable] = ()) -> list[str]:
        """Return the statements of a function with a `body` and integers as `parameters`; its names are its own."""
        self.used_names, self.lookups = dict.fromkeys(self.outer_names, 0), {}
        self.variables |= {x: unique_name(x.name, self.used_names) for x in parameters}
        return self.statements(body)

    def statements(self, body: Sequence[Statement]) -> list[str]:
        """Return the C statements of `body`."""
        return [line for s in body for line in self.statement_lines(s)]

    def statement_lines(self, s: Statement) -> list[str]:
        """Return the C statements of `s`."""
        if isinstance(s, Block):
            return self.block_lines(s)
        if isinstance(s, Loop):
            return self.loop_lines(s)
        if isinstance(s, Call):
            return self.call_lines(s)
        if isinstance(s, SinCos):
            places = self.start(s.angles), self.start(s.sines), self.start(s.cosines)
            i = unique_name("i", self.used_names)
            return sincos_text.sincos_statements(
                self.sincos_names[0], self.suffix, self.workspace, s.angle_count, places, i
            )
        if isinstance(s, Invoke):
            lines, numbers = self.index_texts(s.numbers)
            return [*lines, f"{self.functions[s.procedure]}({', '.join([*numbers, *self.shared_arrays])});"]
        lines, (selector,) = self.index_texts((s.selector,))
        cases = [
            line
            for k, case in s.cases.items()
            for line in (f"case {k}: {{", *self.inner_lines([case]), "    break;", "}")
        ]
        return [*lines, f"switch ({selector}) {{", *cases, "default:", "    break;", "}"]

    def loop_lines(self, loop: Loop) -> list[str]:
        """Return the statements of `loop`."""
        lines = list[str]()
        for c in loop.carried:
            before, first = ([], self.value(c.first)) if isinstance(c.first, float) else self.operand_texts(c.first)
            self.variables[c.variable] = unique_name(c.variable.name, self.used_names, numbered=True)
            lines += [*before, f"{self.real} {self.variables[c.variable]} = {first};"]
        head = loop.counters[0]
        before, (end, *starts) = self.index_texts(
            [head.start.plus(loop.count.times(head.step)), *(c.start for c in loop.counters)]
        )
        lines += before
        self.carried |= {c.variable for c in loop.carried}
        body = self.inner_lines(loop.body, loop.counters)
        body += [f"    {self.variables[c.variable]} = {self.variables[c.last]};" for c in loop.carried]
        counters = [f"{self.variables[c.variable]} = {x}" for c, x in zip(loop.counters, starts, strict=True)]
        steps = ", ".join(self.step_text(c.variable, c.step) for c in loop.counters)
        condition = f"{self.variables[head.variable]} {'<' if head.step > 0 else '>'} {end}"
        return [*lines, f"for (int {', '.join(counters)}; {condition}; {steps}) {{", *body, "}"]

    def inner_lines(self, body: Sequence[Statement], counters: Sequence[Counter] = ()) -> list[str]:
        """Return the statements of a nested `body` with `counters`; names inside of it are free again behind it."""
        outer, self.used_names, self.lookups = (self.used_names, self.lookups), {**self.used_names}, {**self.lookups}
        self.variables |= {c.variable: unique_name(c.variable.name, self.used_names) for c in counters}
        lines = [f"    {line}" for line in self.statements(body)]
        self.used_names, self.lookups = outer
        return lines

    def step_text(self, x: Variable, step: int) -> str:
        """Return the expression that advances `x` by `step`."""
        sign = "+" if step > 0 else "-"
        return f"{sign}{sign}{self.variables[x]}" if abs(step) == 1 else f"{self.variables[x]} {sign}= {abs(step)}"

    def block_lines(self, block: Block) -> list[str]:
        """Return the statements of `block`."""
        lines, y = list[str](), list(block.graph.outputs["y"].flat)
        passed_on = {id(y[k]) for k, to in block.writes if isinstance(to, Variable)}
        self.names = {}
        for n in order(block.graph):
            x = block.reads[n.args[1]] if n.op == "input" else None
            if isinstance(x, Variable) and not (x in self.carried and id(n) in passed_on):
                self.names[n.serial] = self.variables[x]
                continue
            self.names[n.serial] = unique_name("t", self.used_names, numbered=True)
            if x is not None:
                before, text = self.operand_texts(x)
                lines += [*before, f"const {self.real} {self.names[n.serial]} = {text};"]
            else:
                lines.append(self.statement(n))
        values = [self.value(x) if isinstance(x, Node) else self.value(float(x)) for x in y]
        for k, to in block.writes:
            if isinstance(to, Variable):
                self.variables[to] = values[k]
            else:
                before, text = self.operand_texts(to)
                lines += [*before, f"{text} = {values[k]};"]
        return lines

    def call_lines(self, call: Call) -> list[str]:
        """Return the statements of `call`; results that are not needed are zero."""
        lines, arrays = list[str](), list[str]()
        for x in call.arrays:
            before, (at,) = self.index_texts((self.place(x),))
            lines += before
            arrays.append(self.array(x) if at == "0" else f"{self.array(x)} + {at}")
        text, only = f"{self.callees[id(call.graph)].name}({', '.join(arrays)});", call.graph.only
        if not only:
            return [*lines, text]
        sign = f"{arrays[list(call.graph.inputs).index(only)]}"
        results = call.arrays[len(call.graph.inputs) :]
        i, zero = unique_name("i", self.used_names), self.value(0.0)
        first = self.start(results[0])
        none = f"for (int {i} = 0; {i} < {call.result_size}; ++{i}) {{"
        empty = [none, f"    {self.workspace}[{first} + {i}] = {zero};", "}"]
        return [*lines, f"if (*({sign}) > {zero}) {{", f"    {text}", "} else {", *(f"    {x}" for x in empty), "}"]

    # -- elements

    def operand_texts(self, x: Element | Variable) -> tuple[list[str], str]:
        """Return statements that find the operand `x`, and its expression."""
        if isinstance(x, Variable):
            return [], self.variables[x]
        lines, (at,) = self.index_texts((self.place(x),))
        return lines, f"{self.array(x)}[{at}]"

    def array(self, x: Element) -> str:
        """Return the C array in which element `x` lies."""
        kind, key = x.array
        known = {"in": self.inputs, "out": self.outputs, "table": self.constants}.get(kind)
        return self.workspace if known is None else known[key]

    def place(self, x: Element) -> Index:
        """Return the index of element `x` in its C array."""
        return x.at.plus(self.starts.get(x.array, 0))

    def start(self, x: Element) -> int:
        """Return the constant index of element `x` in the workspace."""
        assert not x.at.terms
        return self.place(x).constant

    def index_texts(self, indices: Sequence[Index]) -> tuple[list[str], list[str]]:
        """Return the declarations of entries of tables that the `indices` need, and their expressions."""
        lines, texts = list[str](), list[str]()
        for index in indices:
            terms = []
            for factor, x in index.terms:
                if isinstance(x, Lookup) and x not in self.lookups:
                    before, (at,) = self.index_texts((x.at,))
                    self.lookups[x] = unique_name("k", self.used_names, numbered=True)
                    lines += [*before, f"const int {self.lookups[x]} = {self.tables[x.table]}[{at}];"]
                name = self.lookups[x] if isinstance(x, Lookup) else self.variables[x]
                terms.append(f"{'-' if factor < 0 else '+'} {f'{abs(factor)} * ' * (abs(factor) != 1)}{name}")
            if index.constant or not terms:
                terms.append(f"{'-' if index.constant < 0 else '+'} {abs(index.constant)}")
            terms.sort(key=lambda text: text[0] == "-")  # begin with a positive term
            texts.append(" ".join(terms).removeprefix("+ ").replace("- ", "-", terms[0][0] == "-"))
        return lines, texts
