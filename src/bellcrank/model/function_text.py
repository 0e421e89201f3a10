"""Functions as text: the law of a cam or the shape of a surface, stored as data of a mechanism.

The function is called once, on symbols, and its operations are recorded:

    sin %0;mul 0x1.8p+1 #0                3 sin(x)

Here %0 is the first argument, #0 the first operation; other words are exact numbers. The last operation is the value. A
mechanism with such a law is stored, compared and hashed like any other, and the law is computed on any scalar: numbers,
symbols, jets. Only operations of a fixed table are ever computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from bellcrank.errors import BellcrankError, ModelError, brief
from bellcrank.nodes.node import Node
from bellcrank.nodes.tape import SCALAR_OPERATIONS, Tape, topological_order
from bellcrank.scalar import Scalar

FormulaRow = tuple[str, tuple[tuple[str, float | int], ...]]


def function_text(where: str, function: Callable[..., Scalar], count: int) -> str:
    """Return the text of a function.

    Parameters
    ----------
    where
        The element, for messages.
    function
        A function of scalars.
    count
        Its number of arguments.
    """
    if not callable(function):
        raise ModelError(f"{where}: {function!r} is not a function; expected one of {count} number{'s' * (count > 1)}.")
    tape = Tape()
    try:
        result = function(*tape.inputs("x", (count,)))
    except Exception as error:  # a user's function may raise anything
        why = str(error) if isinstance(error, BellcrankError) else f"{type(error).__name__}: {error}"
        raise ModelError(
            f"{where}: its function failed on symbols: {why}. It is called once: use bellcrank's sin, sqrt, where, "
            "interp instead of math's."
        ) from error
    if not isinstance(result, Node):
        if not isinstance(result, int | float | np.number) or not math.isfinite(result):
            raise ModelError(f"{where}: its function returned {brief(result)}; expected one finite number.")
        return f"add {float(result).hex()} {(0.0).hex()}"
    words: dict[Node, str] = {}
    rows: list[str] = []
    for node in topological_order(result):
        if node.tape is not tape:
            raise ModelError(f"{where}: its function has a symbol of another trace. Use its arguments only.")
        if node.op == "input":
            words[node] = f"%{node.args[1]}"
            continue
        if node.op not in SCALAR_OPERATIONS:
            raise ModelError(f"{where}: its function has {node.op}, which a law cannot have. Write it with numbers.")
        args = [words[a] if isinstance(a, Node) else float(a).hex() for a in node.args]
        words[node] = f"#{len(rows)}"
        rows.append(" ".join((node.op, *args)))
    if not rows:
        rows.append(f"add {words[result]} {(0.0).hex()}")
    return ";".join(rows)


def evaluate_text(text: str, *arguments: Scalar) -> Scalar:
    """Return the value of the function with this `text` at the arguments `arguments`."""
    results: list[Scalar] = []
    for op, args in _parse_rows(text):
        values = [arguments[int(k)] if source == "%" else results[int(k)] if source == "#" else k for source, k in args]
        results.append(SCALAR_OPERATIONS[op](*values))
    return results[-1]


@lru_cache(maxsize=256)
def _parse_rows(text: str) -> tuple[FormulaRow, ...]:
    rows: list[FormulaRow] = []
    for line in text.split(";"):
        op, *args = line.split(" ")
        if op not in SCALAR_OPERATIONS:
            raise ModelError(f'a law has the operation "{op:.20}"; known are {", ".join(SCALAR_OPERATIONS)}.')
        rows.append((op, tuple(_parse_argument(a) for a in args)))
    return tuple(rows)


def _parse_argument(word: str) -> tuple[str, float | int]:
    return (word[0], int(word[1:])) if word[:1] in ("%", "#") else ("", float.fromhex(word))
