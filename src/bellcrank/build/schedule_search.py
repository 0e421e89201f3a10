"""Search for the shortest schedule: method, frame of projection and size of the tasks, on one machine.

The method with the fewest operations is seldom the one with the shortest schedule: on many processors the longest chain
of dependent operations decides, on few processors also the messages. The search is a branch and bound:

1. Trace every method that applies, the cheapest ones first, within a limit of operations.
2. Bound: no schedule is shorter than work / p, than the span, or, with tasks of a given size, than the longest chain of
   tasks. Candidates whose bound is not below the best makespan are left out, and nothing is lost.
3. Screen: one schedule of each remaining candidate, by a single pass.
4. Improve: the full search of list_scheduling.py for the best of them, and for all sizes of tasks of the method with
   the fewest operations, so that the result is never longer than its schedule.

Effort is counted, never timed, so the same call always has the same result. The result lists all candidates, also those
that a limit leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.build import graphs, policy
from bellcrank.dynamics import Method
from bellcrank.dynamics.method_table import applicable_methods
from bellcrank.dynamics.quantities import Request
from bellcrank.graph import Graph, Recursion
from bellcrank.model import Mechanism
from bellcrank.progress import progress_bar
from bellcrank.scheduling import Machine, Schedule, Tasks, list_schedule, list_scheduling, tasks
from bellcrank.scheduling.placement import Placement, Plan, upward_rank

MAX_TRACED_OPERATIONS = 300_000  # operations of all methods that are traced
MAX_SCREEN_LOOKUPS = 3_000_000  # value look-ups of all first passes
MAX_IMPROVED = 3  # candidates with a full search
TRACING_SHARE, SCREENING_SHARE = 0.2, 0.4  # shares of the progress bar
BY_BOUND, BY_LIMIT, BY_SCREENING = "not shorter, by its bound", "not tried: limit of work", "first pass only"


@dataclass(frozen=True)
class Candidate:
    """One combination of method, frame of projection and size of the tasks.

    Parameters
    ----------
    method : str
        Name of the method.
    projection : str
        Frame of projection; empty where the method has no choice.
    level : str
        Size of the tasks: "cluster", "piece" (of a cluster), "node" or "place"; empty if no size was examined.
    tasks : int
        Number of tasks; 0 if no size was examined.
    operations : int
        Operations of the method, estimated where it was not traced.
    bound : float
        Lower bound of the makespan; 0 where the method was not traced.
    makespan : float or None
        Makespan of its best schedule, if it has one.
    remark : str
        Why it was not tried further; empty after a full search.
    """

    method: str
    projection: str
    level: str
    tasks: int
    operations: int
    bound: float
    makespan: float | None = None
    remark: str = ""

    @property
    def name(self) -> str:
        """Method with its frame of projection."""
        return f"{self.method}, {self.projection} frame" if self.projection else self.method


@dataclass(frozen=True)
class SearchResult:
    """Shortest schedule, its candidate, and all candidates with the shortest makespans first."""

    schedule: Schedule
    winner: Candidate
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Variant:
    """A graph to be scheduled, with the name of its method and its frame of projection."""

    method: str
    projection: str
    graph: Graph

    def candidate(self, machine: Machine) -> Candidate:
        """Return the candidate for a `machine`, before any size of tasks is examined."""
        bound = max(self.graph.work(machine.cost) / machine.processors, self.graph.span(machine.cost))
        return Candidate(self.method, self.projection, "", 0, self.graph.count().arithmetic, bound)


def search(
    mechanism: Mechanism, request: Request, machine: Machine, level: str = "auto", progress: Any = None
) -> SearchResult:
    """Return the shortest schedule of a request over methods, frames of projection and sizes of tasks.

    Parameters
    ----------
    mechanism
        The mechanism.
    request
        The quantity and its options, with method "auto".
    machine
        The machine.
    level
        "cluster", "node", or "auto" for all sizes.
    progress
        Function of the share done, False for silence, True or None for a bar on a terminal after a second.
    """
    with progress_bar(f"schedules of {request.quantity}", progress, "") as update:
        show = update or (lambda share: None)
        variants, omitted = _traced(mechanism, request, show)
        return shortest(variants, machine, level, show, omitted)


def shortest(
    variants: Sequence[Variant],
    machine: Machine,
    level: str = "auto",
    show: Callable[[float], None] = lambda share: None,
    omitted: Sequence[Candidate] = (),
) -> SearchResult:
    """Return the shortest schedule of several graphs.

    Parameters
    ----------
    variants
        The graphs.
    machine
        The machine.
    level
        "cluster", "node", or "auto" for all sizes.
    show
        Function of the share done.
    omitted
        Further candidates to list, which are not tried.
    """
    trials = _Trials(machine, level, variants)
    trials.screen(show)
    trials.improve(show)
    return trials.result(omitted)


def _traced(
    mechanism: Mechanism, request: Request, show: Callable[[float], None]
) -> tuple[list[Variant], list[Candidate]]:
    """Return the variants of all methods within the limit of work, and candidates for the others."""
    strategy = graphs.checked_strategy(mechanism, request)
    plans = {p.method.name: p for p in strategy.plans}  # those that a kernel would choose from: traced in any case
    required = set(plans)
    if all(p.form == policy.STRAIGHT for p in strategy.plans) and not strategy.dropped:
        plans |= {m.name: policy.plan(mechanism, request, m) for m in _accurate_methods(mechanism, request)}
    variants: list[Variant] = []
    omitted: list[Candidate] = []
    traced = 0.0
    order = sorted(plans.values(), key=lambda p: (p.method.name not in required, p.work, p.method.name))
    for k, plan in enumerate(order):
        if traced + plan.work > MAX_TRACED_OPERATIONS and plan.method.name not in required:
            omitted.append(Candidate(plan.method.name, "", "", 0, round(plan.work), 0.0, None, BY_LIMIT))
            continue
        for variant in _variants(mechanism, request, plan):
            variants.append(variant)
            traced += variant.graph.count().arithmetic
        show(TRACING_SHARE * (k + 1) / len(order))
    return variants, omitted


def _accurate_methods(mechanism: Mechanism, request: Request) -> list[Method]:
    """Return the methods for a request that are about as accurate as the best one."""
    able = applicable_methods(request.quantity, mechanism.tree)
    if request.quantity != "forward_dynamics" or mechanism.tree.has_massive_bodies:
        return able
    from bellcrank.build.rounding_doubts import accurate_methods

    return accurate_methods(mechanism, able)


def _variants(mechanism: Mechanism, request: Request, plan: policy.Plan) -> Iterator[Variant]:
    """Yield the graphs of a method, one for each frame of projection."""
    for projection in plan.method.projections or ("",):
        by = plan.method.projected(projection) if projection else plan.method
        graph = graphs.flat_graph(graphs.trace_plan(mechanism, request, replace(plan, method=by)))
        yield Variant(plan.method.name, projection, graph)


@dataclass
class _Trial:
    """A candidate with its schedule so far, and the tasks to improve it with."""

    candidate: Candidate
    schedule: Schedule | None = None
    todo: Tasks | None = None


class _Trials:
    """Branch and bound over variants and sizes of tasks."""

    def __init__(self, machine: Machine, level: str, variants: Sequence[Variant]) -> None:
        self.machine, self.level = machine, level
        found = sorted(((v.graph, v.candidate(machine)) for v in variants), key=lambda x: (x[1].bound, x[1].operations))
        self.leanest = min(found, key=lambda x: x[1].operations)[1]
        self.variants = sorted(found, key=lambda x: x[1] is not self.leanest)
        self.lookups_left = float(MAX_SCREEN_LOOKUPS)
        self.trials: list[_Trial] = []
        self.shortest = float("inf")

    def screen(self, show: Callable[[float], None]) -> None:
        """Lay out every candidate that its bound or the limit of work does not exclude, by one pass."""
        for k, (graph, candidate) in enumerate(self.variants):
            if candidate.bound >= self.shortest:
                self.trials.append(_Trial(replace(candidate, remark=BY_BOUND)))
            elif self._is_whole(graph):
                self._screen_whole(graph, candidate)
            else:
                for name, todo in self._sizes(graph):
                    self._screen_size(replace(candidate, level=name, tasks=len(todo)), todo)
            show(TRACING_SHARE + SCREENING_SHARE * (k + 1) / len(self.variants))

    def improve(self, show: Callable[[float], None]) -> None:
        """Search the best candidates, and the method with the fewest operations, in full."""
        laid_out = [t for t in self.trials if t.schedule is not None]
        laid_out.sort(key=lambda t: t.schedule.makespan if t.schedule else 0.0)
        lean = [t for t in laid_out if t.candidate.name == self.leanest.name]
        chosen = laid_out[:MAX_IMPROVED] + [t for t in lean if t not in laid_out[:MAX_IMPROVED]]
        for k, trial in enumerate(chosen):
            if trial.todo is not None:
                before = trial.schedule
                assert before is not None
                trial.candidate = replace(trial.candidate, remark="")
                better = list_schedule(trial.todo, self.machine) if trial.candidate.bound < before.makespan else before
                self._set(trial, min(before, better, key=lambda s: s.makespan))
            show(TRACING_SHARE + SCREENING_SHARE + (1 - TRACING_SHARE - SCREENING_SHARE) * (k + 1) / len(chosen))

    def result(self, omitted: Sequence[Candidate]) -> SearchResult:
        """Return the best trial, and all candidates."""
        best = min((t for t in self.trials if t.schedule is not None), key=self._makespan)
        assert best.schedule is not None
        order = sorted(self.trials, key=lambda t: (self._makespan(t), t.candidate.bound, t.candidate.operations))
        return SearchResult(best.schedule, best.candidate, (*(t.candidate for t in order), *omitted))

    def _is_whole(self, graph: Graph) -> bool:
        """Return whether the scheduler chooses the tasks of a graph on this machine by itself."""
        if self.machine.topology.lockstep or self.machine.processors == 1:
            return True
        return isinstance(graph, Recursion) and list_scheduling.is_place_scheduled(graph, self.machine)

    def _sizes(self, graph: Graph) -> Iterator[tuple[str, Tasks]]:
        """Yield the tasks of a graph in all sizes, with a name for each size."""
        if self.level != "auto":
            yield self.level, tasks(graph, self.level)
            return
        for k, todo in enumerate(list_scheduling.task_sizes(graph, self.machine)):
            yield "piece" if k and todo.level == "cluster" else todo.level, todo

    def _screen_whole(self, graph: Graph, candidate: Candidate) -> None:
        if self.machine.topology.lockstep:
            self.lookups_left -= candidate.operations * self.machine.processors
        if self.lookups_left < 0.0 and candidate is not self.leanest:
            self.trials.append(_Trial(replace(candidate, remark=BY_LIMIT)))
            return
        s = list_scheduling.schedule(graph, self.machine, self.level)
        self._add(_Trial(replace(candidate, level=s.tasks.level, tasks=len(s.tasks))), s)

    def _screen_size(self, candidate: Candidate, todo: Tasks) -> None:
        plan = Plan(todo, self.machine)
        candidate = replace(candidate, bound=max(candidate.bound, max(upward_rank(plan, 0.0), default=0.0)))
        self.lookups_left -= plan.effort(plan.candidates)
        if candidate.bound >= self.shortest:
            self.trials.append(_Trial(replace(candidate, remark=BY_BOUND)))
        elif self.lookups_left < 0.0 and candidate.name != self.leanest.name:
            self.trials.append(_Trial(replace(candidate, remark=BY_LIMIT)))
        else:
            rank = upward_rank(plan)
            order = sorted(range(len(plan)), key=lambda i: (-rank[i], i))
            self._add(_Trial(replace(candidate, remark=BY_SCREENING), todo=todo), Placement(plan).run(order))

    def _add(self, trial: _Trial, schedule: Schedule) -> None:
        self.trials.append(trial)
        self._set(trial, schedule)

    def _set(self, trial: _Trial, schedule: Schedule) -> None:
        trial.schedule, trial.candidate = schedule, replace(trial.candidate, makespan=schedule.makespan)
        self.shortest = min(self.shortest, schedule.makespan)

    @staticmethod
    def _makespan(trial: _Trial) -> float:
        return trial.schedule.makespan if trial.schedule is not None else float("inf")
