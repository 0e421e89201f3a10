"""The one symbolic engine, below both towers: scalars that record what is done with them.

    ops.py          the table of operations
    node.py         a Node and its folding arithmetic
    tape.py         the Tape that keeps the nodes of one trace
    evaluation.py   nodes computed again

A tracing graph has nodes on a tape of its own; the free numbers of a model (parameters/) have theirs on a tape that
all models share, and become nodes of a trace where they meet one.
"""

from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import Tape

__all__ = ["Node", "Tape"]
