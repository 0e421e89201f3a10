"""Pilot programs that drive the excavators by their sticks: a full cycle of each, in simulated time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.cockpit.machines import Machine
from bellcrank.excavators import rotary_machine as excavator
from bellcrank.excavators.geometry import ExcavatorArm, Linkage
from bellcrank.excavators.machines import MACHINES
from bellcrank.excavators.spool_control import START_TARGET
from bellcrank.record import Record
from bellcrank.sim.realtime.realtime_drive import DriveSnapshot


def piloted(machine: Machine, pilot: str, seconds: float, **how: Any) -> tuple[Any, list[Record]]:
    """Run a program in simulated time; it reads the state twenty times a second."""
    made, s, span = machine.pilots[pilot](), machine.system, 0.05
    simulator, t, runs = bc.Simulator(s, **how), 0.0, []
    q = np.array(machine.start if machine.start is not None else machine.mechanism.neutral())
    v, x = np.zeros(len(q)), np.array([z.initial for z in s.states])
    while t < seconds:
        u = machine.values(made(DriveSnapshot(0, t, np.concatenate([q, v, x]), np.zeros(0))))
        run = simulator.run(span, q, v, x, step=1e-3, every=span, inputs=dict(zip(s.inputs, u, strict=True)))
        q, v, x, t = run.q[-1], run.v[-1], run.x[-1], t + span
        runs.append(run)
    return made, runs


def test_the_program_digs() -> None:
    """In a full cycle the teeth enter the ground, lift, swing and return."""
    made, runs = piloted(excavator.machine(), "dig", 60.0)
    assert made.index != 0  # the next step has begun
    height, swing = ([run[name][-1] for run in runs] for name in ("tip.height", "cab.q"))
    assert min(height) < excavator.GROUND - 0.1
    assert max(height) > 1.0
    assert max(swing) > 1.0
    assert min(swing[swing.index(max(swing)) :]) < 0.1
    assert max(np.abs(run.v[-1]).max() for run in runs) < 1.0


@pytest.mark.parametrize("name", ["excavator", "excavator_linkage"])
def test_the_program_does_the_papers_experiment(name: str) -> None:
    """From 5 m to 6.5 m with a swing of 15 degrees, at constant height and bucket angle, between two rests."""
    machine = MACHINES[name]()
    arm = ExcavatorArm.of(bc.zoo.excavator()) if name == "excavator" else replace(Linkage.of_zoo().arm, tip=(0.0, 0.0))
    _, runs = piloted(machine, "resolved", 32.0, **({} if name == "excavator" else {"form": "projected"}))
    desired = [z.name for z in machine.system.states][-4:]
    at = np.array([arm.forward([run[d][-1] for d in desired]) for run in runs])
    rate = np.diff(at, axis=0) / 0.05
    moving = np.abs(rate[:, 0] - 0.3) < 0.01  # 1.5 m in 5 s
    first = int(np.flatnonzero(moving & np.roll(moving, -1) & np.roll(moving, -80))[0])
    path = at[first : first + 101]
    assert abs(np.ptp(path[:, 0]) - 1.5) < 0.05
    assert abs(np.ptp(path[:, 1]) - np.radians(15.0)) < 0.02
    assert np.ptp(path[:, 2]) < 0.02
    assert np.ptp(path[:, 3]) < 0.02
    assert np.abs(path[0] - START_TARGET).max() < 0.1
    assert np.abs(rate[first - 80 : first - 2]).max() < 1e-9
    assert np.abs(rate[first + 110 : first + 180]).max() < 1e-9  # half a second after the release of the sticks


@pytest.mark.parametrize("name", ["excavator", "excavator_linkage"])
def test_the_papers_experiment_rests_moves_and_rests(name: str) -> None:
    """At its start the program rests for 5 s, moves for 5 s and rests for 5 s; then it goes to the start again."""
    machine = MACHINES[name]()
    program = machine.pilots["resolved"]()
    arm = replace(program.hands.arm, tip=(0.0, 0.0))
    y = np.zeros(max(program.hands.joints) + 1)
    y[list(program.hands.joints)] = np.array(arm.inverse(START_TARGET)) - program.hands.start
    program(DriveSnapshot(0, 0.0, y, np.zeros(0)))
    for t in np.arange(0.05, 15.0, 0.1):
        levers = np.array(program(DriveSnapshot(0, t, y, np.zeros(0)))[:4])
        assert (levers[:2] > 0.01).all() if 5.0 < t < 10.0 else not levers.any(), t
