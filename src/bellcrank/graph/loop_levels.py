"""Preparation of loop rolling: the long reductions of a graph, and the levels of its other nodes."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from bellcrank.graph.graph import Graph
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.ops import COMPARISONS, PLUMBING

if TYPE_CHECKING:
    from bellcrank.graph.loop_rolling import RolledGraph

MIN_SUM_TERMS = 16
MIN_LOOP_ELEMENTS = 64  # elements; shorter loops do not pay
MIN_GRAPH_NODES = 1000  # nodes; smaller graphs are faster as straight-line code
MIN_ROLLED_FRACTION = 0.8  # minimum fraction of the operations in such loops
ARRAY_OPS = {*PLUMBING, "sin", "cos"}  # operations whose operands or results are in arrays
NEUTRAL = {"add": 0.0, "maximum": -math.inf, "minimum": math.inf}


def roll_if_worthwhile(graph: Graph, min_nodes: int = 0) -> RolledGraph | None:
    """Roll a graph into loops if that pays; else return None.

    It pays for a large graph of which nearly all operations are in long loops.

    Parameters
    ----------
    graph
        The graph.
    min_nodes
        Minimum number of nodes; the constant of this module unless given.
    """
    if graph.size < (min_nodes or MIN_GRAPH_NODES) or graph.widest < MIN_LOOP_ELEMENTS:
        return None
    parts = GraphLevels(graph)
    if parts.rolled_fraction(MIN_LOOP_ELEMENTS) < MIN_ROLLED_FRACTION:  # a cheap upper bound
        return None
    from bellcrank.graph.loop_rolling import roll  # imported late: it imports this module, and few graphs need it

    rolled = roll(graph, parts)
    return rolled if rolled.rolled_fraction(MIN_LOOP_ELEMENTS) >= MIN_ROLLED_FRACTION else None


class GraphLevels:
    """Long reductions of a graph, and its other nodes level by level."""

    def __init__(self, graph: Graph) -> None:
        """Analyse `graph`."""
        self.graph = graph
        self.sums = _sums(graph)
        self.levels = _levels(graph, self.sums)

    def rolled_fraction(self, length: int) -> float:
        """Return an upper bound of the fraction of operations in loops of at least this `length`.

        Nodes that can form a loop apply the same operation to elements of the same groups, down to the inputs.
        """
        kinds: dict[int, Any] = {}  # by serial: the key that all nodes of a group share
        names: dict[Any, int] = {}

        def kind(x: Value) -> Any:
            if not isinstance(x, Node):
                return None
            return (x.op, *map(kind, x.args)) if x.op in COMPARISONS else kinds[x.serial]

        group_sizes: Counter[int] = Counter()
        for k, nodes in enumerate(self.levels):
            for n in nodes:
                if n.op in ARRAY_OPS:  # elements of an array, or sines computed together
                    kinds[n.serial] = n.args[0] if n.op in ("input", "result") else k
                elif n.serial in self.sums:
                    kinds[n.serial] = "sum", n.serial
                else:
                    kinds[n.serial] = names.setdefault((n.op, *map(kind, n.args)), -1 - len(names))
                    group_sizes[kinds[n.serial]] += 1
        rolled_nodes = sum(n for n in group_sizes.values() if n >= length)
        stored_values = sum(array.size for array in self.graph.outputs.values()) + sum(map(len, self.sums.values()))
        stored_values += sum(len(n.args) for nodes in self.levels for n in nodes if n.op in ARRAY_OPS)
        return (rolled_nodes + stored_values) / max(1, sum(group_sizes.values()) + stored_values)


def _sums(graph: Graph) -> dict[int, list[Value]]:
    """Return long sums, maxima and minima: the terms in the order of evaluation, by serial number of the last node."""
    uses = Counter(a.serial for n in graph.nodes for a in n.operands)
    uses.update(x.serial for array in graph.outputs.values() for x in array.flat if isinstance(x, Node))
    inner: set[int] = set()
    terms_of_sum: dict[int, list[Value]] = {}
    for n in reversed(graph.nodes):
        if n.op not in NEUTRAL or n.serial in inner:
            continue
        terms, members, member = list[Value](), list[Node](), n
        while True:
            members.append(member)
            inner_sum = next((a for a in member.operands if a.op == n.op and uses[a.serial] == 1), None)
            if inner_sum is None:
                terms += reversed(member.args)
                break
            terms.append(next(a for a in member.args if a is not inner_sum))
            member = inner_sum
        if len(members) >= MIN_SUM_TERMS:
            terms_of_sum[n.serial] = terms[::-1]
            inner.update(m.serial for m in members[1:])
    return terms_of_sum


def _levels(graph: Graph, sums: dict[int, list[Value]]) -> list[list[Node]]:
    """Return the nodes level by level; a node is one level above its highest operand.

    Comparisons and the inner nodes of reductions have no place of their own.
    """
    level: dict[int, int] = {}
    levels: list[list[Node]] = []
    hidden = _inside(graph, sums)
    for n in graph.nodes:
        if n.serial in hidden:
            continue
        operands = [a for a in sums[n.serial] if isinstance(a, Node)] if n.serial in sums else n.operands
        node_level = max((level[a.serial] for a in operands), default=-1)
        if n.op not in COMPARISONS:
            node_level += 1
            while len(levels) <= node_level:
                levels.append([])
            levels[node_level].append(n)
        level[n.serial] = node_level
    return levels


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
