"""Any mechanism with position sliders stays at rest without input, and each slider moves it there and back."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.cockpit import servos
from bellcrank.cockpit.machines import Machine, generic

FILES = Path(__file__).parents[1] / "unit/data"
TREES = (
    "pendulum",
    "planar3r",
    "puma600",
    "puma_saha",
    "stanford",
    "torso",
    "chain:8",
    "tree:12",
    "arm.urdf",
    "feller_buncher",
    "space_manipulator",
)
LOOPS = (
    "slider_fourbar",
    "four_bar",
    "n_four_bar",
    "parallel_cranks",
    "ring:5",
    "four_bars:2",
    "scissor:2",
    "andrews",
    "bricard",
    "double_wishbone",
    "track:8",
)
LARGE = ("stewart", "delta", "excavator_linkage", "walking_excavator")
SHARES = (-0.95, -0.4, 0.5, 0.95)  # of the distance to an end of a slider
SECONDS = 5.0


@cache
def driven(name: str) -> tuple[Machine, bc.Simulator]:
    m = bc.read(FILES / name) if name.endswith(".urdf") else bc.zoo.load(name)
    machine = generic(m)
    return machine, bc.Simulator(machine.system, machine.integrator)


def run(name: str, seconds: float, targets: Any, every: float = 0.05) -> bc.Record:
    """targets: (runs, levers, lines)."""
    machine, simulator = driven(name)
    inputs = {n: targets[:, i] for i, n in enumerate(machine.system.inputs)}
    return simulator.run(
        seconds, machine.start, step=1e-3, every=every, inputs=inputs, input_step=seconds / targets.shape[-1]
    )


def test_every_mechanism_of_the_zoo_is_here() -> None:
    """All except a falling one, one with a seed, three with sticks, and two that exist for their size."""
    known = {name.partition(":")[0] for name in (*TREES, *LOOPS, *LARGE)}
    assert set(bc.zoo.TABLE) - known == {
        "rod_pendulum",
        "random_tree",
        "excavator",
        "excavator_flexible",
        "rope",
        "tied_tree",
    }


@pytest.mark.parametrize("name", [*TREES, *LOOPS, *LARGE])
def test_machine_rests_without_input(name: str) -> None:
    """It rests for ten seconds against gravity and springs, for any stiffness and close to instability."""
    machine = driven(name)[0]
    found = run(name, 10.0, np.array(machine.first())[None, :, None])
    assert {s.reason for s in found.stops} == {"end"}
    assert np.abs(found.q - np.array(machine.start)).max() < 1e-6
    assert np.abs(found.v).max() < 1e-6


@pytest.mark.parametrize("name", [*TREES, *LOOPS, *LARGE])
def test_there_and_back(name: str) -> None:
    """Each slider alone moves to positions within its ends without oscillation, and back to the same state."""
    machine = driven(name)[0]
    first, places = np.array(machine.first()), []
    for i, lever in enumerate(machine.levers):
        for share in SHARES:
            place = first.copy()
            place[i] += share * (lever.high - first[i] if share > 0 else first[i] - lever.low)
            places.append(place)
    targets = np.stack([np.array(places), np.tile(first, (len(places), 1))], axis=-1)
    found = run(name, 2.0 * SECONDS, targets)
    assert {s.reason for s in found.stops} == {"end"}
    at = [machine.mechanism.columns[0].index(lever.name) for lever in machine.levers]
    middle = int(np.argmin(np.abs(np.asarray(found.t).reshape(-1, found.q.shape[-2])[0] - SECONDS)))
    np.testing.assert_allclose(found.q[:, middle][:, at], np.array(places), atol=0.02)
    np.testing.assert_allclose(found.q[:, -1], np.tile(machine.start, (len(places), 1)), atol=0.02)  # the same branch
    speeds = [abs(lever.high - lever.low) for lever in machine.levers]
    moving = [machine.mechanism.columns[1].index(lever.name) for lever in machine.levers]
    assert np.abs(found.v[..., moving]).max() < 2.0 * max(speeds)


@pytest.mark.parametrize("name", ["slider_fourbar", "puma600", "excavator_linkage", "delta", "stewart"])
def test_all_at_once_and_back(name: str) -> None:
    """All sliders move at the same time, to their ends and between: no run stops, no branch changes."""
    machine = driven(name)[0]
    first, rng = np.array(machine.first()), np.random.default_rng(5)
    low, high = (np.array([getattr(lever, end) for lever in machine.levers]) for end in ("low", "high"))
    share = rng.random((4, len(first), 14))
    targets = low[:, None] + (high - low)[:, None] * np.where(rng.random(share.shape) < 0.6, share.round(), share)
    targets[..., 5:] = first[:, None]
    found = run(name, 7.0, targets)
    assert {s.reason for s in found.stops} == {"end"}
    np.testing.assert_allclose(found.q[:, -1], np.tile(machine.start, (4, 1)), atol=0.02)


def test_slider_of_a_joint_outside_the_loops_keeps_its_range() -> None:
    """A five-bar linkage on a turntable: its two cranks reduce each other's ranges, and not that of the turntable."""
    b = bc.Builder("five_bar")
    b.body("table", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("table", "revolute", "ground", "table", axis=(0, 0, 1))
    points = {"a": (-0.2, 0, 0), "b": (-0.4, 0, 0.5), "c": (0.4, 0, 0.5), "d": (0.2, 0, 0)}
    for name, parent, tip in (("a", "table", "b"), ("d", "table", "c"), ("b", "a", None), ("c", "d", None)):
        end = np.array(points[tip] if tip else (0, 0, 0.9))
        b.body(name, mass=1.0, com=tuple((np.array(points[name]) + end) / 2), inertia=(0.01, 0.01, 0.01))
        b.joint(name, "revolute", parent, name, point=points[name], axis=(0, 1, 0))
    b.close("tip", "revolute", "b", "c", point=(0, 0, 0.9), axis=(0, 1, 0))
    m = b.build()
    ends = [(-1.5, 1.5)] * 3
    found = servos.slider_ranges(m, m.neutral(), ["table", "a", "d"], ends).ends
    assert found[0] == pytest.approx((-1.5, 1.5))
    alone = servos.slider_ranges(m, m.neutral(), ["a"], ends[:1]).ends[0]
    assert found[1][1] - found[1][0] < 0.95 * (alone[1] - alone[0])
