"""excavator_linkage as a whole: its hydraulics, with the pressures that hold it at its start, control and soil.

system = bc.system(**parts())
bc.simulate(system, 60.0, inputs={"autopilot": 1.0}, form="projected")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.actuators import HydraulicCylinder, HydraulicMotor, ProportionalValve
from bellcrank.excavators.digging import digging
from bellcrank.excavators.linkage.footing import footing
from bellcrank.excavators.linkage.geometry import CYLINDERS, JOINTS, Linkage
from bellcrank.excavators.linkage.mechanism import excavator_linkage
from bellcrank.excavators.linkage.modes import LinkageControl
from bellcrank.excavators.linkage.tracks import BODY, standing, tracks
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.parts import Array
from bellcrank.parameters import parameter

ROUNDS = 8  # each leaves a hundredth of what the modes were off
LOW = 1.0e6  # Pa, in the chamber that carries nothing


def parts(mechanism: Mechanism | None = None) -> dict[str, Any]:
    """What bellcrank.system wants: mechanism, actuators, control, inputs, forces. Ready to dig, the sticks at rest; at
    `resting(mechanism)` where the mechanism bends.
    """
    plain = mechanism or excavator_linkage()
    linkage = Linkage.of_zoo()
    tracked = BODY in [b.name for b in plain.bodies]  # upright, it weighs on its cylinders as one that cannot tip
    fixed = excavator_linkage() if tracked else plain
    actuators = holding(hydraulics(linkage), fixed, resting(fixed))
    gain = parameter("control.gain", 1.0)
    control = LinkageControl(actuators, linkage, gain=tuple(gain * k for k in LinkageControl.gain))
    stands = footing(plain, linkage)
    mechanism, forces = digging(standing(plain) if tracked else plain, stands, walls=not tracked)
    mechanism = replace(mechanism, gravity=(0.0, 0.0, -parameter("gravity", 9.81, "m/s2")))
    found = {"mechanism": mechanism, "actuators": actuators, "control": control}
    elements = tracks(stands, list(forces)) if tracked else ()
    return found | {"inputs": dict.fromkeys(control.inputs, 0.0), "forces": forces, "elements": elements}


def hydraulics(linkage: Linkage | None = None) -> list[HydraulicCylinder | HydraulicMotor]:
    """Of swing, boom, stick and bucket, without pressure."""
    linkage = linkage or Linkage.of_zoo()
    g = linkage.given
    shared = g["hydraulics"]
    oil = {"bulk_modulus": shared["bulk_modulus"], "leakage": shared["leakage"]}

    def valve(own: Any, relief: float) -> ProportionalValve:
        drops = tuple(own["drops"])
        edges = {"margin": shared["margin"], "overlap": shared["overlap"], "lag": shared["spool_lag"]}
        return ProportionalValve(own["flow"], min(shared["pump_pressure"], relief), relief, drops, **edges)

    swing = g["swing"]
    motor = HydraulicMotor(
        JOINTS[0],
        valve(swing, swing["relief"]),
        friction=swing["friction"],
        viscous=swing["viscous"],
        displacement=swing["displacement"],
        volume=swing["volume"],
        **oil,
    )
    found: list[HydraulicCylinder | HydraulicMotor] = [motor]
    for name, joint, x in zip(CYLINDERS, JOINTS[1:], linkage.extensions(linkage.start), strict=True):
        own = g["cylinders"][name]
        n = own["count"]
        found.append(
            HydraulicCylinder(
                joint,
                valve(own, shared["relief"]),
                friction=n * shared["friction"],
                viscous=n * shared["viscous"],
                bore=own["bore"],
                rod=own["rod"],
                stroke=own["stroke"],
                offset=float(x),
                count=n,
                hoses=n * shared["hoses"],
                stop_stiffness=shared["stop_stiffness"],
                stop_damping=shared["stop_damping"],
                **oil,
            )
        )
    return found


def holding(
    actuators: Sequence[HydraulicCylinder | HydraulicMotor], mechanism: Mechanism | None = None, q: Any = None
) -> list[HydraulicCylinder | HydraulicMotor]:
    """The same with pressures at the start that hold the mechanism still at q (the zero configuration)."""
    mechanism = mechanism or excavator_linkage()
    q = mechanism.neutral() if q is None else q
    held = dict(zip(mechanism.columns[1], _forces(mechanism, q).tolist(), strict=True))
    return [_under(a, held[a.joint]) for a in actuators]


def resting(mechanism: Mechanism) -> Array:
    """The zero configuration, where something bends as its weight bends it, with the cylinders as they are."""
    q = mechanism.neutral()
    modes = [(list(body.q_index), list(body.v_index), body.stiffness) for body in mechanism.tree.flexible]
    for _ in range(ROUNDS if modes else 0):
        forces = _forces(mechanism, q)
        for at, rows, stiffness in modes:
            q[at] -= forces[rows] / stiffness
        q = mechanism.assemble(q, fixed=JOINTS)[0]
    return q


def _forces(mechanism: Mechanism, q: Any) -> Array:
    """On the actuators and the modes, to hold it at q."""
    still = np.zeros(mechanism.nv)
    bent = [body.nodes[0].joint for body in mechanism.flexible]
    return np.asarray(mechanism.inverse_dynamics(q, still, still, actuated=[*JOINTS, *bent]))


def _under(a: HydraulicCylinder | HydraulicMotor, force: float) -> HydraulicCylinder | HydraulicMotor:
    """One chamber at LOW, the other as the force wants it."""
    a_A, a_B = a.areas
    needed = force + (a_B - a_A) * LOW  # what is left when both are at LOW
    return replace(a, p_A=LOW + max(needed, 0.0) / a_A, p_B=LOW + max(-needed, 0.0) / a_B)
