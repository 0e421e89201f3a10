"""The compiler tower's middle: graphs of scalar operations, and programs made of them. Knows nothing of mechanics."""

from bellcrank.graph.graph import Count, Graph, Pulled, trace
from bellcrank.graph.program import Layout, Ports, Program
from bellcrank.graph.recursion import Recursion
from bellcrank.nodes.node import Node, Value
from bellcrank.nodes.tape import Tape

__all__ = ["Count", "Graph", "Layout", "Node", "Ports", "Program", "Pulled", "Recursion", "Tape", "Value", "trace"]
