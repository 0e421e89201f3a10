"""Digging forces and lift capacities of excavator_linkage by geometry, pressures and weight, with the binding limit.

Tool forces, in the manner of ISO 6015: the bucket's cylinder (or the stick's) at its working pressure, and the force at
the teeth at right angles to the line from the pin about which it turns. It is the least of the force that the cylinder
can push, of the forces that the other cylinders can hold by their relief valves, and of the forces that tip or move the
machine.

    cylinder      F = p a |dl/dg| / r                         virtual work: r from the pin to the teeth
    held by       F |dl/dg of the other| ...                  the same force through its joint, against p_relief a
    tips          moments about the end of the tracks         slips: friction under the tracks

Lift capacities, in the manner of ISO 10567: a load that hangs from the bucket's pin, over the front and over the side;
87 % of the load that the cylinders hold together with the machine's own weight, or 75 % of the tipping load, whichever
is less.

Differences from the standards: no friction, and no pressure on the far side of the pistons; tool forces neglect the
weight of the arm, as published ones do. The standards themselves are not quoted here; numbers of a real machine are in
its manual.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bellcrank.actuators import HydraulicCylinder
from bellcrank.excavators.digging_forces import Footing
from bellcrank.excavators.geometry import CYLINDERS, JOINTS, Linkage
from bellcrank.excavators.linkage_mechanism import excavator_linkage
from bellcrank.excavators.linkage_system import footing, hydraulics
from bellcrank.ground.soils import GRAVITY
from bellcrank.model import Frame, Mechanism

# Permitted fractions of the load that is held, and of the tipping load.
HYDRAULIC_FRACTION, TIPPING_FRACTION = 0.87, 0.75
HANGING_BUCKET_ANGLE = math.radians(-100.0)  # rad, angle of a bucket that hangs from its pin
RADII = (3.0, 4.5, 6.0, 7.5, 9.0)  # m
HEIGHTS = (6.0, 4.5, 3.0, 1.5, 0.0, -1.5, -3.0)  # m
IDLER_HALF_DISTANCE, TRACK_GAUGE = 1.75, 2.38  # m: half the distance of the idlers, and of the tracks' middles


@dataclass(frozen=True)
class ToolForce:
    """Force at the teeth with its limits.

    Parameters
    ----------
    what
        Cylinder that digs.
    newtons
        Force at the teeth, N.
    binds
        Binding limit.
    limits
        Force at which each limit binds, N.
    angles
        Swing, boom, stick and bucket, rad.
    """

    what: str
    newtons: float
    binds: str
    limits: dict[str, float]
    angles: tuple[float, ...]  # rad


@dataclass(frozen=True)
class LiftCapacity:
    """Lift capacity at one place, with its binding limit."""

    radius: float
    height: float
    side: str  # "front" or "side"
    kilograms: float
    binds: str


class ToolForces:
    """Digging forces and lift capacities of the machine in the zoo."""

    def __init__(self) -> None:
        self.linkage = Linkage.of_zoo()
        plain = excavator_linkage()
        self.mechanism: Mechanism = replace(plain, frames={**plain.frames, "pin": Frame("pin", "bucket")})
        cylinders = (a for a in hydraulics(self.linkage) if isinstance(a, HydraulicCylinder))
        self.cylinders = dict(zip(CYLINDERS, cylinders, strict=True))
        self.footing: Footing = footing(plain, self.linkage)
        numbers = self.linkage.given["hydraulics"]
        self.pressure = float(numbers["pump_pressure"])  # Pa, working pressure of the digging cylinder
        self.relief = float(numbers["relief"])  # Pa, of the holding cylinders

    # -- digging

    def best(self, what: str) -> ToolForce:
        """Return the force in the published pose, where the cylinder `what` has its largest force at the teeth."""
        stops = dict(zip(("swing", *CYLINDERS), self.linkage.stops, strict=True))
        low, high = stops[what]
        angles = np.linspace(low, high, 401)
        gears = np.abs([getattr(self.linkage, what)(a)[1] for a in angles])
        angle = float(angles[int(np.argmax(gears))])
        bucket = angle if what == "bucket" else self.best("bucket").angles[3]
        stick = angle if what == "stick" else min(max(math.radians(-90.0), stops["stick"][0]), stops["stick"][1])
        boom = self._boom_on_ground(stick, bucket)
        return self.at(what, (0.0, boom, stick, bucket))

    def at(self, what: str, theta: Sequence[float]) -> ToolForce:
        """Return the force at given joint angles.

        Parameters
        ----------
        what
            Cylinder that digs: "stick" or "bucket".
        theta
            Swing, boom, stick and bucket, rad.
        """
        if what not in ("stick", "bucket"):
            raise ValueError(what)
        points = self._plane_points(theta)
        tip, pin = points["tip"], points[what]
        r = math.hypot(tip[0] - pin[0], tip[1] - pin[1])
        # Digging turns the bucket in, and the stick towards the cab: clockwise, seen with the arm to the right.
        along = (tip[1] - pin[1]) / r, -(tip[0] - pin[0]) / r
        push = -along[0], -along[1]  # force of the soil on the teeth, per newton
        gears = dict(zip(CYLINDERS, self.linkage.gears(theta), strict=True))
        limits = {}
        for name in CYLINDERS:
            pivot = points[name]
            moment = (tip[0] - pivot[0]) * push[1] - (tip[1] - pivot[1]) * push[0]  # about the joint, anticlockwise
            needed = -moment / float(gears[name])  # N of the cylinder, outwards, per newton at the teeth
            area = self.cylinders[name].areas[0 if needed > 0 else 1]
            pressure = self.pressure if name == what else self.relief
            label = f"{name} cylinder" if name == what else f"{name} held by relief"
            limits[label] = math.inf if abs(needed) < 1e-9 else float(pressure * area / abs(needed))
        limits |= self._stability_limits(theta, tip, push)
        binds = min(limits, key=lambda name: limits[name])
        return ToolForce(what, limits[binds], binds, limits, tuple(float(a) for a in theta))

    def _stability_limits(
        self, theta: Sequence[float], tip: tuple[float, float], push: tuple[float, float]
    ) -> dict[str, float]:
        """Return the forces at which the machine tips over the front or the back of its tracks, and slips."""
        mass, x = self.weight(theta)
        limits = {"slips": math.inf, "tips": math.inf}
        for edge in (-IDLER_HALF_DISTANCE, IDLER_HALF_DISTANCE):
            # Moment about the edge, anticlockwise, per newton.
            push_moment = (tip[0] - edge) * push[1] - tip[1] * push[0]
            weight_moment = mass * GRAVITY * (edge - x)  # moment of the weight about the edge, anticlockwise
            if push_moment * weight_moment < 0:
                limits["tips"] = min(limits["tips"], abs(weight_moment / push_moment))
        # |F_x| = mu (weight - F_z): an upward force reduces the load on the ground.
        slip_factor = abs(push[0]) + self.footing.friction * push[1]
        if slip_factor > 0:
            limits["slips"] = self.footing.friction * mass * GRAVITY / slip_factor
        return limits

    def _plane_points(self, theta: Sequence[float]) -> dict[str, tuple[float, float]]:
        """Return the pins of boom, stick and bucket, and the teeth: x and z in the arm's plane."""
        g, points = self.linkage.given, dict[str, tuple[float, float]]()
        x, z = g["cab"]["boom_pin"]
        angle = 0.0
        for name, turn in zip(CYLINDERS, theta[1:], strict=True):
            points[name], angle = (x, z), angle + turn
            x, z = x + g[name]["length"] * math.cos(angle), z + g[name]["length"] * math.sin(angle)
        return points | {"tip": (x, z)}

    def _boom_on_ground(self, stick: float, bucket: float) -> float:
        """Return the boom angle with the teeth on the ground, or as near to it as the boom permits."""
        low, high = self.linkage.stops[1]
        angles = np.linspace(low, high, 801)
        heights = [abs(self._plane_points((0.0, float(a), stick, bucket))["tip"][1]) for a in angles]
        return float(angles[int(np.argmin(heights))])

    # -- lifting

    def weight(self, theta: Sequence[float]) -> tuple[float, float]:
        """Return the mass of the machine at the joint angles `theta`, kg, and its centre ahead of the swing axis, m."""
        q = self._closed_configuration(theta)
        centre = np.asarray(self.mechanism.com(q))
        body_mass = sum(float(b.mass) for b in self.mechanism.bodies)
        total_mass = body_mass + self.footing.mass
        return total_mass, float(body_mass * centre[0] / total_mass)

    def lifts(self, radii: Sequence[float] = RADII, heights: Sequence[float] = HEIGHTS) -> list[LiftCapacity]:
        """Return the lift capacities over front and side at all places within reach.

        Parameters
        ----------
        radii
            Radii of the load from the swing axis, m.
        heights
            Heights of the bucket's pin, m.
        """
        capacities = []
        for z in heights:
            for r in radii:
                theta = self._lifting_pose(r, z)
                if theta is not None:
                    capacities += [
                        self._lift(theta, r, z, side, edge)
                        for side, edge in (("front", IDLER_HALF_DISTANCE), ("side", TRACK_GAUGE / 2))
                    ]
        return capacities

    def _lifting_pose(self, r: float, z: float) -> list[float] | None:
        """Return joint angles that place the bucket's pin at (r, z); None out of reach."""
        wrist = replace(self.linkage.arm, tip=(0.0, 0.0))
        theta = [float(a) for a in wrist.inverse((r, 0.0, z, HANGING_BUCKET_ANGLE))]
        stops = self.linkage.stops
        theta[3] = min(max(theta[3], stops[3][0]), stops[3][1])
        position = wrist.forward(theta)
        within = all(low <= a <= high for a, (low, high) in zip(theta[1:], stops[1:], strict=True))
        return theta if within and math.hypot(position[0] - r, position[2] - z) < 1e-6 else None

    def _lift(self, theta: Sequence[float], r: float, z: float, side: str, edge: float) -> LiftCapacity:
        q, m = self._closed_configuration(theta), self.mechanism
        still, columns = np.zeros(m.nv), m.columns[1]

        def forces(kilograms: float) -> np.ndarray:
            wrenches = {"pin": [0, 0, -GRAVITY * kilograms, 0, 0, 0]}
            return np.asarray(m.inverse_dynamics(q, still, still, actuated=list(JOINTS), wrenches=wrenches))

        own_forces, loaded_forces = forces(0.0), forces(1.0)
        limits = {}
        for name, joint in zip(CYLINDERS, JOINTS[1:], strict=True):
            k = columns.index(joint)
            own_force, force_per_kg = float(own_forces[k]), float(loaded_forces[k] - own_forces[k])
            a_A, a_B = (float(a) for a in self.cylinders[name].areas)
            force_margin = (self.relief * a_A - own_force) if force_per_kg > 0 else (self.relief * a_B + own_force)
            if abs(force_per_kg) > 1e-9:
                limits[f"{name} cylinder"] = HYDRAULIC_FRACTION * max(force_margin, 0.0) / abs(force_per_kg)
        mass, x = self.weight(theta)  # x is along the arm, over the front as well as over the side
        limits["tipping"] = TIPPING_FRACTION * mass * (edge - x) / (r - edge) if r > edge else math.inf
        binds = min(limits, key=lambda name: limits[name])
        return LiftCapacity(r, z, side, limits[binds], binds)

    def _closed_configuration(self, theta: Sequence[float]) -> np.ndarray:
        """Return the mechanism's q for these joint angles, with the loops closed."""
        guess = {n: a - b for n, a, b in zip(("swing", *CYLINDERS), theta, self.linkage.start, strict=True)}
        x = dict(zip(CYLINDERS, self.linkage.extensions(theta), strict=True))
        first = dict(zip(CYLINDERS, self.linkage.extensions(self.linkage.start), strict=True))
        guess |= {f"{n}_cylinder": float(x[n] - first[n]) for n in CYLINDERS}
        q, _ = self.mechanism.assemble(guess, fixed=list(guess)[:4])
        return np.asarray(q)
