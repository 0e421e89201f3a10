"""A graph laid out on the processors of a machine: graph + machine -> Schedule. Knows nothing of mechanics."""

from bellcrank.scheduling.listing import followed, laid_out, schedule
from bellcrank.scheduling.machine import Machine, machine
from bellcrank.scheduling.schedule import Schedule, ScheduleError
from bellcrank.scheduling.tasks import Task, Tasks, grouped, tasks

__all__ = [
    "Machine",
    "Schedule",
    "ScheduleError",
    "Task",
    "Tasks",
    "followed",
    "grouped",
    "laid_out",
    "machine",
    "schedule",
    "tasks",
]
