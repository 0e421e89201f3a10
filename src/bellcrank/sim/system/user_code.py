"""Calls of user functions during tracing, with errors that name the user's line and the remedy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.graph import Node
from bellcrank.graph.user_code import call_checked_pure
from bellcrank.nodes.ops import COMPARISONS
from bellcrank.scalar import Scalar


def call_user_function(what: str, function: Callable[..., Any], *args: Any, expected: str = "(t, q, v, x, u)") -> Any:
    """Return function(*args), or raise an error that states that it was being traced, and at which line.

    The function is called twice, to check that its result depends on its arguments only (graph/user_code.py).

    Parameters
    ----------
    what
        Description of the function, for messages.
    function
        The user's function.
    *args
        Its arguments.
    expected
        Its signature, for messages.
    """
    check_argument_count(what, function, len(args), expected)
    return call_checked_pure(what, function, function, *args)


def check_argument_count(what: str, function: Callable[..., Any], count: int, expected: str) -> None:
    """Raise an InputError if a function does not accept the given number of arguments.

    Parameters
    ----------
    what
        Description of the function, for messages.
    function
        The user's function.
    count
        Number of arguments.
    expected
        Its signature, for messages.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError, OverflowError):  # a function that is not written in Python may have no signature
        return
    try:
        signature.bind(*[None] * count)
    except TypeError:
        raise InputError(f"{what} takes {signature}; expected {count} arguments: {expected}.") from None


def named_scalars(what: str, value: Any, names: Sequence[str]) -> list[Scalar]:
    """Return one scalar for each name.

    Parameters
    ----------
    what
        Description of the function, for messages.
    value
        A list, an array, a mapping by name (missing names are 0), or one scalar.
    names
        Names of the expected numbers.
    """
    if isinstance(value, Mapping):
        for key in value:
            if key not in names:
                raise InputError(f"{what} returned a value with an unexpected name: {unknown('element', key, names)}")
        value = [value.get(name, 0.0) for name in names]
    if value is None:
        raise InputError(f"{what} returned nothing; expected {expected_numbers(names)}.")
    is_sequence = (isinstance(value, Sequence) and not isinstance(value, str)) or np.ndim(value) > 0
    scalars = list(value) if is_sequence else [value]
    if len(scalars) != len(names):
        raise InputError(f"{what} returned {len(scalars)} numbers; expected {expected_numbers(names)}.")
    for name, x in zip(names, scalars, strict=True):
        if isinstance(x, (int, float, np.number)) and not np.isfinite(x):
            raise InputError(f'{what} returned {x} for "{name}"; expected finite numbers.')
        if isinstance(x, Node) and x.op in COMPARISONS:
            raise InputError(
                f'{what} returned a comparison for "{name}"; expected a number: the difference of its two sides, or '
                "where(condition, 1.0, 0.0)."
            )
        non_scalars = (bool, np.bool_, complex, np.complexfloating, np.ndarray, Sequence, set)
        if not hasattr(x, "__sub__") or isinstance(x, non_scalars):
            raise InputError(f'{what} returned {x!r} for "{name}"; expected one real number.')
    return scalars


def expected_numbers(names: Sequence[str]) -> str:
    """Return the number of `names` and the names, as text."""
    return f"{len(names)} number{'' if len(names) == 1 else 's'}: {', '.join(names) or 'none'}"
