"""Large mechanisms on a GPU: threads with rolled loops, and their kernel for a batch of states.

The functions of a thread are those of emit/llvm/subroutines.py for one lane: an element of an array or of the workspace
is one value of each of 32 states, contiguous, so that the accesses of a warp are coalesced. A block is one warp, with a
workspace behind that of the previous block. There are as many blocks as can be resident at once, and each processes one
group of 32 states after another.

    many(i64 n, (ptr in, i32 row, i32 column)..., (ptr out, i32 row, i32 column)..., ptr workspace, i64 blocks)

The kernel for a batch gets arrays as straight-line code does (array_access.py), with strides in elements from row to
row and from column to column. A thread copies its state to the workspace, and the result back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from bellcrank.emit.cuda.ptx import Arithmetic, ThreadWriter, disable_unrolling, ptx
from bellcrank.emit.llvm.lanes import indented
from bellcrank.emit.llvm.subroutines import routines
from bellcrank.graph import Graph
from bellcrank.quoting import comment, symbol

LANES = 32
HEAD = """declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
"""


class LaneWriter(ThreadWriter):
    """Writer for one thread whose values are interleaved with those of 31 others."""

    def __init__(self, lanes: int, dtype: str) -> None:
        super().__init__(dtype, scarce=True)
        assert lanes == 1
        self.align = LANES * self.bytes  # bytes from one element to the next

    def function(self, op: str, args: Sequence[str]) -> str:
        """Emit the elementary function `op` of the operands `args` and return its value."""
        arithmetic = Arithmetic(self)
        return arithmetic.sincos(*args)[op == "cos"] if op in ("sin", "cos") else arithmetic.op(op, *args)


def sincos_function(dtype: str) -> str:
    """Return the function @sincos that loops call: sines and cosines of `count` angles, for the type `dtype`."""
    w = LaneWriter(1, dtype)
    offset = w.let(f"mul i64 %k, {w.align}")
    x, *results = (w.let(f"getelementptr i8, ptr %{to}, i64 {offset}", "p") for to in ("x", "s", "c"))
    for value, to in zip(Arithmetic(w).sincos(w.load(x)), results, strict=True):
        w.store(value, to)
    return _loop_function("sincos", "ptr %x, ptr %s, ptr %c, i64 %count", w)


def copy_function(dtype: str) -> str:
    """Return the function @copied for the type `dtype`: copy `count` numbers between arrays with given byte strides."""
    w = LaneWriter(1, dtype)
    source_address, to = (
        w.let(f"getelementptr i8, ptr %{x}, i64 {w.let(f'mul i64 %k, %{x}.step')}", "p") for x in ("from", "to")
    )
    w.store(w.load(source_address), to)
    return _loop_function("copied", "ptr %to, i64 %to.step, ptr %from, i64 %from.step, i64 %count", w)


def lane_module(head: str, dtype: str, *parts: str) -> str:
    """Return the module of `parts`, with the functions @sincos and @copied for `dtype`, after the comment `head`."""
    return "\n".join([head + HEAD, sincos_function(dtype), copy_function(dtype), *parts])


def lane_kernel(name: str, parameters: str, workspace_arrays: Mapping[str, int], w: LaneWriter, body: str) -> str:
    """Return the kernel @name(i64 n, parameters, ptr workspace, i64 blocks).

    Parameters
    ----------
    name
        Name of the kernel.
    parameters
        Parameters of its own, as LLVM IR.
    workspace_arrays
        Arrays of the thread in the workspace: sizes in elements by name.
    w
        Writer, for the type of the numbers.
    body
        Code from label begin to a jump to next, executed for each %state below n.
    """
    starts = accumulate(workspace_arrays.values(), initial=0)
    array_pointers = "".join(
        f"  %{array} = getelementptr i8, ptr %mine, i64 {start * w.align}\n"
        for array, start in zip(workspace_arrays, starts, strict=False)
    )
    return f"""define ptx_kernel void @{name}(i64 %n, {parameters}, ptr %workspace, i64 %blocks) nounwind \
"nvvm.maxntid"="{LANES}" {{
entry:
  %tid.32 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block.32 = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %tid = zext i32 %tid.32 to i64
  %block = zext i32 %block.32 to i64
  %lane = mul i64 %tid, {w.bytes}
  %before = mul i64 %block, {sum(workspace_arrays.values()) * w.align}
  %place = add i64 %before, %lane
  %mine = getelementptr i8, ptr %workspace, i64 %place
{array_pointers}  br label %group
group:
  %g = phi i64 [%block, %entry], [%g.next, %next]
  %first = mul i64 %g, {LANES}
  %state = add i64 %first, %tid
  %exists = icmp ult i64 %state, %n
  br i1 %exists, label %begin, label %done
begin:
{body}next:
  %g.next = add i64 %g, %blocks
  br label %group
done:
  ret void
}}"""


def _loop_function(name: str, parameters: str, w: LaneWriter) -> str:
    """Return a function whose lines are executed for every %k below %count."""
    return f"""define internal void @{name}({parameters}) noinline nounwind {{
entry:
  %any = icmp ne i64 %count, 0
  br i1 %any, label %turn, label %done
turn:
  %k = phi i64 [0, %entry], [%next, %turn]
{indented(w.lines)}  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %turn, label %done
done:
  ret void
}}"""


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
    head = f"; {comment(graph.name)}: {graph.count().arithmetic} operations, a thread for each state\n"
    kernel = lane_kernel("many", arrays, workspace_arrays, w, indented(lines))
    text = lane_module(head, dtype, state_routines.text, kernel)
    return StateLoopCode(disable_unrolling(ptx(text)), sum(workspace_arrays.values()))


def _locate_state(a: str, w: LaneWriter) -> list[str]:
    """Return code for the address of the state in an array, and the bytes from one of its elements to the next."""
    return [
        f"%wide.{a} = zext i32 %row.{a} to i64",
        f"%offset.{a} = mul i64 %state, %wide.{a}",
        f"%at.{a} = getelementptr {w.type}, ptr %all.{a}, i64 %offset.{a}",
        f"%apart.{a} = zext i32 %column.{a} to i64",
        f"%step.{a} = mul i64 %apart.{a}, {w.bytes}",
    ]
