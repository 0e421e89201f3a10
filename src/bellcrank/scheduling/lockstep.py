"""Lockstep (SIMT) scheduling for a warp: lanes that do the same operation at the same time.

A step does one operation, such as a multiplication, in every lane that has one to do; the other lanes wait. A shuffle,
a step of its own, brings values to other lanes: every lane offers one value and takes at most one. So two decisions
matter: which operation comes next, and in which lane each value is computed.

Steps are filled greedily with the most urgent operations, each in the lane that has most of its arguments. Four rules
are tried, and one lane alone; the shortest schedule is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import product

from bellcrank.errors import InputError
from bellcrank.scheduling.machines import Machine
from bellcrank.scheduling.placement import Plan, upward_rank
from bellcrank.scheduling.task import Tasks
from bellcrank.scheduling.timetable import Hop, Message, Schedule

MAX_POSTPONED_OPERATIONS = 256  # operations that a step may postpone because their arguments are in other lanes
Transfer = tuple[int, int, int]  # task, from, to


def lockstep_schedule(todo: Tasks, machine: Machine) -> Schedule:
    """Return the best schedule of the tasks `todo` on more than one lane of a warp `machine`."""
    if any(len(task.nodes) > 1 for task in todo):
        raise InputError(f'{machine.name}: lanes do single operations at the same time; use tasks of level "node".')
    candidates = [_Steps(todo, machine).run(fullest, at_home) for fullest, at_home in product((True, False), repeat=2)]
    return min(candidates, key=lambda s: s.makespan)


def shuffles(wanted: Sequence[Transfer]) -> Iterator[list[Transfer]]:
    """Group the transfers in `wanted` into steps in which every lane offers one value and takes at most one."""
    remaining = list(wanted)
    while remaining:
        offers: dict[int, int] = {}
        taking: set[int] = set()
        step_transfers, later = [], []
        for transfer in remaining:
            task, source, target = transfer
            if target in taking or offers.setdefault(source, task) != task:
                later.append(transfer)
            else:
                taking.add(target)
                step_transfers.append(transfer)
        yield step_transfers
        remaining = later


@dataclass
class _Steps:
    todo: Tasks
    machine: Machine
    time: float = 0.0
    where: dict[int, int] = field(default_factory=dict)
    start: dict[int, float] = field(default_factory=dict)
    lanes_of_value: dict[int, set[int]] = field(default_factory=dict)  # lanes that hold each value
    load: list[int] = field(default_factory=list)  # values that each lane has computed
    messages: list[Message] = field(default_factory=list)

    def run(self, fullest: bool, at_home: bool) -> Schedule:
        """Return a schedule.

        Parameters
        ----------
        fullest
            Choose the operation that most lanes can do, instead of the most urgent one.
        at_home
            Run an operation only in a lane that has one of its arguments.
        """
        plan, cost = Plan(self.todo, self.machine), self.machine.cost
        rank = upward_rank(plan, weight=0.0)
        self.load = [0] * self.machine.processors
        missing = [len(needs) for needs in plan.needs]
        ready: dict[str, list[tuple[float, int]]] = {}  # tasks by operation, the most urgent first
        for i, count in enumerate(missing):
            if not count:
                heappush(ready.setdefault(self._op(i), []), (-rank[i], i))
        while ready:
            op = self._next(ready, fullest)
            done = self._step(ready[op], cost[op], at_home)
            if not ready[op]:
                del ready[op]
            for j in done:
                for i in plan.users[j]:
                    missing[i] -= 1
                    if not missing[i]:
                        heappush(ready.setdefault(self._op(i), []), (-rank[i], i))
        order = range(len(self.todo))
        start = tuple(self.start[i] for i in order)
        finish = tuple(self.start[i] + plan.work[i] for i in order)
        messages = tuple(sorted(self.messages, key=lambda m: (m.task, m.target)))
        return Schedule(self.todo, self.machine, tuple(self.where[i] for i in order), start, finish, messages)

    def _op(self, i: int) -> str:
        return self.todo[i].nodes[0].op

    def _next(self, ready: dict[str, list[tuple[float, int]]], fullest: bool) -> str:
        """Return the next operation; free operations come first, as they cost no step and may make others ready."""
        lanes, cost = self.machine.processors, self.machine.cost

        def key(op: str) -> tuple[bool, float, float, str]:
            first, filled = -ready[op][0][0], min(len(ready[op]), lanes)
            return (not cost[op], filled if fullest else first, first if fullest else filled, op)

        return max(ready, key=key)

    def _step(self, some: list[tuple[float, int]], length: float, at_home: bool) -> list[int]:
        free = set(range(self.machine.processors))
        chosen: dict[int, int] = {}
        wanted: dict[Transfer, None] = {}
        later: list[tuple[float, int]] = []
        while some and free and len(later) < MAX_POSTPONED_OPERATIONS:
            entry = heappop(some)
            i = entry[1]
            lane, local = self._lane(i, free)
            if at_home and chosen and not local:
                later.append(entry)
                continue
            chosen[i] = lane
            free.discard(lane)
            for j in self.todo[i].needs:
                if lane not in self.lanes_of_value[j]:
                    wanted[j, self.where[j], lane] = None
        for entry in later:
            heappush(some, entry)
        for batch in shuffles(list(wanted)):
            after = self.time + self.machine.message(1)
            for j, source, target in batch:
                self.messages.append(Message(j, source, target, 1, (Hop((source, target), self.time, after),)))
                self.lanes_of_value[j].add(target)
            self.time = after
        for i, lane in chosen.items():
            self.where[i], self.start[i] = lane, self.time
            self.lanes_of_value[i] = {lane}
            self.load[lane] += 1
        self.time += length
        return list(chosen)

    def _lane(self, i: int, free: set[int]) -> tuple[int, bool]:
        """Return the free lane with most of the arguments, and true if it has any."""
        has: dict[int, int] = {}
        for j in self.todo[i].needs:
            for p in self.lanes_of_value[j] & free:
                has[p] = has.get(p, 0) + 1
        if has:
            return max(has, key=lambda p: (has[p], -self.load[p], -p)), True
        return min(free, key=lambda p: (self.load[p], p)), not self.todo[i].needs
