"""Complete system of excavator_linkage: hydraulics with equilibrium pressures at the start, control, soil and tracks.

system = bc.system(**parts())
bc.simulate(system, 60.0, inputs={"autopilot": 1.0}, form="projected")

On the ground it has a bucket as a tool, dimensions, and tracks. The tracks carry a free carriage that rests on eight
contact points, tips, slips and travels.

Each contact point is a compliant sphere with friction (forces/contact.py). The belt moves over the ground at a speed
that is a parameter for each side, so that the machine travels and turns. Obstacles for the bucket move with the
carriage. Assumed: the ground under the tracks is level, with the stiffness CONTACT_STIFFNESS, and is not changed by
digging.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.actuators import HydraulicCylinder, HydraulicMotor, ProportionalValve
from bellcrank.actuators.hydraulic import Hydraulic
from bellcrank.excavators.digging_forces import Footing, with_digging_forces
from bellcrank.excavators.geometry import CYLINDERS, JOINTS, Linkage
from bellcrank.excavators.linkage_control import LinkageControl
from bellcrank.excavators.linkage_mechanism import excavator_linkage
from bellcrank.forces import Contact, Element, Law, Plane, Sphere, Together
from bellcrank.forces.element import WrenchAndRates
from bellcrank.ground.contact import ground_contact
from bellcrank.ground.field import Tool
from bellcrank.model import Array, Frame, Mechanism
from bellcrank.parameters import parameter
from bellcrank.scalar import Scalar

MODE_ITERATIONS = 8  # iterations; each reduces the error of the modes to about a hundredth
LOW_PRESSURE = 1.0e6  # Pa, in the chamber without load
BUCKET_CAPACITY = 1.0  # m3, capacity of the bucket
CARRIAGE_MASS = 7500.0  # kg: remainder of the machine's mass (zoo/data.toml)
# m, tracks: gauge 2.38 (cat320) and shoes of 0.6, assumed.
TRACK_HALF_LENGTH, TRACK_SIDES, TRACK_HEIGHT = 2.14, (0.89, 1.49), 0.78
FOOTING_DIMENSIONS = (TRACK_HALF_LENGTH, TRACK_SIDES, TRACK_HEIGHT, 1.75, 3.0)  # m, with the upper structure
CARRIAGE_BODY = "carriage"
SPHERE_RADIUS = 0.1  # m, radius of a contact sphere
CONTACT_STIFFNESS = 2.0e6  # N/m per contact point: 22 t sink in by 14 mm
CONTACT_DAMPING = 1.5  # s/m
CREEP_SPEED = 5e-3  # m/s, below which friction acts like a damper; a parked machine creeps more slowly
CONTACT_NUMBERS: dict[str, Any] = {"stiffness": CONTACT_STIFFNESS, "damping": CONTACT_DAMPING, "slow": CREEP_SPEED}
CONTACT_POINTS = tuple(
    (f"{side}{k}", (x * TRACK_HALF_LENGTH / 3.0, y * (TRACK_SIDES[0] + TRACK_SIDES[1]) / 2.0, SPHERE_RADIUS))
    for side, y in (("left", 1.0), ("right", -1.0))
    for k, x in enumerate((3.0, 1.0, -1.0, -3.0))
)


def parts(mechanism: Mechanism | None = None) -> dict[str, Any]:
    """Return the arguments of bellcrank.system: mechanism, actuators, control, inputs, forces and elements.

    The machine is ready to dig, with the sticks at rest. A flexible machine starts at `resting(mechanism)`.

    Parameters
    ----------
    mechanism
        Variant of excavator_linkage; None for the rigid one.
    """
    plain = mechanism or excavator_linkage()
    linkage = Linkage.of_zoo()
    tracked = CARRIAGE_BODY in [b.name for b in plain.bodies]
    # The upright machine loads its cylinders like one with a fixed base.
    untracked = excavator_linkage() if tracked else plain
    actuators = holding(hydraulics(linkage), untracked, resting(untracked))
    gain = parameter("control.gain", 1.0)
    control = LinkageControl(actuators, linkage, gain=tuple(gain * k for k in LinkageControl.gain))
    ground_footing = footing(plain, linkage)
    framed = with_track_frames(plain) if tracked else plain
    mechanism, forces = with_digging_forces(framed, ground_footing, walls=not tracked)
    mechanism = replace(mechanism, gravity=(0.0, 0.0, -parameter("gravity", 9.81, "m/s2")))
    arguments = {"mechanism": mechanism, "actuators": actuators, "control": control}
    elements = tracks(ground_footing, list(forces)) if tracked else ()
    return arguments | {"inputs": dict.fromkeys(control.inputs, 0.0), "forces": forces, "elements": elements}


def hydraulics(linkage: Linkage | None = None) -> list[Hydraulic]:
    """Return the actuators of swing, boom, stick and bucket of `linkage`, without initial pressures."""
    linkage = linkage or Linkage.of_zoo()
    g = linkage.given
    shared = g["hydraulics"]
    oil = {"bulk_modulus": shared["bulk_modulus"], "leakage": shared["leakage"]}

    def valve(numbers: Any, relief: float) -> ProportionalValve:
        drops = tuple(numbers["drops"])
        edges = {"margin": shared["margin"], "overlap": shared["overlap"], "lag": shared["spool_lag"]}
        return ProportionalValve(numbers["flow"], min(shared["pump_pressure"], relief), relief, drops, **edges)

    swing = g["swing"]
    numbers = {name: swing[name] for name in ("friction", "viscous", "displacement", "volume")}
    motor = HydraulicMotor(JOINTS[0], valve(swing, swing["relief"]), **numbers, **oil)
    actuators: list[Hydraulic] = [motor]
    for name, joint, x in zip(CYLINDERS, JOINTS[1:], linkage.extensions(linkage.start), strict=True):
        cylinder = g["cylinders"][name]
        n = cylinder["count"]
        numbers = {
            **{key: cylinder[key] for key in ("bore", "rod", "stroke", "count")},
            **{key: n * shared[key] for key in ("friction", "viscous", "hoses")},  # of all cylinders together
            **{key: shared[key] for key in ("stop_stiffness", "stop_damping")},
        }
        actuators.append(HydraulicCylinder(joint, valve(cylinder, shared["relief"]), offset=float(x), **numbers, **oil))
    return actuators


def holding(actuators: Sequence[Hydraulic], mechanism: Mechanism | None = None, q: Any = None) -> list[Hydraulic]:
    """Return the actuators with initial pressures that hold the mechanism still.

    Parameters
    ----------
    actuators
        Actuators of swing, boom, stick and bucket.
    mechanism
        Variant of excavator_linkage; None for the rigid one.
    q
        Configuration; None for the zero configuration.
    """
    mechanism = mechanism or excavator_linkage()
    q = mechanism.neutral() if q is None else q
    forces = dict(zip(mechanism.columns[1], _holding_forces(mechanism, q).tolist(), strict=True))
    return [_with_pressures(a, forces[a.joint]) for a in actuators]


def resting(mechanism: Mechanism) -> Array:
    """Return the zero configuration of `mechanism`, with flexible bodies bent by gravity and cylinders unchanged."""
    q = mechanism.neutral()
    modes = [(list(body.q_index), list(body.v_index), body.stiffness) for body in mechanism.tree.flexible]
    for _ in range(MODE_ITERATIONS if modes else 0):
        forces = _holding_forces(mechanism, q)
        for indices, rows, stiffness in modes:
            q[indices] -= forces[rows] / stiffness
        q = mechanism.assemble(q, fixed=JOINTS)[0]
    return q


def _holding_forces(mechanism: Mechanism, q: Any) -> Array:
    """Return the forces on actuators and modes that hold the mechanism at q."""
    still = np.zeros(mechanism.nv)
    mode_joints = [body.nodes[0].joint for body in mechanism.flexible]
    return np.asarray(mechanism.inverse_dynamics(q, still, still, actuated=[*JOINTS, *mode_joints]))


def _with_pressures(a: Hydraulic, force: float) -> Hydraulic:
    """Set one chamber to LOW_PRESSURE, and the other to the pressure that gives the force."""
    a_A, a_B = a.areas
    needed = force + (a_B - a_A) * LOW_PRESSURE  # net force beyond that of LOW_PRESSURE in both chambers
    return replace(a, p_A=LOW_PRESSURE + max(needed, 0.0) / a_A, p_B=LOW_PRESSURE + max(-needed, 0.0) / a_B)


def footing(mechanism: Mechanism, linkage: Linkage) -> Footing:
    """Return contact and dimensions of an excavator.

    Parameters
    ----------
    mechanism
        Excavator with a frame "tip" at the teeth.
    linkage
        Geometry.
    """
    x, y, z = (float(a) for a in mechanism.frame("tip").point)
    mouth_angle = math.atan2(z, x)  # the mouth faces from the line of the teeth towards the stick
    mouth = math.sin(mouth_angle), 0.0, -math.cos(mouth_angle)
    tool = Tool((0.0, 1.0, 0.0), mouth, linkage.given["bucket"]["width"], BUCKET_CAPACITY)
    carriage_is_body = CARRIAGE_BODY in [b.name for b in mechanism.bodies]  # with moving tracks the carriage is a body
    mass = 0.0 if carriage_is_body else CARRIAGE_MASS
    return Footing(ground_contact(tool, (x, y, z), 0.0), *FOOTING_DIMENSIONS, mass)


@dataclass(frozen=True)
class Belt(Contact):
    """Contact point under a track with a moving belt: the shoe on the ground moves backwards at `speed`."""

    speed: Scalar = 0.0  # m/s, speed of the machine without slip

    def __call__(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> WrenchAndRates:
        """Return force, moment and state rates of the contact with the moving shoe.

        Parameters
        ----------
        t
            Time, s.
        pose
            Pose of the track's frame relative to the ground.
        velocity
            Velocity of the frame relative to the ground.
        x
            States of the contact.
        """
        return super().__call__(t, pose, self._shoe_velocity(pose, velocity), x)

    def loss(self, t: Scalar, pose: Any, velocity: Sequence[Scalar], x: Sequence[Scalar]) -> Scalar:
        """Return the dissipated power less the power of the belt's drive, W.

        Parameters
        ----------
        t
            Time, s.
        pose
            Pose of the track's frame relative to the ground.
        velocity
            Velocity of the frame relative to the ground.
        x
            States of the contact.
        """
        shoe = self._shoe_velocity(pose, velocity)
        force = super().__call__(t, pose, shoe, x)[0]
        drive_power = sum((f * (v - s) for f, v, s in zip(force, velocity[:2], shoe[:2], strict=False)), start=0.0)
        return super().loss(t, pose, shoe, x) - drive_power

    def _shoe_velocity(self, pose: Any, velocity: Sequence[Scalar]) -> list[Scalar]:
        """Return the velocity of the shoe that touches the ground."""
        return [velocity[k] - self.speed * pose[k, 0] for k in range(2)] + list(velocity[2:])


def with_track_frames(plain: Mechanism) -> Mechanism:
    """Return the mechanism `plain` with a frame at each contact point of its carriage."""
    frames = {f"track.{name}": Frame(f"track.{name}", CARRIAGE_BODY, point=place) for name, place in CONTACT_POINTS}
    return replace(plain, frames={**plain.frames, **frames})


def tracks(footing: Footing, probes: Sequence[str]) -> list[Element]:
    """Return the contacts of the tracks, and the obstacles of the carriage for frames of the bucket.

    Parameters
    ----------
    footing
        Dimensions of the machine.
    probes
        Names of the bucket's frames.
    """
    speeds = {side: parameter(f"tracks.{side}", 0.0, "m/s") for side in ("left", "right")}
    shapes, contact = (Plane(), Sphere(SPHERE_RADIUS)), {**CONTACT_NUMBERS, "friction": footing.friction}
    contacts: list[Element] = [
        Belt(f"track.{name}", "ground", f"track.{name}", *shapes, **contact, speed=speeds[name[:-1]])
        for name, _ in CONTACT_POINTS
    ]
    walls = Together(footing.barriers)
    return contacts + [Law(f"walls.{probe}", CARRIAGE_BODY, probe, walls) for probe in probes]


def static_penetration(mass: float) -> float:
    """Return the static penetration of the tracks under a `mass`, m."""
    return mass * 9.81 / (len(CONTACT_POINTS) * CONTACT_STIFFNESS)
