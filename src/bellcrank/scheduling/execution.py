"""Execution of a schedule on a simulated machine, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import InputError, check_known
from bellcrank.graph.interpreter import Array, checked_inputs
from bellcrank.scheduling.event_machine import EventMachine
from bellcrank.scheduling.machines import Machine
from bellcrank.scheduling.program_translation import processor_programs
from bellcrank.scheduling.timetable import Schedule

LINK_ORDERS = ("timetable", "fifo")


@dataclass(frozen=True)
class Execution:
    """Result of an execution: the outputs by name, and the planned and the observed timetable.

    Parameters
    ----------
    results : mapping of str to ndarray
        The outputs by name, with leading batch axes as `Graph.evaluate` returns them.
    planned : Schedule
        The schedule that was executed.
    observed : Schedule
        The same tasks and messages at the times at which they began and ended; it is checked and drawn like any other.
    """

    results: Mapping[str, Array]
    planned: Schedule
    observed: Schedule

    @property
    def makespan(self) -> float:
        """Time at which the last task ended, in the unit of the machine."""
        return self.observed.makespan

    @property
    def idle(self) -> float:
        """Idle time of all processors together, until the last has finished."""
        return self.observed.idle

    @property
    def message_time(self) -> float:
        """Time that messages spent on channels, added up."""
        return sum(hop.finish - hop.start for m in self.observed.messages for hop in m.hops)

    @property
    def waiting_time(self) -> float:
        """Time that messages waited for a channel or for the other end, added up."""
        started = sum(m.arrival - self.observed.finish[m.task] for m in self.observed.messages)
        return max(0.0, started - self.message_time)

    def __str__(self) -> str:
        unit, planned = self.observed.machine.unit, self.planned.makespan
        off = "as planned" if self.makespan == planned else f"planned: {planned:g}"
        text = f"{self.observed!r}: {self.makespan:g} {unit}, {off}; processors idle: {self.idle:g}, "
        return text + f"messages on channels: {self.message_time:g}, messages waiting: {self.waiting_time:g}"


def execute(schedule: Schedule, inputs: Mapping[str, Any], links: str, machine: Machine | None = None) -> Execution:
    """Execute a schedule on a simulated machine.

    Parameters
    ----------
    schedule
        The schedule.
    inputs
        Every input by name, with any leading batch axes.
    links
        Order of the messages on a channel: "timetable", or "fifo", the first that is ready.
    machine
        The machine; that of the schedule unless given.
    """
    check_known("links", links, LINK_ORDERS)
    programs = processor_programs(schedule)
    machine = schedule.machine if machine is None else machine
    _check_machine(schedule, machine)
    arrays = checked_inputs(programs.graph.name, programs.graph.inputs, inputs)
    simulated = EventMachine(programs, machine, links, arrays)
    with np.errstate(all="ignore"):
        simulated.run()
    return Execution(simulated.results(), schedule, simulated.observed())


def _check_machine(schedule: Schedule, machine: Machine) -> None:
    """Raise InputError if the programs are not those of such a machine."""
    own = schedule.machine
    if machine.topology != own.topology or machine.overlapped != own.overlapped:
        raise InputError(
            f"execute: the programs are for {own}; {machine} has other channels, or messages that keep other "
            "processors busy. Expected the same topology; schedule for that machine instead."
        )


def inputs_by_name(schedule: Schedule, args: Sequence[Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a schedule by name.

    Parameters
    ----------
    schedule
        The schedule.
    args
        The first inputs, in the order of the graph.
    inputs
        The others, by name.
    """
    graph = schedule.tasks.graph
    names = list(graph.inputs) if graph is not None else []
    if graph is not None and len(args) > len(names):
        raise InputError(f"{graph.name}({', '.join(names)}) takes {len(names)} arrays; got {len(args)}.")
    given = dict(zip(names, args, strict=False))
    for name in given:
        if name in inputs:
            raise InputError(f'{schedule.tasks.name}: input "{name}" is given twice.')
    return given | dict(inputs)
