"""Closed-form geometry of excavators: kinematics of the arm, cylinders of excavator_linkage, and a cycle of the teeth.

Arm, for RESOLVED mode: radius, swing, height and bucket angle, and their inverse.

    swing    the cab's angle                       radius   of the tip from the cab's axis, in the plane of the boom
    bucket   the bucket's angle above the ground   height   of the tip above the origin

    phi1 = boom, phi2 = boom + stick, bucket = boom + stick + bucket joint
    radius = a + l1 cos phi1 + l2 cos phi2 + t_x cos bucket - t_y sin bucket
    height = c + l1 sin phi1 + l2 sin phi2 + t_x sin bucket + t_y cos bucket

The wrist (the bucket's hinge) can be where two links can bring it: the inverse is the triangle of l1, l2 and the
distance D of the wrist from the boom's hinge, with the stick hanging below the boom. D is clipped to the reach, so that
every target has a solution. Wong 1991, sections 5.4.3 and 5.5.2, prints neither these equations nor the position of the
tip in the bucket. By default the tip is the bucket's hinge; at a constant bucket angle that gives the same path, moved
aside.

Linkage: lengths of the cylinders and their derivatives by the joint angles.

    boom, stick   a triangle of two pins and the joint between them:
                  l^2 = a^2 + b^2 - 2 a b cos g,   dl/dg = a b sin g / l
    bucket        the four-bar of stick, lever, link and bucket, and behind the lever another triangle:
                  lever and link meet at K; (K - E) keeps the length of the link:  (K - E).(dK - dE) = 0

Angles are those of ExcavatorArm: swing, boom from the horizontal, stick from the boom, bucket from the stick; they
differ from a mechanism's q by the start angles. All points lie in the plane of the arm; functions accept any scalar.

The dig-swing-dump cycle is a periodic path of the teeth: [radius, swing, height, bucket angle] and its rate. Between
two waypoints each of the four coordinates moves as a cycloid (control/trajectory.py), which starts and ends at rest;
the moves add up to a closed cycle. The waypoints are chosen here for level ground at height 0 and a machine of the 20 t
class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import atan2 as angle_of
from math import hypot, pi, radians
from typing import Any

from bellcrank.actuators.actuator import bounded_rate
from bellcrank.errors import InputError
from bellcrank.model.mechanism import Mechanism
from bellcrank.scalar import Scalar, acos, atan2, clip, cos, maximum, sin, sqrt, where
from bellcrank.zoo import data

TipScalars = list[Scalar]
LEAST_ARC_RADIUS = 1.0  # m, least radius for the conversion of arc speed to a rate of the cab
LEAST_DISTANCE = 1e-9  # m, lower bound of a distance in a denominator
PlanePoint = Sequence[float]
CYLINDERS = ("boom", "stick", "bucket")
JOINTS = ("swing", "boom_cylinder", "stick_cylinder", "bucket_cylinder")  # joints with actuators
# rad; lengths are monotonic there
MONOTONIC_RANGES = {"boom": (-1.0, 1.4), "stick": (-2.8, -0.4), "bucket": (-2.6, 0.6)}
END_MARGIN = 0.02  # m, distance that a desired cylinder position keeps from its ends


@dataclass(frozen=True)
class ExcavatorArm:
    """Planar arm of boom, stick and bucket on a cab."""

    a: Scalar  # m, from the cab's axis to the boom's hinge
    c: Scalar  # m, the height of that hinge
    l1: Scalar  # m, boom
    l2: Scalar  # m, stick
    tip: tuple[Scalar, Scalar] = (0.0, 0.0)  # m, in the bucket's axes
    margin: Scalar = 0.05  # m, distance of the wrist from the stretched and folded arm, where rates are singular

    @classmethod
    def of(cls, mechanism: Mechanism, tip: tuple[Scalar, Scalar] = (0.0, 0.0), margin: Scalar = 0.05) -> ExcavatorArm:
        """Return the arm of a mechanism of four hinges: one upright, three across it, each on the x axis of its parent.

        Parameters
        ----------
        mechanism
            Serial mechanism of four revolute joints.
        tip
            Tip in the bucket's axes, m.
        margin
            Distance of the wrist from the stretched and folded arm, m.
        """
        joints = mechanism.joints
        if [j.kind for j in joints] != ["revolute"] * 4 or any(j.point[1] or j.point[2] for j in joints[2:]):
            raise InputError(
                f'ExcavatorArm: "{mechanism.name}" is not an excavator; expected four revolute joints (cab, boom, '
                "stick, bucket), the last two on the x axis of the link before. "
                f"It has: {', '.join(f'{j.name} ({j.kind})' for j in joints)}."
            )
        hinge = joints[1].point
        return cls(hinge[0], hinge[2], joints[2].point[0], joints[3].point[0], tip, margin)

    def _offset(self, bucket: Scalar) -> tuple[Scalar, Scalar]:
        """Return the vector from the wrist to the tip: along the radius and up."""
        (x, y), c, s = self.tip, cos(bucket), sin(bucket)
        return x * c - y * s, x * s + y * c

    @property
    def reach(self) -> tuple[Scalar, Scalar]:
        """Least and largest distance of the wrist from the boom's hinge, m."""
        return maximum(self.l1 - self.l2, self.l2 - self.l1) + self.margin, self.l1 + self.l2 - self.margin

    def forward(self, theta: Sequence[Scalar]) -> TipScalars:
        """Return [radius, swing, height, bucket] for the joint angles `theta`."""
        phi1, phi2 = theta[1], theta[1] + theta[2]
        bucket = phi2 + theta[3]
        along, up = self._offset(bucket)
        radius = self.a + self.l1 * cos(phi1) + self.l2 * cos(phi2) + along
        return [radius, theta[0], self.c + self.l1 * sin(phi1) + self.l2 * sin(phi2) + up, bucket]

    def wrist(self, target: Sequence[Scalar]) -> tuple[Scalar, Scalar, Scalar]:
        """Return the wrist of a `target` relative to the boom's hinge: along the radius, up, and the distance."""
        along, up = self._offset(target[3])
        X, Z = target[0] - self.a - along, target[2] - self.c - up
        return X, Z, maximum(sqrt(X * X + Z * Z), LEAST_DISTANCE)

    def inverse(self, target: Sequence[Scalar]) -> TipScalars:
        """Return joint angles for a `target` [radius, swing, height, bucket], or for the nearest point within reach."""
        X, Z, D = self.wrist(target)
        D = clip(D, *self.reach)
        fold = (D * D - self.l1 * self.l1 - self.l2 * self.l2) / (2.0 * self.l1 * self.l2)
        stick = -acos(fold)
        boom = atan2(Z, X) - atan2(self.l2 * sin(stick), self.l1 + self.l2 * cos(stick))
        return [target[1], boom, stick, target[3] - boom - stick]

    def allowed(self, target: Sequence[Scalar], rates: Sequence[Scalar]) -> TipScalars:
        """Limit rates to the reach: at its boundary the tip slides along.

        Parameters
        ----------
        target
            Coordinates [radius, swing, height, bucket].
        rates
            Their rates.
        """
        X, Z, D = self.wrist(target)
        along, up = self._offset(target[3])
        dX, dZ = rates[0] + up * rates[3], rates[2] - along * rates[3]
        dD = (X * dX + Z * dZ) / D
        correction = (bounded_rate(D, dD, *self.reach) - dD) / D
        return [rates[0] + correction * X, rates[1], rates[2] + correction * Z, rates[3]]

    def stick_rates(self, theta: Sequence[Scalar], sticks: Sequence[Scalar]) -> TipScalars:
        """Return joint rates for sticks in RESOLVED mode, limited by the reach.

        Parameters
        ----------
        theta
            Joint angles, rad.
        sticks
            Radial, arc and vertical speed of the tip, m/s, and the rate of the bucket, rad/s.
        """
        radial, arc, up, turn = sticks
        radius = self.forward(theta)[0]
        return self.limited_rates(theta, [radial, arc / maximum(radius, LEAST_ARC_RADIUS), up, turn])

    def limited_rates(self, theta: Sequence[Scalar], rates: Sequence[Scalar]) -> TipScalars:
        """Return joint rates at the joint angles `theta` for `rates` of the tip, limited by the reach."""
        return self.joint_rates(theta, self.allowed(self.forward(theta), rates))

    def joint_rates(self, theta: Sequence[Scalar], rates: Sequence[Scalar]) -> TipScalars:
        """Return joint rates for rates of [radius, swing, height, bucket]; the stick must not be straight or folded.

        Parameters
        ----------
        theta
            Joint angles, rad.
        rates
            Rates of [radius, swing, height, bucket].
        """
        phi1, phi2 = theta[1], theta[1] + theta[2]
        along, up = self._offset(phi2 + theta[3])
        dX, dZ = rates[0] + up * rates[3], rates[2] - along * rates[3]
        w1 = (dX * cos(phi2) + dZ * sin(phi2)) / (self.l1 * sin(theta[2]))
        w2 = -(dX * cos(phi1) + dZ * sin(phi1)) / (self.l2 * sin(theta[2]))
        return [rates[1], w1, w2 - w1, rates[3] - w2]


@dataclass(frozen=True)
class Linkage:
    """Geometry by the numbers in data("excavator_linkage")."""

    given: Any

    @classmethod
    def of_zoo(cls) -> Linkage:
        """Return the geometry of data("excavator_linkage")."""
        return cls(data("excavator_linkage"))

    @cached_property
    def arm(self) -> ExcavatorArm:
        """Forward and inverse kinematics of the arm."""
        g = self.given
        a, c = g["cab"]["boom_pin"]
        return ExcavatorArm(a, c, g["boom"]["length"], g["stick"]["length"], (g["bucket"]["length"], 0.0))

    @cached_property
    def start(self) -> list[float]:
        """Joint angles at q = 0, rad."""
        return [radians(x) for x in self.given["start_deg"]]

    def angles(self, q: Any) -> list[Scalar]:
        """Return the joint angles for the mechanism's `q`, which is indexed by joint name."""
        return [q[name] + a for name, a in zip(("swing", *CYLINDERS), self.start, strict=True)]

    def extensions(self, theta: Sequence[Scalar]) -> list[Scalar]:
        """Return the extensions of boom, stick and bucket cylinder for the joint angles `theta`, m."""
        closed = [self.given["cylinders"][name]["closed"] for name in CYLINDERS]
        return [length - rest for (length, _), rest in zip(self.lengths(theta), closed, strict=True)]

    def gears(self, theta: Sequence[Scalar]) -> list[Scalar]:
        """Return the speed of each cylinder per rad/s of its joint for the joint angles `theta`, m."""
        return [gear for _, gear in self.lengths(theta)]

    def lengths(self, theta: Sequence[Scalar]) -> list[tuple[Scalar, Scalar]]:
        """Return each cylinder's pin-to-pin length at the joint angles `theta`, and its derivative by its angle."""
        return [self.boom(theta[1]), self.stick(theta[2]), self.bucket(theta[3])]

    def boom(self, angle: Scalar) -> tuple[Scalar, Scalar]:
        """Return length and derivative of the boom cylinder at the boom's `angle`."""
        cab = self.given["cab"]
        a, fixed = _polar(cab["cylinder"], cab["boom_pin"])
        b, moving = _polar(self.given["boom"]["cylinder"])
        return _triangle(a, b, angle + (moving - fixed))

    def stick(self, angle: Scalar) -> tuple[Scalar, Scalar]:
        """Return length and derivative of the stick cylinder at the stick's `angle`."""
        boom = self.given["boom"]
        a, fixed = _polar(boom["stick_cylinder"], (boom["length"], 0.0))
        b, moving = _polar(self.given["stick"]["cylinder"])
        return _triangle(a, b, angle + (moving - fixed))

    def bucket(self, angle: Scalar) -> tuple[Scalar, Scalar]:
        """Return length and derivative of the bucket cylinder at the bucket's `angle`."""
        g, stick = self.given, self.given["stick"]
        ear, lever, link = _polar(g["bucket"]["link"]), g["lever"]["length"], g["link"]["length"]
        pin = stick["lever_pin"]
        e = angle + ear[1]
        d = ear[0] * cos(e), ear[0] * sin(e)  # from the bucket's pin to the link's
        E = stick["length"] + d[0] - pin[0], d[1] - pin[1]  # from the lever's pin
        gap2 = E[0] * E[0] + E[1] * E[1]
        k = atan2(E[1], E[0]) + acos((lever * lever - link * link + gap2) / (2.0 * lever * sqrt(gap2)))
        K = lever * cos(k), lever * sin(k)
        along = K[0] - E[0], K[1] - E[1]
        turn = (along[1] * d[0] - along[0] * d[1]) / (along[1] * K[0] - along[0] * K[1])  # dk/d(angle)
        foot, fixed = _polar(stick["bucket_cylinder"], pin)
        length, gear = _triangle(foot, lever, k - fixed)
        return length, gear * turn

    @cached_property
    def stops(self) -> tuple[tuple[float, float], ...]:
        """Limits of the desired joint angles, rad; the cab turns without limit."""
        limits = []
        for name, within in MONOTONIC_RANGES.items():
            cylinder = self.given["cylinders"][name]
            lengths = (cylinder["closed"] + x for x in (END_MARGIN, cylinder["stroke"] - END_MARGIN))
            end_angles = [_bisect(getattr(self, name), *within, length) for length in lengths]
            limits.append((min(end_angles), max(end_angles)))
        return ((-1e6, 1e6), *limits)


def _polar(place: PlanePoint, origin: PlanePoint = (0.0, 0.0)) -> tuple[float, float]:
    x, z = place[0] - origin[0], place[1] - origin[1]
    return hypot(x, z), angle_of(z, x)


def _triangle(a: float, b: float, angle: Scalar) -> tuple[Scalar, Scalar]:
    """Return the third side of a triangle, and its derivative by the angle between the other sides."""
    l = sqrt(a * a + b * b - 2.0 * a * b * cos(angle))
    return l, a * b * sin(angle) / l


def _bisect(length: Any, low: float, high: float, wanted: float) -> float:
    """Return the angle at which a monotonic length has the wanted value, by bisection."""
    rising = length(high)[0] > length(low)[0]
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (length(middle)[0] < wanted) == rising else (low, middle)
    return 0.5 * (low + high)


@dataclass(frozen=True)
class DigMove:
    """One move of the cycle: its duration and its final waypoint."""

    label: str
    seconds: float
    radius: float  # m, distance of the teeth from the swing axis
    swing: float  # degrees
    height: float  # m, above the ground
    bucket: float  # degrees, angle of the line from the bucket's pin to the teeth above the horizontal

    @property
    def waypoint(self) -> tuple[float, float, float, float]:
        """Final waypoint: radius, swing, height and bucket angle in m and rad."""
        return self.radius, radians(self.swing), self.height, radians(self.bucket)


CYCLE = (
    DigMove("reach", 2.0, 7.6, 0.0, 0.3, -75.0),
    DigMove("plunge", 2.5, 7.3, 0.0, -0.45, -85.0),
    DigMove("drag", 5.0, 5.0, 0.0, -0.55, -120.0),
    DigMove("curl", 3.5, 4.3, 0.0, 0.6, -175.0),
    DigMove("lift", 3.0, 4.6, 0.0, 2.6, -180.0),
    DigMove("swing", 5.0, 4.8, 80.0, 3.0, -180.0),
    DigMove("dump", 4.5, 6.6, 80.0, 2.2, -80.0),
    DigMove("return", 4.5, 6.8, 0.0, 1.2, -75.0),
)


@dataclass(frozen=True)
class DiggingCycle:
    """Periodic path through the waypoints of `moves`."""

    moves: tuple[DigMove, ...] = CYCLE

    @property
    def period(self) -> float:
        """Duration of the cycle, s."""
        return sum(m.seconds for m in self.moves)

    def phase(self, t: Scalar) -> Scalar:
        """Return the time since the cycle began, s, for the time `t`.

        The remainder is computed from an angle, by `atan2` of sine and cosine, without a modulo operation.
        """
        w = 2.0 * pi / self.period
        a = atan2(sin(w * t), cos(w * t))
        return where(a < 0.0, a + 2.0 * pi, a) / w

    def __call__(self, t: Scalar) -> tuple[list[Scalar], list[Scalar]]:
        """Return position and rate at the time `t`."""
        cycle_time = self.phase(t)
        waypoints = [self.moves[-1].waypoint, *(m.waypoint for m in self.moves)]
        position: list[Scalar] = list(waypoints[0])
        rate: list[Scalar] = [0.0] * 4
        begin = 0.0
        for k, move in enumerate(self.moves):
            a = clip((cycle_time - begin) / move.seconds, 0.0, 1.0) * (2.0 * pi)
            s, ds = (a - sin(a)) / (2.0 * pi), (1.0 - cos(a)) / move.seconds
            for i in range(4):
                distance = waypoints[k + 1][i] - waypoints[k][i]
                if distance:
                    position[i], rate[i] = position[i] + distance * s, rate[i] + distance * ds
            begin += move.seconds
        return position, rate
