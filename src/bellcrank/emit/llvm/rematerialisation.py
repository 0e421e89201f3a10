"""Rematerialisation: recompute cheap values instead of spilling them, by a graph that has some nodes twice.

For eight states, a value takes a cache line. A value with a long live range is stored, leaves the nearest cache, and is
fetched again: three cache lines moved, at two cycles each, and in large graphs those cycles are half of all. Many such
values are an operation or a few away from others that are at hand. Examples are the forces on their way down a branch,
computed from the inertias of its bodies, which the mass matrix needs and derivatives need again. They are dropped and
recomputed.

In the meantime, the operands of a value may have been dropped, too: they are recomputed with it, or were kept for other
users and are loaded. The price of a value is the number of these operations and loads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bellcrank.graph import Graph, Node
from bellcrank.graph.graph import mapped_outputs
from bellcrank.nodes.node import Value
from bellcrank.nodes.tape import Tape
from bellcrank.scalar import step

SPILL_DISTANCE_NODES = 3000  # nodes between two uses of a value, after which it has certainly left the nearest cache
MAX_PRICE_OPERATIONS = 5  # operations that moving a cache line is worth
MAX_OPERAND_LEVELS = 3  # levels of operands that may be recomputed with a value
CHEAP_OPERATIONS = ("add", "sub", "mul", "neg")


def rematerialise(graph: Graph, order: Sequence[Node]) -> Graph:
    """Return `graph` with duplicated nodes in place of values that would wait long in the given `order`."""
    return _Rematerialisation(graph, order).graph()


class _Rematerialisation:
    def __init__(self, graph: Graph, order: Sequence[Node]) -> None:
        self.original, self.order = graph, order
        self.position = {n.serial: t for t, n in enumerate(order)}
        self.reads: dict[int, list[int]] = {n.serial: [] for n in order}
        self.in_memory: set[int] = set()  # serials of values that are in memory anyway
        for t, n in enumerate(order):
            for a in n.operands:
                self.reads[a.serial].append(t)
            if n.op == "call":
                self.in_memory |= {a.serial for a in n.operands}
        self.in_memory |= {x.serial for array in graph.outputs.values() for x in array.flat if isinstance(x, Node)}
        self.distant_reads = {
            n.serial: reads for n in order if self._is_cheap(n) and (reads := self._distant_reads_of(n))
        }
        self._keep_expensive(order)
        self.tape = Tape()
        self.latest_copy: dict[int, Node] = {}  # serial of a node -> its latest copy; self.made: when it was recomputed
        self.recomputed_at: dict[int, int] = {}

    def _is_cheap(self, n: Node) -> bool:
        return n.op in CHEAP_OPERATIONS and n.serial not in self.in_memory

    def _distant_reads_of(self, n: Node) -> list[int]:
        """Return the reads before which it waits long."""
        times = [self.position[n.serial], *self.reads[n.serial]]
        return [t for last, t in pairwise(times) if t - last > SPILL_DISTANCE_NODES]

    def _is_at_hand(self, n: Node, t: int) -> bool:
        if n.op == "input" or self.position[n.serial] > t - SPILL_DISTANCE_NODES:
            return True
        times = self.reads[n.serial]
        i = bisect_left(times, t - SPILL_DISTANCE_NODES)
        return i < len(times) and times[i] < t

    def _price(self, n: Node, t: int, depth: int = MAX_OPERAND_LEVELS) -> float:
        """Return the operations to compute it at time t plus the values to load for them."""
        if not self._is_cheap(n):
            return 1.0
        missing = [a for a in n.operands if not self._is_at_hand(a, t)]
        if missing and not depth:
            return float("inf")
        return 1.0 + sum(self._price(a, t, depth - 1) for a in missing)

    def _keep_expensive(self, order: Sequence[Node]) -> None:
        """Keep values in memory that are too expensive; others can then be computed from them."""
        while expensive := {
            s
            for s, reads in self.distant_reads.items()
            if any(self._price(order[self.position[s]], t) > MAX_PRICE_OPERATIONS for t in reads)
        }:
            self.in_memory |= expensive
            self.distant_reads = {s: reads for s, reads in self.distant_reads.items() if s not in expensive}

    def graph(self) -> Graph:
        """Return the new graph."""
        recomputed_before: dict[int, list[Node]] = {}
        for s, reads in self.distant_reads.items():
            for t in reads:
                recomputed_before.setdefault(t, []).append(self.order[self.position[s]])
        for t, n in enumerate(self.order):
            for repeated_node in recomputed_before.get(t, ()):
                self._recompute(repeated_node, t)
            self.latest_copy[n.serial] = self._copy(n)
        step("")
        outputs = mapped_outputs(self.original, self._value)
        return Graph(self.original.name, self.original.inputs, outputs, self.tape, self.original.only)

    def _recompute(self, n: Node, t: int) -> None:
        """Recompute a value once for all its reads near this time."""
        if t - self.recomputed_at.get(n.serial, -SPILL_DISTANCE_NODES) < SPILL_DISTANCE_NODES:
            return
        for a in n.operands:
            if self._is_cheap(a) and not self._is_at_hand(a, t):
                self._recompute(a, t)
        self.latest_copy[n.serial], self.recomputed_at[n.serial] = self._copy(n), t

    def _copy(self, n: Node) -> Node:
        step(n.label)
        return self.tape.duplicate(n.op, *(self._value(a) for a in n.args))

    def _value(self, x: Any) -> Value:
        value: Value = self.latest_copy[x.serial] if isinstance(x, Node) else x
        return value
