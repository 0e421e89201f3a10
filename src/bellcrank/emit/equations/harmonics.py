"""Product-to-sum rewriting of trigonometric polynomials, where it makes a set of polynomials shorter.

    c_2 c_3 - s_2 s_3 = cos(q_2 + q_3)        c_2^2 = (1 + cos 2 q_2) / 2

Angles are put in groups. Inside a group products become sums of angles, across groups they stay products: angles of
parallel axes belong in one group, angles of crossed axes in different ones. The groups are found automatically, because
merging continues only as long as it saves terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from math import comb

from bellcrank.emit.equations.polynomial import EXPONENT_BITS, ROUNDING_TOLERANCE, Polynomial, Ring

Wave = tuple[str, tuple[tuple[int, int], ...]]  # "sin" or "cos" of a sum of (angle, multiple); the first is positive
Term = tuple[int, tuple[Wave, ...]]  # a monomial in ungrouped generators, and at most one wave of each group
Harmonic = dict[Term, float]
Groups = tuple[tuple[int, ...], ...]


@cache
def _spectrum(sine: int, cosine: int) -> dict[int, complex]:
    """Return s^sine c^cosine as the coefficients of exp(i k q)."""
    coefficients: dict[int, complex] = {}
    for j in range(sine + 1):
        for k in range(cosine + 1):
            weight = comb(sine, j) * comb(cosine, k) * (-1) ** j * (-0.5j) ** sine * 0.5**cosine
            harmonic = sine + cosine - 2 * j - 2 * k
            coefficients[harmonic] = coefficients.get(harmonic, 0.0) + weight
    return coefficients


@cache
def _waves(powers: tuple[tuple[int, int, int], ...]) -> list[tuple[tuple[Wave, ...], float]]:
    """Return a product over (angle, power of sine, power of cosine) as a sum of waves; no wave is the constant."""
    product: dict[tuple[tuple[int, int], ...], complex] = {(): 1.0}
    for angle, sine, cosine in powers:
        spectrum = _spectrum(sine, cosine)
        product = {(*key, (angle, k)) if k else key: x * y for key, x in product.items() for k, y in spectrum.items()}
    waves_with_weights: list[tuple[tuple[Wave, ...], float]] = []
    for key, z in product.items():
        if not key:
            waves_with_weights.append(((), z.real))
        elif key[0][1] > 0:  # the term with opposite signs has the conjugate coefficient
            waves_with_weights += [(((op, key),), x) for op, x in (("cos", 2 * z.real), ("sin", -2 * z.imag))]
    return [(waves, x) for waves, x in waves_with_weights if x]


def product_to_sum(ring: Ring, groups: Groups, polynomial: Polynomial) -> Harmonic:
    """Return a polynomial with the angles of each group as waves.

    Parameters
    ----------
    ring
        Ring of the polynomial.
    groups
        Groups of angles.
    polynomial
        Polynomial to rewrite.
    """
    total: Harmonic = {}
    for monomial, x in polynomial.items():
        terms: list[tuple[tuple[Wave, ...], float]] = [((), x)]
        for group in groups:
            powers = []
            for angle in group:
                s, c = ring.angles[angle]
                sine, cosine = monomial >> EXPONENT_BITS * s & 255, monomial >> EXPONENT_BITS * c & 255
                monomial -= (sine << EXPONENT_BITS * s) + (cosine << EXPONENT_BITS * c)
                if sine or cosine:
                    powers.append((angle, sine, cosine))
            if powers:
                more = _waves(tuple(powers))
                terms = [((*waves, *wave), x * y) for waves, x in terms for wave, y in more]
        for waves, y in terms:
            key = (monomial, waves)
            old = total.get(key, 0.0)
            if abs(old + y) > ROUNDING_TOLERANCE * abs(old):
                total[key] = old + y
            else:
                total.pop(key, None)
    return drop_rounding(total)


def drop_rounding(terms: Harmonic, least: float = 1e-12) -> Harmonic:
    """Return `terms` without rounding errors, which are at most `least` times the largest coefficient."""
    largest = max(map(abs, terms.values()), default=0.0)
    return {key: x for key, x in terms.items() if abs(x) > least * largest}


def group_angles(ring: Ring, polynomials: Sequence[Polynomial]) -> Groups:
    """Return the groups of angles that make `polynomials` of `ring` shortest, found by greedy merging."""
    angles = [_angles(ring, p) for p in polynomials]
    lengths = [len(p) for p in polynomials]

    def saved(groups: Groups, new: set[int]) -> tuple[int, dict[int, int]]:
        """Terms that joining saves, and the new length of each polynomial that it touches."""
        touched = {i: len(product_to_sum(ring, groups, polynomials[i])) for i, a in enumerate(angles) if a & new}
        return sum(lengths[i] - n for i, n in touched.items()), touched

    def joined(groups: Groups) -> Iterator[tuple[Groups, set[int]]]:
        free = [(angle,) for angle in range(len(ring.angles)) if all(angle not in group for group in groups)]
        yield from (((*groups, one), set(one)) for one in free)
        for a, b in combinations((*groups, *free), 2):
            if any(met & set(a) and met & set(b) for met in angles):
                merged = tuple(sorted((*a, *b)))
                yield (*(group for group in groups if group not in (a, b)), merged), set(merged)

    best: Groups = ()
    while True:
        gain, touched, groups = max(((*saved(g, new), g) for g, new in joined(best)), default=(0, {}, ()), key=_gain)
        if gain <= 0:
            return best
        best = groups
        for i, n in touched.items():
            lengths[i] = n


def _gain(candidate: tuple[int, dict[int, int], Groups]) -> int:
    return candidate[0]


def _angles(ring: Ring, polynomial: Polynomial) -> set[int]:
    """Return the angles that a polynomial depends on."""
    union = 0
    for monomial in polynomial:
        union |= monomial
    return {
        i
        for i, (s, c) in enumerate(ring.angles)
        if union >> EXPONENT_BITS * s & 255 or union >> EXPONENT_BITS * c & 255
    }
