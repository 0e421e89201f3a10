"""A machine that digs without a clock: its step and its ground in turn, as fast as the computer goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.cockpit.machines import Machine
from bellcrank.cockpit.replay import with_ground
from bellcrank.cockpit.stage import pose_kernel
from bellcrank.errors import InputError
from bellcrank.ground.digger import Digger
from bellcrank.ground.soils import SOILS, NamedSoil
from bellcrank.record import Column, Record, state_columns
from bellcrank.sim.realtime import Snapshot
from bellcrank.sim.stepping import stepper

Array = np.ndarray[Any, Any]
Pilot = Callable[[Any], Sequence[float]]


@dataclass(frozen=True)
class Moment:
    """Between two looks: the time, the state, and what the machine was told of the ground."""

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
) -> Iterator[Moment]:
    """Looks at the ground every so often, for so many seconds; pilot or inputs: who moves the levers."""
    if machine.contact is None:
        raise InputError(f'"{machine.mechanism.name}" does not dig: it has no contact with ground.')
    digger, poses = Digger(machine.contact, soil), pose_kernel(machine.mechanism)
    bucket = [b.name for b in machine.mechanism.bodies].index("bucket")
    plant = stepper(
        machine.system, every=every, **{"step": 1e-3, "integrator": machine.integrator, "form": "projected", **how}
    )
    start = machine.start if machine.start is not None else machine.mechanism.neutral()
    plant.reset(start={f"{n}.q": float(x) for n, x in zip(machine.mechanism.columns[0], start, strict=True)})
    u = np.array(inputs if inputs is not None else machine.first(), float)
    for k in range(round(seconds / every) + 1):
        y = np.asarray(plant.state).reshape(-1)
        pose = poses(np.ascontiguousarray(y[: machine.mechanism.nq]))[bucket].reshape(3, 4)
        felt = digger.look(k * every, pose)
        yield Moment(k * every, y, felt, digger)
        if pilot is not None:
            u = np.array(machine.values(pilot(Snapshot(k, k * every, y, u))), float)
        plant.tune(felt, check=False)  # 50 times a second, and made by the ground itself
        plant.step(u)


def dug(machine: Machine, seconds: float, pilot: Pilot | None = None, **how: Any) -> Record:
    """The record of it, with a row for every look: the state, what the machine felt, and the ground as it became."""
    m, s = machine.mechanism, machine.system
    rows = []
    for moment in moments(machine, seconds, pilot, **how):
        moment.digger.ground.news()  # so that it remembers
        rows.append((moment.t, np.array(moment.y), moment.felt))
    t, y = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    columns = state_columns(m, t, q=y[:, : m.nq], v=y[:, m.nq : m.nq + m.nv])
    states = [state.name for state in s.states]
    for name, unit, values in zip(states, (state.unit for state in s.states), y[:, m.nq + m.nv :].T, strict=False):
        columns[name] = Column(name, unit, values)
    for name, nominal in s.parameters.items():
        values = np.array([row[2].get(name, nominal) for row in rows])
        columns[f"parameter.{name}"] = Column(f"parameter.{name}", s.parameters.unit(name), values)
    made = {"mechanism": m.name, "actuators": [a.joint for a in s.actuators], "forces": list(s.wrenches)}
    return with_ground(Record(columns, mechanism=m, states=states, provenance=made), moment.digger.ground)
