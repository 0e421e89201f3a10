"""Cost estimates of an export from sizes alone, before it begins, so that long ones are announced.

Rates are those of one core (build/forecast.py) and include a C compiler; they are meant to be right within a factor of
two or three.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from bellcrank.build.forecast import COMPILED, OPERATION, PATIENCE, TRACED, Forecast
from bellcrank.errors import InputError, warn
from bellcrank.graph import Graph
from bellcrank.room import free_memory

ENTRY = 0.7  # share of the graph's operations per row or column of a Jacobian, whichever are fewer
# Operations in units of those of the rates: rates, outputs, a step, directional derivatives and adjoints. Measured: 4 s
# for a ring of twelve bodies (forecast 6 s), 49 s for Stewart's platform (forecast 32 s).
BOTH_WAYS = 14.0


def jacobian(graph: Graph, of: str, wrt: Iterable[str]) -> float:
    """Return the operations of the Jacobian of output `of` of `graph` by the inputs `wrt`, with calls inlined."""
    rows = math.prod(graph.shapes[of])
    sizes = [math.prod(graph.inputs[x]) for x in wrt if x in graph.inputs]
    return ENTRY * graph.count().arithmetic * sum(min(rows, size) for size in sizes)


def announce(what: str, operations: float, remedy: str) -> None:
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
    made = Forecast(operations, (TRACED + COMPILED) * operations, OPERATION * operations)
    if made.bytes > (free := free_memory()):
        raise InputError(f"{what}: about {made}, but {free / 1e9:.1f} GB are free. Nothing was started. {remedy}")
    if made.seconds > PATIENCE:
        warn(f"{what}: about {made}. {remedy}")
