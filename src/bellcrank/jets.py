"""Second-order Taylor arithmetic: a scalar with its first and second derivative along one direction.

If a user function (a cam profile, a prescribed motion, a surface) must be differentiated inside the mechanics, which
are independent of graphs, it is called with a Jet: `Jet(t, 1.0)` gives f, df/dt and d2f/dt2 at once. The parts are
scalars of any kind: numbers, arrays or symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bellcrank.errors import TraceError
from bellcrank.scalar import Scalar, acos, asin, atan2, cos, exp, fabs, floor, log, sin, sqrt, tan, tanh, where

Chain = Callable[[Scalar], tuple[Scalar, Scalar, Scalar]]  # value, first and second derivative


def _function(name: str, chain: Chain) -> Callable[[Jet], Jet]:
    """Return the method of a Jet for the function with this chain."""

    def method(self: Jet) -> Jet:
        return self._chain(chain)

    method.__doc__ = f"Return the {name}."
    return method


class Jet:
    """The truncated series x + d e + c e^2/2."""

    __slots__ = ("c", "d", "x")
    __array_ufunc__ = None  # numpy numbers defer the arithmetic to Jet

    def __init__(self, x: Scalar, d: Scalar = 0.0, c: Scalar = 0.0) -> None:
        self.x, self.d, self.c = x, d, c

    def __repr__(self) -> str:
        return f"Jet({self.x!r}, {self.d!r}, {self.c!r})"

    def __add__(self, o: Any) -> Jet:
        o = jet(o)
        return Jet(self.x + o.x, self.d + o.d, self.c + o.c)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return Jet(-self.x, -self.d, -self.c)

    def __pos__(self) -> Jet:
        return self

    def __sub__(self, o: Any) -> Jet:
        o = jet(o)
        return Jet(self.x - o.x, self.d - o.d, self.c - o.c)

    def __rsub__(self, o: Any) -> Jet:
        return jet(o) - self

    def __mul__(self, o: Any) -> Jet:
        o = jet(o)
        return Jet(self.x * o.x, self.d * o.x + self.x * o.d, self.c * o.x + 2.0 * (self.d * o.d) + self.x * o.c)

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> Jet:
        return self * jet(o)._chain(lambda x: (1.0 / x, -1.0 / (x * x), 2.0 / (x * x * x)))

    def __rtruediv__(self, o: Any) -> Jet:
        return jet(o) / self

    def __pow__(self, exponent: Any) -> Jet:
        if exponent == 0.5:
            return self.sqrt()
        if not isinstance(exponent, int) or exponent < 1:
            raise TraceError(f"a scalar was raised to {exponent!r}; expected a positive integer or 0.5.")
        total = self
        for _ in range(exponent - 1):
            total = total * self
        return total

    def __abs__(self) -> Jet:
        sign = where(self.x >= 0.0, 1.0, -1.0)
        return Jet(fabs(self.x), sign * self.d, sign * self.c)

    fabs = absolute = __abs__

    def __lt__(self, o: Any) -> Any:
        return self.x < jet(o).x

    def __le__(self, o: Any) -> Any:
        return self.x <= jet(o).x

    def __gt__(self, o: Any) -> Any:
        return self.x > jet(o).x

    def __ge__(self, o: Any) -> Any:
        return self.x >= jet(o).x

    def __bool__(self) -> bool:
        raise TraceError("a scalar has no truth value here: write where(condition, a, b) instead of if.")

    def _chain(self, f: Chain) -> Jet:
        """Apply a function that returns its value and its first and second derivative."""
        y, d, c = f(self.x)
        return Jet(y, d * self.d, c * (self.d * self.d) + d * self.c)

    sin = _function("sine", lambda x: (sin(x), cos(x), -sin(x)))
    cos = _function("cosine", lambda x: (cos(x), -sin(x), -cos(x)))
    tan = _function("tangent", lambda x: (y := tan(x), 1.0 + y * y, 2.0 * y * (1.0 + y * y)))
    sqrt = _function("square root", lambda x: (y := sqrt(x), 0.5 / y, -0.25 / (y * x)))
    exp = _function("exponential function", lambda x: (y := exp(x), y, y))
    log = _function("natural logarithm", lambda x: (log(x), 1.0 / x, -1.0 / (x * x)))
    tanh = _function("hyperbolic tangent", lambda x: (y := tanh(x), 1.0 - y * y, -2.0 * y * (1.0 - y * y)))
    arcsin = _function("inverse sine", lambda x: (asin(x), 1.0 / (r := sqrt(1.0 - x * x)), x / ((1.0 - x * x) * r)))
    arccos = _function("inverse cosine", lambda x: (acos(x), -1.0 / (r := sqrt(1.0 - x * x)), -x / ((1.0 - x * x) * r)))

    def floor(self) -> Jet:
        """Return the value rounded down to an integer, with zero derivatives."""
        return Jet(floor(self.x))

    # bellcrank.scalar calls these.
    @staticmethod
    def _where_(condition: Any, yes: Any, no: Any) -> Jet:
        a, b = jet(yes), jet(no)
        return Jet(where(condition, a.x, b.x), where(condition, a.d, b.d), where(condition, a.c, b.c))

    @staticmethod
    def _minimum_(a: Any, b: Any) -> Jet:
        return Jet._where_(jet(a) <= b, a, b)

    @staticmethod
    def _maximum_(a: Any, b: Any) -> Jet:
        return Jet._where_(jet(a) >= b, a, b)

    @staticmethod
    def _atan2_(a: Any, b: Any) -> Jet:
        y, x = jet(a), jet(b)
        s = x.x * x.x + y.x * y.x
        first = (x.x * y.d - y.x * x.d) / s
        turn = (x.x * y.c - y.x * x.c) / s - 2.0 * first * (x.x * x.d + y.x * y.d) / s
        return Jet(atan2(y.x, x.x), first, turn)


def jet(x: Any) -> Jet:
    """Return `x` as a Jet; a scalar has zero derivatives."""
    return x if isinstance(x, Jet) else Jet(x)
