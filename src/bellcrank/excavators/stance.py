"""How a machine stands on its tracks: how near it is to tipping over, and to slipping away.

    N = m g - F_z                                              what the ground carries; F: soil and walls on the bucket
    x_p = (sum m_i g x_i - (r x F)_xy ...) / N                 where it carries it: the centre of pressure
    tipping = max(|x_p| / half the tracks' length, |y_p| / half their gauge)         1: it begins to tip
    slipping = |F_xy| / (mu N)                                                       1: it begins to slip

Statics: what the arm's own acceleration does is left out. Beyond 1 the tracks of the model still hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.dynamics import kinematics
from bellcrank.excavators.digging import Footing
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar, fabs, maximum, sqrt

GRAVITY = 9.81  # m/s2


@dataclass(frozen=True)
class Stance:
    mechanism: Mechanism
    forces: Mapping[str, Any]
    footing: Footing

    def found(self, t: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[Scalar, Scalar]:
        """(tipping, slipping), 0 to 1 where it stands."""
        tree, f = self.mechanism.tree, self.footing
        own: Scalar = 0.0
        for body in self.mechanism.bodies:
            own = own + body.mass
        centre = kinematics.com(tree, list(q))
        pressed = (own + f.mass) * GRAVITY
        moment = [own * GRAVITY * centre[0], own * GRAVITY * centre[1]]  # of vertical forces, by x and by y
        push: list[Scalar] = [0.0, 0.0]
        for frame, force in self.forces.items():
            pose = np.array(kinematics.pose(tree, list(q), frame), object)
            velocity = np.array(kinematics.velocity(tree, list(q), list(v), frame), object)
            F, _ = force(t, pose, velocity)
            height = pose[2, 3] - f.contact.level
            pressed = pressed - F[2]
            for k in range(2):
                moment[k] = moment[k] - pose[k, 3] * F[2] + height * F[k]
                push[k] = push[k] + F[k]
        carried = maximum(pressed, 0.05 * f.mass * GRAVITY)
        along, beside = fabs(moment[0]) / (carried * f.half), fabs(moment[1]) / (carried * f.sides[1])
        return maximum(along, beside), sqrt(push[0] * push[0] + push[1] * push[1]) / (f.friction * carried)
