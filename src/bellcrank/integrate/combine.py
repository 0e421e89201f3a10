"""Sums of states, in which a weight that is the constant 0 costs nothing; and the state between two steps, a polynomial
in s = (time since the step began) / h.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.integrate.problem import State
from bellcrank.scalar import Scalar, is_zero


def weighted(weights: Sequence[Scalar], states: Sequence[State]) -> State:
    """sum of weights[i] states[i]."""
    terms = [(w, s) for w, s in zip(weights, states, strict=True) if not is_zero(w)]
    (w, first), *rest = terms
    total = [w * x for x in first]
    for w, state in rest:
        total = [a + w * x for a, x in zip(total, state, strict=True)]
    return total


def plus(a: State, b: State) -> State:
    return [x + y for x, y in zip(a, b, strict=True)]


def minus(a: State, b: State) -> State:
    return [x - y for x, y in zip(a, b, strict=True)]


def times(k: Scalar, a: State) -> State:
    return [k * x for x in a]


def hermite(y0: State, hf0: State, y1: State, hf1: State, bump: State | None = None) -> list[State]:
    """The cubic with these values and slopes (h f) at s = 0 and s = 1, plus bump s^2 (1 - s)^2, which moves neither.

    The cubic is off by h^4 y''''/24 s^2 (1 - s)^2 and higher terms, so a bump near h^4 y''''/24 gains an order.
    """
    rise = minus(y1, y0)
    c2 = [3.0 * d - 2.0 * a - b for d, a, b in zip(rise, hf0, hf1, strict=True)]
    c3 = [a + b - 2.0 * d for d, a, b in zip(rise, hf0, hf1, strict=True)]
    if bump is None:
        return [y0, hf0, c2, c3]
    return [y0, hf0, plus(c2, bump), minus(c3, times(2.0, bump)), bump]


def interpolate(dense: Sequence[State], s: Scalar) -> State:
    """y(t + s h), by Horner's rule."""
    *lower, y = dense
    for c in reversed(lower):
        y = [a + s * x for a, x in zip(c, y, strict=True)]
    return y
