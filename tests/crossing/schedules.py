"""Execute a schedule: each processor computes its tasks from the values it has, at the scheduled times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.graph import Graph, Node
from bellcrank.graph.inline import inline
from bellcrank.nodes.ops import OPS
from bellcrank.scheduling import Schedule

Array = np.ndarray[Any, Any]
# (machine, kind, level); a seed chooses one. On a warp, tasks are always single operations.
MACHINES = (
    ("complete:2", "t800", "auto"), ("mesh:2,2", "ideal", "cluster"), ("bus:3", "t800", "cluster"),
    ("pipeline:3", "ideal", "node"), ("hypercube:2", "hidden", "cluster"), ("triangle:2", "explicit", "cluster"),
    ("complete:3", "ideal", "node"), ("cone:2", "t800", "cluster"), ("single", "ideal", "node"), ("warp:4", "", ""),
)  # fmt: skip
MOST_NODES = 3000  # limit for graphs that are scheduled node by node, in a second or two
EFFORT = 10_000  # number of values examined to shorten a schedule
LATE = 1e-9  # tolerance relative to the makespan: times are sums of floats


@dataclass
class _Replay:
    """Values that every processor has, and since when: node -> (time, value)."""

    schedule: Schedule
    inputs: dict[str, Array]
    known: list[dict[int, tuple[float, Any]]] = field(default_factory=list)

    def run(self) -> None:
        s = self.schedule
        self.known = [{} for _ in range(s.machine.processors)]
        sent: dict[int, list[Any]] = {}
        for m in s.messages:
            sent.setdefault(m.task, []).append(m)
        for task in s.tasks:  # arguments before users
            here, start = self.known[s.where[task.index]], s.start[task.index] + LATE * s.makespan
            own: dict[int, Any] = {}
            for node in task.nodes:
                own[node.serial] = self._value(node, own, here, start)
            here.update({k: (s.finish[task.index], x) for k, x in own.items() if k not in here})
            for m in sent.get(task.index, ()):
                there = self.known[m.target]
                there.update({k: (m.arrival, x) for k, x in own.items() if k not in there or there[k][0] > m.arrival})

    def _value(self, node: Node, own: dict[int, Any], here: dict[int, tuple[float, Any]], start: float) -> Any:
        args = []
        for a in node.args:
            if not isinstance(a, Node):
                args.append(a)
            elif a.op == "input":
                name, flat = a.args
                args.append(self.inputs[name].reshape(-1)[flat])
            elif a.serial in own:
                args.append(own[a.serial])
            else:
                assert a.serial in here, f"{node.op}: {a.op} {a.serial} never comes to its processor"
                assert here[a.serial][0] <= start, f"{node.op}: {a.op} {a.serial} comes too late"
                args.append(here[a.serial][1])
        return OPS[node.op].value(*args)

    def result(self, x: Any) -> Any:
        """Return the value of an element of an output, which may stay on the processor that computed it."""
        if not isinstance(x, Node):
            return x
        if x.op == "input":
            return self.inputs[x.args[0]].reshape(-1)[x.args[1]]
        return next(known[x.serial][1] for known in self.known if x.serial in known)


def replayed(s: Schedule, graph: Graph, inputs: dict[str, Array]) -> dict[str, Array]:
    """Return the outputs of a graph for one state, as the processors of a schedule compute them."""
    replay = _Replay(s, inputs)
    with np.errstate(all="ignore"):
        replay.run()
        return {name: np.array([replay.result(x) for x in out.flat], float).reshape(out.shape)
                for name, out in graph.outputs.items()}  # fmt: skip


def follows(graph: Graph, inputs: dict[str, Array], seed: int) -> dict[str, Array]:
    """Schedule a graph on a machine that the seed chooses, and return the executed outputs."""
    graph = inline(graph) if graph.calls else Graph(graph.name, graph.inputs, graph.outputs, graph.tape)
    machine, kind, level = MACHINES[seed % len(MACHINES)]
    if len(graph.nodes) > MOST_NODES:
        machine, kind, level = (
            ("complete:2", "t800", "cluster") if machine.startswith("warp") else (machine, kind, "cluster")
        )
    with pytest.MonkeyPatch.context() as patch:  # a schedule need not be the shortest
        patch.setattr("bellcrank.scheduling.list_scheduling.EFFORT_LOOKUPS", EFFORT)
        s = bc.schedule(graph, machine=machine, kind=kind, level=level)
    s.check()
    given = {name: np.asarray(x, float) for name, x in inputs.items()}
    found, wanted = replayed(s, graph, given), graph.evaluate(**given)
    for name, x in wanted.items():
        np.testing.assert_array_equal(found[name], x, err_msg=f"{name} of {graph.name} on {machine}")
    return found
