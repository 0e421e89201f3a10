"""Recursion with parallel runs (graph/waves.py) on a GPU: a thread, or a team, for every run of one state.

    phases(ws, whole, numbers, in..., out..., plan, begin, end, blocks, meeting)

executes some phases in sequence. Within a phase no run depends on another. Where a phase has many runs, all blocks take
part, with a grid barrier before the next; phases with few runs follow each other in the first block, where barriers are
cheap. What is too large for one thread, a join of two segments, is divided among the warps of a block (wave_team.py).
Tables are passed as arrays, because they may have as many rows as there are bodies.

Values that a thread keeps for later are interleaved so that neighbouring threads access neighbouring words: index order
(shape, place in the run, which, run); values that are passed on: (element of all channels, first or last place of a
run).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from bellcrank.emit.cuda.ptx import Arithmetic, ptx
from bellcrank.emit.cuda.wave_team import LANES, MEMBERS, TeamLoop, is_team_loop
from bellcrank.emit.llvm.lanes import LIBRARY_ARITY, Writer
from bellcrank.emit.llvm.loop_code import LoopCode
from bellcrank.emit.llvm.wave_functions import Waves
from bellcrank.errors import InputError
from bellcrank.graph.loops.runs import WaveLoop, WaveLoops, neighbours
from bellcrank.graph.loops.statements import Block, Element, Index, Procedure, Variable, block, index_of
from bellcrank.graph.recursion import Recursion
from bellcrank.graph.waves import ElidedRecursion, WaveCode, elide_copies
from bellcrank.quoting import comment
from bellcrank.scalar import cos, sin

Array = np.ndarray[Any, Any]
THREADS_PER_BLOCK = LANES * MEMBERS  # threads of a block, which is one team
PLAN_COLUMNS = 6  # integers of a wave in the plan
NO_BARRIER, BLOCK_BARRIER, GRID_BARRIER = range(3)  # barrier before a wave: none, of the block, of the grid
HEAD = """@shared = external addrspace(3) global [0 x i8], align 16
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier0()
declare void @llvm.nvvm.membar.gl()
"""
# Grid barrier: all blocks are resident, since there are no more of them than multiprocessors. meeting: the number of
# arrivals at all barriers so far, and the number of blocks that have finished; the last one resets both to zero.
GRID_BARRIER_TEXT = """\
define internal void @everybody(ptr %meeting, i32 %blocks, i32 %tid) noinline nounwind convergent {
  call void @llvm.nvvm.membar.gl()
  call void @llvm.nvvm.barrier0()
  %one = icmp eq i32 %tid, 0
  br i1 %one, label %come, label %go
come:
  %before = atomicrmw add ptr %meeting, i32 1 monotonic
  %met = udiv i32 %before, %blocks
  %next = add i32 %met, 1
  %all = mul i32 %next, %blocks
  br label %look
look:
  %now = load volatile i32, ptr %meeting, align 4
  %enough = icmp uge i32 %now, %all
  br i1 %enough, label %there, label %look
there:
  call void @llvm.nvvm.membar.gl()
  br label %go
go:
  call void @llvm.nvvm.barrier0()
  ret void
}
define internal void @over(ptr %meeting, i32 %blocks, i32 %tid) noinline nounwind {
  %one = icmp eq i32 %tid, 0
  br i1 %one, label %come, label %go
come:
  %ends = getelementptr i32, ptr %meeting, i64 1
  %before = atomicrmw add ptr %ends, i32 1 monotonic
  %after = add i32 %before, 1
  %last = icmp eq i32 %after, %blocks
  br i1 %last, label %reset, label %go
reset:
  store volatile i32 0, ptr %meeting, align 4
  store volatile i32 0, ptr %ends, align 4
  br label %go
go:
  ret void
}"""


class ThreadLoop(WaveLoop):
    """Statements of one run, for a thread: the sine and cosine of an angle are computed at once."""

    def blocks(self, j: int) -> list[Block]:
        """Return the operations of cell `j`."""
        (cell,) = super().blocks(j)
        angles = {k: Variable("angle") for k, x in enumerate(self.bodies[j].writes) if x.kind == "angle"}
        blocks = [replace(cell, writes=tuple((k, angles.get(k, to)) for k, to in cell.writes))]
        for k, angle in angles.items():
            x = self.bodies[j].writes[k]
            for kind, function in (("sine", sin), ("cosine", cos)):
                blocks.append(block(kind, function, (angle,), self.memory(x._replace(kind=kind), j)))
        return blocks


class ThreadLoops(WaveLoops):
    """Procedures that take a run; numbers of neighbouring runs are side by side, and those that runs pass on, too."""

    loop = ThreadLoop

    def __init__(self, thin: ElidedRecursion, shapes: Sequence[WaveCode]) -> None:
        self.offsets = thin.offsets
        super().__init__(thin.r, shapes, 1)

    def procedure(self, name: str, loop: WaveLoop) -> Procedure:
        """Return the procedure `name` that executes the `loop` of one run."""
        return Procedure(name, (self.bundle,), loop.statements())

    def widths(self, shape: WaveCode) -> dict[str, int]:
        """Return the numbers of each kind that a place of the `shape` keeps; angles themselves are not kept."""
        return super().widths(shape) | {"angle": 0}

    def run(self, shape: WaveCode) -> Index:
        """Return the number of the run of a `shape`."""
        return index_of(self.bundle)

    def beside(self, shape: WaveCode, width: int, index: Index) -> Index:
        """Return where number `index` of those of a run of `shape` lies in memory; each place has `width` of them."""
        return index.times(len(shape.runs)).plus(index_of(self.bundle))

    def slot(self, neighbour: str, place: Index, channel: int) -> Index:
        """Return the slot of what a `neighbour` of `place`, or with "" itself, sends through `channel`."""
        if neighbour != "parent" or not self.r.outwards[channel]:
            return super().slot(neighbour, place, channel)
        slots = self.slots[neighbours(self.r, neighbour)] + self._field_offsets(channel, self.offsets[:, channel])
        return self.lookup(f"parent{channel}", slots, place)

    def sent(self, neighbour: str, place: Index, channel: int, e: int) -> Element:
        """Return where element `e` lies that a `neighbour` of `place`, or with "" itself, sends through `channel`."""
        slot = self.slot(neighbour, place, channel)
        return Element(("sent", 0), slot.plus(self.field[channel, e] * self.slot_count))

    def _field_offsets(self, channel: int, steps: Array) -> Array:
        """Return workspace offsets of steps between fields, which must be equal for all elements wanted."""
        field = {e: f for (k, e), f in self.field.items() if k == channel}
        apart = {0: 0}
        for step in np.unique(steps[steps > 0]).tolist():
            distances = {field[e + step] - f for e, f in field.items() if e + step in field}
            if len(distances) != 1:
                raise InputError(
                    f"{self.r.name}: the values that bodies pass on differ in layout; a GPU cannot divide this work."
                )
            apart[step] = distances.pop()
        return self.slot_count * np.array([apart[step] for step in steps.tolist()])


class ThreadCode(LoopCode):
    """LLVM IR of a thread, whose tables are in the arrays %whole and %numbers."""

    def __init__(self, r: Recursion, loops: ThreadLoops, w: Writer, name: str) -> None:
        super().__init__(r, loops.program(), w, 1, name, {})
        arrays = [p.rpartition(" ")[2] for p in self.parameters.split(", ")]
        self.parameters = ", ".join(f"ptr {x}" for x in (arrays[0], "%whole", "%numbers", *arrays[1:]))
        ends = accumulate((x.size for x in loops.tables.values()), initial=0)
        self.table_offsets = dict(zip(loops.tables, ends, strict=False))
        self.constant_offsets = list(accumulate((x.size for x in r.tables), initial=0))
        self.sines: dict[str, tuple[str, str]] = {}  # sine and cosine of each value

    def sine(self, w: Writer, op: str, x: str) -> str:
        """Emit by `w` the sine or cosine, by `op`, of the value `x`; both are computed together."""
        if x not in self.sines:
            self.sines[x] = Arithmetic(w).sincos(x)
        return self.sines[x][op == "cos"]

    def table(self, name: str) -> str:
        """Return the address of the table of integers `name`."""
        return self.w.at("%whole", 4 * self.table_offsets[name])

    def constants(self, key: int) -> str:
        """Return the address of the table of constants `key`."""
        return self.w.at("%numbers", self.w.bytes * self.constant_offsets[key])


class ThreadWaves(Waves):
    """Code, tables and phases."""

    def __init__(self, r: Recursion, dtype: str = "float64") -> None:
        self.thin = elide_copies(r)
        super().__init__(self.thin.r, 1, dtype, "run")
        used = {n.op for cell in r.cells for n in cell.graph.nodes} & set(LIBRARY_ARITY)
        if used:
            raise InputError(f"{r.name} uses {', '.join(sorted(used))}, which rolled loops on a GPU do not support.")
        procedures = self.loops.procedures
        teams = {key for key in procedures if is_team_loop(self, *key)}
        self.teams = {key: TeamLoop(self.code, self.name(*key), f) for key, f in procedures.items() if key in teams}
        self.order = [*self.teams, *(key for key in procedures if key not in teams)]

    def make_loops(self) -> tuple[WaveLoops, LoopCode]:
        """Return the loops and their code."""
        loops = ThreadLoops(self.thin, self.shapes)
        return loops, ThreadCode(self.r, loops, self.w, self.tag)

    def text(self) -> str:
        """Return the module as LLVM IR."""
        head = f"; {comment(self.r.name)}: {self.r.count().arithmetic} operations, a thread or a team for each run\n"
        functions = []
        for key in self.order:
            f = self.loops.procedures[key]
            team = self.teams.get(key)
            functions.append(team.text() if team else self.code.function(self.name(*key), f.body, f.parameters))
        return head + "\n".join([HEAD, *functions, self._kernel()])

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        return max([0, *(loop.shared for loop in self.teams.values())])

    def tables(self) -> tuple[Array, Array]:
        """Return the integers, and the constants of all parts."""
        integers = [*self.loops.tables.values(), np.zeros(1)]
        constants = [*(t.ravel() for t in self.r.tables), np.zeros(1)]
        return np.concatenate(integers).astype(np.int32), np.concatenate(constants).astype(self.dtype)

    def plan(self) -> Array:
        """Return one row for each wave.

        Columns: the kind of barrier before it, function, first run, one past the last run, blocks that take part, and
        first block: waves of one phase run side by side.
        """
        rows: list[tuple[int, ...]] = []
        previous_blocks = 1
        for phase in self.phases():
            phase_waves = [
                (self.order.index((phase.channel, wave.shape)), wave.first, wave.last) for wave in phase.waves
            ]
            blocks = 1 if all(self._fits_one_block(*wave) for wave in phase_waves) else GRID_BARRIER
            wait = NO_BARRIER if not rows else BLOCK_BARRIER if blocks == previous_blocks == 1 else GRID_BARRIER
            first_block = 0
            for k, (loop, first, last) in enumerate(phase_waves):
                rows.append((NO_BARRIER if k else wait, loop, first, last, blocks, first_block))
                first_block += -(-(last - first) // LANES)
            previous_blocks = blocks
        return np.array(rows, np.int32)

    def _fits_one_block(self, loop: int, first: int, last: int) -> bool:
        """Return whether one block has enough threads for the wave."""
        return last - first <= (LANES if self.order[loop] in self.teams else THREADS_PER_BLOCK)

    def max_blocks(self) -> int:
        """Return the maximum number of blocks with any work."""
        rows = self.plan()
        wide = rows[rows[:, 4] != 1]
        return int(np.max(-(-(wide[:, 3] - wide[:, 2]) // LANES), initial=1))

    def _kernel(self) -> str:
        """Return the kernel, a loop over rows of the plan.

        In a plain loop the warps of all blocks take 32 runs each, the first warps of all blocks first; where teams
        compute, whole blocks do.
        """
        parameters = self.code.parameters
        cases = " ".join(f"i32 {k}, label %f{k}" for k in range(len(self.order)))
        team_arguments = {loop: ", i32 %warp, i32 %lane" if loop in self.teams else "" for loop in self.order}
        calls = "".join(
            f"f{k}:\n  call void @{self.name(*loop)}({parameters}, i64 %b{team_arguments[loop]})\n  br label %on\n"
            for k, loop in enumerate(self.order)
        )
        fields = "".join(
            f"  %p{k} = getelementptr i32, ptr %row, i64 {k}\n  %x{k} = load i32, ptr %p{k}, align 4\n"
            for k in range(PLAN_COLUMNS)
        )
        return f"""{GRID_BARRIER_TEXT}
define ptx_kernel void @phases({parameters}, ptr %plan, i32 %begin, i32 %end, i32 %blocks, ptr %meeting) \
nounwind "nvvm.maxntid"="{THREADS_PER_BLOCK}" {{
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %lane = and i32 %tid, {LANES - 1}
  %warp = lshr i32 %tid, {LANES.bit_length() - 1}
  br label %wave
wave:
  %w = phi i32 [%begin, %entry], [%w.next, %done]
  %at = mul i32 %w, {PLAN_COLUMNS}
  %at.64 = sext i32 %at to i64
  %row = getelementptr i32, ptr %plan, i64 %at.64
{fields}  %first.of.all = icmp eq i32 %w, %begin
  %how = select i1 %first.of.all, i32 {NO_BARRIER}, i32 %x0
  switch i32 %how, label %go [i32 {BLOCK_BARRIER}, label %wait.block i32 {GRID_BARRIER}, label %wait.all]
wait.block:
  call void @llvm.nvvm.barrier0()
  br label %go
wait.all:
  call void @everybody(ptr %meeting, i32 %blocks, i32 %tid)
  br label %go
go:
  %few = icmp eq i32 %x4, 1
  %among = select i1 %few, i32 1, i32 %blocks
  %with = icmp ult i32 %block, %among
  %together = icmp ult i32 %x1, {len(self.teams)}
  %taken = urem i32 %x5, %among
  %further = add i32 %block, %among
  %apart = sub i32 %further, %taken
  %mine = urem i32 %apart, %among
  %behind = mul i32 %warp, %among
  %of.warp = add i32 %behind, %mine
  %group.first = select i1 %together, i32 %mine, i32 %of.warp
  %warps = mul i32 %among, {THREADS_PER_BLOCK // LANES}
  %ahead = select i1 %together, i32 %among, i32 %warps
  %last = sub i32 %x3, 1
  br i1 %with, label %look, label %done
look:
  %group = phi i32 [%group.first, %go], [%group.next, %on]
  %b.group = mul i32 %group, {LANES}
  %b.start = add i32 %x2, %b.group
  %some = icmp slt i32 %b.start, %x3
  br i1 %some, label %take, label %done
take:
  %b.lane = add i32 %b.start, %lane
  %exists = icmp slt i32 %b.lane, %x3
  %b.32 = select i1 %exists, i32 %b.lane, i32 %last
  %b = sext i32 %b.32 to i64
  %go.on = or i1 %exists, %together
  br i1 %go.on, label %do, label %on
do:
  switch i32 %x1, label %on [{cases}]
{calls}on:
  %group.next = add i32 %group, %ahead
  br label %look
done:
  %w.next = add i32 %w, 1
  %more = icmp slt i32 %w.next, %end
  br i1 %more, label %wave, label %end.all
end.all:
  call void @over(ptr %meeting, i32 %blocks, i32 %tid)
  ret void
}}"""


@dataclass(frozen=True)
class WaveText:
    """PTX, tables and sizes of a recursion's kernel."""

    ptx: str
    whole: Array
    numbers: Array
    plan: Array
    blocks: int  # maximum number of blocks
    shared: int  # bytes of shared memory of a block
    room: int  # elements of the workspace


def wave_text(r: Recursion, dtype: str = "float64") -> WaveText:
    """Return the kernel of the recursion `r` in the type `dtype`."""
    thread_waves = ThreadWaves(r, dtype)
    text = ptx(thread_waves.text())
    return WaveText(
        text,
        *thread_waves.tables(),
        thread_waves.plan(),
        thread_waves.max_blocks(),
        thread_waves.shared,
        thread_waves.size,
    )
