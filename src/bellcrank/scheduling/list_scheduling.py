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
from itertools import accumulate, groupby

from bellcrank.graph import Graph, Recursion
from bellcrank.scheduling import recursion_tasks
from bellcrank.scheduling.lockstep import lockstep_schedule
from bellcrank.scheduling.machines import Machine
from bellcrank.scheduling.placement import MANY_PROCESSORS, Occupancy, Placement, Plan, upward_rank
from bellcrank.scheduling.task import Tasks, tasks
from bellcrank.scheduling.timetable import Schedule

EFFORT_LOOKUPS = 300_000  # value look-ups in total: a second or two
EFFORT_LOOKUPS_ROUND = 1_000_000  # look-ups for a single round, or for the number of processors: some seconds
EFFORT_LOOKUPS_PLACES = 3_000_000  # look-ups for a recursion that is not scheduled operation by operation
MESSAGE_WEIGHTS = (1.0, 0.0, 3.0, 10.0)
MIN_PART_PROCESSORS = 4  # processors; the smallest part of a large machine that is tried
MAX_IDLE_ROUNDS = 16  # rounds without improvement
MAX_SINGLE_OPERATIONS = 100_000  # operations; larger recursions are scheduled place by place


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
    if isinstance(graph, Recursion) and is_place_scheduled(graph, machine):
        fine = recursion_tasks.tasks(graph, "cluster" if level == "auto" else level)
        if level != "auto" or is_affordable(fine, machine, EFFORT_LOOKUPS_PLACES):
            return list_schedule(fine, machine)
        return list_schedule(recursion_tasks.tasks(graph, "place"), machine)
    if machine.topology.lockstep:
        return list_schedule(tasks(graph, "node"), machine)
    if level != "auto":
        return list_schedule(tasks(graph, level), machine)
    candidates = [list_schedule(todo, machine) for todo in task_sizes(graph, machine)]
    return min(candidates, key=lambda s: s.makespan)


def is_place_scheduled(r: Recursion, machine: Machine) -> bool:
    """Return true if recursion `r` is too large to be written out and the `machine` does not require it."""
    return not machine.topology.lockstep and r.count().arithmetic > MAX_SINGLE_OPERATIONS


def task_sizes(graph: Graph, machine: Machine) -> Iterator[Tasks]:
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
    single = tasks(graph, "node")
    seen = {len(clusters), len(single)}
    for pieces in (8, 64):
        cut = tasks(graph, "cluster", grain=fair / pieces, cost=machine.cost)
        if len(cut) not in seen and is_affordable(cut, machine):
            seen.add(len(cut))
            yield cut
    if is_affordable(single, machine):
        yield single


def is_affordable(todo: Tasks, machine: Machine, effort: float = EFFORT_LOOKUPS_ROUND) -> bool:
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


def list_schedule(todo: Tasks, machine: Machine) -> Schedule:
    """Return the best schedule found for the tasks `todo` on a `machine`."""
    if machine.processors == 1 or not len(todo):
        return single_processor(todo, machine)
    if machine.topology.lockstep:
        return min(single_processor(todo, machine), lockstep_schedule(todo, machine), key=lambda s: s.makespan)
    return _Search(Plan(todo, machine)).best


def single_processor(todo: Tasks, machine: Machine) -> Schedule:
    """Return the schedule of the tasks `todo` with everything on the first processor of a `machine`."""
    times = tuple(accumulate((task.work(machine.cost) for task in todo), initial=0.0))
    return Schedule(todo, machine, (0,) * len(todo), times[:-1], times[1:], ())


def fixed_order_schedule(todo: Tasks, machine: Machine, where: Sequence[int]) -> Schedule:
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
    return place.schedule()


def reverse_rank(plan: Plan, s: Schedule) -> list[float]:
    """Return for each task of `plan` how long before the end it must start, by running schedule `s` backwards.

    The task that ends last is placed last, and every task as late as possible.
    """
    timetables = [Occupancy() for _ in range(plan.machine.processors)]
    latest_start = [0.0] * len(plan)
    for i in sorted(range(len(plan)), key=lambda i: (-s.finish[i], -i)):
        ready = 0.0
        for u in plan.users[i]:
            ready = max(ready, latest_start[u] + plan.send[i] * plan.distance(s.where[i], s.where[u]))
        begin = timetables[s.where[i]].free(ready, plan.work[i])
        latest_start[i] = begin + plan.work[i]
        timetables[s.where[i]].take(begin, latest_start[i])
    return latest_start


class _Search:
    def __init__(self, plan: Plan) -> None:
        self.plan, self.effort_left = plan, float(EFFORT_LOOKUPS)
        self.region: Sequence[int] = ()  # the best part of the machine; empty for all processors
        self.best = single_processor(plan.todo, plan.machine)
        self.floor = self.best.bound * (1.0 + 1e-9)
        self._weights()
        if self.best.used > 1:
            self._orders()
            self._moves()

    def _try(self, rank: Sequence[float], where: Sequence[int] = (), region: Sequence[int] = ()) -> bool:
        """Return true if the new schedule is shorter than the best, which it then replaces."""
        region = region or self.region
        self.effort_left -= self.plan.edges if where else self.plan.effort(len(region) or self.plan.candidates)
        order = sorted(range(len(self.plan)), key=lambda i: (-rank[i], i))
        schedule = Placement(self.plan, region).run(order, where)
        if schedule.makespan >= self.best.makespan * (1.0 - 1e-12):
            return False
        self.best = schedule
        return True

    @property
    def _is_finished(self) -> bool:
        return self.effort_left <= 0.0 or self.best.makespan <= self.floor

    def _weights(self) -> None:
        free = not any(self.plan.send)
        # A part of a large machine may do better than all of it.
        if self.plan.machine.processors > MANY_PROCESSORS and not free:
            self._regions()
        for weight in MESSAGE_WEIGHTS[: 1 if free else None]:
            if not self._is_finished:
                self._try(upward_rank(self.plan, weight))

    def _regions(self) -> None:
        """Double the number of processors while that is better and affordable; then try half as many more."""
        rank, size = upward_rank(self.plan), MIN_PART_PROCESSORS
        left = EFFORT_LOOKUPS_ROUND - self.plan.effort(size)
        while self._part(rank, size):
            size *= 2
            left -= self.plan.effort(size)
            if left < 0.0:
                return
        if size > MIN_PART_PROCESSORS:
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
        while idle < MAX_IDLE_ROUNDS and not self._is_finished:
            improved = not idle and self._try(reverse_rank(self.plan, self.best), self.best.where)
            improved = (not idle and self._try(upward_rank(self.plan, 1.0, (), self.best.where))) or improved
            for i in self._critical_tasks():
                boost[i] *= 1.1
            improved = (
                self._try(upward_rank(self.plan, MESSAGE_WEIGHTS[idle % len(MESSAGE_WEIGHTS)], boost)) or improved
            )
            idle = 0 if improved else idle + 1

    def _moves(self) -> None:
        """Move critical tasks of one processor, all or one by one, to the processors of their arguments or users."""
        tried: set[tuple[tuple[int, ...], int]] = set()
        while not self._is_finished:
            for group, p in self._suggested_moves():
                if (group, p) in tried:
                    continue
                tried.add((group, p))
                where = list(self.best.where)
                for i in group:
                    where[i] = p
                if self._try(upward_rank(self.plan, 1.0, (), where), where):
                    tried.clear()
                    break
                if self._is_finished:
                    return
            else:
                return

    def _critical_tasks(self) -> list[int]:
        """Return the tasks of the critical chain, and those whose messages are in it."""
        return list(dict.fromkeys(link.task for link in self.best.chain))

    def _suggested_moves(self) -> list[tuple[tuple[int, ...], int]]:
        where = self.best.where
        moves: dict[tuple[tuple[int, ...], int], None] = {}
        for p, run in groupby(self._critical_tasks(), key=lambda i: where[i]):
            chain = tuple(run)
            for i in chain:
                for j in (*self.plan.needs[i], *self.plan.users[i]):
                    if where[j] != p:
                        moves[(i,), where[j]] = None
                        moves[(j,), p] = None
                        moves[chain, where[j]] = None
        return list(moves)
