"""Hunt-Crossley normal force between overlapping bodies, and its damping for a given coefficient of restitution.

    N = k z^n max(1 + d dz/dt, 0),    z > 0        z: penetration depth

The damping grows with z, so the force has no jump: K. H. Hunt, F. R. E. Crossley. Coefficient of restitution
interpreted as damping in vibroimpact. ASME Journal of Applied Mechanics 42(2), 440-445, 1975. For small d v they give
e = 1 - (2/3) d v. Without approximation, for every n and every mass, a body that arrives with v leaves with e v where

    d v (1 + e) = log((1 + d v)/(1 - d e v))
"""

from __future__ import annotations

import math
from collections.abc import Callable

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError
from bellcrank.parameters.validation import one_number
from bellcrank.scalar import Scalar, maximum, sqrt, where

MAX_EXPONENT = 10.0  # upper limit: the code has one factor for each unit of the exponent


@explain_argument_errors
def damping_of(restitution: float, speed: float) -> float:
    """Return the Hunt-Crossley damping that gives a coefficient of restitution at one impact speed.

    Parameters
    ----------
    restitution : float
        Ratio of the rebound speed to the impact speed, above 0 and at most 1.
    speed : float
        Impact speed, m/s, above 0.

    Returns
    -------
    float
        Damping d, s/m.

    Raises
    ------
    InputError
        If a value is outside its range.
    """
    restitution, speed = one_number("damping_of", "restitution", restitution), one_number("damping_of", "speed", speed)
    if not 0.0 < restitution <= 1.0:
        raise InputError(
            f"restitution is {restitution!r}; expected a number above 0 and up to 1. For a body that "
            "does not rebound use a small restitution, such as 0.01."
        )
    if not speed > 0.0:
        raise InputError(f"speed is {speed!r} m/s; expected the speed of the impact that has this restitution.")
    if restitution == 1.0:
        return 0.0

    def is_below(x: float) -> bool:  # whether x = d v is too small; only rounding leads to the first condition
        return restitution * x < 1.0 and _log_excess(x) < _log_excess(-restitution * x)

    return _bisect(is_below, 0.0, 1.0 / restitution) / speed


@explain_argument_errors
def restitution_of(damping: float, speed: float) -> float:
    """Return the coefficient of restitution that a Hunt-Crossley damping gives at one impact speed.

    Parameters
    ----------
    damping : float
        Damping d, s/m, at least 0.
    speed : float
        Impact speed, m/s, at least 0.

    Returns
    -------
    float
        Ratio of the rebound speed to the impact speed, from 0 to 1.

    Raises
    ------
    InputError
        If a value is negative.
    """
    damping, speed = one_number("restitution_of", "damping", damping), one_number("restitution_of", "speed", speed)
    if damping < 0.0 or speed < 0.0:
        raise InputError(f"damping is {damping:g} s/m and speed {speed:g} m/s; expected both to be zero or more.")
    x = damping * speed
    if x == 0.0:
        return 1.0
    return _bisect(lambda e: e * x < 1.0 and _log_excess(x) <= _log_excess(-e * x), 0.0, min(1.0, 1.0 / x))


def _bisect(is_below: Callable[[float], bool], low: float, high: float) -> float:
    """Return the number between `low` and `high` up to which `is_below` holds."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return 0.5 * (low + high)


def _log_excess(y: float) -> float:
    """Return log(1 + y) - y, by its series where cancellation would lose digits."""
    if abs(y) > 0.1:
        return math.log1p(y) - y
    return sum(-((-y) ** k) / k for k in range(2, 20))


def normal_force(z: Scalar, dz: Scalar, stiffness: Scalar, damping: Scalar, exponent: float = 1.0) -> Scalar:
    """Return the normal force N; 0 without overlap.

    Parameters
    ----------
    z
        Penetration depth, m.
    dz
        Penetration rate, m/s.
    stiffness
        Stiffness k, N/m^exponent.
    damping
        Damping d, s/m.
    exponent
        Exponent n of the depth.
    """
    return stiffness * power_of_depth(z, exponent) * maximum(1.0 + damping * dz, 0.0)


def force_slope(
    z: Scalar, dz: Scalar, stiffness: Scalar, damping: Scalar, h: Scalar, exponent: float = 1.0
) -> tuple[Scalar, Scalar]:
    """Return the slope of N over dz/dt for a step in which z changes too, and N itself.

    Parameters
    ----------
    z, dz, stiffness, damping, exponent
        As in `normal_force`.
    h
        Step size, s.

    Returns
    -------
    tuple[Scalar, Scalar]
        Slope in N s/m, and N in N.
    """
    elastic_force, damping_factor = stiffness * power_of_depth(z, exponent), maximum(1.0 + damping * dz, 0.0)
    stiffness_slope = stiffness if exponent == 1.0 else exponent * elastic_force / where(z > 0.0, z, 1.0)
    stiffness_slope = where(z > 0.0, stiffness_slope, 0.0)
    damping_slope = where(damping_factor > 0.0, elastic_force * damping, 0.0)
    return damping_slope + h * stiffness_slope * damping_factor, elastic_force * damping_factor


def stored_energy(z: Scalar, stiffness: Scalar, exponent: float = 1.0) -> Scalar:
    """Return the energy stored at depth `z` (m) with `stiffness` (N/m^exponent) and `exponent`, J."""
    return stiffness * power_of_depth(z, exponent + 1.0) * (1.0 / (exponent + 1.0))


def power_of_depth(z: Scalar, exponent: float) -> Scalar:
    """Return max(`z`, 0)^`exponent` for integer and half-integer exponents, without a logarithm."""
    doubled_exponent = round(2.0 * exponent) if 1.0 <= exponent <= MAX_EXPONENT else 0
    if abs(doubled_exponent - 2.0 * exponent) > 1e-12:
        raise InputError(f"exponent is {exponent!r}; expected 1, 1.5, 2, ..., up to {MAX_EXPONENT:g} (Hertz: 1.5).")
    depth = maximum(z, 0.0)
    total: Scalar = 1.0
    for _ in range(doubled_exponent // 2):
        total = total * depth
    if doubled_exponent % 2:
        # The root's slope is infinite at 0, so it is evaluated at 1 there and the result is masked.
        total = total * where(z > 0.0, sqrt(where(z > 0.0, depth, 1.0)), 0.0)
    return total
