"""Energy balance of a run, computed independently: energies with numpy, powers from the parts of the system.

Kinetic energy is v M v / 2. Potential energy is that of the centre of mass and of the springs; elements report what
they store. Energy changes by the work of drives, external forces and prescribed motions, and by the heat of elements,
dampers and friction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.dynamics import kinematics
from bellcrank.model.joints import KINDS
from bellcrank.sim.linear.operating_point import mechanism_at
from crossing.systems import World

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Balance:
    """Energy error of a run.

    off: difference between energy and work at every row; scale: magnitude of the energies and the work; both in J.
    """

    off: float
    scale: float


def balance(w: World, run: bc.Record) -> Balance:
    """Compare the change of a run's energy with the work."""
    s = replace(w.system, mechanism=mechanism_at(w.system, w.system.parameters.nominal))
    m = s.mechanism
    y = np.column_stack([run.q, run.v, *(run[z.name] for z in s.states)])
    stored, power = np.empty(len(run)), np.empty(len(run))
    for k, (t, row) in enumerate(zip(run.t, y, strict=True)):
        q, v = row[: m.nq], row[m.nq : m.nq + m.nv]
        commands, _ = s.commanded(t, list(row), [s.defaults[name] for name in s.inputs])
        tau = np.array(s.forces(t, list(row), commands)[0], float)
        outside = np.array(s.outside(t, list(row))[0], float) if s.wrenches or s.everywhere else 0.0
        motion = np.array([run[f"{n}.motion"][k] for n in m.columns[1]]) if s.motions else 0.0
        acts = [a.shown[-2:] for a in s.acts(t, list(row), shown=True)]  # energy, loss
        stored[k] = 0.5 * v @ np.asarray(m.mass_matrix(q)) @ v + potential(m, q) + sum(float(a[0]) for a in acts)
        damped = np.asarray(m.passive_torque(q, v)) - np.asarray(m.passive_torque(q, np.zeros(m.nv)))
        rubbed = sum(run[f"{e.name}.{e.joint}"][k] * v[m.columns[1].index(e.joint)] for e in s.bearings)
        power[k] = rubbed + (tau + outside + motion + damped) @ v - sum(float(a[1]) for a in acts)
    work = np.concatenate([[0.0], np.cumsum(np.diff(run.t) * (power[1:] + power[:-1]) / 2)])
    ends = corrected(run.t, power)
    off = stored - stored[0] - (work + ends)
    scale = max(1.0, np.abs(stored).max(), float(np.sum(np.diff(run.t) * np.abs(power[1:] + power[:-1]) / 2)))
    return Balance(float(np.abs(off).max()), scale)


def corrected(t: Array, power: Array) -> Array:
    """Return the correction that makes the trapezoidal rule fourth order for smooth power (Euler-Maclaurin)."""
    if len(t) < 3:
        return np.zeros(len(t))
    slope, h = np.gradient(power, t, edge_order=2), np.diff(t)
    return np.concatenate([[0.0], np.cumsum(h * h / 12 * (slope[:-1] - slope[1:]))])


def potential(m: Any, q: Array) -> float:
    """Return the potential energy of the centre of mass and of the springs.

    For mechanisms with flexible bodies it is the potential energy that the package computes.
    """
    if m.flexible:
        return float(m.potential_energy(q))
    mass = sum(float(b.mass) for b in m.bodies)
    found = -mass * float(np.asarray(m.gravity, float) @ np.asarray(m.com(q)))
    for spring in m.springs:
        a, b = (np.array(kinematics.pose(m.tree, q.tolist(), x), float)[:3, 3] for x in (spring.a, spring.b))
        found += 0.5 * spring.stiffness * (np.linalg.norm(b - a) - spring.length) ** 2
    place = {name: k for k, name in enumerate(m.columns[0])}
    for j in m.joints:
        for x in coordinates(j, place) if j.stiffness else ():
            angle = q[place[x]] if j.mimic is None else j.mimic.multiplier * q[place[j.mimic.joint]] + j.mimic.offset
            found += 0.5 * j.stiffness * (angle - j.rest) ** 2
    return float(found)


def coordinates(j: Any, place: dict[str, int]) -> list[str]:
    """Return the names of the coordinates that the spring of a joint acts on."""
    if j.mimic is not None:
        return [j.mimic.joint]
    return [j.name] if KINDS[j.kind].nq == 1 else [x for x in place if x.startswith(f"{j.name}.")]
