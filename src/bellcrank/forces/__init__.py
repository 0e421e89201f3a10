"""Forces from outside, for bc.system(..., forces={"frame": ...}): functions of (t, pose, velocity) on a frame."""

from __future__ import annotations

from bellcrank.forces.soil import Soil

__all__ = ["Soil"]
