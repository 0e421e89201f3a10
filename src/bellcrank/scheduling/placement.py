"""Insertion-based placement: turn one order of tasks into a schedule.

Each task goes to the processor on which it finishes first, or to a given one, into a gap if there is one. Its messages
occupy the channels of their routes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from bellcrank.scheduling.machines import Channel, Machine, busy_ends
from bellcrank.scheduling.task import LoadTask, LoadTasks, Tasks
from bellcrank.scheduling.timetable import Hop, Message, Schedule

MANY_PROCESSORS = 32  # processors; on larger machines only those near the values are examined


class Plan:
    """Data that all schedules of the same tasks on the same machine share."""

    def __init__(self, todo: Tasks, machine: Machine) -> None:
        """Precompute costs and dependences of the tasks `todo` on a `machine`."""
        self.todo, self.machine = todo, machine
        self.work = [task.work(machine.cost) for task in todo]
        self.send = [machine.message(task.gives) for task in todo]  # time on one channel
        self.needs = [tuple(task.needs) for task in todo]
        self.users: list[list[int]] = [[] for _ in todo]
        for i, needs in enumerate(self.needs):
            for j in needs:
                self.users[j].append(i)
        self.edges = sum(map(len, self.needs)) + len(todo)
        topology = machine.topology
        self.is_symmetric = topology.bus or all(len(n) == machine.processors - 1 for n in topology.neighbours)
        around = max(map(len, topology.neighbours))
        few = machine.processors <= MANY_PROCESSORS
        self.candidates = machine.processors if few else min(MANY_PROCESSORS, 3 * around)  # approximately

    def __len__(self) -> int:
        return len(self.work)

    def effort(self, processors: int) -> float:
        """Return the number of value look-ups of a schedule if this many `processors` are examined for each task.

        Examining a processor is cheaper than placing a task on it.
        """
        return self.edges * (1.0 + processors / 4)

    def region(self, size: int) -> tuple[int, ...]:
        """Return adjacent processors, as many as `size`, around one with the most neighbours."""
        near = self.machine.topology.neighbours
        region = [max(range(len(near)), key=lambda p: (len(near[p]), -p))]
        for p in region:
            region += [other for other in near[p] if other not in region]
            if len(region) >= size:
                break
        return tuple(region[:size])

    def distance(self, a: int, b: int) -> int:
        """Return the number of channels between processors `a` and `b`."""
        return self.machine.topology.hops(a)[b]


def upward_rank(plan: Plan, weight: float = 1.0, boost: Sequence[float] = (), where: Sequence[int] = ()) -> list[float]:
    """Return the longest path from the start of each task to the end.

    Parameters
    ----------
    plan
        Tasks and machine.
    weight
        Factor for the cost of messages.
    boost
        Factor for the work of each task.
    where
        Processor of each task; if given, only messages that are sent count.
    """
    rank = [0.0] * len(plan)
    for i in reversed(range(len(plan))):
        rank[i] += plan.work[i] * (boost[i] if boost else 1.0)
        for j in plan.needs[i]:
            hops = plan.distance(where[j], where[i]) if where else 1
            rank[j] = max(rank[j], rank[i] + weight * plan.send[j] * hops)
    return rank


class Occupancy:
    """Occupied time intervals of a processor or channel; they do not touch."""

    def __init__(self) -> None:
        self.begins: list[float] = []
        self.ends: list[float] = []

    def free(self, ready: float, length: float) -> float:
        """Return the first moment from `ready` on at which it is free for this `length`."""
        begins, ends = self.begins, self.ends
        if not ends or ends[-1] <= ready:
            return ready
        for k in range(max(bisect_right(begins, ready) - 1, 0), len(begins)):
            if ready + length <= begins[k]:
                break
            if ends[k] > ready:
                ready = ends[k]
        return ready

    def take(self, begin: float, end: float) -> None:
        """Occupy the interval from `begin` to `end`."""
        if end <= begin:
            return
        begins, ends = self.begins, self.ends
        k = bisect_right(begins, begin)
        if k and ends[k - 1] == begin:
            ends[k - 1] = end
            k -= 1
        else:
            begins.insert(k, begin)
            ends.insert(k, end)
        if k + 1 < len(begins) and begins[k + 1] == end:
            ends[k] = ends.pop(k + 1)
            begins.pop(k + 1)


def first_common_gap(tables: Sequence[Occupancy], ready: float, length: float) -> float:
    """Return the first moment from `ready` on at which all of these timetables are free.

    Parameters
    ----------
    tables
        The timetables.
    ready
        Earliest moment.
    length
        Required duration.
    """
    while True:
        later = ready
        for t in tables:
            later = t.free(later, length)
        if later == ready:
            return ready
        ready = later


class Placement:
    """A schedule under construction."""

    def __init__(self, plan: Plan, region: Sequence[int] = ()) -> None:
        """Start an empty schedule of `plan`, on the processors of a `region` or on all."""
        self.plan, self.machine, self.region = plan, plan.machine, region
        self.processors = [Occupancy() for _ in range(plan.machine.processors)]
        self.channels: dict[Channel, Occupancy] = {}
        n = len(plan)
        self.where, self.start, self.finish = [-1] * n, [0.0] * n, [0.0] * n
        self.sent: dict[tuple[int, int], Message] = {}
        self.touched: set[int] = set()

    def run(self, order: Sequence[int], fixed: Sequence[int] = ()) -> Schedule:
        """Place all tasks and return the schedule; `order` lists the tasks, `fixed` the processor of each if given."""
        for i in order:
            if fixed:
                self.put(i, fixed[i])
            else:
                self.put(i, self._best(i))
        return self.schedule()

    def _best(self, i: int) -> int:
        """Return the processor on which task i finishes first; channels are only examined where they may matter."""
        tried = sorted((self._soonest(i, p), p) for p in self._candidates(i))
        if not any(self.plan.send[j] for j in self.plan.needs[i]):
            return tried[0][1]
        best = float("inf"), -1
        for soonest, p in tried:
            if soonest > best[0]:
                break
            best = min(best, (self._finish(i, p), p))
        return best[1]

    def _soonest(self, i: int, p: int) -> float:
        """Return the finish time of task i on processor p if all channels were free."""
        hops, send = self.machine.topology.hops(p), self.plan.send
        return self._end(i, p, (self.finish[j] + send[j] * hops[self.where[j]] for j in self.plan.needs[i]))

    def _end(self, i: int, p: int, arrivals: Iterable[float]) -> float:
        """Return the finish time of task i on processor p if its values arrive at these times."""
        work = self.plan.work[i]
        return self.processors[p].free(max(arrivals, default=0.0), work) + work

    def schedule(self) -> Schedule:
        """Return the schedule."""
        where, start, finish = tuple(self.where), tuple(self.start), tuple(self.finish)
        messages = tuple(self.sent[key] for key in sorted(self.sent))
        return Schedule(self.plan.todo, self.machine, where, start, finish, messages)

    def _candidates(self, i: int) -> Sequence[int]:
        if self.region:
            return self.region
        count = self.machine.processors
        if count <= MANY_PROCESSORS and not self.plan.is_symmetric:
            return range(count)
        idle = next((p for p in range(count) if p not in self.touched), 0)
        if count <= MANY_PROCESSORS:
            return sorted({*self.touched, idle})  # all unused processors are equivalent
        near = {self.where[j] for j in self.plan.needs[i]}
        for p in list(near):
            near.update(self.machine.topology.neighbours[p][:MANY_PROCESSORS])
        return sorted({*near, idle})

    def _finish(self, i: int, p: int) -> float:
        """Return the finish time of task i on processor p if its messages did not hinder each other."""
        needs, send = self.plan.needs[i], self.plan.send
        return self._end(i, p, (self._arrival(j, p) if send[j] else self.finish[j] for j in needs))

    def _arrival(self, j: int, p: int) -> float:
        if self.where[j] == p:
            return self.finish[j]
        if (j, p) in self.sent:
            return self.sent[j, p].arrival
        return self._hops(j, p)[-1].finish

    def _hops(self, j: int, p: int) -> list[Hop]:
        time, length = self.finish[j], self.plan.send[j]
        hops = []
        for channel in self.machine.topology.route(self.where[j], p):
            begin = first_common_gap(self._tables(channel, self.where[j], p), time, length) if length else time
            time = begin + length
            hops.append(Hop(channel, begin, time))
        return hops

    def _tables(self, channel: Channel, source: int, target: int) -> list[Occupancy]:
        medium = self.machine.topology.medium(channel)
        if medium not in self.channels:
            self.channels[medium] = Occupancy()
        ends = busy_ends(self.machine, channel, source, target)
        return [self.channels[medium], *(self.processors[e] for e in ends)]

    def put(self, i: int, p: int, ready: float = 0.0) -> None:
        """Place task `i` and its messages on processor `p`, not before the time `ready`."""
        work = self.plan.work[i]
        for j in sorted(self.plan.needs[i], key=lambda j: (self.finish[j], j)):
            if self.where[j] != p and (j, p) not in self.sent:
                hops = self._hops(j, p)
                if self.plan.send[j]:
                    for hop in hops:
                        for timetable in self._tables(hop.channel, self.where[j], p):
                            timetable.take(hop.start, hop.finish)
                self.sent[j, p] = Message(j, self.where[j], p, self.plan.todo[j].gives, tuple(hops))
            ready = max(ready, self._arrival(j, p))
        begin = self.processors[p].free(ready, work)
        self.processors[p].take(begin, begin + work)
        self.touched.add(p)
        self.where[i], self.start[i], self.finish[i] = p, begin, begin + work


def schedule_loads(name: str, loads: Sequence[LoadTask], where: Sequence[int], machine: Machine) -> Schedule:
    """Return the schedule of loads in their given order.

    Parameters
    ----------
    name
        Name of the computation.
    loads
        The tasks, in order.
    where
        Processor of each.
    machine
        The machine.
    """
    return Placement(Plan(LoadTasks(name, "load", tuple(loads)), machine)).run(range(len(loads)), where)
