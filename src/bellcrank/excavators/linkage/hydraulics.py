"""Complete system of excavator_linkage: hydraulics with equilibrium pressures at the start, control and soil.

system = bc.system(**parts())
bc.simulate(system, 60.0, inputs={"autopilot": 1.0}, form="projected")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.actuators import HydraulicCylinder, HydraulicMotor, ProportionalValve
from bellcrank.actuators.hydraulic import Hydraulic
from bellcrank.excavators.digging_forces import with_digging_forces
from bellcrank.excavators.linkage.geometry import CYLINDERS, JOINTS, Linkage
from bellcrank.excavators.linkage.linkage_control import LinkageControl
from bellcrank.excavators.linkage.mechanism import excavator_linkage
from bellcrank.excavators.linkage.tracks import CARRIAGE_BODY, footing, tracks, with_track_frames
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.parts import Array
from bellcrank.parameters import parameter

MODE_ITERATIONS = 8  # iterations; each reduces the error of the modes to about a hundredth
LOW_PRESSURE = 1.0e6  # Pa, in the chamber without load


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
