"""Latency-aware run-time prediction for a schedule on out-of-order cores.

A schedule adds up work, as if a core always had an instruction to execute. A recursion along a chain breaks that
assumption: each result waits for the one before, and two cores that share such a chain both stall. Here a core issues
instructions at its rate, and more slowly where values must come from memory; each completes a latency after its
operands, and at most REORDER_WINDOW are in flight. A message arrives after its cost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from bellcrank.emit.cpu.costs import FARTHEST_USE_OPERATIONS
from bellcrank.emit.llvm.scheduling import LATENCY_CYCLES, order
from bellcrank.graph import Graph, Node
from bellcrank.nodes.ops import OPS
from bellcrank.scheduling import Schedule

REORDER_WINDOW = 130  # operations in flight; loads and stores take the rest of the reorder buffer


ARITHMETIC = ("add", "sub", "mul", "select")


@dataclass(frozen=True)
class Rates:
    """Times in ns: of an operation on registers, of a value from memory, and of the latency of a result."""

    dense: float
    reload: float
    latency: float


class CoreModel:
    """One out-of-order core."""

    def __init__(self, rates: Rates, now: float) -> None:
        self.rates, self.now, self.retired = rates, now, now
        self.in_flight: deque[float] = deque()
        self.last_use: dict[int, int] = {}
        self.count = 0

    def issue(self, node: Node, cost: float) -> None:
        """Issue `node` at its `cost`; operands that were last used long ago are reloaded from memory."""
        far = 0
        for a in node.operands:
            far += self.count - self.last_use.get(a.serial, self.count) > FARTHEST_USE_OPERATIONS
            self.last_use[a.serial] = self.count
        self.last_use[node.serial] = self.count
        self.count += 1
        self.now += (self.rates.dense if OPS[node.op].kind in ARITHMETIC else cost) + far * self.rates.reload

    def complete(self, ready: float, latency: float) -> float:
        """Return the completion time of the issued operation.

        Parameters
        ----------
        ready
            Time at which the operands are available.
        latency
            Time from start to completion.
        """
        if len(self.in_flight) == REORDER_WINDOW:
            self.now = max(self.now, self.in_flight.popleft())
        done = max(self.now, ready) + latency
        self.retired = max(self.retired, done)
        self.in_flight.append(self.retired)
        return done

    @property
    def end(self) -> float:
        """Time at which everything has completed."""
        return max(self.now, self.retired)


def forecast(graph: Graph, schedule: Schedule, stays: Mapping[int, int], rates: Rates) -> float:
    """Return the predicted ns of a state.

    Parameters
    ----------
    graph
        Graph of one state.
    schedule
        Assignment of its tasks to cores.
    stays
        Nodes that are fused into their user.
    rates
        Measured times of this computer.
    """
    machine = schedule.machine
    position = {node.serial: i for i, node in enumerate(order(graph))}
    cores = [CoreModel(rates, machine.start if p else 0.0) for p in range(machine.processors)]
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
            if node.serial in stays:  # fused into its sum
                done[node.serial] = ready
            else:
                latency = rates.latency * LATENCY_CYCLES.get(node.op, 10.0) / LATENCY_CYCLES["add"]
                done[node.serial] = cores[p].complete(ready, latency)
        last = max((done[n.serial] for n in task.nodes), default=cores[p].now)
        sent[i] = last + machine.message(task.gives)
    return max(cores[p].end + (machine.start if p else 0.0) for p in {0, *schedule.where})
