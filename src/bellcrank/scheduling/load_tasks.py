"""Tasks given by their cost instead of their operations: loops over identical bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bellcrank.scheduling.machines import Machine
from bellcrank.scheduling.placement import Placement, Plan
from bellcrank.scheduling.task import Task, Tasks
from bellcrank.scheduling.timetable import Schedule


@dataclass(frozen=True)
class LoadTask(Task):
    """A task that repeats the same independent operations `times` times."""

    operation_counts: Mapping[str, int] = field(default_factory=dict)  # number of times of each operation
    times: int = 1

    @property
    def operations(self) -> int:
        """Number of operations."""
        return self.times * sum(self.operation_counts.values())

    def work(self, cost: Mapping[str, float]) -> float:
        """Return the time on one processor; `cost` is by operation name."""
        return self.times * self.work_once(cost)

    def work_once(self, cost: Mapping[str, float]) -> float:
        """Return the time of one repetition; `cost` is by operation name."""
        return sum(n * cost[op] for op, n in self.operation_counts.items())


@dataclass(frozen=True)
class LoadTasks(Tasks):
    """Loads, whose work and span follow from their costs."""

    def work(self, cost: Mapping[str, float]) -> float:
        """Return the time on one processor; `cost` is by operation name."""
        return sum(task.work(cost) for task in self.tasks)

    def span(self, cost: Mapping[str, float]) -> float:
        """Return the longest path if every repetition has a processor of its own; `cost` is by operation name."""
        done: list[float] = []
        for task in self.tasks:
            least = task.work_once(cost) if isinstance(task, LoadTask) else task.work(cost)
            done.append(least + max((done[j] for j in task.needs), default=0.0))
        return max(done, default=0.0)


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
