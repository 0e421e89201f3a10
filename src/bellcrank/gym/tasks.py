"""Learning tasks: plants with a reward, an end condition and a start. This module does not need gymnasium."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bellcrank.errors import InputError, check_known
from bellcrank.excavators import rotary_machine as excavator
from bellcrank.excavators.spool_control import JOINTS, EitherMode, JointMode
from bellcrank.formats import Builder
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar, cos, exp, fabs, maximum, sin
from bellcrank.sim.program.counter_rng import Random
from bellcrank.sim.system.observed_columns import SolvedMotion, StateColumns
from bellcrank.sim.system.systems import System, system
from bellcrank.zoo import puma600


@dataclass(frozen=True)
class Task:
    """Learning task: a plant, the range of its inputs, and arguments of bellcrank.stepper.

    Parameters
    ----------
    plant : System
        Plant to control.
    low, high : float or array_like
        Bounds of the inputs.
    settings : mapping
        Arguments of `bellcrank.stepper`, such as reward, ends and start.
    """

    plant: System
    low: Any = -1.0
    high: Any = 1.0
    settings: Mapping[str, Any] = field(default_factory=dict)


def _cart() -> System:
    """Return a cart of 1 kg with a pole of 0.1 kg and 1 m; hinge = 0 is upright, push is in 10 N."""
    b = Builder("cart_pole")
    b.body("cart", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.body("pole", mass=0.1, com=(0, 0, 0.5), inertia=(0.1 / 12, 0.1 / 12, 1e-5))
    b.joint("slide", "prismatic", "ground", "cart", axis=(1, 0, 0))
    b.joint("hinge", "revolute", "cart", "pole", axis=(0, 1, 0))
    return system(b.build(), control=lambda t, q, v, x, u: {"slide": 10.0 * u["push"]}, inputs=["push"])


def cart_pole() -> Task:
    """Balance a pole on a cart, as in gymnasium's CartPole: ends at 12 degrees or 2.4 m, or after 10 s.

    Returns
    -------
    Task
        The task.
    """

    def start(random: Random) -> list[Scalar]:
        return [random.uniform(-0.05, 0.05) for _ in range(4)]

    settings = {
        "every": 0.02, "step": 0.01, "limit": 10.0, "start": start, "reward": lambda t, q, v, x, u: 1.0,
        "ends": lambda t, q, v, x, u: maximum(fabs(q["hinge"]) / 0.2095, fabs(q["slide"]) / 2.4) - 1.0,
    }  # fmt: skip
    return Task(_cart(), settings=settings)


def cart_pole_swing_up() -> Task:
    """Swing up the pole of a cart and balance it.

    The pole hangs down at the start. A run ends if the cart leaves the track, 3 m to either side. Observations contain
    sine and cosine of the angle, so that full turns do not change them. The reward of a step is 3 for an upright pole
    in the middle of the track, and 1 for a hanging one.

    Returns
    -------
    Task
        The task.
    """
    plant = replace(
        _cart(),
        outputs={
            "x": lambda t, q, v, x, u: q["slide"], "sin": lambda t, q, v, x, u: sin(q["hinge"]),
            "cos": lambda t, q, v, x, u: cos(q["hinge"]), "dx": lambda t, q, v, x, u: v["slide"],
            "turning": lambda t, q, v, x, u: v["hinge"],
        },
    )  # fmt: skip

    def start(random: Random) -> dict[str, Scalar]:
        return {"hinge.q": random.uniform(2.64, 3.64), "slide.q": random.uniform(-0.3, 0.3)}

    def reward(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Scalar:
        # Every step has a positive reward, even with a hanging pole at the end of the track: ending is never better.
        return 2.0 + cos(q["hinge"]) - 0.1 * q["slide"] * q["slide"] - 0.01 * u["push"] * u["push"]

    settings = {
        "every": 0.02, "step": 0.01, "limit": 10.0, "start": start, "reward": reward,
        "ends": lambda t, q, v, x, u: fabs(q["slide"]) > 3.0,
    }  # fmt: skip
    return Task(plant, settings=settings)


def double_pendulum() -> Task:
    """Swing up a planar double pendulum with a motor in its second joint, and balance it.

    Returns
    -------
    Task
        The task.
    """
    b = Builder("double_pendulum")
    for k, parent in enumerate(("ground", "upper")):
        name = ("upper", "lower")[k]
        b.body(name, mass=1.0, com=(0, 0, -0.5 - k), inertia=(1 / 12, 1 / 12, 1e-4))
        b.joint(("shoulder", "elbow")[k], "revolute", parent, name, axis=(0, 1, 0), point=(0, 0, -k))
    plant = system(b.build(), control=lambda t, q, v, x, u: {"elbow": 10.0 * u["torque"]}, inputs=["torque"])

    def reward(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Scalar:
        height = -cos(q["shoulder"]) - cos(q["shoulder"] + q["elbow"])
        return 0.5 * height - 0.001 * (v["shoulder"] * v["shoulder"] + v["elbow"] * v["elbow"])

    def start(random: Random) -> dict[str, Scalar]:
        return {f"{name}.q": random.uniform(-0.1, 0.1) for name in ("shoulder", "elbow")}

    return Task(plant, settings={"every": 0.05, "step": 0.005, "limit": 10.0, "start": start, "reward": reward})


def reacher(mechanism: Mechanism | None = None, frame: str = "", strength: float = 20.0) -> Task:
    """Move the tip of an arm to a target point by forces on its joints.

    The target is the tip's position in a random pose, so it can be reached.

    Parameters
    ----------
    mechanism : Mechanism, optional
        Arm without loops or quaternions; by default the PUMA 600.
    frame : str
        Frame of the tip; by default the last one.
    strength : float
        Force of a joint at an input of 1, N m or N.

    Returns
    -------
    Task
        The task.

    Raises
    ------
    InputError
        If a joint has a quaternion, or the frame does not exist.
    """
    m = puma600() if mechanism is None else mechanism
    if m.nq != m.nv:
        raise InputError(f'reacher: "{m.name}" has joints with a quaternion; expected nq equal to nv.')
    names, frames = m.columns[1], list(m.frames)
    frame = frame or (frames[-1] if frames else "")
    check_known("frame", frame, frames, "reacher")
    wanted = ("wanted.x", "wanted.y", "wanted.z")

    def control(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [strength * u[name] - 0.1 * strength * v[name] for name in names], [0.0, 0.0, 0.0]

    bare = system(m)

    def place(q: Any) -> list[Scalar]:
        columns = StateColumns(bare, lambda y, tau: SolvedMotion([]), 0.0, [*q, *[0.0] * m.nv], ())
        return [columns[f"{frame}.{axis}"] for axis in "xyz"]

    def missing(axis: int) -> Callable[..., Scalar]:
        return lambda t, q, v, x, u: x[wanted[axis]] - place(q)[axis]

    def speed(name: str) -> Callable[..., Scalar]:
        return lambda t, q, v, x, u: v[name]

    def turned(name: str, function: Callable[[Scalar], Scalar]) -> Callable[..., Scalar]:
        return lambda t, q, v, x, u: function(q[name])

    outputs = {f"missing.{axis}": missing(k) for k, axis in enumerate("xyz")}
    outputs |= {f"sin.{name}": turned(name, sin) for name in names} | {
        f"cos.{name}": turned(name, cos) for name in names
    }
    outputs |= {f"speed.{name}": speed(name) for name in names}
    plant = system(m, control=control, inputs=names, outputs=outputs, states=dict.fromkeys(wanted, 0.0))

    def start(random: Random) -> list[Scalar]:
        angles, goal = ([random.uniform(-1.0, 1.0) for _ in names] for _ in range(2))
        return [*angles, *[0.0] * m.nv, *place(goal)]

    def reward(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Scalar:
        squares = [(x[w] - p) * (x[w] - p) for w, p in zip(wanted, place(q), strict=True)]
        return exp(-10.0 * sum(squares, 0.0)) - 0.01 * sum((a * a for a in u), 0.0)

    return Task(plant, settings={"every": 0.04, "step": 0.002, "limit": 4.0, "start": start, "reward": reward})


def excavator_trench() -> Task:
    """Move the teeth of the hydraulic excavator along a trench: towards the cab, at a constant depth.

    There is one stick for each joint, from -1 to 1. Observations are the tracking error of the teeth, and angles, rates
    and load pressures of the joints.

    Returns
    -------
    Task
        The task.
    """
    full_machine = excavator.machine()
    hydraulic_system, law = full_machine.system, full_machine.system.control
    assert isinstance(law, EitherMode)
    arm = law.arm
    assert arm is not None
    sticks = JointMode(law.kp, law.kv, law.start, stops=law.stops, leash=law.leash, bleed=law.bleed)
    rates = dict(zip(JOINTS, excavator.FULL_STICK_RATES, strict=True))

    def control(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Any:
        return sticks(t, q, v, x, {name: rates[name] * u[name] for name in JOINTS})

    far, depth = excavator.START[0], excavator.GROUND - 0.2

    def missing(t: Scalar, q: Any) -> tuple[Scalar, Scalar]:
        """Return the errors of radius and height; the reference moves at 0.2 m/s to the cab, and down within 3 s."""
        radius, _, height, _ = arm.forward(list(q))
        down = excavator.START[2] + (depth - excavator.START[2]) * (1.0 - exp(-t))
        return far - 0.2 * t - radius, down - height

    outputs: dict[str, Callable[..., Scalar]] = {
        "missing.radius": lambda t, q, v, x, u: missing(t, q)[0],
        "missing.height": lambda t, q, v, x, u: missing(t, q)[1],
    }
    for joint in JOINTS:
        outputs |= {
            f"{joint}.angle": lambda t, q, v, x, u, n=joint: q[n],
            f"{joint}.rate": lambda t, q, v, x, u, n=joint: v[n],
            f"{joint}.load": lambda t, q, v, x, u, n=joint: 1e-3 * (x[f"{n}.p_in"] - x[f"{n}.p_out"]),
        }

    def reward(t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Scalar:
        along, up = missing(t, q)
        return 1.0 - fabs(along) - 2.0 * fabs(up) - 0.01 * sum((u[name] * u[name] for name in JOINTS), 0.0)

    def start(random: Random) -> dict[str, Scalar]:
        first = dict(zip(JOINTS, law.start, strict=True))
        angles = {name: first[name] + (random.uniform(-0.02, 0.02) if name != "cab" else 0.0) for name in JOINTS}
        return {f"{n}.q": a for n, a in angles.items()} | {f"{n}_d": a for n, a in angles.items()}

    plant = replace(hydraulic_system, control=control, inputs=JOINTS, outputs=outputs, defaults={})
    return Task(plant, settings={"every": 0.05, "step": 0.0025, "limit": 8.0, "start": start, "reward": reward})


TASKS: dict[str, Callable[..., Task]] = {
    task.__name__: task for task in (cart_pole, cart_pole_swing_up, double_pendulum, reacher, excavator_trench)
}
