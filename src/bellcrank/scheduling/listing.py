"""List scheduling: the most urgent task that is ready goes where it finishes first, into a gap if there is one.

Urgent is what has the longest way to the end before it, messages included (H. Topcuoglu, S. Hariri, M. Y. Wu,
Performance-effective and low-complexity task scheduling for heterogeneous computing, IEEE Trans. Parallel and
Distributed Systems 13, 2002). Then it is tried again: with other weights for messages, in the order that the best
schedule so far would have if it were run from its end, with the tasks that decide its length more urgent, and with
those moved to the processors of their neighbours. The shortest is kept, and if nothing beats one processor, one
processor it is. The same graph and machine give the same schedule every time: effort is counted, never timed.
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

EFFORT = 300_000  # values that are looked up, in all: a second or two
EFFORT_ONCE = 1_000_000  # as many for a single round, or to find out how many processors to use: some seconds
EFFORT_PLACES = 3_000_000  # and of a recursion that is not laid out operation by operation
WEIGHTS = (1.0, 0.0, 3.0, 10.0)
SMALLEST_PART = 4  # processors: the smallest part of a large machine that is tried
PATIENCE = 16  # rounds without gain
MOST_WRITTEN = 100_000  # operations of a recursion that are laid out one by one


def schedule(graph: Graph, machine: Machine, level: str = "cluster") -> Schedule:
    """A graph laid out on a machine, by "cluster", "node", or "auto": the best of all sizes that are affordable.

    On a warp it is always by node: only single operations can be the same in all lanes. A large recursion is laid out
    place by place: by clusters, or if those are too many, by all that a place does for a channel.
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
    """Whether it is too large to be written out, and need not be."""
    return not machine.topology.lockstep and r.count().arithmetic > MOST_WRITTEN


def sizes(graph: Graph, machine: Machine) -> Iterator[Tasks]:
    """Clusters, clusters cut to pieces, and single operations: as long as one round of them takes seconds."""
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
    plan = Plan(todo, machine)
    return plan.effort(plan.candidates) <= effort


def laid_out(todo: Tasks, machine: Machine) -> Schedule:
    if machine.processors == 1 or not len(todo):
        return alone(todo, machine)
    if machine.topology.lockstep:
        return min(alone(todo, machine), in_step(todo, machine), key=lambda s: s.makespan)
    return _Search(Plan(todo, machine)).best


def alone(todo: Tasks, machine: Machine) -> Schedule:
    """All on the first processor."""
    start, finish, now = [], [], 0.0
    for task in todo:
        start.append(now)
        now += task.work(machine.cost)
        finish.append(now)
    return Schedule(todo, machine, (0,) * len(todo), tuple(start), tuple(finish), ())


def urgency(plan: Plan, weight: float = 1.0, boost: Sequence[float] = (), where: Sequence[int] = ()) -> list[float]:
    """The longest way from the start of each task to the end. With `where`, only messages that are sent count."""
    rank = [0.0] * len(plan)
    for i in reversed(range(len(plan))):
        rank[i] += plan.work[i] * (boost[i] if boost else 1.0)
        for j in plan.needs[i]:
            hops = plan.distance(where[j], where[i]) if where else 1
            rank[j] = max(rank[j], rank[i] + weight * plan.send[j] * hops)
    return rank


def followed(todo: Tasks, machine: Machine, where: Sequence[int]) -> Schedule:
    """Every task on the processor it is given, and none before the one that stands before it there: how a program
    that somebody wrote for each processor runs. Tasks without work, such as passing a value on, wait for nobody.
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
    """How long before the end each task must start, if what ends last is put last and everything as late as can be."""
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
        self.region: Sequence[int] = ()  # all processors, or those that did best
        self.best = alone(plan.todo, plan.machine)
        self.floor = self.best.bound * (1.0 + 1e-9)
        self._weights()
        if self.best.used > 1:
            self._orders()
            self._moves()

    def _try(self, rank: Sequence[float], where: Sequence[int] = (), region: Sequence[int] = ()) -> bool:
        """Whether this is shorter than the best."""
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
        # A corner of a large machine may do better than all of it.
        if self.plan.machine.processors > MANY_PROCESSORS and not free:
            self._regions()
        for weight in WEIGHTS[: 1 if free else None]:
            if not self._done:
                self._try(urgency(self.plan, weight))

    def _regions(self) -> None:
        """Twice as many processors each time, as long as that is better and affordable; then half as many more."""
        rank, size, left = urgency(self.plan), SMALLEST_PART, EFFORT_ONCE - self.plan.effort(SMALLEST_PART)
        while self._part(rank, size):
            size *= 2
            left -= self.plan.effort(size)
            if left < 0.0:
                return
        if size > SMALLEST_PART:
            self._part(rank, 3 * size // 4)

    def _part(self, rank: Sequence[float], size: int) -> bool:
        """Whether so many processors close together do better than what was tried before."""
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
        """What the critical chain does on one processor, all of it or one task, to where its arguments or users are."""
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
        """Tasks of the critical path, and those whose messages are in it: in somebody's way, maybe."""
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
