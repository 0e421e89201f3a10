"""Coupling of a machine to its ground: the edge works on the field, and the machine gets the resulting parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.ground.contact import GroundContact
from bellcrank.ground.field import Ground
from bellcrank.ground.soils import NamedSoil

Array = np.ndarray[Any, Any]
MAX_UPDATE_GAP = 0.2  # s: updates further apart give no velocity of the edge


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
