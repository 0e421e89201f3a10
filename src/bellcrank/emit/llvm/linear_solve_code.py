"""LLVM IR for linear systems (graph/linear_solve.py): nested loops, with lanes side by side as in subroutines.py.

    void @name(ptr ws, ptr in..., ptr out...)

Scalar code processes several elements of a row at once, if the elements of the subtracted row are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bellcrank.emit.llvm.lanes import Writer
from bellcrank.graph.linear_solve import LinearSystem, LUFactors

WIDE_ELEMENTS = 8  # elements of a row processed at once


class LinearSolveCode:
    """LLVM IR of the factorisation or the substitution of a linear system."""

    def __init__(
        self,
        graph: LinearSystem,
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
        self.unit_slot = -(-below // trig_width) * trig_width  # slot of the unit vectors, followed by the columns
        self.column_slot = self.unit_slot + -(-graph.n // trig_width) * trig_width
        self.size = self.column_slot + -(-graph.n // trig_width) * trig_width + 1
        self.loop_count = 0

    def text(self) -> str:
        """Return the function."""
        w, g = self.w, self.graph
        w.lines = []
        arrays = [f"%a{k}" for k in range(len(g.inputs) + len(g.shapes))]
        if isinstance(g, LUFactors):
            self.assemble(g, arrays[: len(g.inputs)], arrays[-2])
            self.eliminate(arrays[-2], arrays[-1])
        else:
            self.substitute(*arrays)
        body = "\n".join(line if line.endswith(":") else f"  {line}" for line in w.lines)
        parameters = ", ".join(f"ptr noalias {a}" for a in ("%ws", *arrays))
        return f"define internal void @{self.name}({parameters}) noinline nounwind {{\nentry:\n{body}\n  ret void\n}}"

    # -- algorithms

    def assemble(self, g: LUFactors, argument_addresses: list[str], rows: str) -> None:
        """Emit a loop that evaluates the columns of the map `g` and stores them in `rows`.

        argument_addresses: addresses of the arguments of `g`.
        """
        w, n = self.w, g.n
        unit, column = (w.at("%ws", slot * w.align) for slot in (self.unit_slot, self.column_slot))
        addresses = dict(zip(g.inputs, argument_addresses, strict=True)) | {g.along_input: unit}
        arguments = ", ".join(f"ptr {a}" for a in ("%ws", *(addresses[x] for x in g.linear_map.inputs), column))
        one, zero = w.immediate(1.0), w.immediate(0.0)
        self.loop("0", n, lambda j: w.store(zero, self.element_address(unit, j)))

        def assemble_column(j: str) -> None:
            w.store(one, self.element_address(unit, j))
            w.do(f"call void @{self.called[id(g.linear_map)][0]}({arguments})")
            w.store(zero, self.element_address(unit, j))
            self.loop(
                "0",
                n,
                lambda i: w.store(w.load(self.element_address(column, i)), self.matrix_element_address(rows, i, j)),
            )

        self.loop("0", n, assemble_column)

    def eliminate(self, rows: str, reciprocal: str) -> None:
        """Emit Gaussian elimination of the matrix at `rows`; reciprocals of the pivots go to `reciprocal`."""
        w, n = self.w, self.graph.n

        def pivot(k: str) -> None:
            r = w.let(f"fdiv {w.type} {w.immediate(1.0)}, {w.load(self.matrix_element_address(rows, k, k))}")
            w.store(r, self.element_address(reciprocal, k))
            next_ = w.let(f"add i64 {k}, 1")

            def row(i: str) -> None:
                address = self.matrix_element_address(rows, i, k)
                factor = w.let(f"fmul {w.type} {w.load(address)}, {r}")
                w.store(factor, address)
                target_row, other = (self.element_address(rows, w.let(f"mul i64 {x}, {n}")) for x in (i, k))
                self.subtract_row(target_row, other, factor, next_)

            self.loop(next_, n, row)

        self.loop("0", n, pivot)

    def subtract_row(self, row: str, other: str, factor: str, begin: str) -> None:
        """Emit row[j] -= factor other[j] for all j from `begin` on, for addresses `row`, `other` and value `factor`."""
        w, n = self.w, self.graph.n
        if w.lanes == 1 and w.align == w.bytes:  # elements lie side by side
            wide = f"<{WIDE_ELEMENTS} x {w.element}>"
            first_lane = w.let(f"insertelement {wide} poison, {w.element} {factor}, i64 0")
            broadcast = w.let(
                f"shufflevector {wide} {first_lane}, {wide} poison, <{WIDE_ELEMENTS} x i32> zeroinitializer"
            )
            left = w.let(f"sub i64 {n}, {begin}")
            wide_count = w.let(f"and i64 {left}, {-WIDE_ELEMENTS}")
            end = w.let(f"add i64 {begin}, {wide_count}")
            self.loop(begin, end, lambda j: self.subtract_multiple(row, other, j, broadcast, wide), WIDE_ELEMENTS)
            begin = end
        self.loop(begin, n, lambda j: self.subtract_multiple(row, other, j, factor, w.type))

    def subtract_multiple(self, row: str, other: str, j: str, factor: str, kind: str) -> None:
        """Emit row[j] -= factor other[j] for addresses `row`, `other`, index `j`, value `factor`, of IR type `kind`."""
        w = self.w
        address, align = self.element_address(row, j), w.align
        product = w.let(f"fmul {kind} {factor}, {w.load(self.element_address(other, j), kind, align)}")
        w.store(w.let(f"fsub {kind} {w.load(address, kind, align)}, {product}"), address, kind, align)

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

        def subtract_terms(i: str, value: str, count: str, last: bool) -> str:
            """Subtract the terms of the first, or of the last, `count` elements of row i."""
            matrix_row = self.element_address(rows, w.let(f"mul i64 {i}, {n}"))

            def term(k: str, total: str) -> str:
                j = w.let(f"sub i64 {n - 1}, {k}") if last else k
                product = w.let(
                    f"fmul {w.type} {w.load(self.element_address(matrix_row, j))}, {w.load(self.element_address(x, j))}"
                )
                return w.let(f"fsub {w.type} {total}, {product}")

            return self.carried_loop("0", count, value, term)

        def forwards(i: str) -> None:
            w.store(subtract_terms(i, w.load(self.element_address(b, i)), i, False), self.element_address(x, i))

        def backwards(k: str) -> None:
            i = w.let(f"sub i64 {n - 1}, {k}")
            remainder = subtract_terms(i, w.load(self.element_address(x, i)), k, True)
            w.store(
                w.let(f"fmul {w.type} {remainder}, {w.load(self.element_address(reciprocal, i))}"),
                self.element_address(x, i),
            )

        self.loop("0", n, forwards)
        self.loop("0", n, backwards)

    # -- addresses and loops

    def element_address(self, base: str, i: str) -> str:
        """Emit the address of element `i` of the vector at `base`."""
        offset = self.w.let(f"mul i64 {i}, {self.w.align}")
        return self.w.let(f"getelementptr i8, ptr {base}, i64 {offset}", "p")

    def matrix_element_address(self, rows: str, i: str, j: str) -> str:
        """Emit the address of element (`i`, `j`) of the matrix at `rows`."""
        row_start = self.w.let(f"mul i64 {i}, {self.graph.n}")
        return self.element_address(rows, self.w.let(f"add i64 {row_start}, {j}"))

    def loop(self, begin: str, end: str | int, body: Callable[[str], None], step: int = 1) -> None:
        """Emit a loop from `begin` to `end` by `step` whose body is emitted by `body`."""

        def carried(i: str, nothing: str) -> str:
            body(i)
            return ""

        self.carried_loop(begin, end, "", carried, step)

    def carried_loop(
        self, begin: str, end: str | int, first: str, body: Callable[[str, str], str], step: int = 1
    ) -> str:
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
        w, self.loop_count = self.w, self.loop_count + 1
        k = f"r{self.loop_count}"
        w.lines += [f"br label %{k}.begin", f"{k}.begin:", f"br label %{k}.head", f"{k}.head:"]
        w.do(f"%{k} = phi i64 [{begin}, %{k}.begin], [%{k}.next, %{k}.latch]")
        phi_line = len(w.lines)
        w.do(f"%{k}.more = icmp ult i64 %{k}, {end}")
        w.do(f"br i1 %{k}.more, label %{k}.body, label %{k}.done")
        w.lines.append(f"{k}.body:")
        final_value = body(f"%{k}", f"%{k}.sum")
        if first:
            w.lines.insert(phi_line, f"%{k}.sum = phi {w.type} [{first}, %{k}.begin], [{final_value}, %{k}.latch]")
        w.lines += [f"br label %{k}.latch", f"{k}.latch:", f"%{k}.next = add i64 %{k}, {step}"]
        w.lines += [f"br label %{k}.head", f"{k}.done:"]
        return f"%{k}.sum"
