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
from typing import Any, Self
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


class Term:
    """How a number was made from parameters; expression.py adds the arithmetic."""

    __slots__ = ("__dict__", "__weakref__", "args", "op")

    op: str  # "parameter", or a key of FUNCTIONS
    args: tuple[Any, ...]  # name, nominal value and unit; or expressions and floats

    _table: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()

    @classmethod
    def make(cls, op: str, *args: Any) -> Self:
        key = (op, *args)
        found: Self | None = cls._table.get(key)
        if found is None:
            found = cls()
            found.op, found.args = op, args
            found = cls._table.setdefault(key, found)
        return found

    @property
    def operands(self) -> list[Term]:
        return [a for a in self.args if isinstance(a, Term)]

    @cached_property
    def leaves(self) -> tuple[Term, ...]:
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
        known: dict[Term, str] = {}
        for x in ordered(self):
            parts = [known[a] if isinstance(a, Term) else repr(a) for a in x.args]
            known[x] = hashlib.sha256("\n".join([x.op, *parts]).encode()).hexdigest()
        return known[self]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).make, (self.op, *self.args)

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


def ordered(*expressions: Term, known: Mapping[Term, Any] | None = None) -> list[Term]:
    """They and all they are made of, arguments before users, each once; less what is known already."""
    out: dict[Term, None] = {}
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


def evaluated(x: Term, leaf: Callable[[Term], Scalar], known: dict[Term, Scalar] | None = None) -> Scalar:
    """The expression computed again, with leaf(parameter) for each parameter. `known` keeps what is done."""
    known = {} if known is None else known
    for e in ordered(x, known=known):
        if e.op == "parameter":
            known[e] = leaf(e)
        else:
            known[e] = FUNCTIONS[e.op](*(known[a] if isinstance(a, Term) else a for a in e.args))
    return known[x]
