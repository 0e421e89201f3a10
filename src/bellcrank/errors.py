"""Exceptions of bellcrank; messages state what is wrong, where, what was expected and given, and what to do next."""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import ClassVar

from bellcrank.quoting import quoted_name, visible

PACKAGE_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
INNER_SOURCES = (PACKAGE_FOLDER, functools.__file__)  # a cached property calls the package through functools
MAX_WORD_CHARACTERS = 500  # characters of a word in a message; a path may be long


class BellcrankError(Exception):
    """Base of every error that bellcrank raises on purpose; the command line prints it without a traceback."""

    longest: ClassVar[int] = 2500

    def __str__(self) -> str:
        """Return the message without control characters, and with long words and long messages cut.

        A message may quote a file, which must neither control the terminal nor fill the screen.
        """
        text = visible(
            re.sub(rf"\S{{{MAX_WORD_CHARACTERS},}}", lambda m: f"{m[0][:100]}...{m[0][-20:]}", super().__str__())
        )
        return text if len(text) <= self.longest else f"{text[: self.longest - 600]} ... {text[-500:]}"


class ModelError(BellcrankError, ValueError):
    """A mechanism that is not possible: an invalid mass, axis, name or topology."""


class ReadError(BellcrankError, ValueError):
    """A file that cannot be read: missing, malformed, hostile, or of an unknown kind."""


class InputError(BellcrankError, ValueError):
    """Invalid arguments of a call: names, shapes, dtypes, values that are not finite."""


class TraceError(BellcrankError, TypeError):
    """Python code that cannot be traced: a branch on a value that is only known when the kernel runs."""


def warn(text: str, kind: type[Warning] = RuntimeWarning) -> None:
    """Issue a warning `text` of category `kind` that points to the caller's line outside of the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INNER_SOURCES):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level)


def warn_deprecated(old: str, new: str) -> None:
    """Issue a DeprecationWarning for the name `old`, which `new` replaces and which the next release removes."""
    warn(f"{old} is deprecated and will be removed in the next release; use {new}.", DeprecationWarning)


class CompileError(BellcrankError, RuntimeError):
    """Source that a target could not turn into code. Always a bug of bellcrank; the message contains the source."""

    longest = 10_000_000


def brief(value: object, max_length: int = 60) -> str:
    """Return the repr of any `value` cut to `max_length` characters, even if it is long, deep, circular or shared."""
    text = _brief(value, 3)
    return text if len(text) <= max_length else text[: max_length - 3] + "..."


def _brief(value: object, depth: int) -> str:
    if isinstance(value, str | bytes):
        return repr(value[:200])
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**20:
        return f"an integer of {value.bit_length()} bits"  # Python prints at most 4,300 digits
    if isinstance(value, dict):
        inside = ", ".join(f"{_brief(k, 0)}: {_brief(x, depth - 1)}" for k, x in list(value.items())[:6] if depth)
        return "{" + (inside if depth else "...") + "}"
    if isinstance(value, list | tuple | set | frozenset):
        first, last = {list: ("[", "]"), tuple: ("(", ")")}.get(type(value), ("{", "}"))
        return first + (", ".join(_brief(x, depth - 1) for x in list(value)[:6]) if depth else "...") + last
    return repr(value)[:200]


def unknown(what: str, name: object, known: Iterable[object], suggestion: str = "") -> str:
    """Return the text of a look-up error: what does not exist, a suggestion, and the known names.

    For example: There is no joint "elbo". Did you mean "elbow"? Known: shoulder, elbow.

    Parameters
    ----------
    what
        Kind of thing that was looked up.
    name
        The unknown name.
    known
        The names that exist.
    suggestion
        A suggestion, where the spelling does not give it.
    """
    names = [str(k) for k in known]
    given_name = name if isinstance(name, str) else brief(name)
    given_name = given_name if len(given_name) <= 200 else given_name[:197] + "..."
    close = [suggestion] if suggestion else get_close_matches(given_name, names[:5000], n=1)
    hint = f' Did you mean "{close[0]}"?' if close else ""
    listed = ", ".join(names[:30]) + (f", ... ({len(names)} in all)" if len(names) > 30 else "")
    return f"There is no {what} {quoted_name(given_name, 200)}.{hint} Known: {listed or 'none'}."


def check_known(
    what: str,
    name: object,
    known: Collection[object],
    where: str = "",
    error: type[BellcrankError] = InputError,
    advice: str = "",
) -> None:
    """Raise an `error` unless `name` is one of the `known` names.

    Parameters
    ----------
    what
        Kind of thing that was looked up.
    name
        The name.
    known
        The names that exist.
    where
        Beginning of the message.
    error
        Type of the error.
    advice
        End of the message.
    """
    if not isinstance(name, str) or name not in known:
        raise error(f"{f'{where}: ' if where else ''}{unknown(what, name, known)}{advice}")
