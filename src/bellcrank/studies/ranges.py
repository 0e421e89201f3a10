"""What a number may be in a study: a distribution with its inverse, or a list of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.extras import extra
from bellcrank.misfits import explained
from bellcrank.scalar import is_real

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Range:
    """A distribution by two numbers. unit: as the study's quantity must have it, where one is named."""

    kind: str
    a: float
    b: float
    unit: str = ""

    def at(self, u: Array) -> Array:
        """Values at these shares of the probability, 0 < u < 1."""
        if self.kind == "uniform":
            return np.asarray(self.a + (self.b - self.a) * u)
        if self.kind == "log_uniform":
            return np.asarray(self.a * np.exp(math.log(self.b / self.a) * u))
        special = extra("scipy.special", "study", "a normal distribution")
        return np.asarray(self.a + self.b * special.ndtri(u))

    def __str__(self) -> str:
        return f"{self.kind}({self.a:g}, {self.b:g}{f', {self.unit}' if self.unit else ''})"


@dataclass(frozen=True)
class Levels:
    """Values one of which each run has: numbers, or names of files, variants and methods."""

    values: tuple[Any, ...]

    def at(self, u: Array) -> Array:
        k = np.minimum((u * len(self.values)).astype(int), len(self.values) - 1)
        return self.take(k)

    def take(self, k: Array) -> Array:
        return self.array[k]

    @property
    def array(self) -> Array:
        words = any(isinstance(x, str) for x in self.values)
        return np.array([str(x) for x in self.values]) if words else np.array(self.values, float)

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.values))}]"


@explained
def uniform(low: float, high: float, unit: str = "") -> Range:
    """Anywhere between two numbers, for bc.study. unit: checked against that of what varies, where given."""
    low, high = _finite("uniform", low), _finite("uniform", high)
    if not low < high:
        raise InputError(f"uniform({low:g}, {high:g}) is an empty range; expected the lower number first.")
    return Range("uniform", low, high, unit)


@explained
def log_uniform(low: float, high: float, unit: str = "") -> Range:
    """Between two numbers above zero, all orders of magnitude alike."""
    low, high = _finite("log_uniform", low), _finite("log_uniform", high)
    if not 0 < low < high:
        raise InputError(f"log_uniform({low:g}, {high:g}): expected two numbers above zero, the lower first.")
    return Range("log_uniform", low, high, unit)


@explained
def normal(mean: float, deviation: float, unit: str = "") -> Range:
    """Of the normal distribution."""
    mean, deviation = _finite("normal", mean), _finite("normal", deviation)
    if not deviation > 0:
        raise InputError(f"normal({mean:g}, {deviation:g}) is an empty range; expected a deviation above zero.")
    return Range("normal", mean, deviation, unit)


def ranged(name: str, given: Any) -> Range | Levels:
    """What a user wrote for a name."""
    if isinstance(given, (Range, Levels)):
        return given
    if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray, range)):
        raise InputError(f'over: "{name}" is {given!r}; expected bellcrank.uniform(low, high) or a list of values.')
    values = tuple(given.tolist() if isinstance(given, np.ndarray) else given)
    if not values:
        raise InputError(f'over: "{name}" is an empty list; expected one value at least.')
    for x in values:
        if not isinstance(x, str):
            _finite(f'over: "{name}"', x)
    if len(set(map(type, values)) - {int, float}) and not all(isinstance(x, str) for x in values):
        raise InputError(f'over: "{name}" has numbers and words in one list; expected one kind.')
    return Levels(values)


def _finite(what: str, x: Any) -> float:
    if not is_real(x) or not math.isfinite(x):
        raise InputError(f"{what}: {x!r} is no finite number.")
    return float(x)
