"""Kinematics of the excavator's arm for RESOLVED mode: radius, swing, height and bucket angle, and their inverse.

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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.actuators.actuator import bounded_rate
from bellcrank.errors import InputError
from bellcrank.model.mechanism import Mechanism
from bellcrank.scalar import Scalar, acos, atan2, clip, cos, maximum, sin, sqrt

TipScalars = list[Scalar]
LEAST_ARC_RADIUS = 1.0  # m, least radius for the conversion of arc speed to a rate of the cab
LEAST_DISTANCE = 1e-9  # m, lower bound of a distance in a denominator


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
