"""Durations, counts and rates that users give: one check for each, and how much work one call may be.

Whatever takes seconds, steps, periods a second or a number of things calls these functions: runs, steppers, drives,
fits, studies, gradients, exports and commands. A value that passes is a plain number that can be computed with. The
bounds on work are far above what anybody waits for: whoever meets one has mistaken a unit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bellcrank.errors import InputError, brief
from bellcrank.scalar import is_real, is_whole

LONGEST_SECONDS = 1e12  # 32,000 years
MOST_STEPS = 1e12  # of one run, which Ctrl-C ends: at 10 ns for a step, three hours
MOST_STEPS_AT_ONCE = 1e8  # of a call that nothing ends: an action of a stepper, a step of an FMU or of WebAssembly
MOST_STEPS_OF_DATA = 1e8  # of an experiment that is run again and again: 28 hours of 1 ms
MOST_SAMPLES = 1e7  # of a motion that is made here
MOST_COUNT = 10**12
FASTEST = 1e9  # events a second


def positive(name: str, value: Any, unit: str) -> float:
    """Return a number above zero that is finite; unit: what the message says behind "expected a number above zero"."""
    if not _is_number(value) or not (math.isfinite(x := _float(value)) and x > 0.0):
        raise InputError(f"{name} is {brief(value)}; expected a number above zero{unit}.")
    return x


def duration(name: str, value: Any) -> float:
    """Return a duration in seconds: above zero, at most LONGEST_SECONDS."""
    x = positive(name, value, ", in seconds")
    if x > LONGEST_SECONDS:
        raise InputError(f"{name} is {x:g} s; expected at most {LONGEST_SECONDS:g} s. Is it in seconds?")
    return x


def delay(name: str, value: Any) -> float:
    """Return a duration that may also be zero."""
    if _is_number(value) and _float(value) == 0.0:
        return 0.0
    if not _is_number(value) or not _float(value) > 0.0:
        raise InputError(f"{name} is {brief(value)}; expected seconds from 0.")
    return duration(name, value)


def rate(name: str, value: Any, what: str = "Hz", least: float = 0.0, most: float = FASTEST) -> float:
    """Return a rate above zero, between `least` and `most`; what: its unit, "Hz" or "periods a second"."""
    x = positive(name, value, f", in {what}" if what == "Hz" else f", {what}")
    if not least <= x <= most:
        raise InputError(f"{name} is {x:g}; expected {least:g} to {most:g} {what}.")
    return x


def count(name: str, value: Any, most: float = MOST_COUNT, of: str = "") -> int:
    """Return a whole number from 1, at most `most`; of: what is counted, for the message (" of periods")."""
    if not is_whole(value) or value < 1:
        raise InputError(f"{name} is {brief(value)}; expected a whole number{of} from 1.")
    number = int(value)
    if number > most:
        raise InputError(f"{name} is {brief(value)}; expected at most {most:.0f}.")
    return number


def whole(name: str, total: float, part: float, of: str, most: float = MOST_STEPS) -> int:
    """Return total / part, which must be a whole number and at most `most`."""
    if not abs(total / part) <= most:
        raise InputError(
            f"{name} is {total:g} s, and the {of} of {part:g} s is too short for that: {total / part:g} of them; "
            f"expected at most {most:g}."
        )
    n = round(total / part)
    if n < 1 or abs(n * part - total) > 1e-6 * part:
        near = max(1, n)
        raise InputError(
            f"{name} is {total:g} s, which is {total / part:.6g} times the {of} of {part:g} s; expected a whole "
            f"number. Take {name} {near * part:.12g} or a {of} of {total / near:.12g}."
        )
    return n


def check_work(name: str, total: float, part: float, most: float = MOST_STEPS) -> None:
    """Raise an InputError where so many seconds of such steps are more than one call may do."""
    if not total / part <= most:
        raise InputError(
            f"{name} is {total:g} s, which takes {total / part:.3g} steps of {part:g} s; expected at most {most:g}. "
            "Is it in seconds?"
        )


def steps_of(total: float, part: float) -> float:
    """Return total / part, whole where rounding alone kept it from being whole; at most 1e15, which no run has."""
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
