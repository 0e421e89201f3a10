"""Sums of states. A weight that is the constant 0 costs nothing."""

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
