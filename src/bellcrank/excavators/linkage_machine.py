"""excavator_linkage for the cockpit: cylinders, bucket linkage and soil, driven by the two sticks of Wong's machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bellcrank.cockpit.machines import Gauge, Lever, Machine, Plot, Tune
from bellcrank.dynamics import kinematics
from bellcrank.excavators.digging_forces import Stance
from bellcrank.excavators.geometry import CYCLE, JOINTS, Linkage
from bellcrank.excavators.linkage_control import FULL_STICK_RATES, FULL_STICK_SPEEDS, FUNCTIONS
from bellcrank.excavators.linkage_mechanism import excavator_flexible, excavator_tracked
from bellcrank.excavators.linkage_system import (
    CARRIAGE_BODY,
    CARRIAGE_MASS,
    footing,
    parts,
    resting,
    static_penetration,
)
from bellcrank.excavators.stick_machine import DEG, TEETH_PLOT, Sticks, stance_outputs, stick_machine, tip_outputs
from bellcrank.model.mechanism import Mechanism
from bellcrank.scalar import Scalar, asin, clip, cos, sin, sqrt
from bellcrank.sim.system.systems import system

RPM = 30.0 / math.pi
TUNES = (
    Tune("load.extra", "extra payload", "kg", 0.0, 3000.0),
    Tune("gravity", "gravity", "m/s²", 0.0, 12.0),
    Tune("control.gain", "gain of the servos", "×", 0.2, 2.0),
)


def flexible() -> Machine:
    """Return the machine with flexible boom and stick.

    The output `tip.sag` is the height of the teeth by the rigid kinematics less their actual height.
    """
    mechanism = excavator_flexible()
    outputs = {"tip.sag": lambda t, q, v, x, u: _sag(mechanism, q)}
    return machine(mechanism, outputs, (Plot("Sag", "mm", ("tip.sag",), 1e3),))


def tracked() -> Machine:
    """Return the machine on tracks: the carriage tips, slips and travels.

    The output `carriage.tilt` is its angle from upright.
    """
    mechanism = excavator_tracked(CARRIAGE_MASS)
    start = mechanism.neutral()
    start[2] = -static_penetration(sum(float(body.mass) for body in mechanism.bodies))
    outputs = {"carriage.tilt": lambda t, q, v, x, u: _tilt(mechanism, q)}
    base_machine = machine(mechanism, outputs, (Plot("Tilt", "deg", ("carriage.tilt",), DEG),))
    speeds = tuple(Tune(f"tracks.{side}", f"{side} track", "m/s", -1.5, 1.5) for side in ("left", "right"))
    return replace(base_machine, start=tuple(start.tolist()), tunes=(*base_machine.tunes, *speeds))


def _tilt(mechanism: Mechanism, q: Any) -> Scalar:
    pose = kinematics.pose(mechanism.tree, list(q), "carriage")
    return asin(clip(sqrt(pose[0][2] * pose[0][2] + pose[1][2] * pose[1][2]), 0.0, 1.0))


def _sag(mechanism: Mechanism, q: Any) -> Scalar:
    """Return the vertical deflection of the teeth, by a frame that stays at its joint however the body deforms."""
    linkage = Linkage.of_zoo()
    return linkage.arm.forward(linkage.angles(q))[2] - kinematics.pose(mechanism.tree, list(q), "tip")[2][3]


def machine(
    mechanism: Mechanism | None = None, more: Mapping[str, Any] | None = None, plots: tuple[Plot, ...] = ()
) -> Machine:
    """Return the machine with its sticks, plots, gauges and programs.

    Parameters
    ----------
    mechanism
        Variant with the same joints; None for the rigid machine.
    more
        Additional outputs.
    plots
        Additional plots.
    """
    arguments = parts(mechanism)
    m, control = arguments["mechanism"], arguments["control"]
    linkage: Linkage = control.linkage
    diesel, ground_footing = control.diesel, footing(m, linkage)
    moving_base = CARRIAGE_BODY if CARRIAGE_BODY in [body.name for body in m.bodies] else None
    cutting, numbers = ground_footing.contact.cutting, ground_footing.contact.numbers

    def tip(q: Any) -> Sequence[Scalar]:
        return linkage.arm.forward(linkage.angles(q))

    def pump(k: int) -> Callable[..., Scalar]:
        """Return an output: the pump's pressure (k = 0), or the used share of its power."""

        def output(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Scalar:
            _, pressure, flow = control.supplied(t, q, v, x, u)
            return pressure if k == 0 else pressure * flow / (diesel.efficiency * diesel.power)

        return output

    def soil_resistance(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Scalar:
        if moving_base:
            pose = kinematics.pose(m.tree, list(q), "tip")
            return cutting.resistance(cutting.depth([pose[k][3] for k in range(3)]))
        radius, swing, height, _ = tip(q)
        return cutting.resistance(cutting.depth([radius * cos(swing), radius * sin(swing), height]))

    outputs: dict[str, Callable[..., Scalar]] = {
        **tip_outputs(tip, numbers["load.mass"] + numbers["load.extra"]),
        "soil.resistance": soil_resistance,
        "pump.pressure": pump(0),
        "engine.load": pump(1),
        "engine.speed": lambda t, q, v, x, u: x["engine"] * RPM,
        **stance_outputs(Stance(m, arguments["forces"], ground_footing, moving_base)),
        **(more or {}),
    }
    plant = system(**arguments, outputs=outputs)
    joints = [plant.mechanism.columns[0].index(n) for n in FUNCTIONS]
    hands = Sticks(linkage.arm, joints, linkage.start, FULL_STICK_SPEEDS, FULL_STICK_RATES[0])

    states = [s.name for s in plant.states]
    return stick_machine(
        plant,
        hands,
        FULL_STICK_RATES,
        (JOINTS[0], "boom", "stick", "bucket"),
        ground_footing.contact,
        levers=(Lever("autopilot", "", 0.0, 1.0),),  # not for programs: it would dig in one place for ever
        plots=(
            Plot("Pressures", "bar", tuple(s for s in states if s.rpartition(".")[2].startswith("p_")), 1e-5),
            Plot("Spools", "", tuple(s for s in states if s.rpartition(".")[2] == "spool")),
            TEETH_PLOT,
            Plot("Cylinders", "m", tuple(f"{j}.q" for j in JOINTS[1:])),
            Plot("Soil and load", "kN", ("soil.resistance", "payload"), 1e-3),
            Plot("Engine", "", ("engine.load", "tipping", "slipping")),
            *plots,
        ),
        gauges=(
            Gauge("payload", "payload", "t", 0.0, 2.2, 1e-3),
            Gauge("pump", "pump.pressure", "bar", 0.0, 380.0, 1e-5, 345.0),
            Gauge("engine", "engine.load", "%", 0.0, 100.0, 100.0, 98.0),
            Gauge("speed", "engine.speed", "rpm", 0.0, 2400.0),
            Gauge("digging", "soil.resistance", "kN", 0.0, 150.0, 1e-3),
        ),
        start=tuple(resting(mechanism).tolist()) if mechanism and mechanism.flexible else None,
        look="linkage",
        tunes=TUNES,
        waypoints=tuple(move.waypoint for move in CYCLE),
        integrator="rodas4",  # implicit, as oil in the cylinders is stiff, and so are stops and stones
    )
