"""Machines with sticks or levers of their own; all other mechanisms get sliders (machines.generic).

The rope of 200 links between two winches with levers is an example of many identical bodies in a closed loop. A winch
pulls its end of the rope along a rail at the speed of its lever, up to a maximum force. The limit keeps the rope from
being pulled straight, which would take an infinite force.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bellcrank.actuators import IdealTorque, StateVariable
from bellcrank.cockpit.machines import Gauge, Lever, Machine, Plot
from bellcrank.excavators import linkage_machine as linkage
from bellcrank.excavators import rotary_machine as excavator
from bellcrank.scalar import Scalar, clip
from bellcrank.sim.system.systems import system
from bellcrank.zoo import rope

WINCHES = ("left", "right")
LINK_COUNT = 200
WINCH_SPEED = 1.5  # m/s, speed of a winch at full lever
WINCH_FORCE = 2500.0  # N, maximum force of a winch: six times the weight of the rope
DRUM_STIFFNESS, DRUM_DAMPING = 4e4, 4e3  # N/m and N s/m
DRUM_SLIP_RATE = 20.0  # 1/s


def rope_machine(links: int = LINK_COUNT) -> Machine:
    """Return the machine with a rope of `links` links."""
    m = rope(links)
    rope_system = system(
        m,
        [IdealTorque(name) for name in WINCHES],
        _winch_control,
        inputs=dict.fromkeys(WINCHES, 0.0),
        states=[StateVariable(f"{name}.drum", "m") for name in WINCHES],
        outputs={f"{name}.force": partial(_winch_force, name) for name in WINCHES},
    )
    levers = tuple(Lever(name, "m/s", -WINCH_SPEED, WINCH_SPEED, label=f"{name} winch") for name in WINCHES)
    plots = (
        Plot("Ends of the rope", "m", tuple(f"{name}.q" for name in WINCHES)),
        Plot("Winches pull", "N", tuple(f"{name}.force" for name in WINCHES)),
    )
    force = "N", -WINCH_FORCE, WINCH_FORCE
    gauges = tuple(Gauge(f"{name} winch", f"{name}.force", *force, warn=0.9 * WINCH_FORCE) for name in WINCHES)
    return Machine(rope_system, levers, plots, gauges=gauges)


def _winch_force(name: str, t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Scalar:
    """Return the force of a winch towards the position of its drum."""
    force = DRUM_STIFFNESS * (x[f"{name}.drum"] - q[name]) + DRUM_DAMPING * (u[name] - v[name])
    return clip(force, -WINCH_FORCE, WINCH_FORCE)


def _winch_control(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> tuple[dict[str, Scalar], list[Scalar]]:
    forces = {name: _winch_force(name, t, q, v, x, u) for name in WINCHES}
    return forces, [u[name] - _slip_rate(x[f"{name}.drum"] - q[name]) for name in WINCHES]


def _slip_rate(lead: Scalar) -> Scalar:
    """Return the slip rate of the drum: at maximum force the drum slips back instead of winding up."""
    return DRUM_SLIP_RATE * (lead - clip(lead, -WINCH_FORCE / DRUM_STIFFNESS, WINCH_FORCE / DRUM_STIFFNESS))


MACHINES: dict[str, Callable[[], Machine]] = {
    "excavator": excavator.machine,
    "excavator_linkage": linkage.machine,
    "excavator_flexible": linkage.flexible,
    "excavator_tracked": linkage.tracked,
    "rope": rope_machine,
}
