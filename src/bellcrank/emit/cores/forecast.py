"""How long streams of instructions take on cores that look ahead: a schedule's times, with latency.

A schedule adds up work, as if a core were never short of something to do. A recursion along a chain is: each result
waits for the one before, and two cores that share such a chain both wait. Here a core starts instructions at its rate,
and slower where values have to come from memory; each is done a latency after its arguments, and no more than WINDOW
are under way. A message arrives its price later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from bellcrank.emit.cpu.costs import FARTHEST_USE
from bellcrank.emit.cpu.plan import LATENCY, order
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import OPS
from bellcrank.scheduling import Schedule

WINDOW = 130  # operations under way; loads and stores take the rest of a reorder buffer


ARITHMETIC = ("add", "sub", "mul", "select")


@dataclass(frozen=True)
class Rates:
    """ns: of an operation on values in registers, of a value from memory, until a result can be used."""

    dense: float
    recall: float
    latency: float


class Core:
    def __init__(self, rates: Rates, now: float) -> None:
        self.rates, self.now, self.retired = rates, now, now
        self.flying: deque[float] = deque()
        self.touched: dict[int, int] = {}
        self.count = 0

    def issue(self, node: Node, cost: float) -> None:
        """Takes its turn; values that were last touched long ago have left the registers."""
        far = 0
        for a in node.operands:
            far += self.count - self.touched.get(a.serial, self.count) > FARTHEST_USE
            self.touched[a.serial] = self.count
        self.touched[node.serial] = self.count
        self.count += 1
        self.now += (self.rates.dense if OPS[node.op].kind in ARITHMETIC else cost) + far * self.rates.recall

    def do(self, ready: float, latency: float) -> float:
        """When what was issued is done."""
        if len(self.flying) == WINDOW:
            self.now = max(self.now, self.flying.popleft())
        done = max(self.now, ready) + latency
        self.retired = max(self.retired, done)
        self.flying.append(self.retired)
        return done

    @property
    def end(self) -> float:
        return max(self.now, self.retired)


def forecast(graph: Graph, schedule: Schedule, stays: Mapping[int, int], rates: Rates) -> float:
    """ns of a state."""
    machine = schedule.machine
    position = {node.serial: i for i, node in enumerate(order(graph))}
    cores = [Core(rates, machine.start if p else 0.0) for p in range(machine.processors)]
    done: dict[int, float] = {}
    sent: dict[int, float] = {}
    home = {n.serial: t.index for t in schedule.tasks for n in t.nodes}
    for i in sorted(range(len(schedule.tasks)), key=lambda i: (schedule.start[i], schedule.finish[i], i)):
        task, p = schedule.tasks[i], schedule.where[i]
        for node in sorted(task.nodes, key=lambda n: position[n.serial]):
            ready = 0.0
            for a in node.operands:
                if a.op != "input":
                    j = home[a.serial]
                    ready = max(ready, done[a.serial] if schedule.where[j] == p else sent[j])
            cores[p].issue(node, machine.cost[node.op])
            if node.serial in stays:  # a part of its sum
                done[node.serial] = ready
            else:
                latency = rates.latency * LATENCY.get(node.op, 10.0) / LATENCY["add"]
                done[node.serial] = cores[p].do(ready, latency)
        last = max((done[n.serial] for n in task.nodes), default=cores[p].now)
        sent[i] = last + machine.message(task.gives)
    return max(cores[p].end + (machine.start if p else 0.0) for p in {0, *schedule.where})
