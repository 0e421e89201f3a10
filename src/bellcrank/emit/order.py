"""The order in which a graph's nodes are computed.

The order of creation is a good start: a method sweeps body by body, so values die young and registers suffice. Inside
a window of it, whatever heads the longest dependent path goes first, so that a processor which looks a few hundred
instructions ahead always finds something to do. A wider window gains nothing more and makes values wait in memory.
"""

from __future__ import annotations

import heapq

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


def order(graph: Graph, window: int = WINDOW) -> list[Node]:
    """All live nodes, arguments first."""
    nodes = graph.nodes
    position = {n.serial: i for i, n in enumerate(nodes)}
    users: dict[int, list[Node]] = {n.serial: [] for n in nodes}
    missing: dict[int, int] = {}
    for n in nodes:
        arguments = {a.serial: a for a in n.operands}
        missing[n.serial] = len(arguments)
        for serial in arguments:
            users[serial].append(n)
    urgency: dict[int, float] = {}
    for n in reversed(nodes):
        urgency[n.serial] = LATENCY.get(n.op, 10.0) + max((urgency[u.serial] for u in users[n.serial]), default=0.0)

    result: list[Node] = []
    done: set[int] = set()
    ready: list[tuple[float, int]] = []
    first = horizon = 0
    while len(result) < len(nodes):
        while horizon < min(len(nodes), first + window):
            n = nodes[horizon]
            horizon += 1
            if not missing[n.serial]:
                heapq.heappush(ready, (-urgency[n.serial], n.serial))
        _, serial = heapq.heappop(ready)
        result.append(nodes[position[serial]])
        done.add(serial)
        for user in users[serial]:
            missing[user.serial] -= 1
            if not missing[user.serial] and position[user.serial] < horizon:
                heapq.heappush(ready, (-urgency[user.serial], user.serial))
        while first < len(nodes) and nodes[first].serial in done:
            first += 1
    return result
