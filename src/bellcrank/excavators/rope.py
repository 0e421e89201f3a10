"""Rope of 200 links between two winches with levers: an example of many identical bodies in a closed loop.

A winch pulls its end of the rope along a rail at the speed of its lever, up to a maximum force. The limit keeps the
rope from being pulled straight, which would take an infinite force.
"""

from __future__ import annotations

from typing import Any

from bellcrank.actuators import IdealTorque, StateVariable
from bellcrank.cockpit.machines import Gauge, Lever, Machine, Plot
from bellcrank.scalar import Scalar, clip
from bellcrank.sim.systems import system
from bellcrank.zoo import rope

WINCHES = ("left", "right")
LINKS = 200
SPEED = 1.5  # m/s, speed of a winch at full lever
FORCE = 2500.0  # N, maximum force of a winch: six times the weight of the rope
STIFF, STEADY = 4e4, 4e3  # N/m and N s/m
SLIP = 20.0  # 1/s


def machine(links: int = LINKS) -> Machine:
    """Return the machine with a rope of so many `links`."""
    m = rope(links)
    made = system(
        m,
        [IdealTorque(name) for name in WINCHES],
        _pulled,
        inputs=dict.fromkeys(WINCHES, 0.0),
        states=[StateVariable(f"{name}.drum", "m") for name in WINCHES],
        outputs={f"{name}.force": _force_of(name) for name in WINCHES},
    )
    levers = tuple(Lever(name, "m/s", -SPEED, SPEED, label=f"{name} winch") for name in WINCHES)
    plots = (
        Plot("Ends of the rope", "m", tuple(f"{name}.q" for name in WINCHES)),
        Plot("Winches pull", "N", tuple(f"{name}.force" for name in WINCHES)),
    )
    gauges = tuple(Gauge(f"{name} winch", f"{name}.force", "N", -FORCE, FORCE, warn=0.9 * FORCE) for name in WINCHES)
    return Machine(made, levers, plots, gauges=gauges)


def _force(name: str, q: Any, v: Any, x: Any, u: Any) -> Scalar:
    """Return the force of a winch towards the position of its drum."""
    return clip(STIFF * (x[f"{name}.drum"] - q[name]) + STEADY * (u[name] - v[name]), -FORCE, FORCE)


def _force_of(name: str) -> Any:
    return lambda t, q, v, x, u: _force(name, q, v, x, u)


def _pulled(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> tuple[dict[str, Scalar], list[Scalar]]:
    forces = {name: _force(name, q, v, x, u) for name in WINCHES}
    return forces, [u[name] - _slipping(x[f"{name}.drum"] - q[name]) for name in WINCHES]


def _slipping(ahead: Scalar) -> Scalar:
    """Return the slip rate of the drum: at maximum force the drum slips back instead of winding up."""
    return SLIP * (ahead - clip(ahead, -FORCE / STIFF, FORCE / STIFF))
