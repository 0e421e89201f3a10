"""Random numbers inside a trace: functions of a seed, a run, how often it began and which number of it is meant.

A counter-based generator has no state, so that the numbers are the same in any order, for any number of runs and on
any number of threads. This one is Philox (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011) in words of
twelve bits: their products are exact even in single precision. Departs: a sum modulo 4096 where it has an exclusive or,
for scalars have no bits; sums with a key are as reversible.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cached_property

from bellcrank.errors import InputError
from bellcrank.graph.counting import WORD as LOW_HALF
from bellcrank.graph.counting import Count
from bellcrank.scalar import Scalar, cos, floor, is_whole, log, sqrt, where

WORD = 4096.0
ROUNDS = 16  # of narrow words more are needed than of wide ones, which take 10
MULTIPLIERS = 2531.0, 3861.0  # odd, and with many bits set
SEED = 2  # numbers of 24 bits


class Random:
    """What a function that draws a start is given: every call is another number, in each run and at each of its starts.

    seed: SEED whole numbers below 2**24. run, start: whole numbers below 2**48, as counters have them.
    """

    def __init__(self, seed: Sequence[Scalar], run: Count | Scalar, start: Count | Scalar) -> None:
        self._seed, self._run, self._start = seed, _halves(run), _halves(start)
        self._drawn = 0
        self._spare: list[Scalar] = []

    def uniform(self, low: Scalar = 0.0, high: Scalar = 1.0) -> Scalar:
        """Anywhere between low and high."""
        return low + (high - low) * self._next()

    def normal(self, mean: Scalar = 0.0, deviation: Scalar = 1.0) -> Scalar:
        """Of the normal distribution, after Box and Muller."""
        radius = sqrt(-2.0 * log(self._next()))
        return mean + deviation * radius * cos(2.0 * math.pi * self._next())

    def _next(self) -> Scalar:
        if not self._spare:
            words = self._block(self._drawn)
            self._drawn += 1
            self._spare = [(words[k] * WORD + words[k + 1] + 0.5) / WORD**2 for k in (2, 0)]
        return self._spare.pop()

    def _block(self, k: int) -> list[Scalar]:
        """Four words that nobody can tell from random ones."""
        x, key = [*self._counter[0], *self._counter[1]], [w for pair in self._key for w in pair]
        for r, constants in enumerate(_constants(k)):
            (high0, low0), (high1, low1) = (_product(m, x[i]) for m, i in zip(MULTIPLIERS, (0, 2), strict=True))
            key0, key1 = (_sum(key[(2 * r + i) % len(key)], constants[i]) for i in (0, 1))
            x = [_sum(_sum(high1, x[1]), key0), low1, _sum(_sum(high0, x[3]), key1), low0]
        return x

    @cached_property
    def _counter(self) -> list[tuple[Scalar, Scalar]]:
        """The low 24 bits of each number: four words of twelve bits."""
        return [_words(low) for _, low in (self._run, self._start)]

    @cached_property
    def _key(self) -> list[tuple[Scalar, Scalar]]:
        """The seed. The high bits of each number make it another key, so that no two blocks of one seed are equal."""
        own = [_words(part) for part in self._seed]
        more = [_words(high) for high, _ in (self._run, self._start)]
        return [(_sum(a, c), _sum(b, d)) for (a, b), (c, d) in zip(own, more, strict=True)]


def seeded(seed: int) -> list[float]:
    """A seed as Random takes it: any whole number, stirred."""
    if not is_whole(seed):
        raise InputError(f"seed is {seed!r}; expected a whole number.")
    digest = hashlib.sha256(str(int(seed)).encode()).digest()
    return [float(int.from_bytes(digest[3 * k : 3 * k + 3], "big")) for k in range(SEED)]


def _constants(k: int) -> list[tuple[float, float]]:
    """What is added to the key of the k-th block in each round: the bits of a hash."""
    bits = int.from_bytes(hashlib.sha512(f"block {k}".encode()).digest(), "big")
    found = [float(bits >> (12 * i) & 4095) for i in range(2 * ROUNDS)]
    return list(zip(found[::2], found[1::2], strict=True))


def _halves(x: Count | Scalar) -> tuple[Scalar, Scalar]:
    """The high and the low 24 bits of a whole number below 2**48."""
    if isinstance(x, Count) and len(x) == 2:
        return x[0], x[1]
    number = x[0] if isinstance(x, Count) else x
    high = floor(number * (1.0 / LOW_HALF))
    return high, number - LOW_HALF * high


def _words(x: Scalar) -> tuple[Scalar, Scalar]:
    """The two words of a number of 24 bits."""
    high = floor(x * (1.0 / WORD))
    return high, x - WORD * high


def _product(a: float, b: Scalar) -> tuple[Scalar, Scalar]:
    return _words(a * b)


def _sum(a: Scalar, b: Scalar) -> Scalar:
    total = a + b
    return where(total >= WORD, total - WORD, total)
