"""Tape: the hash-consed nodes of one trace, and their evaluation on floats, arrays, or the nodes of another trace.

The same operation on the same arguments is the same node, so tracing is also common subexpression elimination.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from bellcrank import scalar
from bellcrank.errors import TraceError
from bellcrank.nodes.node import ColumnwiseNote, Node, Value, constant
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.quoting import single_line
from bellcrank.scalar import Scalar, current_step, step

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


PARAMETERS = "p"  # the input whose elements are the free parameters of a model
Table: TypeAlias = dict[str, dict[tuple[Any, ...], Node]]  # by operation, then by arguments


class Tape:
    """The nodes of one trace.

    Serial numbers count creations, so the same program gives the same generated code in every run.
    """

    free = False  # true for the tape of free parameters, whose nodes any other tape can import

    def __init__(self, parameters: Sequence[str] = ()) -> None:
        """Start an empty tape.

        Parameters
        ----------
        parameters
            Names of the elements of the input `p`, which stand for the free parameters of a model.
        """
        self.nodes: list[Node] = []
        self.parameters = {name: i for i, name in enumerate(parameters)}
        self.imported: dict[Node, Value] = {}
        self.table: Table = defaultdict(dict)
        self.compares = False  # true if any of its nodes is a comparison
        self.columnwise_notes: list[ColumnwiseNote] = []

    def node(self, op: str, *args: Any) -> Node:
        """Return the node of operation `op` on `args`; create it if it does not exist."""
        same = self.table[op]
        node = same.get(args)
        if node is None:
            if self.compares:
                numbers = args[1:] if op == "where" else args
                if any(isinstance(a, Node) and a.op in COMPARISONS for a in numbers):
                    raise TraceError(
                        f"{op} of a comparison: a truth value is not a number. Write where(condition, 1.0, 0.0)."
                    )
            node = Node(self, op, args, len(self.nodes), current_step())
            self.nodes.append(node)
            same[args] = node
            self.compares = self.compares or op in COMPARISONS
        return node

    def duplicate(self, op: str, *args: Any) -> Node:
        """Create a node of operation `op` on `args` even if an equal one exists (deliberate recomputation)."""
        node = Node(self, op, args, len(self.nodes), current_step())
        self.nodes.append(node)
        return node

    def call(self, function: Any, *values: Any) -> list[Value]:
        """Call another graph by one node and return its outputs as a flat list.

        A graph that is called often is compiled once. `Graph.call` checks the sizes and is the public interface.

        Parameters
        ----------
        function
            The graph to call.
        values
            One value for each element of its inputs.
        """
        return self.results(self.node("call", function, *(self.value(v) for v in values)))

    def results(self, call: Node) -> list[Value]:
        """Return the outputs of the node `call`; inputs that the called graph returns unchanged do not wait for it."""
        function, *values = call.args
        if function.opaque:
            return [self.node("result", call, i) for i in range(sum(map(math.prod, function.shapes.values())))]
        given = dict(zip(function.elements, values, strict=True))

        def result(i: int, x: Value) -> Value:
            if not isinstance(x, Node):
                return x
            return given[x.args] if x.op == "input" else self.node("result", call, i)

        return [result(i, x) for i, x in enumerate(x for array in function.outputs.values() for x in array.flat)]

    def inputs(self, name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Return an array of input nodes for the input `name`, one for each element of `shape`."""
        array = np.empty(shape, dtype=object)
        for flat, index in enumerate(np.ndindex(*shape)):
            array[index] = self.node("input", name, flat)
        return array

    def value(self, x: Any) -> Value:
        """Convert `x` to a value of this tape.

        Nodes of this tape stay, expressions of free parameters are evaluated on the input p, numbers become constants.
        """
        if not isinstance(x, Node):
            return constant(x)
        if x.tape is self:
            return x
        if not x.tape.free:
            raise_foreign_node(x)
        outer_step = current_step()
        step("p")
        value: Value = evaluate(x, self._parameter, self.imported)
        step(outer_step)
        return value

    def reversed(self, op: str, a: Value, b: Value) -> Node | None:
        """Return the node of `op` with `a` and `b` swapped, or None if it does not exist."""
        return self.table[op].get((b, a))

    def _parameter(self, leaf: Node) -> Node:
        name = leaf.args[0]
        if name not in self.parameters:
            raise TraceError(
                f'the free parameter "{name}" was combined with a traced scalar, but this graph has no input for it. '
                f"Known: {', '.join(self.parameters) or 'none'}. Name it in trace(..., parameters=[...])."
            )
        return self.node("input", PARAMETERS, self.parameters[name])


def raise_foreign_node(x: Node, where: str = "") -> NoReturn:
    """Raise TraceError because node `x` belongs to another trace; `where` begins the message.

    Serial numbers of two traces are unrelated, so their nodes cannot be combined in one expression.
    """
    what = f"{x.args[0]}[{x.args[1]}]" if x.op == "input" else x.label or x.op
    raise TraceError(
        f"{where}scalars of two traces were combined: {single_line(what)} belongs to another trace. A function is "
        "traced once for each graph that needs it, and its symbols are valid only during that trace: an object must "
        "not store one between calls (self.last = q[0]). Declare the memory of a control or an actuator as a state "
        "(states=...), and values from outside as inputs."
    )
