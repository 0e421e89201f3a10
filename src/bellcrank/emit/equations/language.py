"""Spelling of formulas: base class of the languages of printed equations, each of which overrides a few strings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from bellcrank.emit.equations.formula import Call, Factor, Product, Sum, Symbol

LINE_WIDTH = 100
FUNCTIONS = ("sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "tanh")


class Language:
    """Spelling of formulas in one language."""

    times = "*"
    # Template of each operation; {0}, {1}, {2} are the arguments. Subclasses add operations whose names differ.
    calls: Mapping[str, str] = {
        "div": "{0}/{1}",
        "lt": "{0} < {1}",
        "le": "{0} <= {1}",
        "atan2": "atan2({0}, {1})",
        **{op: f"{op}({{0}})" for op in FUNCTIONS},
    }

    def __init__(self, digits: int) -> None:
        self.digits = digits

    # -- overridden

    def fraction(self, x: Fraction) -> str:
        """Return the spelling of the fraction `x`."""
        return f"{x.numerator}/{x.denominator}"

    def decimal(self, text: str) -> str:
        """Return the spelling of a decimal number, given as `text`."""
        return text

    def symbol(self, x: Symbol) -> str:
        """Return the spelling of the symbol `x`."""
        return str(x)

    def power(self, text: str, exponent: int) -> str:
        """Return `text` to the power of `exponent`."""
        return f"{text}**{exponent}"

    def brackets(self, text: str) -> str:
        """Return `text` in brackets."""
        return f"({text})"

    # -- shared

    def number(self, x: float) -> str:
        """Return `x` as a person would write it: an integer, a few decimals, a small fraction, or all the digits."""
        integer, short, small = round(x), f"{x:.{min(self.digits, 6)}g}", Fraction(x).limit_denominator(36)
        if nearly_equal(integer, x) and abs(x) < 1e9:
            return str(integer)
        if not nearly_equal(float(short), x) and nearly_equal(small, x) and abs(small.numerator) < 1000:
            return self.fraction(small)
        return self.decimal(short if nearly_equal(float(short), x) else f"{x:.{self.digits}g}")

    def factor(self, x: Factor, exponent: int, alone: bool) -> str:
        """Return a factor with its exponent, in brackets if necessary.

        Parameters
        ----------
        x
            Factor.
        exponent
            Its exponent.
        alone
            It is the only factor of its product.
        """
        if isinstance(x, Symbol):
            text = self.symbol(x)
        else:
            text = self.sum(x) if isinstance(x, Sum) else self.call(x)
            if isinstance(x, Sum) or (self.needs_brackets(x) and not (alone and exponent == 1)):
                text = self.brackets(text)
        return text if exponent == 1 else self.power(text, exponent)

    def needs_brackets(self, x: Call) -> bool:
        """Return whether the call `x` needs brackets among factors."""
        return x.op in ("div", "lt", "le")

    def call(self, x: Call) -> str:
        """Return the spelling of the call `x`."""
        args = [self.sum(a) for a in x.args]
        if x.op in ("div", "lt", "le"):
            args = [t if is_single(a) else self.brackets(t) for a, t in zip(x.args, args, strict=True)]
        return self.calls[x.op].format(*args)

    def product(self, x: Product) -> str:
        """Return the product `x` without its sign, which the sum writes."""
        number = self.number(abs(x.number))
        one = number in ("1", "1.0") and bool(x.factors)
        parts = [] if one else [number]
        parts += [self.factor(f, n, one and len(x.factors) == 1) for f, n in x.factors]
        return self.times.join(parts)

    def signed_terms(self, x: Sum) -> list[str]:
        """Return the terms of `x` with their signs, ready to be joined by spaces."""
        terms = []
        for i, term in enumerate(x.terms):
            text = self.product(term)
            sign = ("- " if i else "-") if term.number < 0 else ("+ " if i else "")
            terms.append(sign + text)
        return terms or ["0"]

    def sum(self, x: Sum) -> str:
        """Return the sum `x` in one line."""
        return " ".join(self.signed_terms(x))

    def rows(self, x: Sum, room: int) -> list[str]:
        """Return the sum `x` in lines of about `room` characters."""
        lines = [""]
        for piece in self.signed_terms(x):
            if lines[-1] and len(lines[-1]) + len(piece) >= room:
                lines.append(piece)
            else:
                lines[-1] = f"{lines[-1]} {piece}".strip()
        return lines


def is_single(x: Sum) -> bool:
    """Return whether `x` is one symbol or non-negative number without coefficient."""
    if len(x.terms) != 1:
        return False
    term = x.terms[0]
    if not term.factors:
        return term.number >= 0
    return term.number == 1.0 and len(term.factors) == 1 and not isinstance(term.factors[0][0], Call | Sum)


def nearly_equal(a: float | Fraction, b: float) -> bool:
    """Return whether `a` and `b` are equal up to rounding."""
    return abs(float(a) - b) <= 1e-13 * abs(b)


def wrap_equation(head: str, lines: Sequence[str], end: str = "") -> list[str]:
    """Return the equation of `head` and the sum in `lines`, closed by `end`; several lines are put in brackets."""
    if len(lines) == 1:
        return [f"{head} = {lines[0]}{end}"]
    return [f"{head} = (", *(f"    {line}" for line in lines), f"){end}"]
