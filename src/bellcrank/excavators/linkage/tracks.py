"""excavator_linkage on its tracks: a carriage that is free, and stands, tips, slips and goes on eight places of them.

Each place is a ball that gives way and rubs (forces/contact.py); the belt runs over the ground with a speed that is a
free number for each side, so that the machine travels and turns. Walls that the bucket does not go through go along
with the carriage. Assumed: the ground under the tracks is level and as hard as STIFF says, whatever is dug there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.excavators.digging import Footing
from bellcrank.excavators.linkage.footing import HALF, SIDES
from bellcrank.forces import Contact, Element, Law, Plane, Sphere, Together
from bellcrank.forces.element import Triple
from bellcrank.model import Frame, Mechanism
from bellcrank.parameters import parameter
from bellcrank.scalar import Scalar

BODY = "carriage"
BALL = 0.1  # m, of a place where it stands
STIFF = 2.0e6  # N/m of each place: 22 t sink in by 14 mm
DAMPED = 1.5  # s/m
SLOW = 5e-3  # m/s below which friction is like a damper: parked on its tracks it creeps by less
PLACES = tuple(
    (f"{side}{k}", (x * HALF / 3.0, y * (SIDES[0] + SIDES[1]) / 2.0, BALL))
    for side, y in (("left", 1.0), ("right", -1.0))
    for k, x in enumerate((3.0, 1.0, -1.0, -3.0))
)


@dataclass(frozen=True)
class Belt(Contact):
    """A place under a track whose belt runs: what is on the ground goes backwards with `speed`."""

    speed: Scalar = 0.0  # m/s, of the machine if nothing slips

    def __call__(
        self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]
    ) -> tuple[Triple, Triple, list[Scalar]]:
        return super().__call__(t, pose, self._shoe(pose, velocity), x)

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Less what its drive puts in."""
        shoe = self._shoe(pose, velocity)
        force = super().__call__(t, pose, shoe, x)[0]
        given = sum((f * (v - s) for f, v, s in zip(force, velocity[:2], shoe[:2], strict=False)), start=0.0)
        return super().loss(t, pose, shoe, x) - given

    def _shoe(self, pose: Any, velocity: Sequence[Scalar]) -> list[Scalar]:
        """The velocity of what touches the ground."""
        return [velocity[k] - self.speed * pose[k, 0] for k in range(2)] + list(velocity[2:])


def standing(plain: Mechanism) -> Mechanism:
    """The mechanism with frames where its carriage stands."""
    frames = {f"track.{name}": Frame(f"track.{name}", BODY, point=place) for name, place in PLACES}
    return replace(plain, frames={**plain.frames, **frames})


def tracks(footing: Footing, probes: Sequence[str]) -> list[Element]:
    """What it stands on, and the walls of the carriage against these frames of the bucket."""
    speeds = {side: parameter(f"tracks.{side}", 0.0, "m/s") for side in ("left", "right")}
    how = {"stiffness": STIFF, "damping": DAMPED, "friction": footing.friction, "slow": SLOW}
    feet: list[Element] = [
        Belt(f"track.{name}", "ground", f"track.{name}", Plane(), Sphere(BALL), **how, speed=speeds[name[:-1]])
        for name, _ in PLACES
    ]
    walls = Together(footing.barriers)
    return feet + [Law(f"walls.{probe}", BODY, probe, walls) for probe in probes]


def sunk(mass: float) -> float:
    """m that so many kg sink in."""
    return mass * 9.81 / (len(PLACES) * STIFF)
