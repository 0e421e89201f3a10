"""Language-independent formulas: sums of products of symbols and calls, and a sheet of them.

A symbol is a letter with an index, as in print: M with (1, 2), c with (2, 3), F with (boom, 1). Subclasses of Language
define the spelling.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, Union

from bellcrank.quoting import identifier

Factor: TypeAlias = Union["Symbol", "Call", "Sum"]
Index = tuple[int, ...]


@dataclass(frozen=True)
class Symbol:
    """Letter with an index."""

    name: str
    index: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A name for programs: M_12, M_1_10, c_2_m3, F_boom_1."""
        tokens = [re.sub(r"\W", "_", t.replace("-", "m")) for t in self.index]
        return "_".join([self.name, *(tokens if any(len(t) > 1 for t in tokens) else ["".join(tokens)] * bool(tokens))])


@dataclass(frozen=True)
class Call:
    """Function or operator applied to arguments."""

    op: str  # name of an operation of nodes/ops.py
    args: tuple[Sum, ...]


@dataclass(frozen=True)
class Product:
    """Coefficient and factors with exponents."""

    number: float
    factors: tuple[tuple[Factor, int], ...] = ()  # with exponents


@dataclass(frozen=True)
class Sum:
    """Sum of products."""

    terms: tuple[Product, ...] = ()


PI = Symbol("pi")


def sum_of_factor(factor: Factor) -> Sum:
    """Return the sum that consists of `factor` alone."""
    return Sum((Product(1.0, ((factor, 1),)),))


def scale(x: Sum, number: float) -> Sum:
    """Return `x` times `number`."""
    return Sum(tuple(Product(number * t.number, t.factors) for t in x.terms))


def add_sums(a: Sum, b: Sum) -> Sum:
    """Return `a` + `b`, with like terms combined."""
    coefficients: dict[tuple[tuple[Factor, int], ...], float] = {}
    for term in a.terms + b.terms:
        coefficients[term.factors] = coefficients.get(term.factors, 0.0) + term.number
    return Sum(tuple(Product(x, factors) for factors, x in coefficients.items() if x))


def multiply(a: Sum, b: Sum) -> Sum:
    """Return `a` times `b` without expansion: a sum of several terms becomes a factor in brackets."""
    number, factors = 1.0, dict[Factor, int]()
    for x in (a, b):
        if len(x.terms) == 1:
            number *= x.terms[0].number
            for factor, exponent in x.terms[0].factors:
                factors[factor] = factors.get(factor, 0) + exponent
        else:
            factors[x] = factors.get(x, 0) + 1
    return Sum((Product(number, tuple(factors.items())),) if a.terms and b.terms else ())


def iter_symbols(x: Factor) -> Iterator[Symbol]:
    """Yield every symbol in `x`, as often as it occurs."""
    if isinstance(x, Symbol):
        yield x
    elif isinstance(x, Call):
        for a in x.args:
            yield from iter_symbols(a)
    else:
        for term in x.terms:
            for factor, _ in term.factors:
                yield from iter_symbols(factor)


@dataclass(frozen=True)
class Block:
    """One output, entry by entry; a symmetric matrix has entries on and above its diagonal only."""

    name: str
    shape: Index
    entries: Mapping[Index, Sum]
    symmetric: bool = False
    description: str = ""
    inputs: tuple[str, ...] = ()
    note: str = ""  # reason if it is written in steps

    @property
    def headline(self) -> str:
        """Description of the output as a sentence."""
        return f"{self.description[:1].upper()}{self.description[1:]}{'; ' * bool(self.note)}{self.note}."

    def symbol(self, index: Index) -> Symbol:
        """Return the symbol of the entry at `index`."""
        return Symbol(identifier(self.name), tuple(str(i + 1) for i in index))

    @property
    def is_zero(self) -> bool:
        """Return whether all entries are zero."""
        return not any(x.terms for x in self.entries.values())

    def entry(self, index: Index) -> Sum:
        """Return the entry at `index` of the whole matrix, including the lower triangle."""
        return self.entries[index if index in self.entries else index[::-1]]


@dataclass(frozen=True)
class Sheet:
    """Equations on one page; each definition uses only earlier ones."""

    name: str
    title: str
    inputs: Mapping[str, tuple[int, ...]]
    definitions: Mapping[Symbol, Sum]
    blocks: tuple[Block, ...]
    relation: str = ""  # relation between the blocks: "M a + h = tau"
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)  # names of the elements of "q, v"
    remarks: tuple[str, ...] = ()
    elements: ElementSymbols | None = None  # symbols of the inputs' elements, if some have names of their own

    def element(self, name: str, flat: int) -> Symbol:
        """Return the symbol of an input's element.

        Parameters
        ----------
        name
            Name of the input.
        flat
            Index in the flattened array.
        """
        return (self.elements or ElementSymbols(self.inputs))(name, flat)

    def needed_definitions(self, block: Block, known: Iterable[Symbol] = ()) -> list[Symbol]:
        """Return the definitions that `block` uses, directly or indirectly, except `known` ones."""
        wanted = {s for x in block.entries.values() for s in iter_symbols(x)}
        for s in reversed(list(self.definitions)):
            if s in wanted:
                wanted |= set(iter_symbols(self.definitions[s]))
        seen = set(known)
        return [s for s in self.definitions if s in wanted and s not in seen]

    def relation_with_arguments(self, nonzero: bool = False) -> str:
        """Return the relation with arguments, "M(q) a + h(q, v) = tau".

        With `nonzero`, blocks that are always zero are left out.
        """
        zero_blocks = {b.name for b in self.blocks if b.is_zero and nonzero}
        calls = {b.name: f"{b.name}({', '.join(b.inputs)})" for b in self.blocks}
        sides = []
        for side in self.relation.split(" = "):
            terms = [t.split() for t in side.split(" + ")]
            sides.append(" + ".join(" ".join(calls.get(w, w) for w in t) for t in terms if t[0] not in zero_blocks))
        return " = ".join(side or "0" for side in sides)


def element_symbol(name: str, shape: tuple[int, ...], flat: int) -> Symbol:
    """Return the symbol of one element of an array, counted from 1 as in print.

    Parameters
    ----------
    name
        Name of the array.
    shape
        Shape of the array.
    flat
        Index in the flattened array.
    """
    index = []
    for size in reversed(shape):
        flat, i = divmod(flat, size)
        index.append(str(i + 1))
    return Symbol(identifier(name), tuple(reversed(index)))


@dataclass(frozen=True)
class ElementSymbols:
    """Symbols of the elements of inputs: q_2 by default, or given ones such as m_1 for a free parameter."""

    inputs: Mapping[str, tuple[int, ...]]  # shapes
    given: Mapping[str, Sequence[Symbol]] = field(default_factory=dict)

    def __call__(self, name: str, flat: int) -> Symbol:
        """Return the symbol of the element `flat` of the flattened input `name`."""
        return self.given[name][flat] if name in self.given else element_symbol(name, self.inputs[name], flat)


class SymbolNames:
    """Allocator of unique spellings for symbols."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.used_names = set(taken)
        self.count = Counter[Symbol]()

    def fresh(self, symbol: Symbol, numbered: bool = False) -> Symbol:
        """Return `symbol` if it is free, or with its next number; with `numbered` always the latter."""
        symbol = candidate = Symbol(identifier(symbol.name), symbol.index)
        while numbered or str(candidate) in self.used_names:
            self.count[symbol] += 1
            candidate, numbered = Symbol(symbol.name, (*symbol.index, str(self.count[symbol]))), False
        self.used_names.add(str(candidate))
        return candidate
