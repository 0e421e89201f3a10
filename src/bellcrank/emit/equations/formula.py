"""What printed equations are made of, in every language: sums of products of symbols and calls, and a sheet of them.

A symbol is a letter with an index, as in print: M with (1, 2), c with (2, 3), F with (boom, 1). Languages spell it.
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
    name: str
    index: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A name for programs: M_12, M_1_10, c_2_m3, F_boom_1."""
        tokens = [re.sub(r"\W", "_", t.replace("-", "m")) for t in self.index]
        return "_".join([self.name, *(tokens if any(len(t) > 1 for t in tokens) else ["".join(tokens)] * bool(tokens))])


@dataclass(frozen=True)
class Call:
    op: str  # of nodes/ops.py
    args: tuple[Sum, ...]


@dataclass(frozen=True)
class Product:
    number: float
    factors: tuple[tuple[Factor, int], ...] = ()  # with exponents


@dataclass(frozen=True)
class Sum:
    terms: tuple[Product, ...] = ()


PI = Symbol("pi")


def plain(factor: Factor) -> Sum:
    return Sum((Product(1.0, ((factor, 1),)),))


def scaled(x: Sum, number: float) -> Sum:
    return Sum(tuple(Product(number * t.number, t.factors) for t in x.terms))


def total(a: Sum, b: Sum) -> Sum:
    """With like terms together."""
    found: dict[tuple[tuple[Factor, int], ...], float] = {}
    for term in a.terms + b.terms:
        found[term.factors] = found.get(term.factors, 0.0) + term.number
    return Sum(tuple(Product(x, factors) for factors, x in found.items() if x))


def product(a: Sum, b: Sum) -> Sum:
    """Without multiplying out: a sum of several terms becomes a factor in brackets."""
    number, factors = 1.0, dict[Factor, int]()
    for x in (a, b):
        if len(x.terms) == 1:
            number *= x.terms[0].number
            for factor, exponent in x.terms[0].factors:
                factors[factor] = factors.get(factor, 0) + exponent
        else:
            factors[x] = factors.get(x, 0) + 1
    return Sum((Product(number, tuple(factors.items())),) if a.terms and b.terms else ())


def symbols(x: Factor) -> Iterator[Symbol]:
    """Every symbol in it, as often as it occurs."""
    if isinstance(x, Symbol):
        yield x
    elif isinstance(x, Call):
        for a in x.args:
            yield from symbols(a)
    else:
        for term in x.terms:
            for factor, _ in term.factors:
                yield from symbols(factor)


@dataclass(frozen=True)
class Block:
    """One output, entry by entry. A symmetric matrix has entries on and above its diagonal only."""

    name: str
    shape: Index
    entries: Mapping[Index, Sum]
    symmetric: bool = False
    what: str = ""
    inputs: tuple[str, ...] = ()
    note: str = ""  # why it is written in steps, where it is

    @property
    def headline(self) -> str:
        return f"{self.what[:1].upper()}{self.what[1:]}{'; ' * bool(self.note)}{self.note}."

    def symbol(self, index: Index) -> Symbol:
        return Symbol(identifier(self.name), tuple(str(i + 1) for i in index))

    @property
    def zero(self) -> bool:
        return not any(x.terms for x in self.entries.values())

    def at(self, index: Index) -> Sum:
        """Of the whole matrix, the lower triangle too."""
        return self.entries[index if index in self.entries else index[::-1]]


@dataclass(frozen=True)
class Sheet:
    """Equations on one page. `definitions` are in an order in which they can be read."""

    name: str
    title: str
    inputs: Mapping[str, tuple[int, ...]]
    definitions: Mapping[Symbol, Sum]
    blocks: tuple[Block, ...]
    relation: str = ""  # of the blocks: "M a + h = tau"
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)  # what the elements of "q, v" belong to
    remarks: tuple[str, ...] = ()

    def element(self, name: str, flat: int) -> Symbol:
        return element(name, self.inputs[name], flat)

    def needed(self, block: Block, known: Iterable[Symbol] = ()) -> list[Symbol]:
        """Definitions that the block uses, directly or through others, and that are not known yet."""
        wanted = {s for x in block.entries.values() for s in symbols(x)}
        for s in reversed(list(self.definitions)):
            if s in wanted:
                wanted |= set(symbols(self.definitions[s]))
        seen = set(known)
        return [s for s in self.definitions if s in wanted and s not in seen]

    def related(self, nonzero: bool = False) -> str:
        """The relation with arguments, "M(q) a + h(q, v) = tau", and on request without what is always zero."""
        gone = {b.name for b in self.blocks if b.zero and nonzero}
        calls = {b.name: f"{b.name}({', '.join(b.inputs)})" for b in self.blocks}
        sides = []
        for side in self.relation.split(" = "):
            terms = [t.split() for t in side.split(" + ")]
            sides.append(" + ".join(" ".join(calls.get(w, w) for w in t) for t in terms if t[0] not in gone))
        return " = ".join(side or "0" for side in sides)


def element(name: str, shape: tuple[int, ...], flat: int) -> Symbol:
    """The symbol of one element of an array, counted from 1 as in print."""
    index = []
    for size in reversed(shape):
        flat, i = divmod(flat, size)
        index.append(str(i + 1))
    return Symbol(identifier(name), tuple(reversed(index)))


class Names:
    """Gives every symbol a spelling of its own."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self.count = Counter[Symbol]()

    def fresh(self, symbol: Symbol, numbered: bool = False) -> Symbol:
        """The symbol if nobody has it and it shall have no number, or with its next number."""
        symbol = found = Symbol(identifier(symbol.name), symbol.index)
        while numbered or str(found) in self.taken:
            self.count[symbol] += 1
            found, numbered = Symbol(symbol.name, (*symbol.index, str(self.count[symbol]))), False
        self.taken.add(str(found))
        return found
