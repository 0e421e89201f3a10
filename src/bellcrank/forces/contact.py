"""Contact by compliance: where two shapes overlap they push each other apart, and rub.

    N = k z^n max(1 + d dz/dt, 0)                        Hunt and Crossley, see impact.py
    F = -mu N u / sqrt(u.u + u_0^2)                      Coulomb, like a damper below the speed u_0: it creeps
    F = -N (s (z_b + t_b dz_b/dt)),                      with bristles, which bend by z_b before they slip: it sticks
        dz_b/dt = u - (s |u| / mu) z_b

u is the velocity of b's material at the place of contact as a sees it, along the surface. Bristles: C. Canudas de Wit,
H. Olsson, K. J. Astrom, P. Lischinsky. A new model for control of systems with friction. IEEE Transactions on Automatic
Control 40(3), 419-425, 1995; here with mu at all speeds, and a stiffness in proportion to N. Off the ground they
straighten within `forget` seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from bellcrank.actuators.actuator import StateVariable
from bellcrank.errors import InputError, brief, unknown
from bellcrank.forces.element import Between, Resistance, Triple, cross, dot
from bellcrank.forces.impact import powered, push, slopes, stored
from bellcrank.forces.shapes import Plane, Shape, Sphere, Touch, fit, touching
from bellcrank.misfits import explained
from bellcrank.scalar import Scalar, maximum, sqrt, where

RESOLVED = 0.25  # of a bristle's deflection: what it may lose in an explicit step


@dataclass(frozen=True)
class Contact(Between):
    """Shape a on frame a, shape b on frame b (shapes.py has the table of pairs)."""

    shape_a: Shape
    shape_b: Shape
    stiffness: Scalar = 1e5  # N/m^exponent, of each place where they may touch
    damping: Scalar = 1.0  # s/m; damping_of(restitution, speed) has it
    friction: Scalar = 0.8
    slow: Scalar = 1e-3  # m/s, u_0: feet of a standing robot creep by a part of it
    exponent: float = 1.0  # 1.5 is Hertz's, of spheres
    bristles: Scalar = 0.0  # 1/m: how stiff they are for each newton of N; 0 has none
    settle: Scalar = 1e-3  # s, t_b
    forget: float = 1e-2  # s

    def __post_init__(self) -> None:
        self._check("damping", "friction", "bristles", "settle")
        self._check("stiffness", "slow", "exponent", "forget", above_zero=True)
        if self._sticks:
            self._check("friction", above_zero=True)
        powered(1.0, self.exponent)
        for what in (self.shape_a, self.shape_b):
            if not isinstance(what, Shape):
                raise InputError(f"{self._called}: {what!r} is no shape; see bellcrank.forces (Plane, Sphere, ...).")
        touching(self.shape_a, self.shape_b, np.eye(4))  # an error where there is no such pair

        if fit(self.shape_a, self.shape_b) == "none":
            raise InputError(
                f'{self._called}: {brief(self.shape_b)} on "{self.b}" would fall through {brief(self.shape_a)} on '
                f'"{self.a}". Only corners of the box on frame b are tested against the box on frame a, and none of '
                "its sides lies within a side of that. Put the larger box on frame a; of boxes of equal size replace "
                "one by spheres at its corners, or by a smaller box."
            )

    @property
    def _sticks(self) -> bool:
        return not (isinstance(self.bristles, int | float) and self.bristles == 0.0)

    @property
    def places(self) -> int:
        return len(touching(self.shape_a, self.shape_b, np.eye(4)))

    @property
    def states(self) -> tuple[StateVariable, ...]:
        if not self._sticks:
            return ()
        mark = [""] if self.places == 1 else [str(k) for k in range(self.places)]
        bent = self.friction / self.bristles  # where it slides
        return tuple(StateVariable(f"bristle{k}{c}", "m", 0.0, bent) for k in mark for c in "xyz")

    def __call__(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[Triple, Triple, list[Scalar]]:
        force: Triple = [0.0, 0.0, 0.0]
        moment: Triple = [0.0, 0.0, 0.0]
        rates: list[Scalar] = []
        for k, touch in enumerate(touching(self.shape_a, self.shape_b, pose)):
            arm, dz, u = _moving(touch, pose, velocity)
            N = push(-touch.gap, dz, self.stiffness, self.damping, self.exponent)
            rubbing, bent = self._rubbing(touch, N, u, list(x[3 * k : 3 * k + 3]))
            f = [N * n + r for n, r in zip(touch.normal, rubbing, strict=True)]
            force = [a + b for a, b in zip(force, f, strict=True)]
            moment = [a + b for a, b in zip(moment, cross(arm, f), strict=True)]
            rates += bent
        return force, moment, rates

    def _rubbing(self, touch: Touch, N: Scalar, u: Triple, z: list[Scalar]) -> tuple[Triple, list[Scalar]]:
        """Friction, and how bristles bend."""
        if not self._sticks:
            speed = sqrt(dot(u, u) + self.slow * self.slow)
            return [-(self.friction * N / speed) * s for s in u], []
        yields = self._yield_rate(u)
        bend = [s - yields * b for s, b in zip(u, z, strict=True)]
        bend = [self._within_step(r, yields) for r in bend]
        rates = [
            where(N > 0.0, r, self._within_step(-b / self.forget, 1.0 / self.forget))
            for r, b in zip(bend, z, strict=True)
        ]
        pull = [-(N * self.bristles) * (b + self.settle * r) for b, r in zip(z, bend, strict=True)]
        n = touch.normal
        off = dot(pull, n)  # the normal may have turned since they bent
        return [p - off * c for p, c in zip(pull, n, strict=True)], rates

    def resistance(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar], h: Scalar
    ) -> list[Resistance]:
        """Friction opposes sliding. Damping opposes the approach, and so does what a step of h adds to the force."""
        found = []
        for touch in touching(self.shape_a, self.shape_b, pose):
            _, dz, u = _moving(touch, pose, velocity)
            along, N = slopes(-touch.gap, dz, self.stiffness, self.damping, h, self.exponent)
            found.append(Resistance(touch.place, touch.normal, along, N * self._grip(u, h)))
        return found

    def _grip(self, u: Triple, h: Scalar) -> Scalar:
        """Friction for each newton of N and unit of speed, no less than its slope; of bristles over a step of h."""
        if not self._sticks:
            return self.friction / sqrt(dot(u, u) + self.slow * self.slow)
        return self.bristles * (self.settle + h / (1.0 + h * self._yield_rate(u)))

    def _within_step(self, rate: Scalar, decay: Scalar) -> Scalar:
        """Return the rate of a state that decays; here as it is."""
        return rate

    def _yield_rate(self, u: Triple) -> Scalar:
        """How fast bristles slip, 1/s."""
        return self.bristles * sqrt(dot(u, u) + 1e-16) / self.friction

    def stepped(self, h: Scalar) -> Contact:
        return SteppedContact(**{f.name: getattr(self, f.name) for f in fields(self)}, step=h) if self._sticks else self

    def energy(self, t: Scalar, pose: Any, x: Sequence[Scalar]) -> Scalar:
        """Of the overlap; what bent bristles store counts as lost, and comes back where they straighten."""
        total: Scalar = 0.0
        for touch in touching(self.shape_a, self.shape_b, pose):
            total = total + stored(-touch.gap, self.stiffness, self.exponent)
        return total

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        total: Scalar = 0.0
        for k, touch in enumerate(touching(self.shape_a, self.shape_b, pose)):
            _, dz, u = _moving(touch, pose, velocity)
            z = -touch.gap
            N = push(z, dz, self.stiffness, self.damping, self.exponent)
            rubbing, _ = self._rubbing(touch, N, u, list(x[3 * k : 3 * k + 3]))
            total = total + (N - push(z, 0.0, self.stiffness, 0.0, self.exponent)) * dz - dot(rubbing, u)
        return total

    def started_inside(self, pose: Any) -> float:
        """How deep the shapes are in each other, m; 0 where they do not touch."""
        return max(0.0, *(-float(touch.gap) for touch in touching(self.shape_a, self.shape_b, pose)))


@dataclass(frozen=True)
class SteppedContact(Contact):
    """A contact in steps that are implicit in its bristles: those that slip do so within a step."""

    step: Scalar = 0.0  # s

    def _within_step(self, rate: Scalar, decay: Scalar) -> Scalar:
        """Return the mean rate over a step by backward Euler, less what an explicit step resolves."""
        return rate / (1.0 + maximum(self.step * decay - RESOLVED, 0.0))


def _moving(touch: Touch, pose: Any, velocity: Sequence[Scalar]) -> tuple[Triple, Scalar, Triple]:
    """From b's origin to the place, how fast they go into each other, and how fast b slides there."""
    arm = [x - pose[k, 3] for k, x in enumerate(touch.place)]
    there = [a + b for a, b in zip(velocity[:3], cross(velocity[3:], arm), strict=True)]
    out = dot(there, touch.normal)
    return arm, -out, [x - out * n for x, n in zip(there, touch.normal, strict=True)]


@explained
def feet(
    frames: Sequence[str], radius: Scalar = 0.02, ground: str = "ground", floor: Shape | None = None, **numbers: Any
) -> list[Contact]:
    """A ball at each of these frames that stands on the floor (a Plane unless told) of the frame `ground`."""
    own = [f.name for f in fields(Contact) if f.default is not MISSING]
    for name in numbers:
        if name not in own:
            raise InputError(f"feet: {unknown('number of a contact', name, own)}")
    below = Plane() if floor is None else floor
    return [Contact(f"{frame}.contact", ground, frame, below, Sphere(radius), **numbers) for frame in frames]
