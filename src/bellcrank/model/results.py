"""Named tuples for results of several arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class LimitVectors(NamedTuple):
    """Joint limits: positions (nq,) from lower to upper, and magnitudes of velocity and effort (nv,)."""

    lower: Array
    upper: Array
    velocity: Array
    effort: Array


class ForwardDerivatives(NamedTuple):
    """Derivatives of accelerations, (..., nv, nv) each: by q (along the velocities), by v, by tau."""

    dq: Array
    dv: Array
    dtau: Array


class InverseDerivatives(NamedTuple):
    """Derivatives of forces, (..., nv, nv) each: by q (along the velocities), by v, by a."""

    dq: Array
    dv: Array
    da: Array
