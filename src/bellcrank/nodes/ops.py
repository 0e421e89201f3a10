"""Table of scalar operations: definition, derivatives, cost and spelling, one row each.

`value` is the definition; every target is tested against it. `partials(y, *args)` gives dy/darg for each argument.
`kind` is the column of the operation count. `cost` is the default weight for the critical path (an addition is 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Op:
    """One operation: a row of the table."""

    name: str
    arity: int
    value: Callable[..., Any]
    partials: Callable[..., tuple[Any, ...]]
    kind: str
    cost: float
    commutative: bool = False
    spelling: str = ""  # format of printed listings; {0}, {1}, {2} are the arguments


def _none(*_: Any) -> tuple[Any, ...]:
    return (0.0, 0.0)


def _atan2(y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    r2 = a * a + b * b
    return b / r2, -(a / r2)


def _smaller(y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    first = (a <= b).where(1.0, 0.0)
    return first, 1.0 - first


def _larger(y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    first = (a >= b).where(1.0, 0.0)
    return first, 1.0 - first


_ROWS = [
    Op("add", 2, np.add, lambda y, a, b: (1.0, 1.0), "add", 1, True, "{0} + {1}"),
    Op("sub", 2, np.subtract, lambda y, a, b: (1.0, -1.0), "sub", 1, False, "{0} - {1}"),
    Op("mul", 2, np.multiply, lambda y, a, b: (b, a), "mul", 1, True, "{0} * {1}"),
    Op("div", 2, np.divide, lambda y, a, b: (1.0 / b, -(y / b)), "div", 4, False, "{0} / {1}"),
    Op("neg", 1, np.negative, lambda y, a: (-1.0,), "neg", 0, False, "-{0}"),
    Op("sqrt", 1, np.sqrt, lambda y, a: (0.5 / y,), "sqrt", 5),
    Op("sin", 1, np.sin, lambda y, a: (a.cos(),), "trig", 8),
    Op("cos", 1, np.cos, lambda y, a: (-a.sin(),), "trig", 8),
    Op("tan", 1, np.tan, lambda y, a: (1.0 + y * y,), "trig", 15),
    Op("asin", 1, np.arcsin, lambda y, a: (1.0 / (1.0 - a * a).sqrt(),), "trig", 15),
    Op("acos", 1, np.arccos, lambda y, a: (-(1.0 / (1.0 - a * a).sqrt()),), "trig", 15),
    Op("atan2", 2, np.arctan2, _atan2, "trig", 20),
    Op("exp", 1, np.exp, lambda y, a: (y,), "exp", 10),
    Op("log", 1, np.log, lambda y, a: (1.0 / a,), "exp", 10),
    Op("tanh", 1, np.tanh, lambda y, a: (1.0 - y * y,), "exp", 15),
    Op("abs", 1, np.abs, lambda y, a: ((a >= 0.0).where(1.0, -1.0),), "select", 1),
    Op("floor", 1, np.floor, lambda y, a: (0.0,), "select", 1),
    Op("minimum", 2, np.minimum, _smaller, "select", 1, True),
    Op("maximum", 2, np.maximum, _larger, "select", 1, True),
    Op("lt", 2, np.less, _none, "select", 1, False, "{0} < {1}"),
    Op("le", 2, np.less_equal, _none, "select", 1, False, "{0} <= {1}"),
    Op("where", 3, np.where, lambda y, c, a, b: (0.0, c.where(1.0, 0.0), c.where(0.0, 1.0)), "select", 1),
]

OPS: dict[str, Op] = {row.name: row for row in _ROWS}

# These give a truth value, which only `where` accepts.
COMPARISONS: tuple[str, ...] = ("lt", "le")

# Nodes without arithmetic of their own: a graph input, a call of another graph, and one result of a call.
PLUMBING: tuple[str, ...] = ("input", "call", "result")

# Columns of the operation count, in the order in which they are printed.
KINDS: tuple[str, ...] = ("mul", "add", "sub", "div", "sqrt", "trig", "exp", "select", "neg")
