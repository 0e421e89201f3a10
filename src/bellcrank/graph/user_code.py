"""Error reports for user functions during tracing: the message names the function and the failing line."""

from __future__ import annotations

import linecache
import os
import traceback
from pathlib import Path
from typing import Any

import bellcrank.errors
from bellcrank.errors import InputError, TraceError

PACKAGE_FOLDER = str(Path(bellcrank.errors.__file__).resolve().parent) + os.sep
TRACED_ONCE = "This function runs once, on symbols, and is compiled."
ADVICE = (
    f"{TRACED_ONCE} Write where(condition, a, b), minimum, maximum, clip and the functions of bellcrank.scalar (sin, "
    "sqrt, tanh, ...) for values that depend on a state; if and for may depend on the model only."
)
# Errors of code that expects a number and gets a symbol.
SYMBOL_ERRORS = (TypeError, ValueError, AttributeError, IndexError, KeyError)
MAX_LINE_CHARACTERS = 100  # characters of a source line in a message


class while_traced:
    """Context manager that reports errors inside a user function."""

    def __init__(self, what: str) -> None:
        """Store the name of the user function, `what`, for messages."""
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if isinstance(error, InputError):
            raise InputError(f"{self.what}, while it was traced: {_location_text(error)}{error}") from error
        if isinstance(error, Exception):  # the user's function may raise anything
            raise TraceError(
                f"{self.what}, while it was traced: {_location_text(error)}{_error_text(error)}"
            ) from error


def _location_text(error: BaseException) -> str:
    """Return the last traceback line outside of bellcrank and numpy."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(PACKAGE_FOLDER)]
    frames = [f for f in frames if "numpy" not in Path(f.filename).parts] or frames
    if not frames:
        return ""
    last = frames[-1]
    text = (last.line or linecache.getline(last.filename, last.lineno or 0)).strip()
    text = text if len(text) <= MAX_LINE_CHARACTERS else f"{text[:MAX_LINE_CHARACTERS]} ..."
    return f"{last.filename}, line {last.lineno}: {text}\n  " if text else f"{last.filename}, line {last.lineno}: "


def _error_text(error: BaseException) -> str:
    if isinstance(error, TraceError):
        return f"{error} {TRACED_ONCE}"
    if isinstance(error, RecursionError):
        return f"RecursionError: {error}. {TRACED_ONCE} A condition on the state cannot end a recursion: write a loop."
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{text}. {ADVICE if isinstance(error, SYMBOL_ERRORS) else TRACED_ONCE}"
