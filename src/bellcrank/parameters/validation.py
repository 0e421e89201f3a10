"""Validation of the numbers of parts of a system: each must be finite, or a free parameter.

Parts are dataclasses whose annotations describe what they expect, so one function checks them all, including those of
users. A part checks further conditions (a stiffness above zero) with `check_range` on creation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

import numpy as np

from bellcrank.errors import InputError, brief
from bellcrank.scalar import is_real, is_scalar, is_whole

NUMERIC_ANNOTATIONS = ("Scalar", "float", "Six")  # words in annotations that mean numbers
SCALAR_ANNOTATIONS = ("Scalar", "float")
OTHER_ANNOTATIONS = ("Callable", "Mapping", "|", "str", "Array")

NON_NUMBER_TYPES = (Sequence, np.generic, np.ndarray)


def check_numbers(part: Any, called: str) -> None:
    """Raise an InputError for a field that is not a number; convert numpy scalars to Python numbers.

    Parameters
    ----------
    part
        Any object; only dataclasses are checked.
    called
        Description of the part within the system.
    """
    if not is_dataclass(part) or isinstance(part, type):
        return
    where = f"{type(part).__name__} ({called})"
    for field in fields(part):
        value = getattr(part, field.name, None)
        if field.type == "str" and not isinstance(value, str):
            raise InputError(f"{where}: {field.name} is {brief(value)}; expected a name, a str.")
        if _is_numeric(field):
            _numbers(where, field, value)
            # With numpy scalars the arithmetic of the part could be rounded to 24 bits, or wrap around.
            if (plain := _python_number(value)) is not value:
                object.__setattr__(part, field.name, plain)
        elif isinstance(value, tuple):
            for x in value:
                check_numbers(x, called)
        else:
            check_numbers(value, called)


def check_range(part: Any, where: str, names: Iterable[str], above_zero: bool = False) -> None:
    """Raise InputError unless all known numbers of some fields are at least zero, or above zero.

    Parameters
    ----------
    part
        The dataclass instance.
    where
        Start of the message.
    names
        Names of the fields.
    above_zero
        Require numbers above zero.
    """
    for name in names:
        value = getattr(part, name)
        for x in _field_numbers(part, where, name):
            if is_real(x) and not (float(x) > 0.0 if above_zero else float(x) >= 0.0):
                expected = "above zero" if above_zero else "zero or more"
                raise InputError(f"{where}: {name} is {brief(value)}; expected {expected}.")


def check_order(part: Any, where: str, lower: str, upper: str) -> None:
    """Raise InputError unless one field is below another, as far as the numbers are known; triples elementwise.

    Parameters
    ----------
    part
        The dataclass instance.
    where
        Start of the message.
    lower
        Name of the field with the lower number.
    upper
        Name of the field with the upper number.
    """
    for low, high in zip(*(_field_numbers(part, where, name) for name in (lower, upper)), strict=True):
        if is_real(low) and is_real(high) and not low < high:
            raise InputError(
                f"{where}: {lower} is {brief(getattr(part, lower))} and {upper} {brief(getattr(part, upper))}; "
                f"expected {lower} below {upper}."
            )


def one_number(where: str, name: str, x: Any) -> float:
    """Return an argument as a float; raise InputError unless it is a finite number.

    Parameters
    ----------
    where
        Start of the message.
    name
        Name of the argument.
    x
        Its value.
    """
    if not is_real(x) or not _finite(x):
        raise InputError(f"{where}: {name} is {brief(x)}; expected a finite number.")
    return float(x)


def _is_numeric(field: Field[Any]) -> bool:
    annotation = str(field.type)
    return any(word in annotation for word in NUMERIC_ANNOTATIONS) and not any(
        word in annotation for word in OTHER_ANNOTATIONS
    )


def _field_numbers(part: Any, where: str, name: str) -> list[Any]:
    return _numbers(where, next(field for field in fields(part) if field.name == name), getattr(part, name))


def _numbers(where: str, field: Field[Any], value: Any) -> list[Any]:
    """Return all numbers in a field, each checked."""
    numbers = [value] if field.type in SCALAR_ANNOTATIONS else list(_leaves(value))
    for x in numbers:
        _check(where, field, x)
    return numbers


def _python_number(value: Any) -> Any:
    """Return the value with each number as a float or an int; the same object if it has no other numbers."""
    if is_real(value) and type(value) not in (float, int):
        return int(value) if is_whole(value) else float(value)
    if type(value) not in (tuple, list):
        return value
    items = [_python_number(x) for x in value]
    return value if all(new is old for new, old in zip(items, value, strict=True)) else type(value)(items)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for x in value:
            yield from _leaves(x)
    else:
        yield value


def _check(where: str, field: Field[Any], x: Any) -> None:
    """Check one number; infinity is allowed only if it is the default of the field."""
    number = is_real(x)
    if not number and (isinstance(x, NON_NUMBER_TYPES) or not is_scalar(x)):
        raise InputError(f"{where}: {field.name} is {brief(x)}; expected a number.")
    infinite_by_default = field.default is not MISSING and field.default in (math.inf, -math.inf)
    if number and not _finite(x) and not (infinite_by_default and x in (math.inf, -math.inf)):
        raise InputError(f"{where}: {field.name} is {brief(x)}; expected a finite number.")


def _finite(x: Any) -> bool:
    try:
        return math.isfinite(x)
    except OverflowError:  # the integer exceeds the range of a float
        return False
