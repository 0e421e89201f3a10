"""Graph to a module of LLVM IR text: `@one` for a state and `@many` for a batch in lanes.

    i64 @one(ptr in..., ptr out...)                                        0, or 1 when an input is not finite
    i64 @many(i64 n, ptr in, i64 stride, ..., ptr out, i64 stride, ...)    n rows; strides in bytes from row to row

Both come from the same speller, with one lane and with as many as the processor has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bellcrank.emit import sincos
from bellcrank.emit.order import order
from bellcrank.emit.plan import chunks, items
from bellcrank.emit.spell import LIBRARY, Speller
from bellcrank.emit.writer import Writer
from bellcrank.graph import Graph

CHUNK = 1500  # items in a function: larger ones compile slower and run no faster


def source(graph: Graph, width: int, dtype: str = "float64", chunk: int = CHUNK) -> str:
    """The whole module, but for the Python entry, which emit/pycall.py adds."""
    pieces = chunks(items(graph, order(graph)), chunk)
    state, block = Speller(graph, 1, width, dtype), Speller(graph, width, width, dtype)
    parts = [
        f"; {graph.name}: {graph.count().arithmetic} operations, {width} lanes of {dtype}",
        sincos.definition(width, dtype),
        *_library(state.w),
        state.function("state", pieces),
        block.function("block", pieces),
        _one(graph, state),
        _many(graph, block),
        "@writable = global i64 0 ; llvmlite's memory manager aborts on a module that has nothing to write to",
    ]
    return "\n".join(parts)


def _library(w: Writer) -> list[str]:
    suffix = "" if w.dtype == "float64" else "f"
    return [f"declare {w.element} @{name}{suffix}({', '.join([w.element] * n)})" for name, n in LIBRARY.items()]


def _arrays(graph: Graph) -> tuple[list[str], list[int]]:
    """Names and sizes of all arrays, inputs first."""
    names = [f"in_{n}" for n in graph.inputs] + [f"out_{n}" for n in graph.outputs]
    shapes = [*graph.inputs.values(), *(a.shape for a in graph.outputs.values())]
    return names, [math.prod(s) for s in shapes]


def _one(graph: Graph, state: Speller) -> str:
    names, _ = _arrays(graph)
    args = ", ".join(f"ptr %{n}" for n in names)
    return f"""define i64 @one({args}) nounwind {{
  %ws = alloca [{state.size} x {state.w.type}], align 64
  %bad = call i1 @state(ptr %ws, {args})
  %status = zext i1 %bad to i64
  ret i64 %status
}}"""


def _many(graph: Graph, block: Speller) -> str:
    """Whole blocks in a loop. The rest is copied, its last row repeated, and goes through the same block."""
    w = block.w
    names, sizes = _arrays(graph)
    indexed = list(enumerate(names))
    inputs, outputs = indexed[: len(graph.inputs)], indexed[len(graph.inputs) :]
    bits = f"i{w.lanes}"

    def call(pointers: Sequence[str], strides: Sequence[str]) -> str:
        steps = [] if w.lanes == 1 else [f"i64 {s}" for s in strides]
        return f"call {w.mask} @block({', '.join(['ptr %ws', *(f'ptr {p}' for p in pointers), *steps])})"

    def status(result: str, mask: str, before: str) -> str:
        return f"""  {result}.bits = bitcast {w.mask} {mask} to {bits}
  {result}.any = icmp ne {bits} {result}.bits, 0
  {result}.one = zext i1 {result}.any to i64
  {result} = or i64 {before}, {result}.one"""

    def copy(i: int, n: str, row: str, place: str, inwards: bool) -> str:
        """Row `row` of the user's array to or from place `place` of the copy."""
        size = sizes[i] * w.bytes
        to, source = (f"%copy{i}.at", f"%user{i}.at") if inwards else (f"%user{i}.back", f"%copy{i}.back")
        at = "at" if inwards else "back"
        return f"""  %user{i}.{at}o = mul i64 {row}, %stride_{n}
  %user{i}.{at} = getelementptr i8, ptr %{n}, i64 %user{i}.{at}o
  %copy{i}.{at}o = mul i64 {place}, {size}
  %copy{i}.{at} = getelementptr i8, ptr %copy{i}, i64 %copy{i}.{at}o
  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)"""

    offsets = "\n".join(
        f"  %o{i} = mul i64 %row, %stride_{n}\n  %p{i} = getelementptr i8, ptr %{n}, i64 %o{i}" for i, n in indexed
    )
    copies = "\n".join(
        f"  %copy{i} = alloca [{w.lanes * max(1, sizes[i])} x {w.element}], align 64" for i, _ in indexed
    )
    return f"""define i64 @many(i64 %n, {", ".join(f"ptr %{n}, i64 %stride_{n}" for n in names)}) nounwind {{
  %ws = alloca [{block.size} x {w.type}], align 64
{copies}
  %whole = and i64 %n, {-w.lanes}
  %any = icmp ne i64 %whole, 0
  br i1 %any, label %loop, label %after
loop:
  %row = phi i64 [0, %0], [%next, %loop]
  %seen = phi i64 [0, %0], [%status, %loop]
{offsets}
  %bad = {call([f"%p{i}" for i, _ in indexed], [f"%stride_{n}" for n in names])}
{status("%status", "%bad", "%seen")}
  %next = add i64 %row, {w.lanes}
  %more = icmp ult i64 %next, %whole
  br i1 %more, label %loop, label %after
after:
  %so_far = phi i64 [0, %0], [%status, %loop]
  %left = sub i64 %n, %whole
  %last = sub i64 %left, 1
  %tail = icmp ne i64 %left, 0
  br i1 %tail, label %fill, label %done
fill:
  %k = phi i64 [0, %after], [%k.next, %fill]
  %inside = icmp ult i64 %k, %left
  %from = select i1 %inside, i64 %k, i64 %last
  %from.row = add i64 %whole, %from
{chr(10).join(copy(i, n, "%from.row", "%k", True) for i, n in inputs)}
  %k.next = add i64 %k, 1
  %filling = icmp ult i64 %k.next, {w.lanes}
  br i1 %filling, label %fill, label %compute
compute:
  %tail.bad = {call([f"%copy{i}" for i, _ in indexed], [str(size * w.bytes) for size in sizes])}
{status("%final", "%tail.bad", "%so_far")}
  br label %empty
empty:
  %m = phi i64 [0, %compute], [%m.next, %empty]
  %to.row = add i64 %whole, %m
{chr(10).join(copy(i, n, "%to.row", "%m", False) for i, n in outputs)}
  %m.next = add i64 %m, 1
  %emptying = icmp ult i64 %m.next, %left
  br i1 %emptying, label %empty, label %done
done:
  %result = phi i64 [%so_far, %after], [%final, %empty]
  ret i64 %result
}}"""
