"""Machines that a thesis on parallel simulation had in its scope (wong1991, section 1.1.3), with estimated numbers.

The thesis names the FMS Timberjack feller buncher, the Kaiser Spyder and the Special Purpose Dexterous Manipulator, and
gives no data. Numbers here are estimates for machines of the same class, except where a source is named. Masses are
divided among the bodies by size; bodies are rods and boxes of uniform density.

Sources:

* Canadian Space Agency, How Dextre moves, asc-csa.gc.ca: two arms of 3.35 m with seven joints each, and a pivot at
  the waist. Wikipedia, Dextre: 1662 kg, 3.5 m.
* Wikipedia, Walking excavator: legs that swing, lift and telescope. Machines of this kind weigh 7 t to 12 t.
* Feller bunchers on tracks, such as the Timberjack 608 (Logging and Sawmilling Journal, February 2000): our estimate is
  25 t with the tracks, a reach of 8 m, and a felling head of 2 t with two grab arms on a wrist that tilts and rotates.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, radians, sin
from typing import Any

import numpy as np

from bellcrank.formats.builder import Builder
from bellcrank.model.mechanism import Mechanism
from bellcrank.zoo.published import add_rod

Point = Sequence[float]
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

# Joint of the arm, its axis, length (m) and mass (kg) of the link that it moves, and inertia of its rotor (kg m^2, at
# the joint): 3.35 m and 370 kg in total. Motors with gears of 1:500 and more have rotors as heavy as what they move.
DEXTRE_ARM: tuple[tuple[str, Point, float, float, float], ...] = (
    ("shoulder_roll", X, 0.15, 35.0, 200.0),
    ("shoulder_yaw", Z, 0.15, 35.0, 200.0),
    ("shoulder_pitch", Y, 1.25, 95.0, 200.0),
    ("elbow", Y, 1.25, 95.0, 200.0),
    ("wrist_pitch", Y, 0.15, 35.0, 50.0),
    ("wrist_yaw", Z, 0.15, 35.0, 50.0),
    ("wrist_roll", X, 0.25, 40.0, 50.0),
)
LEG_PLACES = {"front_left": (1, 1), "front_right": (1, -1), "rear_left": (-1, 1), "rear_right": (-1, -1)}


def add_box(b: Builder, name: str, mass: float, centre: Point, size: Point) -> None:
    """Add a box of uniform density to a builder, with its edges along the axes of the world.

    Parameters
    ----------
    b
        The builder.
    name
        Name of the body.
    mass
        Mass, kg.
    centre
        Centre, m.
    size
        Lengths of the edges, m.
    """
    x, y, z = (edge * edge for edge in size)
    b.body(name, mass, centre, (mass * (y + z) / 12, mass * (x + z) / 12, mass * (x + y) / 12))


def add_hinge(
    b: Builder, name: str, parent: str, child: str, point: Any, axis: Point, span: Point, **more: Any
) -> None:
    """Add a revolute joint to a builder, with its range in degrees.

    Parameters
    ----------
    b
        The builder.
    name
        Name of the joint.
    parent, child
        Names of the bodies.
    point
        Point on the axis, m.
    axis
        Direction of the axis.
    span
        Least and largest angle, deg.
    more
        Further arguments of `Builder.joint`.
    """
    low, high = map(radians, span)
    b.joint(name, "revolute", parent, child, point=point, axis=axis, lower=low, upper=high, **more)


def along(start: Any, angle: float, length: float) -> Any:
    """Return the point at a distance from `start`, in the plane y = constant.

    Parameters
    ----------
    start
        First point, m.
    angle
        Elevation above the x axis, deg.
    length
        Distance, m.
    """
    return np.array(start) + length * np.array((cos(radians(angle)), 0.0, sin(radians(angle))))


def shifted(point: Any, x: float, y: float, z: float) -> Any:
    """Return a point beside another one.

    Parameters
    ----------
    point
        First point, m.
    x, y, z
        Distances from it, m.
    """
    return np.array(point) + np.array((x, y, z))


def feller_buncher() -> Mechanism:
    """Tracked feller buncher: cab, boom, stick, a wrist with three axes, and a head whose grab arms close together.

    The tracks stand on the ground and are not a body. The numbers are estimates for a machine of 25 t.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    b = Builder("feller_buncher")
    add_box(b, "cab", 13000.0, (-0.6, 0.0, 2.1), (4.0, 2.9, 2.2))
    add_hinge(b, "swing", "ground", "cab", (0.0, 0.0, 1.1), Z, (-180.0, 180.0))
    hip = np.array((0.7, 0.0, 2.2))
    elbow = along(hip, 55.0, 4.0)
    wrist = along(elbow, -35.0, 3.2)
    add_rod(b, "boom", hip, elbow, mass=1900.0, radius=0.25)
    add_rod(b, "stick", elbow, wrist, mass=1100.0, radius=0.2)
    add_hinge(b, "boom", "cab", "boom", hip, (0.0, -1.0, 0.0), (-50.0, 25.0))
    add_hinge(b, "stick", "boom", "stick", elbow, (0.0, -1.0, 0.0), (-60.0, 70.0))
    roll, head = shifted(wrist, 0.3, 0.0, 0.0), shifted(wrist, 0.6, 0.0, 0.0)
    add_box(b, "tilter", 150.0, shifted(wrist, 0.15, 0.0, 0.0), (0.4, 0.4, 0.4))
    add_box(b, "roller", 200.0, shifted(roll, 0.15, 0.0, 0.0), (0.4, 0.5, 0.5))
    add_box(b, "head", 1700.0, shifted(head, 0.4, 0.0, -0.2), (0.9, 1.0, 2.2))
    add_hinge(b, "tilt", "stick", "tilter", wrist, (0.0, -1.0, 0.0), (-45.0, 100.0))
    add_hinge(b, "roll", "tilter", "roller", roll, X, (-30.0, 30.0))
    add_hinge(b, "rotate", "roller", "head", head, Z, (-40.0, 40.0))
    for name, side in (("left", 1.0), ("right", -1.0)):
        root = shifted(head, 0.8, 0.5 * side, 0.3)
        add_rod(b, f"{name}_arm", root, shifted(root, 0.8, 0.0, 0.0), mass=75.0, radius=0.08)
        more = {} if name == "left" else {"mimic": ("grab", -1.0, 0.0)}
        joint = "grab" if name == "left" else "grab_right"
        add_hinge(b, joint, "head", f"{name}_arm", root, Z, (-75.0, 35.0) if name == "left" else (-35.0, 75.0), **more)
    b.frame("tool", "head", point=shifted(head, 0.9, 0.0, -1.2))
    return b.build()


def walking_excavator() -> Mechanism:
    """Walking excavator (Kaiser's and Menzi's class, 8 t): a chassis on four legs whose claws hold on the ground.

    Each leg swings, lifts and telescopes, and its claw is a ball joint on the ground: six of the twelve joints of the
    legs move the chassis in all directions. The arm has a telescopic stick. The numbers are estimates; the joints of
    the legs have the small ranges in which all claws can stay on the ground.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    b = Builder("walking_excavator")
    add_box(b, "chassis", 2000.0, (0.0, 0.0, 1.0), (2.4, 1.6, 0.4))
    b.joint("chassis", "floating", "ground", "chassis")
    for name, (forward, left) in LEG_PLACES.items():
        _add_leg(b, name, np.array((1.1 * forward, 0.8 * left, 1.0)), np.array((2.4 * forward, 1.7 * left, 0.1)))
    add_box(b, "cab", 3000.0, (-0.4, 0.0, 2.0), (2.2, 1.7, 1.5))
    add_hinge(b, "swing", "chassis", "cab", (0.0, 0.0, 1.25), Z, (-180.0, 180.0))
    hip = np.array((0.6, 0.0, 1.8))
    elbow = along(hip, 40.0, 2.8)
    slide, wrist = along(elbow, -50.0, 1.5), along(elbow, -50.0, 2.0)
    teeth = along(wrist, -100.0, 0.9)
    add_rod(b, "boom", hip, elbow, mass=500.0, radius=0.15)
    add_rod(b, "stick", elbow, slide, mass=280.0, radius=0.13)
    add_rod(b, "telescope", along(elbow, -50.0, 0.5), wrist, mass=150.0, radius=0.1)
    add_rod(b, "bucket", wrist, teeth, mass=250.0, radius=0.3)
    add_hinge(b, "boom", "cab", "boom", hip, (0.0, -1.0, 0.0), (-60.0, 40.0))
    add_hinge(b, "stick", "boom", "stick", elbow, (0.0, -1.0, 0.0), (-70.0, 60.0))
    direction = (wrist - elbow) / np.linalg.norm(wrist - elbow)
    b.joint("telescope", "prismatic", "stick", "telescope", point=slide, axis=direction, lower=-0.2, upper=1.0)
    add_hinge(b, "bucket", "telescope", "bucket", wrist, (0.0, -1.0, 0.0), (-90.0, 90.0))
    b.frame("tool", "bucket", point=teeth)
    return b.build()


def _add_leg(b: Builder, name: str, hip: Any, claw: Any) -> None:
    """Add a leg from a hip on the chassis to its claw on the ground."""
    down = (claw - hip) / np.linalg.norm(claw - hip)
    across = np.cross(Z, down) / np.linalg.norm(np.cross(Z, down))
    knee = hip + 0.6 * (claw - hip)
    add_box(b, f"{name}_hip", 150.0, hip, (0.4, 0.4, 0.4))
    add_rod(b, f"{name}_leg", hip, knee, mass=250.0, radius=0.15)
    add_rod(b, f"{name}_foot", hip + 0.3 * (claw - hip), claw, mass=100.0, radius=0.1)
    add_hinge(b, f"{name}_swing", "chassis", f"{name}_hip", hip, Z, (-8.0, 8.0))
    add_hinge(b, f"{name}_lift", f"{name}_hip", f"{name}_leg", hip, across, (-8.0, 8.0))
    slide = {"point": knee, "axis": down, "lower": -0.12, "upper": 0.12}
    b.joint(f"{name}_slide", "prismatic", f"{name}_leg", f"{name}_foot", **slide)
    b.close(f"{name}_claw", "spherical", "ground", f"{name}_foot", point=claw)


def space_manipulator() -> Mechanism:
    """Two-armed manipulator that floats in space: a body with a waist, and two arms of seven joints (Dextre's size).

    Lengths of the arms, number of joints and total mass are those of the Special Purpose Dexterous Manipulator; their
    division among the links is an estimate. There is no gravity. The real machine is held by a larger arm.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    b = Builder("space_manipulator", gravity=(0.0, 0.0, 0.0))
    add_box(b, "base", 570.0, (0.0, 0.0, 0.875), (0.9, 0.9, 1.75))
    b.joint("base", "floating", "ground", "base")
    add_box(b, "trunk", 352.0, (0.0, 0.0, 2.625), (0.6, 1.2, 1.75))
    add_hinge(b, "waist", "base", "trunk", (0.0, 0.0, 1.75), Z, (-180.0, 180.0), armature=200.0)
    for side, y in (("left", 0.7), ("right", -0.7)):
        _add_arm(b, side, np.array((0.0, y, 3.1)))
    return b.build()


def _add_arm(b: Builder, side: str, shoulder: Any) -> None:
    """Add an arm that points forward."""
    parent, point = "trunk", shoulder
    for joint, axis, length, mass, rotor in DEXTRE_ARM:
        child, end = f"{side}_{joint}_link", shifted(point, length, 0.0, 0.0)
        add_rod(b, child, point, end, mass=mass, radius=0.12)
        add_hinge(b, f"{side}_{joint}", parent, child, point, axis, (-150.0, 150.0), armature=rotor)
        parent, point = child, end
    b.frame(f"{side}_tool", parent, point=point)
