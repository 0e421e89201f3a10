"""Compliant contact between two shapes: a Hunt-Crossley normal force with Coulomb or bristle (LuGre) friction.

    N = k z^n max(1 + d dz/dt, 0)                        Hunt and Crossley, see impact.py
    F = -mu N u / sqrt(u.u + u_0^2)                      Coulomb, a damper below the speed u_0: the contact creeps
    F = -N (s (z_b + t_b dz_b/dt)),                      bristles with deflection z_b before they slip: it sticks
        dz_b/dt = u - (s |u| / mu) z_b

u is the tangential velocity of b's material at the contact point relative to a. Bristles: C. Canudas de Wit,
H. Olsson, K. J. Astrom, P. Lischinsky. A new model for control of systems with friction. IEEE Transactions on Automatic
Control 40(3), 419-425, 1995; here with mu at all speeds, and a stiffness in proportion to N. Without contact the
bristles relax with the time constant `forget`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from bellcrank.actuators.actuator import StateVariable
from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError, unknown
from bellcrank.forces.element import Between, Resistance, Triple, WrenchAndRates, cross, dot
from bellcrank.forces.impact import force_slope, normal_force, power_of_depth, stored_energy
from bellcrank.forces.shapes import (
    Box,
    ContactPoint,
    Plane,
    Shape,
    Sphere,
    box_overlap,
    contact_points,
    inner_radius,
    terrain_in_core,
)
from bellcrank.scalar import Scalar, maximum, sqrt, where

UNFELT_SHARE = 0.1  # overlap of boxes, in shortest edges, that is no effect of rounded edges
EXPLICIT_DECAY_SHARE = 0.25  # share of its deflection that a bristle may lose in an explicit step


@dataclass(frozen=True)
class Contact(Between):
    """Contact between a shape on frame a and a shape on frame b; shapes.py lists the supported pairs.

    Parameters
    ----------
    name : str
        Name of the element, unique in the system; prefix of its states and columns.
    a : str
        First frame of the mechanism, or "ground".
    b : str
        Second frame; the element's force acts on it, and the opposite force on a.
    shape_a : Shape
        Shape in frame a.
    shape_b : Shape
        Shape in frame b.
    stiffness : Scalar, default 1e5
        Stiffness of each contact point, N/m^exponent.
    damping : Scalar, default 1.0
        Hunt-Crossley damping, s/m; `damping_of(restitution, speed)` computes it.
    friction : Scalar, default 0.8
        Coefficient of friction.
    slow : Scalar, default 1e-3
        Sliding speed u_0 below which Coulomb friction acts like a damper, m/s. A standing robot creeps at a part of it.
    exponent : float, default 1.0
        Exponent n of the penetration depth; 1.5 for spheres (Hertz).
    bristles : Scalar, default 0.0
        Tangential stiffness for each newton of normal force, 1/m. 0 selects Coulomb friction without bristles.
    settle : Scalar, default 1e-3
        Damping time t_b of the bristles, s.
    forget : float, default 1e-2
        Time constant with which bristles relax without contact, s.
    """

    shape_a: Shape
    shape_b: Shape
    stiffness: Scalar = 1e5  # N/m^exponent, of each contact point
    damping: Scalar = 1.0  # s/m; see damping_of(restitution, speed)
    friction: Scalar = 0.8
    slow: Scalar = 1e-3  # m/s, u_0: a standing robot creeps at a part of it
    exponent: float = 1.0  # 1.5 for spheres (Hertz)
    bristles: Scalar = 0.0  # 1/m, tangential stiffness for each newton of N; 0: no bristles
    settle: Scalar = 1e-3  # s, t_b
    forget: float = 1e-2  # s

    def __post_init__(self) -> None:
        self._check("damping", "friction", "bristles", "settle")
        self._check("stiffness", "slow", "exponent", "forget", above_zero=True)
        if self._has_bristles:
            self._check("friction", above_zero=True)
        power_of_depth(1.0, self.exponent)
        for shape in (self.shape_a, self.shape_b):
            if not isinstance(shape, Shape):
                raise InputError(f"{self._label}: {shape!r} is not a shape; see bellcrank.forces (Plane, Sphere, ...).")
        contact_points(self.shape_a, self.shape_b, np.eye(4))  # raises for a pair that is not supported

    @property
    def _has_bristles(self) -> bool:
        return not (isinstance(self.bristles, int | float) and self.bristles == 0.0)

    @property
    def places(self) -> int:
        """Number of contact points of the pair of shapes."""
        return len(contact_points(self.shape_a, self.shape_b, np.eye(4)))

    @property
    def states(self) -> tuple[StateVariable, ...]:
        """Bristle deflections, three for each contact point; none without bristles."""
        if not self._has_bristles:
            return ()
        suffixes = [""] if self.places == 1 else [str(k) for k in range(self.places)]
        sliding_deflection = self.friction / self.bristles  # deflection while sliding
        return tuple(StateVariable(f"bristle{k}{c}", "m", 0.0, sliding_deflection) for k in suffixes for c in "xyz")

    def __call__(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> WrenchAndRates:
        """Return the force and moment on frame b and the state rates; see `Between.__call__`."""
        force: Triple = [0.0, 0.0, 0.0]
        moment: Triple = [0.0, 0.0, 0.0]
        rates: list[Scalar] = []
        for k, touch in enumerate(contact_points(self.shape_a, self.shape_b, pose)):
            arm, dz, u = _contact_motion(touch, pose, velocity)
            N = touch.slope * normal_force(-touch.gap, dz, self.stiffness, self.damping, self.exponent)
            friction_force, bristle_rates = self._friction(touch, N, u, list(x[3 * k : 3 * k + 3]))
            f = [N * n + r for n, r in zip(touch.normal, friction_force, strict=True)]
            force = [a + b for a, b in zip(force, f, strict=True)]
            moment = [a + b for a, b in zip(moment, cross(arm, f), strict=True)]
            rates += bristle_rates
        return force, moment, rates

    def _friction(self, touch: ContactPoint, N: Scalar, u: Triple, z: list[Scalar]) -> tuple[Triple, list[Scalar]]:
        """Return the friction force and the rates of the bristle deflections."""
        if not self._has_bristles:
            speed = sqrt(dot(u, u) + self.slow * self.slow)
            return [-(self.friction * N / speed) * s for s in u], []
        slip_rate = self._slip_rate(u)
        deflection_rates = [s - slip_rate * b for s, b in zip(u, z, strict=True)]
        deflection_rates = [self._step_mean_rate(r, slip_rate) for r in deflection_rates]
        rates = [
            where(N > 0.0, r, self._step_mean_rate(-b / self.forget, 1.0 / self.forget))
            for r, b in zip(deflection_rates, z, strict=True)
        ]
        pull = [-(N * self.bristles) * (b + self.settle * r) for b, r in zip(z, deflection_rates, strict=True)]
        n = touch.normal
        normal_component = dot(pull, n)  # the normal may have turned since the bristles bent
        return [p - normal_component * c for p, c in zip(pull, n, strict=True)], rates

    def resistance(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar], h: Scalar
    ) -> list[Resistance]:
        """Return the resistance of each contact point for implicit integration.

        Friction opposes sliding. Damping opposes the approach, and so does the stiffness over a step.

        Parameters
        ----------
        t, pose, velocity, x, h
            As in `Between.resistance`.

        Returns
        -------
        list[Resistance]
            One for each contact point.
        """
        resistances = []
        for touch in contact_points(self.shape_a, self.shape_b, pose):
            _, dz, u = _contact_motion(touch, pose, velocity)
            along, N = force_slope(-touch.gap, dz, self.stiffness, self.damping, h, self.exponent)
            along, N = touch.slope * touch.slope * along, touch.slope * N
            resistances.append(Resistance(touch.place, touch.normal, along, N * self._friction_slope(u, h)))
        return resistances

    def _friction_slope(self, u: Triple, h: Scalar) -> Scalar:
        """Return friction per newton of N and unit of speed, at least its slope; for bristles over a step of h."""
        if not self._has_bristles:
            return self.friction / sqrt(dot(u, u) + self.slow * self.slow)
        return self.bristles * (self.settle + h / (1.0 + h * self._slip_rate(u)))

    def _step_mean_rate(self, rate: Scalar, decay: Scalar) -> Scalar:
        """Return the rate of a decaying state; `SteppedContact` returns its mean over a step."""
        return rate

    def _slip_rate(self, u: Triple) -> Scalar:
        """Return the rate at which bristles slip, 1/s."""
        return self.bristles * sqrt(dot(u, u) + 1e-16) / self.friction

    def stepped(self, h: Scalar) -> Contact:
        """Return a copy whose bristles are integrated implicitly in fixed steps of `h` (s)."""
        numbers = {f.name: getattr(self, f.name) for f in fields(self)}
        return SteppedContact(**numbers, step=h) if self._has_bristles else self

    def energy(self, t: Scalar, pose: Any, x: Sequence[Scalar]) -> Scalar:
        """Return the energy stored in the overlap, J; `t`, `pose` and `x` as in `Between.energy`.

        The energy of deflected bristles counts as lost, and is regained when they relax.
        """
        total: Scalar = 0.0
        for touch in contact_points(self.shape_a, self.shape_b, pose):
            total = total + stored_energy(-touch.gap, self.stiffness, self.exponent)
        return total

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power in W; `t`, `pose`, `velocity` and `x` as in `Between.loss`."""
        total: Scalar = 0.0
        for k, touch in enumerate(contact_points(self.shape_a, self.shape_b, pose)):
            _, dz, u = _contact_motion(touch, pose, velocity)
            z = -touch.gap
            N = normal_force(z, dz, self.stiffness, self.damping, self.exponent)
            friction_force, _ = self._friction(touch, touch.slope * N, u, list(x[3 * k : 3 * k + 3]))
            total = total + (N - normal_force(z, 0.0, self.stiffness, 0.0, self.exponent)) * dz - dot(friction_force, u)
        return total

    def started_inside(self, pose: Any) -> float:
        """Return the deepest penetration of the shapes at `pose` (4x4, b in a), m; 0 if they do not touch."""
        depth = max(0.0, *(-float(touch.gap) for touch in contact_points(self.shape_a, self.shape_b, pose)))
        bump = terrain_in_core(self.shape_a, self.shape_b, pose) or self.unfelt_depth(pose)
        return max(depth, 0.5 * inner_radius(self.shape_b) + bump) if bump else depth

    def unfelt_depth(self, pose: Any) -> float:
        """Return how far the shapes are inside each other between contact points at `pose` (4x4, b in a), m."""
        a, b = self.shape_a, self.shape_b
        if isinstance(a, Box) and isinstance(b, Box):
            depth, least, felt = box_overlap(a, b, pose), UNFELT_SHARE * min(map(float, (*a.size, *b.size))), 0.0
        else:
            bump, felt = terrain_in_core(a, b, pose), 0.5 * inner_radius(b)
            depth, least = felt + bump if bump else 0.0, 0.0
        is_felt = depth > least and any(-float(x.gap) > felt for x in contact_points(a, b, pose))
        return 0.0 if is_felt or depth <= least else depth


@dataclass(frozen=True)
class SteppedContact(Contact):
    """Contact for fixed steps: bristles that slip within a step are integrated implicitly."""

    step: Scalar = 0.0  # s

    def _step_mean_rate(self, rate: Scalar, decay: Scalar) -> Scalar:
        """Return the mean rate over a step by backward Euler, less what an explicit step resolves."""
        return rate / (1.0 + maximum(self.step * decay - EXPLICIT_DECAY_SHARE, 0.0))


def _contact_motion(touch: ContactPoint, pose: Any, velocity: Sequence[Scalar]) -> tuple[Triple, Scalar, Triple]:
    """Return the vector from b's origin to the contact point, the penetration rate and b's sliding velocity there."""
    arm = [x - pose[k, 3] for k, x in enumerate(touch.place)]
    point_velocity = [a + b for a, b in zip(velocity[:3], cross(velocity[3:], arm), strict=True)]
    separation_rate = dot(point_velocity, touch.normal)
    penetration_rate = -(touch.slope * separation_rate)
    sliding_velocity = [x - separation_rate * n for x, n in zip(point_velocity, touch.normal, strict=True)]
    return arm, penetration_rate, sliding_velocity


@explain_argument_errors
def feet(
    frames: Sequence[str], radius: Scalar = 0.02, ground: str = "ground", floor: Shape | None = None, **numbers: Any
) -> list[Contact]:
    """Return one contact for each foot: a sphere at the frame that stands on the floor.

    Parameters
    ----------
    frames : sequence of str
        Frames at the centres of the feet.
    radius : Scalar, default 0.02
        Radius of the spheres, m.
    ground : str, default "ground"
        Frame of the floor.
    floor : Shape, optional
        Shape of the floor in the frame `ground`; a Plane by default.
    **numbers
        Numbers of `Contact`, such as stiffness or friction.

    Returns
    -------
    list[Contact]
        Elements named "FRAME.contact" for `bc.system(..., elements=...)`.

    Raises
    ------
    InputError
        If one of `numbers` is not a number of a contact.
    """
    number_names = [f.name for f in fields(Contact) if f.default is not MISSING]
    for name in numbers:
        if name not in number_names:
            raise InputError(f"feet: {unknown('number of a contact', name, number_names)}")
    floor_shape = Plane() if floor is None else floor
    return [Contact(f"{frame}.contact", ground, frame, floor_shape, Sphere(radius), **numbers) for frame in frames]
