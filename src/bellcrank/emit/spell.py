"""A graph's items spelled as LLVM IR functions, for one lane or many: a row of the table per operation.

Values that outlive a chunk (see plan.py), and all sines and cosines, live in a workspace. Its slot 0 gathers a sum
that is finite exactly if the inputs are (or so large that someone should look): that is how a batch notices a NaN at
almost no cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bellcrank.emit import lanes
from bellcrank.emit.plan import Item
from bellcrank.emit.writer import Writer
from bellcrank.graph import Graph, Node
from bellcrank.graph.ops import COMPARISONS, OPS

# {t} is the type, {m} its name in LLVM's own functions, {b} the type of a comparison.
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
# From the C library, lane by lane: rare in mechanics, and right.
LIBRARY = {"tan": 1, "asin": 1, "acos": 1, "atan2": 2, "exp": 1, "log": 1, "tanh": 1}

MATRIX = 16  # outputs of more elements than this are stored in order, see lanes.store


class Speller:
    def __init__(self, graph: Graph, width: int, trig_width: int, dtype: str) -> None:
        self.graph, self.trig_width = graph, trig_width
        self.w = Writer(width, dtype)
        self.slots: dict[int, int] = {}  # node -> place in the workspace
        self.size = 1  # of the workspace, in slots
        self.free: list[int] = []
        self.names: dict[int, str] = {}  # node -> value, in the chunk being spelled
        self.sum: list[str] = []  # what the chunk adds to slot 0
        self.uses = _uses(graph)
        self.fused = self._fused()
        self.watch_inputs = self._watch_inputs()
        self.outputs = {name: list(array.flat) for name, array in graph.outputs.items()}
        self.live_inputs = {n.args for n in graph.nodes if n.op == "input"}

    # -- what is fused and what is watched

    def _product(self, node: Node) -> Node | None:
        """The argument of a sum that joins it in a fused multiply-add: the later product, so that the other need not
        wait.
        """
        if node.op not in ("add", "sub"):
            return None
        products = [a for a in node.operands if a.op == "mul" and self.uses[a.serial] == 1]
        return max(products, key=lambda n: n.serial, default=None)

    def _fused(self) -> set[int]:
        return {product.serial for n in self.graph.nodes if (product := self._product(n)) is not None}

    def _watch_inputs(self) -> bool:
        """Whether to add up the inputs or the outputs. NaN reaches the outputs, unless something selects."""
        selects = any(OPS[n.op].kind == "select" for n in self.graph.nodes if n.op != "input")
        outputs = sum(array.size for array in self.graph.outputs.values())
        return selects or outputs >= sum(n.op == "input" for n in self.graph.nodes)

    def _inline(self, n: Node) -> bool:
        """Spelled where it is used. (A comparison's mask is not a value that could wait in the workspace.)"""
        return n.serial in self.fused or n.op in COMPARISONS

    # -- functions

    def parameters(self) -> str:
        arrays = [f"in_{n}" for n in self.graph.inputs] + [f"out_{n}" for n in self.graph.outputs]
        strides = [] if self.w.lanes == 1 else [f"i64 %stride_{a}" for a in arrays]
        return ", ".join(["ptr noalias %ws", *(f"ptr noalias %{a}" for a in arrays), *strides])

    def function(self, name: str, pieces: Sequence[Sequence[Item]]) -> str:
        """@name, which returns a mask of the lanes with bad inputs, and the functions of its chunks."""
        last = {n.serial: k for k, piece in enumerate(pieces) for item in piece for n in self._reads(item)}
        parameters, out = self.parameters(), []
        # Spilled vectors must not straddle cache lines, nor should it depend on luck how the code lies in them.
        aligned = f" alignstack({self.w.align}) align 64" if self.w.align > 16 else ""
        for k, piece in enumerate(pieces):
            self.w.lines, self.names, self.sum = [], {}, []
            for item in piece:
                self._item(item)
                if item.kind in ("load", "op"):
                    self._keep([n for n in item.defines if last.get(n.serial, k) > k])
            self._flush()
            self.free += [slot for serial, slot in self.slots.items() if last.get(serial) == k and slot > 0]
            body = "".join(f"  {line}\n" for line in self.w.lines)
            head = f"define internal void @{name}_{k}({parameters}) noinline nounwind{aligned}"
            out.append(f"{head} {{\n{body}  ret void\n}}")
        calls = "".join(f"  call void @{name}_{k}({parameters})\n" for k in range(len(pieces)))
        w = self.w
        out.append(f"""define internal {w.mask} @{name}({parameters}) nounwind {{
  store {w.type} zeroinitializer, ptr %ws, align {w.align}
{calls}  %sum = load {w.type}, ptr %ws, align {w.align}
  %size = call {w.type} @llvm.fabs.{w.mangled}({w.type} %sum)
  %bad = fcmp uge {w.type} %size, {w.constant(float("inf"))}
  ret {w.mask} %bad
}}""")
        return "\n".join(out)

    def _reads(self, item: Item) -> Iterable[Node]:
        """Nodes whose values the item needs, looking through what is spelled inside it."""
        stack = list(item.uses)
        while stack:
            n = stack.pop()
            yield n
            if self._inline(n):
                stack.extend(n.operands)

    # -- items

    def _item(self, item: Item) -> None:
        if item.kind == "trig":
            self._trig(item)
        elif item.kind == "op":
            (node,) = item.defines
            if not self._inline(node):
                self.names[node.serial] = self._operation(node)
        elif item.tile is not None and item.kind == "load":
            columns = lanes.load(self.w, item.tile, f"%in_{item.tile.array}")
            for n in item.defines:
                self.names[n.serial] = columns[n.args[1] - item.tile.start]
            for c, value in enumerate(columns, item.tile.start):
                if self.watch_inputs or (item.tile.array, c) not in self.live_inputs:
                    self.sum.append(value)
        elif item.tile is not None:
            tile = item.tile
            flat = self.outputs[tile.array]
            values = [self._value(x) for x in flat[tile.start : tile.start + tile.width]]
            lanes.store(self.w, tile, f"%out_{tile.array}", values, in_order=len(flat) > MATRIX)
            if not self.watch_inputs:
                self.sum += values

    def _value(self, x: Node | float) -> str:
        if not isinstance(x, Node):
            return self.w.constant(x)
        if x.serial not in self.names:
            if self._inline(x):
                self.names[x.serial] = self._operation(x)
            else:
                self.names[x.serial] = self.w.load(self._slot(self.slots[x.serial]))
        return self.names[x.serial]

    def _operation(self, node: Node) -> str:
        product = self._product(node)
        if product is not None:
            return self._multiply_add(node, product)
        args = [self._value(a) for a in node.args]
        if node.op in LIBRARY:
            return self._library(node.op, args)
        return self.w.let(SPELL[node.op].format(*args, t=self.w.type, m=self.w.mangled, b=self.w.mask), "v")

    def _multiply_add(self, node: Node, product: Node) -> str:
        """x y + z, x y - z or z - x y, rounded once."""
        a, b = node.args
        x, y = (self._value(p) for p in product.args)
        z = self._value(b if a is product else a)
        t = self.w.type
        if node.op == "sub" and a is product:
            z = self.w.let(f"fneg {t} {z}")
        elif node.op == "sub":
            y = self.w.let(f"fneg {t} {y}")
        return self.w.let(f"call {t} @llvm.fma.{self.w.mangled}({t} {x}, {t} {y}, {t} {z})", "v")

    def _library(self, op: str, args: Sequence[str]) -> str:
        w = self.w
        function = op if w.dtype == "float64" else f"{op}f"

        def call(values: Sequence[str]) -> str:
            return w.let(f"call {w.element} @{function}({', '.join(f'{w.element} {v}' for v in values)})", "v")

        if w.lanes == 1:
            return call(args)
        result = "poison"
        for lane in range(w.lanes):
            value = call([w.let(f"extractelement {w.type} {a}, i64 {lane}") for a in args])
            result = w.let(f"insertelement {w.type} {result}, {w.element} {value}, i64 {lane}", "v")
        return result

    def _trig(self, item: Item) -> None:
        """Arguments to the workspace, one call for all, results stay there until they are used."""
        w, ratio = self.w, self.trig_width // self.w.lanes
        count = -(-len(item.uses) // ratio)  # vectors of trig_width
        room = count * ratio
        base = -(-self.size // ratio) * ratio  # aligned for the vectors
        self.size = base + 3 * room
        for i in range(room):
            w.store(self._value(item.uses[i]) if i < len(item.uses) else "zeroinitializer", self._slot(base + i))
        x, s, c = (self._slot(base + room * j) for j in range(3))
        w.do(f"call void @sincos(ptr {x}, ptr {s}, ptr {c}, i64 {count})")
        index = {a.serial: i for i, a in enumerate(item.uses)}
        for n in item.defines:
            self.slots[n.serial] = base + room * (1 if n.op == "sin" else 2) + index[n.operands[0].serial]

    # -- the workspace

    def _slot(self, index: int) -> str:
        return self.w.at("%ws", index * self.w.align)

    def _keep(self, nodes: Sequence[Node]) -> None:
        for n in nodes:
            if n.serial in self.names:
                if not self.free:
                    self.free.append(self.size)
                    self.size += 1
                self.slots[n.serial] = self.free.pop()
                self.w.store(self.names[n.serial], self._slot(self.slots[n.serial]))

    def _flush(self) -> None:
        """Adds what the chunk watched to slot 0, as a tree: a chain of additions would be the longest path of all."""
        terms = self.sum
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            rest = terms[-1:] if len(terms) % 2 else []
            terms = [self.w.let(f"fadd {self.w.type} {a}, {b}") for a, b in pairs] + rest
        if terms:
            old = self.w.load("%ws")
            self.w.store(self.w.let(f"fadd {self.w.type} {old}, {terms[0]}"), "%ws")


def _uses(graph: Graph) -> dict[int, int]:
    """How often each node is used; being an output counts twice, for an output must exist and cannot be fused away."""
    uses: dict[int, int] = {n.serial: 0 for n in graph.nodes}
    for node in graph.nodes:
        for a in node.operands:
            uses[a.serial] += 1
    for array in graph.outputs.values():
        for x in array.flat:
            if isinstance(x, Node):
                uses[x.serial] += 2
    return uses
