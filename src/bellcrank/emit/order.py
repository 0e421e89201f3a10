"""The order in which a graph's nodes are computed."""

from __future__ import annotations

from bellcrank.graph import Graph, Node


def order(graph: Graph) -> list[Node]:
    return graph.nodes
