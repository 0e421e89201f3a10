"""Executions of schedules on a simulated machine, with their results compared with those of one core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bellcrank.build.function_compilation import compile_graph
from bellcrank.scheduling import Machine, Schedule
from bellcrank.scheduling.execution import Execution
from bellcrank.scheduling.program_translation import processor_programs

TINY = 1e-300  # for ratios of numbers that may be zero


def random_inputs(schedule: Schedule) -> dict[str, Any]:
    """Return random numbers from -1 to 1, always the same, for every input of a `schedule`."""
    rng = np.random.default_rng(0)
    shapes = processor_programs(schedule).graph.inputs
    return {name: rng.uniform(-1.0, 1.0, shape) for name, shape in shapes.items()}


def checked_execution(
    schedule: Schedule, inputs: Mapping[str, Any], machine: Machine | None = None
) -> tuple[Execution, float]:
    """Execute a schedule on a simulated machine; return it, and how far its results are from those of one core.

    The difference is relative to the largest number of all outputs: an output may be zero but for rounding.

    Parameters
    ----------
    schedule
        The schedule.
    inputs
        Every input by name.
    machine
        As in `Schedule.execute`.
    """
    graph = processor_programs(schedule).graph
    done = schedule.execute(machine=machine, **inputs)
    serial = compile_graph(graph)(**inputs)
    expected = serial if isinstance(serial, dict) else {next(iter(graph.shapes)): serial}
    size = max(_largest(x) for x in expected.values())
    return done, max(_largest(done.results[name] - x) for name, x in expected.items()) / max(size, TINY)


def _largest(x: Any) -> float:
    return float(np.max(np.abs(x), initial=0.0))
