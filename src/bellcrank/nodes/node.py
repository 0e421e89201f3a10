"""Node: a scalar that records the operations applied to it, with algebraic folding.

Constants are plain floats and never become nodes. Folding happens when a node is created, and all its rules are exact
except for the rounding of merged constants: 0 and 1 vanish; signs move outwards (so that x*y and x*(-y) share one
product); x - x is 0; y - x is -(x - y) if x - y exists; constants merge (c*(d*x) is (c*d)*x).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Union

import numpy as np

from bellcrank.errors import TraceError
from bellcrank.jets import Jet
from bellcrank.nodes.ops import COMPARISONS, OPS

if TYPE_CHECKING:
    from bellcrank.nodes.tape import Tape

Value: TypeAlias = Union["Node", float]
SCALAR_CONTAINERS = (np.ndarray, Jet)  # containers of scalars handle the operation themselves


class ColumnwiseNote(NamedTuple):
    """Record of a computation that a trace repeated for several columns (scalar.columnwise).

    `results[k]` is body(shared, columns[k]).
    """

    body: Callable[..., Any]
    shared: list[Value]
    columns: list[list[Value]]
    results: list[list[Value]]
    # The columns one by one take fewer operations; a loop still pays where it fills idle vector lanes.
    fewer_operations_known: bool


def constant(x: Any) -> float:
    """Convert `x` to a float constant of the graph; raise TraceError if it is not a number or is NaN."""
    try:
        value = float(x)
    except (TypeError, ValueError, OverflowError) as error:
        raise TraceError(
            f"a traced scalar was combined with {x!r} of type {type(x).__name__}; expected a number or a traced scalar."
        ) from error
    if math.isnan(value):
        raise TraceError(
            "a NaN constant entered the graph: some number of the model is NaN; check masses, axes and gravity."
        )
    return value


def _pair(a: Any, b: Any) -> tuple[Value, Value]:
    """Bring both operands to one tape: that of the trace, if either operand belongs to one."""
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
    """Order commutative operands: constants first, then by creation."""
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
            minuend: Value = x.args[0]
            return minuend
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
            difference = a - b.args[0]
            return _sub(difference, b.args[1]) if b.op == "add" else _add(difference, b.args[1])
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
    """Apply any other operation, folded if all arguments are constants."""
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
    """Apply an operation with an array on the left of a node element by element."""
    box = np.empty((), dtype=object)
    box[()] = node
    return operation(array, box)


def _function(op: str, name: str) -> Callable[[Node], Value]:
    """Return the method of a Node that records the operation `op`."""

    def method(self: Node) -> Value:
        return _call(op, self)

    method.__doc__ = f"Record the {name}."
    return method


class Node:
    """A scalar that records operations instead of computing."""

    __slots__ = ("args", "label", "op", "operands", "serial", "tape")
    __array_priority__ = 1000.0

    def __init__(self, tape: Tape, op: str, args: tuple[Any, ...], serial: int, label: str) -> None:
        self.tape, self.op, self.args, self.serial, self.label = tape, op, args, serial, label
        # The arguments that are nodes are used so often that they are stored, mostly in the tuple of `args`: a trace
        # creates millions of nodes, and the garbage collector visits every object they hold.
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
        return _add(*_pair(self, other)) if not isinstance(other, SCALAR_CONTAINERS) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return _add(*_pair(other, self)) if not isinstance(other, np.ndarray) else _each(np.add, other, self)

    def __sub__(self, other: Any) -> Value:
        return _sub(*_pair(self, other)) if not isinstance(other, SCALAR_CONTAINERS) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return _sub(*_pair(other, self)) if not isinstance(other, np.ndarray) else _each(np.subtract, other, self)

    def __mul__(self, other: Any) -> Value:
        return _mul(*_pair(self, other)) if not isinstance(other, SCALAR_CONTAINERS) else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return _mul(*_pair(other, self)) if not isinstance(other, np.ndarray) else _each(np.multiply, other, self)

    def __truediv__(self, other: Any) -> Value:
        return _div(*_pair(self, other)) if not isinstance(other, SCALAR_CONTAINERS) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return _div(*_pair(other, self)) if not isinstance(other, np.ndarray) else _each(np.true_divide, other, self)

    def __neg__(self) -> Value:
        return _neg(self)

    def __pos__(self) -> Value:
        return self

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

    # numpy calls methods with these names on the elements of object arrays.
    sin = _function("sin", "sine")
    cos = _function("cos", "cosine")
    tan = _function("tan", "tangent")
    arcsin = _function("asin", "inverse sine")
    arccos = _function("acos", "inverse cosine")
    sqrt = _function("sqrt", "square root")
    exp = _function("exp", "exponential function")
    log = _function("log", "natural logarithm")
    tanh = _function("tanh", "hyperbolic tangent")
    fabs = __abs__ = _function("abs", "absolute value")
    floor = _function("floor", "value rounded down to an integer")

    def where(self, yes: Any, no: Any) -> Any:
        """Select `yes` where this comparison holds, `no` elsewhere."""
        return Node._where_(self, yes, no)

    # bellcrank.scalar calls these if an argument is traced.
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

    def _columnwise_(
        self,
        body: Callable[..., Any],
        shared: Sequence[Any],
        columns: Sequence[Sequence[Any]],
        results: Sequence[Sequence[Any]],
        known: bool,
    ) -> None:
        """Record on the tape of the trace a computation that was done for several columns."""
        every = [*shared, *(x for row in (*columns, *results) for x in row)]
        tape = next((x.tape for x in every if isinstance(x, Node) and not x.tape.free), None)
        if tape is not None and not any(isinstance(x, SCALAR_CONTAINERS) for x in every):
            rows = [[[tape.value(x) for x in row] for row in rows] for rows in ([shared], columns, results)]
            tape.columnwise_notes.append(ColumnwiseNote(body, rows[0][0], rows[1], rows[2], known))

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
