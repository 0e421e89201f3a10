"""One small example of every actuator, force element, controller and event, in the form that a case needs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank import forces
from bellcrank.actuators import ACTUATORS, Actuator, ProportionalValve
from bellcrank.forces import (
    BearingFriction,
    Belt,
    Between,
    Box,
    Bushing,
    Cable,
    Capsule,
    Contact,
    Coupling,
    Cylinder,
    Element,
    EndStop,
    Gear,
    JointLaw,
    JointSpring,
    Latch,
    Law,
    LinearTyre,
    MagicTyre,
    NonlinearSpring,
    Plane,
    Rack,
    Sphere,
    Terrain,
    Worm,
    curve,
)
from bellcrank.forces.shapes import SHAPE_PAIRS

STEP = 1e-4  # s: short enough to resolve hydraulic pressures

# -- actuators

VALVE = ProportionalValve(flow=1e-4, p_pump=3e6, relief=3.3e6, drops=(2e5, 5e5))
GIVEN: dict[str, dict[str, Any]] = {
    "PD": {"kp": 20.0, "kd": 2.0, "limit": 30.0},
    "PID": {"kp": 20.0, "ki": 50.0, "kd": 2.0, "limit": 30.0},
    "DCMotor": {"k": 0.05, "R": 2.0, "L": 0.01, "n": 20.0, "voltage": 24.0, "current": 5.0, "slew": 200.0},
    "SpringDamper": {"k": 3.0, "d": 0.5, "rest": 0.1},
    "StribeckFriction": {"F_c": 0.4, "F_s": 0.6, "v_s": 0.5, "v_t": 0.2, "b": 0.2},
    "RotaryHydraulics": {"P_s": 400.0, "G": 2.0, "beta_m": 30.0, "P_e": 5.0, "laminar": 5.0, "opening": 0.1},
    "HydraulicCylinder": {"valve": VALVE, "bore": 0.012, "rod": 0.008, "stroke": 1.0, "offset": 0.5, "viscous": 50.0},
    "HydraulicMotor": {"valve": VALVE, "displacement": 2e-5, "volume": 1e-4, "viscous": 2.0},
}
SLIDES = ("HydraulicCylinder",)  # actuators of prismatic joints


def actuator(name: str, joint: str) -> Actuator:
    """Return an actuator; if it is not listed in GIVEN, every required number is 1."""
    kind = ACTUATORS[name]
    needed = {
        f.name: 1.0 for f in fields(kind) if f.name != "joint" and f.default is MISSING and f.default_factory is MISSING
    }
    return kind(joint, **GIVEN.get(name, needed))


# -- force elements

CURVE = curve([(-0.5, -9.0), (-0.1, -1.0), (0.0, 0.0), (0.1, 1.2), (0.5, 8.0)])
MAGIC = {
    "FNOMIN": 40.0, "PCX1": 1.65, "PDX1": 1.2, "PKX1": 22.0, "PCY1": 1.3, "PDY1": -1.05, "PKY1": -18.0, "PKY2": 1.8,
}  # fmt: skip
ELEMENTS: dict[str, Callable[..., Element]] = {
    "Bushing": lambda n, *e: Bushing(n, *e, (90.0, 80.0, 70.0, 3.0, 2.0, 1.0), (1.0, 2.0, 3.0, 0.1, 0.2, 0.3)),
    "NonlinearSpring": lambda n, *e: NonlinearSpring(n, *e, CURVE, lambda u: 5.0 * u + u * u * u, 0.1),
    "Cable": lambda n, *e: Cable(n, *e, length=0.05, stiffness=50.0, damping=2.0),
    "Law": lambda n, *e: Law(n, *e, lambda t, X, V: ([-3.0 * V[0], 0.0, X[0, 3]], [0.0, -0.1 * V[4], bc.sin(t)])),
    "LinearTyre": lambda n, *e: LinearTyre(n, *e, 0.3, 400.0, 5.0, longitudinal=80.0, lateral=50.0, friction=0.9),
    "MagicTyre": lambda n, *e: MagicTyre(n, *e, 0.3, 400.0, 5.0, coefficients=MAGIC),
    "BearingFriction": lambda n, *j: BearingFriction(n, j[0], 0.2, 0.05, thrust_radius=0.04, span=0.3, slow=0.02),
    "Latch": lambda n, *e: Latch(n, *e, "spherical"),
    "EndStop": lambda n, *j: EndStop(n, j[:1], -0.2, -0.05, 40.0, 0.3),
    "JointSpring": lambda n, *j: JointSpring(n, j[:1], CURVE, lambda u: 0.3 * u, rest=0.05),
    "Gear": lambda n, *j: Gear(n, j, -2.5, 30.0, 0.01, 0.05),
    "Rack": lambda n, *j: Rack(n, j, 0.04, 100.0, 1e-3, 2.0),
    "Belt": lambda n, *j: Belt(n, j, 0.1, 0.2, 100.0, 20.0, 5.0),
    "Worm": lambda n, *j: Worm(n, j, 0.02, 0.1, 0.1, 100.0, 3.0, 0.05, slow=0.1),
    "JointLaw": lambda n, *j: JointLaw(n, j, lambda t, q, v: [-v[0] - q[1], -0.5 * v[1]]),
}
SHAPES: dict[str, Any] = {
    "Plane": Plane(),
    "Terrain": Terrain(lambda x, y: 0.02 * bc.sin(2.0 * x)),
    "Sphere": Sphere(0.1),
    "Capsule": Capsule(0.1, 0.3),
    "Box": Box((0.3, 0.4, 0.5)),
    "Cylinder": Cylinder(0.1, 0.3),
}
ABSTRACT = (Element, Between, Coupling)


def contacts() -> dict[str, tuple[Any, Any]]:
    """Return every pair of shapes that the package supports, by name."""
    found = {}
    for mine, others, _ in SHAPE_PAIRS:
        for a in mine if isinstance(mine, tuple) else (mine,):
            for b in others if isinstance(others, tuple) else (others,):
                found[f"Contact {a.__name__} {b.__name__}"] = (a, b)
    return found


def elements() -> tuple[str, ...]:
    """Return every class of force elements, and every pair of contact shapes, with and without bristles."""
    kinds = [x for name in forces.__all__ if inspect.isclass(x := getattr(forces, name)) and issubclass(x, Element)]
    plain = [x.__name__ for x in kinds if x not in (*ABSTRACT, Contact)]
    return (*plain, *contacts(), "Contact with bristles")


def between_frames(name: str) -> bool:
    """Return whether an element acts between two frames; the others act between joints."""
    return name.startswith("Contact") or issubclass(getattr(forces, name), Between | Latch)


def element(name: str, called: str, *ends: str) -> Element:
    """Return an element of a kind."""
    if not name.startswith("Contact"):
        return ELEMENTS[name](called, *ends)
    how: dict[str, Any] = {"stiffness": 300.0, "damping": 0.3, "friction": 0.5, "slow": 0.1}
    if name == "Contact with bristles":
        how["bristles"] = 50.0
    return Contact(called, *ends, *shapes(name), **how)


def shapes(name: str) -> tuple[Any, Any]:
    """Return the two shapes of a contact."""
    if name == "Contact with bristles":
        return Plane(), Sphere(0.1)
    a, b = (x.__name__ for x in contacts()[name])
    return SHAPES[a], SHAPES[b]


def gap(name: str) -> float:
    """Return the height of frame b above frame a along z at which shapes overlap by some millimetres."""
    if not name.startswith("Contact"):
        return 0.25
    X = np.eye(4)
    X[:2, 3] = 0.01, 0.02
    for z in np.arange(1.0, 0.0, -0.002):
        X[2, 3] = z
        touches = forces.contact.contact_points(*shapes(name), X)
        if min(float(t.gap) for t in touches) < -0.004:
            return float(z)
    raise AssertionError(f"{name}: nothing touches")


# -- control, samples and events


def _push(t: Any, u: Any, names: Any) -> dict[str, Any]:
    return {name: 0.3 * bc.sin(30.0 * t + k) + u["push"] for k, name in enumerate(names)}


def control(kind: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments of bc.system for a controller that gives a command to each of `names`."""
    if kind == "states":
        return {
            "control": lambda t, q, v, x, u: (_push(t, u, names), [v[0] - x["memory"]]),
            "states": {"memory": 0.1},
        }
    if kind == "sampled":
        return {
            "control": bc.Sampled(
                lambda t, q, v, x, u: (_push(t, u, names), {"total": x["total"] + v[0]}),
                every=4 * STEP, states={"total": 0.2}, delay=2 * STEP, quantum=0.001,
            )
        }  # fmt: skip
    found: dict[str, Any] = {"control": lambda t, q, v, x, u: _push(t, u, names)}
    if kind == "sampled outputs":
        slow = bc.Sampled(lambda t, q, v, x, u: {"seen": q[0] + u["push"]}, every=6 * STEP, outputs={"seen": 0.1})
        found = {
            "control": lambda t, q, v, x, u: {n: f + x["seen"] for n, f in _push(t, u, names).items()},
            "sampled": [slow],
        }
    return found


CONTROLS = ("none", "continuous", "states", "sampled", "sampled outputs")


def _clock(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return t - 7.3 * STEP + 1e-6 * q[0]  # independent of everything that a switch changes


EVENTS: dict[str, Callable[[], list[bc.Event]]] = {
    "none": lambda: [],
    "stop": lambda: [bc.Event("over", _clock)],
    "record": lambda: [bc.Event("noted", _clock, "record", 1)],
    "switch": lambda: [bc.Event("bounce", _clock, "switch", 1, lambda t, q, v, x, u: {"v": 0.5 * v})],
}
