"""Numbers that stay free: a mechanism's mass or length as a symbol with a nominal value, and what is computed from it.

Below both towers, as scalar.py is. A leaf is made by `parameter("boom.mass", 1830)`; arithmetic and the functions of
bellcrank.scalar give further expressions, which remember how they were made. `evaluated` runs that again on anything:
on floats it gives a number, on arrays a batch, on input nodes of a graph the nodes of a kernel (graph/node.py does so
where an expression meets a node).

An expression is never looked at. It equals no number (it is not 0, not 1, not a right angle, for it may change), its
truth is that it is not the constant zero, and it does not become a float by itself: code that may decide by the
nominal value asks for it with `nominal`. The same operation on the same arguments is the same object, so that x - x
and (x*m)/m fold, and a mass may be zero without becoming the denominator of its own centre.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from bellcrank.errors import TraceError
from bellcrank.scalar import (
    Scalar,
    acos,
    asin,
    atan2,
    cos,
    exp,
    fabs,
    log,
    maximum,
    minimum,
    sin,
    sqrt,
    tan,
    tanh,
    where,
)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg,
    "lt": operator.lt, "le": operator.le, "sin": sin, "cos": cos, "tan": tan,
    "asin": asin, "acos": acos, "sqrt": sqrt, "exp": exp, "log": log,
    "tanh": tanh, "abs": fabs, "minimum": minimum, "maximum": maximum,
    "atan2": atan2, "where": where,
}  # fmt: skip
NUMBERS = (int, float, np.integer, np.floating)


Rule = Callable[[Any, Any], Scalar]


def _both_ways(rule: Rule, each: np.ufunc) -> tuple[Rule, Rule]:
    """An operator and its mirror image: a number may stand on either side, and so may an array of them."""
    return lambda a, b: _applied(rule, each, a, b), lambda a, b: _applied(rule, each, b, a)


def _applied(rule: Rule, each: np.ufunc, a: Any, b: Any) -> Scalar:
    """The rule on numbers and expressions, element by element on arrays; a node of a graph answers itself."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return each(_boxed(a), _boxed(b))
    own = (*NUMBERS, Expression)
    if not isinstance(a, own) or not isinstance(b, own):
        return NotImplemented
    return rule(a if isinstance(a, Expression) else float(a), b if isinstance(b, Expression) else float(b))


class Expression:
    """A scalar that depends on parameters."""

    __slots__ = ("__dict__", "__weakref__", "args", "op")
    __array_priority__ = 900.0  # below that of a graph's node, which takes an expression in

    op: str  # "parameter", or a key of FUNCTIONS
    args: tuple[Any, ...]  # name, nominal value and unit; or expressions and floats

    _table: WeakValueDictionary[tuple[Any, ...], Expression] = WeakValueDictionary()

    @classmethod
    def make(cls, op: str, *args: Any) -> Expression:
        key = (op, *args)
        found = cls._table.get(key)
        if found is None:
            found = cls()
            found.op, found.args = op, args
            found = cls._table.setdefault(key, found)
        return found

    @property
    def operands(self) -> list[Expression]:
        return [a for a in self.args if isinstance(a, Expression)]

    @cached_property
    def leaves(self) -> tuple[Expression, ...]:
        """The parameters it depends on, by name."""
        return tuple(sorted((x for x in ordered(self) if x.op == "parameter"), key=lambda x: str(x.args[0])))

    @cached_property
    def value(self) -> float:
        """At nominal parameters."""
        try:
            with np.errstate(all="ignore"):
                return float(evaluated(self, lambda leaf: np.float64(leaf.args[1])))
        except (ValueError, OverflowError):  # math's way to say it is not a number
            return math.nan

    @cached_property
    def digest(self) -> str:
        """Equal for what was made alike, in every process."""
        known: dict[Expression, str] = {}
        for x in ordered(self):
            parts = [known[a] if isinstance(a, Expression) else repr(a) for a in x.args]
            known[x] = hashlib.sha256("\n".join([x.op, *parts]).encode()).hexdigest()
        return known[self]

    def __reduce__(self) -> tuple[Any, ...]:
        return Expression.make, (self.op, *self.args)

    def __repr__(self) -> str:
        if self.op == "parameter":
            return f"parameter({', '.join(repr(a) for a in self.args if a != '')})"
        return f"<depends on {self._names}: {self.value!r} #{self.digest[:32]}>"

    def __format__(self, spec: str) -> str:
        shown = self._names if self.op == "parameter" else f"f({self._names})"
        return f"{shown} = {self.value:{spec}}"

    __str__ = __repr__

    @property
    def _names(self) -> str:
        return ", ".join(str(leaf.args[0]) for leaf in self.leaves)

    def __bool__(self) -> bool:
        if self.op in ("lt", "le"):
            raise TraceError(
                f"code branches on a comparison of free parameters ({self._names}), whose values are known only when "
                "the kernel runs. Use where(condition, a, b), minimum or maximum of bellcrank.scalar."
            )
        return True  # not the constant zero

    def __float__(self) -> float:
        raise TraceError(
            f"a number that depends on free parameters ({self._names}) cannot become a float: it has no value until "
            "the kernel runs. Use the functions of bellcrank.scalar instead of math's, or nominal(x) for its value now."
        )

    __add__, __radd__ = _both_ways(lambda a, b: _add(a, b), np.add)
    __sub__, __rsub__ = _both_ways(lambda a, b: _sub(a, b), np.subtract)
    __mul__, __rmul__ = _both_ways(lambda a, b: _mul(a, b), np.multiply)
    __truediv__, __rtruediv__ = _both_ways(lambda a, b: _div(a, b), np.true_divide)
    __lt__, __gt__ = _both_ways(lambda a, b: Expression.make("lt", a, b), np.less)
    __le__, __ge__ = _both_ways(lambda a, b: Expression.make("le", a, b), np.less_equal)

    def __neg__(self) -> Scalar:
        return _neg(self)

    def __pos__(self) -> Scalar:
        return self

    def __pow__(self, exponent: Any) -> Scalar:
        if exponent == 0.5:
            return Expression.make("sqrt", self)
        if not isinstance(exponent, int) or exponent < 1:
            raise TraceError(f"a parameter was raised to {exponent!r}; expected a positive integer or 0.5.")
        return self if exponent == 1 else self ** (exponent - 1) * self

    # What bellcrank.scalar asks for when an argument is an expression.
    @staticmethod
    def _minimum_(a: Any, b: Any) -> Scalar:
        return _called("minimum", a, b)

    @staticmethod
    def _maximum_(a: Any, b: Any) -> Scalar:
        return _called("maximum", a, b)

    @staticmethod
    def _atan2_(a: Any, b: Any) -> Scalar:
        return _called("atan2", a, b)

    @staticmethod
    def _where_(condition: Any, yes: Any, no: Any) -> Scalar:
        if isinstance(condition, bool | np.bool_):
            return yes if condition else no
        return _called("where", condition, yes, no)


def _unary(op: str) -> Callable[[Expression], Expression]:
    return lambda x: Expression.make(op, x)


# The names that bellcrank.scalar and numpy call on objects.
for _op in ("sin", "cos", "tan", "sqrt", "exp", "log", "tanh"):
    setattr(Expression, _op, _unary(_op))
for _name, _op in (("arcsin", "asin"), ("arccos", "acos"), ("fabs", "abs"), ("__abs__", "abs")):
    setattr(Expression, _name, _unary(_op))


def ordered(*expressions: Expression, known: Mapping[Expression, Any] | None = None) -> list[Expression]:
    """They and all they are made of, arguments before users, each once; less what is known already."""
    out: dict[Expression, None] = {}
    stack = list(reversed(expressions))
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


def evaluated(
    x: Expression, leaf: Callable[[Expression], Scalar], known: dict[Expression, Scalar] | None = None
) -> Scalar:
    """The expression computed again, with leaf(parameter) for each parameter. `known` keeps what is done."""
    known = {} if known is None else known
    for e in ordered(x, known=known):
        if e.op == "parameter":
            known[e] = leaf(e)
        else:
            known[e] = FUNCTIONS[e.op](*(known[a] if isinstance(a, Expression) else a for a in e.args))
    return known[x]


# -- arithmetic, folded as it is done: 0 and 1 vanish, signs move outwards, what cancels is not written


def _boxed(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x
    box = np.empty((), dtype=object)
    box[()] = x
    return box


def _called(op: str, *args: Any) -> Scalar:
    for x in args:
        if not isinstance(x, (*NUMBERS, Expression)):
            own = getattr(type(x), f"_{op}_", None)
            if own is None:
                raise TraceError(f"{op} of a parameter and {x!r}; expected numbers.")
            return own(*args)
    return Expression.make(op, *(a if isinstance(a, Expression) else float(a) for a in args))


def _is(x: Any, op: str) -> bool:
    return isinstance(x, Expression) and x.op == op


def _neg(a: Scalar) -> Scalar:
    if not isinstance(a, Expression):
        return -a
    return a.args[0] if a.op == "neg" else Expression.make("neg", a)


def _add(a: Scalar, b: Scalar) -> Scalar:
    if not isinstance(a, Expression) and a == 0.0:
        return b
    if not isinstance(b, Expression) and b == 0.0:
        return a
    if _is(b, "neg"):
        return _sub(a, b.args[0])
    if _is(a, "neg"):
        return _sub(b, a.args[0])
    for x, y in ((a, b), (b, a)):
        if _is(x, "sub") and x.args[1] is y:  # (x - y) + y
            return x.args[0]
    return Expression.make("add", a, b) if isinstance(a, Expression) or isinstance(b, Expression) else a + b


def _sub(a: Scalar, b: Scalar) -> Scalar:
    if not isinstance(b, Expression):
        return _add(a, -b)
    if a is b:
        return 0.0
    if not isinstance(a, Expression) and a == 0.0:
        return _neg(b)
    if b.op == "neg":
        return _add(a, b.args[0])
    if _is(a, "add"):  # (x + y) - y
        if a.args[1] is b:
            return a.args[0]
        if a.args[0] is b:
            return a.args[1]
    return Expression.make("sub", a, b)


def _mul(a: Scalar, b: Scalar) -> Scalar:
    for x, y in ((a, b), (b, a)):
        if not isinstance(x, Expression):
            if x == 0.0:
                return 0.0
            if x == 1.0:
                return y
            if x < 0.0:
                return _neg(_mul(-x, y))
    if _is(a, "neg"):
        return _neg(_mul(a.args[0], b))
    if _is(b, "neg"):
        return _neg(_mul(a, b.args[0]))
    for x, y in ((a, b), (b, a)):
        if _is(x, "div") and x.args[1] is y:  # (x / y) * y
            return x.args[0]
    return Expression.make("mul", a, b)


def _div(a: Scalar, b: Scalar) -> Scalar:
    if not isinstance(b, Expression):
        if b == 0.0:
            raise TraceError("a parameter is divided by a constant zero; a mass or a length is probably zero.")
        return _mul(a, 1.0 / b)
    if not isinstance(a, Expression) and a == 0.0:
        return 0.0
    if a is b:
        return 1.0
    if b.op == "neg":
        return _neg(_div(a, b.args[0]))
    if _is(a, "neg"):
        return _neg(_div(a.args[0], b))
    if _is(a, "mul"):  # (x * y) / y
        if a.args[1] is b:
            return a.args[0]
        if a.args[0] is b:
            return a.args[1]
    return Expression.make("div", a, b)
