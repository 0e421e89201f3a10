"""Released sticks stop the machine: after any stick program, in air or soil, both excavators come to rest at once.

The law: half a second after the release every joint is at rest, within two degrees of where it was. No joint stops
faster than its brake allows: the swing drive has the torque of its relief valves against the whole machine, so it is
given the additional way v^2 / 2a and time v / a. The oil behind the bucket of excavator_linkage, compressed while the
ground held the teeth, may move it by up to 3.5 degrees as it expands.

A bucket that was driven against the machine's own tracks or house is squeezed between that wall and the oil; if a wall
presses on it after the release, the wall pushes it out. Then the cab also has the way in which its brake absorbs the
energy stored in the wall and the energy of the arm, which the wall deflects. The arm has twice the way that moves the
teeth out. All joints have the cab's time to come to rest.
"""

from __future__ import annotations

from functools import cache
from math import degrees
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.cockpit.machines import Machine
from bellcrank.excavators.machines import MACHINES
from bellcrank.forces.point_forces import Block, Post
from bellcrank.zoo import data

JOINTS = {"excavator": ("cab", "boom", "stick", "bucket"), "excavator_linkage": ("swing", "boom", "stick", "bucket")}
FAR = {("excavator_linkage", "bucket"): 3.5}  # degrees; 2 for all others
ARM = 1.5  # m, from a joint of a folded arm to the teeth
REST, SECONDS = 0.1, 0.5  # rad/s
AFTER = 4  # s


@cache
def driven(name: str) -> tuple[Machine, bc.Simulator]:
    machine = MACHINES[name]()
    # A step of 0.5 ms does not resolve how teeth creep as they come to rest in soil, which is not checked here.
    return machine, bc.Simulator(machine.system, "rk4", form="projected", solver=bc.Solver(resolve=0.0))


def programs(runs: int, lines: int, seed: int) -> Any:
    """Full sticks, changed every second or held all the time, alternating between runs."""
    rng = np.random.default_rng(seed)
    sticks = rng.choice([-1, 0, 1], size=(runs, 4, lines), p=[0.4, 0.2, 0.4])
    sticks[::2] = sticks[::2, :, :1]
    return sticks


def released(name: str, mode: str, sticks: Any) -> tuple[bc.Record, Any]:
    """Return the run, and its times since the release."""
    machine, simulator = driven(name)
    whole = np.concatenate([sticks, np.zeros((*sticks.shape[:2], AFTER))], axis=-1)
    inputs: dict[str, Any] = {n: whole[:, i] * machine.spans[mode][n] for i, n in enumerate(machine.system.inputs[:4])}
    inputs |= dict.fromkeys(machine.system.inputs[4:], 0.0) | {"resolved": float(mode == "RESOLVED")}
    run = simulator.run(
        float(whole.shape[-1]), machine.start, step=5e-4, every=0.02, inputs=inputs, input_step=1.0, threads=2
    )
    assert {s.reason for s in run.stops} == {"end"}
    return run, np.asarray(run.t).reshape(-1, run.q.shape[-2])[0] - sticks.shape[-1]


def brake(name: str) -> float:
    """Torque that stops the cab, in N m."""
    if name == "excavator":
        given = data(name)["hydraulics"]
        return float(given["P_s"][0] * given["D_m"] / 8.0 * given["G"][0])
    given = data(name)["swing"]
    return float(given["relief"] * given["displacement"])


def walled(name: str, run: bc.Record, at: int) -> tuple[Any, Any]:
    """Depth of a track or the upper carriage in the bucket from row `at` on, m, and stored energy, J, of each run."""
    m = driven(name)[0].mechanism
    wrenches: Any = driven(name)[0].system.wrenches
    q, v = run.q[:, at:], run.v[:, at:]
    deep, stored = np.zeros(len(q)), np.zeros(len(q))
    for frame in ("tip", "heel", "pin"):
        pose, velocity = np.asarray(m.pose(q, frame)), np.zeros_like(np.asarray(m.velocity(q, v, frame)))
        walls = [f for f in wrenches[frame].parts if isinstance(f, (Block, Post))]
        assert walls
        for wall in walls:
            pressed, _ = wall(0.0, np.moveaxis(pose, (-2, -1), (0, 1)), np.moveaxis(velocity, -1, 0))
            z = np.linalg.norm(np.stack(np.broadcast_arrays(*pressed)), axis=0).max(axis=-1) / wall.stiffness
            deep, stored = np.maximum(deep, z), stored + 0.5 * wall.stiffness * z * z
    return deep, stored


def late(name: str, run: bc.Record, t: Any) -> list[str]:
    """Return the violations of the law."""
    machine, found = driven(name)[0], []
    at = int(np.argmin(np.abs(t)))
    deep, stored = walled(name, run, at)
    walls, kinetic = deep > 0.0, np.asarray(machine.mechanism.kinetic_energy(run.q[:, at], run.v[:, at]))
    inertia = np.asarray(machine.mechanism.mass_matrix(run.q[:, at]))[:, 0, 0]
    brakes = brake(name) / inertia
    turning = np.abs(run[f"{JOINTS[name][0]}.v"][:, at]) / brakes  # s, time to stop the cab
    for i, joint in enumerate(JOINTS[name]):
        q, v = run[f"{joint}.q"], run[f"{joint}.v"]
        braked = np.degrees(v[:, at] ** 2 / (2.0 * brakes)) if i == 0 else np.zeros(len(q))
        pushed = np.degrees((stored + kinetic * walls) / brake(name) if i == 0 else 2.0 * deep / ARM)
        way = braked + FAR.get((name, joint), 2.0) + pushed
        for k in range(len(q)):
            rest = t > SECONDS + (turning[k] if i == 0 or walls[k] else 0.0)
            off, speed = degrees(np.abs(q[k, at:] - q[k, at]).max()), np.abs(v[k, rest]).max()
            if off > way[k] or speed > REST:
                found.append(f"{joint} in run {k}: {off:.2f} of {way[k]:.2f} degrees, then {speed:.3f} rad/s")
    return found


@pytest.mark.parametrize("mode", ["JOINT", "RESOLVED"])
@pytest.mark.parametrize("name", JOINTS)
def test_random_programs(name: str, mode: str) -> None:
    run, t = released(name, mode, programs(48, 8, 1))
    dug = run["tip.height"][:, t < 0.0].min(axis=1) < driven(name)[0].ground - 0.1  # type: ignore[operator]
    assert 8 < dug.sum() < 48  # some in the ground, some not
    assert late(name, run, t) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 10))
@pytest.mark.parametrize("mode", ["JOINT", "RESOLVED"])
@pytest.mark.parametrize("name", JOINTS)
def test_many_random_programs(name: str, mode: str, seed: int) -> None:
    run, t = released(name, mode, programs(96, 8, seed))
    assert late(name, run, t) == []


@pytest.mark.parametrize("mode", ["JOINT", "RESOLVED"])
@pytest.mark.parametrize("name", JOINTS)
def test_twelve_seconds_in_the_ground(name: str, mode: str) -> None:
    """Boom or teeth press into the soil until they stall; the program ends with one more stick of each."""
    down = {"JOINT": 1, "RESOLVED": 2}[mode]
    sticks = np.zeros((9, 4, 12), dtype=int)
    sticks[:, down] = -1
    for run, (other, way) in enumerate((o, w) for o in range(4) for w in (-1, 1) if o != down):
        sticks[run + 1, other, -5:] = way
    run, t = released(name, mode, sticks)
    assert (run["tip.height"][:, t < 0.0].min(axis=1) < driven(name)[0].ground - 0.5).all()  # type: ignore[operator]
    assert late(name, run, t) == []
