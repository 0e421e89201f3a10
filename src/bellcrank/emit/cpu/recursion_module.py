"""Module of LLVM IR for a Recursion, or for a graph that calls some: `@one` and `@many` as in module_functions.py.

They surround the functions of subroutines.py. Arrays of a state have the layout that
the loops need. Rows of a batch are first transposed into lanes in the workspace, tile by tile, and the results back;
that is the only difference between the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bellcrank.emit.cpu import module_functions
from bellcrank.emit.llvm import lanes
from bellcrank.emit.llvm.lanes import Writer
from bellcrank.emit.llvm.scheduling import TILE_COLUMNS, Tile
from bellcrank.emit.llvm.subroutines import Routines, routines
from bellcrank.emit.llvm.wave_functions import Waves
from bellcrank.graph import Graph
from bellcrank.graph.graph import Coverage
from bellcrank.graph.recursion import has_parallel_runs, recursions
from bellcrank.quoting import symbol

PARALLEL_SUMS = 16  # independent partial sums of the inputs


@dataclass
class _RoutineCode:
    """The functions of a graph, with the interface of Waves."""

    routines: Routines
    w: Writer
    tag: str

    @property
    def size(self) -> int:
        return self.routines.slots

    def text(self) -> str:
        return self.routines.text


def _loop_code(r: Graph, lanes: int, width: int, dtype: str, tag: str) -> _RoutineCode:
    return _RoutineCode(routines({tag: r}, lanes, width, dtype, prefix=f"{tag}_f"), Writer(lanes, dtype), tag)


def scalar_code(r: Graph, width: int, dtype: str) -> Waves | _RoutineCode:
    """Return the code of `r` for one state, with runs in parallel lanes if there are many.

    `width` is the number of lanes of a vector of `dtype`.
    """
    if has_parallel_runs(r):
        return Waves(r, width, dtype, "single")
    return _loop_code(r, 1, width, dtype, "single")


def source(r: Graph, width: int, dtype: str) -> str:
    """Return the module of `r`; `width` is the number of lanes of a vector of `dtype`."""
    r.check_whole()
    code = scalar_code(r, width, dtype)
    parts = sum(len(g.cells) for g in recursions(r))
    title = f"{module_functions.operations_text(r)}, {parts} kinds of parts, {width} lanes of {dtype}"
    texts = [
        *module_functions.module_head(title, width, dtype),
        code.text(),
        checked_state_function(r, code),
        module_functions.state_function(r, code.size, code.w),
        module_functions.writable_global(),
    ]
    if isinstance(code, Waves):
        texts.append(_row_loop(r))
    elif width > 1:
        block = _loop_code(r, width, width, dtype, "lanes")
        room = block.size + sum(math.prod(shape) for shape in (*r.inputs.values(), *r.shapes.values()))
        texts += [block.text(), _block_function(r, block), module_functions.batch_function(r, room, block.w)]
    return "\n".join(texts)


def _row_loop(r: Graph) -> str:
    """Return @many that computes one state after the other, because the lanes are used within each."""
    names = module_functions.array_names(r)
    parameters = ", ".join(f"ptr %{n}, i64 %stride_{n}" for n in names)
    return f"""define i64 @many(i64 %n, {parameters}) nounwind {{
  br label %some
{module_functions.single_row_loop(names)}}}"""


def checked_state_function(r: Graph, loops: Waves | _RoutineCode) -> str:
    """Return @state, which runs the `loops` of `r` and checks the inputs."""
    args = ", ".join(f"ptr noalias %{n}" for n in ("ws", *module_functions.array_names(r)))
    arrays = ", ".join(f"ptr %{n}" for n in module_functions.array_names(r))
    return f"""{input_check(r, loops.w)}
define internal i64 @state({args}) nounwind {{
  call void @{loops.tag}({args})
  %bad = call i64 @looked({arrays})
  ret i64 %bad
}}"""


def input_check(r: Graph, w: Writer) -> str:
    """Return @looked, which checks that the inputs of `r` are finite, for states of the writer `w`.

    It adds them up in several independent sums, which are finite exactly if the inputs are.
    """
    wide = Writer(PARALLEL_SUMS, w.dtype)
    texts, label, wide_sum = [], "entry", wide.immediate(0.0)
    rest_sum = w.immediate(0.0)
    for name, shape in r.inputs.items():
        array, wide_count, rest_count = f"%in_{symbol(name)}", *divmod(math.prod(shape), PARALLEL_SUMS)
        if wide_count:
            text, label, wide_sum = _sum_loop(wide, array, wide_count, label, wide_sum, symbol(name), w.bytes)
            texts.append(text)
        if rest_count:
            tag = f"rest.{symbol(name)}"
            texts.append(f"  %p.{tag} = getelementptr i8, ptr {array}, i64 {wide_count * wide.align}\n")
            text, label, rest_sum = _sum_loop(w, f"%p.{tag}", rest_count, label, rest_sum, tag)
            texts.append(text)
    args = ", ".join(f"ptr %{n}" for n in module_functions.array_names(r))
    reduce = f"llvm.vector.reduce.fadd.{wide.mangled}"
    return f"""declare {w.element} @{reduce}({w.element}, {wide.type})
define internal i64 @looked({args}) noinline nounwind {{
entry:
{"".join(texts)}  %sum = call reassoc {w.element} @{reduce}({w.element} {rest_sum}, {wide.type} {wide_sum})
{_status_text(w, "%sum")}}}"""


def _sum_loop(
    w: Writer, array: str, size: int, entry_label: str, total: str, tag: str, align: int = 0
) -> tuple[str, str, str]:
    """Return text that adds the elements of an array to a sum, the label it ends in, and the name of the sum."""
    text = f"""  br label %sum.{tag}
sum.{tag}:
  %k.{tag} = phi i64 [0, %{entry_label}], [%n.{tag}, %sum.{tag}]
  %s.{tag} = phi {w.type} [{total}, %{entry_label}], [%t.{tag}, %sum.{tag}]
  %o.{tag} = mul i64 %k.{tag}, {w.align}
  %at.{tag} = getelementptr i8, ptr {array}, i64 %o.{tag}
  %x.{tag} = load {w.type}, ptr %at.{tag}, align {align or w.align}
  %t.{tag} = fadd {w.type} %s.{tag}, %x.{tag}
  %n.{tag} = add i64 %k.{tag}, 1
  %m.{tag} = icmp ult i64 %n.{tag}, {size}
  br i1 %m.{tag}, label %sum.{tag}, label %end.{tag}
end.{tag}:
"""
    return text, f"end.{tag}", f"%t.{tag}"


def _status_text(w: Writer, total: str) -> str:
    bits = f"i{w.lanes}"
    return f"""  %size = call {w.type} @llvm.fabs.{w.mangled}({w.type} {total})
  %bad = fcmp uge {w.type} %size, {w.immediate(float("inf"))}
  %bits = bitcast {w.mask} %bad to {bits}
  %any = icmp ne {bits} %bits, 0
  %status = zext i1 %any to i64
  ret i64 %status
"""


def _block_function(r: Graph, loops: _RoutineCode) -> str:
    """Return @block: rows to lanes, the loops, and lanes to rows."""
    w = loops.w
    names = module_functions.array_names(r)
    args = ", ".join([f"ptr noalias %{n}" for n in ("ws", *names)] + [f"i64 %stride_{n}" for n in names])
    sizes = [math.prod(shape) for shape in (*r.inputs.values(), *r.shapes.values())]
    arrays = list(zip(names, sizes, strict=True))
    inputs, outputs = arrays[: len(r.inputs)], arrays[len(r.inputs) :]
    lines, packed, slot = ["entry:"], [], loops.size
    for n, size in arrays:
        lines.append(f"  %packed_{n} = getelementptr i8, ptr %ws, i64 {slot * w.align}")
        packed.append(f"ptr %packed_{n}")
        slot += size
    label = "entry"
    for n, size in inputs:
        label = _transpose_array(w, lines, n, size, label, inwards=True)
    lines.append(f"  call void @{loops.tag}(ptr %ws, {', '.join(packed)})")
    coverage = Coverage(r.name, {n: (size,) for n, size in module_functions.output_sizes(r).items()})
    for n, size in outputs:
        label = _transpose_array(w, lines, n, size, label, inwards=False)
        coverage.note(n, range(0, size))
    coverage.check()
    texts, total = [], w.immediate(0.0)
    for n, size in inputs:
        if size:
            text, label, total = _sum_loop(w, f"%packed_{n}", size, label, total, f"sum.{n}")
            texts.append(text)
    body = "\n".join(lines) + "\n" + "".join(texts) + _status_text(w, total)
    return f"define internal i64 @block({args}) nounwind alignstack({w.align}) {{\n{body}}}"


def _transpose_array(w: Writer, lines: list[str], n: str, size: int, label: str, inwards: bool) -> str:
    """Transpose an array, four columns at a time and then the rest; return the label that this ends in."""
    tile_count = size // TILE_COLUMNS
    tag = f"turn.{n}"
    if tile_count:
        w.lines = []
        _transpose_tile(w, n, "%at." + n, "%to." + n, TILE_COLUMNS, inwards)
        lines += [
            f"  br label %{tag}",
            f"{tag}:",
            f"  %c.{n} = phi i64 [0, %{label}], [%d.{n}, %{tag}]",
            f"  %a.{n} = mul i64 %c.{n}, {TILE_COLUMNS * w.bytes}",
            f"  %b.{n} = mul i64 %c.{n}, {TILE_COLUMNS * w.align}",
            f"  %at.{n} = getelementptr i8, ptr %{n}, i64 %a.{n}",
            f"  %to.{n} = getelementptr i8, ptr %packed_{n}, i64 %b.{n}",
            *(f"  {line}" for line in w.lines),
            f"  %d.{n} = add i64 %c.{n}, 1",
            f"  %m.{n} = icmp ult i64 %d.{n}, {tile_count}",
            f"  br i1 %m.{n}, label %{tag}, label %{tag}.rest",
            f"{tag}.rest:",
        ]
        label = f"{tag}.rest"
    if rest_columns := size - tile_count * TILE_COLUMNS:
        w.lines = []
        array_address = w.at(f"%{n}", tile_count * TILE_COLUMNS * w.bytes)
        to = w.at(f"%packed_{n}", tile_count * TILE_COLUMNS * w.align)
        _transpose_tile(w, n, array_address, to, rest_columns, inwards)
        lines += [f"  {line}" for line in w.lines]
    return label


def _transpose_tile(w: Writer, n: str, rows: str, packed: str, width: int, inwards: bool) -> None:
    tile = Tile(n, 0, width)
    if inwards:
        for c, value in enumerate(lanes.load_tile(w, tile, rows, f"%stride_{n}")):
            w.store(value, w.at(packed, c * w.align))
    else:
        values = [w.load(w.at(packed, c * w.align)) for c in range(width)]
        lanes.store_tile(w, tile, rows, f"%stride_{n}", values)
