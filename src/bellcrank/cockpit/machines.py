"""What can be driven: a system, and the levers a person moves it with.

A machine that nobody has described gets a servo on every joint and a slider for its desired position, or, with
"torque", a slider for the torque itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bellcrank.actuators import PD, IdealTorque
from bellcrank.actuators.actuator import Actuator
from bellcrank.cockpit.driven import Snapshot
from bellcrank.cockpit.servos import gains, met, movable
from bellcrank.errors import InputError, unknown
from bellcrank.model import Mechanism
from bellcrank.record.column import RATES, units
from bellcrank.record.scene import typical_length
from bellcrank.sim.systems import System, system

Axes = Mapping[str, tuple[str, float]]  # axis of a stick -> lever and direction
Pilot = Callable[[Snapshot], Sequence[float]]
BY = ("position", "torque")


@dataclass(frozen=True)
class Lever:
    """One input of the system. neutral: where it goes when it is let go; None: it stays."""

    name: str
    unit: str
    low: float
    high: float
    neutral: float | None = 0.0
    label: str = ""


@dataclass(frozen=True)
class Plot:
    title: str
    unit: str
    columns: tuple[str, ...]  # names of the state ("boom.q"), of inputs ("input.boom") or of outputs
    scale: float = 1.0  # from the numbers of the model to what people read


@dataclass(frozen=True, eq=False)
class Machine:
    """patterns: what each axis of two sticks moves in each mode, {"ISO": {"JOINT": {"left.x": ("cab", -1.0), ...}}};
    none: sliders. modes: names for the values 0, 1, ... of the lever `mode`. pilots: programs that drive by themselves.
    """

    system: System
    levers: tuple[Lever, ...]
    plots: tuple[Plot, ...]
    start: tuple[float, ...] | None = None  # q0
    patterns: Mapping[str, Mapping[str, Axes]] = field(default_factory=dict)
    mode: str = ""
    modes: tuple[str, ...] = ()
    words: Mapping[str, Mapping[str, tuple[str, str, str]]] = field(default_factory=dict)  # of a mode and a lever
    spans: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of a mode: how far the levers then go
    look: str = ""  # shapes that the page has for it; else they are made from its joints
    ground: float | None = None  # m, height of the ground; None: below everything
    trace: tuple[str, tuple[float, float, float]] | None = None  # body and point that leave a trace
    pilots: Mapping[str, Callable[[], Pilot]] = field(default_factory=dict)
    integrator: str = "rk4"
    rate: float = 1000.0

    @property
    def mechanism(self) -> Mechanism:
        return self.system.mechanism

    @property
    def names(self) -> list[str]:
        """Of the numbers in a state message, behind the poses: y, u and outputs."""
        s, (q, v) = self.system, self.mechanism.columns
        own = [*(f"{n}.q" for n in q), *(f"{n}.v" for n in v), *(z.name for z in s.states)]
        return [*own, *(f"input.{n}" for n in s.inputs), *s.outputs]

    def values(self, given: Sequence[float]) -> list[float]:
        """What the levers say, within their bounds."""
        if len(given) != len(self.levers):
            names = ", ".join(lever.name for lever in self.levers)
            raise InputError(f"{len(given)} values for {len(self.levers)} levers: {names}.")
        return [min(max(x, lever.low), lever.high) for x, lever in zip(given, self.levers, strict=True)]

    def neutral(self, last: Sequence[float]) -> list[float]:
        return [x if lever.neutral is None else lever.neutral for x, lever in zip(last, self.levers, strict=True)]

    def first(self) -> list[float]:
        """Where the levers are before anybody touched them."""
        q = dict(zip(self.mechanism.columns[0], self.start or self.mechanism.neutral(), strict=True))
        resting = [q.get(lever.name, 0.0) if lever.neutral is None else lever.neutral for lever in self.levers]
        return self.values(resting)


def generic(m: Mechanism, by: str = "position") -> Machine:
    """Sliders for a mechanism that nobody has described."""
    if by not in BY:
        raise InputError(unknown("way to drive", by, BY))
    start = m.assemble(m.neutral())[0] if m.loops else m.neutral()
    moved = movable(m, start)
    if not moved:
        why = "the loops leave it no freedom" if m.loops else "it has no joint with a single coordinate"
        raise InputError(
            f'"{m.name}": {why}, so there is nothing for a slider to move; '
            "give bellcrank.cockpit a Machine of your own."
        )
    measured = dict(zip(m.columns[1], units(m)[1], strict=True))
    joints = {j.name: j for j in m.own_joints}
    held, free, weight = met(m, moved)
    levers, actuators = [], []
    for name in moved:
        i, limits, unit = m.columns[1].index(name), joints[name].limits, measured[name]
        size = math.pi if unit == "rad" else typical_length(m)
        if by == "position":
            kp, kd = gains(held[i], free[i], weight[i], 1.0 if unit == "rad" else size)
            low, high = max(limits.lower, -size), min(limits.upper, size)
            levers.append(Lever(name, unit, low, high, None))
            actuators.append(_servo(name, kp, kd))
        else:
            most = limits.effort if math.isfinite(limits.effort) else 2.0 * max(weight[i], held[i])
            levers.append(Lever(name, RATES[unit][2], -most, most))
            actuators.append(IdealTorque(name, most))
    made = system(m, actuators=actuators, control=lambda t, q, v, x, u: list(u), inputs=dict.fromkeys(moved, 0.0))
    return Machine(made, tuple(levers), plots_of(m), tuple(float(x) for x in start))


def _servo(name: str, kp: float, kd: float) -> Actuator:
    return PD(name, kp, kd)


def plots_of(m: Mechanism) -> tuple[Plot, ...]:
    """Positions and velocities, those that turn in degrees."""
    found = []
    for key, names, measured in (("q", m.columns[0], units(m)[0]), ("v", m.columns[1], units(m)[1])):
        for unit, shown, scale in (("rad", "deg", 180.0 / math.pi), ("m", "m", 1.0)):
            mine = tuple(f"{n}.{key}" for n, u in zip(names, measured, strict=True) if u == unit)
            title = {"q": "Angles" if unit == "rad" else "Positions", "v": "Rates" if unit == "rad" else "Speeds"}[key]
            if mine:
                found.append(Plot(title, shown + ("/s" if key == "v" else ""), mine, scale))
    return tuple(found)
