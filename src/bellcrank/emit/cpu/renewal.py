"""Rematerialisation: recompute cheap values instead of spilling them, by a graph that has some nodes twice.

For eight states, a value takes a cache line. A value with a long live range is stored, leaves the nearest cache, and is
fetched again: three cache lines moved, at two cycles each, and in large graphs those cycles are half of all. Many such
values are an operation or a few away from others that are at hand. Examples are the forces on their way down a limb,
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

import numpy as np

from bellcrank.graph import Graph, Node
from bellcrank.nodes.node import Value
from bellcrank.nodes.tape import Tape
from bellcrank.scalar import step

FAR = 3000  # nodes between two uses of a value, after which it has certainly left the nearest cache
PRICE = 5  # operations that moving a cache line is worth
DEPTH = 3  # levels of operands that may be recomputed with a value
CHEAP = ("add", "sub", "mul", "neg")


def renewed(graph: Graph, order: Sequence[Node]) -> Graph:
    """Return `graph` with duplicated nodes in place of values that would wait long in the given `order`."""
    return _Renewal(graph, order).graph()


class _Renewal:
    def __init__(self, graph: Graph, order: Sequence[Node]) -> None:
        self.whole, self.order = graph, order
        self.place = {n.serial: t for t, n in enumerate(order)}
        self.reads: dict[int, list[int]] = {n.serial: [] for n in order}
        self.kept: set[int] = set()  # serials of values that are in memory anyway
        for t, n in enumerate(order):
            for a in n.operands:
                self.reads[a.serial].append(t)
            if n.op == "call":
                self.kept |= {a.serial for a in n.operands}
        self.kept |= {x.serial for array in graph.outputs.values() for x in array.flat if isinstance(x, Node)}
        self.waits = {n.serial: far for n in order if self._cheap(n) and (far := self._far(n))}
        self._keep(order)
        self.tape = Tape()
        self.now: dict[int, Node] = {}  # serial of a node -> its latest copy; self.made: when it was recomputed
        self.made: dict[int, int] = {}

    def _cheap(self, n: Node) -> bool:
        return n.op in CHEAP and n.serial not in self.kept

    def _far(self, n: Node) -> list[int]:
        """Return the reads before which it waits long."""
        times = [self.place[n.serial], *self.reads[n.serial]]
        return [t for last, t in pairwise(times) if t - last > FAR]

    def _at_hand(self, n: Node, t: int) -> bool:
        if n.op == "input" or self.place[n.serial] > t - FAR:
            return True
        times = self.reads[n.serial]
        i = bisect_left(times, t - FAR)
        return i < len(times) and times[i] < t

    def _price(self, n: Node, t: int, depth: int = DEPTH) -> float:
        """Return the operations to compute it at time t plus the values to load for them."""
        if not self._cheap(n):
            return 1.0
        missing = [a for a in n.operands if not self._at_hand(a, t)]
        if missing and not depth:
            return float("inf")
        return 1.0 + sum(self._price(a, t, depth - 1) for a in missing)

    def _keep(self, order: Sequence[Node]) -> None:
        """Keep values in memory that are too expensive; others can then be computed from them."""
        while dear := {
            s for s, far in self.waits.items() if any(self._price(order[self.place[s]], t) > PRICE for t in far)
        }:
            self.kept |= dear
            self.waits = {s: far for s, far in self.waits.items() if s not in dear}

    def graph(self) -> Graph:
        """Return the new graph."""
        anew: dict[int, list[Node]] = {}
        for s, far in self.waits.items():
            for t in far:
                anew.setdefault(t, []).append(self.order[self.place[s]])
        for t, n in enumerate(self.order):
            for again in anew.get(t, ()):
                self._renew(again, t)
            self.now[n.serial] = self._copy(n)
        step("")
        outputs = {}
        for name, array in self.whole.outputs.items():
            outputs[name] = np.empty(array.shape, dtype=object)
            for index in np.ndindex(*array.shape):
                outputs[name][index] = self._value(array[index])
        return Graph(self.whole.name, self.whole.inputs, outputs, self.tape, self.whole.only)

    def _renew(self, n: Node, t: int) -> None:
        """Recompute a value once for all its reads near this time."""
        if t - self.made.get(n.serial, -FAR) < FAR:
            return
        for a in n.operands:
            if self._cheap(a) and not self._at_hand(a, t):
                self._renew(a, t)
        self.now[n.serial], self.made[n.serial] = self._copy(n), t

    def _copy(self, n: Node) -> Node:
        step(n.label)
        return self.tape.anew(n.op, *(self._value(a) for a in n.args))

    def _value(self, x: Any) -> Value:
        value: Value = self.now[x.serial] if isinstance(x, Node) else x
        return value
