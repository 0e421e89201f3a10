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
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

# A float, a numpy array (a batch of states) or a graph node: whatever obeys the arithmetic.
Scalar: TypeAlias = Any


def is_zero(x: Scalar) -> bool:
    """Whether x is the constant 0, in every state: a property of the model, so that a method may branch on it."""
    return isinstance(x, float) and x == 0.0


class _Step(threading.local):
    label: str = ""


_step = _Step()


def step(quantity: str, body: str = "") -> None:
    """Names what is computed from here on: step("IA", "boom") makes the next nodes `IA[boom]`."""
    _step.label = f"{quantity}[{body}]" if body else quantity


def current_step() -> str:
    return _step.label


def _unary(name: str, of_float: Callable[[float], float], of_array: Callable[[Any], Any]) -> Callable[[Scalar], Scalar]:
    def function(x: Scalar) -> Scalar:
        if isinstance(x, float | int):
            return of_float(x)
        own = getattr(x, name, None)
        return own() if own is not None and not isinstance(x, np.ndarray | np.generic) else of_array(x)

    function.__name__ = name
    return function


sin = _unary("sin", math.sin, np.sin)
cos = _unary("cos", math.cos, np.cos)
tan = _unary("tan", math.tan, np.tan)
asin = _unary("arcsin", math.asin, np.arcsin)
acos = _unary("arccos", math.acos, np.arccos)
sqrt = _unary("sqrt", math.sqrt, np.sqrt)
exp = _unary("exp", math.exp, np.exp)
log = _unary("log", math.log, np.log)
tanh = _unary("tanh", math.tanh, np.tanh)
fabs = _unary("fabs", abs, np.abs)


def _of_two(name: str, of_numbers: Callable[[Any, Any], Any]) -> Callable[[Scalar, Scalar], Scalar]:
    """A function of two scalars; either may be the traced one, and it answers for both."""

    def function(a: Scalar, b: Scalar) -> Scalar:
        for x in (a, b):
            own = getattr(type(x), f"_{name}_", None)
            if own is not None:
                return own(a, b)
        return of_numbers(a, b)

    function.__name__ = name
    return function


minimum = _of_two("minimum", np.minimum)
maximum = _of_two("maximum", np.maximum)
atan2 = _of_two("atan2", np.arctan2)


def where(condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
    """`yes` where the condition holds, `no` elsewhere: both are computed, nothing branches."""
    for x in (condition, yes, no):
        own = getattr(type(x), "_where_", None)
        if own is not None:
            return own(condition, yes, no)
    chosen: Any = np.where(condition, yes, no)
    return chosen[()]  # a scalar stays one


def clip(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    return minimum(maximum(x, low), high)


def step_of(label: str) -> str:
    """The step of a label: IA of IA[boom]."""
    return label.partition("[")[0].strip()
