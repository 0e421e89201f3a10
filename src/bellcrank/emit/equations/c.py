"""Sheet of equations as readable C99, one function for each block; c99.py generates code for speed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import pi, prod

from bellcrank.emit.equations.formula import PI, Block, Index, Sheet, Sum, Symbol
from bellcrank.emit.equations.language import LINE_WIDTH, Language, wrap_equation
from bellcrank.quoting import comment, identifier


class C(Language):
    """Spelling of formulas in C99."""

    calls = {
        **Language.calls,
        "where": "({0} ? {1} : {2})",
        "minimum": "fmin({0}, {1})",
        "maximum": "fmax({0}, {1})",
        "abs": "fabs({0})",
        "floor": "floor({0})",
    }

    def fraction(self, x: Fraction) -> str:
        """Return the literal of the fraction `x`."""
        return f"{x.numerator}.0/{x.denominator}"

    def number(self, x: float) -> str:
        """Return the literal of `x`."""
        text = super().number(x)
        return f"{text}.0" if re.fullmatch(r"\d+", text) else text  # no integer literals: 1/2 would be 0

    def symbol(self, x: Symbol) -> str:
        """Return the identifier of the symbol `x`."""
        return repr(pi) if x == PI else str(x)

    def power(self, text: str, exponent: int) -> str:
        """Return `text` to the power of `exponent`, as a product."""
        return "*".join([text] * exponent)


def source(sheet: Sheet, digits: int = 13) -> str:
    """Return the C code of `sheet`, with `digits` significant digits."""
    spell = C(digits)
    head = [sheet.title, *([f"    {sheet.relation_with_arguments()}"] if sheet.relation else [])]
    head += [f"{k}: {', '.join(f'{i + 1} {n}' for i, n in enumerate(names))}" for k, names in sheet.columns.items()]
    about = "\n * ".join(comment(line) for line in (*head, *sheet.remarks))
    functions = [line for block in sheet.blocks for line in _function(sheet, spell, block)]
    return "\n".join([f"/* {about} */", "#include <math.h>", *functions])


def _function(sheet: Sheet, spell: C, block: Block) -> Iterator[str]:
    inputs = [_parameter(key, sheet.inputs[key], "const ") for key in block.inputs]
    kind, out = ("void", [_parameter(block.name, block.shape)]) if block.shape else ("double", [])
    yield from ("", f"/* {comment(block.headline)} */")
    yield f"{kind} {identifier(f'{sheet.name} {block.name}')}({', '.join(inputs + out)})"
    yield "{"
    body = [
        line
        for s in sheet.needed_definitions(block)
        for line in _assignment(spell, f"const double {s}", sheet.definitions[s])
    ]
    for index in product(*map(range, block.shape)):
        if index in block.entries:
            body += _assignment(spell, _places(block, index), block.entries[index])
    text = "\n".join(body)
    for key in block.inputs:
        shape, used = sheet.inputs[key], []
        for flat in range(prod(shape) if shape else 0):
            if re.search(rf"\b{sheet.element(key, flat)}\b", text):
                element = _place(identifier(key), _indices(flat, shape))
                used.append(f"{sheet.element(key, flat)} = {element}")
        if shape:
            yield f"    const double {', '.join(used)};" if used else f"    (void){identifier(key)};"
    yield from (f"    {line}" for line in body)
    yield "}"


def _parameter(name: str, shape: Index, const: str = "") -> str:
    return f"{const}double {identifier(name)}{''.join(f'[{n}]' for n in shape)}"


def _place(name: str, index: Index) -> str:
    return f"{name}{''.join(f'[{i}]' for i in index)}"


def _indices(flat: int, shape: Index) -> Index:
    """Return the indices of element `flat` of an array of this `shape`."""
    index = []
    for size in reversed(shape):
        flat, i = divmod(flat, size)
        index.append(i)
    return tuple(reversed(index))


def _places(block: Block, index: Index) -> str:
    """Return the destination of an entry: M[0][1] = M[1][0], or empty for a return value."""
    if not index:
        return ""
    places = dict.fromkeys((index, index[::-1]) if block.symmetric else (index,))
    return " = ".join(_place(identifier(block.name), i) for i in places)


def _assignment(spell: C, head: str, x: Sum) -> list[str]:
    lines = wrap_equation(head, spell.rows(x, LINE_WIDTH - 12), ";")
    return lines if head else [lines[0].replace(" = ", "return ", 1), *lines[1:]]
