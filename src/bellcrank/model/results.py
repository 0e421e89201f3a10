"""Results of several arrays, by name; they come apart in that order, too."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class LimitVectors(NamedTuple):
    """What joints are allowed: positions (nq) from lower to upper, and how fast and how strong (nv) either way."""

    lower: Array
    upper: Array
    velocity: Array
    effort: Array


class ForwardDerivatives(NamedTuple):
    """Of accelerations, (..., nv, nv) each: along q, along v, along tau."""

    dq: Array
    dv: Array
    dtau: Array


class InverseDerivatives(NamedTuple):
    """Of forces, (..., nv, nv) each: along q, along v, along a."""

    dq: Array
    dv: Array
    da: Array
