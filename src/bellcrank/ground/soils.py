"""Soils by name, with their strengths, densities and slopes.

The strengths are measured values, written down from memory; they still have to be compared with the printed sources.
cohesion, friction: J. Y. Wong. Theory of Ground Vehicles. Wiley, table of terrain values (Bekker's parameters).
density: before digging (bank density), Caterpillar Performance Handbook, table of weights of materials.
Assumed: friction on steel is two thirds of the internal friction (a common rule), adhesion half of the cohesion, at
most 10 kPa; slopes of heaps and of cut walls.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import radians, tan

from bellcrank.errors import InputError, unknown

GRAVITY = 9.81  # m/s2
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
