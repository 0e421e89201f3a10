"""Earliest finish times and critical path of a graph on unlimited processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.errors import InputError, brief
from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import OPS, PLUMBING


def operation_costs(cost: Mapping[str, float] | None) -> dict[str, float]:
    """Return the cost of every operation: from `cost`, otherwise from the operation table."""
    if cost is not None and not isinstance(cost, Mapping):
        raise InputError(f"cost is {brief(cost)}; expected a mapping, {{operation: cost}}.")
    return {name: op.cost for name, op in OPS.items()} | dict(cost or {}) | dict.fromkeys(PLUMBING, 0.0)


def finish_times(nodes: Sequence[Node], cost: Mapping[str, float] | None) -> dict[int, float]:
    """Return the finish time of each node by serial number; `nodes` are in topological order, `cost` by operation."""
    weight = operation_costs(cost)
    finish: dict[int, float] = {}
    for node in nodes:
        duration = node.args[0].span(cost) if node.op == "call" else weight[node.op]
        finish[node.serial] = duration + max((finish[a.serial] for a in node.operands), default=0.0)
    return finish


def longest_path(nodes: Sequence[Node], cost: Mapping[str, float] | None) -> list[Node]:
    """Return one longest path through `nodes` from an input to an output, with `cost` by operation."""
    finish = finish_times(nodes, cost)
    node: Node | None = max(nodes, key=lambda n: finish[n.serial], default=None)
    path = []
    while node is not None:
        path.append(node)
        node = max(node.operands, key=lambda n: finish[n.serial], default=None)
    return path[::-1]
