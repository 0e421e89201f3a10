"""List scheduling: the most urgent task that is ready goes where it finishes first, into a gap if there is one.

Urgent is what has the longest way to the end before it, messages included (H. Topcuoglu, S. Hariri, M. Y. Wu,
Performance-effective and low-complexity task scheduling for heterogeneous computing, IEEE Trans. Parallel and
Distributed Systems 13, 2002). Messages take their turns on the channels of their route. Then it is tried again with
other weights for messages and with what decided the length made more urgent; the shortest is kept, and if nothing beats
one processor, one processor it is. The same graph and machine give the same schedule every time.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

from bellcrank.graph import Graph
from bellcrank.schedule.machine import Machine
from bellcrank.schedule.schedule import Hop, Message, Schedule
from bellcrank.schedule.tasks import Tasks, tasks

MANY = 32  # processors: of more, only those near the values are looked at
EFFORT = 100_000  # tasks times processors that are tried altogether: some seconds


class Timetable:
    """When something is taken."""

    def __init__(self) -> None:
        self.spans: list[tuple[float, float]] = []

    def free(self, ready: float, length: float) -> float:
        """The first moment from `ready` on at which it is free for so long."""
        if not self.spans or self.spans[-1][1] <= ready:
            return ready
        k = max(bisect_right(self.spans, (ready, float("inf"))) - 1, 0)
        for begin, end in self.spans[k:]:
            if ready + length <= begin:
                break
            ready = max(ready, end)
        return ready

    def take(self, begin: float, end: float) -> None:
        if end > begin:
            insort(self.spans, (begin, end))


def together(tables: Sequence[Timetable], ready: float, length: float) -> float:
    """The first moment at which all of them are free."""
    while True:
        later = ready
        for t in tables:
            later = t.free(later, length)
        if later == ready:
            return ready
        ready = later


def schedule(graph: Graph, machine: Machine, level: str = "cluster") -> Schedule:
    """A graph laid out on a machine."""
    return laid_out(tasks(graph, level), machine)


def laid_out(todo: Tasks, machine: Machine) -> Schedule:
    best = alone(todo, machine)
    if machine.processors == 1 or not len(todo):
        return best
    rounds = max(1, min(24, EFFORT // (len(todo) * min(machine.processors, MANY))))
    weights = (1.0, 0.0, 3.0, 10.0)
    for k in range(min(rounds, len(weights))):
        found = placed(todo, machine, urgency(todo, machine, weights[k]))
        if found.makespan < best.makespan:
            best = found
    boost = [1.0] * len(todo)
    for _ in range(rounds - len(weights)):
        for i in best.critical:
            boost[i] *= 1.1
        rank = urgency(todo, machine, 1.0, boost)
        found = placed(todo, machine, rank)
        if found.makespan < best.makespan:
            best = found
    return best


def alone(todo: Tasks, machine: Machine) -> Schedule:
    """All on the first processor."""
    start, finish, now = [], [], 0.0
    for task in todo:
        start.append(now)
        now += task.work(machine.cost)
        finish.append(now)
    return Schedule(todo, machine, (0,) * len(todo), tuple(start), tuple(finish), ())


def urgency(todo: Tasks, machine: Machine, weight: float, boost: Sequence[float] = ()) -> list[float]:
    """The longest way from the start of each task to the end."""
    rank = [0.0] * len(todo)
    for task in reversed(todo.tasks):
        i = task.index
        rank[i] += task.work(machine.cost) * (boost[i] if boost else 1.0)
        for j in task.needs:
            rank[j] = max(rank[j], rank[i] + weight * machine.message(todo[j].gives))
    return rank


def placed(todo: Tasks, machine: Machine, rank: Sequence[float], where: Sequence[int] = ()) -> Schedule:
    """The most urgent first, on the processors given by `where`, or where each finishes first."""
    return _Placement(todo, machine, where).run(sorted(range(len(todo)), key=lambda i: (-rank[i], i)))


class _Placement:
    def __init__(self, todo: Tasks, machine: Machine, fixed: Sequence[int]) -> None:
        self.todo, self.machine, self.fixed = todo, machine, fixed
        self.processors = [Timetable() for _ in range(machine.processors)]
        self.channels: dict[tuple[int, int], Timetable] = {}
        n = len(todo)
        self.where, self.start, self.finish = [-1] * n, [0.0] * n, [0.0] * n
        self.sent: dict[tuple[int, int], Message] = {}
        self.touched: set[int] = set()

    def run(self, order: Sequence[int]) -> Schedule:
        for i in order:
            work = self.todo[i].work(self.machine.cost)
            best = min((self._finish(i, p, work), p) for p in self._candidates(i))
            self._put(i, best[1], work)
        return Schedule(
            self.todo,
            self.machine,
            tuple(self.where),
            tuple(self.start),
            tuple(self.finish),
            tuple(self.sent[key] for key in sorted(self.sent)),
        )

    def _candidates(self, i: int) -> Sequence[int]:
        if self.fixed:
            return self.fixed[i : i + 1]
        count = self.machine.processors
        if count <= MANY:
            return range(count)
        near = {self.where[j] for j in self.todo[i].needs}
        for p in list(near):
            near.update(self.machine.topology.neighbours[p][:MANY])
        idle = next((p for p in range(count) if p not in self.touched), 0)
        return sorted({*near, idle})

    def _finish(self, i: int, p: int, work: float) -> float:
        """When task i would be done on processor p, if its messages did not hinder each other."""
        ready = 0.0
        for j in self.todo[i].needs:
            ready = max(ready, self._arrival(j, p))
        return self.processors[p].free(ready, work) + work

    def _arrival(self, j: int, p: int) -> float:
        if self.where[j] == p:
            return self.finish[j]
        if (j, p) in self.sent:
            return self.sent[j, p].arrival
        hops = self._hops(j, p)
        return hops[-1].finish

    def _hops(self, j: int, p: int) -> list[Hop]:
        now, length = self.finish[j], self.machine.message(self.todo[j].gives)
        hops = []
        for channel in self.machine.topology.route(self.where[j], p):
            begin = together(self._tables(channel, self.where[j], p), now, length) if length else now
            now = begin + length
            hops.append(Hop(channel, begin, now))
        return hops

    def _tables(self, channel: tuple[int, int], source: int, target: int) -> list[Timetable]:
        found = [self.channels.setdefault(channel, Timetable())]
        if not self.machine.overlapped:
            ends = (source, target) if self.machine.topology.bus else channel
            found += [self.processors[e] for e in ends]
        return found

    def _put(self, i: int, p: int, work: float) -> None:
        ready = 0.0
        for j in sorted(self.todo[i].needs, key=lambda j: (self.finish[j], j)):
            if self.where[j] != p and (j, p) not in self.sent:
                hops = self._hops(j, p)
                for hop in hops:
                    for timetable in self._tables(hop.channel, self.where[j], p):
                        timetable.take(hop.start, hop.finish)
                self.sent[j, p] = Message(j, self.where[j], p, self.todo[j].gives, tuple(hops))
            ready = max(ready, self._arrival(j, p))
        begin = self.processors[p].free(ready, work)
        self.processors[p].take(begin, begin + work)
        self.touched.add(p)
        self.where[i], self.start[i], self.finish[i] = p, begin, begin + work
