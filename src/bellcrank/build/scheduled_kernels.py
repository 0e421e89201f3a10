"""Kernels that follow a given schedule: one thread of this computer for each processor that has a task.

    Schedule --> programs of the processors --> streams of machine code (emit/cores/) --> Kernel

`Schedule.run` waits for all threads, even where there are fewer cores; a kernel of `bc.kernel(..., schedule=...)`
computes alone in that case, as every kernel on several cores.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.build.compilation import Job, build_kernel
from bellcrank.errors import InputError
from bellcrank.quoting import quoted_name
from bellcrank.scheduling import Schedule
from bellcrank.scheduling.program_translation import processor_programs

if TYPE_CHECKING:
    from bellcrank.emit.cores.target import ParallelKernel
    from bellcrank.graph import Graph

MAX_PROGRAM_THREADS = 64  # threads; each spins while it waits
FOREVER_SPINS = 2**60
TINY = 1e-300  # for ratios of numbers that may be zero
MAX_RELATIVE_DIFFERENCE = 1e-6  # of the results of a schedule of the same mechanism: rounding is far below


def schedule_kernel(schedule: Schedule) -> ParallelKernel:
    """Return the kernel behind `Schedule.run`: every state is computed by all threads of a `schedule` together."""
    graph = executable_graph(schedule)
    kernel = scheduled_kernel(schedule, Job(graph.name.rpartition(".")[2], lambda _: ("", graph)))
    if kernel.team is not None:
        from bellcrank.emit.cores.thread_team import allowed_cpus

        cpus = allowed_cpus()
        kernel.team.pin([cpus[k % len(cpus)] for k in range(1, kernel.team.processors)], FOREVER_SPINS)
        kernel.together_only = True
    return kernel


def scheduled_kernel(schedule: Schedule, job: Job, dtype: str = "float64") -> ParallelKernel:
    """Return a kernel that follows a schedule.

    Parameters
    ----------
    schedule
        The schedule.
    job
        The kernel to compile; its graph is that of the schedule.
    dtype
        Floating-point type.
    """
    from bellcrank.emit.cores.target import Cores, ParallelKernel  # loads a compiler

    kernel = build_kernel(job, Cores(schedule.machine, dtype, schedule))
    assert isinstance(kernel, ParallelKernel)
    return kernel


def executable_graph(schedule: Schedule) -> Graph:
    """Return the graph that the threads of a `schedule` compute; raise an error if they cannot."""
    programs = processor_programs(schedule)
    if os.name != "posix":
        raise InputError(
            f'{schedule.tasks.name}: threads that follow a schedule need a POSIX system; carrier="events" needs none.'
        )
    if (count := len(programs.used)) > MAX_PROGRAM_THREADS:
        raise InputError(
            f"{schedule.tasks.name}: {count} processors of {schedule.machine.name} have tasks; expected at most "
            f'{MAX_PROGRAM_THREADS} for threads. carrier="events" executes any number.'
        )
    if programs.graph.calls:
        raise InputError(
            f"{schedule.tasks.name} calls other graphs, which threads do not share. Schedule bellcrank.graph.inline."
            'inline(graph) instead, or use carrier="events".'
        )
    return programs.graph


def check_is_of(schedule: Schedule, reference: Graph, state: dict[str, Any], what: str) -> Graph:
    """Return the graph of a schedule; raise InputError if it computes something else than the reference.

    Both are evaluated at one state, so that it does not matter how either was traced.

    Parameters
    ----------
    schedule
        The schedule.
    reference
        The graph of the wanted quantity.
    state
        Inputs of the reference.
    what
        Name of the quantity and the mechanism, for messages.
    """
    graph = executable_graph(schedule)
    name = quoted_name(schedule.tasks.name)
    if graph.inputs != reference.inputs or list(graph.shapes.values()) != list(reference.shapes.values()):
        raise InputError(
            f"kernel: schedule is of {name}, with inputs {_listed(graph.inputs)} and outputs {_listed(graph.shapes)}; "
            f"expected one of {what}, with inputs {_listed(reference.inputs)} and outputs {_listed(reference.shapes)}. "
            "schedule.run(...) executes any schedule."
        )
    pairs = zip(graph.evaluate(**state).values(), reference.evaluate(**state).values(), strict=True)
    for x, y in pairs:
        difference = float(np.max(np.abs(x - y), initial=0.0))
        if not difference <= MAX_RELATIVE_DIFFERENCE * max(float(np.max(np.abs(y), initial=0.0)), TINY):
            raise InputError(
                f"kernel: schedule is of {name}; at a random state its result differs by {difference:.2g} from that of "
                f"{what}. Expected a schedule of the same mechanism: bc.schedule(mechanism, quantity, machine)."
            )
    return graph


def _listed(shapes: Any) -> str:
    return ", ".join(f"{name}{list(shape) if shape else ''}" for name, shape in shapes.items())
