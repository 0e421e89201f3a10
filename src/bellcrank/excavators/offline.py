"""Offline simulation of a digging machine: integration steps alternate with ground updates, without a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.cockpit.machines import Machine
from bellcrank.cockpit.scene_poses import pose_kernel, with_ground
from bellcrank.errors import InputError
from bellcrank.ground.contact import Digger
from bellcrank.ground.soils import SOILS, NamedSoil
from bellcrank.record import Column, Record, state_columns
from bellcrank.sim.realtime.realtime_drive import DriveSnapshot
from bellcrank.sim.stepper.stepper_factory import stepper

Array = np.ndarray[Any, Any]
Pilot = Callable[[Any], Sequence[float]]


@dataclass(frozen=True)
class GroundSnapshot:
    """Snapshot at a ground update."""

    t: float
    y: Array
    felt: dict[str, float]
    digger: Digger


def moments(
    machine: Machine,
    seconds: float,
    pilot: Pilot | None = None,
    inputs: Sequence[float] | None = None,
    soil: NamedSoil = SOILS["loam"],
    every: float = 0.02,
    **how: Any,
) -> Iterator[GroundSnapshot]:
    """Simulate a machine on its ground and yield a snapshot at every ground update.

    Parameters
    ----------
    machine
        Machine with a bucket.
    seconds
        Duration.
    pilot
        Program that moves the levers.
    inputs
        Constant inputs, used without a pilot.
    soil
        Soil of the ground.
    every
        Time between ground updates, s.
    how
        Options of the stepper.
    """
    if machine.contact is None:
        raise InputError(f'"{machine.mechanism.name}" cannot dig: it has no contact with the ground.')
    digger, poses = Digger(machine.contact, soil), pose_kernel(machine.mechanism)
    bucket = [b.name for b in machine.mechanism.bodies].index("bucket")
    how = {"step": 1e-3, "integrator": machine.integrator, "form": "projected", **how}
    plant = stepper(machine.system, every=every, **how)
    start = machine.start if machine.start is not None else machine.mechanism.neutral()
    plant.reset(start={f"{n}.q": float(x) for n, x in zip(machine.mechanism.columns[0], start, strict=True)})
    u = np.array(inputs if inputs is not None else machine.first(), float)
    for k in range(round(seconds / every) + 1):
        y = np.asarray(plant.state).reshape(-1)
        pose = poses(np.ascontiguousarray(y[: machine.mechanism.nq]))[bucket].reshape(3, 4)
        ground_values = digger.update(k * every, pose)
        yield GroundSnapshot(k * every, y, ground_values, digger)
        if pilot is not None:
            u = np.array(machine.values(pilot(DriveSnapshot(k, k * every, y, u))), float)
        plant.tune(ground_values, check=False)  # unchecked for speed: the values come from the ground itself
        plant.step(u)


def dug(machine: Machine, seconds: float, pilot: Pilot | None = None, **how: Any) -> Record:
    """Simulate a digging machine and return its record, with a row for every ground update.

    The record has the state, the parameters set by the ground, and the final ground.

    Parameters
    ----------
    machine
        Machine with a bucket.
    seconds
        Duration.
    pilot
        Program that moves the levers.
    how
        Options of `moments`.
    """
    m, s = machine.mechanism, machine.system
    rows = []
    for moment in moments(machine, seconds, pilot, **how):
        moment.digger.ground.take_changes()  # makes the ground store its changes
        rows.append((moment.t, np.array(moment.y), moment.felt))
    t, y = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    columns = state_columns(m, t, q=y[:, : m.nq], v=y[:, m.nq : m.nq + m.nv])
    states = [state.name for state in s.states]
    for state, values in zip(s.states, y[:, m.nq + m.nv :].T, strict=False):
        columns[state.name] = Column(state.name, state.unit, values)
    for name, nominal in s.parameters.items():
        values = np.array([row[2].get(name, nominal) for row in rows])
        columns[f"parameter.{name}"] = Column(f"parameter.{name}", s.parameters.unit(name), values)
    provenance = {"mechanism": m.name, "actuators": [a.joint for a in s.actuators], "forces": list(s.wrenches)}
    return with_ground(Record(columns, mechanism=m, states=states, provenance=provenance), moment.digger.ground)
