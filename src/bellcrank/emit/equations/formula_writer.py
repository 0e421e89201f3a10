"""Polynomials to formulas: names of sines and cosines, order of terms, coefficients of velocity products.

    h_1 = -b_112 (v_1 v_2 + 1/2 v_2^2) - ...        b_112 = 3 s_2 + s_23

Products of the collected inputs whose coefficients are equal up to a factor share one bracket. A coefficient of several
terms that occurs again is named after its first occurrence: b_112 belongs to v_1 v_2 in the first entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import pi

from bellcrank.emit.equations.formula import (
    PI,
    Call,
    ElementSymbols,
    Factor,
    Index,
    Product,
    Sum,
    Symbol,
    SymbolNames,
    iter_symbols,
    sum_of_factor,
)
from bellcrank.emit.equations.polynomial import (
    EXPONENT_BITS,
    Frozen,
    Groups,
    Harmonic,
    Polynomial,
    Ring,
    Term,
    Wave,
    product_to_sum,
)

CoefficientShape = tuple[tuple[Term, float], ...]  # a coefficient, normalised to its first term and rounded


class FormulaWriter:
    """Converter of polynomials to formulas, with shared names."""

    def __init__(self, ring: Ring, groups: Groups, elements: ElementSymbols, names: SymbolNames) -> None:
        self.ring, self.groups, self.elements, self.names = ring, groups, elements, names
        self.angles: dict[Symbol, Sum] = {}  # angles that are not a single coordinate
        self.waves: dict[Wave, Symbol] = {}
        self.coefficients: dict[Symbol, Sum] = {}
        self.remarks: tuple[str, ...] = ()
        self._factors: dict[int, Factor] = {}
        self._angle_of = {g: i for i, pair in enumerate(ring.angles) for g in pair}
        self._angles: dict[int, tuple[str, Factor]] = {}  # token of each angle in an index, and its factor
        self._tokens: set[str] = set()
        self._ratios: dict[CoefficientShape, Harmonic] = {}  # unrounded coefficients of a shape

    # -- sums

    def sum(self, polynomial: Polynomial) -> Sum:
        """Return the formula of `polynomial`."""
        return self.sum_of_terms(product_to_sum(self.ring, self.groups, polynomial))

    def sum_of_terms(self, terms: Harmonic) -> Sum:
        """Return the formula of `terms`."""
        return Sum(tuple(Product(terms[t], self.factors(t)) for t in sorted(terms, key=self._order)))

    def factors(self, term: Term) -> tuple[tuple[Factor, int], ...]:
        """Return the factors of `term` in order."""
        powers = [(self._rank(g), (self.factor(g), n)) for g, n in self.ring.powers(term[0])]
        waves = [(self._wave_rank(wave), (self.wave(*wave), 1)) for wave in term[1]]
        return tuple(factor for _, factor in sorted((*powers, *waves), key=lambda pair: pair[0]))

    def _rank(self, g: int) -> tuple[int, ...]:
        """Return the position of a generator in a product: inputs, then sines and cosines by angle, then calls."""
        op = self.ring.generators[g].op
        if op in ("sin", "cos"):
            return self._wave_rank((op, ((self._angle_of[g], 1),)))
        return (0 if op == "input" else 2, g)

    def _wave_rank(self, wave: Wave) -> tuple[int, ...]:
        return (1, *(x for pair in wave[1] for x in pair), wave[0] == "sin")

    def _order(self, term: Term) -> tuple[object, ...]:
        """Sort constants first, few factors before many, q_1 before q_2, cosine before sine."""
        powers = self.ring.powers(term[0])
        degree = sum(n for _, n in powers) + sum(abs(k) for _, ks in term[1] for _, k in ks)
        ranks = sorted([(self._rank(g), -n) for g, n in powers] + [(self._wave_rank(w), -1) for w in term[1]])
        return (len(powers) + len(term[1]), degree, ranks)

    def factor(self, g: int) -> Factor:
        """Return the factor of generator `g`."""
        if g not in self._factors:
            generator = self.ring.generators[g]
            if generator.op == "input":
                self._factors[g] = self.elements(generator.name, generator.flat)
            elif generator.op in ("sin", "cos"):
                self._factors[g] = self.wave(generator.op, ((self._angle_of[g], 1),))
            else:
                self._factors[g] = Call(generator.op, tuple(self.sum(dict(a)) for a in generator.args))
        return self._factors[g]

    # -- angles

    def wave(self, op: str, multiples: tuple[tuple[int, int], ...]) -> Symbol:
        """Return the symbol of a sine or cosine, c_23 for cos(q_2 + q_3).

        Parameters
        ----------
        op
            "sin" or "cos".
        multiples
            Angles with their multiples.
        """
        if (op, multiples) not in self.waves:
            index = []
            for angle, k in multiples:
                index += [f"{'-' if k < 0 else ''}{self.token(angle)}"] * abs(k)
            self.waves[op, multiples] = self.names.fresh(Symbol(op[0], tuple(index)))
        return self.waves[op, multiples]

    def token(self, angle: int) -> str:
        """Return the index of an `angle`: 2 for q_2, and for theta_2 = q_2 + 0.3, which replaces it."""
        if angle not in self._angles:
            (argument,) = self.ring.generators[self.ring.angles[angle][0]].args
            first = next((g for m, _ in sorted(argument) for g, _ in self.ring.powers(m)), -1)
            symbol = self.factor(first) if first >= 0 else None
            token = "_".join(symbol.index) if isinstance(symbol, Symbol) else "0"
            while token in self._tokens:  # another angle of the same coordinate
                token = f"{token[:-1]}{chr(ord(token[-1]) + 1)}" if token[-1].isalpha() else f"{token}b"
            self._tokens.add(token)
            if self._is_coordinate(argument):
                self._angles[angle] = token, self.factor(first)
            else:
                theta = self.names.fresh(Symbol("theta", (token,)))
                self._angles[angle] = token, theta
                self.angles[theta] = self._argument(argument)
        return self._angles[angle][0]

    def _is_coordinate(self, argument: Frozen) -> bool:
        """Return whether an angle is just q_2, without coefficient or offset.

        Only elements of the first input are named by their number alone.
        """
        ((m, x), *more) = argument
        powers = self.ring.powers(m)
        one = not more and x == 1.0 and len(powers) == 1 and powers[0][1] == 1
        return one and self.ring.generators[powers[0][0]].name == next(iter(self.elements.inputs))

    def _argument(self, argument: Frozen) -> Sum:
        """Return the formula of an angle, with pi/4 for 0.785..., numbers last."""
        terms = []
        for term in reversed(self.sum(dict(argument)).terms):
            turns = Fraction(term.number / pi).limit_denominator(24)
            if not term.factors and turns and abs(turns * pi - term.number) < 1e-12:
                top = Sum((Product(float(turns.numerator), ((PI, 1),)),))
                term = Product(1.0, ((Call("div", (top, Sum((Product(float(turns.denominator)),)))), 1),))
            terms.append(term)
        return Sum(tuple(terms))

    def definitions(self) -> dict[Symbol, Sum]:
        """Return definitions in order: angles, then c_2, s_2, c_3, s_3, c_23, ..., then coefficients.

        Every definition comes after those that it uses.
        """
        unordered = dict(self.angles)
        for op, multiples in sorted(self.waves, key=lambda w: (sum(abs(k) for _, k in w[1]), w[1], w[0])):
            unordered[self.waves[op, multiples]] = sum_of_factor(Call(op, (self._angle(multiples),)))
        unordered |= self.coefficients
        placed: dict[Symbol, Sum] = {}

        def place(symbol: Symbol) -> None:
            if symbol in unordered and symbol not in placed:
                for other in iter_symbols(unordered[symbol]):
                    place(other)
                placed[symbol] = unordered[symbol]

        for symbol in unordered:
            place(symbol)
        return placed

    def _angle(self, multiples: tuple[tuple[int, int], ...]) -> Sum:
        return Sum(tuple(Product(float(k), ((self._angles[angle][1], 1),)) for angle, k in multiples))

    # -- coefficients

    def collect_entries(
        self, key: str, entries: Mapping[Index, Harmonic], collect: Collection[str]
    ) -> dict[Index, Sum]:
        """Return every entry of an output as coefficients times products of certain inputs.

        Parameters
        ----------
        key
            Name of the output.
        entries
            Terms of each entry.
        collect
            Names of the inputs to collect.
        """
        split = {index: self._split(terms, collect) for index, terms in entries.items()}
        uses = Counter(shape for groups in split.values() for shape in groups)
        named: dict[CoefficientShape, tuple[Symbol, float]] = {}
        sums = {}
        for index, groups in split.items():
            terms: list[Product] = []
            for shape, products in groups.items():
                if not products[0][0]:  # terms without collected inputs stay as they are
                    terms += self._scaled_coefficient(shape, products[0][1]).terms
                    products = products[1:]
                if not products:
                    continue
                scale = products[0][1]
                if shape[0][0] == (0, ()) and len(shape) == 1:  # a plain number
                    terms += [Product(x, self.factors((m, ()))) for m, x in products]
                    continue
                if len(shape) == 1:
                    head = self.factors(shape[0][0])
                elif uses[shape] == 1:
                    head, scale = ((self._scaled_coefficient(shape, abs(scale)), 1),), 1.0 if scale > 0 else -1.0
                else:
                    if shape not in named:
                        named[shape] = self._name_coefficient(shape, abs(scale), key, index, products[0][0]), abs(scale)
                    head, scale = ((named[shape][0], 1),), scale / named[shape][1]
                terms.append(self._coefficient_product(head, scale, products))
            sums[index] = Sum(tuple(terms))
        return sums

    def _split(self, terms: Harmonic, collect: Collection[str]) -> dict[CoefficientShape, list[tuple[int, float]]]:
        """Return, by coefficient, the (monomial, number) that it multiplies."""
        terms_by_monomial: dict[int, Harmonic] = {}
        for (monomial, waves), x in terms.items():
            collected_monomial = sum(
                n << EXPONENT_BITS * g for g, n in self.ring.powers(monomial) if self.ring.generators[g].name in collect
            )
            terms_by_monomial.setdefault(collected_monomial, {})[monomial - collected_monomial, waves] = x
        products_by_shape: dict[CoefficientShape, list[tuple[int, float]]] = {}
        for collected_monomial in sorted(
            terms_by_monomial, key=lambda m: [g for g, n in self.ring.powers(m) for _ in range(n)]
        ):
            order = sorted(terms_by_monomial[collected_monomial], key=self._order)
            first = terms_by_monomial[collected_monomial][order[0]]
            shape = tuple((t, float(f"{terms_by_monomial[collected_monomial][t] / first:.11g}")) for t in order)
            self._ratios.setdefault(shape, {t: terms_by_monomial[collected_monomial][t] / first for t in order})
            products_by_shape.setdefault(shape, []).append((collected_monomial, first))
        return products_by_shape

    def _scaled_coefficient(self, shape: CoefficientShape, scale: float) -> Sum:
        return self.sum_of_terms({term: x * scale for term, x in self._ratios[shape].items()})

    def _name_coefficient(self, shape: CoefficientShape, scale: float, key: str, index: Index, monomial: int) -> Symbol:
        powers = ((self.ring.generators[g].flat, n) for g, n in self.ring.powers(monomial))
        tokens = [str(i + 1) for i in index] + [str(flat + 1) for flat, n in powers for _ in range(n)]
        symbol = self.names.fresh(Symbol("b", tuple(tokens)))
        self.coefficients[symbol] = self._scaled_coefficient(shape, scale)
        if not self.remarks:
            factors_text = " ".join([str(f) for f, n in self.factors((monomial, ())) for _ in range(n)])
            component = Symbol(key, tuple(str(i + 1) for i in index))
            self.remarks = (
                f"{symbol}, for one, is (but for its sign) the coefficient of {factors_text} in {component}.",
            )
        return symbol

    def _coefficient_product(
        self, head: tuple[tuple[Factor, int], ...], scale: float, products: Sequence[tuple[int, float]]
    ) -> Product:
        """Return a coefficient times one product, or several in a bracket."""
        first = products[0][1]
        inside = [Product(x / first, self.factors((m, ()))) for m, x in products]
        if len(inside) == 1:
            return Product(scale, (*head, *inside[0].factors))
        return Product(scale, (*head, (Sum(tuple(inside)), 1)))
