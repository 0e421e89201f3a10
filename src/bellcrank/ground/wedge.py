"""Fundamental earthmoving equation: the force with which a blade breaks a wedge of soil loose, on any slope.

A blade of width w is at the depth d below a surface that rises forwards by the angle a. It leans back by the rake rho
(from the horizontal, 90 degrees is upright). The soil breaks along a plane that rises forwards by beta from the edge.
On the wedge between them act its weight W, a surcharge Q on top, cohesion c on the plane of failure, adhesion c_a on
the blade, the soil below (at phi to the plane's normal) and the blade (P, at delta to its normal). Equilibrium across
the soil's reaction:

    P sin(rho + delta + beta + phi) = (W + Q) sin(beta + phi) + c w L_f cos phi - c_a w L_b cos(rho + beta + phi)
    L_f = d / (cos beta (tan beta - tan a))             length of the plane of failure
    L_b = d / (sin rho + cos rho tan a)                 length of the blade in the soil
    W = g w L_f L_b sin(rho + beta) / 2

The soil breaks at the beta for which P is least. On level ground (a = 0) this is, term by term,
P = w (g d^2 N_g + c d N_c + c_a d N_ca + q d N_q) with the factors of Reece and McKyes; for an upright blade without
friction it is Rankine's passive pressure.

Source: A. R. Reece. The fundamental equation of earth-moving mechanics. Proceedings of the Institution of Mechanical
Engineers 179 (3F), 16-22, 1964. E. McKyes. Soil Cutting and Tillage. Elsevier, 1985. Sloping ground, and the soil that
was swept up as the surcharge: O. Luengo, S. Singh, H. Cannon. Modeling and identification of soil-tool interaction in
automated excavation. IEEE/RSJ Int. Conf. on Intelligent Robots and Systems, 1900-1906, 1998.

Differences from the papers: the wedge is plane, without crescents at the sides of a narrow blade, and without effects
of speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from bellcrank.ground.soils import NamedSoil
from bellcrank.scalar import Scalar, cos, sin, tan

Array = np.ndarray[Any, Any]
ANGLE_MARGIN, TRIAL_ANGLES = 0.05, 200  # rad, margin at the ends of the range of beta; number of trial angles


@dataclass(frozen=True)
class WedgeResistance:
    """Blade force as a polynomial of the depth d: P = square d^2 + linear d + constant, N."""

    square: Scalar  # N/m2: the weight of the wedge
    linear: Scalar  # N/m: cohesion and adhesion
    constant: Scalar  # N: the surcharge

    def force(self, d: Scalar) -> Scalar:
        """Return P at depth `d` (m), N."""
        return self.square * d * d + self.linear * d + self.constant


def resistance(
    soil: NamedSoil, width: Scalar, rake: Scalar, slope: Scalar, beta: Scalar, surcharge: Scalar = 0.0
) -> WedgeResistance:
    """Return the resistance for a given plane of failure.

    Parameters
    ----------
    soil
        Properties of the soil.
    width
        Width of the blade, m.
    rake
        Rake angle of the blade, rad.
    slope
        Angle of the surface, rad.
    beta
        Angle of the plane of failure, rad.
    surcharge
        Weight on top of the wedge, N.
    """
    phi, delta = soil.phi, soil.delta
    reaction_factor = 1.0 / sin(rake + delta + beta + phi)
    failure_factor = 1.0 / (cos(beta) * (tan(beta) - tan(slope)))
    blade_factor = 1.0 / (sin(rake) + cos(rake) * tan(slope))
    weight = 0.5 * soil.unit_weight * width * failure_factor * blade_factor * sin(rake + beta)
    cohesion_factor = soil.cohesion * failure_factor * cos(phi) - soil.adhesion * blade_factor * cos(rake + beta + phi)
    weight_factor = sin(beta + phi) * reaction_factor
    return WedgeResistance(weight * weight_factor, width * cohesion_factor * reaction_factor, surcharge * weight_factor)


def plane_of_failure(
    soil: NamedSoil, width: float, rake: float, slope: float, depth: float, surcharge: float = 0.0
) -> float:
    """Return the angle beta (rad) of the plane of failure: the one with the least force.

    Parameters
    ----------
    soil, width, rake, slope, surcharge
        As in `resistance`.
    depth
        Depth of the edge, m.
    """
    low = max(slope, 0.0) + ANGLE_MARGIN
    high = min(0.5 * pi, pi - rake - soil.delta - soil.phi) - ANGLE_MARGIN
    if high <= low:  # no valid range: upright blade and steep slope, so take the flattest plane
        return low
    trial_angles = np.linspace(low, high, TRIAL_ANGLES)
    forces = resistance(soil, width, rake, slope, trial_angles, surcharge).force(depth)
    return float(trial_angles[int(np.argmin(forces))])
