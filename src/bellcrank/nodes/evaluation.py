"""Re-evaluation of expression nodes: on floats, on arrays, or on the nodes of another trace."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from bellcrank import scalar
from bellcrank.nodes.node import Node
from bellcrank.scalar import Scalar

SCALAR_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "lt": operator.lt, "le": operator.le, "sin": scalar.sin, "cos": scalar.cos, "tan": scalar.tan,
    "asin": scalar.asin, "acos": scalar.acos, "sqrt": scalar.sqrt, "exp": scalar.exp, "log": scalar.log,
    "tanh": scalar.tanh, "abs": scalar.fabs, "floor": scalar.floor, "minimum": scalar.minimum,
    "maximum": scalar.maximum, "atan2": scalar.atan2, "where": scalar.where,
}  # fmt: skip


def topological_order(*nodes: Node, known: Mapping[Node, Any] | None = None) -> list[Node]:
    """Return `nodes` and all their ancestors in topological order, each once, without those in `known`."""
    out: dict[Node, None] = {}
    stack = list(reversed(nodes))
    while stack:
        x = stack[-1]
        missing = [a for a in x.operands if a not in out and (known is None or a not in known)]
        if x in out or (known is not None and x in known) or not missing:
            stack.pop()
            if known is None or x not in known:
                out[x] = None
        else:
            stack.extend(reversed(missing))
    return list(out)


def evaluate(x: Node, leaf: Callable[[Node], Scalar], known: dict[Node, Scalar] | None = None) -> Scalar:
    """Evaluate an expression of free parameters on floats, arrays or the nodes of a trace.

    Parameters
    ----------
    x
        The expression.
    leaf
        Function that gives the value of a free parameter.
    known
        Values computed so far, by node; this call adds its own.
    """
    known = {} if known is None else known
    for e in topological_order(x, known=known):
        if e.op == "parameter":
            known[e] = leaf(e)
        else:
            known[e] = SCALAR_OPERATIONS[e.op](*(known[a] if isinstance(a, Node) else a for a in e.args))
    return known[x]
