"""Checks of durations, counts and rates that users give, and limits on the work of one call.

Runs, steppers, drives, fits, studies, gradients, exports and commands that accept seconds, steps, periods a second or a
number of items call these functions. A value that passes is a plain number that can be computed with. The limits on
work are far above any useful run: exceeding one means a mistaken unit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bellcrank.errors import InputError, brief
from bellcrank.scalar import is_real, is_whole

MAX_SECONDS = 1e12  # 32,000 years
MAX_STEPS = 1e12  # steps of one run, which Ctrl-C ends: three hours at 10 ns per step
MAX_STEPS_PER_CALL = 1e8  # steps of a call that cannot be interrupted: an action of a stepper, an FMU or WebAssembly
MAX_EXPERIMENT_STEPS = 1e8  # steps of an experiment that is simulated many times: 28 hours at 1 ms
MAX_SAMPLES = 1e7  # samples of a generated motion
MAX_COUNT = 10**12
MAX_RATE_HZ = 1e9  # events a second


def positive(name: str, value: Any, unit: str) -> float:
    """Return `value`, a finite number above zero; `name` and `unit` appear in the message of the error."""
    if not _is_number(value) or not (math.isfinite(x := _float(value)) and x > 0.0):
        raise InputError(f"{name} is {brief(value)}; expected a number above zero{unit}.")
    return x


def duration(name: str, value: Any) -> float:
    """Return `value`, a duration in seconds above zero and at most MAX_SECONDS; `name` is its name in the error."""
    x = positive(name, value, ", in seconds")
    if x > MAX_SECONDS:
        raise InputError(f"{name} is {x:g} s; expected at most {MAX_SECONDS:g} s. Is it in seconds?")
    return x


def delay(name: str, value: Any) -> float:
    """Return `value`, a duration in seconds that may also be zero; `name` is its name in the error."""
    if _is_number(value) and _float(value) == 0.0:
        return 0.0
    if not _is_number(value) or not _float(value) > 0.0:
        raise InputError(f"{name} is {brief(value)}; expected seconds from 0.")
    return duration(name, value)


def rate(name: str, value: Any, unit: str = "Hz", least: float = 0.0, most: float = MAX_RATE_HZ) -> float:
    """Return a rate above zero, between `least` and `most`.

    Parameters
    ----------
    name
        Name of the argument in the error.
    value
        The rate that the user gave.
    unit
        Unit: "Hz" or "periods a second".
    least
        Smallest rate that is accepted.
    most
        Largest rate that is accepted.
    """
    x = positive(name, value, f", in {unit}" if unit == "Hz" else f", {unit}")
    if not least <= x <= most:
        raise InputError(f"{name} is {x:g}; expected {least:g} to {most:g} {unit}.")
    return x


def count(name: str, value: Any, most: float = MAX_COUNT, items: str = "") -> int:
    """Return a whole number from 1 to `most`.

    Parameters
    ----------
    name
        Name of the argument in the error.
    value
        The number that the user gave.
    most
        Largest number that is accepted.
    items
        The counted items, for the message (" of periods").
    """
    if not is_whole(value) or value < 1:
        raise InputError(f"{name} is {brief(value)}; expected a whole number{items} from 1.")
    number = int(value)
    if number > most:
        raise InputError(f"{name} is {brief(value)}; expected at most {most:.0f}.")
    return number


def whole_multiple(name: str, total: float, part: float, part_name: str, most: float = MAX_STEPS) -> int:
    """Return total / part, which must be a whole number.

    Parameters
    ----------
    name
        Name of the total in the error.
    total
        Duration, s.
    part
        Duration of one part, s.
    part_name
        Name of the part in the error.
    most
        Largest quotient that is accepted.
    """
    if not abs(total / part) <= most:
        raise InputError(
            f"{name} is {total:g} s, and the {part_name} of {part:g} s is too short for that: it takes "
            f"{total / part:g} of them; expected at most {most:g}."
        )
    n = round(total / part)
    if n < 1 or abs(n * part - total) > 1e-6 * part:
        near = max(1, n)
        raise InputError(
            f"{name} is {total:g} s, which is {total / part:.6g} times the {part_name} of {part:g} s; expected a whole "
            f"number. Take {name} {near * part:.12g} or a {part_name} of {total / near:.12g}."
        )
    return n


def check_work(name: str, total: float, part: float, most: float = MAX_STEPS) -> None:
    """Raise an InputError if `total` seconds take more than `most` steps of `part` seconds; `name` is its name."""
    if not total / part <= most:
        raise InputError(
            f"{name} is {total:g} s, which takes {total / part:.3g} steps of {part:g} s; expected at most {most:g}. "
            "Is it in seconds?"
        )


def step_count(total: float, part: float) -> float:
    """Return total / part, rounded where it is whole except for rounding errors.

    `total` and `part` are in seconds. The result is at most 1e15, more than any run has.
    """
    n = min(total / part, 1e15)
    return float(round(n)) if abs(n - round(n)) <= 1e-9 * n else n


def _is_number(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iuf" and not np.ma.is_masked(value)
    return is_real(value)


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
