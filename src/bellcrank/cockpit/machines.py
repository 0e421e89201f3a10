"""What can be driven: a system, and the levers a person moves it with.

A machine that nobody has described gets a servo on every joint and a slider for its desired position, or, with
"torque", a slider for the torque itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank import patience
from bellcrank.actuators import IdealTorque
from bellcrank.cockpit.plant import Snapshot
from bellcrank.cockpit.servos import Servos, Sliders, gains, met, movable, sliders, steadiest
from bellcrank.control.inverse_dynamics import InverseDynamics
from bellcrank.errors import InputError, unknown
from bellcrank.ground.contact import Array, GroundContact
from bellcrank.ground.field import Tool
from bellcrank.integrate import integrator
from bellcrank.model import Mechanism
from bellcrank.quoting import line
from bellcrank.record.contents import RATES, units
from bellcrank.sim.fast_modes import check_modes
from bellcrank.sim.systems import Control, System, system
from bellcrank.view.scene import typical_length

Axes = Mapping[str, tuple[str, float]]  # axis of a stick -> lever and direction
Pilot = Callable[[Snapshot], Sequence[float]]
BY = ("position", "torque")
POSES = 8  # tried, to see what weight and inertia a joint meets
NARROW = 0.02  # of what it might go: a slider that is no wider is useless
EVERY_NTH = 4  # of the steps to the end of a slider, for which its servo is made
MOST_SLIDERS = 250  # on a page
WORTH, FEWEST = 2e7, 8  # cubes of so many coordinates in all, at that many places at least, are looked at for servos


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


@dataclass(frozen=True)
class Gauge:
    """One number to have in view; from `warn` on it is a warning."""

    title: str
    column: str  # a name of the state message
    unit: str
    low: float
    high: float
    scale: float = 1.0
    warn: float = math.inf


@dataclass(frozen=True)
class Tune:
    """A parameter of the system that may be changed while it runs, between two values."""

    name: str
    label: str
    unit: str
    low: float
    high: float


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
    contact: GroundContact | None = None  # what digs, at the trace's point: the ground is felt by its parameters
    pilots: Mapping[str, Callable[[], Pilot]] = field(default_factory=dict)
    integrator: str = "rk4"
    rate: float = 1000.0
    gauges: tuple[Gauge, ...] = ()
    tunes: tuple[Tune, ...] = ()

    @property
    def tool(self) -> Tool | None:
        return self.contact.tool if self.contact is not None else None

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
    start = np.asarray(m.assemble(m.neutral())[0] if m.loops else m.neutral(), float)
    moved = movable(m, start)
    if not moved:
        raise InputError(
            f'"{m.name}": {_why(m)}, so there is nothing for a slider to move; '
            "give bellcrank.cockpit a Machine of your own."
        )
    if len(moved) > MOST_SLIDERS:
        raise InputError(
            f'"{m.name}" has {len(moved)} joints to move, and a page has room for {MOST_SLIDERS} sliders at most; give '
            "bellcrank.cockpit a Machine of your own, whose inputs move several at once."
        )
    with patience.said(f"servos for {len(moved)} joints of {line(m.name)}"):
        return _driven(m, by, start, moved)


def _driven(m: Mechanism, by: str, start: Array, moved: list[str]) -> Machine:
    measured = dict(zip(m.columns[1], units(m)[1], strict=True))
    control: Control
    if by == "torque":
        inertia = met(m, start[None], moved)[0][0]
        levers = [_forced(m, name, measured[name], k) for name, k in zip(moved, np.diag(inertia), strict=True)]
        control = _passed_on
    else:
        size = {name: math.pi if unit == "rad" else typical_length(m) for name, unit in measured.items()}
        moved, found = _reaching(m, start, moved, size)
        levers = [Lever(name, measured[name], *pair, None) for name, pair in zip(moved, found.ends, strict=True)]
        # From end to end takes a second at least, however close the loops have brought them together.
        speeds = (min(size[name] / 2.0, high - low) for name, (low, high) in zip(moved, found.ends, strict=True))
        control = _servos(m, start, moved, found.ways, tuple(speeds), met(m, start[None], moved)[1][0])
    actuators = [IdealTorque(name) for name in moved]
    made = system(m, actuators=actuators, control=control, inputs=dict.fromkeys(moved, 0.0))
    return Machine(made, tuple(levers), plots_of(m), tuple(float(x) for x in start), integrator=_integrator(made))


def _integrator(s: System) -> str:
    """The usual one; where something bends faster than it can follow, one that need not."""
    try:
        check_modes(s.mechanism, integrator(Machine.integrator), 1.0 / Machine.rate)
    except InputError:
        return "rodas4"
    return Machine.integrator


def _reaching(m: Mechanism, start: Array, usual: list[str], size: Mapping[str, float]) -> tuple[list[str], Sliders]:
    """Joints and how far their sliders go: of the usual ones or, where one of those can hardly go anywhere because what
    follows is near a dead point, of others, if that is better.
    """

    def tried(moved: list[str]) -> tuple[float, Sliders]:
        found = sliders(m, start, moved, _ends(m, start, moved, [size[name] for name in moved]))
        return min((high - low) / size[name] for name, (low, high) in zip(moved, found.ends, strict=True)), found

    wide, found = tried(usual)
    other = steadiest(m, start) if m.loops and wide < NARROW else usual
    if len(other) == len(usual) and other != usual:
        wider, another = tried(other)
        if wider > wide:
            return other, another
    return usual, found


def _passed_on(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[Any]:
    """The control of sliders that are forces already."""
    return list(u)


def _places(m: Mechanism, names: Sequence[str]) -> list[int]:
    return [m.columns[0].index(name) for name in names]


def _ends(m: Mechanism, start: Array, moved: Sequence[str], sizes: Sequence[float]) -> list[tuple[float, float]]:
    """How far each slider may go: to the joint's limits, but no further than its size, and the start is between."""
    joints = {j.name: j for j in m.own_joints}
    found = []
    for name, size, i in zip(moved, sizes, _places(m, moved), strict=True):
        low, high = max(joints[name].limits.lower, -size), min(joints[name].limits.upper, size)
        found.append((min(low, start[i]), max(high, start[i])))
    return found


def _servos(
    m: Mechanism, start: Array, moved: Sequence[str], ways: Array, speeds: tuple[float, ...], hold: Array
) -> Servos:
    """Made for what they meet on the way to the ends of the sliders and, in a tree, in any pose."""
    poses = [] if m.loops else [m.random(seed)[0] for seed in range(POSES)]
    met_there = np.concatenate([start[None], *(p[None] for p in poses), *ways[EVERY_NTH - 1 :: EVERY_NTH]])
    most = max(FEWEST, int(WORTH / len(moved) ** 3))
    found = gains(m, met_there[:: -(-len(met_there) // most)], moved)
    places = tuple(float(start[i]) for i in _places(m, moved))
    whole = not m.loops and len(moved) == m.nv == m.nq
    tree = InverseDynamics(m, lambda t: ([*places], [*places], [*places])) if whole else None
    return Servos(tuple(moved), places, speeds, found, hold, tree)


def _why(m: Mechanism) -> str:
    """Why nothing can be moved."""
    if m.loops and m.loop_analysis.mobility == 0:
        return "the loops leave it no freedom"
    kinds = ", ".join(f"{j.name} ({j.kind})" for j in m.own_joints)
    free = " that the loops leave free" if m.loops and any(n in m.columns[0] for n in m.columns[1]) else ""
    return f"no joint{free} has a single coordinate; it has {kinds}"


def _forced(m: Mechanism, name: str, unit: str, inertia: float) -> Lever:
    """A slider for the force itself: as far as the joint is made for, or some times what it meets."""
    effort = {j.name: j for j in m.own_joints}[name].limits.effort
    q = np.stack([m.neutral(), *(m.random(seed)[0] for seed in range(POSES))])
    weight = np.abs(m.gravity_torque(q))[:, m.columns[1].index(name)].max()
    most = effort if math.isfinite(effort) else 2.0 * max(float(weight), float(inertia))
    return Lever(name, RATES[unit][2], -most, most)


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
