"""LLVM IR for linear systems (graph/elimination.py): nested loops, with lanes stored side by side as in routine.py.

    void @name(ptr ws, ptr in..., ptr out...)

Scalar code processes several elements of a row at once, if the elements of the subtracted row are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bellcrank.emit.cpu.lanes import Writer
from bellcrank.graph.elimination import Factors, Loops

WIDE = 8  # elements of a row processed at once


class EliminationCode:
    """LLVM IR of the factorisation or the substitution of a linear system."""

    def __init__(
        self, graph: Loops, lanes: int, trig_width: int, dtype: str, name: str, called: Mapping[int, tuple[str, int]]
    ) -> None:
        """Lay out the workspace.

        Parameters
        ----------
        graph
            The factorisation or substitution.
        lanes
            Lanes of an element.
        trig_width
            Lanes of one vector of @sincos, which decides the alignment.
        dtype
            Floating-point type.
        name
            Name of the function.
        called
            Name and workspace slots of each function it may call, by id of its graph.
        """
        self.graph, self.name, self.called, self.w = graph, name, called, Writer(lanes, dtype)
        below = max((size for _, size in called.values()), default=0)
        self.unit = -(-below // trig_width) * trig_width  # slot of the unit vectors, followed by the columns
        self.column = self.unit + -(-graph.n // trig_width) * trig_width
        self.size = self.column + -(-graph.n // trig_width) * trig_width + 1
        self.rounds = 0

    def text(self) -> str:
        """Return the function."""
        w, g = self.w, self.graph
        w.lines = []
        arrays = [f"%a{k}" for k in range(len(g.inputs) + len(g.shapes))]
        if isinstance(g, Factors):
            self.assemble(g, arrays[: len(g.inputs)], arrays[-2])
            self.eliminate(arrays[-2], arrays[-1])
        else:
            self.substitute(*arrays)
        body = "\n".join(line if line.endswith(":") else f"  {line}" for line in w.lines)
        given = ", ".join(f"ptr noalias {a}" for a in ("%ws", *arrays))
        return f"define internal void @{self.name}({given}) noinline nounwind {{\nentry:\n{body}\n  ret void\n}}"

    # -- algorithms

    def assemble(self, g: Factors, given: list[str], rows: str) -> None:
        """Emit a loop that evaluates the columns of the map `g`, with arguments `given`, and stores them in `rows`."""
        w, n = self.w, g.n
        unit, column = (w.at("%ws", at * w.align) for at in (self.unit, self.column))
        known = dict(zip(g.inputs, given, strict=True)) | {g.along_input: unit}
        arguments = ", ".join(f"ptr {a}" for a in ("%ws", *(known[x] for x in g.of.inputs), column))
        one, none = w.immediate(1.0), w.immediate(0.0)
        self.loop("0", n, lambda j: w.store(none, self.place(unit, j)))

        def taken(j: str) -> None:
            w.store(one, self.place(unit, j))
            w.do(f"call void @{self.called[id(g.of)][0]}({arguments})")
            w.store(none, self.place(unit, j))
            self.loop("0", n, lambda i: w.store(w.load(self.place(column, i)), self.element(rows, i, j)))

        self.loop("0", n, taken)

    def eliminate(self, rows: str, reciprocal: str) -> None:
        """Emit Gaussian elimination of the matrix at `rows`; reciprocals of the pivots go to `reciprocal`."""
        w, n = self.w, self.graph.n

        def pivot(k: str) -> None:
            r = w.let(f"fdiv {w.type} {w.immediate(1.0)}, {w.load(self.element(rows, k, k))}")
            w.store(r, self.place(reciprocal, k))
            next_ = w.let(f"add i64 {k}, 1")

            def row(i: str) -> None:
                at = self.element(rows, i, k)
                factor = w.let(f"fmul {w.type} {w.load(at)}, {r}")
                w.store(factor, at)
                mine, other = (self.place(rows, w.let(f"mul i64 {x}, {n}")) for x in (i, k))
                self.taken_off(mine, other, factor, next_)

            self.loop(next_, n, row)

        self.loop("0", n, pivot)

    def taken_off(self, row: str, other: str, factor: str, begin: str) -> None:
        """Emit row[j] -= factor other[j] for all j from `begin` on, for addresses `row`, `other` and value `factor`."""
        w, n = self.w, self.graph.n
        if w.lanes == 1 and w.align == w.bytes:  # elements lie side by side
            wide = f"<{WIDE} x {w.element}>"
            one = w.let(f"insertelement {wide} poison, {w.element} {factor}, i64 0")
            many = w.let(f"shufflevector {wide} {one}, {wide} poison, <{WIDE} x i32> zeroinitializer")
            left = w.let(f"sub i64 {n}, {begin}")
            whole = w.let(f"and i64 {left}, {-WIDE}")
            end = w.let(f"add i64 {begin}, {whole}")
            self.loop(begin, end, lambda j: self.less(row, other, j, many, wide), WIDE)
            begin = end
        self.loop(begin, n, lambda j: self.less(row, other, j, factor, w.type))

    def less(self, row: str, other: str, j: str, factor: str, kind: str) -> None:
        """Emit row[j] -= factor other[j] for addresses `row`, `other`, index `j`, value `factor`, of IR type `kind`."""
        w = self.w
        at, align = self.place(row, j), w.align
        product = w.let(f"fmul {kind} {factor}, {w.load(self.place(other, j), kind, align)}")
        w.store(w.let(f"fsub {kind} {w.load(at, kind, align)}, {product}"), at, kind, align)

    def substitute(self, rows: str, reciprocal: str, b: str, x: str) -> None:
        """Emit forward and backward substitution.

        Parameters
        ----------
        rows
            Address of the factors.
        reciprocal
            Address of the reciprocals of the pivots.
        b
            Address of the right-hand side.
        x
            Address of the solution.
        """
        w, n = self.w, self.graph.n

        def less(i: str, value: str, count: str, last: bool) -> str:
            """Subtract the terms of the first, or of the last, `count` elements of row i."""
            mine = self.place(rows, w.let(f"mul i64 {i}, {n}"))

            def term(k: str, total: str) -> str:
                j = w.let(f"sub i64 {n - 1}, {k}") if last else k
                product = w.let(f"fmul {w.type} {w.load(self.place(mine, j))}, {w.load(self.place(x, j))}")
                return w.let(f"fsub {w.type} {total}, {product}")

            return self.fold("0", count, value, term)

        def forwards(i: str) -> None:
            w.store(less(i, w.load(self.place(b, i)), i, False), self.place(x, i))

        def backwards(k: str) -> None:
            i = w.let(f"sub i64 {n - 1}, {k}")
            found = less(i, w.load(self.place(x, i)), k, True)
            w.store(w.let(f"fmul {w.type} {found}, {w.load(self.place(reciprocal, i))}"), self.place(x, i))

        self.loop("0", n, forwards)
        self.loop("0", n, backwards)

    # -- addresses and loops

    def place(self, base: str, i: str) -> str:
        """Emit the address of element `i` of the vector at `base`."""
        offset = self.w.let(f"mul i64 {i}, {self.w.align}")
        return self.w.let(f"getelementptr i8, ptr {base}, i64 {offset}", "p")

    def element(self, rows: str, i: str, j: str) -> str:
        """Emit the address of element (`i`, `j`) of the matrix at `rows`."""
        at = self.w.let(f"mul i64 {i}, {self.graph.n}")
        return self.place(rows, self.w.let(f"add i64 {at}, {j}"))

    def loop(self, begin: str, end: str | int, body: Callable[[str], None], step: int = 1) -> None:
        """Emit a loop from `begin` to `end` by `step` whose body is emitted by `body`."""

        def carried(i: str, nothing: str) -> str:
            body(i)
            return ""

        self.fold(begin, end, "", carried, step)

    def fold(self, begin: str, end: str | int, first: str, body: Callable[[str, str], str], step: int = 1) -> str:
        """Emit a loop that carries a value; return its name after the last round.

        Parameters
        ----------
        begin, end, step
            Range of the index.
        first
            Value before the first round; "" for a loop without one.
        body
            Emits a round from the names of the index and of the carried value; returns the name of the new value.
        """
        w, self.rounds = self.w, self.rounds + 1
        k = f"r{self.rounds}"
        w.lines += [f"br label %{k}.begin", f"{k}.begin:", f"br label %{k}.head", f"{k}.head:"]
        w.do(f"%{k} = phi i64 [{begin}, %{k}.begin], [%{k}.next, %{k}.latch]")
        place = len(w.lines)
        w.do(f"%{k}.more = icmp ult i64 %{k}, {end}")
        w.do(f"br i1 %{k}.more, label %{k}.body, label %{k}.done")
        w.lines.append(f"{k}.body:")
        last = body(f"%{k}", f"%{k}.sum")
        if first:
            w.lines.insert(place, f"%{k}.sum = phi {w.type} [{first}, %{k}.begin], [{last}, %{k}.latch]")
        w.lines += [f"br label %{k}.latch", f"{k}.latch:", f"%{k}.next = add i64 %{k}, {step}"]
        w.lines += [f"br label %{k}.head", f"{k}.done:"]
        return f"%{k}.sum"
