"""The one family of exceptions. A message says what, where, expected, got, what exists and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from bellcrank.quoting import shown, visible


class BellcrankError(Exception):
    """Base of every error bellcrank raises on purpose; the command line prints it without a traceback."""

    def __str__(self) -> str:
        """A message may quote a file: nothing in it steers the terminal."""
        return visible(super().__str__())


class ModelError(BellcrankError, ValueError):
    """A mechanism that cannot be: a bad mass, axis, name, topology."""


class ReadError(BellcrankError, ValueError):
    """A file that cannot be read: missing, malformed, hostile, or of an unknown kind."""


class InputError(BellcrankError, ValueError):
    """Arguments of a call that do not fit: names, shapes, dtypes, values that are not finite."""


class TraceError(BellcrankError, TypeError):
    """Python that cannot be traced: a branch on a value that is only known when the kernel runs."""


class CompileError(BellcrankError, RuntimeError):
    """Source that a target could not turn into code. Always a bug of ours; the message carries the text."""


def unknown(what: str, name: object, known: Iterable[object], meant: str = "") -> str:
    """'no joint "elbo"; did you mean "elbow"? There are: shoulder, elbow' - the tail of every lookup error.

    meant: what people mean who write that, where spelling does not tell.
    """
    names = [str(k) for k in known]
    close = [meant] if meant else get_close_matches(str(name), names, n=1)
    hint = f' Did you mean "{close[0]}"?' if close else ""
    listed = ", ".join(names[:30]) + (f", ... ({len(names)} in all)" if len(names) > 30 else "")
    return f"There is no {what} {shown(str(name), 200)}.{hint} Known: {listed or 'none'}."
