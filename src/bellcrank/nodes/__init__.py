"""Expression nodes: scalars that record the operations applied to them.

    ops.py          the table of operations
    node.py         a Node and its folding arithmetic
    tape.py         the Tape that holds the nodes of one trace, and their evaluation on other scalars

The compiler and the model layer both use this package. A trace has nodes on a tape of its own. The free parameters of
models (parameters/) have theirs on one tape that all models share; they are copied to the tape of a trace when they
meet one of its nodes.
"""

from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import Tape

__all__ = ["Node", "Tape"]
