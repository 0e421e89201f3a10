"""LLVM IR of loops (graph/loops/statements.py): a function, and one function for each procedure.

    void @name(ptr ws, ptr in..., ptr out...)

Arrays are as in subroutines.py: an element is as wide as the lanes, and nothing is transposed here. Carried values stay
in registers (as a phi of the loop). Memory between the statements lies in the workspace behind that of called
functions; constants and integers that differ from turn to turn are in tables.

Scalar code of an independent loop processes several turns at once, where their elements lie side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

import numpy as np

from bellcrank.emit.llvm.lanes import Writer, constant_array, indented
from bellcrank.emit.llvm.llvm_printer import LLVMPrinter
from bellcrank.emit.llvm.scheduling import order
from bellcrank.graph import Graph, Node
from bellcrank.graph.loops.statements import (
    LANE,
    Block,
    Call,
    Choose,
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
    at_lane,
    index_of,
    variables_of,
)
from bellcrank.quoting import symbol

TURNS_AT_ONCE = 8  # turns of an independent loop that scalar code processes together


class LoopCode:
    """LLVM IR of a graph with loops."""

    def __init__(
        self, graph: Graph, program: LoopProgram, w: Writer, trig_width: int, name: str,
        called: Mapping[int, tuple[str, int]], runs: int = 1,
    ) -> None:  # fmt: skip
        """Lay out the workspace.

        Parameters
        ----------
        graph
            The graph.
        program
            Its loops.
        w
            Writer, for the lanes of an element.
        trig_width
            Lanes of one vector of @sincos.
        name
            Name of the function.
        called
            Name and workspace slots of each function it may call, by id of its graph.
        runs
            Runs in the lanes of values (graph/loops/runs.py), for scalar elements.
        """
        self.graph, self.program, self.w, self.trig_width = graph, program, w, trig_width
        self.name, self.called, self.wide = name, called, w.with_lanes(runs) if runs > 1 else w
        below = max((size for _, size in called.values()), default=0)
        sizes = [-(-n // trig_width) * trig_width for n in (below, *program.memory.values())]  # vectors are aligned
        ends = list(accumulate(sizes))
        self.starts = dict(zip(program.memory, ends, strict=False))
        self.size = ends[-1] + 1
        arrays = [*(f"in_{symbol(n)}" for n in graph.inputs), *(f"out_{symbol(n)}" for n in graph.shapes)]
        self.parameters = ", ".join(f"ptr noalias %{n}" for n in ("ws", *arrays))
        self.functions = {f: f"{name}_{symbol(f.name)}" for f in program.procedures}
        self.values: dict[Variable, str] = {}
        self.known: dict[object, str] = {}  # entries of tables and addresses that are known here
        self.block_count, self.label = 0, "entry"

    def text(self) -> str:
        """Return all functions and tables."""
        parts = [self.tables(), self.procedures(), self.function(self.name, self.program.body)]
        return "\n".join(filter(None, parts))

    def tables(self) -> str:
        """Return the definitions of all tables."""
        dtype = self.w.dtype
        constants = {f"table{k}": np.ascontiguousarray(x, dtype) for k, x in self.program.constants.items()}
        tables = {symbol(k): x.astype(np.int32) for k, x in self.program.tables.items()}
        arrays = {**constants, **tables}
        return "\n".join(constant_array(f"{self.name}_{key}", array) for key, array in arrays.items())

    def procedures(self) -> str:
        """Return the functions of all procedures."""
        return "\n".join(self.function(name, f.body, f.parameters) for f, name in self.functions.items())

    def function(self, name: str, body: Sequence[Statement], parameters: Sequence[Variable] = ()) -> str:
        """Return the function `name` of the statements `body`, with integers as `parameters`."""
        self.begin_function({x: f"%n{k}" for k, x in enumerate(parameters)})
        self._statements(body)
        numbers = "".join(f", i64 {self.values[x]}" for x in parameters)
        head = f"define internal void @{name}({self.parameters}{numbers}) noinline nounwind"
        return f"{head} {{\nentry:\n{indented(self.w.lines)}  ret void\n}}"

    def begin_function(self, parameters: Mapping[Variable, str]) -> None:
        """Begin a new function with integers as `parameters`."""
        self.w.lines.clear()
        self.values, self.known, self.label = dict(parameters), {}, "entry"
        if self.wide is self.w:
            self.values[LANE] = "0"

    # -- statements

    def _statements(self, body: Sequence[Statement]) -> None:
        for s in body:
            if isinstance(s, Block):
                self._block(s, self.wide)
            elif isinstance(s, Loop):
                self._loop(s)
            elif isinstance(s, Call):
                arrays = "".join(f", ptr {self._address(x)}" for x in s.arrays)
                self.w.do(f"call void @{self.called[id(s.graph)][0]}(ptr %ws{arrays})")
            elif isinstance(s, SinCos):
                self._sincos(s)
            elif isinstance(s, Invoke):
                self._invoke(s)
            else:
                self._choose(s)

    def _sincos(self, s: SinCos) -> None:
        """Emit a call for all angles; those that only fill up a vector are zero."""
        w = self.w
        vectors = -(-s.angle_count * w.lanes // self.trig_width)
        for i in range(s.angle_count, vectors * self.trig_width // w.lanes):
            zero = "zeroinitializer" if w.lanes > 1 else w.immediate(0.0)
            w.store(zero, self._address(Element(s.angles.array, s.angles.at.plus(i))))
        x, sine, cosine = (self._address(x) for x in (s.angles, s.sines, s.cosines))
        w.do(f"call void @sincos(ptr {x}, ptr {sine}, ptr {cosine}, i64 {vectors})")

    def _invoke(self, s: Invoke) -> None:
        pointers = self.parameters.replace("ptr noalias", "ptr")
        numbers = "".join(f", i64 {self._integer(x)}" for x in s.numbers)
        self.w.do(f"call void @{self.functions[s.procedure]}({pointers}{numbers})")

    def _choose(self, s: Choose) -> None:
        selector, known = self._integer(s.selector), dict(self.known)
        end, labels = self._new_label("chosen"), {k: self._new_label("case") for k in s.cases}
        cases = " ".join(f"i64 {k}, label %{label}" for k, label in labels.items())
        self.w.do(f"switch i64 {selector}, label %{end} [{cases}]")
        for k, case in s.cases.items():
            self.w.lines.append(f"{labels[k]}:")
            self._invoke(case)
            self.w.do(f"br label %{end}")
            self.known = dict(known)
        self._begin(end)

    def _loop(self, s: Loop) -> None:
        (start, step), w = s.counters[0][1:], self.w
        if s.independent and w.lanes == 1 and w.align == w.bytes:  # elements of consecutive turns lie side by side
            wide_count = w.let(f"and i64 {self._integer(s.count)}, {-TURNS_AT_ONCE}")
            middle = Variable("middle")
            self.values[middle] = w.let(f"add i64 {self._integer(start)}, {wide_count}")
            wide = w.with_lanes(TURNS_AT_ONCE)
            self._turns(s, (Counter(s.counters[0].variable, start, TURNS_AT_ONCE),), index_of(middle), wide)
            counters = (Counter(s.counters[0].variable, index_of(middle), 1),)
            self._turns(s, counters, start.plus(s.count), w)
        else:
            self._turns(s, s.counters, start.plus(s.count.times(step)), w)

    def _turns(self, s: Loop, counters: Sequence[Counter], end: Index, element_writer: Writer) -> None:
        """Emit the turns of the loop `s`, from the start of the `counters` to the `end` of the first.

        The blocks of an independent loop are emitted by `element_writer`.
        """
        w, wide = self.w, self.wide
        firsts = [
            wide.immediate(c.first) if isinstance(c.first, float) else self.read(c.first, wide) for c in s.carried
        ]
        self.find_entries(s.body)
        known = dict(self.known)
        starts, last = [self._integer(c.start) for c in counters], self._integer(end)
        before, body, done = self.label, self._new_label("loop"), self._new_label("done")
        self._branch(head := self._new_label("head") if s.may_be_empty or s.independent else body)
        phi_line = len(w.lines)
        names = [w.name("i") for _ in counters]
        carried = [w.name("c") for _ in s.carried]
        if head != body:
            w.do(f"br i1 {w.let(f'icmp ne i64 {names[0]}, {last}')}, label %{body}, label %{done}")
            self._begin(body)
        variables = [*(c.variable for c in counters), *(c.variable for c in s.carried)]
        self.values |= dict(zip(variables, [*names, *carried], strict=True))
        self.known = dict(known)
        if s.independent:
            self._wide_body(s, element_writer)
        else:
            self._statements(s.body)
        nexts = [w.let(f"add i64 {i}, {c.step}") for i, c in zip(names, counters, strict=True)]
        lasts = [self.values[c.last] for c in s.carried]
        kinds = [*["i64"] * len(names), *[wide.type] * len(carried)]
        w.lines[phi_line:phi_line] = [
            f"{name} = phi {kind} [{first}, %{before}], [{following}, %{self.label}]"
            for name, kind, first, following in zip(
                [*names, *carried], kinds, [*starts, *firsts], [*nexts, *lasts], strict=True
            )
        ]
        if head != body:
            w.do(f"br label %{head}")
        else:
            w.do(f"br i1 {w.let(f'icmp ne i64 {nexts[0]}, {last}')}, label %{body}, label %{done}")
        self._begin(done)
        self.values |= dict(zip([c.variable for c in s.carried], lasts if head == body else carried, strict=True))
        self.known = known

    def _wide_body(self, s: Loop, w: Writer) -> None:
        """Emit the body of an independent loop for as many turns as `w` has lanes."""
        counter, inner = s.counters[0].variable, set[Variable]()
        for b in s.body:
            assert isinstance(b, Block)
            self._block(b, w, counter, inner)
            inner |= {x for _, x in b.writes if isinstance(x, Variable)}

    def _block(self, b: Block, w: Writer, counter: Variable | None = None, inner: Collection[Variable] = ()) -> None:
        """Emit the operations of `b`.

        Parameters
        ----------
        b
            The block.
        w
            Writer of the values; it has more lanes than an element where several turns are processed together.
        counter
            Then the counter of these turns.
        inner
            Then the values of the same turns.
        """
        known, self.known = self.known, dict(self.known)
        printer = LLVMPrinter(b.graph, w.lanes, self.trig_width, w.dtype, [], called={}, w=w)
        for n in order(b.graph):
            if n.op == "input":
                x = b.reads[n.args[1]]
                same_lanes = isinstance(x, Variable) and (w is self.wide or x in inner)
                printer.value_names[n.serial] = self.values[x] if same_lanes else self.read(x, w, counter)
            elif n.op in ("sin", "cos"):  # of a value that is known in the loop only
                printer.value_names[n.serial] = self.sine(w, n.op, printer.value(n.args[0]))
            elif not printer.inline(n):
                printer.value_names[n.serial] = printer.operation(n)
        values = [printer.value(x) if isinstance(x, Node) else w.immediate(x) for x in b.graph.outputs["y"].flat]
        for k, to in b.writes:
            if isinstance(to, Variable):
                self.values[to] = values[k]
            else:
                self.write(values[k], to, w, counter)
        self.known = known

    def sine(self, w: Writer, op: str, x: str) -> str:
        """Emit by `w` the sine or cosine, by `op`, of a value `x` that is known in a loop only."""
        return w.function(op, [x])

    def constants(self, key: int) -> str:
        """Return the address of the table of constants `key`."""
        return f"@{self.name}_table{key}"

    def table(self, name: str) -> str:
        """Return the address of the table of integers `name`."""
        return f"@{self.name}_{symbol(name)}"

    # -- labels

    def _new_label(self, word: str) -> str:
        self.block_count += 1
        return f"{word}{self.block_count}"

    def _branch(self, label: str) -> None:
        """Emit a jump to the `label`, and begin it."""
        self.w.do(f"br label %{label}")
        self._begin(label)

    def _begin(self, label: str) -> None:
        self.w.lines.append(f"{label}:")
        self.label = label

    # -- values and addresses

    def read(self, x: Element | Variable, w: Writer, counter: Variable | None = None) -> str:
        """Return the value of the operand `x` in the lanes of `w`.

        Where these are more than an element has, they are different turns, by `counter`, or different runs.
        """
        if isinstance(x, Variable):
            return self.values[x] if w is self.wide else _in_all_lanes(w, self.values[x])
        is_table = x.array[0] == "table"
        if w.lanes == self.w.lanes and not (is_table and w.lanes > 1):
            return w.load(self._address(x))
        if w.lanes == self.w.lanes or not (lanes := self._lanes(x, w, counter)):
            return _in_all_lanes(w, self.w.load(self._address(x), w.element, w.bytes))
        if len(lanes) == 1:
            return w.load(self._address(lanes[0]), align=self._alignment(w))
        vector = "poison"
        for lane, one in enumerate(lanes):
            value = w.load(self._address(one), w.element, w.bytes)
            vector = w.let(f"insertelement {w.type} {vector}, {w.element} {value}, i64 {lane}")
        return vector

    def write(self, value: str, x: Element, w: Writer, counter: Variable | None = None) -> None:
        """Store the `value` of the lanes of `w` at element `x`; `counter` as for `read`."""
        lanes = [x] if w.lanes == self.w.lanes else self._lanes(x, w, counter)
        if len(lanes) == 1:
            w.store(value, self._address(lanes[0]), align=self._alignment(w))
            return
        for lane, one in enumerate(lanes):
            scalar = w.let(f"extractelement {w.type} {value}, i64 {lane}")
            w.store(scalar, self._address(one), w.element, w.bytes)

    def _alignment(self, w: Writer) -> int:
        """Return the alignment of consecutive elements: runs begin with a vector, and turns anywhere."""
        return (w if w is self.wide else self.w).alignment

    def _lanes(self, x: Element, w: Writer, counter: Variable | None) -> list[Element]:
        """Return the element of each lane: only the first one if they are consecutive, none if all are the same."""
        if counter is not None:
            return [x] if (1, counter) in x.at.terms else []
        if LANE not in variables_of(x.at):
            return []
        elements = [Element(x.array, at_lane(x.at, lane)) for lane in range(w.lanes)]
        return elements[:1] if elements[1].at == elements[0].at.plus(1) else elements

    def find_entries(self, body: Sequence[Statement]) -> None:
        """Emit, before a loop, the entries of tables that do not change in its `body`."""
        for s in body:
            if isinstance(s, Loop):
                self.find_entries(s.body)
            elif isinstance(s, Block):
                for x in (*s.reads, *(to for _, to in s.writes)):
                    for _, entry in x.at.terms if isinstance(x, Element) else ():
                        self._find_entry(entry)

    def _find_entry(self, x: Variable | Lookup) -> None:
        if isinstance(x, Lookup):
            for _, inner in x.at.terms:
                self._find_entry(inner)
            variables = variables_of(x.at)
            if variables - {LANE} <= self.values.keys():
                for lane in range(self.wide.lanes if LANE in variables else 1):
                    self._lookup(Lookup(x.table, at_lane(x.at, lane)))

    def _address(self, x: Element) -> str:
        """Return the address of an element; addresses that differ by a constant share their computation."""
        kind, key = x.array
        width, start = self.w.align, self.starts.get(x.array, 0)
        if kind in ("in", "out"):
            base = f"%{kind}_{symbol(key)}"
        elif kind == "table":
            base, width = self.constants(key), self.w.bytes
        else:
            base = "%ws"
        if x.at.terms:
            shared = base, x.at.terms
            if shared not in self.known:
                offset = self._integer(Index(0, x.at.terms).times(width))
                self.known[shared] = self.w.let(f"getelementptr i8, ptr {base}, i64 {offset}", "p")
            base = self.known[shared]
        return self.w.at(base, (start + x.at.constant) * width)

    def _integer(self, index: Index) -> str:
        """Return the value of an index."""
        w, total = self.w, ""
        for factor, x in index.terms:
            number = self._lookup(x) if isinstance(x, Lookup) else self.values[x]
            number = w.let(f"mul i64 {number}, {factor}") if factor != 1 else number
            total = w.let(f"add i64 {total}, {number}") if total else number
        if not total:
            return str(index.constant)
        return w.let(f"add i64 {total}, {index.constant}") if index.constant else total

    def _lookup(self, x: Lookup) -> str:
        if x not in self.known:
            w, place = self.w, self._integer(x.at)
            address = w.let(f"getelementptr i32, ptr {self.table(x.table)}, i64 {place}", "p")
            self.known[x] = w.let(f"sext i32 {w.let(f'load i32, ptr {address}, align 4')} to i64")
        return self.known[x]


def _in_all_lanes(w: Writer, x: str) -> str:
    """Return the scalar `x` in all lanes of the writer `w`."""
    one = w.let(f"insertelement {w.type} poison, {w.element} {x}, i64 0")
    return w.let(f"shufflevector {w.type} {one}, {w.type} poison, <{w.lanes} x i32> zeroinitializer")
