"""Parser of units into FMI's form: powers of eight base units, a factor and an offset.

    "N m"  "rad/s^2"  "kg/m3"  "N m s / (rad A)"  "mm"  "psi"  "in^3/rad"

Adjacent units are multiplied. A slash divides by everything that follows, up to the end of the parentheses. An exponent
follows its unit, with or without `^` or `**`. It must be an integer, because the FMI standard has no other exponents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# Powers of kg, m, s, A, K, mol, cd and rad, in the standard's order.
BASE_UNITS = ("kg", "m", "s", "A", "K", "mol", "cd", "rad")
FORCE, PRESSURE, ENERGY = {"kg": 1, "m": 1, "s": -2}, {"kg": 1, "m": -1, "s": -2}, {"kg": 1, "m": 2, "s": -2}
POUND, INCH, GRAVITY = 0.45359237, 0.0254, 9.80665  # kg, m, m/s^2: exact by definition


@dataclass(frozen=True)
class FmiUnit:
    """A unit; a number x of it is factor * x + offset in base units."""

    factor: float = 1.0
    powers: dict[str, int] = field(default_factory=dict)
    offset: float = 0.0


# Units that take prefixes.
SI_UNITS = {
    **{name: FmiUnit(1.0, {name: 1}) for name in BASE_UNITS if name != "kg"},
    "g": FmiUnit(1e-3, {"kg": 1}), "N": FmiUnit(1.0, FORCE), "Pa": FmiUnit(1.0, PRESSURE), "J": FmiUnit(1.0, ENERGY),
    "W": FmiUnit(1.0, {**ENERGY, "s": -3}), "V": FmiUnit(1.0, {**ENERGY, "s": -3, "A": -1}),
    "Hz": FmiUnit(1.0, {"s": -1}), "C": FmiUnit(1.0, {"A": 1, "s": 1}),
    "ohm": FmiUnit(1.0, {**ENERGY, "s": -3, "A": -2}),
    "H": FmiUnit(1.0, {**ENERGY, "A": -2}), "F": FmiUnit(1.0, {"kg": -1, "m": -2, "s": 4, "A": 2}),
    "T": FmiUnit(1.0, {"kg": 1, "s": -2, "A": -1}), "Wb": FmiUnit(1.0, {**ENERGY, "A": -1}),
    "bar": FmiUnit(1e5, PRESSURE), "L": FmiUnit(1e-3, {"m": 3}), "l": FmiUnit(1e-3, {"m": 3}),
}  # fmt: skip
OTHER_UNITS = {
    "1": FmiUnit(), "%": FmiUnit(0.01),
    "deg": FmiUnit(math.pi / 180.0, {"rad": 1}), "rev": FmiUnit(2.0 * math.pi, {"rad": 1}),
    "rpm": FmiUnit(math.pi / 30.0, {"rad": 1, "s": -1}), "min": FmiUnit(60.0, {"s": 1}), "h": FmiUnit(3600.0, {"s": 1}),
    "t": FmiUnit(1e3, {"kg": 1}), "degC": FmiUnit(1.0, {"K": 1}, 273.15), "lb": FmiUnit(POUND, {"kg": 1}),
    "lbf": FmiUnit(POUND * GRAVITY, FORCE), "in": FmiUnit(INCH, {"m": 1}), "ft": FmiUnit(12 * INCH, {"m": 1}),
    "psi": FmiUnit(POUND * GRAVITY / INCH**2, PRESSURE), "gal": FmiUnit(231 * INCH**3, {"m": 3}),
}  # fmt: skip
PREFIXES = {"G": 1e9, "M": 1e6, "k": 1e3, "h": 1e2, "d": 0.1, "c": 0.01, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
UNIT_TOKEN = re.compile(
    r"\s*(?:(?P<word>[^\W\d_]+|%|1(?![\d.]))(?:\s*(?:\^|\*\*)?\s*(?P<power>-?\d+)(?![\d.]))?|(?P<sign>[/()*.·]))"
)


def parse_unit(text: str) -> FmiUnit | None:
    """Return the unit that `text` means, or None if it is not known."""
    tokens, position, text = list[tuple[str, int]](), 0, text.translate(SUPERSCRIPTS).strip()
    while position < len(text):
        match = UNIT_TOKEN.match(text, position)
        if match is None:
            return None
        tokens.append((match["sign"] or match["word"], int(match["power"] or 1)))
        position = match.end()
    if len(tokens) == 1 and tokens[0][1] == 1:
        return _word_unit(tokens[0][0])  # only a unit without a product has an offset
    remaining = iter(tokens)
    total = _product(remaining, 0) if tokens else None
    return total if next(remaining, None) is None else None


def _product(tokens: Iterator[tuple[str, int]], depth: int) -> FmiUnit | None:
    """Parse a product up to the closing bracket or the end."""
    factor, powers, side, any_word = 1.0, dict[str, int](), 1, False
    for word, power in tokens:
        if word in ("*", ".", "·"):
            continue
        if word == "/":
            side = -1
            continue
        if word == ")":
            return FmiUnit(factor, _nonzero_powers(powers)) if depth and any_word else None
        unit = _product(tokens, depth + 1) if word == "(" else _word_unit(word)
        if unit is None:
            return None
        any_word = True
        factor *= unit.factor ** (side * power)
        for base, n in unit.powers.items():
            powers[base] = powers.get(base, 0) + side * power * n
    return FmiUnit(factor, _nonzero_powers(powers)) if not depth and any_word else None


def _nonzero_powers(powers: dict[str, int]) -> dict[str, int]:
    return {base: powers[base] for base in BASE_UNITS if powers.get(base)}


def _word_unit(word: str) -> FmiUnit | None:
    if word in SI_UNITS or word in OTHER_UNITS:
        return SI_UNITS.get(word) or OTHER_UNITS[word]
    unit = SI_UNITS.get(word[1:])
    return FmiUnit(PREFIXES[word[0]] * unit.factor, unit.powers) if unit is not None and word[0] in PREFIXES else None
