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
    place = {n.serial: i for i, n in enumerate(nodes)}
    users: list[list[int]] = [[] for _ in nodes]
    missing = [0] * len(nodes)
    for i, n in enumerate(nodes):
        arguments = {a.serial for a in n.operands}
        missing[i] = len(arguments)
        for serial in arguments:
            users[place[serial]].append(i)
    urgency = [0.0] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):
        after = max([urgency[u] for u in users[i]]) if users[i] else 0.0
        urgency[i] = LATENCY.get(nodes[i].op, 10.0) + after

    result: list[Node] = []
    done = bytearray(len(nodes))
    ready: list[tuple[float, int]] = []
    first = horizon = 0
    while len(result) < len(nodes):
        while horizon < min(len(nodes), first + window):
            if not missing[horizon]:
                heapq.heappush(ready, (-urgency[horizon], horizon))
            horizon += 1
        _, i = heapq.heappop(ready)
        result.append(nodes[i])
        done[i] = 1
        for user in users[i]:
            missing[user] -= 1
            if not missing[user] and user < horizon:
                heapq.heappush(ready, (-urgency[user], user))
        while first < len(nodes) and done[first]:
            first += 1
    return result
