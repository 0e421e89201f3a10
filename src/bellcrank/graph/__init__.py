"""Data-flow graphs of scalar operations, and the programs built from them; independent of mechanics."""

from bellcrank.graph.graph import Count, CustomPullbackGraph, Graph, trace
from bellcrank.graph.layout import Layout
from bellcrank.graph.program import Ports, Program
from bellcrank.graph.recursion import Recursion
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.tape import Tape

__all__ = [
    "Count",
    "CustomPullbackGraph",
    "Graph",
    "Layout",
    "Node",
    "Ports",
    "Program",
    "Recursion",
    "Tape",
    "Value",
    "trace",
]
