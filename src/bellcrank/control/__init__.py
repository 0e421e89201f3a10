"""Controllers and desired motions: inverse dynamics, trajectories, leashes, a trot gait.

A controller is called as control(t, q, v, x, u) and returns its commands. A controller with memory has `states`
(StateVariable), finds them in x by name, and returns (commands, rates).
"""

from __future__ import annotations

from bellcrank.control.trajectory import Cycloid, InverseDynamics, Ramp, Trajectory, saha, wong
from bellcrank.control.trot import Leg, Trot

__all__ = ["Cycloid", "InverseDynamics", "Leg", "Ramp", "Trajectory", "Trot", "saha", "wong"]
