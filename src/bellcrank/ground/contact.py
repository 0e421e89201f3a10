"""Effect of the ground on a machine: parameters of the machine's compiled step, updated at the ground's own rate.

    ground.height, slope_x, slope_y     plane through the surface ahead of the edge, over the world's x and y
    ground.square, linear, constant     resistance of the soil there as a polynomial of the depth (soils.py)
    ground.heel, ground.pin             heights of the ground under the bucket's back and under its pin
    load.mass, load.x, load.y, load.z   load in the bucket, in its body's axes
    load.extra                          additional mass on the bucket

The parameters are constant between two updates. The step therefore stays straight-line machine code, and everything
that the ground does to it is in the record, as columns parameter.ground.height and so on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.forces import Cutting, Pad
from bellcrank.ground.field import Ground, Place, Tool
from bellcrank.ground.soils import SOILS, NamedSoil, WedgeResistance, plane_of_failure, resistance
from bellcrank.model import Body, Mechanism
from bellcrank.parameters import Free, parameter

Array = np.ndarray[Any, Any]
# m ahead of the edge at which the surface is sampled.
NEAR_DISTANCES, FAR_DISTANCES = (0.1, 0.25, 0.4), (0.55, 0.7, 0.85)
MAX_SLOPE = 0.7  # largest rise over run of the surface in the equation
RAKE_RANGE = (math.radians(20.0), math.radians(95.0))  # rad, range of rake angles in the equation
MAX_DESCENT_SHARE = 0.7  # share of the blade's own slope; steeper descents are limited to it
OUT_OF_REACH = 1000.0  # m below the level, out of reach of back and pin
MIN_SPEED = 0.05  # m/s, below it the mouth's direction is the way ahead
TYPICAL_RAKE, TYPICAL_DEPTH = math.radians(50.0), 0.3  # rad and m, before the first update
GROUND_UNITS = {"height": "m", "slope_x": "", "slope_y": "", "square": "N/m2", "linear": "N/m", "constant": "N"}
MAX_UPDATE_GAP = 0.2  # s: updates further apart give no velocity of the edge
LOAD_UNITS = {"mass": "kg", "x": "m", "y": "m", "z": "m"}
RESISTANCE_NAMES = ("square", "linear", "constant")
EXTRA_LOAD = "load.extra"  # kg, additional load set by the operator


@dataclass(frozen=True)
class GroundContact:
    """Free parameters of one machine, with the forces and the loaded bucket that depend on them."""

    tool: Tool
    tip: tuple[float, float, float]  # the middle of the edge in the bucket's axes
    level: float
    numbers: Mapping[str, Free]

    @property
    def cutting(self) -> Cutting:
        """Cutting force at the edge, with the free parameters."""
        return Cutting(**{name: self.numbers[f"ground.{name}"] for name in GROUND_UNITS})

    @property
    def heel(self) -> tuple[float, float, float]:
        """Lowest point of the bucket's back, in the bucket's axes, m."""
        x, y, z = (float(a) for a in self.tool.load_centre(self.tip, 0.0))
        return x, y, z

    def pad(self, name: str) -> Pad:
        """Return the bearing pad under the point `name`, "heel" or "pin"."""
        return Pad(self.numbers[f"ground.{name}"])

    def with_load(self, m: Mechanism, name: str) -> Mechanism:
        """Return mechanism `m` with the load added to its body called `name`."""
        load = [self.numbers[f"load.{key}"] for key in LOAD_UNITS]
        side = self.tool.capacity ** (2.0 / 3.0) / 6.0  # m2, inertia per kg of a cube of that volume
        mass = load[0] + self.numbers[EXTRA_LOAD]
        bodies = tuple(_loaded_body(b, mass, load[1:], side) if b.name == name else b for b in m.bodies)
        return replace(m, bodies=bodies)

    def values(self, ground: Ground, pose: Array, velocity: Place) -> dict[str, float]:
        """Return the current values of the free parameters.

        Parameters
        ----------
        ground
            Ground.
        pose
            Pose of the bucket's body in the world, 3x4.
        velocity
            Velocity of the edge in the world, m/s.
        """
        R, origin = pose[:, :3], pose[:, 3]
        tip = R @ self.tip + origin
        direction = _motion_direction(velocity, R @ self.tool.mouth)
        near, far = self._surface(ground, tip, R @ self.tool.across, direction)
        near_distance, far_distance = (sum(x) / len(x) for x in (NEAR_DISTANCES, FAR_DISTANCES))
        distance = far_distance - near_distance
        slope = min(max((far - near) / distance, -MAX_SLOPE), MAX_SLOPE)
        at_edge = near - slope * near_distance
        height = self.level + at_edge - slope * (direction[0] * tip[0] + direction[1] * tip[1])
        depth = max(self.level + at_edge - tip[2], 0.0)
        teeth = R @ self.tool.teeth_direction(self.tip)
        polynomial = self.soil_resistance(ground.soil, teeth, direction, slope, depth, ground.load)
        x, y, z = (float(a) for a in self.tool.load_centre(self.tip, ground.load / self.tool.capacity))
        heel, pin = R @ self.heel + origin, origin
        ground_heights = ground.height([heel[0], pin[0]], [heel[1], pin[1]])
        heights = {f"ground.{n}": self.level + float(h) for n, h in zip(("heel", "pin"), ground_heights, strict=True)}
        slopes = {"ground.slope_x": slope * direction[0], "ground.slope_y": slope * direction[1]}
        # Outside the equation's range, adhesion on a flat blade would drive it, so the resistance is clipped at zero.
        force = {f"ground.{name}": max(float(getattr(polynomial, name)), 0.0) for name in RESISTANCE_NAMES}
        load = {"load.mass": ground.soil.density * ground.load, "load.x": x, "load.y": y, "load.z": z}
        return {"ground.height": height, **slopes, **force, **heights, **load}

    def soil_resistance(
        self, soil: NamedSoil, teeth: Array, direction: Sequence[float], slope: float, depth: float, swept: float
    ) -> WedgeResistance:
        """Return the resistance of the soil ahead of the edge.

        Parameters
        ----------
        soil
            Properties of the soil.
        teeth
            Direction of the teeth in the world.
        direction
            Horizontal direction of motion.
        slope
            Slope of the surface, rise over run.
        depth
            Depth of the edge, m.
        swept
            Volume of soil that was swept up, m3.
        """
        forwards = teeth[0] * direction[0] + teeth[1] * direction[1]
        rake = min(max(math.atan2(-teeth[2], forwards), RAKE_RANGE[0]), RAKE_RANGE[1])
        surcharge = soil.unit_weight * swept
        angle = math.atan(max(slope, -MAX_DESCENT_SHARE * math.tan(rake)))  # keeps the blade inside the soil
        beta = plane_of_failure(soil, self.tool.width, rake, angle, max(depth, 0.05), surcharge)
        return resistance(soil, self.tool.width, rake, angle, beta, surcharge)

    def _surface(self, ground: Ground, tip: Array, across: Array, direction: Sequence[float]) -> tuple[float, float]:
        """Return mean heights ahead of the edge, near and far, relative to the level."""
        d, s = np.array([*NEAR_DISTANCES, *FAR_DISTANCES])[:, None], self.tool.width * np.array([-0.35, 0.0, 0.35])
        h = ground.height(tip[0] + d * direction[0] + s * across[0], tip[1] + d * direction[1] + s * across[1])
        return float(h[: len(NEAR_DISTANCES)].mean()), float(h[len(NEAR_DISTANCES) :].mean())


def ground_contact(tool: Tool, tip: Sequence[float], level: float, soil: NamedSoil = SOILS["loam"]) -> GroundContact:
    """Return free parameters whose nominal values are level ground and an empty bucket.

    Before the first update only the edge touches the ground: with ground that is never dug, the pads would otherwise
    support the bucket's back where its own hole should be.

    Parameters
    ----------
    tool
        Bucket.
    tip
        Middle of the edge in the bucket's axes, m.
    level
        Height of the undisturbed ground in the world, m.
    soil
        Soil for the nominal resistance.
    """
    beta = plane_of_failure(soil, tool.width, TYPICAL_RAKE, 0.0, TYPICAL_DEPTH)
    nominal_resistance = resistance(soil, tool.width, TYPICAL_RAKE, 0.0, beta)
    nominal_values = {"height": level} | {n: float(getattr(nominal_resistance, n)) for n in RESISTANCE_NAMES[:2]}
    starts = {f"ground.{n}": (nominal_values.get(n, 0.0), unit) for n, unit in GROUND_UNITS.items()}
    starts |= {f"ground.{n}": (level - OUT_OF_REACH, "m") for n in ("heel", "pin")}
    x, y, z = (float(a) for a in tip)
    load_centre = dict(zip(("x", "y", "z"), tool.load_centre((x, y, z), 0.0), strict=True))
    starts |= {f"load.{n}": (float(load_centre.get(n, 0.0)), unit) for n, unit in LOAD_UNITS.items()}
    starts[EXTRA_LOAD] = 0.0, "kg"
    return GroundContact(tool, (x, y, z), level, {name: parameter(name, *start) for name, start in starts.items()})


def _motion_direction(velocity: Place, mouth: Place) -> tuple[float, float]:
    """Return the horizontal direction of motion of the edge, or that of the mouth if the edge hardly moves."""
    x, y = velocity[0], velocity[1]
    if math.hypot(x, y) < MIN_SPEED:
        x, y = mouth[0], mouth[1]
    length = math.hypot(x, y)
    return (x / length, y / length) if length > 1e-9 else (1.0, 0.0)


def _loaded_body(body: Body, mass: Any, centre: Sequence[Free], side: float) -> Body:
    """Return the body combined with a load: total mass, common centre of mass, and inertia about it."""
    total_mass = body.mass + mass
    share = mass / total_mass
    r = [c - b for c, b in zip(centre, body.com, strict=True)]
    com: Any = tuple(b + share * d for b, d in zip(body.com, r, strict=True))
    reduced, square = body.mass * share, r[0] * r[0] + r[1] * r[1] + r[2] * r[2]

    def moment(i: int, k: int) -> Any:
        return body.inertia[i][k] - reduced * (r[i] * r[k]) + (side * mass + reduced * square if i == k else 0.0)

    inertia: Any = tuple(tuple(moment(i, k) for k in range(3)) for i in range(3))
    return replace(body, mass=total_mass, com=com, inertia=inertia)


class Digger:
    """Ground of one machine, updated from the pose of its bucket.

    Parameters
    ----------
    contact
        Bucket and free parameters of the machine.
    soil
        Soil of the ground; loam by default.
    """

    def __init__(self, contact: GroundContact, soil: NamedSoil | None = None) -> None:
        self.contact = contact
        self.ground = Ground(contact.tool, contact.level, soil) if soil else Ground(contact.tool, contact.level)
        self._last: tuple[float, Array] | None = None

    def update(self, t: float, pose: Array) -> dict[str, float]:
        """Update the ground for the bucket's current pose and return the machine's parameters from now on.

        Parameters
        ----------
        t
            Time, s.
        pose
            Pose of the bucket's body in the world, 3x4.
        """
        R, origin, tool = pose[:, :3], pose[:, 3], self.contact.tool
        tip = R @ self.contact.tip + origin
        velocity = np.zeros(3)
        if self._last is not None and 0.0 < t - self._last[0] < MAX_UPDATE_GAP:
            velocity = (tip - self._last[1]) / (t - self._last[0])
        self._last = t, tip
        middle = origin + 0.7 * (tip - origin)
        self.ground.work(t, tip, R @ tool.across, float(R[2] @ tool.mouth), middle)
        return self.contact.values(self.ground, pose, velocity)
