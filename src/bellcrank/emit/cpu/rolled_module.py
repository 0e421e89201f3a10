"""Module of LLVM IR for a Recursion, or for a graph that calls some: `@one` and `@many` as in llvm.py.

They surround the loops of rolled_code.py, or the functions of routine.py. Arrays of a state have the layout that the
loops need. Rows of a batch are first transposed into lanes in the workspace, tile by tile, and the results back; that
is the only difference between the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from bellcrank.emit.cpu import lanes, llvm, sincos
from bellcrank.emit.cpu.lanes import Writer, library
from bellcrank.emit.cpu.plan import TILE, Tile
from bellcrank.emit.cpu.rolled_code import Rolled
from bellcrank.emit.cpu.routine import Routines, routines
from bellcrank.emit.cpu.waves import Waves
from bellcrank.graph import Graph, Recursion
from bellcrank.graph.coverage import Coverage
from bellcrank.quoting import comment, symbol

ABREAST = 16  # independent partial sums of the inputs


@dataclass
class Sized:
    """Workspace size and lanes of a function, as llvm.py needs them."""

    size: int
    w: Writer
    first: list[Any] = field(default_factory=list)


@dataclass
class _Calls:
    """The part of the interface of Rolled that is needed here, for a graph that calls others."""

    made: Routines
    w: Writer
    tag: str

    @property
    def size(self) -> int:
        return self.made.slots

    def text(self) -> str:
        return self.made.text


def _loops(r: Graph, lanes: int, width: int, dtype: str, tag: str) -> Rolled | _Calls:
    if isinstance(r, Recursion):
        return Rolled(r, lanes, width, dtype, tag)
    return _Calls(routines({tag: r}, lanes, width, dtype, prefix=f"{tag}_f"), Writer(lanes, dtype), tag)


def single(r: Graph, width: int, dtype: str) -> Rolled | Waves | _Calls:
    """Return the code of `r` for one state, with runs in parallel lanes if there are many.

    `width` is the number of lanes of a vector of `dtype`.
    """
    if isinstance(r, Recursion) and r.abreast:
        return Waves(r, width, dtype, "single")
    return _loops(r, 1, width, dtype, "single")


def source(r: Graph, width: int, dtype: str) -> str:
    """Return the module of `r`; `width` is the number of lanes of a vector of `dtype`."""
    if isinstance(r, Recursion):
        r.check_whole()
    made = single(r, width, dtype)
    parts = sum(len(g.cells) for g in (r, *r.calls) if isinstance(g, Recursion))
    kinds = f"{r.count().arithmetic} operations, {parts} kinds of parts"
    head = f"; {comment(r.name)}: {kinds}, {width} lanes of {dtype}"
    text = [
        head,
        sincos.definition(width, dtype),
        *library(made.w),
        made.text(),
        state(r, made),
        llvm.one(r, Sized(made.size, made.w)),  # type: ignore[arg-type]
        llvm.writable(),
    ]
    if isinstance(made, Waves):
        text.append(_rows(r))
    elif width > 1:
        block = _loops(r, width, width, dtype, "lanes")
        room = block.size + sum(math.prod(shape) for shape in (*r.inputs.values(), *r.shapes.values()))
        text += [block.text(), _block(r, block), llvm.many(r, Sized(room, block.w))]  # type: ignore[arg-type]
    return "\n".join(text)


def _rows(r: Graph) -> str:
    """Return @many that computes one state after the other, because the lanes are used within each."""
    names = llvm.arrays(r)
    given = ", ".join(f"ptr %{n}, i64 %stride_{n}" for n in names)
    return f"""define i64 @many(i64 %n, {given}) nounwind {{
  br label %some
{llvm.one_by_one(names)}}}"""


def state(r: Graph, loops: Rolled | Waves | _Calls) -> str:
    """Return @state, which runs the `loops` of `r` and checks the inputs."""
    args = ", ".join(f"ptr noalias %{n}" for n in ("ws", *llvm.arrays(r)))
    arrays = ", ".join(f"ptr %{n}" for n in llvm.arrays(r))
    return f"""{looked(r, loops.w)}
define internal i64 @state({args}) nounwind {{
  call void @{loops.tag}({args})
  %bad = call i64 @looked({arrays})
  ret i64 %bad
}}"""


def looked(r: Graph, w: Writer) -> str:
    """Return @looked, which checks that the inputs of `r` are finite, for states of the writer `w`.

    It adds them up in several independent sums, which are finite exactly if the inputs are.
    """
    wide = Writer(ABREAST, w.dtype)
    texts, before, total = [], "entry", wide.immediate(0.0)
    rest = w.immediate(0.0)
    for name, shape in r.inputs.items():
        array, whole, left = f"%in_{symbol(name)}", *divmod(math.prod(shape), ABREAST)
        if whole:
            text, before, total = _added(wide, array, whole, before, total, symbol(name), w.bytes)
            texts.append(text)
        if left:
            tag = f"rest.{symbol(name)}"
            texts.append(f"  %p.{tag} = getelementptr i8, ptr {array}, i64 {whole * wide.align}\n")
            text, before, rest = _added(w, f"%p.{tag}", left, before, rest, tag)
            texts.append(text)
    args = ", ".join(f"ptr %{n}" for n in llvm.arrays(r))
    reduce = f"llvm.vector.reduce.fadd.{wide.mangled}"
    return f"""declare {w.element} @{reduce}({w.element}, {wide.type})
define internal i64 @looked({args}) noinline nounwind {{
entry:
{"".join(texts)}  %sum = call reassoc {w.element} @{reduce}({w.element} {rest}, {wide.type} {total})
{_status(w, "%sum")}}}"""


def _added(w: Writer, array: str, size: int, before: str, total: str, tag: str, align: int = 0) -> tuple[str, str, str]:
    """Return text that adds the elements of an array to a sum, the label it ends in, and the name of the sum."""
    text = f"""  br label %sum.{tag}
sum.{tag}:
  %k.{tag} = phi i64 [0, %{before}], [%n.{tag}, %sum.{tag}]
  %s.{tag} = phi {w.type} [{total}, %{before}], [%t.{tag}, %sum.{tag}]
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


def _status(w: Writer, total: str) -> str:
    bits = f"i{w.lanes}"
    return f"""  %size = call {w.type} @llvm.fabs.{w.mangled}({w.type} {total})
  %bad = fcmp uge {w.type} %size, {w.immediate(float("inf"))}
  %bits = bitcast {w.mask} %bad to {bits}
  %any = icmp ne {bits} %bits, 0
  %status = zext i1 %any to i64
  ret i64 %status
"""


def _block(r: Graph, loops: Rolled | _Calls) -> str:
    """Return @block: rows to lanes, the loops, and lanes to rows."""
    w = loops.w
    names = llvm.arrays(r)
    args = ", ".join([f"ptr noalias %{n}" for n in ("ws", *names)] + [f"i64 %stride_{n}" for n in names])
    sizes = [math.prod(shape) for shape in (*r.inputs.values(), *r.shapes.values())]
    arrays = list(zip(names, sizes, strict=True))
    inputs, outputs = arrays[: len(r.inputs)], arrays[len(r.inputs) :]
    lines, packed, at = ["entry:"], [], loops.size
    for n, size in arrays:
        lines.append(f"  %packed_{n} = getelementptr i8, ptr %ws, i64 {at * w.align}")
        packed.append(f"ptr %packed_{n}")
        at += size
    before = "entry"
    for n, size in inputs:
        before = _transposed(w, lines, n, size, before, inwards=True)
    lines.append(f"  call void @{loops.tag}(ptr %ws, {', '.join(packed)})")
    coverage = Coverage(r.name, {n: (size,) for n, size in llvm.results(r).items()})
    for n, size in outputs:
        before = _transposed(w, lines, n, size, before, inwards=False)
        coverage.note(n, range(0, size))
    coverage.check()
    texts, total = [], w.immediate(0.0)
    for n, size in inputs:
        if size:
            text, before, total = _added(w, f"%packed_{n}", size, before, total, f"sum.{n}")
            texts.append(text)
    body = "\n".join(lines) + "\n" + "".join(texts) + _status(w, total)
    return f"define internal i64 @block({args}) nounwind alignstack({w.align}) {{\n{body}}}"


def _transposed(w: Writer, lines: list[str], n: str, size: int, before: str, inwards: bool) -> str:
    """Transpose an array, four columns at a time and then the rest; return the label that this ends in."""
    whole = size // TILE
    tag = f"turn.{n}"
    if whole:
        w.lines = []
        _tile(w, n, "%at." + n, "%to." + n, TILE, inwards)
        lines += [
            f"  br label %{tag}",
            f"{tag}:",
            f"  %c.{n} = phi i64 [0, %{before}], [%d.{n}, %{tag}]",
            f"  %a.{n} = mul i64 %c.{n}, {TILE * w.bytes}",
            f"  %b.{n} = mul i64 %c.{n}, {TILE * w.align}",
            f"  %at.{n} = getelementptr i8, ptr %{n}, i64 %a.{n}",
            f"  %to.{n} = getelementptr i8, ptr %packed_{n}, i64 %b.{n}",
            *(f"  {line}" for line in w.lines),
            f"  %d.{n} = add i64 %c.{n}, 1",
            f"  %m.{n} = icmp ult i64 %d.{n}, {whole}",
            f"  br i1 %m.{n}, label %{tag}, label %{tag}.rest",
            f"{tag}.rest:",
        ]
        before = f"{tag}.rest"
    if rest := size - whole * TILE:
        w.lines = []
        at, to = w.at(f"%{n}", whole * TILE * w.bytes), w.at(f"%packed_{n}", whole * TILE * w.align)
        _tile(w, n, at, to, rest, inwards)
        lines += [f"  {line}" for line in w.lines]
    return before


def _tile(w: Writer, n: str, rows: str, packed: str, width: int, inwards: bool) -> None:
    tile = Tile(n, 0, width)
    if inwards:
        for c, value in enumerate(lanes.load(w, tile, rows, f"%stride_{n}")):
            w.store(value, w.at(packed, c * w.align))
    else:
        values = [w.load(w.at(packed, c * w.align)) for c in range(width)]
        lanes.store(w, tile, rows, f"%stride_{n}", values)
