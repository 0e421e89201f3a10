"""Named soils, and the fundamental earthmoving equation: the force with which a blade breaks a wedge of soil loose.

The strengths are measured values, written down from memory; they still have to be compared with the printed sources.
cohesion, friction: J. Y. Wong. Theory of Ground Vehicles. Wiley, table of terrain values (Bekker's parameters).
density: before digging (bank density), Caterpillar Performance Handbook, table of weights of materials.
Assumed: friction on steel is two thirds of the internal friction (a common rule), adhesion half of the cohesion, at
most 10 kPa; slopes of heaps and of cut walls.

The equation holds on any slope. A blade of width w is at the depth d below a surface that rises forwards by the angle
a. It leans back by the rake rho (from the horizontal, 90 degrees is upright). The soil breaks along a plane that rises
forwards by beta from the edge. On the wedge between them act its weight W, a surcharge Q on top, cohesion c on the
plane of failure, adhesion c_a on the blade, the soil below (at phi to the plane's normal) and the blade (P, at delta to
its normal). Equilibrium across the soil's reaction:

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
from math import pi, radians
from typing import Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.scalar import Scalar, cos, sin, tan

Array = np.ndarray[Any, Any]
GRAVITY = 9.81  # m/s2
ANGLE_MARGIN, TRIAL_ANGLES = 0.05, 200  # rad, margin at the ends of the range of beta; number of trial angles
MAX_ADHESION = 1.0e4  # Pa


@dataclass(frozen=True)
class NamedSoil:
    """Properties of one soil; angles in degrees."""

    name: str
    density: float  # kg/m3
    cohesion: float  # Pa
    friction: float  # degrees, internal friction
    repose: float  # degrees, slope of a heap, assumed
    wall: float  # degrees, slope of undisturbed soil, assumed
    source: str

    def __post_init__(self) -> None:
        if not (self.density > 0 and self.cohesion >= 0 and 0 < self.friction < 60):
            raise InputError(
                f'soil "{self.name}": density {self.density:g} kg/m3, cohesion {self.cohesion:g} Pa, friction '
                f"{self.friction:g} degrees; expected a density above 0, a cohesion from 0 and a friction of 0 to 60."
            )
        if not 0 < self.repose <= self.wall < 90:
            raise InputError(
                f'soil "{self.name}": heaps at {self.repose:g} and walls at {self.wall:g} degrees; expected angles '
                "above 0 and below 90, and walls at least as steep as heaps."
            )

    @property
    def unit_weight(self) -> float:
        """Weight of a cubic metre, N/m3."""
        return self.density * GRAVITY

    @property
    def phi(self) -> float:
        """Angle of internal friction, rad."""
        return radians(self.friction)

    @property
    def delta(self) -> float:
        """Angle of friction on the blade, rad."""
        return 2.0 / 3.0 * self.phi

    @property
    def adhesion(self) -> float:
        """Adhesion on the blade, Pa."""
        return min(0.5 * self.cohesion, MAX_ADHESION)

    @property
    def slopes(self) -> tuple[float, float]:
        """Steepest slopes of heaps and of cut walls, rise over run."""
        return tan(radians(self.repose)), tan(radians(self.wall))


_WONG = "Wong, Theory of Ground Vehicles, terrain values: "
_CAT = "; density: Caterpillar Performance Handbook, "
SOILS: dict[str, NamedSoil] = {
    soil.name: soil
    for soil in (
        NamedSoil("loam", 1540.0, 3.1e3, 29.8, 36.0, 62.0, _WONG + "Grenville loam, 24 % water" + _CAT + "loam"),
        NamedSoil("sandy loam", 1540.0, 1.72e3, 29.0, 34.0, 55.0, _WONG + "sandy loam, 15 % water" + _CAT + "loam"),
        NamedSoil("dry sand", 1600.0, 1.04e3, 28.0, 32.0, 36.0, _WONG + "dry sand, 0 % water" + _CAT + "sand, dry"),
        NamedSoil("wet clay", 2020.0, 4.14e3, 13.0, 30.0, 50.0, _WONG + "clayey soil, 38 % water" + _CAT + "clay"),
        NamedSoil("lean clay", 2020.0, 68.95e3, 20.0, 45.0, 75.0, _WONG + "lean clay, 22 % water" + _CAT + "clay"),
        NamedSoil("heavy clay", 2020.0, 68.95e3, 34.0, 48.0, 80.0, _WONG + "heavy clay, 25 % water" + _CAT + "clay"),
    )
}


def soil_named(name: str) -> NamedSoil:
    """Return the soil called `name`, or raise an InputError that lists the known soils."""
    if name not in SOILS:
        raise InputError(unknown("soil", name, SOILS))
    return SOILS[name]


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
