"""What an export will take, from sizes alone and before it begins: nobody waits for minutes unwarned.

Rates are those of one core (build/forecast.py), a C compiler's included; meant to be right to a factor of two or three.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from bellcrank.build.forecast import COMPILED, OPERATION, PATIENCE, TRACED, Forecast
from bellcrank.errors import InputError, warn
from bellcrank.graph import Graph
from bellcrank.room import free_memory

ENTRY = 0.7  # of the graph's operations for every row or column of a Jacobian, whichever are fewer
BOTH_WAYS = 7.0  # times the operations of the rates: these, outputs, a step, derivatives along directions and back


def jacobian(graph: Graph, of: str, wrt: Iterable[str]) -> float:
    """Operations of d(of)/d(each of wrt), where what is called is written out."""
    rows = math.prod(graph.shapes[of])
    sizes = [math.prod(graph.inputs[x]) for x in wrt if x in graph.inputs]
    return ENTRY * graph.count().arithmetic * sum(min(rows, size) for size in sizes)


def announce(what: str, operations: float, remedy: str) -> None:
    """An error where that does not fit the memory that is free, a warning where it takes minutes."""
    made = Forecast(operations, (TRACED + COMPILED) * operations, OPERATION * operations)
    if made.bytes > (free := free_memory()):
        raise InputError(f"{what}: about {made}, and {free / 1e9:.1f} GB are free. Nothing was begun. {remedy}")
    if made.seconds > PATIENCE:
        warn(f"{what}: about {made}. {remedy}")
