"""One place of a recursion computed by a team: members are warps, whose lanes are runs (other loops: waves.py)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from bellcrank.emit.cuda.occupancy import TeamPlan
from bellcrank.emit.cuda.supersteps import divide_in_supersteps
from bellcrank.emit.cuda.thread_code import ThreadCode
from bellcrank.emit.cuda.thread_loop import ThreadLoop
from bellcrank.emit.cuda.units import Units
from bellcrank.graph import Node
from bellcrank.graph.cells import ANGLES_CHANNEL, CellOperand

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


class TeamLoop(ThreadLoop):
    """Function void @name(ws, tables, arrays, run, member, lane), called by all threads of a block together."""

    @cached_property
    def plan(self) -> TeamPlan:
        """Launch configuration of the team."""
        return TeamPlan(divide_in_supersteps(Units(self.bodies[0].graph), MEMBERS), self.w.bytes // 4, LANES, 1)

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return self.plan.shared_rows * LANES * self.w.bytes

    def text(self) -> str:
        """Return the function as LLVM IR."""
        w = self.w
        self.first, self.turn, self.round = "%b", "0", "0"
        self.begins = [self._load_integer(f"begins{self.shape_number}", "%b")]
        self.from_before = self._load_integer(self._source_table(), self.begins[0])
        self.to_others = self._load_integer("slot", self.begins[0])
        others = sorted({x.child for x in self.bodies[0].reads if x.kind == "child" and x.child})
        self.children = {k: self._load_integer(f"child{k}", self.begins[0]) for k in others}
        self._bundle_addresses()
        self.kept_here, self.angles_here = "%kept", "%angles"
        w.do(f"%parked = getelementptr {w.type}, ptr addrspace(3) @shared, i32 %lane")
        if self.plan.local_values:
            w.do(f"%far = alloca [{self.plan.local_values} x {w.type}], align 8")
        self.bundle_lines, w.lines = w.lines, []
        for member in range(MEMBERS):
            w.do(f"member{member}:")
            self._member(member)
            w.do("br label %done")
        cases = " ".join(f"i32 {k}, label %member{k}" for k in range(1, MEMBERS))
        meet = "call void @llvm.nvvm.barrier0()"  # the previous runs have read their mail
        lines = [*self.bundle_lines, meet, f"switch i32 %member, label %member0 [{cases}]", *w.lines, "done:"]
        return self._function_text([line if line.endswith(":") else f"  {line}" for line in lines])

    def _function_text(self, lines: list[str]) -> str:
        name = self.owner.name(self.channel, self.shape_number)
        head = f"define internal void @{name}({self.owner.parameters}, i64 %b, i32 %member, i32 %lane)"
        return "\n".join([f"{head} noinline nounwind convergent {{", "bundle:", *lines, "  ret void", "}"])

    def _member(self, member: int) -> None:
        w, body, plan = self.w, self.bodies[0], self.plan
        row, mailbox = f"[{LANES} x {w.type}]", plan.team.mailbox
        results = body.graph.outputs["y"]
        stores: dict[int, list[CellOperand]] = {}
        for x, place in zip(results, body.writes, strict=True):
            if isinstance(x, Node):
                stores.setdefault(x.serial, []).append(place)
        self.cached_addresses = {}  # SSA values of one member do not dominate the code of the next

        def mail(node: Node) -> str:
            return w.let(f"getelementptr {row}, ptr addrspace(3) %parked, i32 {mailbox[node.serial]}", "p")

        def read(node: Node) -> str:
            if node.op != "input":
                return w.let(f"load volatile {w.type}, ptr addrspace(3) {mail(node)}", "x")
            return self._load_input(body.reads[node.args[1]], 0)

        def write(node: Node, value: str) -> None:
            for place in stores.get(node.serial, ()):
                self._put(place, value)
            if node.serial in mailbox:
                w.do(f"store volatile {w.type} {value}, ptr addrspace(3) {mail(node)}")

        first = plan.team.mailbox_rows + sum(plan.shared_slots[:member])
        thread_code = ThreadCode(Units(body.graph), w, read, write, LANES, first, plan.shared_slots[member])
        thread_code.emit_steps(plan.spill_plans[member].steps)
        if not member:
            for x, place in zip(results, body.writes, strict=True):
                if not isinstance(x, Node) or x.op == "input":
                    self._put(place, thread_code.value(x))

    def _load_input(self, x: CellOperand, j: int) -> str:
        if self._is_carried(x):
            return self.w.load(self._handed_address(self.from_before, x.element))
        if x.kind == "child":
            return self.w.load(self._handed_address(self.children[x.child], x.element))
        return super()._load_input(x, j)

    def _put(self, place: CellOperand, value: str) -> None:
        w = self.w
        if place.kind == "handed":
            w.store(value, self._handed_address(self.to_others, place.element))
        else:
            w.store(value, w.at(self.kept_here, place.element * self.stride))
