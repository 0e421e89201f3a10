"""Graph to trigonometric polynomials: every scalar expanded in the inputs, and in sines and cosines.

A monomial is one integer with eight bits of exponent for each generator, so that multiplication is addition. Generators
are the inputs, the sine and the cosine of each angle (any argument of a sine or cosine), and opaque calls (`minimum`).
sin^2 = 1 - cos^2 is applied as products are formed: equal trigonometric polynomials have equal terms.

A value is None where it is not a polynomial (division, square root), or would be too long to be useful.

Products of sines and cosines are rewritten as sums, where this makes a set of polynomials shorter:

    c_2 c_3 - s_2 s_3 = cos(q_2 + q_3)        c_2^2 = (1 + cos 2 q_2) / 2

Angles are put in groups. Inside a group products become sums of angles, across groups they stay products: angles of
parallel axes belong in one group, angles of crossed axes in different ones. The groups are found automatically, because
merging continues only as long as it saves terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb, cos, sin

from bellcrank.graph import Graph, Node

Polynomial = dict[int, float]  # monomial to coefficient
Frozen = frozenset[tuple[int, float]]

EXPONENT_BITS = 8
# Limits: products of terms for one product, terms of one value; more is unreadable.
MAX_PRODUCT_WORK, MAX_TERMS = 20_000, 600
ROUNDING_TOLERANCE = 1e-13  # relative size up to which a sum is rounding error, and set to zero
OPAQUE = ("minimum", "maximum", "abs", "floor", "tanh")
POLYNOMIAL = ("input", "add", "sub", "mul", "neg", "sin", "cos", *OPAQUE)  # division by a number is folded earlier


@dataclass(frozen=True)
class Generator:
    """Variable of the polynomial ring."""

    op: str  # "input", "sin", "cos", or one of OPAQUE
    name: str = ""  # name of an input
    flat: int = 0  # index of the input's element
    args: tuple[Frozen, ...] = ()  # arguments of a call


def add_term(total: Polynomial, monomial: int, x: float) -> None:
    """Add `x` times `monomial` to `total` in place; terms that cancel are removed."""
    old = total.get(monomial, 0.0)
    if abs(old + x) > ROUNDING_TOLERANCE * abs(old):
        total[monomial] = old + x
    else:
        total.pop(monomial, None)


class Ring:
    """Generators of one graph, and arithmetic over them."""

    def __init__(self) -> None:
        self.generators: list[Generator] = []
        self.angles: list[tuple[int, int]] = []  # generators of sine and cosine of each angle
        self._index: dict[Generator, int] = {}
        self._cosine: dict[int, int] = {}  # generator of a sine to that of its cosine
        self._squares = self._overflow = 0  # bit masks: squared sines, exponents above 127

    def generator(self, g: Generator) -> int:
        """Return the index of the generator `g`, which is added if new."""
        if g not in self._index:
            self._index[g] = len(self.generators)
            self._overflow |= 128 << EXPONENT_BITS * len(self.generators)
            self.generators.append(g)
        return self._index[g]

    def unit(self, index: int) -> Polynomial:
        """Return the polynomial that consists of the generator `index`."""
        return {1 << EXPONENT_BITS * index: 1.0}

    def sine_and_cosine(self, argument: Polynomial) -> tuple[int, int]:
        """Return the generators of the sine and cosine of `argument`."""
        frozen = (frozenset(argument.items()),)
        s, c = (self.generator(Generator(op, args=frozen)) for op in ("sin", "cos"))
        if s not in self._cosine:
            self.angles.append((s, c))
            self._cosine[s] = c
            self._squares |= 2 << EXPONENT_BITS * s
        return s, c

    def plus(self, a: Polynomial, b: Polynomial, sign: float = 1.0) -> Polynomial:
        """Return `a` + `sign` * `b`."""
        total = dict(a)
        for m, x in b.items():
            add_term(total, m, sign * x)
        return total

    def times(self, a: Polynomial, b: Polynomial) -> Polynomial | None:
        """Return `a` * `b`, or None if it would be too long."""
        if len(a) * len(b) > MAX_PRODUCT_WORK:
            return None
        total: Polynomial = {}
        for m, x in a.items():
            for n, y in b.items():
                if (m + n) & self._overflow:
                    return None
                self._add_reduced(total, m + n, x * y)
        return total

    def _add_reduced(self, total: Polynomial, monomial: int, x: float) -> None:
        """Add a term to total, with sin^2 replaced by 1 - cos^2."""
        squares = monomial & self._squares
        if not squares:
            return add_term(total, monomial, x)
        s = (squares.bit_length() - 1) // EXPONENT_BITS
        reduced = monomial - (2 << EXPONENT_BITS * s)
        self._add_reduced(total, reduced, x)
        self._add_reduced(total, reduced + (2 << EXPONENT_BITS * self._cosine[s]), -x)

    def powers(self, monomial: int) -> list[tuple[int, int]]:
        """Return (generator, exponent) of `monomial`, in order."""
        exponents = (
            (i, monomial >> EXPONENT_BITS * i & 255) for i in range(-(-monomial.bit_length() // EXPONENT_BITS))
        )
        return [(i, exponent) for i, exponent in exponents if exponent]

    def node_polynomials(self, graph: Graph) -> dict[int, Polynomial | None]:
        """Return the polynomial of every node of `graph`, by serial number."""
        values: dict[int, Polynomial | None] = {}
        for node in graph.nodes:
            if node.op == "input":
                values[node.serial] = self.unit(self.generator(Generator("input", *node.args)))
                continue
            args = [values[a.serial] if isinstance(a, Node) else constant(a) for a in node.args]
            known = [a for a in args if a is not None]
            value = self._apply(node.op, known) if len(known) == len(args) else None
            values[node.serial] = value if value is not None and len(value) <= MAX_TERMS else None
        return values

    def _apply(self, op: str, args: Sequence[Polynomial]) -> Polynomial | None:
        match op:
            case "add" | "sub":
                return self.plus(args[0], args[1], 1.0 if op == "add" else -1.0)
            case "neg":
                return {m: -x for m, x in args[0].items()}
            case "mul":
                return self.times(args[0], args[1])
            case "div" if list(args[1]) == [0]:
                return {m: x / args[1][0] for m, x in args[0].items()}
            case "sin" | "cos" if not args[0].keys() - {0}:
                return constant((sin if op == "sin" else cos)(args[0].get(0, 0.0)))
            case "sin" | "cos":
                return self.unit(self.sine_and_cosine(args[0])[op == "cos"])
        if op not in OPAQUE:
            return None
        return self.unit(self.generator(Generator(op, args=tuple(frozenset(a.items()) for a in args))))


def constant(x: float) -> Polynomial:
    """Return the constant polynomial `x`."""
    return {0: x} if x else {}


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
