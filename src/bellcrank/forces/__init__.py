"""Forces from outside, for bc.system(..., forces={"frame": ...}): functions of (t, pose, velocity) on a frame."""

from __future__ import annotations

from bellcrank.forces.barriers import Block, Pad, Post, Together
from bellcrank.forces.cutting import Cutting
from bellcrank.forces.soil import Soil

__all__ = ["Block", "Cutting", "Pad", "Post", "Soil", "Together"]
