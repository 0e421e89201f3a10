"""Sheet of equations as a Python module of SymPy expressions: symbols, definitions, and a matrix for each block.

Only text is generated here; SymPy is needed to run it.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import prod

from bellcrank.emit.equations.formula import Sheet, Symbol
from bellcrank.emit.equations.language import FUNCTIONS, Language
from bellcrank.emit.equations.python import (
    assignment,
    entry_assignments,
    module_docstring,
    nested_list,
    unpacking_target,
)
from bellcrank.quoting import comment, identifier

SYMPY = {*FUNCTIONS, "Abs", "Matrix", "Max", "Min", "Piecewise", "Rational", "atan2", "floor", "pi", "symbols"}


class SymPy(Language):
    """Spelling of formulas in SymPy."""

    calls = {
        **Language.calls,
        "where": "Piecewise(({1}, {0}), ({2}, True))",
        "minimum": "Min({0}, {1})",
        "maximum": "Max({0}, {1})",
        "abs": "Abs({0})",
        "floor": "floor({0})",
    }

    def fraction(self, x: Fraction) -> str:
        """Return the spelling of the fraction `x`."""
        return f"Rational({x.numerator}, {x.denominator})"


def source(sheet: Sheet, digits: int = 13) -> str:
    """Return the SymPy module of `sheet`, with `digits` significant digits."""
    spell = SymPy(digits)
    lines = []
    for name, shape in sheet.inputs.items():
        elements = [str(sheet.element(name, i)) for i in range(prod(shape))]
        array_target = f"{identifier(name)} = " if shape else ""
        comma = "," * (len(elements) == 1 and bool(shape))
        names = unpacking_target(elements) if shape else elements[0]
        lines.append(f'{array_target}{names} = symbols("{" ".join(elements)}{comma}", real=True)')
    defined: list[Symbol] = []
    for block in sheet.blocks:
        lines += ["", f"# {comment(block.headline)}"]
        new = sheet.needed_definitions(block, defined)
        defined += [*new, *map(block.symbol, block.entries)]
        lines += [line for s in new for line in assignment(spell, s, sheet.definitions[s])]
        head = f"{identifier(block.name)} = "
        lines += [*entry_assignments(spell, block), head + nested_list(block, spell, "Matrix({})", margin=len(head))]
    text = "\n".join(lines)
    used = sorted(set(re.findall(r"\b[A-Za-z]\w*", text)) & SYMPY)
    return "\n".join([module_docstring(sheet), "", f"from sympy import {', '.join(used)}", "", text])
