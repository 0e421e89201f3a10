"""One place of a recursion computed by a team: members are warps, whose lanes are runs (other loops: waves.py)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bellcrank.emit.cuda.occupancy import TeamPlan
from bellcrank.emit.cuda.supersteps import divide_in_supersteps
from bellcrank.emit.cuda.thread_code import ThreadCode
from bellcrank.emit.cuda.units import Units
from bellcrank.emit.llvm.loop_code import LoopCode
from bellcrank.graph import Node
from bellcrank.graph.cells import ANGLES_CHANNEL
from bellcrank.graph.loops.statements import Block, Element, Procedure

if TYPE_CHECKING:
    from bellcrank.emit.cuda.waves import ThreadWaves

LANES = 32  # lanes of a warp
MEMBERS = 8  # members of a team
MIN_TEAM_OPERATIONS = 400  # operations from which a team is faster


def is_team_loop(all_of: ThreadWaves, channel: int, shape: int) -> bool:
    """Return whether a team computes this loop: a large body, executed once, with plain accesses only.

    Parameters
    ----------
    all_of
        Recursion with its loops.
    channel
        Channel of the loop.
    shape
        Index of the loop's shape.
    """
    wave_shape = all_of.shapes[shape]
    if channel == ANGLES_CHANNEL or wave_shape.places != 1:
        return False
    body = all_of.r.cell_loops[wave_shape.cells[0]].bodies[channel]
    return len(body.graph.nodes) >= MIN_TEAM_OPERATIONS and {x.kind for x in body.writes} <= {"handed", "kept"}


class TeamLoop:
    """Function void @name(ws, tables, arrays, run, member, lane), called by all threads of a block together."""

    def __init__(self, code: LoopCode, name: str, procedure: Procedure) -> None:
        """Divide a procedure, which consists of one block, among the members.

        Parameters
        ----------
        code
            Code of all procedures.
        name
            Name of the function.
        procedure
            The procedure.
        """
        (block,), (run,) = procedure.body, procedure.parameters
        assert isinstance(block, Block)
        self.code, self.name, self.w, self.block, self.run = code, name, code.w, block, run

    @cached_property
    def plan(self) -> TeamPlan:
        """Launch configuration of the team."""
        return TeamPlan(divide_in_supersteps(Units(self.block.graph), MEMBERS), self.w.bytes // 4, LANES, 1)

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return self.plan.shared_rows * LANES * self.w.bytes

    def text(self) -> str:
        """Return the function as LLVM IR."""
        w, code = self.w, self.code
        code.begin_function({self.run: "%b"})
        code.find_entries((self.block,))
        w.do(f"%parked = getelementptr {w.type}, ptr addrspace(3) @shared, i32 %lane")
        if self.plan.local_values:
            w.do(f"%far = alloca [{self.plan.local_values} x {w.type}], align 8")
        w.do("call void @llvm.nvvm.barrier0()")  # the previous runs have read their mail
        cases = " ".join(f"i32 {k}, label %member{k}" for k in range(1, MEMBERS))
        w.do(f"switch i32 %member, label %member0 [{cases}]")
        known = code.known
        for member in range(MEMBERS):
            code.known = dict(known)  # SSA values of one member do not dominate the code of the next
            w.do(f"member{member}:")
            self._member(member)
            w.do("br label %done")
        lines = [line if line.endswith(":") else f"  {line}" for line in (*w.lines, "done:")]
        head = f"define internal void @{self.name}({code.parameters}, i64 %b, i32 %member, i32 %lane)"
        return "\n".join([f"{head} noinline nounwind convergent {{", "bundle:", *lines, "  ret void", "}"])

    def _member(self, member: int) -> None:
        w, block, plan = self.w, self.block, self.plan
        row, mailbox = f"[{LANES} x {w.type}]", plan.team.mailbox
        results = list(block.graph.outputs["y"].flat)
        places = [(results[k], to) for k, to in block.writes if isinstance(to, Element)]
        stores: dict[int, list[Element]] = {}
        for x, place in places:
            if isinstance(x, Node):
                stores.setdefault(x.serial, []).append(place)

        def mail(node: Node) -> str:
            return w.let(f"getelementptr {row}, ptr addrspace(3) %parked, i32 {mailbox[node.serial]}", "p")

        def read(node: Node) -> str:
            if node.op != "input":
                return w.let(f"load volatile {w.type}, ptr addrspace(3) {mail(node)}", "x")
            return self.code.read(block.reads[node.args[1]], w)

        def write(node: Node, value: str) -> None:
            for place in stores.get(node.serial, ()):
                self.code.write(value, place, w)
            if node.serial in mailbox:
                w.do(f"store volatile {w.type} {value}, ptr addrspace(3) {mail(node)}")

        first = plan.team.mailbox_rows + sum(plan.shared_slots[:member])
        thread_code = ThreadCode(Units(block.graph), w, read, write, LANES, first, plan.shared_slots[member])
        thread_code.emit_steps(plan.spill_plans[member].steps)
        if not member:
            for x, place in places:
                if not isinstance(x, Node) or x.op == "input":
                    self.code.write(thread_code.value(x), place, w)
