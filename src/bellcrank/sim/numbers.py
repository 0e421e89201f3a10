"""The numbers that parts of a system were given: each is a finite number, or one that is left free.

Parts are dataclasses, and their annotations say what they expect. So this is one place for all of them, also for those
of other people; what a part demands besides (a stiffness above zero) it checks itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from numbers import Real
from typing import Any

import numpy as np

from bellcrank.errors import InputError, brief

NUMERIC = ("Scalar", "float", "Six")  # words of annotations that mean numbers
SINGLE = ("Scalar", "float")
OTHER = ("Callable", "Mapping", "|", "str", "Array")

NEVER = (str, bytes, dict, list, tuple, bool, np.bool_, np.ndarray)


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
            for x in (value,) if field.type in SINGLE else _leaves(value):
                _check(where, field, x)
        elif isinstance(value, tuple):
            for x in value:
                check_numbers(x, called)
        else:
            check_numbers(value, called)


def _numeric(field: Field[Any]) -> bool:
    said = str(field.type)
    return any(word in said for word in NUMERIC) and not any(word in said for word in OTHER)


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
    if number and not _finite(x) and not (field.default is not MISSING and field.default in (math.inf, -math.inf)):
        raise InputError(f"{where}: {field.name} is {brief(x)}; expected a finite number.")


def _finite(x: Any) -> bool:
    try:
        return math.isfinite(x)
    except OverflowError:  # an integer that no float can hold
        return False
