"""What both towers agree on: scalars that are never looked at.

The mechanics tower is written over any scalar with + - * / and the functions below; the compiler tower supplies one
such scalar, its graph node. Neither imports the other: a function asks the scalar for its own version of itself
(`x.sin()`, which is also what numpy calls on objects), and numpy answers for floats and arrays.

`step` is the hook through which a method says what it is computing: the tracer reads `current_step` when it makes a
node, so a node can be called `IA[boom]`. On plain numbers nobody reads it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from bellcrank.errors import InputError, brief

# A float, a numpy array (a batch of states) or a graph node: whatever obeys the arithmetic.
Scalar: TypeAlias = Any


def is_real(x: object) -> TypeGuard[float]:
    """Whether x is one real number: no truth value, and no duration, which numpy registers as an integer."""
    return isinstance(x, Real) and not isinstance(x, bool | np.bool_ | np.timedelta64)


def is_whole(x: object) -> TypeGuard[int]:
    """Whether x is one integer, of Python's or of numpy's."""
    return is_real(x) and isinstance(x, Integral)


def float_array(values: Any) -> np.ndarray[Any, Any]:
    """Return the values as an array of float64.

    Raises
    ------
    TypeError
        If they are text, dates, durations or complex, which numpy would convert, or if some are masked, whose hidden
        numbers it would take.
    """
    array = np.asanyarray(values)
    numeric = all(map(is_real, array.flat)) if array.dtype == object else array.dtype.kind in "fiub"
    if not numeric or np.ma.is_masked(array):
        raise TypeError("no real numbers")
    return np.asarray(array, np.float64)


def is_zero(x: Scalar) -> bool:
    """Whether x is the constant 0, in every state: a property of the model, so that a method may branch on it."""
    return isinstance(x, float) and x == 0.0


def total(terms: Iterable[Scalar]) -> Scalar:
    """A sum in the order of the terms, rounded as compiled code rounds it; Python's own may compensate."""
    found: Scalar = 0.0
    for x in terms:
        found = found + x
    return found


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """a . b"""
    return total(x * y for x, y in zip(a, b, strict=True))


class _Step(threading.local):
    label: str = ""


_step = _Step()


def step(quantity: str, body: str = "") -> None:
    """Names what is computed from here on: step("IA", "boom") makes the next nodes `IA[boom]`."""
    _step.label = f"{quantity}[{body}]" if body else quantity


def current_step() -> str:
    return _step.label


def _unary(
    name: str, what: str, of_float: Callable[[float], float], of_array: Callable[[Any], Any], method: str = ""
) -> Callable[[Scalar], Scalar]:
    method = method or name

    def function(x: Scalar) -> Scalar:
        if isinstance(x, float | int):
            return of_float(x)
        if isinstance(x, np.ndarray | np.generic):
            return each(x) if x.dtype == object else of_array(x)
        own = getattr(x, method, None)
        return own() if own is not None else of_array(x)

    each = np.frompyfunc(function, 1, 1)  # of an array of scalars that are not numpy's
    return _called(function, name, what)


def _called(function: Callable[..., Scalar], name: str, what: str) -> Callable[..., Scalar]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what} Of numbers, arrays, and what is traced."
    return function


sin = _unary("sin", "Sine of an angle in radians.", math.sin, np.sin)
cos = _unary("cos", "Cosine of an angle in radians.", math.cos, np.cos)
tan = _unary("tan", "Tangent of an angle in radians.", math.tan, np.tan)
asin = _unary("asin", "The angle in radians whose sine is x.", math.asin, np.arcsin, "arcsin")
acos = _unary("acos", "The angle in radians whose cosine is x.", math.acos, np.arccos, "arccos")
sqrt = _unary("sqrt", "Square root.", math.sqrt, np.sqrt)
exp = _unary("exp", "e to the power of x.", math.exp, np.exp)
log = _unary("log", "Natural logarithm.", math.log, np.log)
tanh = _unary("tanh", "Hyperbolic tangent: a smooth step from -1 to 1.", math.tanh, np.tanh)
fabs = _unary("fabs", "Absolute value.", abs, np.abs)
floor = _unary("floor", "The largest whole number that is not above x.", lambda x: float(np.floor(x)), np.floor)


def _of_two(name: str, what: str, of_numbers: Callable[[Any, Any], Any]) -> Callable[[Scalar, Scalar], Scalar]:
    """A function of two scalars; either may be the traced one, and it answers for both."""

    def function(a: Scalar, b: Scalar) -> Scalar:
        if _boxed(a) or _boxed(b):
            return each(a, b)
        for x in (a, b):
            own = getattr(type(x), f"_{name}_", None)
            if own is not None:
                return own(a, b)
        return of_numbers(a, b)

    each = np.frompyfunc(function, 2, 1)
    return _called(function, name, what)


def _boxed(x: Scalar) -> bool:
    """Whether x is an array whose elements answer for themselves."""
    return isinstance(x, np.ndarray) and x.dtype == object


minimum = _of_two("minimum", "The smaller of two.", np.minimum)
maximum = _of_two("maximum", "The larger of two.", np.maximum)
atan2 = _of_two("atan2", "The angle of the point x = b, y = a, in radians from -pi to pi.", np.arctan2)


def where(condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
    """`yes` where the condition holds, `no` elsewhere: what is written for `if` where nothing may branch. Both are
    computed. The condition is a comparison, such as x < 0; two of them are one where inside another.

    >>> float(bc.where(-2.0 < 0, 0.0, 1.0))
    0.0
    """
    if _boxed(condition) or _boxed(yes) or _boxed(no):
        return _where_each(condition, yes, no)
    for x in (condition, yes, no):
        own = getattr(type(x), "_where_", None)
        if own is not None:
            return own(condition, yes, no)
    chosen: Any = np.where(condition, yes, no)
    return chosen[()]  # a scalar stays one


_where_each = np.frompyfunc(where, 3, 1)


def columnwise(
    body: Callable[[Sequence[Scalar], Sequence[Scalar]], list[Scalar]],
    shared: Sequence[Scalar],
    columns: Sequence[Sequence[Scalar]],
    found: Sequence[Sequence[Scalar]] | None = None,
) -> Sequence[Sequence[Scalar]]:
    """[body(shared, c) for c in columns], and a hint that it is the same for all of them: a compiler may make a loop of
    it, and compute several columns side by side. The body uses nothing but what it is given, and numbers. found: that
    it gives this is known already, by fewer operations one by one.
    """
    known = found is not None
    found = [body(shared, c) for c in columns] if found is None else found
    for x in (*shared, *(x for c in columns for x in c)):
        own = getattr(x, "_alike_", None)
        if own is not None:
            own(body, shared, columns, found, known)
            break
    return found


def clip(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """x, but not below low and not above high."""
    return minimum(maximum(x, low), high)


def quantised(x: Scalar, quantum: float) -> Scalar:
    """The whole multiple of the quantum that is nearest to x: what a converter of so many volts a step makes of it.

    >>> bc.quantised(0.87, 0.25)
    0.75
    """
    if isinstance(quantum, Real | str | None) and not (isinstance(quantum, Real) and 0.0 < quantum < math.inf):
        raise InputError(f"quantised: quantum is {brief(quantum)}; expected a number above zero.")
    try:
        return quantum * floor(x / quantum + 0.5)
    except TypeError:
        told = f"x is {brief(x)}, quantum {brief(quantum)}"
        raise InputError(f"quantised: {told}; expected numbers or symbols.") from None


def step_of(label: str) -> str:
    """The step of a label: IA of IA[boom]."""
    return label.partition("[")[0].strip()
