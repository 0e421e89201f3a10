"""Printer of LLVM IR: a graph's items as functions for one lane or many, by a table with a row per operation.

Values that outlive a chunk (see scheduling.py), and all sines and cosines, live in a workspace. Its slot 0 accumulates
a sum that is finite exactly if the inputs are (or so large that they should be checked): thus a batch detects a NaN at
almost no cost.

Calls, and software pipelining between blocks of states, are in calls.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

from bellcrank.emit.llvm import calls, lanes
from bellcrank.emit.llvm.host import host
from bellcrank.emit.llvm.lanes import LIBRARY_ARITY, Writer
from bellcrank.emit.llvm.register_allocation import (
    SlotAllocator,
    matrix_elements,
    rebase,
    spills,
)
from bellcrank.emit.llvm.scheduling import MATRIX_ELEMENTS, Item, Tile, consecutive_ranges
from bellcrank.graph import Graph, Node
from bellcrank.graph.graph import Coverage
from bellcrank.nodes.ops import COMPARISONS, OPS, PLUMBING
from bellcrank.quoting import symbol

if TYPE_CHECKING:
    from bellcrank.emit.llvm.column_code import ColumnCode

# {t} is the type, {m} its suffix in names of LLVM intrinsics, {b} the type of a comparison.
IR_TEMPLATES = {
    "add": "fadd {t} {0}, {1}",
    "sub": "fsub {t} {0}, {1}",
    "mul": "fmul {t} {0}, {1}",
    "div": "fdiv {t} {0}, {1}",
    "neg": "fneg {t} {0}",
    "sqrt": "call {t} @llvm.sqrt.{m}({t} {0})",
    "abs": "call {t} @llvm.fabs.{m}({t} {0})",
    "floor": "call {t} @llvm.floor.{m}({t} {0})",
    "minimum": "call {t} @llvm.minimum.{m}({t} {0}, {t} {1})",
    "maximum": "call {t} @llvm.maximum.{m}({t} {0}, {t} {1})",
    "lt": "fcmp olt {t} {0}, {1}",
    "le": "fcmp ole {t} {0}, {1}",
    "where": "select {b} {0}, {t} {1}, {t} {2}",
}


class LLVMPrinter:
    """Printer of the functions of a graph, with its allocation of the workspace."""

    def __init__(
        self,
        graph: Graph,
        width: int,
        trig_width: int,
        dtype: str,
        chunks: Sequence[Sequence[Item]],
        prologue: Sequence[Item] = (),
        called: Mapping[int, tuple[str, int]] | None = None,
        columns: Mapping[int, ColumnCode] | None = None,
        registers: int = 0,
        w: Writer | None = None,
    ) -> None:
        """Prepare to print a graph.

        Parameters
        ----------
        graph
            The graph.
        width
            Lanes of a value.
        trig_width
            Lanes of one vector of @sincos.
        dtype
            Floating-point type.
        chunks
            Items of each chunk; each becomes a function.
        prologue
            Items that the block before executed for this one, see calls.py.
        called
            For a routine (emit/llvm/subroutines.py), the name and the workspace slots of each function it may call, by
            id of the graph; None otherwise.
        columns
            Loops over columns that the graph calls, by the serial number of the call.
        registers
            Registers of the processor, to allocate them here (register_allocation.py); 0 to leave allocation to LLVM.
        w
            Writer of the lines; by default a new one.
        """
        self.graph, self.trig_width, self.chunks, self.prologue = graph, trig_width, chunks, prologue
        self.registers = registers
        self.w = w or Writer(width, dtype, pool=bool(prologue))
        self.slots: dict[int, int] = {}  # node -> slot in the workspace
        self.called, self.columns = called, columns or {}
        self.loop_functions: list[str] = []  # functions of the loops over columns that were called
        below = max((size for _, size in called.values()), default=0) if called else 0
        self.size = 1 + -(-below // trig_width) * trig_width  # of the workspace, in slots; callees use the first ones
        self.argument_area = 0, 0  # slots of the arguments of calls: first, number
        self.result_slots = SlotAllocator()  # slots of their results
        self.loop_argument_slots: dict[int, int] = {}  # loop over columns -> first slot of its arguments
        # node -> the loop it is passed to, and its position there.
        self.argument_positions = calls.argument_positions(self) if columns else {}
        self.free_slots: list[int] = []
        self.value_names: dict[int, str] = {}  # node -> value, in the chunk being printed
        self.check_terms: list[str] = []  # terms that the chunk adds to slot 0
        self.use_counts = use_counts(graph)
        self.products = single_use_products(graph, self.use_counts)
        self.fused = self._fused()
        self.inputs = [symbol(name) for name in graph.inputs]
        self.outputs = {name: list(array.flat) for name, array in graph.outputs.items()}
        self.coverage = Coverage(graph.name, graph.shapes)
        # Serials of elements kept in the workspace.
        self.matrix_elements = matrix_elements(chunks) if columns else set()
        self.check_inputs = self._decide_check_inputs()
        self.live_inputs = {n.args for n in graph.nodes if n.op == "input"}
        self.for_next_block = False  # True while printing the work for the next block
        self.range_bits = ""  # range bits of its angles, see `sincos.out_of_range`

    # -- fused operations and the check of inputs

    def _fused(self) -> set[int]:
        products = {product.serial for product in self.products.values()}
        return products | {n.operands[0].serial for n in self.graph.nodes if n.op == "neg" and self.negates(n)}

    def unfuse(self, sums: Collection[int]) -> None:
        """Compute the products of some `sums`, given by serial number, by themselves."""
        self.products = {total: product for total, product in self.products.items() if total not in sums}
        self.fused = self._fused()

    def negates(self, node: Node) -> bool:
        """Return True if `node` negates a fused multiply-add without other users: processors have an instruction."""
        return (
            node.op == "neg"
            and self.use_counts[node.operands[0].serial] == 1
            and node.operands[0].serial in self.products
        )

    @property
    def addends(self) -> dict[int, Node]:
        """For each fused multiply-add, by serial number, the operation it adds to, if that has no other user."""
        addends = {}
        for n in self.graph.nodes:
            inner = n.operands[0] if self.negates(n) else n
            if (product := self.products.get(inner.serial)) is not None:
                z = inner.args[1] if inner.args[0] is product else inner.args[0]
                if isinstance(z, Node) and z.op != "input" and self.use_counts[z.serial] == 1 and not self.inline(z):
                    addends[n.serial] = z
        return addends

    def _decide_check_inputs(self) -> bool:
        """Return True to sum the inputs, False the outputs; NaN reaches the outputs, unless an operation selects."""
        if self.matrix_elements:
            return True
        selects = any(OPS[n.op].kind == "select" for n in self.graph.nodes if n.op not in PLUMBING)
        outputs = sum(array.size for array in self.graph.outputs.values())
        return selects or outputs >= sum(n.op == "input" for n in self.graph.nodes)

    def inline(self, n: Node) -> bool:
        """Return True if `n` is printed at its use; a comparison's mask, for one, cannot be kept in the workspace."""
        return n.serial in self.fused or n.op in COMPARISONS

    # -- functions

    @property
    def packed_lanes(self) -> bool:
        """True inside a simulation: the lanes of an array are contiguous, and inputs are not checked for NaN."""
        return self.called is not None

    def parameters(self) -> str:
        """Return the parameters of the function."""
        arrays = [f"in_{n}" for n in self.inputs] + [f"out_{symbol(n)}" for n in self.graph.outputs]
        strides = [] if self.w.lanes == 1 or self.packed_lanes else [f"i64 %stride_{a}" for a in arrays]
        after = ["%then", *(f"%next_{n}" for n in self.inputs)] if self.prologue else []
        return ", ".join([f"ptr noalias {p}" for p in ("%ws", *(f"%{a}" for a in arrays), *after)] + strides)

    def function(self, name: str, apart: bool = False) -> str:
        """Return i64 @name, which returns 1 for a bad input, and the functions of all chunks.

        The last chunk is inside @name itself.

        Parameters
        ----------
        name
            Name of the function, and prefix of those of the chunks.
        apart
            True if the caller calls the chunks, each for several blocks, so that its code is fetched once for all.
        """
        w, parameters, functions, pipelining_end = self.w, self.parameters(), [], ""
        last_chunk = {n.serial: k for k, chunk in enumerate(self.chunks) for item in chunk for n in self.reads(item)}
        if self.prologue:
            inputs = ", ".join(f"ptr noalias %in_{n}, i64 %stride_in_{n}" for n in self.inputs)
            functions.append(self._function_text(f"{name}_first", f"ptr noalias %ws, {inputs}", calls.prologue(self)))
        for k, chunk in enumerate(self.chunks):
            self._print_chunk(k, chunk, last_chunk)
            pipelining_end = calls.interleave_next_block(self, name) if self.prologue else ""
            ended = [(serial, slot) for serial, slot in self.slots.items() if last_chunk.get(serial) == k and slot > 0]
            self.free_slots += [slot for serial, slot in ended if serial not in self.result_slots.residents]
            if k + 1 < len(self.chunks):
                functions.append(self._function_text(f"{name}_{k}", parameters, self.body_text()))
        called_chunks = [] if apart else range(len(self.chunks) - 1)
        chunk_calls = "".join(f"  call void @{name}_{k}({parameters})\n" for k in called_chunks)
        self.check()
        if self.packed_lanes:
            body = chunk_calls + self.body_text()
            return "\n".join([*functions, self._function_text(name, parameters, self._early_exit() + body)])
        bits = f"i{w.lanes}"
        functions.append(f"""define internal i64 @{name}({parameters}) nounwind{self._aligned} {{
{chunk_calls}{self.body_text()}{pipelining_end}  %sum = load {w.type}, ptr %ws, align {w.align}
  %size = call {w.type} @llvm.fabs.{w.mangled}({w.type} %sum)
  %bad = fcmp uge {w.type} %size, {w.immediate(float("inf"))}
  %bits = bitcast {w.mask} %bad to {bits}
  %any = icmp ne {bits} %bits, 0
  %status = zext i1 %any to i64
  ret i64 %status
}}""")
        return "\n".join(functions)

    def check(self) -> None:
        """Raise CompileError if the code does not store every element of the outputs."""
        self.coverage.check()

    @property
    def _aligned(self) -> str:
        """Attributes: spilled vectors must not straddle cache lines, and code must be aligned for constant speed."""
        return f" alignstack({self.w.align}) align 64" if self.w.lanes > 1 and self.w.align > 16 else ""

    def _function_text(self, name: str, parameters: str, body: str) -> str:
        """Return a function without a result."""
        return f"define internal void @{name}({parameters}) noinline nounwind{self._aligned} {{\n{body}  ret void\n}}"

    def _early_exit(self) -> str:
        """Return an early exit for the case that no lane needs the results."""
        if not self.graph.only:
            return ""
        w = self.w
        w.lines = []
        is_needed = w.let(f"fcmp ogt {w.type} {w.load(f'%in_{symbol(self.graph.only)}')}, {w.immediate(0.0)}")
        if w.lanes > 1:
            bits = w.let(f"bitcast {w.mask} {is_needed} to i{w.lanes}")
            is_needed = w.let(f"icmp ne i{w.lanes} {bits}, 0")
        return f"{self.body_text()}  br i1 {is_needed}, label %needed, label %idle\nidle:\n  ret void\nneeded:\n"

    def _print_chunk(self, k: int, chunk: Sequence[Item], last_chunk: Mapping[int, int]) -> None:
        """Print the lines of chunk k; last_chunk: the last chunk that reads each node."""
        self.begin_body()
        self.result_slots.chunk, self.result_slots.last_chunk = k, last_chunk
        spills_of_items = spills(chunk, self.reads, self.inline, self.registers) if self.registers else repeat(())
        dead_values = (
            self._dead_values(k, chunk, last_chunk) if self.registers and self.w.lanes > 1 and not self.prologue else {}
        )
        for t, (item, spilled) in enumerate(zip(chunk, spills_of_items, strict=False)):
            self.emit_item(item)
            if item.kind in ("load", "op", "call", "receive"):
                self.store_values(
                    [n for n in item.defines if last_chunk.get(n.serial, k) > k or n.serial in self.matrix_elements]
                )
            if spilled:
                self._spill(spilled)
            if t in dead_values:
                self.free_slots += [self.slots.pop(serial) for serial in dead_values[t] if serial in self.slots]
        previous_sum = [self.w.load("%ws")] if (k or self.prologue) and not self.packed_lanes else []
        if (self.check_terms or not previous_sum) and not self.packed_lanes:
            self.w.store(self.w.total([*self.check_terms, *previous_sum]), "%ws")

    def _dead_values(self, k: int, chunk: Sequence[Item], last_chunk: Mapping[int, int]) -> dict[int, list[int]]:
        """Return for each item of chunk k the values that nothing reads after it, so that their slots are reused.

        A slot is as wide as the lanes, and few cache lines stay in the nearest cache; for scalar code, all slots fit.
        """
        final = {n.serial: t for t, item in enumerate(chunk) for n in self.reads(item)}
        dead_values: dict[int, list[int]] = {}
        for serial, t in final.items():
            if last_chunk[serial] == k:
                dead_values.setdefault(t, []).append(serial)
        return dead_values

    def begin_body(self) -> None:
        """Start a new body: no lines, no values, no terms of the check."""
        self.w.lines, self.value_names, self.check_terms = [], {}, []

    def body_text(self) -> str:
        """Return the lines of the body."""
        return lanes.indented(self._lines)

    @property
    def _lines(self) -> list[str]:
        if not (self.registers and self.w.lanes > 1 and host().avx512):
            return self.w.lines
        return rebase(self.w.lines, self.w.align)

    def reads(self, item: Item) -> list[Node]:
        """Return the nodes whose values `item` needs, looking through inline nodes."""
        stack, nodes = list(item.uses), []
        while stack:
            n = stack.pop()
            nodes.append(n)
            if n.serial in self.fused or n.op in COMPARISONS:  # `inline` without the cost of a call
                stack.extend(n.operands)
        return nodes

    def read_after(self, call: Node) -> set[int]:
        """Return the serials of nodes that are read after `call`."""
        serials: set[int] = set()
        for item in (item for piece in reversed(self.chunks) for item in reversed(piece)):
            if call in item.defines:
                break
            serials.update(n.serial for n in self.reads(item))
        return serials

    # -- items

    def emit_item(self, item: Item) -> None:
        """Emit one item of the schedule: loads, sines and cosines, an operation, a call, or stores."""
        if item.kind == "trig" and self.for_next_block:
            calls.interleaved_sincos(self, item)
        elif item.kind == "trig":
            self._trig(item)
        elif item.kind == "call":
            calls.emit_call(self, item)
        elif item.kind == "op":
            (node,) = item.defines
            if not self.inline(node):
                self.value_names[node.serial] = self.operation(node)
        elif item.kind == "load" and self.packed_lanes:
            return  # loaded at each first use
        elif item.tile is not None and item.kind == "load":
            self._load(item.tile, item.defines)
        elif item.tile is not None and item.tile.is_matrix:
            self._store_matrix(item.tile)
        elif item.tile is not None:
            self._store(item.tile)

    def _load(self, tile: Tile, nodes: Sequence[Node]) -> None:
        array, word = tile.array, symbol(tile.array)
        pointer = f"%next_{word}" if self.for_next_block else f"%in_{word}"
        columns = lanes.load_tile(self.w, tile, pointer, f"%stride_in_{word}")
        for n in nodes:
            self.value_names[n.serial] = columns[n.args[1] - tile.start]
        for c, value in enumerate(columns, tile.start):
            if self.check_inputs or (array, c) not in self.live_inputs:
                self.check_terms.append(value)

    def _store(self, tile: Tile) -> None:
        flat = self.outputs[tile.array]
        self.coverage.note(tile.array, range(tile.start, tile.start + tile.width))
        outputs = flat[tile.start : tile.start + tile.width]
        values = [self.value(x) if isinstance(x, Node) else self.w.immediate(x) for x in outputs]
        out = f"out_{symbol(tile.array)}"
        stride = "" if self.packed_lanes else f"%stride_{out}"
        lanes.store_tile(self.w, tile, f"%{out}", stride, values, in_order=len(flat) > MATRIX_ELEMENTS)
        if not self.check_inputs:
            self.check_terms += values

    def _store_matrix(self, tile: Tile) -> None:
        """Store a matrix from the workspace, by a loop."""
        from bellcrank.emit.llvm import transpose_store  # imported here, because few graphs are so large

        elements = self.outputs[tile.array][tile.start : tile.start + tile.width]
        self.coverage.note(tile.array, range(tile.start, tile.start + tile.width))
        self.store_values([x for x in elements if isinstance(x, Node) and x.serial not in self.slots])
        numbers = {x: self._new_slot() for x in dict.fromkeys(x for x in elements if not isinstance(x, Node))}
        for x, slot in numbers.items():
            self.w.store(self.w.immediate(x), self.slot(slot))
        element_slots = [self.slots[x.serial] if isinstance(x, Node) else numbers[x] for x in elements]
        name, out = f"rows{len(self.loop_functions)}", f"out_{symbol(tile.array)}"
        self.loop_functions.append(transpose_store.definition(name, self.w.lanes, self.w.dtype, element_slots))
        start = self.w.at(f"%{out}", tile.start * self.w.bytes)
        self.w.do(f"call void @{name}(ptr %ws, ptr {start}, i64 %stride_{out})")
        self.free_slots += numbers.values()

    def value(self, x: Node | float) -> str:
        """Return the name of the value `x`, loading it from memory if it has none, or the text of a constant."""
        if not isinstance(x, Node):
            return self.w.constant(x)
        if x.serial not in self.value_names:
            if self.inline(x):
                self.value_names[x.serial] = self.operation(x)
            elif x.op == "input" and self.packed_lanes:
                array, place = x.args
                self.value_names[x.serial] = self.w.load(self.w.at(f"%in_{symbol(array)}", place * self.w.align))
            else:
                self.value_names[x.serial] = self.w.load(self.slot(self.slots[x.serial]))
        return self.value_names[x.serial]

    def operation(self, node: Node) -> str:
        """Emit the operation of `node`, fused with a product where possible; return the name of its value."""
        product = self.products.get(node.serial)
        if product is not None:
            return fused(node, product, self.value, self.w)
        if self.negates(node):
            inner = node.operands[0]
            return fused(inner, self.products[inner.serial], self.value, self.w, minus=True)
        args = [self.value(a) for a in node.args]
        if node.op in LIBRARY_ARITY:
            return self.w.function(node.op, args)
        return self.w.let(IR_TEMPLATES[node.op].format(*args, t=self.w.type, m=self.w.mangled, b=self.w.mask), "v")

    def _trig(self, item: Item) -> None:
        """Store the angles in the workspace and call @sincos once; results stay there until they are used."""
        w, ratio = self.w, self.trig_width // self.w.lanes
        count = -(-len(item.uses) // ratio)  # vectors of trig_width
        padded_count = count * ratio
        base = -(-self.size // ratio) * ratio  # aligned for the vectors
        self.size = base + 3 * padded_count
        for i in range(padded_count):
            w.store(self.value(item.uses[i]) if i < len(item.uses) else "zeroinitializer", self.slot(base + i))
        x, s, c = (self.slot(base + padded_count * j) for j in range(3))
        w.do(f"call void @sincos(ptr {x}, ptr {s}, ptr {c}, i64 {count})")
        index = {a.serial: i for i, a in enumerate(item.uses)}
        for n in item.defines:
            self.slots[n.serial] = base + padded_count * (1 if n.op == "sin" else 2) + index[n.operands[0].serial]

    # -- the workspace

    def slot(self, index: int) -> str:
        """Return the address of the spill slot `index`."""
        return self.w.at("%then" if self.for_next_block else "%ws", index * self.w.align)

    def store_values(self, nodes: Sequence[Node]) -> None:
        """Store the values of `nodes` into their spill slots."""
        for n in nodes:
            if n.serial in self.value_names:
                self.slots[n.serial] = self._choose_slot(n)
                self.w.store(self.value_names[n.serial], self.slot(self.slots[n.serial]))

    def _choose_slot(self, n: Node) -> int:
        """Return the slot where a value waits."""
        if n.serial in self.argument_positions:
            call, place = self.argument_positions.pop(n.serial)
            return calls.loop_argument_slot(self, call) + place
        return self._new_slot()

    def contiguous_slots(self, size: int) -> int:
        """Return the first of `size` contiguous free slots."""
        starts = [
            begin
            for begin, end in consecutive_ranges(sorted(self.free_slots))
            if end - begin >= size or end == self.size
        ]
        begin = starts[0] if starts else self.size
        self.free_slots = [k for k in self.free_slots if not begin <= k < begin + size]
        self.size = max(self.size, begin + size)
        return begin

    def _new_slot(self) -> int:
        if not self.free_slots:
            self.free_slots.append(self.size)
            self.size += 1
        return self.free_slots.pop()

    def _spill(self, nodes: Sequence[Node]) -> None:
        self.store_values([n for n in nodes if n.serial not in self.slots])
        for n in nodes:
            self.value_names.pop(n.serial, None)


# -- fusion of products into sums: a multiply-add is one instruction and rounds once


def use_counts(graph: Graph) -> dict[int, int]:
    """Return the uses of each node of `graph`; an output counts two more, as it must exist and cannot be fused away."""
    uses: dict[int, int] = {n.serial: 0 for n in graph.nodes}
    for node in graph.nodes:
        for a in node.operands:
            uses[a.serial] += 1
    for serial in {x.serial for array in graph.outputs.values() for x in array.flat if isinstance(x, Node)}:
        uses[serial] += 2
    return uses


def single_use_products(graph: Graph, uses: Mapping[int, int]) -> dict[int, Node]:
    """Return the product without other users that joins each sum of `graph`, by the serial number of the sum.

    It is the later product, so that the other one need not wait. `uses` are the numbers of uses of each node.
    """
    products = {}
    for node in graph.nodes:
        if node.op in ("add", "sub"):
            single = [a for a in node.operands if a.op == "mul" and uses[a.serial] == 1]
            if single:
                products[node.serial] = max(single, key=lambda a: a.serial)
    return products


def fused(node: Node, product: Node, value: Callable[[Node | float], str], w: Writer, minus: bool = False) -> str:
    """Emit a sum with its product, x y + z, x y - z or z - x y, rounded once; return the name of its value.

    Parameters
    ----------
    node
        The sum or difference.
    product
        The operand x y.
    value
        Returns the name of an operand.
    w
        Writer.
    minus
        True for the negative of it.
    """
    a, b = node.args
    x, y = map(value, product.args)
    z = value(b if a is product else a)
    if (node.op == "sub" and a is product) is not minus:
        z = w.negative(z)
    if (node.op == "sub" and a is not product) is not minus:
        y = w.negative(y)
    return w.fma(x, y, z)
