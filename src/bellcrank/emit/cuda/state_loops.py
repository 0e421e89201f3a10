"""Code of a batch of large mechanisms on a GPU: every thread computes one state with rolled loops over link classes.

    many(i64 n, (ptr in, i32 row, i32 column)..., (ptr out, i32 row, i32 column)..., ptr workspace, i64 blocks)

Arrays are passed as to straight-line code (access.py), with strides in elements from row to row and from column to
column. A thread copies its state to the workspace, where 32 states are interleaved (lane_text.py), and the result back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bellcrank.emit.cpu.routine import routines
from bellcrank.emit.cuda.lane_text import HEAD, LaneWriter, copied, kernel, turned
from bellcrank.emit.cuda.ptx import ptx, rolled
from bellcrank.graph import Graph, Recursion
from bellcrank.quoting import comment, symbol


@dataclass(frozen=True)
class LoopText:
    """PTX and workspace size of a kernel with rolled loops."""

    ptx: str
    room: int  # elements of a state in the workspace


def looped(graph: Graph, dtype: str = "float64") -> LoopText:
    """Return the code of `graph` with rolled loops, for the type `dtype`."""
    if isinstance(graph, Recursion):
        graph.check_whole()
    made, w = routines({"state": graph}, 1, 1, dtype, writer=LaneWriter), LaneWriter(1, dtype)
    inputs = {f"in_{symbol(name)}": math.prod(shape) for name, shape in graph.inputs.items()}
    outputs = {f"out_{symbol(name)}": math.prod(shape) for name, shape in graph.shapes.items()}
    own = {**inputs, **outputs, "ws": made.slots}
    arrays = ", ".join(f"ptr %all.{a}, i32 %row.{a}, i32 %column.{a}" for a in (*inputs, *outputs))
    given = ", ".join(f"ptr %{a}" for a in ("ws", *inputs, *outputs))
    there = "ptr %at.{0}, i64 %step.{0}"
    lines = [
        *(line for a in (*inputs, *outputs) for line in _place(a, w)),
        *(f"call void @copied(ptr %{a}, i64 {w.align}, {there.format(a)}, i64 {n})" for a, n in inputs.items()),
        f"call void @{made.names['state']}({given})",
        *(f"call void @copied({there.format(a)}, ptr %{a}, i64 {w.align}, i64 {n})" for a, n in outputs.items()),
        "br label %next",
    ]
    body = "".join(f"  {line}\n" for line in lines)
    head = f"; {comment(graph.name)}: {graph.count().arithmetic} operations, a thread for each state\n"
    parts = [head + HEAD, turned(dtype), copied(dtype), made.text, kernel("many", arrays, own, w, body)]
    return LoopText(rolled(ptx("\n".join(parts))), sum(own.values()))


def _place(a: str, w: LaneWriter) -> list[str]:
    """Return code for the address of the state in an array, and the bytes from one of its elements to the next."""
    return [
        f"%wide.{a} = zext i32 %row.{a} to i64",
        f"%offset.{a} = mul i64 %state, %wide.{a}",
        f"%at.{a} = getelementptr {w.type}, ptr %all.{a}, i64 %offset.{a}",
        f"%apart.{a} = zext i32 %column.{a} to i64",
        f"%step.{a} = mul i64 %apart.{a}, {w.bytes}",
    ]
