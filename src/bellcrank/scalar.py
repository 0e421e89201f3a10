"""Scalar arithmetic shared by the mechanics and the compiler: functions of floats, arrays and graph nodes.

The mechanics are written for any scalar with + - * / and the functions below; the compiler supplies one such scalar,
its graph node. Neither imports the other: a function calls the scalar's own method (`x.sin()`, which is also the name
that numpy calls on objects), and numpy computes floats and arrays.

A method calls `step` to name its current computation; the tracer reads `current_step` when it creates a node, so a
node can be labelled `IA[boom]`. On plain numbers the label is unused.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from numbers import Integral, Number, Real
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from bellcrank.errors import BellcrankError, InputError, brief

# A float, a numpy array (a batch of states), a graph node, or any other type with this arithmetic.
Scalar: TypeAlias = Any


def is_real(x: object) -> TypeGuard[float]:
    """Return true if `x` is one real number; not for bool, nor for durations, which numpy registers as integers."""
    return isinstance(x, Real) and not isinstance(x, bool | np.bool_ | np.timedelta64)


def is_whole(x: object) -> TypeGuard[int]:
    """Return true if `x` is one integer of Python or numpy."""
    return is_real(x) and isinstance(x, Integral)


def is_scalar(x: object) -> bool:
    """Return true if `x` is one real number or one symbol, with arithmetic on numbers; not for text, dates or classes.

    Durations of Python have most of the operators, but no power.
    """
    if isinstance(x, np.generic | np.ndarray):
        return x.ndim == 0 and x.dtype.kind in "iufO"
    if isinstance(x, Number):
        return is_real(x)
    operators = ("__add__", "__radd__", "__mul__", "__rmul__", "__pow__")
    return not isinstance(x, type) and all(hasattr(x, operator) for operator in operators)


def float_array(values: Any) -> np.ndarray[Any, Any]:
    """Return `values` as an array of float64.

    Raises
    ------
    TypeError
        If they are text, dates, durations or complex, which numpy would convert, or if some are masked, in which case
        numpy would use the hidden numbers.
    """
    array = np.asanyarray(values)
    numeric = all(map(is_real, array.flat)) if array.dtype == object else array.dtype.kind in "fiub"
    if not numeric or np.ma.is_masked(array):
        raise TypeError("not real numbers")
    return np.asarray(array, np.float64)


def array_argument(
    where: str, values: Any, expected: str = "an array of real numbers", error: type[BellcrankError] = InputError
) -> np.ndarray[Any, Any]:
    """Return an argument as an array of float64.

    Parameters
    ----------
    where
        The argument, for the message.
    values
        Its value.
    expected
        Description of valid values, for the message.
    error
        Type of the error that is raised for other values.
    """
    try:
        return float_array(values)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{where} is {brief(values)}; expected {expected}.") from None


def is_zero(x: Scalar) -> bool:
    """Return true if `x` is the constant 0 in every state: a property of the model, so a method may branch on it."""
    return isinstance(x, float) and x == 0.0


def ordered_sum(terms: Iterable[Scalar]) -> Scalar:
    """Add the `terms` in their order, rounded as compiled code rounds; Python's sum may compensate rounding errors."""
    running_sum: Scalar = 0.0
    for x in terms:
        running_sum = running_sum + x
    return running_sum


def dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """Return the dot product of `a` and `b`."""
    return ordered_sum(x * y for x, y in zip(a, b, strict=True))


class _Step(threading.local):
    label: str = ""


_step = _Step()


def step(quantity: str, body: str = "") -> None:
    """Label the following computations: step("IA", "boom") labels the next nodes `IA[boom]`.

    Parameters
    ----------
    quantity
        Name of the step.
    body
        Name of the body.
    """
    _step.label = f"{quantity}[{body}]" if body else quantity


def current_step() -> str:
    """Return the label of the current computation."""
    return _step.label


NUMBER = "A number, an array or a traced scalar."
ANGLE = "Angle in radians: a number, an array or a traced scalar."


def _unary_function(
    name: str,
    what: str,
    of_float: Callable[[float], float],
    of_array: Callable[[Any], Any],
    method: str = "",
    argument: str = NUMBER,
) -> Callable[[Scalar], Scalar]:
    method = method or name

    def function(x: Scalar) -> Scalar:
        if isinstance(x, float | int):
            return of_float(x)
        if isinstance(x, np.ndarray | np.generic):
            return each(x) if x.dtype == object else of_array(x)
        own_method = getattr(x, method, None)
        return own_method() if own_method is not None else of_array(x)

    each = np.frompyfunc(function, 1, 1)  # for object arrays
    return _documented(function, name, what, argument)


DOCUMENTATION = """{summary}

Parameters
----------
{names} : scalar
    {argument}

Returns
-------
scalar
    A value of the same kind: a number, an array or a traced scalar.
"""


def _documented(function: Callable[..., Scalar], name: str, summary: str, argument: str) -> Callable[..., Scalar]:
    names = ", ".join(signature(function).parameters)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = DOCUMENTATION.format(summary=summary, names=names, argument=argument)
    return function


sin = _unary_function("sin", "Sine of an angle in radians.", math.sin, np.sin, argument=ANGLE)
cos = _unary_function("cos", "Cosine of an angle in radians.", math.cos, np.cos, argument=ANGLE)
tan = _unary_function("tan", "Tangent of an angle in radians.", math.tan, np.tan, argument=ANGLE)
asin = _unary_function("asin", "The angle in radians whose sine is x.", math.asin, np.arcsin, "arcsin")
acos = _unary_function("acos", "The angle in radians whose cosine is x.", math.acos, np.arccos, "arccos")
sqrt = _unary_function("sqrt", "Square root.", math.sqrt, np.sqrt)
exp = _unary_function("exp", "e to the power of x.", math.exp, np.exp)
log = _unary_function("log", "Natural logarithm.", math.log, np.log)
tanh = _unary_function("tanh", "Hyperbolic tangent: a smooth step from -1 to 1.", math.tanh, np.tanh)
fabs = _unary_function("fabs", "Absolute value.", abs, np.abs)
floor = _unary_function("floor", "The largest integer not above x.", lambda x: float(np.floor(x)), np.floor)


def _binary_function(name: str, what: str, of_numbers: Callable[[Any, Any], Any]) -> Callable[[Scalar, Scalar], Scalar]:
    """Create a function of two scalars; if either is traced, its type computes the result."""

    def function(a: Scalar, b: Scalar) -> Scalar:
        if _is_object_array(a) or _is_object_array(b):
            return each(a, b)
        for x in (a, b):
            own_method = getattr(type(x), f"_{name}_", None)
            if own_method is not None:
                return own_method(a, b)
        return of_numbers(a, b)

    each = np.frompyfunc(function, 2, 1)
    return _documented(function, name, what, "Numbers, arrays or traced scalars.")


def _is_object_array(x: Scalar) -> bool:
    """Return true if x is an array whose elements compute for themselves."""
    return isinstance(x, np.ndarray) and x.dtype == object


minimum = _binary_function("minimum", "The smaller of two.", np.minimum)
maximum = _binary_function("maximum", "The larger of two.", np.maximum)
atan2 = _binary_function("atan2", "The angle of the point x = b, y = a, in radians from -pi to pi.", np.arctan2)


def where(condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
    """Select between two values by a comparison, in place of `if` in traced functions.

    Both values are computed. Conditions are combined by nesting.

    Parameters
    ----------
    condition : scalar
        A comparison, such as x < 0.
    yes : scalar
        Value where the condition holds.
    no : scalar
        Value elsewhere.

    Returns
    -------
    scalar
        A number, an array or a traced scalar.

    Examples
    --------
    >>> float(bc.where(-2.0 < 0, 0.0, 1.0))
    0.0
    """
    if _is_object_array(condition) or _is_object_array(yes) or _is_object_array(no):
        return _where_each(condition, yes, no)
    for x in (condition, yes, no):
        own_method = getattr(type(x), "_where_", None)
        if own_method is not None:
            return own_method(condition, yes, no)
    chosen: Any = np.where(condition, yes, no)
    return chosen[()]  # an array without axes becomes a scalar


_where_each = np.frompyfunc(where, 3, 1)


def columnwise(
    body: Callable[[Sequence[Scalar], Sequence[Scalar]], list[Scalar]],
    shared: Sequence[Scalar],
    columns: Sequence[Sequence[Scalar]],
    results: Sequence[Sequence[Scalar]] | None = None,
) -> Sequence[Sequence[Scalar]]:
    """Return [body(shared, c) for c in columns], and mark it as a loop over columns for the compiler.

    A compiler may emit a loop and compute several columns in parallel. The body may use only its arguments and numbers.

    Parameters
    ----------
    body
        Function of `shared` and one column.
    shared
        Values that all columns use.
    columns
        The columns.
    results
        The results, if they have been computed already by fewer operations one by one.
    """
    results_given = results is not None
    results = [body(shared, c) for c in columns] if results is None else results
    for x in (*shared, *(x for c in columns for x in c)):
        own_method = getattr(x, "_columnwise_", None)
        if own_method is not None:
            own_method(body, shared, columns, results, results_given)
            break
    return results


def clip(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """Limit a value to a range.

    Parameters
    ----------
    x : scalar
        The value.
    low : scalar
        Lower limit.
    high : scalar
        Upper limit.

    Returns
    -------
    scalar
        x, but not below low and not above high.
    """
    return minimum(maximum(x, low), high)


def quantised(x: Scalar, quantum: float) -> Scalar:
    """Round to the nearest integer multiple of a quantum, as an analogue-to-digital converter does.

    Parameters
    ----------
    x : scalar
        The value.
    quantum : float
        Step of the converter, above zero, in the unit of x.

    Returns
    -------
    scalar
        The nearest multiple.

    Raises
    ------
    InputError
        If the quantum is not above zero.

    Examples
    --------
    >>> bc.quantised(0.87, 0.25)
    0.75
    """
    if isinstance(quantum, Real | str | None) and not (isinstance(quantum, Real) and 0.0 < quantum < math.inf):
        raise InputError(f"quantised: quantum is {brief(quantum)}; expected a number above zero.")
    try:
        return quantum * floor(x / quantum + 0.5)
    except TypeError:
        arguments_text = f"x is {brief(x)}, quantum {brief(quantum)}"
        raise InputError(f"quantised: {arguments_text}; expected numbers or symbols.") from None


def step_of(label: str) -> str:
    """Return the step of a `label`: IA for IA[boom]."""
    return label.partition("[")[0].strip()
