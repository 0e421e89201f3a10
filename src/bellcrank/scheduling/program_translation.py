"""Translation of a schedule to the programs of its processors.

A message is sent as soon as its task is complete, and received just before its first use; the links carry it meanwhile.
Where a message keeps both ends busy, the two ends meet: both have a step for every channel of the route, at the time
of the timetable, and the processors between pass it on.
"""

from __future__ import annotations

from collections.abc import Iterator

from bellcrank.graph.loop_graph import LoopGraph
from bellcrank.scheduling.processor_programs import ProcessorPrograms
from bellcrank.scheduling.program_steps import Compute, Receive, Send, Step, meets
from bellcrank.scheduling.timetable import Schedule, ScheduleError

EXECUTABLE = "Schedule a graph of at most 100,000 operations, on a machine whose tasks are operations."


def processor_programs(schedule: Schedule) -> ProcessorPrograms:
    """Return the programs of the processors of a `schedule`.

    Raises
    ------
    ScheduleError
        If the schedule has no operations to execute, or no machine could follow it.
    """
    graph = schedule.tasks.graph
    if graph is None or schedule.tasks.level == "load" or is_by_places(schedule):
        raise ScheduleError(
            f"{schedule.tasks.name}: the tasks of this schedule are loops over alike bodies, or their operations are "
            f"not known, so that it cannot be executed. {EXECUTABLE}"
        )
    plain = graph.written if isinstance(graph, LoopGraph) else graph
    writers = [_Writer(schedule, p) for p in range(schedule.machine.processors)]
    return ProcessorPrograms(schedule, plain, tuple(tuple(writer.steps()) for writer in writers))


def is_by_places(schedule: Schedule) -> bool:
    """Return true if the tasks of a `schedule` are those of a recursion, whose operations are not written out."""
    return getattr(schedule.tasks, "recursion", None) is not None


class _Writer:
    """The program of one processor."""

    def __init__(self, s: Schedule, p: int) -> None:
        self.s, self.p = s, p
        self.posted: dict[int, list[int]] = {}  # messages by task, the first to leave first
        self.coming: dict[int, int] = {}  # messages by task
        self.timed: list[tuple[float, float, int, Step]] = []
        for i, q in enumerate(s.where):
            if q == p:
                self.timed.append((s.start[i], s.finish[i], i, Compute(i)))
        for k, m in enumerate(s.messages):
            if meets(s, k):
                self._add_meetings(k)
                continue
            if m.source == p:
                self.posted.setdefault(m.task, []).append(k)
            if m.target == p:
                self.coming[m.task] = k
        for messages in self.posted.values():
            messages.sort(key=lambda k: (s.messages[k].start, s.messages[k].target))
        self.timed.sort(key=lambda row: row[:3])

    def _add_meetings(self, k: int) -> None:
        """Add the steps in which this processor meets others to hand over message k."""
        m = self.s.messages[k]
        for n, hop in enumerate(m.hops):
            source, target = (m.source, m.target) if self.s.machine.topology.bus else hop.channel
            if source == self.p:
                self.timed.append((hop.start, hop.finish, len(self.s.tasks) + k, Send(k, n)))
            if target == self.p:
                self.timed.append((hop.start, hop.finish, len(self.s.tasks) + k, Receive(k, n)))

    def steps(self) -> Iterator[Step]:
        """Yield the steps in order."""
        busy_until = 0.0
        for start, finish, _, step in self.timed:
            if not isinstance(step, Compute):
                busy_until = finish
                yield step
                continue
            for j in self.s.tasks[step.task].needs:
                if (k := self.coming.pop(j, -1)) >= 0:
                    yield Receive(k, len(self.s.messages[k].hops) - 1)
            during = finish == start < busy_until
            busy_until = max(busy_until, finish)
            yield Compute(step.task, during)
            for k in self.posted.get(step.task, ()):
                yield Send(k)
