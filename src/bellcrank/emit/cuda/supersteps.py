"""Division of one large computation among a team of threads (team.py) in supersteps between barriers.

It serves where there are no branches to distribute: for example a join of two segments, which is products of six-by-six
matrices. Within a superstep a member computes what depends on earlier supersteps and on its own results; a unit that
needs results of two members of the same superstep waits for the next. Units on the longest path go first, to the member
with the least load and most of the operands.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from bellcrank.emit.cuda.load_hoisting import hoist_loads
from bellcrank.emit.cuda.team import BARRIER, BARRIER_COST, Team, work
from bellcrank.emit.cuda.units import Unit, Units

STEP_LENGTHS = (24, 32, 48, 64, 96)  # candidate lengths of a superstep, in instructions
LOCALITY_WEIGHT = 3.0  # weight of a unit's cost against a member's load: prefers members that have its operands


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
