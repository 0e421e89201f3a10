"""One place of a recursion computed by a team: members are warps, whose lanes are runs (other loops: waves.py).

Such a computation, for example a join of two segments (products of six-by-six matrices), has no branches to distribute
as in team.py. It is divided in supersteps between barriers. Within a superstep a member computes what depends on
earlier supersteps and on its own results; a unit that needs results of two members of the same superstep waits for the
next. Units on the longest path go first, to the member with the least load and most of the operands.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from bellcrank.emit.cuda.occupancy import TeamPlan
from bellcrank.emit.cuda.register_pressure import hoist_loads
from bellcrank.emit.cuda.team import BARRIER_COST, Team, work
from bellcrank.emit.cuda.thread_code import BARRIER, Unit, Units, emit_member
from bellcrank.emit.llvm.lanes import indented
from bellcrank.emit.llvm.loop_code import LoopCode
from bellcrank.graph.cells import ANGLES_CHANNEL
from bellcrank.graph.loops.statements import Block, Element, Procedure

if TYPE_CHECKING:
    from bellcrank.emit.cuda.waves import ThreadWaves

STEP_LENGTHS = (24, 32, 48, 64, 96)  # candidate lengths of a superstep, in instructions
LOCALITY_WEIGHT = 3.0  # weight of a unit's cost against a member's load: prefers members that have its operands
LANES = 32  # lanes of a warp
MEMBERS = 8  # members of a team
MIN_TEAM_OPERATIONS = 400  # operations from which a team is faster


def divide_in_supersteps(units: Units, members: int) -> Team:
    """Return the division of `units` among `members` with the least predicted time."""
    divisions = [_SuperstepDivision(units, members, length) for length in STEP_LENGTHS]
    streams = min(divisions, key=lambda division: division.cost).streams
    return Team([hoist_loads(stream) for stream in streams])


class _SuperstepDivision:
    """Division for one length of supersteps."""

    def __init__(self, units: Units, members: int, length: float) -> None:
        self.members, self.length, self.cost = members, length, 0.0
        self.streams: list[list[Unit]] = [[] for _ in range(members)]
        self.available: list[set[int]] = [set() for _ in range(members)]  # values that each member has read or computed
        self.maker = {serial: unit.serial for unit in units.all for serial in unit.defined_serials}
        self.users: dict[int, list[Unit]] = {}
        self.pending: dict[int, int] = {}
        for unit in units.all:
            predecessors = self._predecessors(unit)
            self.pending[unit.serial] = len(predecessors)
            for serial in predecessors:
                self.users.setdefault(serial, []).append(unit)
        self.path_length = _critical_paths(units.all, self.users)
        waiting = [unit for unit in units.all if not self.pending[unit.serial]]
        while waiting:
            waiting = self._step(waiting)
            if waiting:
                for stream in self.streams:
                    stream.append(BARRIER)

    def _predecessors(self, unit: Unit) -> set[int]:
        return {self.maker[serial] for serial in unit.used_serials if serial in self.maker}

    def _step(self, units: Sequence[Unit]) -> list[Unit]:
        """Distribute as much as fits into one superstep; return the remaining units."""
        queue = [(-self.path_length[unit.serial], unit.serial, unit) for unit in units]
        heapq.heapify(queue)
        load, member_of, left = [0.0] * self.members, dict[int, int](), list[Unit]()
        while queue:
            unit = heapq.heappop(queue)[2]
            owners = {member_of[serial] for serial in self._predecessors(unit) if serial in member_of}
            candidates = owners or range(self.members)
            member = min(candidates, key=lambda p: load[p] + LOCALITY_WEIGHT * self._price(unit, p))
            price = self._price(unit, member)
            if len(owners) > 1 or 0 < load[member] > self.length - price:
                left.append(unit)
                continue
            load[member] += price
            member_of[unit.serial] = member
            self.streams[member].append(unit)
            self.available[member].update(unit.used_serials, unit.defined_serials)
            for user in self.users.get(unit.serial, ()):
                self.pending[user.serial] -= 1
                if not self.pending[user.serial]:
                    heapq.heappush(queue, (-self.path_length[user.serial], user.serial, user))
        self.cost += max(load) + BARRIER_COST
        return left

    def _price(self, unit: Unit, member: int) -> float:
        """Return the work of a unit, and of the reads of its operands."""
        return work(unit) + sum(serial not in self.available[member] for serial in unit.used_serials)


def _critical_paths(units: Sequence[Unit], users: dict[int, list[Unit]]) -> dict[int, float]:
    """Return the work on the longest path to the end from every unit."""
    path_length: dict[int, float] = {}
    for unit in reversed(units):
        path_length[unit.serial] = work(unit) + max(
            (path_length[user.serial] for user in users.get(unit.serial, ())), default=0.0
        )
    return path_length


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
        head = f"define internal void @{self.name}({code.parameters}, i64 %b, i32 %member, i32 %lane)"
        return f"{head} noinline nounwind convergent {{\nbundle:\n{indented(w.lines)}done:\n  ret void\n}}"

    def _member(self, member: int) -> None:
        w, code, block = self.w, self.code, self.block
        values = list(block.graph.outputs["y"].flat)
        results = [(to, values[k]) for k, to in block.writes if isinstance(to, Element)]
        emit_member(
            self.plan, member, Units(block.graph), w, lambda node: code.read(block.reads[node.args[1]], w),
            results, lambda place, value: code.write(value, place, w),
        )  # fmt: skip
