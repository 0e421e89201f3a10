"""The arithmetic of numbers that depend on parameters: a scalar like any other (bellcrank.scalar).

Folded as it is done: 0 and 1 vanish, signs move outwards, what cancels is not written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.errors import TraceError
from bellcrank.parameters.term import Term
from bellcrank.scalar import Scalar

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


class Expression(Term):
    """A scalar that depends on parameters."""

    __slots__ = ()
    __array_priority__ = 900.0  # below that of a graph's node, which takes an expression in

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
