"""Invalid parts that are given to `mechanism_of` directly raise an error, even where a reader forgot a check."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bellcrank.errors import InputError, ModelError
from bellcrank.model import Body, Frame, Joint, Limits, Mimic, mechanism_of
from bellcrank.model.parts import matrix

I = matrix(np.eye(3))
Y = Body("y", 1.0)
BALL = Joint("a", "spherical", "ground", "x")


def pair(**changed: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "bodies": [Body("x", 1.0, inertia=I), Body("y", 1.0, inertia=I)],
        "joints": [Joint("a", "revolute", "ground", "x"), Joint("b", "revolute", "x", "y")],
    }
    return parts | changed


def bodies(*moments: float) -> list[Body]:
    return [Body("x", 1.0, inertia=matrix(np.diag(moments))), Y]


def joints(**b: Any) -> list[Joint]:
    return [
        Joint("a", "revolute", "ground", "x"),
        Joint(**({"name": "b", "kind": "revolute", "parent": "x", "child": "y"} | b)),
    ]


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "two bodies of one name": (pair(bodies=[Body("x", 1.0), Body("x", 1.0)]), 'body name "x" is used twice'),
    "a body called ground": (pair(bodies=[Body("x", 1.0), Body("ground", 1.0)]), "used twice"),
    "an empty name": (pair(bodies=[Body("", 1.0)]), "empty name"),
    "two joints of one name": (pair(joints=joints(name="a")), 'joint name "a" is used twice'),
    "an unknown body": (pair(joints=joints(parent="z")), 'joint "b": There is no body "z"'),
    "an unknown kind": (pair(joints=joints(kind="hinge")), 'no joint type "hinge"'),
    "a closed loop": (pair(joints=[*joints(), Joint("c", "revolute", "ground", "y")]), 'of two joints, "b" and "c"'),
    "the ground as a child": (pair(joints=joints(child="ground")), "the ground can only be a parent"),
    "a circle": (pair(joints=[Joint("a", "revolute", "y", "x"), *joints()[1:]]), "closes on itself"),
    "a body in the air": (pair(joints=joints()[:1]), 'body "y" has no joint'),
    "nan in a mass": (pair(bodies=[Body("x", math.nan), Y]), 'body "x": mass is nan'),
    "a mass beyond all measure": (pair(bodies=[Body("x", 1e300), Y]), "mass is 1e.300; expected finite numbers"),
    "nan in a centre": (pair(bodies=[Body("x", 1.0, (0, math.nan, 0)), Y]), "centre of mass"),
    "a negative mass": (pair(bodies=[Body("x", -1.0), Y]), "mass is -1 kg; expected .*Correct it, or leave"),
    "a moving body of no mass": (pair(bodies=[Body("x", 0.0), Y]), 'moves on joint "a" but its mass is 0 kg'),
    "a skewed inertia": (pair(bodies=[Body("x", 1.0, inertia=((1, 1, 0), (0, 1, 0), (0, 0, 1))), Y]), "symm"),
    "a negative moment": (pair(bodies=bodies(1, 1, -1)), "definite"),
    "no triangle": (pair(bodies=bodies(1, 1, 3)), "triangle"),
    "nan in a point": (pair(joints=joints(point=(math.inf, 0, 0))), "finite"),
    "a rotation that is none": (pair(joints=joints(rotation=matrix(2 * np.eye(3)))), "not a rotation matrix"),
    "a zero axis": (pair(joints=joints(axis=(0, 0, 0))), "no direction. Give the direction"),
    "friction below zero": (pair(joints=joints(friction=-1.0)), "friction is -1"),
    "no friction speed": (pair(joints=joints(friction_speed=0.0)), "friction_speed is 0"),
    "swapped limits": (pair(joints=joints(limits=Limits(1.0, -1.0))), "swap them"),
    "a circle of mimics": (
        pair(joints=[Joint("a", "revolute", "ground", "x", mimic=Mimic("b")), *joints(mimic=Mimic("a"))[1:]]),
        "mimics itself",
    ),
    "a mimic of a ball": (pair(joints=[BALL, *joints(mimic=Mimic("a"))[1:]]), "one coordinate"),
    "nan in a mimic": (pair(joints=joints(mimic=Mimic("a", math.nan))), "mimic"),
    "a frame on nothing": (pair(frames=[Frame("f", "z")]), 'frame "f": There is no body "z"'),
    "a frame with another body's name": (pair(frames=[Frame("y", "x")]), 'frame "y" on "x": a body has this name'),
    "a frame called ground": (pair(frames=[Frame("ground", "x")]), "already a frame of its own name. Rename"),
    "nan in a frame": (pair(frames=[Frame("f", "x", point=(0, 0, math.nan))]), 'frame "f"'),
    "gravity of two numbers": (pair(gravity=(0, 0)), "gravity is \\(0, 0\\)"),
    "gravity nan": (pair(gravity=(0, 0, math.nan)), "gravity"),
    "unknown checks": (pair(checks="maybe"), 'expected "error" or "warn"'),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_parts_that_cannot_be(case: str) -> None:
    parts, message = CASES[case]
    with pytest.raises(ModelError, match=message):
        mechanism_of("m", **parts)


def test_warn_accepts_only_impossible_inertias() -> None:
    m = mechanism_of("m", **pair(bodies=bodies(1, 1, 3), checks="warn"))
    (warning,) = m.report.warnings
    assert warning.element == 'body "x"'
    assert 'body "x"' not in warning.outcome
    assert "check=" not in warning.outcome
    for mass in (-1.0, math.nan):
        with pytest.raises(ModelError, match="mass"):
            mechanism_of("m", **pair(bodies=[Body("x", mass), Y], checks="warn"))
    with pytest.raises(ModelError, match="symmetric"):
        mechanism_of("m", **CASES["a skewed inertia"][0], checks="warn")


def test_many_warnings_are_one_with_the_worst_and_all_are_in_the_report() -> None:
    odd = [Body(name, 1.0, inertia=matrix(np.diag([1, 1, 2 + k]))) for k, name in enumerate("wxy", 1)]
    chain = [Joint(a + b, "spherical", a, b) for a, b in (("ground", "w"), ("w", "x"), ("x", "y"))]
    m = mechanism_of("m", odd, chain, checks="warn")
    (warning,) = m.report.warnings
    assert warning.element == "3 bodies"
    assert 'The worst: body "y", principal moments (1, 1, 5)' in warning.outcome
    notes = [line.element for line in m.report.lines if "triangle" in line.outcome and line.level == "note"]
    assert notes == ['body "y"', 'body "x"', 'body "w"']


def test_long_axes_are_normalised_with_a_note() -> None:
    m = mechanism_of("m", **pair(joints=joints(axis=(0, 3, 4))))
    assert m.joints[1].axis == (0.0, 0.6, 0.8)
    assert any("axis has length 5; normalised" in line.outcome for line in m.report.lines if line.level == "note")


def test_dirt_is_not_an_inertia() -> None:
    """Rounding residues in an inertia are accepted: exporters write moments like -2e-35 for zero."""
    m = mechanism_of("m", **pair(bodies=bodies(-2e-35, 0, 2e-35)))
    assert m.report.warnings == ()


def test_rounded_inertias_are_taken_with_a_warning() -> None:
    m = mechanism_of("m", **pair(bodies=bodies(1, 1, 2.001)))
    assert "triangle inequality by 1.0e-03" in m.report.warnings[0].outcome


def test_unknown_frames() -> None:
    with pytest.raises(InputError, match=r'no frame "xx"\. Did you mean "x"'):
        mechanism_of("m", **pair()).frame("xx")
