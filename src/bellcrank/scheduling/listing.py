"""List scheduling with insertion (HEFT) and local search: each ready task goes where it finishes first.

Tasks are ordered by their longest path to the end, messages included (H. Topcuoglu, S. Hariri, M. Y. Wu,
Performance-effective and low-complexity task scheduling for heterogeneous computing, IEEE Trans. Parallel and
Distributed Systems 13, 2002). A search then tries other weights for messages, the order of the best schedule reversed
in time, higher priorities for the critical tasks, and critical tasks moved to the processors of their neighbours. The
shortest schedule is kept; one processor is used if nothing beats it. The same graph and machine always give the same
schedule: effort is counted, never timed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from bellcrank.graph import Graph, Recursion
from bellcrank.scheduling import places
from bellcrank.scheduling.lockstep import in_step
from bellcrank.scheduling.machines import Machine
from bellcrank.scheduling.placing import MANY_PROCESSORS, Placement, Plan, Timetable
from bellcrank.scheduling.task import Tasks, tasks
from bellcrank.scheduling.timetable import Schedule

EFFORT = 300_000  # value look-ups in total: a second or two
EFFORT_ONCE = 1_000_000  # look-ups for a single round, or for the number of processors: some seconds
EFFORT_PLACES = 3_000_000  # look-ups for a recursion that is not scheduled operation by operation
WEIGHTS = (1.0, 0.0, 3.0, 10.0)
SMALLEST_PART = 4  # processors; the smallest part of a large machine that is tried
PATIENCE = 16  # rounds without improvement
MOST_WRITTEN = 100_000  # operations; larger recursions are scheduled place by place


def schedule(graph: Graph, machine: Machine, level: str = "cluster") -> Schedule:
    """Return the schedule of a graph on a machine.

    On a warp single operations are scheduled, because only they can be the same in all lanes. A large recursion is
    scheduled place by place: by clusters, or, if those are too many, by all operations of a place for one channel.

    Parameters
    ----------
    graph
        The graph.
    machine
        The machine.
    level
        Tasks: "cluster", "node", or "auto", the best of all sizes that are affordable.
    """
    if isinstance(graph, Recursion) and by_places(graph, machine):
        fine = places.tasks(graph, "cluster" if level == "auto" else level)
        if level != "auto" or affordable(fine, machine, EFFORT_PLACES):
            return laid_out(fine, machine)
        return laid_out(places.tasks(graph, "place"), machine)
    if machine.topology.lockstep:
        return laid_out(tasks(graph, "node"), machine)
    if level != "auto":
        return laid_out(tasks(graph, level), machine)
    found = [laid_out(todo, machine) for todo in sizes(graph, machine)]
    return min(found, key=lambda s: s.makespan)


def by_places(r: Recursion, machine: Machine) -> bool:
    """Return true if recursion `r` is too large to be written out and the `machine` does not require it."""
    return not machine.topology.lockstep and r.count().arithmetic > MOST_WRITTEN


def sizes(graph: Graph, machine: Machine) -> Iterator[Tasks]:
    """Yield clusters, clusters cut into pieces, and single operations, if one round takes seconds at most.

    Parameters
    ----------
    graph
        The graph.
    machine
        The machine.
    """
    clusters = tasks(graph)
    yield clusters
    if machine.processors == 1:
        return
    work = graph.work(machine.cost)
    fair = work / machine.processors
    seen = {len(clusters)}
    for pieces in (8, 64):
        cut = tasks(graph, "cluster", grain=fair / pieces, cost=machine.cost)
        if len(cut) not in seen and affordable(cut, machine):
            seen.add(len(cut))
            yield cut
    single = tasks(graph, "node")
    if affordable(single, machine):
        yield single


def affordable(todo: Tasks, machine: Machine, effort: float = EFFORT_ONCE) -> bool:
    """Return true if one round of scheduling stays within an effort.

    Parameters
    ----------
    todo
        The tasks.
    machine
        The machine.
    effort
        Number of value look-ups.
    """
    plan = Plan(todo, machine)
    return plan.effort(plan.candidates) <= effort


def laid_out(todo: Tasks, machine: Machine) -> Schedule:
    """Return the best schedule found for the tasks `todo` on a `machine`."""
    if machine.processors == 1 or not len(todo):
        return alone(todo, machine)
    if machine.topology.lockstep:
        return min(alone(todo, machine), in_step(todo, machine), key=lambda s: s.makespan)
    return _Search(Plan(todo, machine)).best


def alone(todo: Tasks, machine: Machine) -> Schedule:
    """Return the schedule of the tasks `todo` with everything on the first processor of a `machine`."""
    start, finish, now = [], [], 0.0
    for task in todo:
        start.append(now)
        now += task.work(machine.cost)
        finish.append(now)
    return Schedule(todo, machine, (0,) * len(todo), tuple(start), tuple(finish), ())


def urgency(plan: Plan, weight: float = 1.0, boost: Sequence[float] = (), where: Sequence[int] = ()) -> list[float]:
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


def followed(todo: Tasks, machine: Machine, where: Sequence[int]) -> Schedule:
    """Return the schedule of a program with fixed processors and a fixed order on each.

    Tasks without work, such as the forwarding of a value, do not wait for the task before.

    Parameters
    ----------
    todo
        The tasks, in order.
    machine
        The machine.
    where
        Processor of each task.
    """
    place = Placement(Plan(todo, machine))
    last = [0.0] * machine.processors
    for task in todo:
        i, p = task.index, where[task.index]
        place.put(i, p, last[p] if task.nodes else 0.0)
        if task.nodes:
            last[p] = place.finish[i]
    return place.done()


def from_the_end(plan: Plan, s: Schedule) -> list[float]:
    """Return for each task of `plan` how long before the end it must start, by running schedule `s` backwards.

    The task that ends last is placed last, and every task as late as possible.
    """
    processors = [Timetable() for _ in range(plan.machine.processors)]
    before = [0.0] * len(plan)
    for i in sorted(range(len(plan)), key=lambda i: (-s.finish[i], -i)):
        ready = 0.0
        for u in plan.users[i]:
            ready = max(ready, before[u] + plan.send[i] * plan.distance(s.where[i], s.where[u]))
        begin = processors[s.where[i]].free(ready, plan.work[i])
        before[i] = begin + plan.work[i]
        processors[s.where[i]].take(begin, before[i])
    return before


class _Search:
    def __init__(self, plan: Plan) -> None:
        self.plan, self.left = plan, float(EFFORT)
        self.region: Sequence[int] = ()  # the best part of the machine; empty for all processors
        self.best = alone(plan.todo, plan.machine)
        self.floor = self.best.bound * (1.0 + 1e-9)
        self._weights()
        if self.best.used > 1:
            self._orders()
            self._moves()

    def _try(self, rank: Sequence[float], where: Sequence[int] = (), region: Sequence[int] = ()) -> bool:
        """Return true if the new schedule is shorter than the best, which it then replaces."""
        region = region or self.region
        self.left -= self.plan.edges if where else self.plan.effort(len(region) or self.plan.candidates)
        order = sorted(range(len(self.plan)), key=lambda i: (-rank[i], i))
        found = Placement(self.plan, region).run(order, where)
        if found.makespan >= self.best.makespan * (1.0 - 1e-12):
            return False
        self.best = found
        return True

    @property
    def _done(self) -> bool:
        return self.left <= 0.0 or self.best.makespan <= self.floor

    def _weights(self) -> None:
        free = not any(self.plan.send)
        # A part of a large machine may do better than all of it.
        if self.plan.machine.processors > MANY_PROCESSORS and not free:
            self._regions()
        for weight in WEIGHTS[: 1 if free else None]:
            if not self._done:
                self._try(urgency(self.plan, weight))

    def _regions(self) -> None:
        """Double the number of processors while that is better and affordable; then try half as many more."""
        rank, size, left = urgency(self.plan), SMALLEST_PART, EFFORT_ONCE - self.plan.effort(SMALLEST_PART)
        while self._part(rank, size):
            size *= 2
            left -= self.plan.effort(size)
            if left < 0.0:
                return
        if size > SMALLEST_PART:
            self._part(rank, 3 * size // 4)

    def _part(self, rank: Sequence[float], size: int) -> bool:
        """Return true if this many adjacent processors do better than the best so far."""
        region = self.plan.region(size)
        better = len(region) == size and self._try(rank, (), region)
        if better:
            self.region = region
        return better

    def _orders(self) -> None:
        boost, idle = [1.0] * len(self.plan), 0
        while idle < PATIENCE and not self._done:
            gained = not idle and self._try(from_the_end(self.plan, self.best), self.best.where)
            gained = (not idle and self._try(urgency(self.plan, 1.0, (), self.best.where))) or gained
            for i in self._deciding():
                boost[i] *= 1.1
            gained = self._try(urgency(self.plan, WEIGHTS[idle % len(WEIGHTS)], boost)) or gained
            idle = 0 if gained else idle + 1

    def _moves(self) -> None:
        """Move critical tasks of one processor, all or one by one, to the processors of their arguments or users."""
        tried: set[tuple[tuple[int, ...], int]] = set()
        while not self._done:
            for group, p in self._suggested():
                if (group, p) in tried:
                    continue
                tried.add((group, p))
                where = list(self.best.where)
                for i in group:
                    where[i] = p
                if self._try(urgency(self.plan, 1.0, (), where), where):
                    tried.clear()
                    break
                if self._done:
                    return
            else:
                return

    def _deciding(self) -> list[int]:
        """Return the tasks of the critical chain, and those whose messages are in it."""
        return list(dict.fromkeys(link.task for link in self.best.chain))

    def _suggested(self) -> list[tuple[tuple[int, ...], int]]:
        where = self.best.where
        found: dict[tuple[tuple[int, ...], int], None] = {}
        for p, run in groupby(self._deciding(), key=lambda i: where[i]):
            chain = tuple(run)
            for i in chain:
                for j in (*self.plan.needs[i], *self.plan.users[i]):
                    if where[j] != p:
                        found[(i,), where[j]] = None
                        found[(j,), p] = None
                        found[chain, where[j]] = None
        return list(found)
