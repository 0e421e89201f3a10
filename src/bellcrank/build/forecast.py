"""What a kernel will take to make, from sizes alone and before anything is traced: nobody waits for hours unwarned.

Rates are those of one core in 2026, measured on chains of 8 to 100,000 bodies (docs/size.md), and meant to be right to
a factor of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.errors import InputError, warn
from bellcrank.graph import Graph
from bellcrank.room import free_memory

TRACED, COMPILED = 2e-5, 3e-4  # seconds for an operation that is written out: to trace it, and to compile it
OPERATION = 2_700.0  # bytes that it takes until it is machine code
FIRST, BODY, BODY_BYTES = 0.5, 2.5e-4, 6_000.0  # seconds for all, seconds and bytes for each body whose code is shared
EQUATION = 0.15  # of a pass through the bodies that it moves: what the force of a loop's equation takes
PATIENCE = 60.0  # seconds that are not worth a warning


@dataclass(frozen=True)
class Forecast:
    operations: float
    seconds: float
    bytes: float

    def __str__(self) -> str:
        time = f"{self.seconds / 60:,.0f} minutes" if self.seconds > 90.0 else f"{self.seconds:.0f} s"
        size = self.bytes / 1e9
        return f"{self.operations:,.0f} operations, some {time} to compile and {size:,.{1 if size < 10 else 0}f} GB"

    def announced(self, what: str) -> Forecast:
        """Itself; an error where it does not fit the memory that is free, a warning where it takes minutes."""
        if self.bytes > (free := free_memory()):
            raise InputError(
                f"{what}: about {self}, and {free / 1e9:.1f} GB are free. Nothing was begun. Take fewer bodies, or a "
                "quantity whose code alike bodies share (docs/size.md lists them)."
            )
        if self.seconds > PATIENCE:
            warn(
                f"{what}: about {self}, all of it new; a second time it comes from the cache. Code that alike bodies "
                "share is made in seconds: docs/size.md lists what has it."
            )
        return self


def written_out(work: Sequence[float]) -> Forecast:
    """Operations of several methods: each is traced, and the one with the fewest compiled."""
    least = min(work)
    return Forecast(least, TRACED * sum(work) + COMPILED * least, OPERATION * least)


def shared(work: float, bodies: int, kinds: int) -> Forecast:
    """Code that alike bodies share: that of so many kinds of bodies is compiled."""
    code = work / bodies * kinds
    return Forecast(work, FIRST + BODY * bodies + COMPILED * code, BODY_BYTES * bodies)


def of_graph(graph: Graph) -> Forecast:
    """Of a graph that is there, and is about to be compiled operation by operation."""
    work = float(graph.count().arithmetic)
    return Forecast(work, COMPILED * work, OPERATION * work)
