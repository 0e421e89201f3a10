"""Sheet of equations as LaTeX: an align* of amsmath for the definitions and one for each block."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from fractions import Fraction

from bellcrank.emit.equations.formula import Block, Call, Sheet, Sum, Symbol
from bellcrank.emit.equations.language import Language
from bellcrank.quoting import comment, latex

GREEK = ("alpha", "beta", "gamma", "delta", "theta", "pi", "rho", "tau", "phi", "omega", "mu", "Psi")
ROW_WIDTH = 100  # characters of source in a line of an equation

TEXT_WRAPPER = textwrap.TextWrapper(96, break_long_words=False, break_on_hyphens=False)  # no cut behind a backslash

DOCUMENT = r"""\documentclass{article}
\usepackage{amsmath}
\usepackage[landscape,margin=15mm]{geometry}
\allowdisplaybreaks
\begin{document}
%s
\end{document}
"""


class LaTeX(Language):
    """Spelling of formulas in LaTeX."""

    times = r"\,"
    calls = {
        "div": r"\frac{{{0}}}{{{1}}}",
        "lt": "{0} < {1}",
        "le": r"{0} \le {1}",
        "where": r"\begin{{cases}} {1} & \text{{if }} {0} \\ {2} & \text{{else}} \end{{cases}}",
        "minimum": r"\min({0},\; {1})",
        "maximum": r"\max({0},\; {1})",
        "abs": r"\left|{0}\right|",
        "floor": r"\left\lfloor {0} \right\rfloor",
        "sqrt": r"\sqrt{{{0}}}",
        "atan2": r"\operatorname{{atan2}}({0},\; {1})",
        "asin": r"\arcsin({0})",
        "acos": r"\arccos({0})",
        **{op: rf"\{op}({{0}})" for op in ("sin", "cos", "tan", "exp", "log", "tanh")},
    }

    def fraction(self, x: Fraction) -> str:
        """Return the spelling of the fraction `x`."""
        return rf"\tfrac{{{x.numerator}}}{{{x.denominator}}}"

    def decimal(self, text: str) -> str:
        """Return the spelling of a decimal number, given as `text`."""
        head, _, exponent = text.partition("e")
        return rf"{head} \times 10^{{{int(exponent)}}}" if exponent else head

    def symbol(self, x: Symbol) -> str:
        """Return the spelling of the symbol `x`."""
        return rf"{letter(x.name)}_{{{index(x)}}}" if x.index else letter(x.name)

    def power(self, text: str, exponent: int) -> str:
        """Return `text` to the power of `exponent`."""
        return f"{text}^{{{exponent}}}"

    def needs_brackets(self, x: Call) -> bool:
        """Return whether the call `x` needs brackets among factors."""
        return x.op in ("lt", "le")

    def call(self, x: Call) -> str:
        """Return the call `x`; "cos q_2" needs no brackets, nor does a fraction inside itself."""
        args = [self.sum(a) for a in x.args]
        if x.op in ("sin", "cos") and len(args) == 1 and re.fullmatch(r"\\?\w+_\{\w+\}", args[0]):
            return rf"\{x.op} {args[0]}"
        return self.calls[x.op].format(*args)


def letter(name: str) -> str:
    """Return the letter of a symbol called `name`."""
    if name in GREEK:
        return rf"\{name}"
    return name if len(name) == 1 else rf"\mathrm{{{name}}}".replace("_", r"\_")


def index(x: Symbol) -> str:
    """Return the index of the symbol `x`: 23, 2-3, or with commas if any part is more than one digit."""
    tokens = [t if re.fullmatch(r"-?\d+\w?", t) else rf"\mathrm{{{t}}}".replace("_", r"\_") for t in x.index]
    return ("" if all(re.fullmatch(r"-?\d", t) for t in tokens) else ",").join(tokens)


def source(sheet: Sheet, digits: int = 6) -> str:
    """Return the LaTeX fragment of `sheet`, with `digits` significant digits."""
    spell = LaTeX(digits)
    lines = [f"% {comment(sheet.title)}"]
    if sheet.relation:
        lines += [r"\[", f"  {relation(sheet)}", r"\]"]
    for names, meant in sheet.columns.items():
        text = ", ".join(f"{i + 1} {latex(name)}" for i, name in enumerate(meant))
        lines += TEXT_WRAPPER.wrap(rf"\noindent ${spell_greek(names)}$: {text}.")
    lines += [spell_symbols(remark) for remark in sheet.remarks]
    waves = [s for s in sheet.definitions if sine_or_cosine(sheet.definitions[s])]
    angles = [s for s in sheet.definitions if s.name == "theta"]
    defined = [s for s in sheet.definitions if s in {*angles, *waves}]
    if defined[: len(angles)] == angles:
        lines += align_rows(
            [*(equation_row(spell, s, sheet.definitions[s]) for s in angles), *_sincos_rows(sheet, spell, waves)]
        )
    else:  # an angle that depends on sines: keep the order of definitions
        lines += align_rows([equation_row(spell, s, sheet.definitions[s]) for s in defined])
    for block in sheet.blocks:
        if block.is_zero and sheet.relation:
            continue
        new = sheet.needed_definitions(block, defined)
        defined += [*new, *map(block.symbol, block.entries)]
        lines += [rf"\noindent {latex(block.headline)}"]
        lines += align_rows([*(equation_row(spell, s, sheet.definitions[s]) for s in new), *_entries(spell, block)])
    return "\n".join(lines)


def align_rows(rows: Sequence[str]) -> list[str]:
    """Return `rows` in an align* environment."""
    return [r"\begin{align*}", " \\\\\n".join(rows), r"\end{align*}"] if rows else []


def sine_or_cosine(x: Sum) -> Call | None:
    """Return the sine or cosine that the definition `x` consists of, if it is one."""
    factors = [f for term in x.terms for f, n in term.factors if n == 1 and term.number == 1.0]
    factor = factors[0] if len(x.terms) == 1 and len(factors) == 1 else None
    return factor if isinstance(factor, Call) and factor.op in ("sin", "cos") else None


def _sincos_rows(sheet: Sheet, spell: LaTeX, symbols: Sequence[Symbol]) -> list[str]:
    """Return a line for each angle, cosine to the left and sine to the right."""
    pairs: dict[tuple[Sum, ...], dict[str, str]] = {}
    for s in symbols:
        call = sine_or_cosine(sheet.definitions[s])
        assert call is not None
        pairs.setdefault(call.args, {})[call.op] = equation_row(spell, s, sheet.definitions[s]).strip()
    rows = (" & ".join(pair.get(op, "&") for op in ("cos", "sin")) for pair in pairs.values())
    return [f"  {line.removesuffix(' & &')}" for line in rows]


def document(fragment: str) -> str:
    """Return a complete LaTeX file with `fragment`."""
    return DOCUMENT % fragment


def relation(sheet: Sheet) -> str:
    """Return the relation of `sheet` in LaTeX."""
    return re.sub(r"\) (?=\w)", r")\\,", spell_greek(sheet.relation_with_arguments(nonzero=True)))


def spell_greek(text: str) -> str:
    """Return `text` with names of Greek letters as LaTeX commands."""
    return re.sub(rf"\b({'|'.join(GREEK)})\b", r"\\\1", text)


def spell_symbols(text: str) -> str:
    """Return `text` with symbols such as b_112 in mathematical mode."""
    parts = re.split(r"\b([A-Za-z]+_\w+)\b", text)
    for k, part in enumerate(parts):
        name, _, indices = part.partition("_")
        parts[k] = f"${spell_greek(name)}_{{{indices.replace('_', ',')}}}$" if k % 2 else text_between(part)
    return "".join(parts)


def text_between(text: str) -> str:
    """Return `text` between two symbols, with its leading and trailing space."""
    return " " * text[:1].isspace() + latex(text) + " " * (text[-1:].isspace() and bool(text.strip()))


def equation_row(spell: LaTeX, symbol: Symbol, x: Sum) -> str:
    """Return one equation, broken into lines.

    Parameters
    ----------
    spell
        Spelling of formulas.
    symbol
        Left-hand side.
    x
        Right-hand side.
    """
    first, *more = spell.rows(x, ROW_WIDTH)
    head = f"  {spell.symbol(symbol)} &= {first}"
    return " \\\\\n".join([head, *(rf"    &\quad {line}" for line in more)])


def _entries(spell: LaTeX, block: Block) -> list[str]:
    """Return the entries; zeros share a line, and a symmetric matrix has a remark."""
    lines = [equation_row(spell, block.symbol(i), x) for i, x in block.entries.items() if x.terms]
    zeros = [spell.symbol(block.symbol(i)) for i, x in block.entries.items() if not x.terms]
    for k in range(0, len(zeros), 12):
        lines.append(f"  {' = '.join(zeros[k : k + 12])} &= 0")
    if block.symmetric and block.shape[0] > 1:
        lines.append(f"  {letter(block.name)}_{{ji}} &= {letter(block.name)}_{{ij}}")
    return lines
