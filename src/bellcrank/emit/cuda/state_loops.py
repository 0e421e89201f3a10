"""Code of a batch of large mechanisms on a GPU: every thread computes one state with rolled loops over link classes.

    many(i64 n, (ptr in, i32 row, i32 column)..., (ptr out, i32 row, i32 column)..., ptr workspace, i64 blocks)

Arrays are passed as to straight-line code (array_access.py), with strides in elements from row to row and from column
to column. A thread copies its state to the workspace, where 32 states are interleaved (lane_code.py), and the result
back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bellcrank.emit.cuda.lane_code import HEAD, LaneWriter, copy_function, lane_kernel, sincos_function
from bellcrank.emit.cuda.ptx import disable_unrolling, ptx
from bellcrank.emit.llvm.subroutines import routines
from bellcrank.graph import Graph
from bellcrank.quoting import comment, symbol


@dataclass(frozen=True)
class StateLoopCode:
    """PTX and workspace size of a kernel with rolled loops."""

    ptx: str
    room: int  # elements of a state in the workspace


def state_loop_code(graph: Graph, dtype: str = "float64") -> StateLoopCode:
    """Return the code of `graph` with rolled loops, for the type `dtype`."""
    graph.check_whole()
    state_routines, w = routines({"state": graph}, 1, 1, dtype, writer=LaneWriter), LaneWriter(1, dtype)
    inputs = {f"in_{symbol(name)}": math.prod(shape) for name, shape in graph.inputs.items()}
    outputs = {f"out_{symbol(name)}": math.prod(shape) for name, shape in graph.shapes.items()}
    workspace_arrays = {**inputs, **outputs, "ws": state_routines.slots}
    arrays = ", ".join(f"ptr %all.{a}, i32 %row.{a}, i32 %column.{a}" for a in (*inputs, *outputs))
    call_arguments = ", ".join(f"ptr %{a}" for a in ("ws", *inputs, *outputs))
    global_operands = "ptr %at.{0}, i64 %step.{0}"
    lines = [
        *(line for a in (*inputs, *outputs) for line in _locate_state(a, w)),
        *(
            f"call void @copied(ptr %{a}, i64 {w.align}, {global_operands.format(a)}, i64 {n})"
            for a, n in inputs.items()
        ),
        f"call void @{state_routines.names['state']}({call_arguments})",
        *(
            f"call void @copied({global_operands.format(a)}, ptr %{a}, i64 {w.align}, i64 {n})"
            for a, n in outputs.items()
        ),
        "br label %next",
    ]
    body = "".join(f"  {line}\n" for line in lines)
    head = f"; {comment(graph.name)}: {graph.count().arithmetic} operations, a thread for each state\n"
    parts = [
        head + HEAD,
        sincos_function(dtype),
        copy_function(dtype),
        state_routines.text,
        lane_kernel("many", arrays, workspace_arrays, w, body),
    ]
    return StateLoopCode(disable_unrolling(ptx("\n".join(parts))), sum(workspace_arrays.values()))


def _locate_state(a: str, w: LaneWriter) -> list[str]:
    """Return code for the address of the state in an array, and the bytes from one of its elements to the next."""
    return [
        f"%wide.{a} = zext i32 %row.{a} to i64",
        f"%offset.{a} = mul i64 %state, %wide.{a}",
        f"%at.{a} = getelementptr {w.type}, ptr %all.{a}, i64 %offset.{a}",
        f"%apart.{a} = zext i32 %column.{a} to i64",
        f"%step.{a} = mul i64 %apart.{a}, {w.bytes}",
    ]
