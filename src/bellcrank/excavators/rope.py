"""A rope of 200 links between two winches, for a person to pull: what alike bodies in a closed loop are worth.

A winch pulls its end of the rope along a rail, at the speed of its lever, as hard as it can and no harder: the rope is
never drawn straight, for that would take a force without end.
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
SPEED = 1.5  # m/s, of a lever at its end
FORCE = 2500.0  # N, the most that a winch pulls: six times the weight of the rope
STIFF, STEADY = 4e4, 4e3  # N/m and N s/m
SLIP = 20.0  # 1/s


def machine(links: int = LINKS) -> Machine:
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
    """Towards where the drum has turned to."""
    return clip(STIFF * (x[f"{name}.drum"] - q[name]) + STEADY * (u[name] - v[name]), -FORCE, FORCE)


def _force_of(name: str) -> Any:
    return lambda t, q, v, x, u: _force(name, q, v, x, u)


def _pulled(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> tuple[dict[str, Scalar], list[Scalar]]:
    forces = {name: _force(name, q, v, x, u) for name in WINCHES}
    return forces, [u[name] - _slipping(x[f"{name}.drum"] - q[name]) for name in WINCHES]


def _slipping(ahead: Scalar) -> Scalar:
    """A drum that pulls as hard as it can does not wind up: what it is ahead by more than that, it loses."""
    return SLIP * (ahead - clip(ahead, -FORCE / STIFF, FORCE / STIFF))
