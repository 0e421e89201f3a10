"""The nodes of one trace, hash-consed: the same operation on the same arguments is the same node, so tracing is also
common subexpression elimination.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from bellcrank.errors import TraceError
from bellcrank.nodes.evaluation import evaluated
from bellcrank.nodes.node import Alike, Node, Value, constant
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.quoting import line
from bellcrank.scalar import current_step, step

PARAMETERS = "p"  # the input whose elements are a model's free numbers
Table: TypeAlias = dict[str, dict[tuple[Any, ...], Node]]  # by operation, then by arguments


class Tape:
    """The nodes of one trace. Serial numbers count creations, so the same code gives the same text every run."""

    free = False  # whether its nodes are the free numbers of models, which any other tape takes in

    def __init__(self, parameters: Sequence[str] = ()) -> None:
        """parameters: names of the elements of the input `p`, which stand for the free numbers of a model."""
        self.nodes: list[Node] = []
        self.parameters = {name: i for i, name in enumerate(parameters)}
        self.taken_in: dict[Node, Value] = {}
        self.table: Table = defaultdict(dict)
        self.compares = False  # whether any of its nodes is a comparison
        self.alike: list[Alike] = []

    def node(self, op: str, *args: Any) -> Node:
        same = self.table[op]
        found = same.get(args)
        if found is None:
            if self.compares:
                numbers = args[1:] if op == "where" else args
                if any(isinstance(a, Node) and a.op in COMPARISONS for a in numbers):
                    raise TraceError(f"{op} of a comparison: a truth is no number. Write where(condition, 1.0, 0.0).")
            found = Node(self, op, args, len(self.nodes), current_step())
            self.nodes.append(found)
            same[args] = found
            self.compares = self.compares or op in COMPARISONS
        return found

    def anew(self, op: str, *args: Any) -> Node:
        """A node of its own, though the same may be there: what is computed twice on purpose."""
        found = Node(self, op, args, len(self.nodes), current_step())
        self.nodes.append(found)
        return found

    def call(self, function: Any, *values: Any) -> list[Value]:
        """The outputs of another graph for these inputs, flat, computed by one node: what is called often is compiled
        once. `Graph.call` checks the sizes and is what people use.
        """
        return self.results(self.node("call", function, *(self.value(v) for v in values)))

    def results(self, call: Node) -> list[Value]:
        """The outputs of a call. What was called hands some of its inputs on as they came: those are not waited for."""
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
        """An array of input nodes, one per element."""
        array = np.empty(shape, dtype=object)
        for flat, index in enumerate(np.ndindex(*shape)):
            array[index] = self.node("input", name, flat)
        return array

    def value(self, x: Any) -> Value:
        """Anything on its way into this graph: a node is there, a free number is computed from p, the rest constant."""
        if not isinstance(x, Node):
            return constant(x)
        if x.tape is self:
            return x
        if not x.tape.free:
            foreign(x)
        before = current_step()
        step("p")
        found: Value = evaluated(x, self._parameter, self.taken_in)
        step(before)
        return found

    def reversed(self, op: str, a: Value, b: Value) -> Node | None:
        """The same operation on swapped arguments, where it is there already."""
        return self.table[op].get((b, a))

    def _parameter(self, leaf: Node) -> Node:
        name = leaf.args[0]
        if name not in self.parameters:
            raise TraceError(
                f'the free parameter "{name}" met a traced scalar, but this graph has no input for it. Known: '
                f"{', '.join(self.parameters) or 'none'}. Name it in trace(..., parameters=[...])."
            )
        return self.node("input", PARAMETERS, self.parameters[name])


def foreign(x: Node, where: str = "") -> NoReturn:
    """Two traces met in one expression: their serial numbers mean different things."""
    what = f"{x.args[0]}[{x.args[1]}]" if x.op == "input" else x.label or x.op
    raise TraceError(
        f"{where}scalars of two traces met: {line(what)} is of another than this one. A function is run on symbols "
        "once for each graph that needs it, and a symbol ends with its run: an object must not keep one from call to "
        "call (self.last = q[0]). What a control or an actuator remembers is a state "
        "(states=...), what it is told an input."
    )
