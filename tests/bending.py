"""Beams that several tests bend: their rest position under a load, and the spin-up manoeuvre of the literature."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.model import Mechanism

# T. R. Kane, R. R. Ryan and A. K. Banerjee, Dynamics of a cantilever beam attached to a moving base, 1987.
SPUN = bc.Profile(
    EA=2.8e7, GAy=1e7, GAz=1e7, GJ=1.4e4, EIy=1.4e4, EIz=1.4e4, rhoA=1.2, rhoIy=6e-4, rhoIz=6e-4
)  # fmt: skip
SPUN_LENGTH = 10.0


def at_rest(m: Mechanism, frame: str, force: Any, loads: int = 4) -> Any:
    """Return q at rest under a force on a frame, in world axes; Newton's method, with the load applied in steps."""
    balance = bc.kernel(m, "inverse_dynamics", wrenches=(frame,))
    q, still, e = m.neutral(), np.zeros(m.nv), 1e-6
    many = np.zeros((2 * m.nv, m.nv))
    for part in np.linspace(0, 1, loads + 1)[1:]:
        w = np.array([[*np.multiply(force, part), 0.0, 0.0, 0.0]])
        for _ in range(30):
            near = np.concatenate([q + e * np.eye(m.nv), q - e * np.eye(m.nv)])
            f = balance(near, many, many, np.broadcast_to(w, (2 * m.nv, 1, 6)))
            d = np.linalg.solve((f[: m.nv] - f[m.nv :]).T / (2 * e), -balance(q, still, still, w))
            q = q + d
            if np.abs(d).max() < 1e-9:
                break
        else:
            raise AssertionError(f"no rest at {part:g} of the load")
    return q


def spin(t: float) -> tuple[float, float, float]:
    """Return angle, speed and acceleration of the base."""
    if t >= 15.0:
        return 6.0 * t - 45.0, 6.0, 0.0
    k = 2 * math.pi / 15
    return (
        0.4 * (t**2 / 2 + (math.cos(k * t) - 1) / k**2),
        0.4 * (t - math.sin(k * t) / k),
        0.4 * (1 - math.cos(k * t)),
    )
