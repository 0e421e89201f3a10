"""Nominal magnitudes of the elements of the state, by which an importer of an FMU scales absolute errors.

    an angle              1 rad
    a sliding joint       its limits, else the largest distance inside a body of the mechanism
    a mode                its deflection under the body's own weight: g sqrt(m_k m) / k_k, with its modal mass m_k
    a velocity            its limit; else the coordinate per second, or for a mode its frequency times the coordinate
    a state of a part     the value given by the part (a pressure: that of its pump); else the least of the nominal
                          values of states in that unit; else its start or 1, whichever is larger

They follow from the model and from nominal values of its free parameters; no run is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bellcrank.actuators import StateVariable
from bellcrank.model import Mechanism
from bellcrank.model.flexible_body import Modal
from bellcrank.model.joints import KINDS
from bellcrank.parameters import nominal
from bellcrank.record.contents import units
from bellcrank.sim.system.systems import System

Array = np.ndarray[Any, Any]
GRAVITY_M_S2 = 9.81  # m/s^2: also for models without gravity, in which other forces have this magnitude


def nominals(s: System) -> Array:
    """Return the nominal magnitudes of q, v and x of the system `s`, in this order; all are finite and positive."""
    q, v = _joint_nominals(s.mechanism)
    known = dict[str, float]()
    for z in (z for z in s.states if z.unit and _finite_magnitude(z.nominal)):
        known[z.unit] = min(_finite_magnitude(z.nominal), known.get(z.unit, math.inf))
    return np.array([*q, *v, *(_state_nominal(z, known) for z in s.states)], float)


def _state_nominal(z: StateVariable, known: Mapping[str, float]) -> float:
    return _finite_magnitude(z.nominal) or known.get(z.unit) or max(1.0, abs(z.initial))


def _finite_magnitude(x: Any) -> float:
    """Return the magnitude of x; 0 if it is infinite, zero or not a number."""
    size = abs(float(nominal(x)))
    return size if math.isfinite(size) else 0.0


def _joint_nominals(m: Mechanism) -> tuple[list[float], list[float]]:
    (q_unit, v_unit), limits, length = units(m), m.limits, _largest_distance(m)
    ends = zip(q_unit, limits.lower, limits.upper, strict=True)
    q = [(_largest_limit(low, high) or length) if unit == "m" else 1.0 for unit, low, high in ends]
    v = [length if unit == "m" else 1.0 for unit in v_unit]
    i = k = 0
    for kind in (KINDS[j.kind] for j in m.own_joints):
        if kind.nq == kind.nv:  # the rate of a quaternion is not its angular velocity
            v[k : k + kind.nv] = q[i : i + kind.nq]
        i, k = i + kind.nq, k + kind.nv
    v = [_finite_magnitude(most) or usual for most, usual in zip(limits.velocity, v, strict=True)]
    plain = (m.at() if m.parameters else m).tree
    for flexible, given in zip(plain.flexible, m.flexible, strict=True):
        for n, (i, k) in enumerate(zip(flexible.q_index, flexible.v_index, strict=True)):
            q[i], v[k] = _modal_nominals(m, given, n) or (q[i], v[k])
    return q, v


def _modal_nominals(m: Mechanism, given: Modal, n: int) -> tuple[float, float] | None:
    """Return nominal deflection and velocity of a mode; None without stiffness or mass."""
    modal, stiff = _finite_magnitude(np.trace(np.array(given.D[n][n], float))), _finite_magnitude(given.stiffness[n])
    if not modal or not stiff:
        return None
    mass = next((_finite_magnitude(b.mass) for b in m.bodies if b.name == given.body), 0.0) or modal
    deflection = GRAVITY_M_S2 * math.sqrt(modal * mass) / stiff
    return deflection, deflection * math.sqrt(stiff / modal)


def _largest_limit(lower: float, upper: float) -> float:
    """Return the largest distance from zero that finite limits allow, else 0."""
    return (
        max(_finite_magnitude(lower), _finite_magnitude(upper))
        if math.isfinite(lower) and math.isfinite(upper)
        else 0.0
    )


def _largest_distance(m: Mechanism) -> float:
    """Return the largest distance between the origin of a body and a joint on it or its centre of mass."""
    points = [*(j.point for j in m.joints), *(b.com for b in m.bodies)]
    return max((_finite_magnitude(math.hypot(*map(float, nominal(p)))) for p in points), default=0.0) or 1.0
