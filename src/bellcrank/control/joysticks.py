"""Two sticks in an operator's hands, and what they move: the ISO and the SAE pattern.

    stick          ISO                     SAE
    left, x        swing                   swing
    left, y        stick (away: out)       boom (away: down)
    right, x       bucket (left: curl)     bucket (left: curl)
    right, y       boom (away: down)       stick (away: out)

x is to the right, y away from the operator, each -1 ... 1. The result is in the order of the modes, with their signs:
swing to the left, boom up, stick out and bucket open are positive.

Source: ISO 10968:2020, Earth-moving machinery, operator's controls; the other pattern is SAE J1177.
"""

from __future__ import annotations

from bellcrank.errors import InputError, unknown
from bellcrank.scalar import Scalar

AXES = ("left_x", "left_y", "right_x", "right_y")
PATTERNS = {
    "ISO": {"swing": ("left_x", -1.0), "boom": ("right_y", -1.0), "stick": ("left_y", 1.0), "bucket": ("right_x", 1.0)},
    "SAE": {"swing": ("left_x", -1.0), "boom": ("left_y", -1.0), "stick": ("right_y", 1.0), "bucket": ("right_x", 1.0)},
}


def functions(pattern: str, left_x: Scalar, left_y: Scalar, right_x: Scalar, right_y: Scalar) -> list[Scalar]:
    """[swing, boom, stick, bucket], each -1 ... 1."""
    if pattern not in PATTERNS:
        raise InputError(unknown("pattern", pattern, PATTERNS))
    given = dict(zip(AXES, (left_x, left_y, right_x, right_y), strict=True))
    return [sign * given[axis] for axis, sign in PATTERNS[pattern].values()]
