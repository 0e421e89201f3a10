"""Calls what the user wrote, on symbols, and says where it went wrong: the user's line, and what to write."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bellcrank.errors
from bellcrank.errors import BellcrankError, InputError, TraceError, unknown
from bellcrank.scalar import Scalar

OURS = str(Path(bellcrank.errors.__file__).resolve().parent)
ADVICE = (
    "It runs once, on symbols, and is compiled: write where(condition, a, b), minimum, maximum, clip and the functions "
    "of bellcrank.scalar (sin, sqrt, tanh, ...) for what depends on a state; if and for may depend on the model only."
)


def called(what: str, function: Callable[..., Any], *args: Any) -> Any:
    """function(*args), or an error at the user's line."""
    try:
        return function(*args)
    except (BellcrankError, TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
        raise TraceError(f"{what}: {_where(error)}{_said(error)}") from error


def _where(error: BaseException) -> str:
    """The last line outside of bellcrank and numpy."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(OURS)]
    frames = [f for f in frames if "numpy" not in Path(f.filename).parts] or frames
    if not frames:
        return ""
    last = frames[-1]
    text = (last.line or linecache.getline(last.filename, last.lineno or 0)).strip()
    return f"{last.filename}, line {last.lineno}: {text}\n  " if text else f"{last.filename}, line {last.lineno}: "


def _said(error: BaseException) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, TraceError):
        return f"{error} {ADVICE}"
    return f"{type(error).__name__}: {error}. {ADVICE}"


def vector(what: str, value: Any, names: Sequence[str]) -> list[Scalar]:
    """One scalar for each name, from a list, an array, a mapping by name (what is missing is zero), or one scalar."""
    if isinstance(value, Mapping):
        for key in value:
            if key not in names:
                raise InputError(f"{what} returned a value for something else: {unknown('element', key, names)}")
        return [value.get(name, 0.0) for name in names]
    if value is None:
        raise InputError(f"{what} returned nothing; expected {len(names)} numbers: {', '.join(names)}.")
    many = (isinstance(value, Sequence) and not isinstance(value, str)) or np.ndim(value) > 0
    found = list(value) if many else [value]
    if len(found) != len(names):
        raise InputError(f"{what} returned {len(found)} numbers; expected {len(names)}: {', '.join(names)}.")
    for name, x in zip(names, found, strict=True):
        if isinstance(x, (int, float, np.number)) and not np.isfinite(x):
            raise InputError(f'{what} returned {x} for "{name}"; expected finite numbers.')
        if isinstance(x, (list, tuple, str, np.ndarray)) and np.ndim(x):
            raise InputError(f'{what} returned {x!r} for "{name}"; expected one number.')
    return found
