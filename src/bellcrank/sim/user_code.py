"""Calls what the user wrote, on symbols, and says where it went wrong: the user's line, and what to write."""

from __future__ import annotations

import inspect
import linecache
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bellcrank.errors
from bellcrank.errors import InputError, TraceError, unknown
from bellcrank.graph import Node
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.scalar import Scalar

OURS = str(Path(bellcrank.errors.__file__).resolve().parent) + os.sep
ONCE = "This function runs once, on symbols, and is compiled."
ADVICE = (
    f"{ONCE} Write where(condition, a, b), minimum, maximum, clip and the functions of bellcrank.scalar (sin, sqrt, "
    "tanh, ...) for what depends on a state; if and for may depend on the model only."
)
PUZZLING = (TypeError, ValueError, AttributeError, IndexError, KeyError)  # what a symbol raises that is no number
LONG = 100  # characters of a line of the user's that a message shows


def called(what: str, function: Callable[..., Any], *args: Any, expected: str = "(t, q, v, x, u)") -> Any:
    """function(*args), or an error that says that it was being traced, and at which line of the user's."""
    _takes(what, function, len(args), expected)
    try:
        return function(*args)
    except InputError as error:
        raise InputError(f"{what}, while it was traced: {_where(error)}{error}") from error
    except Exception as error:  # the user's function may raise anything
        raise TraceError(f"{what}, while it was traced: {_where(error)}{_said(error)}") from error


def _takes(what: str, function: Callable[..., Any], count: int, expected: str) -> None:
    """Says so where the function has not as many arguments as it will be given."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one that is not written in Python may not tell
        return
    try:
        signature.bind(*[None] * count)
    except TypeError:
        raise InputError(f"{what} takes {signature}; expected {count} arguments: {expected}.") from None


def _where(error: BaseException) -> str:
    """The last line outside of bellcrank and numpy."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(OURS)]
    frames = [f for f in frames if "numpy" not in Path(f.filename).parts] or frames
    if not frames:
        return ""
    last = frames[-1]
    text = (last.line or linecache.getline(last.filename, last.lineno or 0)).strip()
    text = text if len(text) <= LONG else f"{text[:LONG]} ..."
    return f"{last.filename}, line {last.lineno}: {text}\n  " if text else f"{last.filename}, line {last.lineno}: "


def _said(error: BaseException) -> str:
    if isinstance(error, TraceError):
        return f"{error} {ONCE}"
    if isinstance(error, RecursionError):
        return f"RecursionError: {error}. {ONCE} Nothing that depends on a state can end a recursion: write a loop."
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{said}. {ADVICE if isinstance(error, PUZZLING) else ONCE}"


def vector(what: str, value: Any, names: Sequence[str]) -> list[Scalar]:
    """One scalar for each name, from a list, an array, a mapping by name (what is missing is zero), or one scalar."""
    if isinstance(value, Mapping):
        for key in value:
            if key not in names:
                raise InputError(f"{what} returned a value for something else: {unknown('element', key, names)}")
        value = [value.get(name, 0.0) for name in names]
    if value is None:
        raise InputError(f"{what} returned nothing; expected {many(names)}.")
    several = (isinstance(value, Sequence) and not isinstance(value, str)) or np.ndim(value) > 0
    found = list(value) if several else [value]
    if len(found) != len(names):
        raise InputError(f"{what} returned {len(found)} numbers; expected {many(names)}.")
    for name, x in zip(names, found, strict=True):
        if isinstance(x, (int, float, np.number)) and not np.isfinite(x):
            raise InputError(f'{what} returned {x} for "{name}"; expected finite numbers.')
        if isinstance(x, Node) and x.op in COMPARISONS:
            raise InputError(
                f'{what} returned a comparison for "{name}"; expected a number: the difference of its two sides, or '
                "where(condition, 1.0, 0.0)."
            )
        odd = (bool, np.bool_, complex, np.complexfloating, np.ndarray, Sequence, set)
        if not hasattr(x, "__sub__") or isinstance(x, odd):
            raise InputError(f'{what} returned {x!r} for "{name}"; expected one real number.')
    return found


def many(names: Sequence[str]) -> str:
    return f"{len(names)} number{'' if len(names) == 1 else 's'}: {', '.join(names) or 'none'}"
