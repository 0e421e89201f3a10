"""Parser of units into FMI's form: powers of eight base units, a factor and an offset.

    "N m"  "rad/s^2"  "kg/m3"  "N m s / (rad A)"  "mm"  "psi"  "in^3/rad"

Adjacent words are multiplied. A stroke divides by everything that follows, up to the next stroke or the end of the
brackets. An exponent follows its word, with or without a sign for it; it is an integer, because the standard has no
others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# Powers of kg, m, s, A, K, mol, cd and rad, in the standard's order.
BASES = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
FORCE, PRESSURE, ENERGY = {"kg": 1, "m": 1, "s": -2}, {"kg": 1, "m": -1, "s": -2}, {"kg": 1, "m": 2, "s": -2}
POUND, INCH, GRAVITY = 0.45359237, 0.0254, 9.80665  # kg, m, m/s^2: exact by definition


@dataclass(frozen=True)
class Unit:
    """A unit; a number x of it is factor * x + offset in base units."""

    factor: float = 1.0
    powers: dict[str, int] = field(default_factory=dict)
    offset: float = 0.0


# Units that take prefixes.
SI = {
    **{name: Unit(1.0, {name: 1}) for name in BASES if name != "kg"},
    "g": Unit(1e-3, {"kg": 1}), "N": Unit(1.0, FORCE), "Pa": Unit(1.0, PRESSURE), "J": Unit(1.0, ENERGY),
    "W": Unit(1.0, {**ENERGY, "s": -3}), "V": Unit(1.0, {**ENERGY, "s": -3, "A": -1}), "Hz": Unit(1.0, {"s": -1}),
    "C": Unit(1.0, {"A": 1, "s": 1}), "ohm": Unit(1.0, {**ENERGY, "s": -3, "A": -2}),
    "H": Unit(1.0, {**ENERGY, "A": -2}), "F": Unit(1.0, {"kg": -1, "m": -2, "s": 4, "A": 2}),
    "T": Unit(1.0, {"kg": 1, "s": -2, "A": -1}), "Wb": Unit(1.0, {**ENERGY, "A": -1}),
    "bar": Unit(1e5, PRESSURE), "L": Unit(1e-3, {"m": 3}), "l": Unit(1e-3, {"m": 3}),
}  # fmt: skip
OTHERS = {
    "1": Unit(), "%": Unit(0.01), "deg": Unit(math.pi / 180.0, {"rad": 1}), "rev": Unit(2.0 * math.pi, {"rad": 1}),
    "rpm": Unit(math.pi / 30.0, {"rad": 1, "s": -1}), "min": Unit(60.0, {"s": 1}), "h": Unit(3600.0, {"s": 1}),
    "t": Unit(1e3, {"kg": 1}), "degC": Unit(1.0, {"K": 1}, 273.15), "lb": Unit(POUND, {"kg": 1}),
    "lbf": Unit(POUND * GRAVITY, FORCE), "in": Unit(INCH, {"m": 1}), "ft": Unit(12 * INCH, {"m": 1}),
    "psi": Unit(POUND * GRAVITY / INCH**2, PRESSURE), "gal": Unit(231 * INCH**3, {"m": 3}),
}  # fmt: skip
PREFIXES = {"G": 1e9, "M": 1e6, "k": 1e3, "h": 1e2, "d": 0.1, "c": 0.01, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
TOKEN = re.compile(
    r"\s*(?:(?P<word>[^\W\d_]+|%|1(?![\d.]))(?:\s*(?:\^|\*\*)?\s*(?P<power>-?\d+)(?![\d.]))?|(?P<sign>[/()*.·]))"
)


def parsed(text: str) -> Unit | None:
    """Return the unit that `text` means, or None if it is not known."""
    tokens, at, text = list[tuple[str, int]](), 0, text.translate(RAISED).strip()
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            return None
        tokens.append((found["sign"] or found["word"], int(found["power"] or 1)))
        at = found.end()
    if len(tokens) == 1 and tokens[0][1] == 1:
        return _word(tokens[0][0])  # only a unit without a product has an offset
    rest = iter(tokens)
    total = _product(rest, 0) if tokens else None
    return total if next(rest, None) is None else None


def _product(tokens: Iterator[tuple[str, int]], depth: int) -> Unit | None:
    """Parse a product up to the closing bracket or the end."""
    factor, powers, side, any_word = 1.0, dict[str, int](), 1, False
    for word, power in tokens:
        if word in ("*", ".", "·"):
            continue
        if word == "/":
            side = -1
            continue
        if word == ")":
            return Unit(factor, _tidy(powers)) if depth and any_word else None
        found = _product(tokens, depth + 1) if word == "(" else _word(word)
        if found is None:
            return None
        any_word = True
        factor *= found.factor ** (side * power)
        for base, n in found.powers.items():
            powers[base] = powers.get(base, 0) + side * power * n
    return Unit(factor, _tidy(powers)) if not depth and any_word else None


def _tidy(powers: dict[str, int]) -> dict[str, int]:
    return {base: powers[base] for base in BASES if powers.get(base)}


def _word(word: str) -> Unit | None:
    if word in SI or word in OTHERS:
        return SI.get(word) or OTHERS[word]
    of = SI.get(word[1:])
    return Unit(PREFIXES[word[0]] * of.factor, of.powers) if of is not None and word[0] in PREFIXES else None
