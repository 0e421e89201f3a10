"""Execute a schedule on the simulated machine: the results of the graph, at the times of the timetable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.graph import Graph
from bellcrank.graph.inline import inline

Array = np.ndarray[Any, Any]
# (machine, kind, level); a seed chooses one. On a warp, tasks are always single operations.
MACHINES = (
    ("complete:2", "t800", "auto"), ("mesh:2,2", "ideal", "cluster"), ("bus:3", "t800", "cluster"),
    ("pipeline:3", "ideal", "node"), ("hypercube:2", "hidden", "cluster"), ("triangle:2", "explicit", "cluster"),
    ("complete:3", "ideal", "node"), ("cone:2", "t800", "cluster"), ("single", "ideal", "node"), ("warp:4", "", ""),
)  # fmt: skip
MOST_NODES = 3000  # limit for graphs that are scheduled node by node, in a second or two
EFFORT = 10_000  # number of values examined to shorten a schedule


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
    done, wanted = s.execute(**given), graph.evaluate(**given)
    assert done.observed == s
    for name, x in wanted.items():
        np.testing.assert_array_equal(done.results[name], x, err_msg=f"{name} of {graph.name} on {machine}")
    return dict(done.results)
