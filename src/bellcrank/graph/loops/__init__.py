"""The one representation of loops: statements that every target prints, and what is translated to them.

Recursions over identical bodies, linear systems, and graphs with many identical operations become the same few
statements (statements.py).
"""

from __future__ import annotations

from bellcrank.graph.graph import Graph
from bellcrank.graph.linear_solve import LinearSystem
from bellcrank.graph.loop_levels import roll_if_worthwhile
from bellcrank.graph.loops.linear_systems import linear_system_loops
from bellcrank.graph.loops.recursions import recursion_loops
from bellcrank.graph.loops.statements import LoopProgram
from bellcrank.graph.recursion import Recursion

__all__ = ["LoopProgram", "loop_program"]


def loop_program(graph: Graph) -> LoopProgram | None:
    """Return `graph` as loops, or None if straight-line code is better."""
    if isinstance(graph, Recursion):
        return recursion_loops(graph)
    if isinstance(graph, LinearSystem):
        return linear_system_loops(graph)
    rolled = roll_if_worthwhile(graph)
    return rolled.program if rolled is not None else None
