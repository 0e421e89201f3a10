"""Cost estimates of an export from sizes alone, before it begins, so that long ones are announced.

Rates are those of one core (build/compile_time_forecast.py) and include a C compiler; they are meant to be right within
a factor of two or three.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from bellcrank.buffers import free_memory
from bellcrank.build import compile_time_forecast as forecasts
from bellcrank.errors import InputError, warn
from bellcrank.graph import Graph

JACOBIAN_ENTRY_COST = 0.7  # share of the graph's operations per row or column of a Jacobian, whichever are fewer
# Operations in units of those of the rates: rates, outputs, a step, directional derivatives and adjoints. Measured: 4 s
# for a ring of twelve bodies (forecast 6 s), 49 s for Stewart's platform (forecast 32 s).
FMU_COST_FACTOR = 14.0


def jacobian_operations(graph: Graph, output: str, wrt: Iterable[str]) -> float:
    """Return the operations of the Jacobian of `output` of `graph` by the inputs `wrt`, with calls inlined."""
    rows = math.prod(graph.shapes[output])
    sizes = [math.prod(graph.inputs[x]) for x in wrt if x in graph.inputs]
    return JACOBIAN_ENTRY_COST * graph.count().arithmetic * sum(min(rows, size) for size in sizes)


def announce_cost(what: str, operations: float, remedy: str) -> None:
    """Raise an error if an export does not fit into free memory; warn if it takes minutes.

    Parameters
    ----------
    what
        Name of the export, for the message.
    operations
        Its estimated operations.
    remedy
        Advice, for the message.
    """
    seconds = (forecasts.TRACE_SECONDS + forecasts.COMPILE_SECONDS) * operations
    forecast = forecasts.Forecast(operations, seconds, forecasts.OPERATION_BYTES * operations)
    if forecast.bytes > (free := free_memory()):
        raise InputError(f"{what}: about {forecast}, but {free / 1e9:.1f} GB are free. Nothing was started. {remedy}")
    if forecast.seconds > forecasts.WARNING_SECONDS:
        warn(f"{what}: about {forecast}. {remedy}")
