"""Counter-based random numbers inside a trace: functions of a seed, the run, its start and the number of the draw.

A counter-based generator has no state, so that the numbers are the same in any order, for any number of runs and on any
number of threads. This one is Philox (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011) in words of
twelve bits, whose products are exact even in single precision. There is one difference from the paper: because scalars
have no bits, this code uses a sum modulo 4096 in place of each exclusive or; sums with a key are as reversible.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cached_property

from bellcrank.errors import InputError
from bellcrank.graph.layout import WORD_RANGE as LOW_HALF
from bellcrank.graph.layout import CounterWords
from bellcrank.scalar import Scalar, cos, floor, is_whole, log, sqrt, where

WORD_RANGE = 4096.0
ROUNDS = 16  # narrow words need more rounds than wide ones, which need 10
MULTIPLIERS = 2531.0, 3861.0  # odd, and with many bits set
SEED_NUMBERS = 2  # numbers of 24 bits in a seed


class Random:
    """Random numbers for a function that draws a start; every call gives another number, in each run and at each start.

    seed: SEED_NUMBERS whole numbers below 2**24. run, start: whole numbers below 2**48, as counters hold them.
    """

    def __init__(self, seed: Sequence[Scalar], run: CounterWords | Scalar, start: CounterWords | Scalar) -> None:
        self._seed, self._run, self._start = seed, _halves(run), _halves(start)
        self._drawn = 0
        self._spare: list[Scalar] = []

    def uniform(self, low: Scalar = 0.0, high: Scalar = 1.0) -> Scalar:
        """Return a uniformly distributed number.

        Parameters
        ----------
        low, high : scalar
            Bounds.

        Returns
        -------
        scalar
            A number between `low` and `high`.
        """
        return low + (high - low) * self._next()

    def normal(self, mean: Scalar = 0.0, deviation: Scalar = 1.0) -> Scalar:
        """Return a normally distributed number (Box-Muller).

        Parameters
        ----------
        mean : scalar
            Mean.
        deviation : scalar
            Standard deviation.

        Returns
        -------
        scalar
            The number.
        """
        radius = sqrt(-2.0 * log(self._next()))
        return mean + deviation * radius * cos(2.0 * math.pi * self._next())

    def _next(self) -> Scalar:
        if not self._spare:
            words = self._block(self._drawn)
            self._drawn += 1
            self._spare = [(words[k] * WORD_RANGE + words[k + 1] + 0.5) / WORD_RANGE**2 for k in (2, 0)]
        return self._spare.pop()

    def _block(self, k: int) -> list[Scalar]:
        """Return the four pseudo-random words of the k-th block."""
        x, key = [*self._counter[0], *self._counter[1]], [w for pair in self._key for w in pair]
        for r, constants in enumerate(_constants(k)):
            (high0, low0), (high1, low1) = (_product(m, x[i]) for m, i in zip(MULTIPLIERS, (0, 2), strict=True))
            key0, key1 = (_sum(key[(2 * r + i) % len(key)], constants[i]) for i in (0, 1))
            x = [_sum(_sum(high1, x[1]), key0), low1, _sum(_sum(high0, x[3]), key1), low0]
        return x

    @cached_property
    def _counter(self) -> list[tuple[Scalar, Scalar]]:
        """Low 24 bits of each number: four words of twelve bits."""
        return [_words(low) for _, low in (self._run, self._start)]

    @cached_property
    def _key(self) -> list[tuple[Scalar, Scalar]]:
        """Words of the seed with the high bits of each number added, so that no two blocks of one seed are equal."""
        words = [_words(part) for part in self._seed]
        more = [_words(high) for high, _ in (self._run, self._start)]
        return [(_sum(a, c), _sum(b, d)) for (a, b), (c, d) in zip(words, more, strict=True)]


def seed_numbers(seed: int) -> list[float]:
    """Return any whole number `seed`, hashed, as the SEED_NUMBERS numbers that Random takes."""
    if not is_whole(seed):
        raise InputError(f"seed is {seed!r}; expected a whole number.")
    digest = hashlib.sha256(str(int(seed)).encode()).digest()
    return [float(int.from_bytes(digest[3 * k : 3 * k + 3], "big")) for k in range(SEED_NUMBERS)]


def _constants(k: int) -> list[tuple[float, float]]:
    """Return the constants that are added to the key of the k-th block in each round, from the bits of a hash."""
    bits = int.from_bytes(hashlib.sha512(f"block {k}".encode()).digest(), "big")
    words = [float(bits >> (12 * i) & 4095) for i in range(2 * ROUNDS)]
    return list(zip(words[::2], words[1::2], strict=True))


def _halves(x: CounterWords | Scalar) -> tuple[Scalar, Scalar]:
    """Return the high and the low 24 bits of a whole number below 2**48."""
    if isinstance(x, CounterWords) and len(x) == 2:
        return x[0], x[1]
    number = x[0] if isinstance(x, CounterWords) else x
    high = floor(number * (1.0 / LOW_HALF))
    return high, number - LOW_HALF * high


def _words(x: Scalar) -> tuple[Scalar, Scalar]:
    """Return the two words of a number of 24 bits."""
    high = floor(x * (1.0 / WORD_RANGE))
    return high, x - WORD_RANGE * high


def _product(a: float, b: Scalar) -> tuple[Scalar, Scalar]:
    return _words(a * b)


def _sum(a: Scalar, b: Scalar) -> Scalar:
    total = a + b
    return where(total >= WORD_RANGE, total - WORD_RANGE, total)
