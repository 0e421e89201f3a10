"""Schedule: processor and time of every task, and the messages between processors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bellcrank.argument_errors import explain_methods
from bellcrank.errors import BellcrankError, check_known
from bellcrank.lazy_import import lazy_import
from bellcrank.quoting import single_line
from bellcrank.scheduling.critical_chain import Link, chain
from bellcrank.scheduling.machines import Channel, Machine, busy_ends
from bellcrank.scheduling.task import Tasks
from bellcrank.text_table import table

if TYPE_CHECKING:
    from bellcrank.scheduling.execution import Execution

CARRIERS = ("threads", "events")
RELATIVE_TIME_TOLERANCE = 1e-9  # relative to the makespan: times are sums of floats


class ScheduleError(BellcrankError):
    """A schedule that no machine could follow."""


@dataclass(frozen=True)
class Hop:
    """One channel of the route of a message, with the time of its use."""

    channel: Channel
    start: float
    finish: float


@dataclass(frozen=True)
class Message:
    """The values of one task that another processor needs, sent there once."""

    task: int
    source: int
    target: int
    words: int
    hops: tuple[Hop, ...]

    @property
    def start(self) -> float:
        """Time of departure."""
        return self.hops[0].start

    @property
    def arrival(self) -> float:
        """Time of arrival."""
        return self.hops[-1].finish


@explain_methods("check", "execute", "html", "run", "svg")
@dataclass(frozen=True)
class Schedule:
    """Processor and time of every task, and the messages between processors; html() returns its page.

    Parameters
    ----------
    tasks : Tasks
        Tasks and their dependencies.
    machine : Machine
        The machine.
    where : tuple of int
        Processor of each task.
    start, finish : tuple of float
        Times at which each task starts and ends, in the unit of the machine.
    messages : tuple of Message
        Messages between processors.
    """

    tasks: Tasks
    machine: Machine
    where: tuple[int, ...]
    start: tuple[float, ...]
    finish: tuple[float, ...]
    messages: tuple[Message, ...]

    # -- figures

    @cached_property
    def makespan(self) -> float:
        """Time at which the last task ends, in the unit of the machine."""
        return max(self.finish, default=0.0)

    @cached_property
    def work(self) -> float:
        """Time on one processor, without recomputation."""
        return self.tasks.work(self.machine.cost)

    @cached_property
    def span(self) -> float:
        """Time of the longest chain of operations: a lower bound for any number of processors."""
        return self.tasks.span(self.machine.cost)

    @property
    def bound(self) -> float:
        """Lower bound of the makespan for this number of processors."""
        return max(self.work / self.machine.processors, self.span)

    @property
    def speedup(self) -> float:
        """Ratio of the time on one processor to the makespan."""
        return self.work / self.makespan if self.makespan else 1.0

    @property
    def used(self) -> int:
        """Number of processors with at least one task."""
        return len(set(self.where))

    @property
    def efficiency(self) -> float:
        """Speed-up per processor."""
        return self.speedup / self.machine.processors

    @property
    def busy(self) -> list[float]:
        """Computing time of each processor."""
        out = [0.0] * self.machine.processors
        for p, a, b in zip(self.where, self.start, self.finish, strict=True):
            out[p] += b - a
        return out

    @property
    def idle(self) -> float:
        """Idle time of all processors together, until the last has finished."""
        return self.makespan * self.machine.processors - sum(self.busy)

    @property
    def words(self) -> int:
        """Number of words sent, counted for each hop."""
        return sum(m.words * len(m.hops) for m in self.messages)

    @cached_property
    def chain(self) -> list[Link]:
        """Critical chain: tasks and hops, each of which had to wait for the one before it."""
        return chain(self)

    @property
    def critical(self) -> list[int]:
        """Tasks of the critical chain, without those that only sent a message of it."""
        return [link.task for link in self.chain if link.message < 0]

    @property
    def _eps(self) -> float:
        return RELATIVE_TIME_TOLERANCE * max(self.makespan, 1e-300)

    # -- validity

    def check(self) -> None:
        """Raise ScheduleError if the schedule is not possible.

        Raises
        ------
        ScheduleError
            If a task starts before its values are available, or a processor or channel is used twice at the same time.
        """
        cost, eps = self.machine.cost, self._eps
        sent = {(m.task, m.target): m for m in self.messages}
        for task in self.tasks:
            i = task.index
            if self.start[i] < -eps or abs(self.finish[i] - self.start[i] - task.work(cost)) > eps:
                raise ScheduleError(f'"{task.name}" takes {self.finish[i] - self.start[i]:g} instead of its work.')
            for j in task.needs:
                ready = self.finish[j]
                if self.where[j] != self.where[i]:
                    if (j, self.where[i]) not in sent:
                        raise ScheduleError(f'"{task.name}" never receives the values of "{self.tasks[j].name}".')
                    ready = sent[j, self.where[i]].arrival
                if ready > self.start[i] + eps:
                    raise ScheduleError(
                        f'"{task.name}" starts at {self.start[i]:g}, but its values arrive at {ready:g}.'
                    )
        for m in self.messages:
            self._check_message(m)
        for what, spans in self._occupied().items():
            spans.sort()
            for (_, end, one), (begin, _, other) in pairwise(spans):
                if begin < end - eps:
                    raise ScheduleError(f"{what}: {other} begins at {begin:g}, before {one} has ended at {end:g}.")
        if self.machine.topology.lockstep:
            self._check_steps()

    def _check_steps(self) -> None:
        """Check that lanes do one operation at a time, and offer and take at most one value each in a shuffle."""
        steps: dict[tuple[float, float], set[str]] = {}
        for task, a, b in zip(self.tasks, self.start, self.finish, strict=True):
            if b > a:
                steps.setdefault((a, b), set()).update(node.op for node in task.nodes)
        offers: dict[tuple[float, int], int] = {}
        takes: set[tuple[float, int]] = set()
        for m in self.messages:
            if m.arrival <= m.start:
                continue
            steps.setdefault((m.start, m.arrival), set()).add("shuffle")
            if (m.start, m.target) in takes or offers.setdefault((m.start, m.source), m.task) != m.task:
                raise ScheduleError(f"the shuffle at {m.start:g} moves two values from or to one lane.")
            takes.add((m.start, m.target))
        for (a, _), ops in steps.items():
            if len(ops) > 1:
                raise ScheduleError(f"the lanes do {' and '.join(sorted(ops))} at the same time, {a:g}.")
        for (_, end), (begin, _) in pairwise(sorted(steps)):
            if begin < end - self._eps:
                raise ScheduleError(f"the step at {begin:g} begins before the one before has ended at {end:g}.")

    def _check_message(self, m: Message) -> None:
        route = self.machine.topology.route(m.source, m.target)
        if tuple(hop.channel for hop in m.hops) != route or self.where[m.task] != m.source:
            raise ScheduleError(f'the message of "{self.tasks[m.task].name}" to {m.target} leaves its route.')
        ready = self.finish[m.task]
        for hop in m.hops:
            if hop.start < ready - self._eps or hop.finish - hop.start < self.machine.message(m.words) - self._eps:
                raise ScheduleError(
                    f'the message of "{self.tasks[m.task].name}" to {m.target} is faster than the channel.'
                )
            ready = hop.finish

    def _occupied(self) -> dict[str, list[tuple[float, float, str]]]:
        """Return the intervals in which each resource is in use; tasks without duration occupy nothing."""
        out: dict[str, list[tuple[float, float, str]]] = {}

        def add(what: str, a: float, b: float, who: str) -> None:
            if b > a:
                out.setdefault(what, []).append((a, b, who))

        for task, p, a, b in zip(self.tasks, self.where, self.start, self.finish, strict=True):
            add(f"processor {p}", a, b, task.name)
        for m in self.messages:
            name = f"the message of {self.tasks[m.task].name}"
            for hop in m.hops:
                add(f"channel {self.machine.topology.medium(hop.channel)}", hop.start, hop.finish, name)
                for p in busy_ends(self.machine, hop.channel, m.source, m.target):
                    add(f"processor {p}", hop.start, hop.finish, name)
        return out

    # -- execution

    def run(self, *args: Any, carrier: str = "threads", **inputs: Any) -> Any:
        """Execute the schedule and return its results, as a kernel does.

        Parameters
        ----------
        *args : array_like
            Inputs, in the order of the graph, with leading batch axes; a batch is computed state by state.
        carrier : {"threads", "events"}
            "threads": a thread of this computer for every processor that has a task. "events": the simulated machine of
            `execute`.
        **inputs : array_like
            Inputs by name.

        Returns
        -------
        ndarray, float or dict
            The output, or a dict by name if there are several.

        Raises
        ------
        InputError
            If an input is missing, unknown, or of another shape, or the carrier is unknown.
        ScheduleError
            If the schedule has no operations to execute.
        CompileError
            If the threads do not start because other programs keep all cores busy.
        """
        check_known("carrier", carrier, CARRIERS)
        if carrier == "threads":
            if "_kernel" not in self.__dict__:
                self.__dict__["_kernel"] = lazy_import("build.scheduled_kernels:schedule_kernel")(self)
            return self.__dict__["_kernel"].convert(*args, **inputs)
        results = self.execute(*args, **inputs).results
        only = next(iter(results.values()))
        return dict(results) if len(results) > 1 else only if only.ndim else only[()]

    def execute(self, *args: Any, links: str = "timetable", machine: Machine | None = None, **inputs: Any) -> Execution:
        """Execute the schedule on a simulated machine, whose processors and channels take the time of the model.

        Parameters
        ----------
        *args : array_like
            Inputs, in the order of the graph, with leading batch axes.
        links : {"timetable", "fifo"}
            Order of the messages on a channel: that of the timetable, or the first that is ready.
        machine : Machine, optional
            A machine with the same topology and other costs; that of the schedule unless given.
        **inputs : array_like
            Inputs by name.

        Returns
        -------
        Execution
            The results, and the observed timetable.

        Raises
        ------
        InputError
            If an input is missing, unknown, or of another shape, or the machine has other channels.
        ScheduleError
            If the schedule has no operations to execute.
        """
        from bellcrank.scheduling.execution import execute, inputs_by_name

        return execute(self, inputs_by_name(self, args, inputs), links, machine)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, without a kernel that runs the schedule."""
        return {key: x for key, x in self.__dict__.items() if key != "_kernel"}

    # -- output

    @property
    def facts(self) -> Mapping[str, Any]:
        """All figures by name: makespan, speedup, work, span, idle, messages, ..."""
        return {
            "makespan": self.makespan, "work": self.work, "span": self.span, "bound": self.bound,
            "speedup": self.speedup, "efficiency": self.efficiency, "processors": self.machine.processors,
            "used": self.used, "idle": self.idle, "messages": len(self.messages), "words": self.words,
            "unit": self.machine.unit,
        }  # fmt: skip

    def json(self) -> str:
        """Return tasks, messages and figures as JSON.

        Returns
        -------
        str
            JSON text.
        """
        tasks = [
            {
                "name": t.name,
                "step": t.step,
                "processor": p,
                "start": a,
                "finish": b,
                "operations": t.operations,
                "needs": list(t.needs),
                "words": t.gives,
            }
            for t, p, a, b in zip(self.tasks, self.where, self.start, self.finish, strict=True)
        ]
        messages = [
            {"task": m.task, "from": m.source, "to": m.target, "words": m.words,
             "hops": [[list(h.channel), h.start, h.finish] for h in m.hops]}
            for m in self.messages
        ]  # fmt: skip
        cost = {"start": self.machine.start, "word": self.machine.word, "overlapped": self.machine.overlapped}
        about = {"graph": self.tasks.name, "level": self.tasks.level, "machine": self.machine.name, "message": cost}
        chain = {"critical": self.critical, "critical_hops": [[x.message, x.hop] for x in self.chain if x.message >= 0]}
        places = {"places": self.machine.topology.places}
        return json.dumps({**about, **self.facts, **chain, **places, "tasks": tasks, "messages": messages})

    def html(self) -> str:
        """Return an interactive, self-contained page: processors down, time across; zoom, drag, tooltips.

        Returns
        -------
        str
            HTML text.
        """
        return str(lazy_import("view.schedule_picture:html")(self))

    def svg(self) -> str:
        """Return the same chart as a static picture.

        Returns
        -------
        str
            Text of an SVG file.
        """
        return str(lazy_import("view.schedule_picture:svg")(self))

    def _repr_html_(self) -> str:
        return str(lazy_import("view.notebook:schedule")(self))

    def __repr__(self) -> str:
        return f"<Schedule of {single_line(f'{self.tasks.name} on {self.machine.name}')}: {len(self.tasks)} tasks>"

    def __str__(self) -> str:
        f, unit = self.facts, self.machine.unit
        head = f"{single_line(f'{self.tasks.name} on {self.machine.name}')}: {len(self.tasks)} tasks, "
        head += f"{f['makespan']:g} {unit}, {f['speedup']:.2f} times as fast as one processor\n\n"
        rows = []
        for p, busy in enumerate(self.busy):
            task_indices = [i for i, q in enumerate(self.where) if q == p]
            share = busy / self.makespan if self.makespan else 0.0
            rows.append((str(p), str(len(task_indices)), f"{busy:g}", f"{share:.0%}"))
        return head + table(("processor", "tasks", f"busy {unit}", "share"), rows, right=range(4))
