"""One look at a machine and its ground: the edge does its work on the field, and the machine is told what it feels."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.ground.contact import GroundContact
from bellcrank.ground.field import Ground
from bellcrank.ground.soils import NamedSoil

Array = np.ndarray[Any, Any]
SOON = 0.2  # s: of two looks that are further apart nobody knows how fast the edge was


class Digger:
    """ground: the field it keeps; values: parameters of the machine's step, as they are now."""

    def __init__(self, contact: GroundContact, soil: NamedSoil | None = None) -> None:
        self.contact = contact
        self.ground = Ground(contact.tool, contact.level, soil) if soil else Ground(contact.tool, contact.level)
        self._last: tuple[float, Array] | None = None

    def look(self, t: float, pose: Array) -> dict[str, float]:
        """pose: of the bucket's body, 3x4, at the time t. Gives the parameters from now on."""
        R, origin, tool = pose[:, :3], pose[:, 3], self.contact.tool
        tip = R @ self.contact.tip + origin
        velocity = np.zeros(3)
        if self._last is not None and 0.0 < t - self._last[0] < SOON:
            velocity = (tip - self._last[1]) / (t - self._last[0])
        self._last = t, tip
        middle = origin + 0.7 * (tip - origin)
        self.ground.work(t, tip, R @ tool.across, float(R[2] @ tool.mouth), middle)
        return self.contact.values(self.ground, pose, velocity)
