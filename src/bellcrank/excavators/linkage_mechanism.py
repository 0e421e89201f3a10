"""Excavator of the 20 t class with cylinders and the bucket's linkage, which the papers leave out.

Twelve bodies: cab, boom, stick and bucket; barrel and rod of three cylinders; lever and link of the bucket. Four loops
close the mechanism, with two equations each, and leave swing, boom, stick and bucket as degrees of freedom.
data("excavator_linkage") has every number with its source, or marks it as assumed; docs/excavator.md has a drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import acos, atan2, cos, hypot, radians, sin
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.formats.builder import Builder
from bellcrank.model import Array, Mechanism
from bellcrank.structures.beam_sections import PolygonalBeam, polygonal_beam
from bellcrank.structures.matrices import flexible
from bellcrank.structures.modes import Moments
from bellcrank.structures.section import Material, Section
from bellcrank.zoo.published import add_rod, data

NAME, FLEXIBLE, TRACKED = "excavator_linkage", "excavator_flexible", "excavator_tracked"
# Attachment points of flexible bodies: {place: corner}, the body's own pin first.
LUGS = {
    "boom": {"pin": 0, "rod": 1, "barrel": 2, "end": 3},
    "stick": {"pin": 1, "rod": 0, "barrel": 2, "lever": 3, "end": 4},
}
# Masses in kg for the choice of modes: the weight at the end, and at a cylinder a mass that bends like its force.
CARRIED_MASSES = {
    "boom": {"end": 2500.0, "barrel": 10000.0},
    "stick": {"end": 1500.0, "lever": 500.0, "barrel": 3000.0},
}
IN_PLANE = (0, 2, 4)  # translations along x and z, and the rotation about y
SUPPORTS = {"pin": (0, 1, 2, 3, 5), "rod": (2,)}  # the body turns about its pin and is held by its cylinder
FIXED_INTERFACE_MODES = 4  # fixed-interface modes before the selection by frequency
MODE_DAMPING = 0.02  # damping ratio of each mode: welded plates and pins
HINGE_AXIS = (0.0, -1.0, 0.0)  # axis of the hinges: positive angles turn x upwards
CARRIAGE_SIZE = (4.28, 2.98, 0.9)  # m, size of the carriage's box
BAR_RADIUS = 0.06  # m, radius of barrels and rods for their inertia


@dataclass(frozen=True)
class PartFrame:
    """Planar frame of a part in side view: position of its pin, and its angle above the horizontal."""

    origin: Array
    angle: float

    @property
    def axes(self) -> Array:
        """Rotation matrix of the frame."""
        c, s = cos(self.angle), sin(self.angle)
        return np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])

    def point(self, place: Sequence[float]) -> Array:
        """Return the position of the point `place` = (x, z) of the part, (3,), in m."""
        position: Array = self.origin + self.axes @ [place[0], 0.0, place[1]]
        return position


def excavator_linkage() -> Mechanism:
    """Return an excavator of the 20 t class with cylinders and the bucket's lever and link.

    Returns
    -------
    Mechanism
        Assembled at q = 0, ready to dig.
    """
    return _build(Builder(NAME), rigid=True)


@explain_argument_errors
def excavator_flexible(below: float = 60.0) -> Mechanism:
    """Return excavator_linkage with a boom and a stick that bend in their plane.

    Parameters
    ----------
    below : float, default 60.0
        Highest frequency of the modes that are kept, Hz. The modes are those of the body on its hinge and cylinder,
        with its load.

    Returns
    -------
    Mechanism
        Assembled at q = 0.
    """
    return _build(Builder(FLEXIBLE), rigid=False, below=below)


@explain_argument_errors
def excavator_tracked(carriage: float) -> Mechanism:
    """Return excavator_linkage on a carriage that is free to move.

    Parameters
    ----------
    carriage : float
        Mass of the carriage, kg.

    Returns
    -------
    Mechanism
        Assembled at q = 0.
    """
    b = Builder(TRACKED)
    inertia = _box_inertia(carriage, CARRIAGE_SIZE)
    b.body("carriage", mass=carriage, com=(0.0, 0.0, CARRIAGE_SIZE[2] / 2), inertia=inertia)
    b.joint("carriage", "floating", "ground", "carriage")
    return _build(b, rigid=True, base="carriage")


def _build(b: Builder, rigid: bool, below: float = 0.0, base: str = "ground") -> Mechanism:
    g = data(NAME)
    _, boom_angle, stick_angle, bucket_angle = (radians(x) for x in g["start_deg"])
    cab = PartFrame(np.zeros(3), 0.0)
    boom = PartFrame(cab.point(g["cab"]["boom_pin"]), boom_angle)
    stick = PartFrame(boom.point([g["boom"]["length"], 0.0]), boom_angle + stick_angle)
    bucket = PartFrame(stick.point([g["stick"]["length"], 0.0]), boom_angle + stick_angle + bucket_angle)
    for name, side in {"cab": cab, "boom": boom, "stick": stick, "bucket": bucket}.items():
        if rigid or name not in LUGS:
            _box(b, name, g[name], side)
        else:
            structure = steelwork(g[name], LUGS[name], CARRIED_MASSES[name], below)
            b.flexible(name, structure, side.origin, side.axes, damping=MODE_DAMPING)

    def lug_body(body: str, place: str) -> str:
        """Return the body to attach to: the body itself if rigid, or else the node body of the place."""
        return body if rigid else f"{body}.{place}"

    b.joint("swing", "revolute", base, "cab", axis=(0, 0, 1))
    b.joint("boom", "revolute", "cab", "boom", point=boom.origin, axis=HINGE_AXIS)
    b.joint("stick", "revolute", lug_body("boom", "end"), "stick", point=stick.origin, axis=HINGE_AXIS)
    b.joint("bucket", "revolute", lug_body("stick", "end"), "bucket", point=bucket.origin, axis=HINGE_AXIS)

    lever_pin, ear = stick.point(g["stick"]["lever_pin"]), bucket.point(g["bucket"]["link"])
    knee = _knee(lever_pin, g["lever"]["length"], ear, g["link"]["length"])
    add_rod(b, "lever", lever_pin, knee, g["lever"]["mass"], BAR_RADIUS)
    add_rod(b, "link", knee, ear, g["link"]["mass"], BAR_RADIUS)
    b.joint("lever", "revolute", lug_body("stick", "lever"), "lever", point=lever_pin, axis=HINGE_AXIS)
    b.joint("link", "revolute", "lever", "link", point=knee, axis=HINGE_AXIS)
    b.close("link_bucket", "revolute", "link", "bucket", point=ear, axis=HINGE_AXIS)

    pins = {
        "boom": ("cab", cab.point(g["cab"]["cylinder"]), lug_body("boom", "rod"), boom.point(g["boom"]["cylinder"])),
        "stick": (
            *(lug_body("boom", "barrel"), boom.point(g["boom"]["stick_cylinder"])),
            *(lug_body("stick", "rod"), stick.point(g["stick"]["cylinder"])),
        ),
        "bucket": (lug_body("stick", "barrel"), stick.point(g["stick"]["bucket_cylinder"]), "lever", knee),
    }
    for name, ends in pins.items():
        _cylinder(b, name, g["cylinders"][name], *ends)
    b.frame("tip", "bucket", point=bucket.point([g["bucket"]["length"], 0.0]), rotation=bucket.axes)
    return b.build()


def _cylinder(
    b: Builder, name: str, numbers: Mapping[str, Any], parent: str, foot: Array, child: str, head: Array
) -> None:
    """Attach the barrel to the parent, the rod to the barrel, and the rod's eye to the child, which closes a loop."""
    along = (head - foot) / np.linalg.norm(head - foot)
    barrel, rod = numbers["masses"]
    add_rod(b, f"{name}_barrel", foot, foot + along * numbers["closed"] * 0.9, barrel, BAR_RADIUS)
    add_rod(b, f"{name}_rod", head - along * numbers["closed"] * 0.9, head, rod, BAR_RADIUS)
    b.joint(f"{name}_barrel", "revolute", parent, f"{name}_barrel", point=foot, axis=HINGE_AXIS)
    extension = float(np.linalg.norm(head - foot)) - numbers["closed"]  # extension at q = 0
    limits = {"lower": -extension, "upper": numbers["stroke"] - extension}
    b.joint(f"{name}_cylinder", "prismatic", f"{name}_barrel", f"{name}_rod", point=head, axis=along, **limits)
    b.close(f"{name}_eye", "revolute", f"{name}_rod", child, point=head, axis=HINGE_AXIS)


def _knee(pin: Array, lever: float, ear: Array, link: float) -> Array:
    """Return the joint of lever and link, on the far side of the line from the lever's pin to the bucket's ear."""
    difference = ear - pin
    gap, angle = hypot(difference[0], difference[2]), atan2(difference[2], difference[0])
    angle += acos((lever**2 + gap**2 - link**2) / (2 * lever * gap))
    return pin + lever * np.array([cos(angle), 0.0, sin(angle)])


def _box(b: Builder, name: str, numbers: Mapping[str, Any], side: PartFrame) -> None:
    inertia = side.axes @ _box_inertia(numbers["mass"], numbers["size"]) @ side.axes.T
    b.body(name, mass=numbers["mass"], com=side.point(numbers["com"]), inertia=inertia)


def _box_inertia(mass: float, size: Sequence[float]) -> Array:
    x, y, z = size
    return mass / 12 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])


# -- boom and stick that bend: crooked box beams


def steelwork(given: Mapping[str, Any], lugs: Mapping[str, int], carried: Mapping[str, float], below: float) -> Moments:
    """Return the flexible body of a boom or stick.

    Its density is scaled so that the plates have the given mass.

    Parameters
    ----------
    given
        Boom or stick of data("excavator_linkage").
    lugs
        Corner of each attachment point.
    carried
        Mass at attachment points, kg.
    below
        Highest frequency of the modes that are kept, Hz.
    """
    steel = Material.steel()
    bare = _frame(given, steel)
    mass = float(bare.M[1::6, 1::6].sum())
    frame = _frame(given, replace(steel, density=steel.density * given["mass"] / mass))
    places = {name: frame.corners[corner] for name, corner in lugs.items()}
    body = flexible(
        *(frame.K, frame.M, frame.nodes, places),
        modes=FIXED_INTERFACE_MODES, below=below, directions=IN_PLANE, supports=SUPPORTS, loads=carried,
    )  # fmt: skip
    return replace(body, pieces=frame.pieces)


def _frame(given: Mapping[str, Any], material: Material) -> PolygonalBeam:
    corners = np.array([[x, 0.0, z] for x, z in given["corners"]])
    arc_lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
    width, wall = given["plates"]
    return polygonal_beam(
        corners,
        lambda s: Section.box(width, float(np.interp(s * arc_lengths[-1], arc_lengths, given["heights"])), wall),
        material,
    )
