"""The numbers that parts of a system were given: each is a finite number, or one that is left free.

Parts are dataclasses, and their annotations say what they expect. So this is one place for all of them, also for those
of other people. What a part demands besides (a stiffness above zero) it says by `check_range` where it is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from numbers import Real
from typing import Any

import numpy as np

from bellcrank.errors import InputError, brief

NUMERIC = ("Scalar", "float", "Six")  # words of annotations that mean numbers
SINGLE = ("Scalar", "float")
OTHER = ("Callable", "Mapping", "|", "str", "Array")

NEVER = (str, bytes, dict, list, tuple, bool, np.bool_, np.ndarray, complex, type)


def check_numbers(part: Any, called: str) -> None:
    """part: anything; what is no dataclass is its owner's business. called: what it is in the system."""
    if not is_dataclass(part) or isinstance(part, type):
        return
    where = f"{type(part).__name__} ({called})"
    for field in fields(part):
        value = getattr(part, field.name, None)
        if field.type == "str" and not isinstance(value, str):
            raise InputError(f"{where}: {field.name} is {brief(value)}; expected a name, a str.")
        if _numeric(field):
            _numbers(where, field, value)
        elif isinstance(value, tuple):
            for x in value:
                check_numbers(x, called)
        else:
            check_numbers(value, called)


def check_range(part: Any, where: str, names: Iterable[str], above_zero: bool = False) -> None:
    """Each of these fields has numbers of at least zero (above it), as far as they are known now."""
    own = {field.name: field for field in fields(part)}
    for name in names:
        value = getattr(part, name)
        for x in _numbers(where, own[name], value):
            if isinstance(x, Real) and not (float(x) > 0.0 if above_zero else float(x) >= 0.0):
                expected = "above zero" if above_zero else "zero or more"
                raise InputError(f"{where}: {name} is {brief(value)}; expected {expected}.")


def check_order(part: Any, where: str, lower: str, upper: str) -> None:
    """Of these two fields the first is below the second, as far as they are known now; of triples, each of them."""
    own = {field.name: field for field in fields(part)}
    ends = [_numbers(where, own[name], getattr(part, name)) for name in (lower, upper)]
    for low, high in zip(*ends, strict=True):
        if isinstance(low, Real) and isinstance(high, Real) and not low < high:
            raise InputError(
                f"{where}: {lower} is {brief(getattr(part, lower))} and {upper} {brief(getattr(part, upper))}; "
                f"expected {lower} below {upper}."
            )


def one_number(where: str, name: str, x: Any) -> float:
    """A finite number that an argument must be."""
    if not isinstance(x, Real) or isinstance(x, bool | np.bool_) or not _finite(x):
        raise InputError(f"{where}: {name} is {brief(x)}; expected a finite number.")
    return float(x)


def _numeric(field: Field[Any]) -> bool:
    said = str(field.type)
    return any(word in said for word in NUMERIC) and not any(word in said for word in OTHER)


def _numbers(where: str, field: Field[Any], value: Any) -> list[Any]:
    """All that are in a field, each of them judged."""
    found = [value] if field.type in SINGLE else list(_leaves(value))
    for x in found:
        _check(where, field, x)
    return found


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for x in value:
            yield from _leaves(x)
    else:
        yield value


def _check(where: str, field: Field[Any], x: Any) -> None:
    """Numbers without end only where that is what the field has by itself."""
    number = isinstance(x, Real) and not isinstance(x, bool | np.bool_)
    if not number and (isinstance(x, NEVER) or not hasattr(x, "__mul__")):
        raise InputError(f"{where}: {field.name} is {brief(x)}; expected a number.")
    endless = field.default is not MISSING and field.default in (math.inf, -math.inf)
    if number and not _finite(x) and not (endless and x in (math.inf, -math.inf)):
        raise InputError(f"{where}: {field.name} is {brief(x)}; expected a finite number.")


def _finite(x: Any) -> bool:
    try:
        return math.isfinite(x)
    except OverflowError:  # an integer that no float can hold
        return False
