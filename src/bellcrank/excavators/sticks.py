"""Two sticks: which lever an axis moves in each mode and pattern, and what people call it."""

from __future__ import annotations

from bellcrank.cockpit.machines import Axes

# Which lever an axis moves, and which way: x to the right, y away from the operator. JOINT: cab, boom, stick, bucket.
JOINT: Axes = {
    "left.x": ("first", -1.0),  # left: the cab turns left
    "left.y": ("third", 1.0),  # away: stick out
    "right.x": ("fourth", 1.0),  # left: the bucket curls in
    "right.y": ("second", -1.0),  # away: boom down
}
# RESOLVED: radius, arc, height, bucket. The same hand does the same kind of thing.
RESOLVED: Axes = {
    "left.x": ("second", -1.0),
    "left.y": ("first", 1.0),
    "right.x": ("fourth", 1.0),
    "right.y": ("third", -1.0),
}
# What a lever is called, and what it does below and above zero.
WORDS = {
    "JOINT": {
        "first": ("swing", "right", "left"),
        "second": ("boom", "down", "up"),
        "third": ("stick", "in", "out"),
        "fourth": ("bucket", "curl", "open"),
    },
    "RESOLVED": {
        "first": ("teeth", "in", "out"),
        "second": ("swing", "right", "left"),
        "third": ("teeth", "down", "up"),
        "fourth": ("bucket", "curl", "open"),
    },
}


def _swapped(axes: Axes) -> Axes:
    """SAE: what the sticks do away from and towards the operator changes hands."""
    return {**axes, "left.y": axes["right.y"], "right.y": axes["left.y"]}


MODES = ("JOINT", "RESOLVED")
PATTERNS = {
    "ISO": {"JOINT": JOINT, "RESOLVED": RESOLVED},
    "SAE": {"JOINT": _swapped(JOINT), "RESOLVED": _swapped(RESOLVED)},
}
