"""Programs of the processors of a schedule: what each one computes, sends and receives, and the check of all programs.

    Schedule --processor_programs--> one list of steps for each processor --> threads, C, or a simulated machine

D. Wong (PhD thesis, University of British Columbia, 1991, section 5.4) writes such lists by hand, and the
post-processor of P. Schäfer and W. Schiehlen (Application of parallel computing to robot dynamics, 1992, section 4)
generates them in OCCAM. The translation is in program_translation.py.

The programs are checked when they are made: every value is on the processor that uses it, a message has the words of
the timetable, and no order of events leads to a deadlock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from bellcrank.graph import Graph, Node
from bellcrank.quoting import quoted_name
from bellcrank.scheduling.program_steps import Compute, Receive, Send, Step, meets
from bellcrank.scheduling.timetable import Schedule, ScheduleError

MAX_LISTED_STEPS = 6  # steps of a deadlock that a message lists
Place = tuple[int, int]  # of a step: processor, and index in its program


@dataclass(frozen=True)
class Channel:
    """A queue from one processor to another, with its messages in the order in which both ends handle them.

    Two processors have a second channel where a later message overtakes an earlier one.
    """

    source: int
    target: int
    messages: tuple[int, ...]


@dataclass(frozen=True)
class ProcessorPrograms:
    """The programs of all processors: `steps[p]` are those of processor p."""

    schedule: Schedule
    graph: Graph
    steps: tuple[tuple[Step, ...], ...]

    def __post_init__(self) -> None:
        """Raise ScheduleError if the processors could not follow the programs."""
        self._check_steps()
        self._check_order()
        for p in range(len(self.steps)):
            self._check_values(p)

    @property
    def used(self) -> list[int]:
        """Processors that have something to do."""
        return [p for p, steps in enumerate(self.steps) if steps]

    @cached_property
    def values(self) -> tuple[tuple[Node, ...], ...]:
        """Values of each message."""
        return tuple(self.schedule.tasks[m.task].values for m in self.schedule.messages)

    @cached_property
    def owned_inputs(self) -> dict[int, int]:
        """Inputs that one task supplies, by serial number, with its processor; all others are known everywhere."""
        where = self.schedule.where
        return {x.serial: where[task.index] for task in self.schedule.tasks if task.owns_inputs for x in task.values}

    @cached_property
    def home(self) -> dict[int, tuple[int, int]]:
        """First task that computes each node, by serial number, and its processor; the outputs are taken from there."""
        home: dict[int, tuple[int, int]] = {}
        for task in self.schedule.tasks:
            for n in task.nodes:
                home.setdefault(n.serial, (task.index, self.schedule.where[task.index]))
        return home

    def has_end_to_end_steps(self, step: Step) -> bool:
        """Return true if `step` is at the first or the last processor of a route; others only pass a message on."""
        if isinstance(step, Compute):
            return True
        last = len(self.schedule.messages[step.message].hops) - 1
        return step.hop == (0 if isinstance(step, Send) else last)

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Channels between processors, in the order of sources and targets."""
        received = {
            step.message: i
            for steps in self.steps
            for i, step in enumerate(steps)
            if isinstance(step, Receive) and self.has_end_to_end_steps(step)
        }
        lanes: dict[tuple[int, int], list[list[int]]] = {}
        for steps in self.steps:
            for step in steps:
                if isinstance(step, Send) and step.hop == 0:
                    m = self.schedule.messages[step.message]
                    queues = lanes.setdefault((m.source, m.target), [])
                    fitting = [q for q in queues if received[q[-1]] < received[step.message]]
                    if fitting:
                        fitting[0].append(step.message)
                    else:
                        queues.append([step.message])
        return tuple(Channel(*ends, tuple(queue)) for ends in sorted(lanes) for queue in lanes[ends])

    # -- what a program must satisfy

    def _name(self, step: Step) -> str:
        if isinstance(step, Compute):
            return f"compute {quoted_name(self.schedule.tasks[step.task].name)}"
        m = self.schedule.messages[step.message]
        name = quoted_name(self.schedule.tasks[m.task].name)
        if isinstance(step, Send):
            return f"send {name} to {m.hops[step.hop].channel[1] if self.meets(step.message) else m.target}"
        return f"receive {name} from {m.hops[step.hop].channel[0] if self.meets(step.message) else m.source}"

    def meets(self, message: int) -> bool:
        """Return true if a `message` keeps both ends of a channel busy, so that they must meet."""
        return meets(self.schedule, message)

    def _check_steps(self) -> None:
        """Check that every task and every message occurs once, on its processors, with the words of the timetable."""
        s = self.schedule
        if len(self.steps) != s.machine.processors:
            raise ScheduleError(f"programs for {len(self.steps)} processors; the machine has {s.machine.processors}.")
        wanted: dict[Step, int] = {Compute(i): p for i, p in enumerate(s.where)}
        for k, m in enumerate(s.messages):
            if (count := len(s.tasks[m.task].values)) != m.words:
                raise ScheduleError(
                    f"the message of {quoted_name(s.tasks[m.task].name)} to {m.target} has {m.words} words in the "
                    f"timetable, but its task gives {count} values."
                )
            for hop in range(len(m.hops)) if self.meets(k) else (0,):
                wanted[Send(k, hop)] = m.source if hop == 0 else m.hops[hop].channel[0]
            for hop in range(len(m.hops)) if self.meets(k) else (len(m.hops) - 1,):
                wanted[Receive(k, hop)] = m.target if hop == len(m.hops) - 1 else m.hops[hop].channel[1]
        for p, steps in enumerate(self.steps):
            for step in steps:
                key: Step = Compute(step.task) if isinstance(step, Compute) else step
                if wanted.pop(key, None) != p:
                    raise ScheduleError(f"processor {p} must not {self._name(step)}, or does so twice.")
        if wanted:
            step, p = next(iter(wanted.items()))
            raise ScheduleError(f"processor {p} never comes to: {self._name(step)}.")

    def _check_order(self) -> None:
        """Check that no processor waits for one that waits for it: the steps have a common order."""
        sorter: TopologicalSorter[Place] = TopologicalSorter()
        partner: dict[tuple[int, int], Place] = {}  # place of the step that sends a message through a channel
        for p, steps in enumerate(self.steps):
            for i, step in enumerate(steps):
                sorter.add((p, i), *([(p, i - 1)] if i else []))
                if isinstance(step, Send):
                    partner[step.message, step.hop] = p, i
        for p, steps in enumerate(self.steps):
            for i, step in enumerate(steps):
                if not isinstance(step, Receive):
                    continue
                q, j = partner[step.message, step.hop if self.meets(step.message) else 0]
                sorter.add((p, i), (q, j))
                if self.meets(step.message):  # both ends are ready before either goes on
                    sorter.add((p, i), *([(q, j - 1)] if j else []))
                    if j + 1 < len(self.steps[q]):
                        sorter.add((q, j + 1), (p, i))
        try:
            sorter.prepare()
        except CycleError as error:
            raise ScheduleError(self._deadlock_text(error.args[1])) from None

    def _deadlock_text(self, cycle: Sequence[Place]) -> str:
        waits = []
        for (p, i), (q, _) in zip(cycle[1:], cycle[:-1], strict=True):
            if p != q:
                waits.append(f"processor {p} ({self._name(self.steps[p][i])})")
        more = f" and {len(waits) - MAX_LISTED_STEPS} more" if len(waits) > MAX_LISTED_STEPS else ""
        text = ", ".join(waits[:MAX_LISTED_STEPS])
        return f"the programs would deadlock: each of these waits for another: {text}{more}."

    def _check_values(self, p: int) -> None:
        """Check that every value is computed on processor p, or received by it, before it is used there."""
        known: set[int] = {serial for serial, q in self.owned_inputs.items() if q == p}
        for step in self.steps[p]:
            if isinstance(step, Compute):
                for n in self.schedule.tasks[step.task].nodes:
                    for a in n.operands:
                        self._check_known(a, known, p, step)
                    known.add(n.serial)
            elif isinstance(step, Send):
                for x in self.values[step.message]:
                    self._check_known(x, known, p, step)
            else:
                known.update(x.serial for x in self.values[step.message])

    def _check_known(self, x: Node, known: set[int], p: int, step: Step) -> None:
        if x.serial not in known and (x.op != "input" or x.serial in self.owned_inputs):
            raise ScheduleError(
                f"processor {p} cannot {self._name(step)}: it has no value of {x.op} {quoted_name(x.label)} yet; "
                "expected a task or a message that brings it before."
            )
