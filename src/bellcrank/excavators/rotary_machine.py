"""Excavator of Wong's chapter 5 for the cockpit: two sticks, JOINT or RESOLVED mode, ISO or SAE pattern.

Mechanism, hydraulics and control are the paper's (excavators/spool_control.py). Values that the paper does not
print are assumed: the position of the teeth (TIP) and the width of the bucket, the height of the ground under the cab's
bearing and its soil, the stops, the leash of the desired angles, the pressure damping that stops the machine when the
sticks are released, and the speeds of a full stick: about what the paper's pumps can supply.
"""

from __future__ import annotations

from dataclasses import replace

from bellcrank.cockpit.machines import Gauge, Machine, Plot
from bellcrank.control.trajectory import Leash
from bellcrank.excavators.digging_forces import Footing, Stance, with_digging_forces
from bellcrank.excavators.geometry import ExcavatorArm
from bellcrank.excavators.spool_control import JOINTS, EitherMode, hydraulics, spool_outputs
from bellcrank.excavators.stick_machine import TEETH_PLOT, Sticks, stance_outputs, stick_machine, tip_outputs
from bellcrank.ground.contact import ground_contact
from bellcrank.ground.field import Tool
from bellcrank.model import Frame
from bellcrank.sim.system.systems import system
from bellcrank.zoo import data, excavator

TIP = (1.35, -0.05)  # m, the teeth in the bucket's axes
WIDTH, CAPACITY = 1.0, 0.7  # m and m3, bucket
GROUND = -1.0  # m, below the cab's bearing
# Arguments of Footing: tracks, upper structure and mass of the carriage.
FOOTING_DIMENSIONS = (1.94, (0.84, 1.4), 0.78, 2.0, 3.0, 7500.0)
STOPS = ((-1e6, 1e6), (-0.9, 1.15), (-2.65, -0.35), (-2.3, 0.7))  # rad; the cab turns without limit
STOP_STIFFNESS = 2e6  # N m/rad, mechanical stops, 0.1 rad beyond those of the desired angles
FULL_STICK_RATES = (0.24, 0.17, 0.32, 0.32)  # rad/s of a full stick, JOINT
FULL_STICK_SPEEDS = (0.6, 1.0, 0.5, 0.32)  # m/s, m/s, m/s, rad/s, RESOLVED
LEASH = Leash(0.015, 1.2, 0.35)  # at rest within the spools' dead band; at full speed the joints lag 0.3 rad behind
BLEED = (5e-5, 8e-5, 1e-4, 8e-5)  # V/psi; with larger values the joints yield to external forces
# psi: limits the slope of the flow at small pressure drops for implicit integrators; otherwise negligible.
LAMINAR = 1.0
START = (5.6, 0.0, -0.4, -1.75)  # radius, swing, height of the teeth, angle of the bucket


def machine() -> Machine:
    """Return the machine with its sticks, plots, gauges and programs."""
    plain = excavator()
    plain = replace(plain, frames={**plain.frames, "tip": Frame("tip", "bucket", point=(*TIP, 0.0))})
    tool = Tool(across=(0.0, 0.0, 1.0), mouth=(0.0, -1.0, 0.0), width=WIDTH, capacity=CAPACITY)
    footing = Footing(ground_contact(tool, (*TIP, 0.0), GROUND), *FOOTING_DIMENSIONS)
    m, forces = with_digging_forces(plain, footing)
    arm = ExcavatorArm.of(m, tip=TIP)
    start = [float(x) for x in arm.inverse(START)]
    gains = data("excavator")["control"]
    actuators = [
        replace(a, low=low - 0.1, high=high + 0.1, stop_stiffness=STOP_STIFFNESS)
        for a, (low, high) in zip(hydraulics(LAMINAR), STOPS, strict=True)
    ]
    control = EitherMode(gains["kp"], gains["kv"], start, stops=STOPS, leash=LEASH, bleed=BLEED, arm=arm)

    stance, load = Stance(m, forces, footing), footing.contact.numbers["load.mass"]
    outputs = {f"{j}.spool": spool for j, spool in zip(JOINTS, spool_outputs(control, actuators), strict=True)}
    outputs |= tip_outputs(lambda q: arm.forward(list(q)), load) | stance_outputs(stance)
    inputs = dict.fromkeys(EitherMode.inputs, 0.0)  # the sticks
    plant = system(m, actuators=actuators, control=control, inputs=inputs, outputs=outputs, forces=forces)
    hands = Sticks(arm, range(4), (0.0,) * 4, FULL_STICK_SPEEDS, FULL_STICK_RATES[0])
    return stick_machine(
        plant,
        hands,
        FULL_STICK_RATES,
        JOINTS,
        footing.contact,
        plots=(
            Plot("Pressures", "psi", tuple(f"{j}.{p}" for j in JOINTS for p in ("p_in", "p_out"))),
            Plot("Spools", "cm", tuple(f"{j}.spool" for j in JOINTS)),
            TEETH_PLOT,
        ),
        gauges=(Gauge("payload", "payload", "t", 0.0, 1.5, 1e-3),),
        start=tuple(start),
        look="excavator",
    )
