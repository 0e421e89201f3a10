"""Free parameters change while a system runs: steppers and drives use the new values, and the record has the times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.cockpit.machines import generic, lever_positions, tool_frame
from bellcrank.errors import InputError
from waiting import wait


def swinging() -> bc.System:
    """Return a pendulum whose gravity is free, and an output that shows it."""
    b = bc.Builder("pendulum", gravity=(0.0, 0.0, -bc.parameter("gravity", 9.81, "m/s2")))
    b.body("bob", mass=2.0, com=(1.0, 0.0, 0.0), inertia=0.1 * np.eye(3))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0))
    return bc.system(b.build(), outputs={"pull": lambda t, q, v, x, u: bc.parameter("gravity", 9.81, "m/s2") * 2.0})


def test_stepper_continues_with_new_parameters() -> None:
    """A stepper with new values continues as a new run does that begins in the same state."""
    s = swinging()
    plant = bc.stepper(s, every=0.1, step=1e-3)
    plant.reset(start={"hinge.q": 0.3})
    for _ in range(3):
        plant.step()
    plant.tune({"gravity": 1.62})
    other = bc.stepper(s, every=0.1, step=1e-3)
    other.reset(start=plant.state, parameters={"gravity": 1.62})
    for _ in range(5):
        np.testing.assert_allclose(plant.step(), other.step(), rtol=1e-13)
    with pytest.raises(bc.InputError, match="gravity"):
        plant.tune({"gravitty": 1.0})
    with pytest.raises(bc.InputError, match="finite"):
        plant.tune({"gravity": float("nan")})


def passed(drive: bc.Drive, t: float) -> None:
    """Wait until the drive has reached a time, however busy the computer is."""
    wait(lambda: drive.snapshot().t >= t)


@pytest.mark.parametrize("bad", [-1.0, float("inf"), "1", None, [1.0, 2.0, 3.0], [1.0, -1.0], [[1.0], [2.0, 3.0]]])
def test_impossible_body_parameters_are_not_tuned(bad: Any) -> None:
    plant = bc.stepper(bc.zoo.chain(2).free("link1.mass"), batch=2, every=0.02)
    before = plant.step(np.zeros((2, 2))).copy()
    with pytest.raises(InputError, match="tune: "):
        plant.tune({"link1.mass": bad})
    plant.tune({"link1.mass": [1.0, 2.0]})
    assert np.isfinite(plant.step(np.zeros((2, 2)))).all()
    assert np.isfinite(before).all()


@pytest.mark.parametrize("bad", [-1.0, float("nan"), "1", None, [1.0, 2.0], True])
def test_drive_rejects_impossible_parameters_and_keeps_its_state(bad: Any) -> None:
    drive = bc.Drive(bc.zoo.chain(2).free("link1.mass", "link2.mass"), rate=500)
    for values in ({"link1.mass": 3.0, "link2.mass": bad}, bad):  # all values are rejected, also the valid ones
        with pytest.raises(InputError, match="tune: "):
            drive.tune(values)
    assert drive._parameter_log.rows(np.zeros(3), 1e-3) is None
    np.testing.assert_array_equal(drive.shared.parameters[:2], drive.system.parameters.nominal)
    drive.tune({"link1.mass": 3.0})
    assert drive.shared.parameters[0] == 3.0
    drive.tune({"link1.mass": -3.0}, check=False)  # with check=False the caller vouches for the values
    assert drive.shared.parameters[0] == -3.0


def test_drive_records_parameters_of_each_row() -> None:
    """The acceleration in each row is that of the gravity recorded in the same row."""
    drive = bc.Drive(swinging(), rate=500, q0=[0.2])
    with drive:
        passed(drive, 0.15)
        drive.tune({"gravity": 3.0})
        passed(drive, drive.snapshot().t + 0.15)
        assert drive.snapshot().outputs["pull"] == pytest.approx(6.0)
    with pytest.raises(bc.InputError, match="gravity"):
        drive.tune({"mass": 1.0})
    with pytest.raises(bc.InputError):
        drive.tune({"gravity": float("inf")})
    run = drive.record()
    g = run["parameter.gravity"]
    assert g[0] == 9.81
    assert g[-1] == 3.0
    assert (np.diff(g) != 0).sum() == 1
    np.testing.assert_allclose(run["pull"], 2.0 * g)
    np.testing.assert_allclose(run["hinge.a"], 2.0 * g * np.cos(run["hinge.q"]) / 2.1, rtol=1e-9)
    # Differences of the velocity are that acceleration, except in the row of the change.
    rate = np.diff(run["hinge.v"]) * 500
    off = np.abs(rate - 0.5 * (run["hinge.a"][1:] + run["hinge.a"][:-1]))
    assert np.sort(off)[-3] < 1e-3 * np.abs(rate).max()
    drive.reset()
    # the tuned value stays, the earlier one is forgotten
    assert len(np.unique(drive.record()["parameter.gravity"])) <= 1


def test_sliders_bring_a_tool_to_a_place() -> None:
    machine = generic(bc.zoo.puma600())
    m, q = machine.mechanism, np.array(machine.start, float)
    at = np.asarray(m.pose(q, tool_frame(machine)))[:3, 3]
    for way in ((0.1, -0.1, 0.1), (-0.2, 0.2, 0.0)):
        there = np.array(lever_positions(machine, q, at + way))
        np.testing.assert_allclose(np.asarray(m.pose(there, tool_frame(machine)))[:3, 3], at + way, atol=2e-4)
    far = np.array(lever_positions(machine, q, (50.0, 0.0, 0.0)))  # the closest position that it can reach
    assert np.isfinite(far).all()
    assert np.asarray(m.pose(far, tool_frame(machine)))[0, 3] > at[0]
    for lever, x in zip(machine.levers, far, strict=True):
        assert lever.low <= x <= lever.high
    with pytest.raises(bc.InputError, match="x, y and z"):
        lever_positions(machine, q, (1.0, 2.0))
    with pytest.raises(bc.InputError, match="no tool"):
        lever_positions(generic(bc.zoo.puma600(), "torque"), q, (1.0, 0.0, 0.0))
