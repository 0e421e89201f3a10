"""Mechanisms in Python: bodies and joints described in world axes at the zero configuration.

A body's frame has its origin at its joint's point and the world's axes. No rotation matrices are needed, and a point
where two bodies meet has the same three coordinates for both.

Closed loops are ordinary joints, or `close`: joint() may connect any two bodies, and build() chooses the tree of joints
that carry the bodies and cuts the rest (the rule: model/spanning_tree.py). The report lists the joints that were cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_methods, sequence_elements
from bellcrank.errors import ModelError, check_known, unknown
from bellcrank.formats.builder_parts import GROUND, LoopEnd, body_loop, cut_loops, joint_coupling, spring_with_frames
from bellcrank.formats.flexible_bodies import FlexibleBodies
from bellcrank.formats.moving_constraints import BUILDER_METHODS, MovingConstraints, Vector
from bellcrank.formats.number_checks import inertia as inertia_matrix
from bellcrank.formats.number_checks import limit, number, rotation_matrix, vector
from bellcrank.model import Body, Frame, Joint, Limits, Mechanism, Mimic, ReportLine, mechanism_of, part_checks
from bellcrank.model.joints import KINDS
from bellcrank.model.joints.modal import MODAL_PREFIX
from bellcrank.model.part_checks import checked_level
from bellcrank.model.parts import COUPLINGS, EQUATIONS, IDENTITY, ORIGIN, Number, matrix, triple


@explain_methods("__init__", "body", "build", "close", "frame", "joint", "loop", "spring")
class Builder(MovingConstraints, FlexibleBodies):
    """Collects parts and checks each when it is added; `build()` makes the Mechanism.

    Parameters
    ----------
    name : str
        Name of the mechanism.
    gravity : array_like, shape (3,)
        In world axes, m/s^2.
    check : {"error", "warn"}
        "error" refuses an inertia that no real body has; "warn" accepts and reports it, as `read` does with files.

    Examples
    --------
    >>> b = bc.Builder("pendulum")
    >>> b.body("arm", mass=1.0, com=(0, 0, -1))
    >>> b.joint("hinge", "revolute", "ground", "arm", axis=(0, 1, 0))
    >>> m = b.build()
    >>> m.mass_matrix([0.0]).tolist()
    [[1.0]]
    """

    def __init__(self, name: str, gravity: Vector = (0.0, 0.0, -9.81), *, check: str = "error") -> None:
        """Start an empty mechanism `name` with `gravity`; `check` selects "error" or "warn"."""
        if not isinstance(name, str) or not name:
            raise ModelError(f"the mechanism's name is {name!r}; expected a text.")
        super().__init__(name)
        self.check = checked_level(check)
        self.gravity = vector(gravity, f'mechanism "{name}"', "gravity")

    def body(self, name: str, mass: Number | None = None, com: Vector = ORIGIN, inertia: Any = None) -> None:
        """Add a body.

        Parameters
        ----------
        name : str
            Name of the body.
        mass : float or free parameter, optional
            Mass, kg; without it the body is massless.
        com : array_like, shape (3,)
            Centre of mass in the world at the zero configuration, m.
        inertia : array_like, optional
            About the centre of mass, in world axes, kg m^2: 3 moments, 6 numbers (xx, yy, zz, xy, xz, yz) or a 3x3
            matrix. Without it the body is a point mass.

        Raises
        ------
        ModelError
            If an argument is invalid, or the name exists already.
        """
        where = self._check_new("body", name)
        self._refuse_body_frame(name in self._frames, name)
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
        if body.mass == 0.0:  # a free parameter never compares equal, whatever its nominal value
            raise ModelError(f"{where}: mass is 0 kg; expected a positive mass, or none at all for a massless body.")
        part_checks.check_body_numbers(body)
        if self.check == "error":  # early, where the mistake is; a single moment is checked with the joints in build()
            is_planar = part_checks.has_one_moment(body)
            part_checks.raise_inertia_defect(part_checks.find_inertia_defect(body, planar=is_planar))
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
        """Connect `parent` and `child` by a joint; if joints form a closed loop, build() cuts one of them.

        Parameters
        ----------
        name : str
            Name of the joint.
        kind : str
            Joint type.
        parent, child : str
            Names of bodies; "ground" is the ground.
        point : array_like, shape (3,)
            Position of the joint in the world at the zero configuration, m.
        axis : array_like, shape (3,)
            Direction of the axis in world axes.
        second_axis : array_like, shape (3,), optional
            Second axis of a universal joint.
        pitch : float
            Pitch of a helical joint, m/rad.
        armature : float
            Inertia added to the coordinate, kg m^2 or kg.
        damping : float
            Viscous damping, N m s/rad or N s/m.
        friction, friction_speed : float
            Friction force, and the speed at which it is reached.
        stiffness, rest : float
            Stiffness of a spring, and the coordinate at which it is relaxed.
        lower, upper, velocity, effort : float
            Limits of the coordinate, its speed and its force.
        mimic : str or tuple, optional
            Name of another joint, or (name, multiplier, offset), whose coordinate moves this one.

        Raises
        ------
        ModelError
            If an argument is invalid, or the name exists already.
        """
        where = self._check_new("joint", name, parent, child)
        if not isinstance(kind, str) or kind.startswith(MODAL_PREFIX):
            raise ModelError(f"{where}: {unknown('joint type', kind, KINDS)}")
        bounds = {"lower": lower, "upper": upper, "velocity": velocity, "effort": effort}
        numbers = {"pitch": pitch, "armature": armature, "damping": damping, "stiffness": stiffness, "rest": rest}
        numbers |= {"friction": friction, "friction_speed": friction_speed}
        joint = Joint(
            name,
            kind,
            parent,
            child,
            point=vector(point, where, "point"),
            axis=vector(axis, where, "axis"),
            second_axis=None if second_axis is None else vector(second_axis, where, "second_axis"),
            **{what: number(value, where, what) for what, value in numbers.items()},
            limits=Limits(**{what: limit(value, where, what) for what, value in bounds.items()}),
            mimic=self._checked_mimic(mimic, where),
        )
        for _ in part_checks.check_joint(joint, [GROUND, *self._bodies]):
            pass
        self._joints[name] = joint

    def frame(self, name: str, body: str, point: Vector = ORIGIN, rotation: Any = None) -> None:
        """Add a named frame on a body.

        Parameters
        ----------
        name : str
            Name of the frame.
        body : str
            Name of the body.
        point : array_like, shape (3,)
            Origin, in the world at the zero configuration, m.
        rotation : array_like, shape (3, 3), optional
            Axes of the frame as columns, in the world at the zero configuration.

        Raises
        ------
        ModelError
            If an argument is invalid, or the name exists already.
        """
        where = self._check_new("frame", name, body)
        self._refuse_body_frame(name in (GROUND, *self._bodies), name)
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
        """Close a loop: connect two bodies as a joint does, or couple two joints, without adding a coordinate.

        Points and axes are in the world at the zero configuration. The loop need not be closed there: point_a, axis and
        second_axis are then where body_a has them, point_b, axis_b and second_axis_b where body_b has them.

        Parameters
        ----------
        name : str
            Name of the loop.
        kind : str
            revolute, prismatic, cylindrical, universal, spherical, planar, fixed: as joints of that kind, at `point`.
            distance: from point_a to point_b. point_on_line: point_b stays on the line through point_a along `axis`,
            which belongs to body_a. gear: second = ratio * first + offset for joints=(first, second). rack: the same,
            from radians to metres.
        body_a, body_b : str
            Names of the bodies.
        point, point_a, point_b : array_like, shape (3,), optional
            Where the bodies meet, m.
        axis, axis_b, second_axis, second_axis_b : array_like, shape (3,), optional
            Axes of the connection.
        distance : float, optional
            Length, m; by default that at the zero configuration.
        ratio, offset : float, optional
            Of a gear or rack.
        joints : sequence of 2 str
            Of a gear or rack.

        Raises
        ------
        ModelError
            If an argument is invalid, or the name exists already.
        """
        where = self._check_new("loop", name)
        check_known("loop type", kind, EQUATIONS, where, ModelError)
        if kind in BUILDER_METHODS:
            raise ModelError(f'{where}: a {kind} loop is made by Builder.{BUILDER_METHODS[kind]}("{name}", ...).')
        numbers = {"distance": distance, "ratio": ratio, "offset": offset}
        if kind in COUPLINGS:
            places = (point, point_a, point_b, axis, axis_b, second_axis, second_axis_b)
            self._loops[name] = joint_coupling(where, name, kind, joints, numbers, (body_a, body_b, *places))
            return
        self._check_new("loop", name, body_a, body_b)
        a = LoopEnd(body_a, point_a if point_a is not None else point, axis, second_axis)
        pairs = ((point_b, point), (axis_b, axis), (second_axis_b, second_axis))
        b = LoopEnd(body_b, *(own if own is not None else shared for own, shared in pairs))
        self._add_loop(where, *body_loop(where, name, kind, a, b, numbers, joints))

    loop = close  # alias

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
        """Add a spring and damper between two points, given in the world at the zero configuration.

        Parameters
        ----------
        name : str
            Name of the spring.
        body_a, body_b : str
            Names of the bodies.
        point_a, point_b : array_like, shape (3,)
            Points on them, m.
        stiffness : float or free parameter
            Stiffness, N/m.
        length : float or free parameter, optional
            Length at rest, m; by default that at the zero configuration.
        damping : float or free parameter
            Damping, N s/m.

        Raises
        ------
        ModelError
            If an argument is invalid, or the name exists already.
        """
        where = self._check_new("spring", name, body_a, body_b)
        numbers = {"stiffness": stiffness, "length": length, "damping": damping}
        spring, *ends = spring_with_frames(where, name, (body_a, body_b), (point_a, point_b), numbers)
        self._add_end_frames(where, *ends)
        self._springs[name] = spring

    def build(self) -> Mechanism:
        """Return the mechanism; may be called again after adding parts.

        Returns
        -------
        Mechanism
            The mechanism; its `report` lists all parts, and the joints that were cut.

        Raises
        ------
        ModelError
            If the parts make no valid mechanism.
        """
        carrying, loops, ends, cut_lines = cut_loops(self._joints, self._loops, GROUND, list(self._bodies))
        origins = {GROUND: np.zeros(3)} | {j.child: np.asarray(j.point) for j in carrying}  # origin of each body
        bodies = [
            replace(b, com=triple(np.subtract(b.com, origins[b.name]))) if b.declared else b
            for b in self._bodies.values()
        ]
        joints = [replace(j, point=triple(np.subtract(j.point, origins[j.parent]))) for j in carrying]
        placed = [*self._frames.values(), *self._end_frames.values(), *ends]
        frames = [replace(f, point=triple(np.subtract(f.point, origins[f.body]))) for f in placed]
        springs = list(self._springs.values())
        lines = [
            *(ReportLine(f'body "{b.name}"', f"{b.mass:g} kg" if b.declared else "massless") for b in bodies),
            *(ReportLine(f'body "{name}"', f"bends: {x.modes} modes") for name, (x, _) in self._modal_bodies.items()),
            *(ReportLine(f'joint "{j.name}"', f'{j.kind}, "{j.parent}" to "{j.child}"') for j in joints),
            *cut_lines,
            *(ReportLine(f'loop "{x.name}"', f"{x.kind}: {EQUATIONS[x.kind]} equations") for x in self._loops.values()),
            *(ReportLine(f'spring "{s.name}"', "between two points") for s in springs),
            *(ReportLine(f'frame "{f.name}"', f'on "{f.body}"') for f in frames),
        ]
        placed_modes = self._modal_bodies.items()
        flexible = [x.seen_from(name, np.eye(3), start - origins[name]) for name, (x, start) in placed_modes]
        outlines = [x.seen_from({b: (b, np.eye(3), -p) for b, p in origins.items()}) for x in self._outlines.values()]
        parts = (bodies, joints, frames, loops, springs, flexible, outlines)
        return mechanism_of(self.name, *parts, ground=GROUND, gravity=self.gravity, lines=lines, checks=self.check)

    def _refuse_body_frame(self, taken: bool, name: str) -> None:
        if taken:
            raise ModelError(
                f'frame "{name}" of mechanism "{self.name}": a body has this name, and every body is already a frame '
                "of its own name. Rename one of them."
            )

    def _checked_mimic(self, given: Mimic | str | tuple[Any, ...] | None, where: str) -> Mimic | None:
        if given is None:
            return None
        parts = (given.joint, given.multiplier, given.offset) if isinstance(given, Mimic) else given
        name, *numbers = [parts] if isinstance(parts, str) else sequence_elements(parts) or [None]
        if not isinstance(name, str) or len(numbers) > 2:
            raise ModelError(f"{where}: mimic is {given!r}; expected a joint's name or (name, multiplier, offset).")
        return Mimic(name, *(number(x, where, "mimic") for x in numbers))
