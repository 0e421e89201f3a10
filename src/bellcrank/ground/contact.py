"""What a machine feels of the ground: numbers that its step takes as parameters, and that are renewed at every look.

    ground.height, slope_x, slope_y     the surface ahead of the edge, as a plane over the world's x and y
    ground.square, linear, constant     what the soil resists with there, by depth (wedge.py)
    ground.heel, ground.pin             heights of the ground under the bucket's back and under its pin
    load.mass, load.x, load.y, load.z   what the bucket carries, in its body's axes; load.extra: and what hangs there

Between two looks they hold. So the step stays one straight line of machine code, and all that the ground did to it is
in the record, as columns parameter.ground.height and so on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.forces import Cutting, Pad
from bellcrank.ground.field import Ground, Place, Tool
from bellcrank.ground.soils import SOILS, NamedSoil
from bellcrank.ground.wedge import Resistance, plane_of_failure, resistance
from bellcrank.model import Body, Mechanism
from bellcrank.parameters import Free, parameter

Array = np.ndarray[Any, Any]
NEAR, FAR = (0.1, 0.25, 0.4), (0.55, 0.7, 0.85)  # m ahead of the edge: where the surface is looked at
STEEPEST = 0.7  # rise over run of a surface, in the equation
RAKES = (math.radians(20.0), math.radians(95.0))  # within which a blade counts
FALLING = 0.7  # of the blade's own slope: a surface that falls away faster counts as that
NOWHERE = 1000.0  # m below the level: where back and pin meet nothing
SLOWEST = 0.05  # m/s: slower, the way it last went is the way ahead
TYPICAL_RAKE, TYPICAL_DEPTH = math.radians(50.0), 0.3  # before the first look
UNITS = {"height": "m", "slope_x": "", "slope_y": "", "square": "N/m2", "linear": "N/m", "constant": "N"}
LOAD = {"mass": "kg", "x": "m", "y": "m", "z": "m"}
EXTRA = "load.extra"  # kg besides, by whoever drives


@dataclass(frozen=True)
class GroundContact:
    """The free numbers of one machine, and the forces and the laden bucket that are made of them."""

    tool: Tool
    tip: tuple[float, float, float]  # the middle of the edge in the bucket's axes
    level: float
    numbers: Mapping[str, Free]

    @property
    def cutting(self) -> Cutting:
        return Cutting(**{name: self.numbers[f"ground.{name}"] for name in UNITS})

    @property
    def heel(self) -> tuple[float, float, float]:
        """The lowest place of the bucket's back."""
        x, y, z = (float(a) for a in self.tool.centre(self.tip, 0.0))
        return x, y, z

    def pad(self, name: str) -> Pad:
        """Under "heel" or "pin"."""
        return Pad(self.numbers[f"ground.{name}"])

    def laden(self, m: Mechanism, name: str) -> Mechanism:
        """The mechanism with what its bucket carries."""
        load = [self.numbers[f"load.{key}"] for key in LOAD]
        side = self.tool.capacity ** (2.0 / 3.0) / 6.0  # of a cube of that size: inertia for each kg
        mass = load[0] + self.numbers[EXTRA]
        bodies = tuple(_laden(b, mass, load[1:], side) if b.name == name else b for b in m.bodies)
        return replace(m, bodies=bodies)

    def values(self, g: Ground, pose: Array, velocity: Place) -> dict[str, float]:
        """The numbers now; pose: 3x4 of the bucket's body, velocity: of the edge."""
        R, origin = pose[:, :3], pose[:, 3]
        tip = R @ self.tip + origin
        way = _ahead(velocity, R @ self.tool.mouth)
        near, far = self._surface(g, tip, R @ self.tool.across, way)
        first, between = sum(NEAR) / len(NEAR), sum(FAR) / len(FAR) - sum(NEAR) / len(NEAR)
        slope = min(max((far - near) / between, -STEEPEST), STEEPEST)
        at_edge = near - slope * first
        height = self.level + at_edge - slope * (way[0] * tip[0] + way[1] * tip[1])
        depth = max(self.level + at_edge - tip[2], 0.0)
        met = self.met(g.soil, R @ self.tool.pointing(self.tip), way, slope, depth, g.load)
        x, y, z = (float(a) for a in self.tool.centre(self.tip, g.load / self.tool.capacity))
        heel, pin = R @ self.heel + origin, origin
        below = g.height([heel[0], pin[0]], [heel[1], pin[1]])
        heights = {f"ground.{n}": self.level + float(h) for n, h in zip(("heel", "pin"), below, strict=True)}
        surface = {"ground.height": height, "ground.slope_x": slope * way[0], "ground.slope_y": slope * way[1]}
        # Beyond where the equation holds, adhesion on a blade that lies flat would drive it: there nothing resists.
        parts = {"square": met.square, "linear": met.linear, "constant": met.constant}
        force = {f"ground.{name}": max(float(x), 0.0) for name, x in parts.items()}
        return surface | force | heights | {"load.mass": g.soil.density * g.load, "load.x": x, "load.y": y, "load.z": z}

    def met(
        self, soil: NamedSoil, teeth: Array, way: Sequence[float], slope: float, depth: float, swept: float
    ) -> Resistance:
        """What the soil resists with; teeth: where they point; swept: m3 that were swept up."""
        forwards = teeth[0] * way[0] + teeth[1] * way[1]
        rake = min(max(math.atan2(-teeth[2], forwards), RAKES[0]), RAKES[1])
        surcharge = soil.unit_weight * swept
        angle = math.atan(max(slope, -FALLING * math.tan(rake)))  # a blade is in the soil, and not above it
        beta = plane_of_failure(soil, self.tool.width, rake, angle, max(depth, 0.05), surcharge)
        return resistance(soil, self.tool.width, rake, angle, beta, surcharge)

    def _surface(self, g: Ground, tip: Array, across: Array, way: Sequence[float]) -> tuple[float, float]:
        """Mean heights ahead, near and far, against the level."""
        d, s = np.array([*NEAR, *FAR])[:, None], self.tool.width * np.array([-0.35, 0.0, 0.35])
        h = g.height(tip[0] + d * way[0] + s * across[0], tip[1] + d * way[1] + s * across[1])
        return float(h[: len(NEAR)].mean()), float(h[len(NEAR) :].mean())


def contact(tool: Tool, tip: Sequence[float], level: float, soil: NamedSoil = SOILS["loam"]) -> GroundContact:
    """Free numbers whose nominal values are level ground and an empty bucket.

    Before the first look only the edge meets it: ground that nobody digs would carry the bucket's back in its own hole.
    """
    beta = plane_of_failure(soil, tool.width, TYPICAL_RAKE, 0.0, TYPICAL_DEPTH)
    first = resistance(soil, tool.width, TYPICAL_RAKE, 0.0, beta)
    given = {"height": level, "square": float(first.square), "linear": float(first.linear)}
    numbers = {f"ground.{n}": parameter(f"ground.{n}", given.get(n, 0.0), unit) for n, unit in UNITS.items()}
    numbers |= {f"ground.{n}": parameter(f"ground.{n}", level - NOWHERE, "m") for n in ("heel", "pin")}
    x, y, z = (float(a) for a in tip)
    at = dict(zip(("x", "y", "z"), tool.centre((x, y, z), 0.0), strict=True))
    numbers |= {f"load.{n}": parameter(f"load.{n}", float(at.get(n, 0.0)), unit) for n, unit in LOAD.items()}
    numbers[EXTRA] = parameter(EXTRA, 0.0, "kg")
    return GroundContact(tool, (x, y, z), level, numbers)


def _ahead(velocity: Place, mouth: Place) -> tuple[float, float]:
    """The level direction in which the edge goes; where it hardly does, the one in which the mouth looks."""
    x, y = velocity[0], velocity[1]
    if math.hypot(x, y) < SLOWEST:
        x, y = mouth[0], mouth[1]
    far = math.hypot(x, y)
    return (x / far, y / far) if far > 1e-9 else (1.0, 0.0)


def _laden(body: Body, mass: Any, centre: Sequence[Free], side: float) -> Body:
    """A body and a load in it as one: masses, centres, and inertia about the common centre."""
    whole = body.mass + mass
    share = mass / whole
    r = [c - b for c, b in zip(centre, body.com, strict=True)]
    com: Any = tuple(b + share * d for b, d in zip(body.com, r, strict=True))
    reduced, square = body.mass * share, r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
    inertia: Any = tuple(
        tuple(
            body.inertia[i][k] - reduced * (r[i] * r[k]) + (side * mass + reduced * square if i == k else 0.0)
            for k in range(3)
        )
        for i in range(3)
    )
    return replace(body, mass=whole, com=com, inertia=inertia)
