"""When each operation of a graph is done at the earliest, with as many processors as one likes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.errors import InputError, brief
from bellcrank.nodes.node import Node
from bellcrank.nodes.ops import OPS, PLUMBING


def weights(cost: Mapping[str, float] | None) -> dict[str, float]:
    """Of every operation: as told, or as the table has it."""
    if cost is not None and not isinstance(cost, Mapping):
        raise InputError(f"cost is {brief(cost)}; expected a mapping, {{operation: cost}}.")
    return {name: op.cost for name, op in OPS.items()} | dict(cost or {}) | dict.fromkeys(PLUMBING, 0.0)


def finished(nodes: Sequence[Node], cost: Mapping[str, float] | None) -> dict[int, float]:
    """By serial number of a node, when it is done."""
    weight = weights(cost)
    finish: dict[int, float] = {}
    for node in nodes:
        own = node.args[0].span(cost) if node.op == "call" else weight[node.op]
        finish[node.serial] = own + max((finish[a.serial] for a in node.operands), default=0.0)
    return finish


def longest(nodes: Sequence[Node], cost: Mapping[str, float] | None) -> list[Node]:
    """One longest path, from an input to an output."""
    finish = finished(nodes, cost)
    at: Node | None = max(nodes, key=lambda n: finish[n.serial], default=None)
    path = []
    while at is not None:
        path.append(at)
        at = max(at.operands, key=lambda n: finish[n.serial], default=None)
    return path[::-1]
