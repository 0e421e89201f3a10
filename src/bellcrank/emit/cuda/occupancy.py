"""Occupancy planning: threads per state, registers per thread, and spill slots in shared memory.

With few blocks on a multiprocessor each thread has many registers; many blocks hide more of the latency of memory and
arithmetic, but more values are then spilled to shared memory, and every spill costs two instructions. Spill slots that
do not fit into shared memory lie in local memory, which is slow. Members of a team have fewer values each (team.py),
but wait for each other at barriers. The constants are those of an H200: `python -m bench.gpu teams` compares the
predictions with measurements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from bellcrank.emit.cuda.register_pressure import HOIST_DISTANCE_UNITS, low_pressure_order
from bellcrank.emit.cuda.team import Team, TeamDivision, single_thread_team
from bellcrank.emit.cuda.thread_code import SpillPlan, Units

REGISTER_FILE_SIZE = 65536  # registers of a multiprocessor
SHARED_BYTES = 227 * 1024  # bytes of shared memory of a multiprocessor; each block takes 1 KiB more than it requests
MAX_REGISTERS = 255  # hardware limit per thread
MAX_WARPS = 64  # hardware limit per multiprocessor
OVERHEAD_VALUES = 12  # registers for addresses, constants and results in flight, counted in values
# Overhead where values are spilled, as a share of the live values: early reloads occupy registers, too.
SPILL_OVERHEAD_SHARE = 0.25
SHARED_COST, LOCAL_COST = 2.0, 12.0  # cost of a spill or reload in shared and in local memory, in instructions
STATES_PER_BLOCK = {1: 128, 2: 64, 4: 32, 8: 32}  # states of a block, by the number of members of a team
INSTRUCTIONS_PER_SECOND = {1: 2.1e13, 2: 1.15e13}  # thread instructions per second, by the words of a value
# Instructions that the instruction cache holds, and the speed of longer code.
CACHED_INSTRUCTIONS, UNCACHED_INSTRUCTIONS_PER_SECOND = 6500, 9e12
BANDWIDTH = 4.2e12  # bytes per second of a copy
# Stall factor of one thread above which teams are tried: they execute more instructions in all.
TEAM_STALL_FACTOR = 1.25
BALANCE_EXPONENT = 1.25  # exponent of the balance: an idle member costs more than its share
# Share of peak speed that a purely arithmetic kernel reaches, by the number of resident warps of a multiprocessor.
EFFICIENCY_BY_WARPS = {0: 0.0, 4: 0.55, 8: 0.87, 12: 0.97, 16: 1.0}


@dataclass(frozen=True, eq=False)
class TeamPlan:
    """Launch configuration for one team: states per block and blocks per multiprocessor, with its predicted cost."""

    team: Team
    words: int  # 32-bit words of a value: 1 or 2
    states: int  # states of a block; each member has as many threads
    blocks: int  # resident blocks of a multiprocessor

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.states * len(self.team)

    @cached_property
    def register_limit(self) -> int:
        """Largest number of registers of a thread at this occupancy."""
        return min(MAX_REGISTERS, REGISTER_FILE_SIZE // (self.threads * self.blocks) // 8 * 8)

    @cached_property
    def spill_plans(self) -> list[SpillPlan]:
        """Spill plan of each member."""
        return [self._spill_plan(member)[0] for member in range(len(self.team))]

    @cached_property
    def registers(self) -> int:
        """Predicted registers of a thread."""
        return max(self._spill_plan(member)[1] for member in range(len(self.team)))

    def _spill_plan(self, member: int) -> tuple[SpillPlan, int]:
        most = self.team.max_live[member]
        free = (most + OVERHEAD_VALUES) * self.words <= self.register_limit
        overhead = OVERHEAD_VALUES if free else max(OVERHEAD_VALUES, round(SPILL_OVERHEAD_SHARE * most))
        register_values = most if free else max(8, self.register_limit // self.words - overhead)
        parking = self.team.spill_plan(member, register_values)
        return parking, min(self.register_limit, (parking.max_registers + overhead) * self.words)

    @cached_property
    def shared_slots(self) -> list[int]:
        """Number of spill slots of each member in shared memory; the others lie in local memory."""
        free_rows = (SHARED_BYTES // self.blocks - 1024) // (self.states * 4 * self.words) - self.team.mailbox_rows
        slots = [parking.slots for parking in self.spill_plans]
        slots_in_shared = [0] * len(slots)
        for place, member in enumerate(sorted(range(len(slots)), key=lambda k: slots[k])):
            slots_in_shared[member] = max(0, min(slots[member], free_rows // (len(slots) - place)))
            free_rows -= slots_in_shared[member]
        return slots_in_shared

    @property
    def fits(self) -> bool:
        """Return whether the block's shared memory fits at this occupancy."""
        return self.shared_rows * self.states * 4 * self.words + 1024 <= SHARED_BYTES // self.blocks

    @property
    def shared_rows(self) -> int:
        """Rows of shared memory, one value per state: the mailbox of the team, then the spill slots."""
        return self.team.mailbox_rows + sum(self.shared_slots)

    @property
    def local_values(self) -> int:
        """Values of a thread in local memory."""
        return max(parking.slots - near for parking, near in zip(self.spill_plans, self.shared_slots, strict=True))

    @property
    def per_second(self) -> float:
        """Predicted states per second on one H200, arithmetic only, within about 25 %, or 50 % for large graphs."""
        large = sum(len(parking.steps) for parking in self.spill_plans) > CACHED_INSTRUCTIONS
        return (UNCACHED_INSTRUCTIONS_PER_SECOND if large else INSTRUCTIONS_PER_SECOND[self.words]) / self.cost

    @cached_property
    def instructions(self) -> float:
        """Instructions per state: computation, spills and reloads."""
        moves = 0.0
        for parking, near in zip(self.spill_plans, self.shared_slots, strict=True):
            steps = [s for s in parking.steps if s.unit is None]
            moves += sum(LOCAL_COST if s.slot >= near and s.action != "drop" else SHARED_COST for s in steps)
        return self.team.work + moves

    @property
    def efficiency(self) -> float:
        """Predicted share of peak throughput: how well the resident warps hide latency."""
        return _efficiency(self.blocks * self.threads / 32 * self.team.balance**BALANCE_EXPONENT)

    @property
    def cost(self) -> float:
        """Predicted cost: instructions divided by efficiency."""
        return self.instructions / self.efficiency

    @property
    def cost_bound(self) -> float:
        """Lower bound of the cost, assuming no spills; available without a spill plan."""
        return self.team.work / self.efficiency


def _efficiency(warps: float) -> float:
    points = sorted(EFFICIENCY_BY_WARPS.items())
    for (a, low), (b, high) in pairwise(points):
        if warps <= b:
            return low + (high - low) * (warps - a) / (b - a)
    return points[-1][1] + 0.002 * (warps - points[-1][0])


BEST_EFFICIENCY = _efficiency(MAX_WARPS)  # upper bound for any plan


def best_plan(units: Units, words: int, distance: int = HOIST_DISTANCE_UNITS, below: float = math.inf) -> TeamPlan:
    """Return the plan with the least predicted cost, among one thread and teams.

    Parameters
    ----------
    units
        Units of the graph.
    words
        32-bit words of a value: 1 or 2.
    distance
        Prefetch distance of inputs, in units.
    below
        Cost bound: search stops early for plans that cannot cost less; if there is none, any plan is returned.
    """
    sequence = low_pressure_order(units)
    best_so_far = team_plan(single_thread_team(sequence, distance), words, STATES_PER_BLOCK[1])
    if best_so_far.cost < TEAM_STALL_FACTOR * best_so_far.team.work or units.graph.calls:
        return best_so_far  # a team executes more instructions than one thread, so it must have stalls to gain from
    division = TeamDivision(units, sequence)
    for members in list(STATES_PER_BLOCK)[1:]:
        cost_limit = min(below, best_so_far.cost)
        teams = [team for team in division.teams(members, distance) if team.work < BEST_EFFICIENCY * cost_limit]
        if not teams:
            break  # larger teams execute even more instructions
        plans = [
            plan for team in teams for plan in _candidate_plans(team, words, STATES_PER_BLOCK[members], cost_limit)
        ]
        best_so_far = min([best_so_far, *plans], key=lambda plan: plan.cost)
    return best_so_far


def team_plan(team: Team, words: int, states: int) -> TeamPlan:
    """Return the plan for `team` with the number of blocks of least predicted time.

    It does not fit if the mailbox alone is too large.

    Parameters
    ----------
    team
        Team of threads for one state.
    words
        32-bit words of a value: 1 or 2.
    states
        States of a block.
    """
    candidates = list(_candidate_plans(team, words, states))
    return min(candidates, key=lambda p: p.cost) if candidates else TeamPlan(team, words, states, 1)


def _candidate_plans(team: Team, words: int, states: int, below: float = math.inf) -> Iterator[TeamPlan]:
    """Yield plans that fit, with increasing numbers of blocks, skipping some that cannot cost less than `below`."""
    least = math.inf
    for blocks in range(1, min(32, MAX_WARPS * 32 // (states * len(team))) + 1):
        p = TeamPlan(team, words, states, blocks)
        if p.cost_bound >= below:
            continue
        if not p.fits:
            return
        yield p
        if p.cost > 1.02 * least:  # further blocks only leave fewer registers
            return
        least = min(least, p.cost)
        if p.instructions >= BEST_EFFICIENCY * below:  # more blocks never spill less
            return
