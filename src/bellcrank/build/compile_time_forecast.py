"""Forecast of the time and memory to build a kernel, from sizes alone and before tracing.

Rates are those of one core in 2026, measured on chains of 8 to 100,000 bodies (docs/size.md), and accurate to about a
factor of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.buffers import free_memory
from bellcrank.build.policy import ROLLED, SEGMENTS, TREE_TERMS, Strategy
from bellcrank.errors import InputError, warn
from bellcrank.graph import Graph

TRACE_SECONDS, COMPILE_SECONDS = 2e-5, 3e-4  # seconds per straight-line operation, to trace it and to compile it
OPERATION_BYTES = 2_700.0  # bytes per straight-line operation while it is compiled
# Rolled loops: fixed seconds, seconds per body, bytes per body.
ROLLED_SECONDS, BODY_SECONDS, BODY_BYTES = 0.5, 2.5e-4, 6_000.0
EQUATION_PASSES = 0.15  # work for one loop equation, in passes over the bodies that it moves
WARNING_SECONDS = 60.0  # seconds above which a warning is given


@dataclass(frozen=True)
class Forecast:
    """Expected operations, seconds and bytes."""

    operations: float
    seconds: float
    bytes: float

    def __str__(self) -> str:
        time = f"{self.seconds / 60:,.0f} minutes" if self.seconds > 90.0 else f"{self.seconds:.0f} s"
        size = self.bytes / 1e9
        return f"{self.operations:,.0f} operations, some {time} to compile and {size:,.{1 if size < 10 else 0}f} GB"

    def warn_if_long(self, what: str) -> Forecast:
        """Return the forecast after warning about a long build.

        `what` names the kernel. Raises an InputError where the forecast exceeds the free memory; warns where it takes
        minutes.
        """
        if self.bytes > (free := free_memory()):
            raise InputError(
                f"{what}: about {self}, and {free / 1e9:.1f} GB are free. Nothing was started. Use fewer bodies, or a "
                "quantity with a rolled loop over identical bodies (docs/size.md lists them)."
            )
        if self.seconds > WARNING_SECONDS:
            warn(
                f"{what}: about {self}, once; the result is cached. Rolled loops over identical bodies are "
                "compiled in seconds: docs/size.md lists the quantities that have them."
            )
        return self


def strategy_forecast(strategy: Strategy, calls: bool) -> Forecast:
    """Return the forecast of a kernel.

    Parameters
    ----------
    strategy
        The form of its code for each method.
    calls
        Whether the target supports rolled loops.
    """
    from bellcrank.build.rolled_recursion import count_classes  # imported here because small kernels need no forecast
    from bellcrank.build.rolled_tree_terms import count_passes

    tree, forms = strategy.tree, {p.form for p in strategy.plans}
    work = [count_passes(tree) * p.work for p in strategy.plans]
    rolled = {ROLLED} if strategy.request.wrenches else {ROLLED, TREE_TERMS}
    if (calls and forms <= rolled) or forms == {SEGMENTS}:  # divide and conquer is rolled on every target
        return rolled_forecast(min(work), len(tree.links), count_classes(tree))
    return straight_forecast(work)


def straight_forecast(work: Sequence[float]) -> Forecast:
    """Return the forecast of straight-line code by several methods, whose operations are `work`.

    Each is traced, and the one with the fewest operations is compiled.
    """
    least = min(work)
    return Forecast(least, TRACE_SECONDS * sum(work) + COMPILE_SECONDS * least, OPERATION_BYTES * least)


def rolled_forecast(work: float, bodies: int, kinds: int) -> Forecast:
    """Return the forecast of rolled loops.

    Parameters
    ----------
    work
        Operations of all bodies.
    bodies
        Number of bodies.
    kinds
        Number of link classes, each of which is compiled once.
    """
    code = work / bodies * kinds
    return Forecast(work, ROLLED_SECONDS + BODY_SECONDS * bodies + COMPILE_SECONDS * code, BODY_BYTES * bodies)


def graph_forecast(graph: Graph) -> Forecast:
    """Return the forecast of compiling an existing `graph` as straight-line code."""
    work = float(graph.count().arithmetic)
    return Forecast(work, COMPILE_SECONDS * work, OPERATION_BYTES * work)
