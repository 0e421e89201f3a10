"""Ranges of varied values in a study: distributions with their inverses, and lists of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError
from bellcrank.lazy_import import optional_import
from bellcrank.scalar import is_real

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Range:
    """A distribution with two parameters; `unit`, if given, must be that of the varied quantity."""

    kind: str
    a: float
    b: float
    unit: str = ""

    def at(self, u: Array) -> Array:
        """Return the values at the cumulative probabilities `u`, 0 < u < 1."""
        if self.kind == "uniform":
            return np.asarray(self.a + (self.b - self.a) * u)
        if self.kind == "log_uniform":
            return np.asarray(self.a * np.exp(math.log(self.b / self.a) * u))
        special = optional_import("scipy.special", "study", "a normal distribution")
        return np.asarray(self.a + self.b * special.ndtri(u))

    def __str__(self) -> str:
        return f"{self.kind}({self.a:g}, {self.b:g}{f', {self.unit}' if self.unit else ''})"


@dataclass(frozen=True)
class Levels:
    """A list of values: numbers, or names of files, variants and methods."""

    values: tuple[Any, ...]

    def at(self, u: Array) -> Array:
        """Return the values at the shares `u` of the list, 0 < u < 1."""
        k = np.minimum((u * len(self.values)).astype(int), len(self.values) - 1)
        return self.take(k)

    def take(self, k: Array) -> Array:
        """Return the values with the indices `k`."""
        return self.array[k]

    @property
    def array(self) -> Array:
        """All values as an array of texts or floats."""
        words = any(isinstance(x, str) for x in self.values)
        return np.array([str(x) for x in self.values]) if words else np.array(self.values, float)

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.values))}]"


@explain_argument_errors
def uniform(low: float, high: float, unit: str = "") -> Range:
    """Return a uniform distribution for bc.study.

    Parameters
    ----------
    low, high : float
        Limits.
    unit : str
        If given, checked against the unit of the varied quantity.

    Returns
    -------
    Range
        The distribution.

    Raises
    ------
    InputError
        If the range is empty.
    """
    low, high = _finite("uniform", low), _finite("uniform", high)
    if not low < high:
        raise InputError(f"uniform({low:g}, {high:g}) is an empty range; expected the lower number first.")
    return Range("uniform", low, high, unit)


@explain_argument_errors
def log_uniform(low: float, high: float, unit: str = "") -> Range:
    """Return a distribution whose logarithm is uniform, for bc.study.

    Parameters
    ----------
    low, high : float
        Limits, above zero.
    unit : str
        If given, checked against the unit of the varied quantity.

    Returns
    -------
    Range
        The distribution.

    Raises
    ------
    InputError
        If the range is empty, or not above zero.
    """
    low, high = _finite("log_uniform", low), _finite("log_uniform", high)
    if not 0 < low < high:
        raise InputError(f"log_uniform({low:g}, {high:g}): expected two numbers above zero, the lower first.")
    return Range("log_uniform", low, high, unit)


@explain_argument_errors
def normal(mean: float, deviation: float, unit: str = "") -> Range:
    """Return a normal distribution for bc.study.

    Parameters
    ----------
    mean, deviation : float
        Mean and standard deviation.
    unit : str
        If given, checked against the unit of the varied quantity.

    Returns
    -------
    Range
        The distribution.

    Raises
    ------
    InputError
        If the deviation is not positive.
    """
    mean, deviation = _finite("normal", mean), _finite("normal", deviation)
    if not deviation > 0:
        raise InputError(f"normal({mean:g}, {deviation:g}) is an empty range; expected a deviation above zero.")
    return Range("normal", mean, deviation, unit)


def as_range(name: str, given: Any) -> Range | Levels:
    """Return the user's argument `given` for the varied `name` as a Range or Levels."""
    if isinstance(given, (Range, Levels)):
        return given
    if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray, range)):
        raise InputError(f'over: "{name}" is {given!r}; expected bellcrank.uniform(low, high) or a list of values.')
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    values = tuple(x.item() if isinstance(x, np.number) else x for x in listed)
    if not values:
        raise InputError(f'over: "{name}" is an empty list; expected at least one value.')
    for x in values:
        if not isinstance(x, str):
            _finite(f'over: "{name}"', x)
    if len(set(map(type, values)) - {int, float}) and not all(isinstance(x, str) for x in values):
        raise InputError(f'over: "{name}" has numbers and words in one list; expected one kind.')
    return Levels(values)


def _finite(what: str, x: Any) -> float:
    if not is_real(x) or not math.isfinite(x):
        raise InputError(f"{what}: {x!r} is not a finite number.")
    return float(x)
