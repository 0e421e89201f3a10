"""Assignment of two sticks to levers in each mode and pattern, and the labels of the levers."""

from __future__ import annotations

from bellcrank.cockpit.machines import Axes

# Lever and direction of each axis: x to the right, y away from the operator. JOINT_AXES: cab, boom, stick, bucket.
JOINT_AXES: Axes = {
    "left.x": ("first", -1.0),  # left: the cab turns left
    "left.y": ("third", 1.0),  # away: stick out
    "right.x": ("fourth", 1.0),  # left: the bucket curls in
    "right.y": ("second", -1.0),  # away: boom down
}
# RESOLVED_AXES: radius, arc, height, bucket. Each hand controls the same kind of motion as in JOINT.
RESOLVED_AXES: Axes = {
    "left.x": ("second", -1.0),
    "left.y": ("first", 1.0),
    "right.x": ("fourth", 1.0),
    "right.y": ("third", -1.0),
}
# Label of each lever, and its effect below and above zero.
LEVER_LABELS = {
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


def _sae_axes(axes: Axes) -> Axes:
    """Return the SAE pattern: forward and backward motions of the two sticks are exchanged."""
    return {**axes, "left.y": axes["right.y"], "right.y": axes["left.y"]}


MODES = ("JOINT", "RESOLVED")
PATTERNS = {
    "ISO": {"JOINT": JOINT_AXES, "RESOLVED": RESOLVED_AXES},
    "SAE": {"JOINT": _sae_axes(JOINT_AXES), "RESOLVED": _sae_axes(RESOLVED_AXES)},
}
