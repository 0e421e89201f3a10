"""Numbers that people give, or a word about what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.errors import InputError, brief
from bellcrank.quoting import refused

Array = np.ndarray[Any, Any]
MOST_STEPS = 1e15  # steps that can be told apart


def positive(name: str, value: Any, unit: str = ", in seconds") -> float:
    try:
        x = float(value)
    except (TypeError, ValueError, OverflowError):
        x = math.nan
    if not (x > 0 and math.isfinite(x)):
        raise InputError(f"{name} is {brief(value)}; expected a number above zero{unit}.")
    return x


def whole(name: str, total: float, part: float, of: str) -> int:
    """total / part, which must be a whole number."""
    if not abs(total / part) < MOST_STEPS:
        raise InputError(
            f"{name} is {total:g} s, and the {of} of {part:g} s is too short for that: {total / part:g} of them."
        )
    n = round(total / part)
    if n < 1 or abs(n * part - total) > 1e-6 * part:
        near = max(1, n)
        raise InputError(
            f"{name} is {total:g} s, which is {total / part:.6g} times the {of} of {part:g} s; expected a whole "
            f"number. Take {name} {near * part:.12g} or a {of} of {total / near:.12g}."
        )
    return n


def steps_of(total: float, part: float) -> float:
    """total / part, and a whole number where rounding alone kept it from being one."""
    n = total / part
    if not n < MOST_STEPS:
        raise InputError(f"{total:g} s is {n:g} steps of {part:g} s; expected fewer than {MOST_STEPS:g}.")
    return float(round(n)) if abs(n - round(n)) <= 1e-9 * n else n


def listed(what: str, value: Any, of: str) -> tuple[Any, ...]:
    """What must be a list, and is easily given as one thing."""
    single = isinstance(value, np.ndarray) and value.ndim == 0
    if single or isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InputError(f"{what} is {brief(value)}; expected a list of {of}: {what}=[...].")
    return tuple(value)


def numbers(what: str, value: Any) -> Array:
    try:
        if np.iscomplexobj(value):
            raise TypeError
        array = np.asarray(value, float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is {brief(value)}; expected real numbers.") from None
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"{what}{list(at) if at else ''} is {array[at]}; expected finite numbers.")
    return array


def number(what: str, value: Any) -> float:
    array = numbers(what, value)
    if array.ndim:
        raise InputError(f"{what} is {brief(value)}; expected one number.")
    return float(array)


def unique(what: str, names: Sequence[str]) -> None:
    for name in names:
        if name == "":
            raise InputError(f"the name of the {what} is empty; expected one by which to find it.")
        if why := refused(name):
            raise InputError(f"the {what} {why}.")
    twice = sorted({n for n in names if list(names).count(n) > 1})
    if twice:
        raise InputError(f"there is more than one {what} called {', '.join(twice)}; names must differ.")


def many(what: str, value: Any) -> int:
    """A whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(f"{what} is {brief(value)}; expected a whole number from 1.")
    return int(value)
