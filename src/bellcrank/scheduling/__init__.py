"""Scheduling of a graph on the processors of a machine: graph + machine -> Schedule; independent of mechanics."""

from bellcrank.scheduling.listing import followed, laid_out, schedule
from bellcrank.scheduling.machines import Machine, machine
from bellcrank.scheduling.task import Task, Tasks, grouped, tasks
from bellcrank.scheduling.timetable import Schedule, ScheduleError

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
