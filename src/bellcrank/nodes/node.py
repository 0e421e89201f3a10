"""One node type, hash-consed: the same operation on the same arguments is the same node, so tracing is also common
subexpression elimination. Constants are plain floats and never become nodes; folding happens as nodes are made.

Folding rules, all exact but for the rounding of merged constants: 0 and 1 vanish, signs move outwards (so that x*y and
x*(-y) are one product), x - x is 0, y - x is -(x - y) once x - y exists, constants meet (c*(d*x) is (c*d)*x).
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias, Union

import numpy as np

from bellcrank.errors import TraceError
from bellcrank.jets import Jet
from bellcrank.nodes.ops import COMPARISONS, OPS
from bellcrank.quoting import line
from bellcrank.scalar import (
    Scalar,
    acos,
    asin,
    atan2,
    cos,
    current_step,
    exp,
    fabs,
    floor,
    log,
    maximum,
    minimum,
    sin,
    sqrt,
    step,
    tan,
    tanh,
    where,
)  # fmt: skip

PARAMETERS = "p"  # the input whose elements are a model's free numbers
COMPUTED: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "lt": operator.lt, "le": operator.le, "sin": sin, "cos": cos, "tan": tan,
    "asin": asin, "acos": acos, "sqrt": sqrt, "exp": exp, "log": log,
    "tanh": tanh, "abs": fabs, "floor": floor, "minimum": minimum, "maximum": maximum,
    "atan2": atan2, "where": where,
}  # fmt: skip

Value: TypeAlias = Union["Node", float]
Table: TypeAlias = dict[str, dict[tuple[Any, ...], "Node"]]  # by operation, then by arguments
ABOVE = (np.ndarray, Jet)  # what is made of scalars answers for them


class Alike(NamedTuple):
    """A note on what a trace did for several columns (scalar.columnwise): found[k] is body(shared, columns[k])."""

    body: Callable[..., Any]
    shared: list[Value]
    columns: list[list[Value]]
    found: list[list[Value]]


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


def constant(x: Any) -> float:
    """A number on its way into the graph."""
    try:
        value = float(x)
    except (TypeError, ValueError) as error:
        raise TraceError(
            f"a traced scalar met {x!r} of type {type(x).__name__}; expected a number or a traced scalar."
        ) from error
    if math.isnan(value):
        raise TraceError(
            "a NaN constant entered the graph: some number of the model is NaN; check masses, axes and gravity."
        )
    return value


def foreign(x: Node, where: str = "") -> NoReturn:
    """Two traces met in one expression: their serial numbers mean different things."""
    what = f"{x.args[0]}[{x.args[1]}]" if x.op == "input" else x.label or x.op
    raise TraceError(
        f"{where}scalars of two traces met: {line(what)} is of another than this one. A function is run on symbols "
        "once for each graph that needs it, and a symbol ends with its run: an object must not keep one from call to "
        "call (self.last = q[0]). What a control or an actuator remembers is a state "
        "(states=...), what it is told an input."
    )


def _pair(a: Any, b: Any) -> tuple[Value, Value]:
    """Both on one tape: that of a trace, if either is of one."""
    if not isinstance(a, Node):
        if not isinstance(b, Node):
            return constant(a), constant(b)
        return (a if a.__class__ is float and a == a else b.tape.value(a)), b
    tape = a.tape
    if isinstance(b, Node):
        if b.tape is tape:
            return a, b
        if tape.free:
            return b.tape.value(a), b
    elif b.__class__ is float and b == b:
        return a, b
    return a, tape.value(b)


def _ordered(a: Value, b: Value) -> tuple[Value, Value]:
    """Commutative operands: constants first, then by creation."""
    if isinstance(a, Node) and (not isinstance(b, Node) or b.serial < a.serial):
        return b, a
    return a, b


def _neg(a: Value) -> Value:
    if not isinstance(a, Node):
        return -a
    return a.args[0] if a.op == "neg" else a.tape.node("neg", a)


def _add(a: Value, b: Value) -> Value:
    if not isinstance(a, Node) and not isinstance(b, Node):
        return a + b
    a, b = _ordered(a, b)
    assert isinstance(b, Node)
    if not isinstance(a, Node):
        if a == 0.0:
            return b
        if b.op == "add" and not isinstance(b.args[0], Node):
            return _add(a + b.args[0], b.args[1])
        if b.op == "sub" and not isinstance(b.args[0], Node):
            return _sub(a + b.args[0], b.args[1])
    elif a.op == "neg":
        return _sub(b, a.args[0])
    if b.op == "neg":
        return _sub(a, b.args[0])
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Node) and x.op == "sub" and x.args[1] is y:  # (x - y) + y
            rest: Value = x.args[0]
            return rest
    return b.tape.node("add", a, b)


def _sub(a: Value, b: Value) -> Value:
    if not isinstance(b, Node):
        return _add(a, -b)
    if b.op == "neg":
        return _add(a, b.args[0])
    if a is b:
        return 0.0
    if not isinstance(a, Node):
        if a == 0.0:
            return _neg(b)
        if b.op in ("add", "sub") and not isinstance(b.args[0], Node):
            rest = a - b.args[0]
            return _sub(rest, b.args[1]) if b.op == "add" else _add(rest, b.args[1])
    elif a.op == "neg":
        return _neg(_add(a.args[0], b))
    if b.tape.free and isinstance(a, Node) and a.op == "add" and b in a.args:  # (x + y) - y
        return a.args[1] if a.args[0] is b else a.args[0]  # type: ignore[no-any-return]
    reverse = b.tape.reversed("sub", a, b)
    return reverse.tape.node("neg", reverse) if reverse is not None else b.tape.node("sub", a, b)


def _mul(a: Value, b: Value) -> Value:
    if not isinstance(a, Node) and not isinstance(b, Node):
        return a * b
    a, b = _ordered(a, b)
    assert isinstance(b, Node)
    if not isinstance(a, Node):
        if a == 0.0:
            return 0.0
        if a == 1.0:
            return b
        if a < 0.0:
            return _neg(_mul(-a, b))
        if b.op == "mul" and not isinstance(b.args[0], Node):
            return _mul(a * b.args[0], b.args[1])
        if b.op == "add" and b.args[0] is b.args[1]:
            return _mul(a + a, b.args[0])
    elif a.op == "neg":
        return _neg(_mul(a.args[0], b))
    if b.op == "neg":
        return _neg(_mul(a, b.args[0]))
    if b.tape.free:
        for x, y in ((a, b), (b, a)):
            if isinstance(x, Node) and x.op == "div" and x.args[1] is y:  # (x / y) * y
                return x.args[0]  # type: ignore[no-any-return]
    return b.tape.node("mul", a, b)


def _div(a: Value, b: Value) -> Value:
    if not isinstance(b, Node):
        if b == 0.0:
            raise TraceError("the graph divides by a constant zero; a mass or a length of the model is probably zero.")
        return _mul(a, 1.0 / b)
    if not isinstance(a, Node):
        if a == 0.0:
            return 0.0
        if a < 0.0:
            return _neg(_div(-a, b))
    elif a.op == "neg":
        return _neg(_div(a.args[0], b))
    elif a is b:
        return 1.0
    if b.op == "neg":
        return _neg(_div(a, b.args[0]))
    if b.tape.free and isinstance(a, Node) and a.op == "mul" and b in a.args:  # (x * y) / y
        return a.args[1] if a.args[0] is b else a.args[0]  # type: ignore[no-any-return]
    return b.tape.node("div", a, b)


def _call(op: str, *args: Value) -> Value:
    """Any other operation: folded when all its arguments are constants."""
    owner = next((a for a in args if isinstance(a, Node)), None)
    if owner is None:
        return OPS[op].value(*args).item()  # type: ignore[no-any-return]
    if op in ("sin", "cos") and owner.op == "neg":  # an odd and an even function: the sign moves outwards
        inner = _call(op, owner.args[0])
        return _neg(inner) if op == "sin" else inner
    if OPS[op].commutative:
        args = _ordered(*args)
    return owner.tape.node(op, *args)


def _each(operation: np.ufunc, array: Any, node: Node) -> Any:
    """An array on the left of a node: one result for each element."""
    box = np.empty((), dtype=object)
    box[()] = node
    return operation(array, box)


class Node:
    """A scalar that records instead of computing."""

    __slots__ = ("args", "label", "op", "operands", "serial", "tape")
    __array_priority__ = 1000.0

    def __init__(self, tape: Tape, op: str, args: tuple[Any, ...], serial: int, label: str) -> None:
        self.tape, self.op, self.args, self.serial, self.label = tape, op, args, serial, label
        # The arguments that are nodes: asked for so often that they are kept, mostly in the same tuple, for a trace
        # makes millions of nodes and the collector visits every object of theirs.
        operands = tuple([a for a in args if isinstance(a, Node)])
        self.operands: tuple[Node, ...] = args if len(operands) == len(args) else operands

    def __repr__(self) -> str:
        return f"Node({self.op} #{self.serial}{' ' + self.label if self.label else ''})"

    def __bool__(self) -> bool:
        raise TraceError(
            "a traced scalar has no truth value: the code branches on a number that is known only when the kernel "
            "runs. Use where(condition, a, b), minimum or maximum of bellcrank.scalar, or branch on the model instead."
        )

    def __float__(self) -> float:
        raise TraceError(
            f"a traced scalar ({self!r}) cannot become a float: it has no value until the kernel runs. "
            "Use the functions of bellcrank.scalar (or numpy's on object arrays) instead of math's."
        )

    def __add__(self, other: Any) -> Value:
        return _add(*_pair(self, other)) if not isinstance(other, ABOVE) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return _add(*_pair(other, self)) if not isinstance(other, np.ndarray) else _each(np.add, other, self)

    def __sub__(self, other: Any) -> Value:
        return _sub(*_pair(self, other)) if not isinstance(other, ABOVE) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return _sub(*_pair(other, self)) if not isinstance(other, np.ndarray) else _each(np.subtract, other, self)

    def __mul__(self, other: Any) -> Value:
        return _mul(*_pair(self, other)) if not isinstance(other, ABOVE) else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return _mul(*_pair(other, self)) if not isinstance(other, np.ndarray) else _each(np.multiply, other, self)

    def __truediv__(self, other: Any) -> Value:
        return _div(*_pair(self, other)) if not isinstance(other, ABOVE) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return _div(*_pair(other, self)) if not isinstance(other, np.ndarray) else _each(np.true_divide, other, self)

    def __neg__(self) -> Value:
        return _neg(self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return _call("abs", self)

    def __pow__(self, exponent: Any) -> Value:
        if exponent == 2:
            return _mul(self, self)
        if exponent == 0.5:
            return _call("sqrt", self)
        if isinstance(exponent, int) and exponent > 0:
            half = self ** (exponent // 2) if exponent > 1 else 1.0
            square = _mul(half, half)
            return _mul(square, self) if exponent % 2 else square
        raise TraceError(
            f"a traced scalar was raised to {exponent!r}; expected a positive integer or 0.5. Use exp and log instead."
        )

    def __lt__(self, other: Any) -> Value:
        return _call("lt", *_pair(self, other)) if not isinstance(other, Jet) else NotImplemented

    def __le__(self, other: Any) -> Value:
        return _call("le", *_pair(self, other)) if not isinstance(other, Jet) else NotImplemented

    def __gt__(self, other: Any) -> Value:
        return _call("lt", *_pair(other, self)) if not isinstance(other, Jet) else NotImplemented

    def __ge__(self, other: Any) -> Value:
        return _call("le", *_pair(other, self)) if not isinstance(other, Jet) else NotImplemented

    # The names numpy calls on the elements of object arrays.
    def sin(self) -> Value:
        return _call("sin", self)

    def cos(self) -> Value:
        return _call("cos", self)

    def tan(self) -> Value:
        return _call("tan", self)

    def arcsin(self) -> Value:
        return _call("asin", self)

    def arccos(self) -> Value:
        return _call("acos", self)

    def sqrt(self) -> Value:
        return _call("sqrt", self)

    def exp(self) -> Value:
        return _call("exp", self)

    def log(self) -> Value:
        return _call("log", self)

    def tanh(self) -> Value:
        return _call("tanh", self)

    def fabs(self) -> Value:
        return _call("abs", self)

    def floor(self) -> Value:
        return _call("floor", self)

    def where(self, yes: Any, no: Any) -> Any:
        """`yes` where this comparison holds, `no` elsewhere."""
        return Node._where_(self, yes, no)

    # What bellcrank.scalar asks for when either argument is traced.
    @staticmethod
    def _minimum_(a: Any, b: Any) -> Any:
        if isinstance(b, Jet):
            return Jet._minimum_(a, b)
        return a if a is b else _call("minimum", *_pair(a, b))

    @staticmethod
    def _maximum_(a: Any, b: Any) -> Any:
        if isinstance(b, Jet):
            return Jet._maximum_(a, b)
        return a if a is b else _call("maximum", *_pair(a, b))

    @staticmethod
    def _atan2_(a: Any, b: Any) -> Any:
        if isinstance(b, Jet):
            return Jet._atan2_(a, b)
        return _call("atan2", *_pair(a, b))

    def _alike_(
        self,
        body: Callable[..., Any],
        shared: Sequence[Any],
        columns: Sequence[Sequence[Any]],
        found: Sequence[Sequence[Any]],
    ) -> None:
        """Notes on the tape of a trace what was done for several columns."""
        every = [*shared, *(x for row in (*columns, *found) for x in row)]
        tape = next((x.tape for x in every if isinstance(x, Node) and not x.tape.free), None)
        if tape is not None and not any(isinstance(x, ABOVE) for x in every):
            rows = [[[tape.value(x) for x in row] for row in rows] for rows in ([shared], columns, found)]
            tape.alike.append(Alike(body, rows[0][0], *rows[1:]))

    @staticmethod
    def _where_(condition: Any, yes: Any, no: Any) -> Any:
        if isinstance(yes, Jet) or isinstance(no, Jet):
            return Jet._where_(condition, yes, no)
        nodes = [x for x in (condition, yes, no) if isinstance(x, Node)]
        tape = next((x.tape for x in nodes if not x.tape.free), nodes[0].tape)
        a, b = tape.value(yes), tape.value(no)
        condition = tape.value(condition) if isinstance(condition, Node) else condition
        if not isinstance(condition, Node):
            return a if condition else b
        if condition.op not in COMPARISONS:
            raise TraceError(f"where() on {condition!r}, which is a number; its condition must be a comparison.")
        return a if a is b or (not isinstance(a, Node) and a == b) else _call("where", condition, a, b)


# -- computed again


def ordered(*nodes: Node, known: Mapping[Node, Any] | None = None) -> list[Node]:
    """They and all they are made of, arguments before users, each once; less what is known already."""
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


def evaluated(x: Node, leaf: Callable[[Node], Scalar], known: dict[Node, Scalar] | None = None) -> Scalar:
    """A free number computed again, on floats, arrays or the nodes of a trace, with leaf(parameter) for each parameter.
    `known` keeps what is done.
    """
    known = {} if known is None else known
    for e in ordered(x, known=known):
        if e.op == "parameter":
            known[e] = leaf(e)
        else:
            known[e] = COMPUTED[e.op](*(known[a] if isinstance(a, Node) else a for a in e.args))
    return known[x]
