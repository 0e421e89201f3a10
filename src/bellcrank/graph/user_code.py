"""Error reports for user functions during tracing: the message names the function and the failing line."""

from __future__ import annotations

import linecache
import os
import traceback
from pathlib import Path
from typing import Any

import bellcrank.errors
from bellcrank.errors import InputError, TraceError

OURS = str(Path(bellcrank.errors.__file__).resolve().parent) + os.sep
ONCE = "This function runs once, on symbols, and is compiled."
ADVICE = (
    f"{ONCE} Write where(condition, a, b), minimum, maximum, clip and the functions of bellcrank.scalar (sin, sqrt, "
    "tanh, ...) for values that depend on a state; if and for may depend on the model only."
)
PUZZLING = (
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    KeyError,
)  # errors of code that expects a number and gets a symbol
LONG = 100  # characters of a source line in a message


class while_traced:
    """Context manager that reports errors inside a user function."""

    def __init__(self, what: str) -> None:
        """Store the name of the user function, `what`, for messages."""
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if isinstance(error, InputError):
            raise InputError(f"{self.what}, while it was traced: {_where(error)}{error}") from error
        if isinstance(error, Exception):  # the user's function may raise anything
            raise TraceError(f"{self.what}, while it was traced: {_where(error)}{_said(error)}") from error


def _where(error: BaseException) -> str:
    """Return the last traceback line outside of bellcrank and numpy."""
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
        return f"RecursionError: {error}. {ONCE} A condition on the state cannot end a recursion: write a loop."
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{said}. {ADVICE if isinstance(error, PUZZLING) else ONCE}"
