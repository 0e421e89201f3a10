"""Tasks that are known by what they cost and not operation by operation: loops over alike parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bellcrank.scheduling.machines import Machine
from bellcrank.scheduling.placing import Placement, Plan
from bellcrank.scheduling.task import Task, Tasks
from bellcrank.scheduling.timetable import Schedule


@dataclass(frozen=True)
class Load(Task):
    """So many times the same operations, none of which waits for another time."""

    each: Mapping[str, int] = field(default_factory=dict)  # operation: how often
    times: int = 1

    @property
    def operations(self) -> int:
        return self.times * sum(self.each.values())

    def work(self, cost: Mapping[str, float]) -> float:
        return self.times * self.least(cost)

    def least(self, cost: Mapping[str, float]) -> float:
        """What it costs to go through it once."""
        return sum(n * cost[op] for op, n in self.each.items())


@dataclass(frozen=True)
class LoadSchedule(Schedule):
    """A schedule of loads: work and span follow from what they say they cost."""

    @property
    def work(self) -> float:
        return sum(task.work(self.machine.cost) for task in self.tasks)

    @property
    def span(self) -> float:
        """As if every time of a load had a processor."""
        done: list[float] = []
        for task in self.tasks:
            least = task.least(self.machine.cost) if isinstance(task, Load) else task.work(self.machine.cost)
            done.append(least + max((done[j] for j in task.needs), default=0.0))
        return max(done, default=0.0)


def laid(name: str, loads: Sequence[Load], where: Sequence[int], machine: Machine) -> LoadSchedule:
    """One after the other as they stand, each where it is told."""
    found = Placement(Plan(Tasks(name, "load", tuple(loads)), machine)).run(range(len(loads)), where)
    return LoadSchedule(found.tasks, found.machine, found.where, found.start, found.finish, found.messages)
