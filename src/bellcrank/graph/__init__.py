"""The compiler tower's middle: graphs of scalar operations. Knows nothing of mechanics."""

from bellcrank.graph.graph import Count, Graph, trace
from bellcrank.nodes.node import Node, Tape, Value

__all__ = ["Count", "Graph", "Node", "Tape", "Value", "trace"]
