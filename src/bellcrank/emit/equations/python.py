"""Sheet of equations as a Python module that needs only numpy: one function for each block."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import product
from math import prod

from bellcrank.emit.equations.formula import Block, Sheet, Sum, Symbol
from bellcrank.emit.equations.language import LINE_WIDTH, Language, wrap_equation
from bellcrank.quoting import docstring, identifier


class Python(Language):
    """Spelling of formulas in Python with numpy."""

    calls = {
        **Language.calls,
        "where": "where({0}, {1}, {2})",
        "minimum": "minimum({0}, {1})",
        "maximum": "maximum({0}, {1})",
        "abs": "abs({0})",
        "floor": "floor({0})",
        "asin": "arcsin({0})",
        "acos": "arccos({0})",
        "atan2": "arctan2({0}, {1})",
    }


# names to import from numpy; abs is a Python built-in
NUMPY = {*re.findall(r"[a-z]\w*", " ".join(Python.calls.values())), "array", "pi"} - {"abs"}


def source(sheet: Sheet, digits: int = 13) -> str:
    """Return the Python module of `sheet`, with `digits` significant digits."""
    spell = Python(digits)
    functions = [_function(sheet, spell, block) for block in sheet.blocks]
    used = sorted(set(re.findall(r"\b[a-z]\w*", "\n".join(functions))) & NUMPY)
    return "\n".join(
        [module_docstring(sheet), *(["", f"from numpy import {', '.join(used)}"] if used else []), *functions]
    )


def module_docstring(sheet: Sheet) -> str:
    """Return the module docstring of `sheet`."""
    lines = [sheet.title, *(["", f"    {sheet.relation_with_arguments()}"] if sheet.relation else []), ""]
    for names, meant in sheet.columns.items():
        text = f"{names}: {', '.join(f'{i + 1} {name}' for i, name in enumerate(meant))}"
        lines += textwrap.wrap(text, LINE_WIDTH, subsequent_indent="    ")
    return '"""' + "\n".join(docstring(part) for part in (*lines, *sheet.remarks)) + '\n"""'


def _function(sheet: Sheet, spell: Python, block: Block) -> str:
    arguments = [identifier(name) for name in block.inputs]
    lines = [f"def {identifier(block.name)}({', '.join(arguments)}):", f'    """{docstring(block.headline)}"""']
    body = [line for s in sheet.needed_definitions(block) for line in assignment(spell, s, sheet.definitions[s])]
    body += entry_assignments(spell, block)
    text = "\n".join([*body, nested_list(block, spell)])
    for name in block.inputs:
        elements = [str(sheet.element(name, i)) for i in range(prod(sheet.inputs[name]))]
        if sheet.inputs[name] and any(re.search(rf"\b{e}\b", text) for e in elements):
            given = identifier(name) if len(sheet.inputs[name]) == 1 else f"array({identifier(name)}).ravel()"
            lines.append(f"    {unpacking_target(elements)} = {given}")
    lines += [f"    {line}" for line in body]
    return "\n\n" + "\n".join([*lines, f"    return {nested_list(block, spell)}"])


def unpacking_target(names: Sequence[str]) -> str:
    """Return the target of an assignment that unpacks an array to `names`."""
    return ", ".join(names) if len(names) > 1 else f"[{names[0]}]"


def assignment(spell: Language, symbol: Symbol, x: Sum) -> list[str]:
    """Return the lines of an assignment.

    Parameters
    ----------
    spell
        Spelling of formulas.
    symbol
        Left-hand side.
    x
        Right-hand side.
    """
    return wrap_equation(str(symbol), spell.rows(x, LINE_WIDTH - 12))


def entry_assignments(spell: Language, block: Block) -> list[str]:
    """Return assignments of the non-zero entries of `block`, spelled by `spell`; a scalar needs none."""
    named = [(block.symbol(i), x) for i, x in block.entries.items() if x.terms and block.shape]
    return [line for symbol, x in named for line in assignment(spell, symbol, x)]


def nested_list(block: Block, spell: Language, array: str = "array({}, float)", margin: int = 11) -> str:
    """Return the entries of a block as a nested list, one row per line.

    Parameters
    ----------
    block
        Block of the sheet.
    spell
        Spelling of formulas.
    array
        Template of the array constructor.
    margin
        Characters before the constructor.
    """
    if not block.shape:
        return spell.sum(block.entries[()])
    *outer, last = block.shape
    indent = " " * (margin + len(array.partition("{")[0]) + len(outer))
    rows = []
    for row in product(*map(range, outer)):
        names = []
        for k in range(last):
            index = (*row, k)
            place = index if index in block.entries else index[::-1]
            names.append(str(block.symbol(place)) if block.entries[place].terms else "0")
        rows.append(f"[{', '.join(names)}]")
    text = rows[0] if not outer else "[" + f",\n{indent}".join(rows) + "]"
    return array.format(text)
