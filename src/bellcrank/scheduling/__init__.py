"""Scheduling of a graph on the processors of a machine: graph + machine -> Schedule; independent of mechanics."""

from bellcrank.scheduling.list_scheduling import fixed_order_schedule, list_schedule, schedule
from bellcrank.scheduling.machines import Machine, machine
from bellcrank.scheduling.task import Task, Tasks, tasks, tasks_from_groups
from bellcrank.scheduling.timetable import Schedule, ScheduleError

__all__ = [
    "Machine",
    "Schedule",
    "ScheduleError",
    "Task",
    "Tasks",
    "fixed_order_schedule",
    "list_schedule",
    "machine",
    "schedule",
    "tasks",
    "tasks_from_groups",
]
