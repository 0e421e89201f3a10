"""Graph to polynomials: every scalar of a graph written out in its inputs and in sines and cosines.

A monomial is one integer with eight bits of exponent for each generator, so that multiplying is adding. Generators are
the inputs, the sine and the cosine of each angle (anything a sine was taken of), and calls that no algebra sees through
(`minimum`). sin^2 = 1 - cos^2 is applied as products are made: equal trigonometric polynomials have equal terms.

A value is None where it is no polynomial (it divides, it takes a root), or would be too long to be of use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, sin

from bellcrank.graph import Graph, Node

Polynomial = dict[int, float]  # monomial to coefficient
Frozen = frozenset[tuple[int, float]]

BITS = 8
WORK, TERMS = 20_000, 600  # products of terms for one product, terms of one value: more is no longer read
ROUNDING = 1e-13  # a sum this much smaller than its parts is rounding, and zero
OPAQUE = ("minimum", "maximum", "abs", "floor", "tanh")
POLYNOMIAL = ("input", "add", "sub", "mul", "neg", "sin", "cos", *OPAQUE)  # a division by a number is folded before


@dataclass(frozen=True)
class Generator:
    op: str  # "input", "sin", "cos", or one of OPAQUE
    name: str = ""  # of an input
    flat: int = 0  # which of its elements
    args: tuple[Frozen, ...] = ()  # of a call


def add(total: Polynomial, monomial: int, x: float) -> None:
    """total += x monomial; what cancels is gone."""
    old = total.get(monomial, 0.0)
    if abs(old + x) > ROUNDING * abs(old):
        total[monomial] = old + x
    else:
        total.pop(monomial, None)


class Ring:
    """The generators of one graph, and arithmetic over them."""

    def __init__(self) -> None:
        self.generators: list[Generator] = []
        self.angles: list[tuple[int, int]] = []  # generators of sine and cosine of each
        self._index: dict[Generator, int] = {}
        self._cosine: dict[int, int] = {}  # generator of a sine to that of its cosine
        self._squares = self._overflow = 0  # bits that are set where a sine is squared, an exponent above 127

    def generator(self, g: Generator) -> int:
        if g not in self._index:
            self._index[g] = len(self.generators)
            self._overflow |= 128 << BITS * len(self.generators)
            self.generators.append(g)
        return self._index[g]

    def unit(self, index: int) -> Polynomial:
        return {1 << BITS * index: 1.0}

    def sine_and_cosine(self, argument: Polynomial) -> tuple[int, int]:
        frozen = (frozenset(argument.items()),)
        s, c = (self.generator(Generator(op, args=frozen)) for op in ("sin", "cos"))
        if s not in self._cosine:
            self.angles.append((s, c))
            self._cosine[s] = c
            self._squares |= 2 << BITS * s
        return s, c

    def plus(self, a: Polynomial, b: Polynomial, sign: float = 1.0) -> Polynomial:
        total = dict(a)
        for m, x in b.items():
            add(total, m, sign * x)
        return total

    def times(self, a: Polynomial, b: Polynomial) -> Polynomial | None:
        if len(a) * len(b) > WORK:
            return None
        total: Polynomial = {}
        for m, x in a.items():
            for n, y in b.items():
                if (m + n) & self._overflow:
                    return None
                self._reduced(total, m + n, x * y)
        return total

    def _reduced(self, total: Polynomial, monomial: int, x: float) -> None:
        """sin^2 = 1 - cos^2."""
        squares = monomial & self._squares
        if not squares:
            return add(total, monomial, x)
        s = (squares.bit_length() - 1) // BITS
        rest = monomial - (2 << BITS * s)
        self._reduced(total, rest, x)
        self._reduced(total, rest + (2 << BITS * self._cosine[s]), -x)

    def powers(self, monomial: int) -> list[tuple[int, int]]:
        """(generator, exponent) of a monomial, in order."""
        found = ((i, monomial >> BITS * i & 255) for i in range(-(-monomial.bit_length() // BITS)))
        return [(i, exponent) for i, exponent in found if exponent]

    def walk(self, graph: Graph) -> dict[int, Polynomial | None]:
        """Every node's polynomial by its serial."""
        values: dict[int, Polynomial | None] = {}
        for node in graph.nodes:
            if node.op == "input":
                values[node.serial] = self.unit(self.generator(Generator("input", *node.args)))
                continue
            args = [values[a.serial] if isinstance(a, Node) else constant(a) for a in node.args]
            known = [a for a in args if a is not None]
            value = self._applied(node.op, known) if len(known) == len(args) else None
            values[node.serial] = value if value is not None and len(value) <= TERMS else None
        return values

    def _applied(self, op: str, args: Sequence[Polynomial]) -> Polynomial | None:
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
    return {0: x} if x else {}
