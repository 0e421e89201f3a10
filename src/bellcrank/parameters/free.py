"""Expressions of free parameters: a mass or length as a symbol with a nominal value, and results computed from it.

`parameter("boom.mass", 1830)` creates a leaf; arithmetic and the functions of bellcrank.scalar create further nodes,
which store how they were computed. They can be evaluated again on floats (giving a number), on arrays (a batch), or on
the inputs of a trace (nodes of a kernel), which a tape does by itself where the two meet.

The value of a free parameter never decides anything. It equals no number (it is not 0, not 1, not a right angle,
because it may change), its truth value is True, and it is not converted to a float implicitly: code that may decide by
the nominal value calls `nominal`. The same operation on the same arguments is the same object, so that x - x and
(x*m)/m fold, and a mass may be zero without becoming the denominator of its own centre of mass.
"""

from __future__ import annotations

import hashlib
import math
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from bellcrank.errors import TraceError
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import Tape, evaluate, topological_order


class Free(Node):
    """A node that depends on parameters: op "parameter" with name, nominal value and unit, or any other operation."""

    __slots__ = ("__dict__", "__weakref__")
    __array_priority__ = 900.0  # below that of a traced node, which imports it

    @cached_property
    def leaves(self) -> tuple[Free, ...]:
        """The parameters it depends on, sorted by name."""
        leaves = (x for x in topological_order(self) if isinstance(x, Free) and x.op == "parameter")
        return tuple(sorted(leaves, key=lambda x: str(x.args[0])))

    @cached_property
    def value(self) -> float:
        """The value with all parameters at their nominal values."""
        try:
            with np.errstate(all="ignore"):
                return float(evaluate(self, lambda leaf: np.float64(leaf.args[1])))
        except (ValueError, OverflowError):  # the math module raises where the result is not a number
            return math.nan

    @cached_property
    def digest(self) -> str:
        """A hash that is equal for equal expressions, in every process."""
        known: dict[Node, str] = {}
        for x in topological_order(self):
            parts = [known[a] if isinstance(a, Node) else repr(a) for a in x.args]
            known[x] = hashlib.sha256("\n".join([x.op, *parts]).encode()).hexdigest()
        return known[self]

    def __reduce__(self) -> tuple[Any, ...]:
        return made, (self.op, *self.args)

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
        return True  # it is not the constant zero

    def __float__(self) -> float:
        raise TraceError(
            f"a number that depends on free parameters ({self._names}) cannot become a float: it has no value until "
            "the kernel runs. Use the functions of bellcrank.scalar instead of math's, or nominal(x) for its value now."
        )


class FreeTape(Tape):
    """The tape of all free parameters of all models in use; its nodes do not depend on the order of creation."""

    free = True

    def __init__(self) -> None:
        super().__init__()
        self.alive: WeakValueDictionary[tuple[Any, ...], Free] = WeakValueDictionary()

    def node(self, op: str, *args: Any) -> Free:
        """Return the node of operation `op` on `args`; create it if it does not exist."""
        key = (op, *args)
        existing = self.alive.get(key)
        return self.alive.setdefault(key, Free(self, op, args, 0, "")) if existing is None else existing

    def reversed(self, op: str, a: Any, b: Any) -> None:
        """Return None: the order of creation must not matter, so `op`, `a` and `b` are ignored."""
        return None


FREE = FreeTape()


def made(op: str, *args: Any) -> Free:
    """Return the expression of operation `op` on `args`: for files and other processes."""
    return FREE.node(op, *args)
