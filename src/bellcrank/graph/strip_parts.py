"""Preparation of loop rolling: the long reductions of a graph, and the levels of its other nodes."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from bellcrank.graph.graph import Graph
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.ops import COMPARISONS, PLUMBING

if TYPE_CHECKING:
    from bellcrank.graph.strips import Strips

LONG_SUM = 16
LONG = 64  # elements; shorter loops do not pay
FEWEST = 1000  # nodes; smaller graphs are faster as straight-line code
SHARE = 0.8  # minimum fraction of the operations in such loops
STORED = {*PLUMBING, "sin", "cos"}  # operations whose operands or results are in arrays
NEUTRAL = {"add": 0.0, "maximum": -math.inf, "minimum": math.inf}


def stripped(graph: Graph, fewest: int = 0) -> Strips | None:
    """Roll a graph into loops if that pays; else return None.

    It pays for a large graph of which nearly all operations are in long loops.

    Parameters
    ----------
    graph
        The graph.
    fewest
        Minimum number of nodes; the constant of this module unless given.
    """
    if graph.size < (fewest or FEWEST) or graph.widest < LONG:
        return None
    parts = Parts(graph)
    if parts.share(LONG) < SHARE:  # a cheap upper bound
        return None
    from bellcrank.graph.strips import strips  # imported late: it imports this module, and few graphs need it

    found = strips(graph, parts)
    return found if found.share(LONG) >= SHARE else None


class Parts:
    """Long reductions of a graph, and its other nodes level by level."""

    def __init__(self, graph: Graph) -> None:
        """Analyse `graph`."""
        self.graph = graph
        self.sums = _sums(graph)
        self.levels = _levels(graph, self.sums)

    def share(self, length: int) -> float:
        """Return an upper bound of the fraction of operations in loops of at least this `length`.

        Nodes that can form a loop apply the same operation to elements of the same groups, down to the inputs.
        """
        kinds: dict[int, Any] = {}  # by serial: the key that all nodes of a group share
        names: dict[Any, int] = {}

        def kind(x: Value) -> Any:
            if not isinstance(x, Node):
                return None
            return (x.op, *map(kind, x.args)) if x.op in COMPARISONS else kinds[x.serial]

        alike: Counter[int] = Counter()
        for k, nodes in enumerate(self.levels):
            for n in nodes:
                if n.op in STORED:  # elements of an array, or sines computed together
                    kinds[n.serial] = n.args[0] if n.op in ("input", "result") else k
                elif n.serial in self.sums:
                    kinds[n.serial] = "sum", n.serial
                else:
                    kinds[n.serial] = names.setdefault((n.op, *map(kind, n.args)), -1 - len(names))
                    alike[kinds[n.serial]] += 1
        long = sum(n for n in alike.values() if n >= length)
        kept = sum(array.size for array in self.graph.outputs.values()) + sum(map(len, self.sums.values()))
        kept += sum(len(n.args) for nodes in self.levels for n in nodes if n.op in STORED)
        return (long + kept) / max(1, sum(alike.values()) + kept)


def _sums(graph: Graph) -> dict[int, list[Value]]:
    """Return long sums, maxima and minima: the terms in the order of evaluation, by serial number of the last node."""
    uses: dict[int, int] = {}
    for n in graph.nodes:
        for a in n.operands:
            uses[a.serial] = uses.get(a.serial, 0) + 1
    for array in graph.outputs.values():
        for x in array.flat:
            if isinstance(x, Node):
                uses[x.serial] = uses.get(x.serial, 0) + 1
    inner: set[int] = set()
    found: dict[int, list[Value]] = {}
    for n in reversed(graph.nodes):
        if n.op not in NEUTRAL or n.serial in inner:
            continue
        terms, members, at = list[Value](), list[Node](), n
        while True:
            members.append(at)
            on = next((a for a in at.operands if a.op == n.op and uses[a.serial] == 1), None)
            if on is None:
                terms += reversed(at.args)
                break
            terms.append(next(a for a in at.args if a is not on))
            at = on
        if len(members) >= LONG_SUM:
            found[n.serial] = terms[::-1]
            inner.update(m.serial for m in members[1:])
    return found


def _levels(graph: Graph, sums: dict[int, list[Value]]) -> list[list[Node]]:
    """Return the nodes level by level; a node is one level above its highest operand.

    Comparisons and the inner nodes of reductions have no place of their own.
    """
    level: dict[int, int] = {}
    found: list[list[Node]] = []
    hidden = _inside(graph, sums)
    for n in graph.nodes:
        if n.serial in hidden:
            continue
        needs = [a for a in sums[n.serial] if isinstance(a, Node)] if n.serial in sums else n.operands
        mine = max((level[a.serial] for a in needs), default=-1)
        if n.op not in COMPARISONS:
            mine += 1
            while len(found) <= mine:
                found.append([])
            found[mine].append(n)
        level[n.serial] = mine
    return found


def _inside(graph: Graph, sums: dict[int, list[Value]]) -> set[int]:
    by_serial = {n.serial: n for n in graph.nodes}
    hidden: set[int] = set()
    for serial, terms in sums.items():
        leaves = {id(x) for x in terms if isinstance(x, Node)}
        stack = [a for a in by_serial[serial].operands if id(a) not in leaves]
        while stack:
            n = stack.pop()
            if n.serial not in hidden:
                hidden.add(n.serial)
                stack.extend(a for a in n.operands if id(a) not in leaves)
    return hidden
