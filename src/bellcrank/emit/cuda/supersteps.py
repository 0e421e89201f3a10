"""Division of one large computation among a team of threads (team.py) in supersteps between barriers.

It serves where there are no limbs to distribute: for example a join of two segments, which is products of six-by-six
matrices. Within a superstep a member computes what depends on earlier supersteps and on its own results; a unit that
needs results of two members of the same superstep waits for the next. Units on the longest path go first, to the member
with the least load and most of the operands.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from bellcrank.emit.cuda.loads import ahead
from bellcrank.emit.cuda.team import MEET, MEETING, Team, work
from bellcrank.emit.cuda.units import Unit, Units

LENGTHS = (24, 32, 48, 64, 96)  # candidate lengths of a superstep, in instructions
FETCHED = 3.0  # weight of a unit's cost against a member's load: prefers members that have its operands


def team(units: Units, members: int) -> Team:
    """Return the division of `units` among `members` with the least predicted time."""
    found = [_Division(units, members, length) for length in LENGTHS]
    streams = min(found, key=lambda division: division.cost).streams
    return Team([ahead(stream) for stream in streams])


class _Division:
    """Division for one length of supersteps."""

    def __init__(self, units: Units, members: int, length: float) -> None:
        self.members, self.length, self.cost = members, length, 0.0
        self.streams: list[list[Unit]] = [[] for _ in range(members)]
        self.there: list[set[int]] = [set() for _ in range(members)]  # values that each member has read or computed
        self.maker = {serial: unit.serial for unit in units.all for serial in unit.makes}
        self.users: dict[int, list[Unit]] = {}
        self.missing: dict[int, int] = {}
        for unit in units.all:
            before = self._before(unit)
            self.missing[unit.serial] = len(before)
            for serial in before:
                self.users.setdefault(serial, []).append(unit)
        self.way = _ways(units.all, self.users)
        waiting = [unit for unit in units.all if not self.missing[unit.serial]]
        while waiting:
            waiting = self._step(waiting)
            if waiting:
                for stream in self.streams:
                    stream.append(MEET)

    def _before(self, unit: Unit) -> set[int]:
        return {self.maker[serial] for serial in unit.reads if serial in self.maker}

    def _step(self, units: Sequence[Unit]) -> list[Unit]:
        """Distribute as much as fits into one superstep; return the remaining units."""
        queue = [(-self.way[unit.serial], unit.serial, unit) for unit in units]
        heapq.heapify(queue)
        load, here, left = [0.0] * self.members, dict[int, int](), list[Unit]()
        while queue:
            unit = heapq.heappop(queue)[2]
            owners = {here[serial] for serial in self._before(unit) if serial in here}
            who = owners or range(self.members)
            member = min(who, key=lambda p: load[p] + FETCHED * self._price(unit, p))
            price = self._price(unit, member)
            if len(owners) > 1 or 0 < load[member] > self.length - price:
                left.append(unit)
                continue
            load[member] += price
            here[unit.serial] = member
            self.streams[member].append(unit)
            self.there[member].update(unit.reads, unit.makes)
            for user in self.users.get(unit.serial, ()):
                self.missing[user.serial] -= 1
                if not self.missing[user.serial]:
                    heapq.heappush(queue, (-self.way[user.serial], user.serial, user))
        self.cost += max(load) + MEETING
        return left

    def _price(self, unit: Unit, member: int) -> float:
        """Return the work of a unit, and of the reads of its operands."""
        return work(unit) + sum(serial not in self.there[member] for serial in unit.reads)


def _ways(units: Sequence[Unit], users: dict[int, list[Unit]]) -> dict[int, float]:
    """Return the work on the longest path to the end from every unit."""
    found: dict[int, float] = {}
    for unit in reversed(units):
        found[unit.serial] = work(unit) + max((found[user.serial] for user in users.get(unit.serial, ())), default=0.0)
    return found
