"""Greedy covering arrays: few cases that contain every allowed pair of values of two dimensions.

A case has one or several values of each dimension, so that a mechanism with three joint kinds and two force elements
covers six pairs of a joint and an element. The result depends only on the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Value = tuple[str, str]  # (dimension, value)
Pair = tuple[Value, Value]
Case = tuple[Value, ...]
Allowed = Callable[[Sequence[Value]], bool]


@dataclass(frozen=True)
class Dimension:
    """A dimension, of which a case has up to `most` values. alone: values for absence, which exclude all others."""

    values: tuple[str, ...]
    most: int = 1
    alone: tuple[str, ...] = ("none",)


def pair(a: Value, b: Value) -> Pair:
    """Return the two values in a fixed order."""
    return (a, b) if a < b else (b, a)


def pairs_of(case: Sequence[Value]) -> set[Pair]:
    """Return all pairs of values of different dimensions that a case contains."""
    return {pair(a, b) for a, b in combinations(case, 2) if a[0] != b[0]}


def all_pairs(dimensions: Mapping[str, Dimension], allowed: Allowed) -> set[Pair]:
    """Return all pairs that may occur together in a case."""
    every = [(name, value) for name, d in dimensions.items() for value in d.values]
    return {pair(a, b) for a, b in combinations(every, 2) if a[0] != b[0] and allowed((a, b))}


def covering(dimensions: Mapping[str, Dimension], allowed: Allowed) -> list[Case]:
    """Return cases that together contain every allowed pair that fits into some case."""
    return _Search(dimensions, allowed).cases()


class _Search:
    """Values as numbers and sets of values as bits of an integer, because the search visits a million pairs."""

    def __init__(self, dimensions: Mapping[str, Dimension], allowed: Allowed) -> None:
        self.dimensions, self.allowed = dimensions, allowed
        self.values = [(name, value) for name, d in dimensions.items() for value in d.values]
        self.missing = [0] * len(self.values)  # for each value, the values that it has not yet been paired with
        number = {x: i for i, x in enumerate(self.values)}
        for a, b in all_pairs(dimensions, allowed):
            self.missing[number[a]] |= 1 << number[b]
            self.missing[number[b]] |= 1 << number[a]
        self.possible = list(self.missing)

    def cases(self) -> list[Case]:
        found = []
        for i in range(len(self.values)):
            while self.missing[i]:
                seed = [i, (self.missing[i] & -self.missing[i]).bit_length() - 1]
                case = self._filled(list(seed))
                self._remove(seed)  # a pair that fits into no case is reported as not covered
                if case:
                    self._remove(case)
                    found.append(tuple(sorted(self.values[k] for k in case)))
        return found

    def _remove(self, case: Sequence[int]) -> None:
        bits = sum(1 << k for k in case)
        for k in case:
            self.missing[k] &= ~bits

    def _filled(self, case: list[int]) -> list[int]:
        """Add the values that cover most missing pairs until every dimension is full."""
        refused = set[int]()  # a larger case breaks the same rules
        while True:
            held = [self.values[k][0] for k in case]
            full = {self.values[k][0] for k in case if self._alone(k)}
            full |= {name for name, d in self.dimensions.items() if held.count(name) >= d.most}
            bits, scored = sum(1 << k for k in case), []
            for k, (name, _) in enumerate(self.values):
                more = name in held
                gain = (self.missing[k] & bits).bit_count()
                if name in full or k in case or k in refused or (more and (self._alone(k) or not gain)):
                    continue
                scored.append((-gain, more, k))
            for _, _, k in sorted(scored):
                if self._fits(case, k):
                    case.append(k)
                    break
                refused.add(k)
            else:
                return case if set(held) == set(self.dimensions) else []

    def _alone(self, k: int) -> bool:
        name, value = self.values[k]
        return value in self.dimensions[name].alone

    def _fits(self, case: Sequence[int], k: int) -> bool:
        name = self.values[k][0]
        others = [j for j in case if self.values[j][0] != name]
        together = all(self.possible[k] >> j & 1 for j in others)
        return together and self.allowed([self.values[j] for j in (*case, k)])
