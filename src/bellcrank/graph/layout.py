"""Layout of a state vector: named fields, among them counters that are exact in any precision.

A counter is an integer stored as floating-point words that are themselves exact. A float64 counts exactly to 2**53:
285,000 years at 1 kHz. A float32 counts to 2**24 only, which is less than five hours at 1 kHz; from there on n + 1
rounds back to n. So a counter in float32 has two words:

    n = high * 2**24 + low,     0 <= low < 2**24,     0 <= high <= 2**24

Each word is exact, and so is every operation below: no intermediate result exceeds 2**24 (see `plus`). Two words count
to 2**48: 8,900 years at 1 kHz.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.scalar import Scalar, floor, where

Array = np.ndarray[Any, Any]
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


Width = int | tuple[int] | Counter  # of a field: one scalar, a list of this length, or a counter


class Layout:
    """Named fields, one after the other in a vector.

    A field of size 1 is a scalar, a Counter counts, anything else is a list. A counter of one word is stored like a
    scalar; inside a trace every counter is CounterWords.
    """

    def __init__(self, fields: Mapping[str, Width]) -> None:
        """Lay out the `fields` in the given order."""
        self.fields = dict(fields)
        self.places: dict[str, int | slice] = {}
        offset = 0
        for name, size in fields.items():
            width = _width(size)
            single = width == 1 and not isinstance(size, tuple)
            self.places[name] = offset if single else slice(offset, offset + width)
            offset += width
        self.size = offset

    def read(self, s: Sequence[Scalar]) -> dict[str, Any]:
        """Return the fields of the state `s` by name."""
        values: dict[str, Any] = {}
        for name, place in self.places.items():
            words = [s[place]] if isinstance(place, int) else list(s[place])
            if isinstance(self.fields[name], Counter):
                values[name] = CounterWords(words)
            else:
                values[name] = words[0] if isinstance(place, int) else words
        return values

    def to_list(self, values: Mapping[str, Any]) -> list[Scalar]:
        """Return a state as a flat list from the `values` of all its fields."""
        flat: list[Scalar] = []
        for name in self.places:
            x = values[name]
            flat += list(x) if isinstance(self.fields[name], Counter | tuple) else [x]
        return flat

    def constants(self, values: Mapping[str, float]) -> dict[int, float]:
        """Return the state elements that hold these `values`, by index; names without a field are ignored."""
        elements: dict[int, float] = {}
        for name, x in values.items():
            if name in self.places:
                words = self.words(name)
                elements |= dict(
                    zip(self._range(name), [x] if words is None else split_words(x, words).tolist(), strict=True)
                )
        return elements

    def words(self, name: str) -> int | None:
        """Return the number of words of the counter `name`; None if it is not a counter or does not exist."""
        kind = self.fields.get(name)
        return kind.words if isinstance(kind, Counter) else None

    def count(self, state: Any, name: str) -> Any:
        """Return the count of counter `name` in float64, for one `state` or for the columns of an array of states."""
        return join_words([state[k] for k in self._range(name)])

    def _range(self, name: str) -> range:
        place = self.places[name]
        return range(place, place + 1) if isinstance(place, int) else range(place.start, place.stop)

    def array(self, lanes: int, values: Mapping[str, Any], xp: Any = np, dtype: str = "float64") -> Any:
        """Return the states of several lanes, shape (size, lanes); fields without a value are zero.

        Parameters
        ----------
        lanes
            Number of lanes.
        values
            Numbers or arrays of shape (lanes,) or (lanes, width) by field; an array of shape (1, width) applies to all
            lanes. Names without a field are ignored.
        xp
            Array library, numpy or cupy.
        dtype
            Type of the numbers.
        """
        return self._filled(xp.zeros((self.size, lanes), dtype), values, xp)

    def _filled(self, state: Any, values: Mapping[str, Any], xp: Any) -> Any:
        """Write fields into a state, or into the columns of an array of states, and return it."""
        for name, value in values.items():
            if name not in self.places:
                continue
            if (words := self.words(name)) is None:
                state[self.places[name]] = xp.asarray(value).T if np.ndim(value) else value
                continue
            for place, word in zip(self._range(name), split_words(value, words), strict=True):
                state[place] = xp.asarray(word) if np.ndim(word) else float(word)
        return state

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def with_fields(self, state: Any, values: Mapping[str, Any]) -> Any:
        """Return a copy of one lane's `state` with the fields in `values` changed."""
        return self._filled(state.copy(), values, np)

    def span(self, name: str) -> slice:
        """Return the slice of the list field `name`."""
        place = self.places[name]
        assert isinstance(place, slice)
        return place

    def place(self, name: str) -> int:
        """Return the index of the scalar field `name`."""
        index = self.places[name]
        assert isinstance(index, int)
        return index


def _width(size: Width) -> int:
    if isinstance(size, Counter):
        return size.words
    return size if isinstance(size, int) else size[0]


def list_width(width: int) -> int | tuple[int]:
    """Return the field size of a list of `width` elements, also for one element or none."""
    return (width,)
