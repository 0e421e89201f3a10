"""How long streams of instructions take on cores that look ahead: a schedule's times, with latency.

A schedule adds up work, as if a core were never short of something to do. A recursion along a chain is: each result
waits for the one before, and two cores that share such a chain both wait. Here a core starts instructions at its rate,
each is done a latency after its arguments, and no more than WINDOW are under way. A message arrives its price later.
"""

from __future__ import annotations

from collections import deque

from bellcrank.emit.order import LATENCY, order
from bellcrank.graph import Graph, Node
from bellcrank.schedule import Machine, Schedule

WINDOW = 130  # operations under way; loads and stores take the rest of a reorder buffer


class Core:
    def __init__(self, machine: Machine, latency: float, now: float) -> None:
        self.machine, self.latency, self.now = machine, latency, now
        self.flying: deque[float] = deque()
        self.retired = now

    def do(self, cost: float, ready: float, latency: float) -> float:
        """When it is done."""
        if len(self.flying) == WINDOW:
            self.now = max(self.now, self.flying.popleft())
        self.now += cost
        done = max(self.now, ready) + latency
        self.retired = max(self.retired, done)
        self.flying.append(self.retired)
        return done

    def end(self) -> float:
        return max(self.now, self.retired)


def forecast(graph: Graph, schedule: Schedule, stays: dict[int, int], latency: float) -> float:
    """ns of a state; `latency` is that of an addition, in ns."""
    machine = schedule.machine
    position = {node.serial: i for i, node in enumerate(order(graph))}
    cores = [Core(machine, latency, machine.start if p else 0.0) for p in range(machine.processors)]
    done: dict[int, float] = {}
    sent: dict[int, float] = {}
    where = {n.serial: (schedule.where[t.index], t.index) for t in schedule.tasks for n in t.nodes}
    turn = sorted(range(len(schedule.tasks)), key=lambda i: (schedule.start[i], schedule.finish[i], i))
    for i in turn:
        task, p = schedule.tasks[i], schedule.where[i]
        core = cores[p]

        def ready(a: Node, p: int = p) -> float:
            if a.op == "input":
                return 0.0
            q, j = where[a.serial]
            return done[a.serial] if p == q else sent[j]

        for node in sorted(task.nodes, key=lambda n: position[n.serial]):
            before = max((ready(a) for a in node.operands), default=0.0)
            if node.serial in stays:  # a part of its sum
                core.now += machine.cost[node.op]
                done[node.serial] = before
            else:
                wait = latency * LATENCY.get(node.op, 10.0) / LATENCY["add"]
                done[node.serial] = core.do(machine.cost[node.op], before, wait)
        outside = max((done[n.serial] for n in task.nodes), default=core.now)
        sent[i] = outside + machine.message(task.gives)
    used = set(schedule.where)
    return max([cores[0].end(), *(cores[p].end() + machine.start for p in used if p)])
