"""Mechanisms in Python: bodies and joints described in world axes at the zero configuration.

A body's frame stands at its joint's point with the world's axes. Nobody has to write a rotation matrix, and a point
where two bodies meet is the same three numbers for both.

Closed loops are joints like the others, or `close`: joint() may join any two bodies, and build() finds the joints that
carry the bodies and cuts the rest (the rule: model/cut.py). What was cut says the report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import ModelError, unknown
from bellcrank.formats import loop_elements as closing
from bellcrank.formats.bending_bodies import BendingBodies
from bellcrank.formats.moving_constraints import VERBS, MovingConstraints
from bellcrank.formats.numbers import inertia as inertia_matrix
from bellcrank.formats.numbers import items, limit, number, rotation_matrix, vector
from bellcrank.misfits import explained_class
from bellcrank.model import check, mechanism_of
from bellcrank.model.check import level
from bellcrank.model.joints import KINDS
from bellcrank.model.joints.modal import PREFIX
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.outline import Outline
from bellcrank.model.parts import (
    COUPLINGS,
    EQUATIONS,
    IDENTITY,
    Array,
    Body,
    Frame,
    Joint,
    Limits,
    Line,
    Loop,
    Mimic,
    Number,
    Spring,
    Triple,
    matrix,
    triple,
)

if TYPE_CHECKING:
    from bellcrank.formats.beams import Bent

GROUND = "ground"
ORIGIN: Triple = (0.0, 0.0, 0.0)
Vector = Sequence[Number] | Array


@explained_class("__init__", "body", "build", "close", "frame", "joint", "loop", "spring")
class Builder(MovingConstraints, BendingBodies):
    """Collects parts and checks each as it comes; `build()` makes the Mechanism.

    >>> b = bc.Builder("pendulum")
    >>> b.body("arm", mass=1.0, com=(0, 0, -1))
    >>> b.joint("hinge", "revolute", "ground", "arm", axis=(0, 1, 0))
    >>> m = b.build()
    >>> m.mass_matrix([0.0]).tolist()
    [[1.0]]
    """

    def __init__(self, name: str, gravity: Vector = (0.0, 0.0, -9.81), *, check: str = "error") -> None:
        """check: "error" refuses an inertia that no body has; "warn" takes it and says so in the report, as `read` does
        with files.
        """
        if not isinstance(name, str) or not name:
            raise ModelError(f"the mechanism's name is {name!r}; expected a text.")
        self.name = name
        self.check = level(check)
        self.gravity = vector(gravity, f'mechanism "{name}"', "gravity")
        self._bodies: dict[str, Body] = {}
        self._joints: dict[str, Joint] = {}
        self._frames: dict[str, Frame] = {}
        self._loops: dict[str, Loop] = {}
        self._springs: dict[str, Spring] = {}
        self._ends: dict[str, Frame] = {}  # of loops and springs
        self._bent: dict[str, Bent] = {}
        self._outlines: dict[str, Outline] = {}

    def body(self, name: str, mass: Number | None = None, com: Vector = ORIGIN, inertia: Any = None) -> None:
        """com in the world; inertia about it, in world axes: 3 moments, 6 numbers (xx, yy, zz, xy, xz, yz) or 3x3.

        Without inertia it is a point mass; without mass, a massless body.
        """
        where = self._new("body", name, [GROUND, *self._bodies])
        self._no_frame(name in self._frames, name)
        centre = vector(com, where, "com")
        if mass is None:
            if inertia is not None or centre != ORIGIN:
                raise ModelError(
                    f"{where}: has a com or an inertia but no mass; give the mass, or leave all three out."
                )
            self._bodies[name] = Body(name, declared=False)
            return
        I = ((0.0,) * 3,) * 3 if inertia is None else inertia_matrix(inertia, where)
        body = Body(name, number(mass, where, "mass"), centre, matrix(I))
        if body.mass == 0.0:  # no free one does, whatever its nominal value
            raise ModelError(f"{where}: mass is 0 kg; expected a positive mass, or none at all for a massless body.")
        check.numbers(body)
        if self.check == "error":  # now, where the mistake is; one moment is judged by the joints, when it is built
            check.refuse(check.doubt(body, planar=check.one_moment(body)))
        self._bodies[name] = body

    def joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        *,
        point: Vector = ORIGIN,
        axis: Vector = (0.0, 0.0, 1.0),
        second_axis: Vector | None = None,
        pitch: Number = 0.0,
        armature: Number = 0.0,
        damping: Number = 0.0,
        friction: Number = 0.0,
        friction_speed: Number = 1e-3,
        stiffness: Number = 0.0,
        rest: Number = 0.0,
        lower: Number = -math.inf,
        upper: Number = math.inf,
        velocity: Number = math.inf,
        effort: Number = math.inf,
        mimic: Mimic | str | tuple[Any, ...] | None = None,
    ) -> None:
        """Joins `parent` and `child` ("ground" is the ground). point and axes in the world, at the zero configuration.

        Where joints form a closed loop, build() cuts one of them.

        second_axis: universal joints; pitch: metres per radian of helical joints; mimic: the name of another joint, or
        (name, multiplier, offset), whose coordinate moves this one.
        """
        where = self._new("joint", name, [*self._joints, *self._loops])
        self._body(parent, where)
        self._body(child, where)
        if not isinstance(kind, str) or kind.startswith(PREFIX):
            raise ModelError(f"{where}: {unknown('joint type', kind, KINDS)}")
        bounds = {"lower": lower, "upper": upper, "velocity": velocity, "effort": effort}
        joint = Joint(
            name,
            kind,
            parent,
            child,
            point=vector(point, where, "point"),
            axis=vector(axis, where, "axis"),
            second_axis=None if second_axis is None else vector(second_axis, where, "second_axis"),
            pitch=number(pitch, where, "pitch"),
            armature=number(armature, where, "armature"),
            damping=number(damping, where, "damping"),
            friction=number(friction, where, "friction"),
            friction_speed=number(friction_speed, where, "friction_speed"),
            stiffness=number(stiffness, where, "stiffness"),
            rest=number(rest, where, "rest"),
            limits=Limits(**{what: limit(value, where, what) for what, value in bounds.items()}),
            mimic=self._mimic(mimic, where),
        )
        for _ in check.joint(joint, [GROUND, *self._bodies]):
            pass
        self._joints[name] = joint

    def frame(self, name: str, body: str, point: Vector = ORIGIN, rotation: Any = None) -> None:
        """A named place on a body; point and rotation (a 3x3 matrix) in the world at the zero configuration."""
        where = self._new("frame", name, [*self._frames, *self._ends])
        self._body(body, where)
        self._no_frame(name in (GROUND, *self._bodies), name)
        R = IDENTITY if rotation is None else rotation_matrix(rotation, where)
        self._frames[name] = Frame(name, body, R, vector(point, where, "point"))

    def close(
        self,
        name: str,
        kind: str,
        body_a: str = "",
        body_b: str = "",
        *,
        point: Vector | None = None,
        point_a: Vector | None = None,
        point_b: Vector | None = None,
        axis: Vector | None = None,
        axis_b: Vector | None = None,
        second_axis: Vector | None = None,
        second_axis_b: Vector | None = None,
        distance: Number | None = None,
        ratio: Number | None = None,
        offset: Number | None = None,
        joints: Sequence[str] = (),
    ) -> None:
        """Closes a loop: two bodies that meet as in a joint, or two joints that move together. Adds no coordinate.

        revolute, prismatic, cylindrical, universal, spherical, planar, fixed: as joints of that kind, at `point`.
        distance: from point_a to point_b, `distance` metres (what it is at the zero configuration, unless told).
        point_on_line: point_b stays on the line through point_a along `axis`, which belongs to body_a.
        gear: joints=(first, second) move as second = ratio * first + offset. rack: the same, from radians to metres.

        Points and axes are in the world at the zero configuration. The loop need not be closed there: point_a, axis and
        second_axis are then where body_a has them, point_b, axis_b and second_axis_b where body_b does.
        """
        where = self._new("loop", name, [*self._joints, *self._loops])
        if not isinstance(kind, str) or kind not in EQUATIONS:
            raise ModelError(f"{where}: {unknown('loop type', kind, EQUATIONS)}")
        if kind in VERBS:
            raise ModelError(f'{where}: a {kind} loop is made by Builder.{VERBS[kind]}("{name}", ...).')
        numbers = {"distance": distance, "ratio": ratio, "offset": offset}
        if kind in COUPLINGS:
            places = (point, point_a, point_b, axis, axis_b, second_axis, second_axis_b)
            self._loops[name] = closing.coupling(where, name, kind, joints, numbers, (body_a, body_b, *places))
            return
        self._body(body_a, where)
        self._body(body_b, where)
        a = closing.LoopEnd(body_a, point_a if point_a is not None else point, axis, second_axis)
        b = closing.LoopEnd(
            body_b,
            point_b if point_b is not None else point,
            axis_b if axis_b is not None else axis,
            second_axis_b if second_axis_b is not None else second_axis,
        )
        loop, *ends = closing.closure(where, name, kind, a, b, numbers, joints)
        self._end(where, *ends)
        self._loops[name] = loop

    loop = close  # the shorter name

    def spring(
        self,
        name: str,
        body_a: str,
        body_b: str,
        point_a: Vector,
        point_b: Vector,
        stiffness: Number = 0.0,
        length: Number | None = None,
        damping: Number = 0.0,
    ) -> None:
        """A spring and damper between two points, given in the world at the zero configuration.

        stiffness in N/m, damping in N s/m; length at rest, which is that at the zero configuration unless told.
        """
        where = self._new("spring", name, self._springs)
        self._body(body_a, where)
        self._body(body_b, where)
        spring, *ends = closing.spring(
            where,
            name,
            (body_a, body_b),
            (point_a, point_b),
            {"stiffness": stiffness, "length": length, "damping": damping},
        )
        self._end(where, *ends)
        self._springs[name] = spring

    def build(self) -> Mechanism:
        """The mechanism; may be called again after adding parts."""
        carrying, loops, ends, cut = closing.opened(self._joints, self._loops, GROUND, list(self._bodies))
        at = {GROUND: np.zeros(3)} | {j.child: np.asarray(j.point) for j in carrying}  # each body's origin
        bodies = [
            replace(b, com=triple(np.subtract(b.com, at[b.name]))) if b.declared else b for b in self._bodies.values()
        ]
        joints = [replace(j, point=triple(np.subtract(j.point, at[j.parent]))) for j in carrying]
        placed = [*self._frames.values(), *self._ends.values(), *ends]
        frames = [replace(f, point=triple(np.subtract(f.point, at[f.body]))) for f in placed]
        springs = list(self._springs.values())
        lines = [
            *(Line(f'body "{b.name}"', f"{b.mass:g} kg" if b.declared else "massless") for b in bodies),
            *(Line(f'body "{name}"', f"bends: {x.modal.modes} modes") for name, x in self._bent.items()),
            *(Line(f'joint "{j.name}"', f'{j.kind}, "{j.parent}" to "{j.child}"') for j in joints),
            *cut,
            *(Line(f'loop "{x.name}"', f"{x.kind}: {EQUATIONS[x.kind]} equations") for x in self._loops.values()),
            *(Line(f'spring "{s.name}"', "between two points") for s in springs),
            *(Line(f'frame "{f.name}"', f'on "{f.body}"') for f in frames),
        ]
        flexible = [x.modal.seen_from(name, np.eye(3), x.start - at[name]) for name, x in self._bent.items()]
        drawn = [x.seen_from({b: (b, np.eye(3), -p) for b, p in at.items()}) for x in self._outlines.values()]
        parts = (bodies, joints, frames, loops, springs, flexible, drawn)
        return mechanism_of(self.name, *parts, ground=GROUND, gravity=self.gravity, lines=lines, checks=self.check)

    def _new(self, what: str, name: str, taken: Sequence[str] | dict[str, Any]) -> str:
        if not isinstance(name, str) or not name:
            raise ModelError(f'a {what} of mechanism "{self.name}" has the name {name!r}; expected a text.')
        if name in taken:
            shared = ", those of joints and loops, too" if what in ("joint", "loop") else ""
            raise ModelError(
                f'{what} "{name}" exists already in mechanism "{self.name}"; names must differ{shared}. '
                "Rename one of them."
            )
        return f'{what} "{name}"'

    def _body(self, name: Any, where: str) -> None:
        if not isinstance(name, str) or name not in (GROUND, *self._bodies):
            raise ModelError(f"{where}: {unknown('body', name, [GROUND, *self._bodies])} Add it with body() first.")

    def _no_frame(self, taken: bool, name: str) -> None:
        if taken:
            raise ModelError(
                f'frame "{name}" of mechanism "{self.name}": a body has this name, and every body is a frame of its '
                "own name already. Rename one of them."
            )

    def _end(self, where: str, *ends: Frame) -> None:
        for f in ends:
            if f.name in self._frames or f.name in self._ends:
                raise ModelError(f'{where}: its end would be called "{f.name}", and there is such a frame. Rename one.')
        self._ends |= {f.name: f for f in ends}

    def _mimic(self, given: Mimic | str | tuple[Any, ...] | None, where: str) -> Mimic | None:
        if given is None:
            return None
        parts = (given.joint, given.multiplier, given.offset) if isinstance(given, Mimic) else given
        name, *rest = [parts] if isinstance(parts, str) else items(parts) or [None]
        if not isinstance(name, str) or len(rest) > 2:
            raise ModelError(f"{where}: mimic is {given!r}; expected a joint's name or (name, multiplier, offset).")
        return Mimic(name, *(number(x, where, "mimic") for x in rest))
