"""What strip_units.py makes its units of: a graph's long sums, and its other nodes level by level."""

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
LONG = 64  # elements of a loop that is worth while
FEWEST = 1000  # nodes: smaller graphs are straight-line code, which is faster
SHARE = 0.8  # of the operations that must be in such loops
STORED = {*PLUMBING, "sin", "cos"}  # what is read from arrays, or goes there
NEUTRAL = {"add": 0.0, "maximum": -math.inf, "minimum": math.inf}


def stripped(graph: Graph, fewest: int = 0) -> Strips | None:
    """The strips of a graph where they are worth while: it is large, and nearly all of it are long loops."""
    if graph.size < (fewest or FEWEST) or graph.widest < LONG:
        return None
    parts = Parts(graph)
    if parts.share(LONG) < SHARE:  # which is soon known
        return None
    from bellcrank.graph.strips import strips  # which is made of what is here, and for few graphs

    found = strips(graph, parts)
    return found if found.share(LONG) >= SHARE else None


class Parts:
    """A graph's long sums, and its other nodes level by level."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.sums = _sums(graph)
        self.levels = _levels(graph, self.sums)

    def share(self, length: int) -> float:
        """Of all operations, at most so many are in loops of this length: nodes of a unit do the same with elements of
        the same units, and so on down to the inputs.
        """
        kinds: dict[int, Any] = {}  # of a node, by serial: what nodes of a unit have in common
        names: dict[Any, int] = {}

        def kind(x: Value) -> Any:
            if not isinstance(x, Node):
                return None
            return (x.op, *map(kind, x.args)) if x.op in COMPARISONS else kinds[x.serial]

        alike: Counter[int] = Counter()
        for k, nodes in enumerate(self.levels):
            for n in nodes:
                if n.op in STORED:  # elements of an array, or what was turned at once
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
    """Long sums, and largest and smallest ones, in the order in which they are added up: by the node that is all."""
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
    """Nodes by how many others they wait for, one after the other. Comparisons, and what is inside a sum, have no
    place of their own.
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
