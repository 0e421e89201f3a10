"""Both excavators under extreme operation: every combination of full sticks, held and released again."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.cockpit.machines import Machine
from bellcrank.excavators import rotary_machine as excavator
from bellcrank.excavators.geometry import Linkage
from bellcrank.excavators.machines import MACHINES

NAMES = ("excavator", "excavator_linkage")
LINKAGE = Linkage.of_zoo()


@cache
def machine(name: str) -> Machine:
    return MACHINES[name]()


@cache
def simulator(name: str) -> bc.Simulator:
    return bc.Simulator(machine(name).system, "rk4", form="projected")


def held(name: str, mode: str, sticks: Any, seconds: float, input_step: float) -> bc.Record:
    """Run with constant sticks. sticks: (runs, 4, lines), each -1, 0 or 1."""
    m = machine(name)
    levers = m.system.inputs
    inputs: dict[str, Any] = {n: sticks[:, i] * m.spans[mode][n] for i, n in enumerate(levers[:4])}
    inputs |= dict.fromkeys(levers[4:], 0.0) | {"resolved": float(mode == "RESOLVED")}
    run = simulator(name).run(seconds, m.start, step=5e-4, every=0.02, inputs=inputs, input_step=input_step, threads=2)
    # Runs pressed into their stops may be coarse, with the stop reason "not resolved", but must not fail.
    assert {s.reason for s in run.stops} <= {"end", "not resolved"}
    assert np.isfinite(run.q).all()
    return run


def angles(name: str) -> list[tuple[str, str, float, tuple[float, float]]]:
    """Return the desired angle, the joint, the offset to its q, and its stops."""
    if name == "excavator":
        joints, starts, stops = ("cab", "boom", "stick", "bucket"), [0.0] * 4, excavator.STOPS
    else:
        joints, starts, stops = ("swing", "boom", "stick", "bucket"), LINKAGE.start, LINKAGE.stops  # type: ignore[assignment]
    return [(f"{j}_d", f"{j}.q", a, s) for j, a, s in zip(joints, starts, stops, strict=True)]


@pytest.mark.parametrize("mode", ["JOINT", "RESOLVED"])
@pytest.mark.parametrize("name", NAMES)
def test_held_sticks_end_at_the_stops(name: str, mode: str) -> None:
    """20 s: no run fails or jumps, stops hold, and desired angles stay close to the machine."""
    sticks = np.array([s for s in itertools.product((-1, 0, 1), repeat=4) if any(s)])
    run = held(name, mode, sticks[:, :, None], 20.0, 20.0)
    assert np.abs(np.diff(run.q, axis=1)).max() < 0.05  # in 20 ms
    for desired, joint, start, (low, high) in angles(name):
        actual = run[joint] + start
        # Beyond a stop only if the machine was pushed there, and then by no more than the rest of the leash.
        assert (run[desired] > np.minimum(low, actual) - 0.025).all()
        assert (run[desired] < np.maximum(high, actual) + 0.025).all()
        assert np.abs(run[desired] - actual).max() < 0.45
    if name == "excavator_linkage":
        assert run.provenance["loops open by at most"] < 1e-9
        for actuator in machine(name).system.actuators[1:]:
            out = run[f"{actuator.joint}.q"] + actuator.offset  # type: ignore[attr-defined]
            assert out.min() > -0.03
            assert out.max() < actuator.stroke + 0.03  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMES)
def test_released_sticks_come_to_rest(name: str) -> None:
    """The machine comes to rest after full sticks of five seconds are released, and does not keep oscillating."""
    sticks = np.array(list(itertools.product((0, 1), (-1, 0, 1), (-1, 0, 1), (-1, 0, 1))))
    run = held(name, "JOINT", sticks[:, :, None] * (np.arange(15) < 5), 15.0, 1.0)
    for _, joint, *_ in angles(name):
        assert np.ptp(run[joint[:-1] + "v"][:, -100:], axis=1).max() < 0.05
