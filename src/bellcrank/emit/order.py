"""The order in which a graph's nodes are computed.

The order of creation is a good start: a method sweeps body by body, so values die young and registers suffice. Inside
a window of it, whatever heads the longest dependent path goes first, so that a processor which looks a few hundred
instructions ahead always finds something to do. A wider window gains nothing more and makes values wait in memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from bellcrank.graph import Graph, Node

# Cycles until a result can be used, about right for today's cores; only the proportions matter.
LATENCY = {
    "add": 3.0,
    "sub": 3.0,
    "mul": 3.5,
    "div": 15.0,
    "sqrt": 20.0,
    "neg": 0.0,
    "sin": 60.0,
    "cos": 60.0,
    "input": 5.0,
    "call": 500.0,
    "result": 5.0,
}

WINDOW = 100


_known: WeakKeyDictionary[Graph, dict[int, list[Node]]] = WeakKeyDictionary()  # a choice and its code ask for the same


def order(graph: Graph, window: int = WINDOW) -> list[Node]:
    """All live nodes, arguments first. Made once for each graph: take it as it is."""
    orders = _known.setdefault(graph, {})
    if window not in orders:
        orders[window] = _ordered(graph.nodes, window)
    return orders[window]


def _ordered(nodes: Sequence[Node], window: int) -> list[Node]:
    """Plain lists and few calls: every node of every graph goes through this, some of them three times."""
    total, place = len(nodes), {n.serial: i for i, n in enumerate(nodes)}
    users: list[list[int]] = [[] for _ in nodes]
    missing = [0] * total
    for i, n in enumerate(nodes):
        arguments = n.operands
        if len(arguments) > 1 and (len(arguments) > 2 or arguments[0] is arguments[1]):
            arguments = tuple({a.serial: a for a in arguments}.values())
        missing[i] = len(arguments)
        for a in arguments:
            users[place[a.serial]].append(i)
    urgency = [0.0] * total
    for i in range(total - 1, -1, -1):
        after = 0.0
        for u in users[i]:
            if urgency[u] > after:
                after = urgency[u]
        urgency[i] = LATENCY.get(nodes[i].op, 10.0) + after

    push, pop = heapq.heappush, heapq.heappop
    result: list[Node] = []
    done = bytearray(total)
    ready: list[tuple[float, int]] = []
    first, horizon, limit = 0, 0, min(total, window)
    while first < total:
        while horizon < limit:
            if not missing[horizon]:
                push(ready, (-urgency[horizon], horizon))
            horizon += 1
        i = pop(ready)[1]
        result.append(nodes[i])
        done[i] = 1
        for u in users[i]:
            missing[u] -= 1
            if not missing[u] and u < horizon:
                push(ready, (-urgency[u], u))
        if i == first:
            while first < total and done[first]:
                first += 1
            limit = min(total, first + window)
    return result
