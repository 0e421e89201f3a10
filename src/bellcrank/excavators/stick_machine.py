"""An excavator that is driven by two sticks: its levers, plots, gauges and outputs, in JOINT or RESOLVED mode.

The axes of the sticks are assigned to levers in each mode and pattern (ISO, SAE).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from bellcrank.cockpit.machines import Axes, Gauge, Lever, Machine, Plot
from bellcrank.excavators.digging_forces import Stance
from bellcrank.excavators.pilots import Sticks
from bellcrank.ground.contact import GroundContact
from bellcrank.scalar import Scalar
from bellcrank.sim.system.systems import System

DEG = 180.0 / math.pi
TEETH_PLOT = Plot("Teeth", "m", ("tip.radius", "tip.height"))
Output = Callable[..., Scalar]

# Lever and direction of each axis: x to the right, y away from the operator. JOINT_AXES: cab, boom, stick, bucket.
JOINT_AXES: Axes = {
    "left.x": ("first", -1.0),  # left: the cab turns left
    "left.y": ("third", 1.0),  # away: stick out
    "right.x": ("fourth", 1.0),  # left: the bucket curls in
    "right.y": ("second", -1.0),  # away: boom down
}
# RESOLVED_AXES: radius, arc, height, bucket. Each hand controls the same kind of motion as in JOINT.
RESOLVED_AXES: Axes = {
    "left.x": ("second", -1.0),
    "left.y": ("first", 1.0),
    "right.x": ("fourth", 1.0),
    "right.y": ("third", -1.0),
}
# Label of each lever, and its effect below and above zero.
LEVER_LABELS = {
    "JOINT": {
        "first": ("swing", "right", "left"),
        "second": ("boom", "down", "up"),
        "third": ("stick", "in", "out"),
        "fourth": ("bucket", "curl", "open"),
    },
    "RESOLVED": {
        "first": ("teeth", "in", "out"),
        "second": ("swing", "right", "left"),
        "third": ("teeth", "down", "up"),
        "fourth": ("bucket", "curl", "open"),
    },
}


def _sae_axes(axes: Axes) -> Axes:
    """Return the SAE pattern: forward and backward motions of the two sticks are exchanged."""
    return {**axes, "left.y": axes["right.y"], "right.y": axes["left.y"]}


MODES = ("JOINT", "RESOLVED")
PATTERNS = {
    "ISO": {"JOINT": JOINT_AXES, "RESOLVED": RESOLVED_AXES},
    "SAE": {"JOINT": _sae_axes(JOINT_AXES), "RESOLVED": _sae_axes(RESOLVED_AXES)},
}


def stick_machine(
    plant: System, hands: Sticks, rates: Sequence[float], joints: Sequence[str], contact: GroundContact, *,
    levers: Sequence[Lever] = (), plots: Sequence[Plot], gauges: Sequence[Gauge], **more: Any,
) -> Machine:  # fmt: skip
    """Return the machine of an excavator.

    Parameters
    ----------
    plant
        System with the outputs of `tip_outputs` and `stance_outputs`; the sticks are its first four inputs.
    hands
        Sticks of RESOLVED mode.
    rates
        Joint rates of full sticks in JOINT mode, rad/s.
    joints
        Names of cab, boom, stick and bucket.
    contact
        Contact of the bucket with the ground.
    levers, plots, gauges
        Those besides the sticks, the joints and the stability.
    more
        Further fields of a Machine.
    """
    names = plant.inputs[:4]
    spans = {"JOINT": rates, "RESOLVED": hands.speeds}
    sticks = [Lever(name, "", -max(a, b), max(a, b)) for name, a, b in zip(names, *spans.values(), strict=True)]
    return Machine(
        plant,
        (*sticks, Lever("resolved", "", 0.0, 1.0, None), *levers),
        (
            Plot("Joint angles", "deg", tuple(f"{j}.q" for j in joints), DEG),
            Plot("Joint rates", "deg/s", tuple(f"{j}.v" for j in joints), DEG),
            *plots,
        ),
        patterns=PATTERNS,
        mode="resolved",
        modes=MODES,
        words=LEVER_LABELS,
        spans={mode: dict(zip(names, ends, strict=True)) for mode, ends in spans.items()},
        ground=contact.level,
        trace=("bucket", contact.tip),
        contact=contact,
        gauges=(*gauges, *(Gauge(x, x, "%", 0.0, 100.0, 100.0, 80.0) for x in ("tipping", "slipping"))),
        **more,
    )


def tip_outputs(tip: Callable[[Any], Sequence[Scalar]], load: Scalar) -> dict[str, Output]:
    """Return the outputs of the teeth and of the bucket's load.

    Parameters
    ----------
    tip
        Function of q that returns radius, swing, height and bucket angle of the teeth.
    load
        Mass in the bucket, kg.
    """
    return {
        "tip.radius": lambda t, q, v, x, u: tip(q)[0],
        "tip.height": lambda t, q, v, x, u: tip(q)[2],
        "payload": lambda t, q, v, x, u: load + 0.0 * t,
    }


def stance_outputs(stance: Stance) -> dict[str, Output]:
    """Return the outputs of the stability `stance`."""
    return {
        "tipping": lambda t, q, v, x, u: stance.utilisation(t, q, v)[0],
        "slipping": lambda t, q, v, x, u: stance.utilisation(t, q, v)[1],
    }
