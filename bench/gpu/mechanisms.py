"""The measured mechanisms: robots of example-robot-data, and the N-four-bar of the IFToMM benchmarks."""

from __future__ import annotations

import os
from pathlib import Path

import bellcrank as bc
from bellcrank.model import Mechanism

# The Panda with its fingers has eight coordinates; the arm alone has seven.
FILES = {
    "panda_arm": "panda.urdf",
    "ur5": "ur5_robot.urdf",
    "panda": "panda.urdf",
    "talos": "talos_reduced.urdf",
    "icub": "icub_reduced.urdf",
}

FINGERS = ["panda_finger_joint1", "panda_finger_joint2"]


def robot(name: str) -> Mechanism:
    """Return a robot from the folder in BELLCRANK_ROBOTS, or from the installed example-robot-data."""
    folder = os.environ.get("BELLCRANK_ROBOTS")
    if folder:
        path = Path(folder) / FILES[name]
    else:
        from bench.baseline import robot_path

        path = robot_path(name.removesuffix("_arm"))
    base = "floating" if name == "icub" else "fixed"  # 35 coordinates
    return bc.read(str(path), lock=FINGERS if name == "panda_arm" else (), base=base, check="warn")


def four_bars(n: int) -> Mechanism:
    """Return N windows side by side: 2 N + 1 bars of 1 m and 1 kg, N loops, one degree of freedom."""
    b = bc.Builder(f"{n}-four-bar", gravity=(0, -9.81, 0))
    third = 1.0 / 12.0
    for i in range(n + 1):
        b.body(f"upright{i}", mass=1.0, com=(i, 0.5, 0), inertia=(third, 0.0, third))
        b.joint(f"foot{i}", "revolute", "ground", f"upright{i}", point=(i, 0, 0), axis=(0, 0, 1))
    for i in range(n):
        b.body(f"beam{i}", mass=1.0, com=(i + 0.5, 1, 0), inertia=(0.0, third, third))
        b.joint(f"knee{i}", "revolute", f"upright{i}", f"beam{i}", point=(i, 1, 0), axis=(0, 0, 1))
        b.loop(f"close{i}", "revolute", f"beam{i}", f"upright{i + 1}", point=(i + 1, 1, 0), axis=(0, 0, 1))
    return b.build()
