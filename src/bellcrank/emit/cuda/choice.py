"""How a state is computed: by how many threads, with how many registers, and what waits in shared memory.

Few blocks on a multiprocessor have many registers each; many blocks hide more of the latency of memory and arithmetic,
but more values then wait in shared memory, and every parked value costs two instructions. What shared memory does not
hold either lies in local memory, which is far away. Members of a team have fewer values each (team.py), and wait for
each other. The numbers are those of an H200: `python -m bench.gpu teams` compares them with what it measures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from bellcrank.emit.cuda.few import order
from bellcrank.emit.cuda.loads import DISTANCE
from bellcrank.emit.cuda.park import Parking
from bellcrank.emit.cuda.team import Division, Team, alone
from bellcrank.emit.cuda.units import Units

FILE = 65536  # registers of a multiprocessor
SHARED = 227 * 1024  # bytes of its shared memory, of which each block costs one KB more than it asks for
REGISTERS = 255  # that a thread may have
WARPS = 64  # at most, on a multiprocessor
OWN_VALUES = 12  # values' worth of registers for addresses, constants and results on their way
PARKED = 0.25  # the same where values are parked, as a share of those alive: what is fetched early waits, too
SHARED_COST, LOCAL_COST = 2.0, 12.0  # instructions' worth of a value's way to shared and to local memory, or back
STATES = {1: 128, 2: 64, 4: 32, 8: 32}  # of a block, by the members of a team
SPEED = {1: 2.1e13, 2: 1.15e13}  # instructions of threads per second, by the words of a value
CACHED, FETCHED = 6500, 9e12  # the same for a longer text, which the instruction cache does not hold
BANDWIDTH = 4.2e12  # bytes per second that a copy moves
TEAMS_WORTH = 1.25  # what one thread must lose by waiting, before teams are tried: they do more in all
WAITING = 1.25  # an idle member costs more than its share
# By warps at work on a multiprocessor, how much of its speed a kernel reaches that does nothing but arithmetic.
EFFICIENCY = {0: 0.0, 4: 0.55, 8: 0.87, 12: 0.97, 16: 1.0}


@dataclass(frozen=True, eq=False)
class TeamPlan:
    team: Team
    words: int  # of a value: 1 or 2
    states: int  # of a block; each member has as many threads
    blocks: int  # on a multiprocessor at once

    @property
    def threads(self) -> int:
        return self.states * len(self.team)

    @cached_property
    def limit(self) -> int:
        """Registers that a thread can have."""
        return min(REGISTERS, FILE // (self.threads * self.blocks) // 8 * 8)

    @cached_property
    def parkings(self) -> list[Parking]:
        return [self._parked(member)[0] for member in range(len(self.team))]

    @cached_property
    def registers(self) -> int:
        """Predicted, of a thread."""
        return max(self._parked(member)[1] for member in range(len(self.team)))

    def _parked(self, member: int) -> tuple[Parking, int]:
        most = self.team.alive[member]
        free = (most + OWN_VALUES) * self.words <= self.limit
        own = OWN_VALUES if free else max(OWN_VALUES, round(PARKED * most))
        room = most if free else max(8, self.limit // self.words - own)
        parking = self.team.parking(member, room)
        return parking, min(self.limit, (parking.most + own) * self.words)

    @cached_property
    def near(self) -> list[int]:
        """Of each member's slots, how many lie in shared memory; the others lie in local memory."""
        room = (SHARED // self.blocks - 1024) // (self.states * 4 * self.words) - self.team.rows
        slots = [parking.slots for parking in self.parkings]
        found = [0] * len(slots)
        for place, member in enumerate(sorted(range(len(slots)), key=lambda k: slots[k])):
            found[member] = max(0, min(slots[member], room // (len(slots) - place)))
            room -= found[member]
        return found

    @property
    def fits(self) -> bool:
        return self.rows * self.states * 4 * self.words + 1024 <= SHARED // self.blocks

    @property
    def rows(self) -> int:
        """Of shared memory, a value for each state in a row: what members send each other, and what is parked."""
        return self.team.rows + sum(self.near)

    @property
    def local(self) -> int:
        """Values of a thread in local memory."""
        return max(parking.slots - near for parking, near in zip(self.parkings, self.near, strict=True))

    @property
    def per_second(self) -> float:
        """States that one H200 computes, arithmetic alone: the prediction is good to a quarter, half for large ones."""
        large = sum(len(parking.steps) for parking in self.parkings) > CACHED
        return (FETCHED if large else SPEED[self.words]) / self.cost

    @cached_property
    def instructions(self) -> float:
        """Of a state: what it takes, and what is parked and fetched."""
        moves = 0.0
        for parking, near in zip(self.parkings, self.near, strict=True):
            steps = [s for s in parking.steps if s.unit is None]
            moves += sum(LOCAL_COST if s.slot >= near and s.what != "drop" else SHARED_COST for s in steps)
        return self.team.work + moves

    @property
    def efficiency(self) -> float:
        """How well the warps hide each other's waiting."""
        return _efficiency(self.blocks * self.threads / 32 * self.team.balance**WAITING)

    @property
    def cost(self) -> float:
        return self.instructions / self.efficiency

    @property
    def least(self) -> float:
        """What it costs if nothing is parked; known without looking."""
        return self.team.work / self.efficiency


def _efficiency(warps: float) -> float:
    points = sorted(EFFICIENCY.items())
    for (a, low), (b, high) in pairwise(points):
        if warps <= b:
            return low + (high - low) * (warps - a) / (b - a)
    return points[-1][1] + 0.002 * (warps - points[-1][0])


BEST_EFFICIENCY = _efficiency(WARPS)  # that any plan can have


def best(units: Units, words: int, distance: int = DISTANCE, below: float = math.inf) -> TeamPlan:
    """The plan with the least predicted time, of one thread and of teams. Who needs one that costs less than `below`
    gets any other if there is none; it is found sooner.
    """
    sequence = order(units)
    found = team_plan(alone(sequence, distance), words, STATES[1])
    if found.cost < TEAMS_WORTH * found.team.work or units.graph.calls:
        return found  # a team does more than one thread; it must have something to gain
    division = Division(units, sequence)
    for members in list(STATES)[1:]:
        most = min(below, found.cost)
        made = [team for team in division.teams(members, distance) if team.work < BEST_EFFICIENCY * most]
        if not made:
            break  # larger ones do yet more
        plans = [plan for team in made for plan in _tried(team, words, STATES[members], most)]
        found = min([found, *plans], key=lambda plan: plan.cost)
    return found


def team_plan(team: Team, words: int, states: int) -> TeamPlan:
    """The number of blocks with the least predicted time. It does not fit if the mailbox alone is too large."""
    found = list(_tried(team, words, states))
    return min(found, key=lambda p: p.cost) if found else TeamPlan(team, words, states, 1)


def _tried(team: Team, words: int, states: int, below: float = math.inf) -> Iterator[TeamPlan]:
    """Plans that fit, with more and more blocks; without some that cannot cost less than `below`."""
    least = math.inf
    for blocks in range(1, min(32, WARPS * 32 // (states * len(team))) + 1):
        p = TeamPlan(team, words, states, blocks)
        if p.least >= below:
            continue
        if not p.fits:
            return
        yield p
        if p.cost > 1.02 * least:  # from here on it only becomes narrower
            return
        least = min(least, p.cost)
        if p.instructions >= BEST_EFFICIENCY * below:  # and no fewer will be parked
            return
