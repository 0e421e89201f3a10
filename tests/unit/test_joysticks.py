"""Two joysticks at once: the page's assignment of axes to levers, executed in Node, and that of a machine."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bellcrank.excavators.stick_machine import JOYSTICKS, PATTERNS

SOURCE = Path(__file__).parents[2] / "web/src/assignment.js"
AXES = ("left.x", "left.y", "right.x", "right.y")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="runs JavaScript")


def device(*values: float, standard: bool = False) -> dict[str, Any]:
    return {"values": [*values, *[0.0] * (4 - len(values))], "count": len(values), "standard": standard}


def combined(*cases: tuple[list[dict[str, Any]], Any, Any]) -> list[dict[str, float]]:
    """Return the axes of the sticks for cases of (devices, pattern, joysticks)."""
    script = f"const cases = {json.dumps(cases)};\n{SOURCE.read_text('utf-8')}\n"
    script += "console.log(JSON.stringify(cases.map(([d, p, j]) => combined(d, p, j ?? undefined))));"
    done = subprocess.run(["node", "--input-type=module"], input=script, capture_output=True, text=True, check=True)
    found: list[dict[str, float]] = json.loads(done.stdout)
    return found


def levers(axes: dict[str, float], pattern: Any) -> dict[str, float]:
    """Return the levers that the axes move: those of main.ts, without spans."""
    return {pattern[axis][0]: axes[axis] * pattern[axis][1] for axis in AXES}


@needs_node
def test_two_joysticks_are_the_two_sticks() -> None:
    pattern = PATTERNS["ISO"]["JOINT"]
    found, absent, single = combined(
        ([device(0.1, 0.2), device(0.3, 0.4)], pattern, None),
        ([], pattern, None),
        ([device(0.1, 0.2, 0.3, 0.4)], pattern, None),
    )
    assert found == {"left.x": 0.1, "left.y": 0.2, "right.x": 0.3, "right.y": 0.4}
    assert absent == dict.fromkeys(AXES, 0)
    assert list(single.values()) == [0.1, 0.2, 0.3, 0.4]


@needs_node
@pytest.mark.parametrize("pattern", PATTERNS)
def test_three_axes_and_one_axis_in_resolved_mode(pattern: str) -> None:
    """Wong 1991, section 5.3: radius, arc and height on one joystick, the bucket on the other, in either order."""
    axes, given = PATTERNS[pattern]["RESOLVED"], JOYSTICKS["RESOLVED"]
    large, small = device(0.25, 0.5, 0.75), device(-0.6)
    both_orders = combined(([large, small], axes, given), ([small, large], axes, given))
    for found in both_orders:
        assert levers(found, axes) == {"first": 0.5, "second": -0.25, "third": -0.75, "fourth": -0.6}
    (two_axes,) = combined(([large, device(0.9, -0.6)], axes, given))
    assert levers(two_axes, axes)["fourth"] == -0.6  # forward and back


@needs_node
def test_joysticks_with_two_axes_stay_sticks_in_resolved_mode() -> None:
    axes = PATTERNS["ISO"]["RESOLVED"]
    (found,) = combined(([device(0.1, 0.2), device(0.3, 0.4)], axes, JOYSTICKS["RESOLVED"]))
    assert list(found.values()) == [0.1, 0.2, 0.3, 0.4]


@needs_node
def test_standard_gamepad_has_both_sticks_beside_other_devices() -> None:
    pad = device(0.1, 0.2, 0.3, 0.4, standard=True)
    found, after = combined(([pad, device(0.9, 0.9), device(0.8, 0.8)], None, None), ([device(0.9), pad], None, None))
    assert list(found.values()) == list(after.values()) == [0.1, 0.2, 0.3, 0.4]


def test_joysticks_of_the_excavator_move_every_lever_once() -> None:
    for mode, given in JOYSTICKS.items():
        assigned = [lever for joystick in given for lever, _ in joystick]
        for pattern in PATTERNS.values():
            assert sorted(assigned) == sorted(lever for lever, _ in pattern[mode].values())
        assert [len(joystick) for joystick in given] == [3, 1]
