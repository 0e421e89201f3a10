"""Statistical tests of the steppers' random numbers, each measured in standard deviations from the expectation.

Numbers are drawn as a stepper draws them: over runs, over starts of one run, over seeds, and within one start. A
generator with fewer rounds fails, so the tests can fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bellcrank.sim.program import counter_rng

Array = np.ndarray[Any, Any]
N = 1 << 16
MOST = 5.0  # deviations: one of some hundred results exceeds this once in ten thousand batteries
BITS = 24


def drawn(seed: Any, run: Any, start: Any, skip: int = 0) -> Array:
    """Integers of 24 bits."""
    random = counter_rng.Random(seed, run, start)
    for _ in range(skip):
        random.uniform()
    return np.floor(np.broadcast_to(random.uniform(), (N,)) * 2.0**BITS).astype(np.int64)


COUNT = np.arange(float(N))
SEED = counter_rng.seed_numbers(7)
WAYS: dict[str, Callable[[], Array]] = {
    "runs": lambda: drawn(SEED, COUNT, 0.0),
    "runs, third number": lambda: drawn(SEED, COUNT, 0.0, 2),
    "starts": lambda: drawn(SEED, 5.0, COUNT),
    "runs and starts": lambda: drawn(SEED, COUNT % 512, COUNT // 512),
    "first half of the seed": lambda: drawn([COUNT, 3.0], 1.0, 1.0),
    "second half of the seed": lambda: drawn([3.0, COUNT], 1.0, 1.0),
}


def deviations(found: float, mean: float, variance: float) -> float:
    return abs(found - mean) / math.sqrt(variance)


def chi_square(counts: Array, expected: float) -> float:
    free = counts.size - 1
    return deviations(float(((counts - expected) ** 2).sum() / expected), free, 2 * free)


def places(x: Array) -> float:
    """Uniform distribution over 1024 bins."""
    return chi_square(np.bincount(x >> 14, minlength=1024), N / 1024)


def bits(x: Array) -> float:
    return max(deviations(float((x >> b & 1).sum()), N / 2, N / 4) for b in range(BITS))


def pairs(x: Array) -> float:
    """Uniform distribution of neighbours over 64 x 64 cells, also of their lowest bits."""
    high, low = (x[::2] >> 18) * 64 + (x[1::2] >> 18), (x[::2] & 63) * 64 + (x[1::2] & 63)
    return max(chi_square(np.bincount(c, minlength=4096), N / 2 / 4096) for c in (high, low))


def correlation(x: Array) -> float:
    u = x / 2.0**BITS - 0.5
    return max(deviations(float((u[:-lag] * u[lag:]).sum()), 0.0, (N - lag) / 144) for lag in (1, 2, 3, 64, 512))


def bit_correlation(x: Array) -> float:
    """Correlation of every bit with every other bit of the same number and of the next."""
    b = ((x[:, None] >> np.arange(BITS)) & 1) * 2.0 - 1.0
    same, next_ = b.T @ b - N * np.eye(BITS), b[:-1].T @ b[1:]
    return float(max(np.abs(same).max(), np.abs(next_).max()) / math.sqrt(N))


def collisions(x: Array) -> float:
    """Number of values among 2^24 that occur more than once."""
    expected = 2.0**BITS * -np.expm1(N * np.log1p(-(2.0**-BITS)))
    return deviations(len(np.unique(x)), float(expected), N - float(expected))


def rises(x: Array) -> float:
    """Number of times that the next value is larger."""
    return deviations(float((x[1:] > x[:-1]).sum()), (N - 1) / 2, (N + 1) / 12)


def ranks(x: Array) -> float:
    """Number of 24 x 24 bit matrices of full rank over GF(2)."""
    matrices = x[: N // BITS * BITS].reshape(-1, BITS)[:4000].copy()
    full = np.ones(len(matrices), bool)
    rows = np.arange(len(matrices))
    for bit in range(BITS):
        have = matrices >> bit & 1 == 1
        have[:, :bit] = False  # rows already used
        full &= have.any(axis=1)
        pivot = have.argmax(axis=1)
        first = matrices[rows, pivot].copy()
        matrices[rows, pivot] = matrices[:, bit]
        matrices[:, bit] = first
        others = (matrices >> bit & 1 == 1) & (np.arange(BITS) > bit)
        matrices ^= np.where(others, first[:, None], 0)
    p = float(np.prod(1 - 0.5 ** np.arange(1, BITS + 1)))
    return deviations(float(full.sum()), len(full) * p, len(full) * p * (1 - p))


BATTERY = (places, bits, pairs, correlation, bit_correlation, collisions, rises, ranks)


@pytest.mark.parametrize("way", WAYS)
def test_the_battery(way: str) -> None:
    x = WAYS[way]()
    found = {test.__name__: test(x) for test in BATTERY}
    assert max(found.values()) < MOST, found


def test_battery_detects_a_generator_of_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter_rng, "ROUNDS", 3)
    x = WAYS["runs"]()
    assert max(test(x) for test in BATTERY) > MOST


@pytest.mark.parametrize("bit", range(0, BITS, 5))
def test_a_bit_of_the_counter_changes_half_of_the_bits(bit: int) -> None:
    other = np.bitwise_xor(COUNT.astype(np.int64), 1 << bit).astype(float)
    changed = drawn(SEED, COUNT, 0.0) ^ drawn(SEED, other, 0.0)
    flips = np.array([(changed >> b & 1).sum() for b in range(BITS)])
    # each pair is counted from both sides, so there are half as many of them
    assert np.abs(flips - N / 2).max() / math.sqrt(N / 2) < MOST


def test_normal_numbers() -> None:
    """Check moments, and the distribution by the Kolmogorov-Smirnov test."""
    z = np.sort(np.asarray(counter_rng.Random(SEED, COUNT, 3.0).normal()))
    for power, mean, variance in ((1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)):
        assert deviations(float((z**power).sum()), N * mean, N * variance) < MOST
    exact = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in z])
    distance = np.abs(exact - (COUNT + 0.5) / N).max() * math.sqrt(N)
    assert distance < 2.5  # the probability of more than this is 7e-6
