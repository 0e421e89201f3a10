"""Calls of user functions while they are traced: reports of their errors, and a check that they are pure.

An error names the function and the failing line. A traced function must depend on its arguments alone: a random number,
a clock or a counter inside it would become a constant of the compiled code. Such a function is called a second time on
the same symbols: equal expressions are the same nodes of a tape, so results can be compared. The first call has
advanced generators and counters, and time has passed. A rounded clock (to a day, for example) is not detected.
"""

from __future__ import annotations

import copy
import functools
import linecache
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import bellcrank.errors
from bellcrank.errors import InputError, TraceError, brief
from bellcrank.graph.graph import Graph, structure
from bellcrank.nodes.node import Node

PACKAGE_FOLDER = str(Path(bellcrank.errors.__file__).resolve().parent) + os.sep
TRACED_ONCE = "This function runs once, on symbols, and is compiled."
ADVICE = (
    f"{TRACED_ONCE} Write where(condition, a, b), minimum, maximum, clip and the functions of bellcrank.scalar (sin, "
    "sqrt, tanh, ...) for values that depend on a state; if and for may depend on the model only."
)
# Errors of code that expects a number and gets a symbol.
SYMBOL_ERRORS = (TypeError, ValueError, AttributeError, IndexError, KeyError)
MAX_LINE_CHARACTERS = 100  # characters of a source line in a message
MAX_CHECKED_SECONDS = 2.0  # s; a function that takes longer to trace is not called again
OUR_PACKAGE = __name__.partition(".")[0]


@contextmanager
def while_traced(what: str) -> Iterator[None]:
    """Report errors inside the user function with the name `what`."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{what}, while it was traced: {_location_text(error)}{error}") from error
    except Exception as error:  # the user's function may raise anything
        raise TraceError(f"{what}, while it was traced: {_location_text(error)}{_error_text(error)}") from error


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


def call_checked_pure(what: str, function: Any, call: Callable[..., Any], *arguments: Any) -> Any:
    """Return call(*arguments), where `call` calls a user function; raise TraceError if it is not pure.

    Parameters
    ----------
    what
        Name of the function, for messages.
    function
        The user function itself.
    call
        Calls it.
    arguments
        Arguments of `call`.
    """
    argument_copies, began = [_copied(x) for x in arguments], time.perf_counter()
    with while_traced(what):
        first = call(*arguments)
    if _is_ours(function) or time.perf_counter() - began > MAX_CHECKED_SECONDS:
        return first
    with while_traced(what):
        second = call(*argument_copies)
    difference = _difference(first, second)
    if difference is not None:
        raise TraceError(
            f"{what}{_definition_text(function)} returns a different result each time it is called: "
            f"{_result_text(difference[0])}, then {_result_text(difference[1])}. It is traced once on symbols and the "
            "result is compiled, so a random number, a clock or a counter in it would become a constant. Draw random "
            "numbers before and pass them as inputs or free parameters (bellcrank.parameter); t is the time; declare "
            "memory between calls (self.last = q[0]) as a state (states=...); a stepper draws start states by "
            "start=function(random)."
        )
    return first


def _is_ours(function: Any) -> bool:
    """Return true if a function belongs to this package, whose tests check that it is pure."""
    while isinstance(function, functools.partial):
        function = function.func
    owner = function if hasattr(function, "__code__") or isinstance(function, type) else type(function)
    owner = getattr(function, "__func__", owner)
    return str(getattr(owner, "__module__", "")).partition(".")[0] == OUR_PACKAGE


def _copied(x: Any) -> Any:
    """Copy an argument that a call may change: an array, a list, or an object that counts how often it was used."""
    if isinstance(x, Node | float | int | str):
        return x
    if isinstance(x, Mapping):
        return {key: _copied(value) for key, value in x.items()}
    return copy.copy(x)


def _definition_text(function: Any) -> str:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code is not None else ""


def _result_text(x: Any) -> str:
    return "an expression" if isinstance(x, Node | Graph) else brief(x)


def _difference(a: Any, b: Any) -> tuple[Any, Any] | None:
    """Return the first two parts of two results that differ."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return _first_difference([(a.get(key), b.get(key)) for key in {**a, **b}])
    if _is_list(a) and _is_list(b):
        return _first_difference(list(zip(a, b, strict=True))) if len(a) == len(b) else (a, b)
    return _value_difference(a, b)


def _is_list(x: Any) -> bool:
    return x.ndim > 0 if isinstance(x, np.ndarray) else isinstance(x, list | tuple)


def _first_difference(pairs: Sequence[tuple[Any, Any]]) -> tuple[Any, Any] | None:
    return next((difference for a, b in pairs if (difference := _difference(a, b)) is not None), None)


def _value_difference(a: Any, b: Any) -> tuple[Any, Any] | None:
    """Compare two single values; the caller rejects values that are neither numbers nor expressions."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape == ():
        a, b = a[()], b[()]
    if isinstance(a, Node) and isinstance(b, Node):
        return _expression_difference(a, b)
    numbers = float, int, np.integer, np.floating, Node
    if isinstance(a, numbers) and isinstance(b, numbers) and not isinstance(a, Node) and not isinstance(b, Node):
        return None if a == b or (a != a and b != b) else (a, b)
    return (a, b) if isinstance(a, numbers) or isinstance(b, numbers) else None


def _expression_difference(a: Node, b: Node) -> tuple[Any, Any] | None:
    """Compare two expressions: they are one node unless they differ or call graphs that were created twice."""
    pairs: list[tuple[Any, Any]] = [(a, b)]
    seen: set[tuple[int, int]] = set()
    while pairs:
        x, y = pairs.pop()
        if x is y:
            continue
        if isinstance(x, Node) and isinstance(y, Node) and x.op == y.op and len(x.args) == len(y.args):
            if (x.serial, y.serial) not in seen:
                seen.add((x.serial, y.serial))
                pairs += zip(x.args, y.args, strict=True)
        elif isinstance(x, Graph) and isinstance(y, Graph):
            if structure(x) != structure(y):
                return x, y
        elif x != y:
            return x, y
    return None
