"""Exact counters in any precision: integers stored as floating-point words that are themselves exact.

A float64 counts exactly to 2**53: 285,000 years at 1 kHz. A float32 counts to 2**24 only, which is less than five
hours at 1 kHz; from there on n + 1 rounds back to n. So a counter in float32 has two words:

    n = high * 2**24 + low,     0 <= low < 2**24,     0 <= high <= 2**24

Each word is exact, and so is every operation below: no intermediate result exceeds 2**24 (see `plus`). Two words count
to 2**48: 8,900 years at 1 kHz.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.scalar import Scalar, floor, where

WORD_RANGE = 2.0**24  # above this, float32 does not represent every integer
WORDS_BY_DTYPE = {"float64": 1, "float32": 2}


@dataclass(frozen=True)
class Counter:
    """A counter field of a Layout, with as many words as its precision needs."""

    words: int

    @staticmethod
    def for_dtype(dtype: str) -> Counter:
        """Return the counter for numbers of this `dtype`."""
        return Counter(WORDS_BY_DTYPE[dtype])


class CounterWords(list[Scalar]):
    """The words of a counter inside a trace, the highest first."""

    @property
    def value(self) -> Scalar:
        """The number rounded to one scalar; it never decreases while the counter grows."""
        return self[0] if len(self) == 1 else self[0] * WORD_RANGE + self[1]

    def incremented(self) -> CounterWords:
        """Return the counter plus one."""
        if len(self) == 1:
            return CounterWords([self[0] + 1.0])
        low = self[1] + 1.0  # at most 2**24, which is exact
        full = low >= WORD_RANGE
        return CounterWords([where(full, self[0] + 1.0, self[0]), where(full, 0.0, low)])

    def decremented(self) -> CounterWords:
        """Return the counter minus one; the counter must not be zero."""
        if len(self) == 1:
            return CounterWords([self[0] - 1.0])
        empty = self[1] < 1.0
        return CounterWords([where(empty, self[0] - 1.0, self[0]), where(empty, WORD_RANGE - 1.0, self[1] - 1.0)])

    def plus(self, other: CounterWords) -> CounterWords:
        """Return the sum with `other`; with two words it subtracts first, so that nothing exceeds 2**24."""
        if len(self) == 1:
            return CounterWords([self[0] + other[0]])
        room = WORD_RANGE - other[1]
        full, high = self[1] >= room, self[0] + other[0]
        return CounterWords([where(full, high + 1.0, high), where(full, self[1] - room, self[1] + other[1])])

    def reached(self, other: CounterWords) -> Scalar:
        """Return the condition that this counter is at least `other`."""
        if len(self) == 1:
            return self[0] >= other[0]
        level = where(self[0] >= other[0], where(self[1] >= other[1], 1.0, 0.0), 0.0)
        return where(self[0] > other[0], 1.0, level) > 0.5


def to_counter(value: Scalar, words: int) -> CounterWords:
    """Convert an integer-valued scalar inside a trace to a counter.

    Parameters
    ----------
    value
        The scalar.
    words
        Number of words of the counter.
    """
    if words == 1:
        return CounterWords([value])
    high = floor(value * (1.0 / WORD_RANGE))
    return CounterWords([high, value - high * WORD_RANGE])


def split_words(value: Any, words: int) -> Any:
    """Split numbers into words along a new first axis.

    Parameters
    ----------
    value
        A number, or an array of numbers; NEVER_TIME (program.py) stays a number that is never reached.
    words
        Number of words.
    """
    number = np.asarray(value, float)
    if words == 1:
        return number[None]
    high = np.floor(number / WORD_RANGE)
    return np.stack([high, np.where(number < WORD_RANGE**2, number - high * WORD_RANGE, 0.0)])


def join_words(words: Any) -> Any:
    """Return in float64 the numbers whose `words` are the rows of an array."""
    rows = np.asarray(words, float)
    return rows[0] if len(rows) == 1 else rows[0] * WORD_RANGE + rows[1]
