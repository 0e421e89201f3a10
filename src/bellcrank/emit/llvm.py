"""Graph to LLVM IR text: `@one` for a state, `@many` for a batch in lanes of W, and what Python calls.

    i64 @one(ptr in..., ptr out...)                                    0, or 1 when an input is not finite
    i64 @many(i64 n, ptr in, i64 stride, ..., ptr out, i64 stride...)  n rows; strides in bytes from row to row

Both are made by the same speller, with lanes = 1 and lanes = W. Values that outlive a chunk (see plan.py), and the sines and cosines,
live in a workspace on the stack; slot 0 of it gathers the sum of all inputs, which is finite exactly if they all are (or so
large that someone should look).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bellcrank.emit import sincos
from bellcrank.emit.order import order
from bellcrank.emit.plan import TILE, Item, Tile, chunks, items
from bellcrank.graph import Graph, Node

# Spelling of each operation; {t} is the type, {0}, {1}, {2} the arguments.
SPELL = {
    "add": "fadd {t} {0}, {1}",
    "sub": "fsub {t} {0}, {1}",
    "mul": "fmul {t} {0}, {1}",
    "div": "fdiv {t} {0}, {1}",
    "neg": "fneg {t} {0}",
    "sqrt": "call {t} @llvm.sqrt.{m}({t} {0})",
    "abs": "call {t} @llvm.fabs.{m}({t} {0})",
    "minimum": "call {t} @llvm.minimum.{m}({t} {0}, {t} {1})",
    "maximum": "call {t} @llvm.maximum.{m}({t} {0}, {t} {1})",
    "lt": "fcmp olt {t} {0}, {1}",
    "le": "fcmp ole {t} {0}, {1}",
    "where": "select {b} {0}, {t} {1}, {t} {2}",
}
# Called lane by lane from the C library: rare in mechanics, and right.
LIBRARY = {"tan": 1, "asin": 1, "acos": 1, "atan2": 2, "exp": 1, "log": 1, "tanh": 1}
COMPARISONS = ("lt", "le")

CHUNK = 1500  # items in a function


def source(graph: Graph, lanes: int, dtype: str = "float64", chunk: int = CHUNK) -> str:
    """The whole module, without the Python entry (emit/pycall.py adds that)."""
    sequence = items(graph, order(graph))
    parts = [
        f"; {graph.name}: {graph.count().arithmetic} operations, {lanes} lanes of {dtype}",
        sincos.definition(lanes, dtype),
        _Speller(graph, 1, lanes, dtype).function("one_state", chunks(sequence, chunk)),
        _Speller(graph, lanes, lanes, dtype).function("block", chunks(sequence, chunk)),
        _one(graph, dtype),
        _many(graph, lanes, dtype),
        *declarations(dtype),
    ]
    return "\n".join(parts)


def declarations(dtype: str) -> list[str]:
    """What comes from the C library. (The parser knows LLVM's own functions, and sincos declares what it needs.)"""
    e, suffix = ("double", "") if dtype == "float64" else ("float", "f")
    return [f"declare {e} @{name}{suffix}({', '.join([e] * arity)})" for name, arity in LIBRARY.items()]


def _type(lanes: int, dtype: str) -> tuple[str, str]:
    """(IR type, suffix of intrinsics)"""
    e, m = ("double", "f64") if dtype == "float64" else ("float", "f32")
    return (e, m) if lanes == 1 else (f"<{lanes} x {e}>", f"v{lanes}{m}")


def constant(x: float, dtype: str) -> str:
    return f"0x{struct.pack('>d', float(np.float32(x)) if dtype == 'float32' else x).hex().upper()}"


@dataclass
class _Speller:
    graph: Graph
    lanes: int
    trig_lanes: int
    dtype: str
    lines: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)  # values known in this chunk
    slots: dict[int, int] = field(default_factory=dict)  # places in the workspace
    slot_count: int = 1
    temps: int = 0

    def __post_init__(self) -> None:
        self.element = "double" if self.dtype == "float64" else "float"
        self.bytes = 8 if self.dtype == "float64" else 4
        self.type, self.mangled = _type(self.lanes, self.dtype)
        self.mask = "i1" if self.lanes == 1 else f"<{self.lanes} x i1>"
        self.uses: dict[int, int] = {}
        for node in self.graph.nodes:
            for a in node.operands:
                self.uses[a.serial] = self.uses.get(a.serial, 0) + 1
        for array in self.graph.outputs.values():
            for x in array.flat:
                if isinstance(x, Node):
                    self.uses[x.serial] = self.uses.get(x.serial, 0) + 2  # an output must exist: never fused away

    # -- a function per chunk, and one that calls them in turn

    def function(self, name: str, pieces: Sequence[Sequence[Item]]) -> str:
        parameters = self.parameters()
        last_use = {n.serial: k for k, piece in enumerate(pieces) for item in piece for n in self._reads(item)}
        out = []
        free: list[int] = []
        for k, piece in enumerate(pieces):
            self.lines, self.names = [], {}
            for item in piece:
                self._item(item, k, last_use)
            body = "\n".join(f"  {line}" for line in self.lines)
            out.append(f"define internal void @{name}_{k}({parameters}) noinline nounwind {{\n{body}\n  ret void\n}}")
        call = "\n".join(f"  call void @{name}_{k}({parameters})" for k in range(len(pieces)))
        del free
        w = self.type
        out.append(f"""define internal {self.mask} @{name}({parameters}) nounwind {{
  store {w} zeroinitializer, ptr %ws, align {self.align}
{call}
  %sum = load {w}, ptr %ws, align {self.align}
  %size = call {w} @llvm.fabs.{self.mangled}({w} %sum)
  %bad = fcmp uge {w} %size, {self._constant(float("inf"))}
  ret {self.mask} %bad
}}""")
        out.append(f"; workspace of {name}: {self.slot_count} slots")
        setattr(self.graph, "_", None) if False else None
        WORKSPACE[name] = self.slot_count
        return "\n".join(out)

    def parameters(self) -> str:
        arrays = [f"in_{n}" for n in self.graph.inputs] + [f"out_{n}" for n in self.graph.outputs]
        strides = [] if self.lanes == 1 else [f"i64 %stride_{a}" for a in arrays]
        return ", ".join(["ptr noalias %ws", *(f"ptr noalias %{a}" for a in arrays), *strides])

    @property
    def align(self) -> int:
        return self.bytes * self.lanes

    def _reads(self, item: Item) -> Iterable[Node]:
        """Nodes whose values the item needs, looking through what is fused into it."""
        stack = list(item.uses)
        while stack:
            n = stack.pop()
            yield n
            if self._fused(n) or n.op in COMPARISONS:
                stack.extend(n.operands)

    def _fused(self, node: Node) -> bool:
        """A product with one user, which is a sum: it becomes part of a fused multiply-add there."""
        return node.op == "mul" and self.uses[node.serial] == 1 and node.serial in self._summands

    @property
    def _summands(self) -> set[int]:
        if not hasattr(self, "_summand_set"):
            found: set[int] = set()
            for node in self.graph.nodes:
                if node.op in ("add", "sub"):
                    pick = self._product_of(node)
                    if pick is not None:
                        found.add(pick.serial)
            self._summand_set = found
        return self._summand_set

    def _product_of(self, node: Node) -> Node | None:
        """Which argument of a sum is fused into it: the later product, so that the earlier one need not wait."""
        products = [a for a in node.operands if a.op == "mul" and self.uses[a.serial] == 1]
        return max(products, key=lambda n: n.serial) if products else None

    # -- one item

    def _item(self, item: Item, k: int, last_use: dict[int, int]) -> None:
        if item.kind == "load":
            self._load(item)
        elif item.kind == "trig":
            self._trig(item)
        elif item.kind == "store":
            self._store(item)
        else:
            (node,) = item.defines
            if self._fused(node) or node.op in COMPARISONS:
                return
            self.names[node.serial] = self._operation(node)
        for n in item.defines:
            if item.kind != "trig" and last_use.get(n.serial, k) > k:
                self._keep(n)

    def _keep(self, n: Node) -> None:
        self.slots[n.serial] = self.slot_count
        self.slot_count += 1
        self.lines.append(f"store {self.type} {self.names[n.serial]}, ptr {self._slot(self.slots[n.serial])}, align {self.align}")

    def _slot(self, index: int, unit: int | None = None) -> str:
        name = self._temp("p")
        self.lines.append(f"{name} = getelementptr i8, ptr %ws, i64 {index * (unit or self.align)}")
        return name

    def _temp(self, prefix: str = "t") -> str:
        self.temps += 1
        return f"%{prefix}{self.temps}"

    def _constant(self, x: float) -> str:
        text = constant(x, self.dtype)
        return text if self.lanes == 1 else f"splat ({self.element} {text})"

    def _value(self, x: Node | float) -> str:
        if not isinstance(x, Node):
            return self._constant(x)
        if x.serial not in self.names:
            if self._fused(x) or x.op in COMPARISONS:
                self.names[x.serial] = self._operation(x)
            else:
                slot = self._slot(self.slots[x.serial])
                self.names[x.serial] = name = self._temp("v")
                self.lines.append(f"{name} = load {self.type}, ptr {slot}, align {self.align}")
        return self.names[x.serial]

    def _operation(self, node: Node) -> str:
        if node.op in ("add", "sub"):
            product = self._product_of(node)
            if product is not None and self._fused(product):
                return self._fma(node, product)
        args = [self._value(a) for a in node.args]
        if node.op in LIBRARY:
            return self._library(node.op, args)
        name = self._temp("v")
        self.lines.append(f"{name} = " + SPELL[node.op].format(*args, t=self.type, m=self.mangled, b=self.mask))
        return name

    def _fma(self, node: Node, product: Node) -> str:
        """x*y + c, c - x*y or x*y - c in one instruction."""
        a, b = node.args
        x, y = (self._value(p) for p in product.args)
        rest = self._value(b if a is product else a)
        if node.op == "sub":
            sign = self._temp()
            if a is product:
                self.lines.append(f"{sign} = fneg {self.type} {rest}")
                rest = sign
            else:
                self.lines.append(f"{sign} = fneg {self.type} {y}")
                y = sign
        name, t = self._temp("v"), self.type
        self.lines.append(f"{name} = call {t} @llvm.fma.{self.mangled}({t} {x}, {t} {y}, {t} {rest})")
        return name

    def _library(self, op: str, args: Sequence[str]) -> str:
        e = self.element
        function = op if self.dtype == "float64" else op + "f"
        if self.lanes == 1:
            name = self._temp("v")
            self.lines.append(f"{name} = call {e} @{function}({', '.join(f'{e} {a}' for a in args)})")
            return name
        result = "poison"
        for lane in range(self.lanes):
            parts = []
            for a in args:
                parts.append(self._temp())
                self.lines.append(f"{parts[-1]} = extractelement {self.type} {a}, i64 {lane}")
            value, name = self._temp(), self._temp("v")
            self.lines.append(f"{value} = call {e} @{function}({', '.join(f'{e} {p}' for p in parts)})")
            self.lines.append(f"{name} = insertelement {self.type} {result}, {e} {value}, i64 {lane}")
            result = name
        return result

    def _trig(self, item: Item) -> None:
        """Arguments to the workspace, one call for all, results stay there until they are used."""
        unit = self.bytes * self.lanes
        count = -(-len(item.uses) * self.lanes // self.trig_lanes)  # vectors of trig_lanes
        room = -(-count * self.trig_lanes // self.lanes)  # slots, rounded up to whole vectors
        whole = self.trig_lanes // self.lanes
        base = -(-self.slot_count // whole) * whole  # aligned for the vector code
        for i, a in enumerate(item.uses):
            value = self._value(a)
            self.lines.append(f"store {self.type} {value}, ptr {self._slot(base + i)}, align {unit}")
        for i in range(len(item.uses), room):
            self.lines.append(f"store {self.type} zeroinitializer, ptr {self._slot(base + i)}, align {unit}")
        x, s, c = (self._slot(base + room * j) for j in range(3))
        self.lines.append(f"call void @sincos(ptr {x}, ptr {s}, ptr {c}, i64 {count})")
        at = {a.serial: i for i, a in enumerate(item.uses)}
        for n in item.defines:
            self.slots[n.serial] = base + room * (1 if n.op == "sin" else 2) + at[n.operands[0].serial]
        self.slot_count = base + 3 * room

    # -- rows of states to lanes and back

    def _load(self, item: Item) -> None:
        tile = item.tile
        assert tile is not None
        columns = self._scalars(tile) if self.lanes == 1 else self._transposed(tile)
        for n in item.defines:
            self.names[n.serial] = columns[n.args[1] - tile.start]
        total = columns[0]
        for c in columns[1:]:
            name = self._temp()
            self.lines.append(f"{name} = fadd {self.type} {total}, {c}")
            total = name
        old, new = self._temp(), self._temp()
        self.lines.append(f"{old} = load {self.type}, ptr %ws, align {self.align}")
        self.lines.append(f"{new} = fadd {self.type} {old}, {total}")
        self.lines.append(f"store {self.type} {new}, ptr %ws, align {self.align}")

    def _address(self, array: str, column: int, row: int = 0) -> str:
        base = f"%{array}"
        if row:
            offset, moved = self._temp(), self._temp("p")
            self.lines.append(f"{offset} = mul i64 %stride_{array}, {row}")
            self.lines.append(f"{moved} = getelementptr i8, ptr {base}, i64 {offset}")
            base = moved
        name = self._temp("p")
        self.lines.append(f"{name} = getelementptr i8, ptr {base}, i64 {column * self.bytes}")
        return name

    def _scalars(self, tile: Tile) -> list[str]:
        names = []
        for c in range(tile.start, tile.start + tile.width):
            p = self._address(f"in_{tile.array}", c)
            names.append(self._temp("x"))
            self.lines.append(f"{names[-1]} = load {self.element}, ptr {p}, align {self.bytes}")
        return names

    def _row_type(self, tile: Tile) -> tuple[str, int]:
        width = TILE if tile.width > 2 else tile.width
        return f"<{width} x {self.element}>", width

    def _transposed(self, tile: Tile) -> list[str]:
        """Rows of the tile, joined to full vectors and exchanged until each holds one column."""
        row_type, width = self._row_type(tile)
        rows = [self._load_row(tile, r, row_type, width) for r in range(self.lanes)]
        groups = [self._join([rows[j + width * k] for k in range(self.lanes // width)], row_type, width) for j in range(width)]
        return self._butterfly(groups, width)[: tile.width]

    def _load_row(self, tile: Tile, row: int, row_type: str, width: int) -> str:
        p = self._address(f"in_{tile.array}", tile.start, row)
        name = self._temp("r")
        if tile.width == width:
            self.lines.append(f"{name} = load {row_type}, ptr {p}, align {self.bytes}")
            return name
        last = "zeroinitializer"
        for c in range(tile.width):  # three columns: never read beyond the row
            q, x, name = self._temp("p"), self._temp(), self._temp("r")
            self.lines.append(f"{q} = getelementptr i8, ptr {p}, i64 {c * self.bytes}")
            self.lines.append(f"{x} = load {self.element}, ptr {q}, align {self.bytes}")
            self.lines.append(f"{name} = insertelement {row_type} {last}, {self.element} {x}, i64 {c}")
            last = name
        return last

    def _join(self, parts: list[str], part_type: str, width: int) -> str:
        while len(parts) > 1:
            mask = ", ".join(f"i32 {i}" for i in range(2 * width))
            joined = []
            for a, b in zip(parts[::2], parts[1::2], strict=True):
                joined.append(self._temp("j"))
                self.lines.append(
                    f"{joined[-1]} = shufflevector {part_type} {a}, {part_type} {b}, <{2 * width} x i32> <{mask}>"
                )
            parts, width = joined, 2 * width
            part_type = f"<{width} x {self.element}>"
        return parts[0]

    def _butterfly(self, vectors: list[str], width: int) -> list[str]:
        """Transposes width x width blocks spread over the lanes; its own inverse."""
        step = 1
        while step < width:
            for i in range(width):
                if not i & step:
                    vectors[i], vectors[i + step] = self._exchange(vectors[i], vectors[i + step], step)
            step *= 2
        return vectors

    def _exchange(self, a: str, b: str, step: int) -> tuple[str, str]:
        W = self.lanes
        low = [(lane + W - step) if lane & step else lane for lane in range(W)]
        high = [(lane + W) if lane & step else lane + step for lane in range(W)]
        names = []
        for lanes in (low, high):
            names.append(self._temp("s"))
            mask = ", ".join(f"i32 {i}" for i in lanes)
            self.lines.append(f"{names[-1]} = shufflevector {self.type} {a}, {self.type} {b}, <{W} x i32> <{mask}>")
        return names[0], names[1]

    def _store(self, item: Item) -> None:
        tile = item.tile
        assert tile is not None
        flat = list(self.graph.outputs[tile.array].flat)
        values = [self._value(x) for x in flat[tile.start : tile.start + tile.width]]
        array = f"out_{tile.array}"
        if self.lanes == 1:
            for c, value in enumerate(values):
                p = self._address(array, tile.start + c)
                self.lines.append(f"store {self.type} {value}, ptr {p}, align {self.bytes}")
            return
        row_type, width = self._row_type(tile)
        vectors = self._butterfly([*values, *[self._constant(0.0)] * (width - tile.width)], width)
        for j, vector in enumerate(vectors):
            for k in range(self.lanes // width):
                self._store_row(tile, array, vector, j + width * k, k, row_type, width)

    def _store_row(self, tile: Tile, array: str, vector: str, row: int, group: int, row_type: str, width: int) -> None:
        part = self._temp("r")
        mask = ", ".join(f"i32 {group * width + i}" for i in range(width))
        self.lines.append(f"{part} = shufflevector {self.type} {vector}, {self.type} poison, <{width} x i32> <{mask}>")
        p = self._address(array, tile.start, row)
        if tile.width == width:
            self.lines.append(f"store {row_type} {part}, ptr {p}, align {self.bytes}")
            return
        for c in range(tile.width):
            x, q = self._temp(), self._temp("p")
            self.lines.append(f"{x} = extractelement {row_type} {part}, i64 {c}")
            self.lines.append(f"{q} = getelementptr i8, ptr {p}, i64 {c * self.bytes}")
            self.lines.append(f"store {self.element} {x}, ptr {q}, align {self.bytes}")


WORKSPACE: dict[str, int] = {}


def _arrays(graph: Graph) -> tuple[list[str], list[int]]:
    names = [f"in_{n}" for n in graph.inputs] + [f"out_{n}" for n in graph.outputs]
    shapes = [*graph.inputs.values(), *(a.shape for a in graph.outputs.values())]
    return names, [int(np.prod(s)) for s in shapes]


def _one(graph: Graph, dtype: str) -> str:
    names, _ = _arrays(graph)
    e = "double" if dtype == "float64" else "float"
    args = ", ".join(f"ptr %{n}" for n in names)
    return f"""define i64 @one({args}) nounwind {{
  %ws = alloca [{WORKSPACE["one_state"]} x {e}], align 64
  %bad = call i1 @one_state(ptr %ws, {args})
  %status = zext i1 %bad to i64
  ret i64 %status
}}"""


def _many(graph: Graph, lanes: int, dtype: str) -> str:
    """Whole blocks in a loop; the rest is copied beside its last row, repeated, and goes through the same block."""
    names, sizes = _arrays(graph)
    width = 8 if dtype == "float64" else 4
    e = "double" if dtype == "float64" else "float"
    t = _type(lanes, dtype)[0]
    parameters = ", ".join(f"ptr %{n}, i64 %stride_{n}" for n in names)
    inputs = len(graph.inputs)

    def call(pointers: Sequence[str], strides: Sequence[str]) -> str:
        return ", ".join(["ptr %ws", *(f"ptr {p}" for p in pointers), *(f"i64 {s}" for s in strides)])

    loop = "\n".join(
        f"  %o{i} = mul i64 %row, %stride_{n}\n  %p{i} = getelementptr i8, ptr %{n}, i64 %o{i}" for i, n in enumerate(names)
    )
    rest_alloca = "\n".join(f"  %copy{i} = alloca [{lanes * max(1, k)} x {e}], align 64" for i, k in enumerate(sizes))
    copy_in = "\n".join(
        f"  %ci{i} = mul i64 %from, %stride_{n}\n  %src{i} = getelementptr i8, ptr %{n}, i64 %ci{i}\n"
        f"  %co{i} = mul i64 %k, {sizes[i] * width}\n  %dst{i} = getelementptr i8, ptr %copy{i}, i64 %co{i}\n"
        f"  call void @llvm.memcpy.p0.p0.i64(ptr %dst{i}, ptr %src{i}, i64 {sizes[i] * width}, i1 false)"
        for i, n in enumerate(names[:inputs])
    )
    copy_out = "\n".join(
        f"  %ro{i} = mul i64 %back, %stride_{n}\n  %rd{i} = getelementptr i8, ptr %{n}, i64 %ro{i}\n"
        f"  %rs{i} = mul i64 %m, {sizes[i] * width}\n  %rp{i} = getelementptr i8, ptr %copy{i}, i64 %rs{i}\n"
        f"  call void @llvm.memcpy.p0.p0.i64(ptr %rd{i}, ptr %rp{i}, i64 {sizes[i] * width}, i1 false)"
        for i, n in list(enumerate(names))[inputs:]
    )
    mask, bits = f"<{lanes} x i1>", f"i{lanes}"
    strides = [f"%stride_{n}" for n in names]
    own = [str(k * width) for k in sizes]
    if lanes == 1:
        mask, bits, strides, own = "i1", "i1", [], []
    return f"""define i64 @many(i64 %n, {parameters}) nounwind {{
  %ws = alloca [{WORKSPACE["block"]} x {t}], align 64
{rest_alloca}
  %whole = and i64 %n, {-lanes}
  %any = icmp ne i64 %whole, 0
  br i1 %any, label %loop, label %after
loop:
  %row = phi i64 [0, %0], [%next, %loop]
  %seen = phi i64 [0, %0], [%status, %loop]
{loop}
  %bad = call {mask} @block({call([f"%p{i}" for i in range(len(names))], strides)})
  %bad_bits = bitcast {mask} %bad to {bits}
  %bad_any = icmp ne {bits} %bad_bits, 0
  %bad_one = zext i1 %bad_any to i64
  %status = or i64 %seen, %bad_one
  %next = add i64 %row, {lanes}
  %more = icmp ult i64 %next, %whole
  br i1 %more, label %loop, label %after
after:
  %so_far = phi i64 [0, %0], [%status, %loop]
  %left = sub i64 %n, %whole
  %tail = icmp ne i64 %left, 0
  br i1 %tail, label %fill, label %done
fill:
  %k = phi i64 [0, %after], [%k_next, %fill]
  %past = icmp ult i64 %k, %left
  %last = sub i64 %left, 1
  %offset = select i1 %past, i64 %k, i64 %last
  %from = add i64 %whole, %offset
{copy_in}
  %k_next = add i64 %k, 1
  %filling = icmp ult i64 %k_next, {lanes}
  br i1 %filling, label %fill, label %compute
compute:
  %tail_bad = call {mask} @block({call([f"%copy{i}" for i in range(len(names))], own)})
  %tail_bits = bitcast {mask} %tail_bad to {bits}
  %tail_any = icmp ne {bits} %tail_bits, 0
  %tail_one = zext i1 %tail_any to i64
  %final = or i64 %so_far, %tail_one
  br label %empty
empty:
  %m = phi i64 [0, %compute], [%m_next, %empty]
  %back = add i64 %whole, %m
{copy_out}
  %m_next = add i64 %m, 1
  %emptying = icmp ult i64 %m_next, %left
  br i1 %emptying, label %empty, label %done
done:
  %result = phi i64 [%so_far, %after], [%final, %empty]
  ret i64 %result
}}"""
