"""Machines that can be driven: a system with the levers that a person operates.

A mechanism without such a description gets a servo and a slider for the desired position of each joint, or, with
"torque", a slider for the torque. Inverse kinematics by damped least squares moves a tool to a point by such sliders.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank import progress
from bellcrank.actuators import IdealTorque
from bellcrank.cockpit import servos
from bellcrank.cockpit.servos import Servos, SliderRanges, driven_inertia
from bellcrank.control.trajectory import InverseDynamics
from bellcrank.errors import InputError, check_known
from bellcrank.ground.contact import Array, GroundContact
from bellcrank.ground.field import Tool
from bellcrank.integrate import integrator
from bellcrank.model import Mechanism
from bellcrank.quoting import single_line
from bellcrank.record.contents import RATES, units
from bellcrank.sim.program.step_limits import check_modes
from bellcrank.sim.realtime.realtime_drive import DriveSnapshot
from bellcrank.sim.system.systems import Control, System, system
from bellcrank.view.scene import typical_length

Axes = Mapping[str, tuple[str, float]]  # axis of a stick -> lever and direction
Joysticks = tuple[tuple[tuple[str, float], ...], ...]  # of both joysticks: lever and direction of each axis
Pilot = Callable[[DriveSnapshot], Sequence[float]]
SLIDER_KINDS = ("position", "torque")
RANDOM_POSES = 8  # random poses at which the loads and the inertia of joints are computed
MIN_RANGE_SHARE = 0.02  # of the full range: a slider with a smaller range is useless
DESIGN_POSITION_STEP = 4  # step of a slider's path is a position for which its servo is designed
MAX_SLIDERS = 250  # on a page
# Servos are designed for positions * coordinates^3 <= 2e7, but at least 8 positions.
DESIGN_WORK, MIN_DESIGN_POSITIONS = 2e7, 8
# Iterations; damping relative to the Jacobian's norm; tolerance, m.
MAX_ITERATIONS, DAMPING, TOLERANCE_M = 60, 0.05, 1e-4


@dataclass(frozen=True)
class Lever:
    """Input of the system with its range; released, it returns to `neutral`, or stays if that is None."""

    name: str
    unit: str
    low: float
    high: float
    neutral: float | None = 0.0
    label: str = ""


@dataclass(frozen=True)
class Plot:
    """Plot of some columns."""

    title: str
    unit: str
    columns: tuple[str, ...]  # names of the state ("boom.q"), of inputs ("input.boom") or of outputs
    scale: float = 1.0  # factor from the unit of the column to that of the plot


@dataclass(frozen=True)
class Gauge:
    """Display of one number, with a warning from the value `warn` on."""

    title: str
    column: str  # a name in Machine.names
    unit: str
    low: float
    high: float
    scale: float = 1.0
    warn: float = math.inf


@dataclass(frozen=True)
class Tune:
    """Parameter of the system that may be changed during a drive, with its bounds."""

    name: str
    label: str
    unit: str
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Machine:
    """System with levers, plots and everything else that a page needs to drive it.

    `patterns` maps the axes of two sticks to levers, for each mode: {"ISO": {"JOINT": {"left.x": ("cab", -1.0), ...}}};
    without patterns the page has sliders. `joysticks` assigns levers to the axes of two joysticks, in modes in which
    the first one has three: {"RESOLVED": ((("second", -1.0), ...), (("fourth", 1.0),))}. `modes` are names for the
    values 0, 1, ... of the lever `mode`. `pilots` are programs that drive without a person.
    """

    system: System
    levers: tuple[Lever, ...]
    plots: tuple[Plot, ...]
    start: tuple[float, ...] | None = None  # q0
    patterns: Mapping[str, Mapping[str, Axes]] = field(default_factory=dict)
    joysticks: Mapping[str, Joysticks] = field(default_factory=dict)
    mode: str = ""
    modes: tuple[str, ...] = ()
    words: Mapping[str, Mapping[str, tuple[str, str, str]]] = field(default_factory=dict)  # by mode and lever
    spans: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by mode: range of each lever
    look: str = ""  # name of shapes that the page contains; empty: derived from the joints
    ground: float | None = None  # m, height of the ground; None: below all bodies
    trace: tuple[str, tuple[float, float, float]] | None = None  # body and point that draw a trace
    contact: GroundContact | None = None  # tool at the trace's point, whose parameters transmit the ground's forces
    pilots: Mapping[str, Callable[[], Pilot]] = field(default_factory=dict)
    integrator: str = "rk4"
    rate: float = 1000.0
    gauges: tuple[Gauge, ...] = ()
    tunes: tuple[Tune, ...] = ()

    @property
    def tool(self) -> Tool | None:
        """Tool that digs, if there is one."""
        return self.contact.tool if self.contact is not None else None

    @property
    def mechanism(self) -> Mechanism:
        """Mechanism of the system."""
        return self.system.mechanism

    @property
    def names(self) -> list[str]:
        """Names of the numbers that follow the poses in a state message: y, u and outputs."""
        s, (q, v) = self.system, self.mechanism.columns
        states = [*(f"{n}.q" for n in q), *(f"{n}.v" for n in v), *(z.name for z in s.states)]
        return [*states, *(f"input.{n}" for n in s.inputs), *s.outputs]

    def values(self, given: Sequence[float]) -> list[float]:
        """Return the lever values `given`, clipped to their bounds."""
        if len(given) != len(self.levers):
            names = ", ".join(lever.name for lever in self.levers)
            raise InputError(f"{len(given)} values for {len(self.levers)} levers: {names}.")
        return [min(max(x, lever.low), lever.high) for x, lever in zip(given, self.levers, strict=True)]

    def neutral(self, last: Sequence[float]) -> list[float]:
        """Return the values of released levers, whose values were `last`."""
        return [x if lever.neutral is None else lever.neutral for x, lever in zip(last, self.levers, strict=True)]

    def first(self) -> list[float]:
        """Return the initial values of the levers."""
        q = dict(zip(self.mechanism.columns[0], self.start or self.mechanism.neutral(), strict=True))
        resting = [q.get(lever.name, 0.0) if lever.neutral is None else lever.neutral for lever in self.levers]
        return self.values(resting)


def generic(m: Mechanism, slider_kind: str = "position") -> Machine:
    """Return a machine with sliders for the joints of `m`; `slider_kind` is "position" or "torque"."""
    check_known("way to drive", slider_kind, SLIDER_KINDS)
    start = np.asarray(m.assemble(m.neutral())[0] if m.loops else m.neutral(), float)
    driven_joints = servos.independent_joints(m, start)
    if not driven_joints:
        raise InputError(
            f'"{m.name}": {_immobility_reason(m)}, so there is no joint for a slider; give bellcrank.cockpit a Machine '
            "of your own."
        )
    if len(driven_joints) > MAX_SLIDERS:
        raise InputError(
            f'"{m.name}" has {len(driven_joints)} joints to move, and a page shows at most {MAX_SLIDERS} sliders; give '
            "bellcrank.cockpit a Machine of your own, whose inputs move several joints at once."
        )
    with progress.progress_message(f"servos for {len(driven_joints)} joints of {single_line(m.name)}"):
        return _machine_with_sliders(m, slider_kind, start, driven_joints)


def _machine_with_sliders(m: Mechanism, slider_kind: str, start: Array, driven_joints: list[str]) -> Machine:
    unit_of_joint = dict(zip(m.columns[1], units(m)[1], strict=True))
    control: Control
    if slider_kind == "torque":
        inertia = np.diag(driven_inertia(m, start[None], driven_joints)[0][0])
        pairs = zip(driven_joints, inertia, strict=True)
        levers = [_force_lever(m, name, unit_of_joint[name], k) for name, k in pairs]
        control = inputs_as_forces
    else:
        size = {name: math.pi if unit == "rad" else typical_length(m) for name, unit in unit_of_joint.items()}
        driven_joints, ranges = _slider_ranges(m, start, driven_joints, size)
        ends = dict(zip(driven_joints, ranges.ends, strict=True))
        levers = [Lever(name, unit_of_joint[name], *pair, None) for name, pair in ends.items()]
        # Moving from end to end takes at least a second, even if the loops leave only a small range.
        speeds = tuple(min(size[name] / 2.0, high - low) for name, (low, high) in ends.items())
        hold = driven_inertia(m, start[None], driven_joints)[1][0]
        control = _designed_servos(m, start, driven_joints, ranges.paths, speeds, hold)
    actuators = [IdealTorque(name) for name in driven_joints]
    plant = system(m, actuators=actuators, control=control, inputs=dict.fromkeys(driven_joints, 0.0))
    return Machine(plant, tuple(levers), state_plots(m), tuple(float(x) for x in start), integrator=_integrator(plant))


def _integrator(s: System) -> str:
    """Return the usual integrator, or an implicit one where modes are too fast for its steps."""
    try:
        check_modes(s.mechanism, integrator(Machine.integrator), 1.0 / Machine.rate)
    except InputError:
        return "rodas4"
    return Machine.integrator


def _slider_ranges(
    m: Mechanism, start: Array, usual: list[str], size: Mapping[str, float]
) -> tuple[list[str], SliderRanges]:
    """Return the driven joints and the ranges of their sliders.

    If a range is very small because dependent joints are near a dead point, another choice of joints is tried, and
    taken if its ranges are larger.
    """

    def tried(moved: list[str]) -> tuple[float, SliderRanges]:
        ranges = servos.slider_ranges(m, start, moved, _joint_ranges(m, start, moved, [size[name] for name in moved]))
        return min((high - low) / size[name] for name, (low, high) in zip(moved, ranges.ends, strict=True)), ranges

    range_share, ranges = tried(usual)
    other = servos.well_conditioned_joints(m, start) if m.loops and range_share < MIN_RANGE_SHARE else usual
    if len(other) == len(usual) and other != usual:
        other_share, other_ranges = tried(other)
        if other_share > range_share:
            return other, other_ranges
    return usual, ranges


def inputs_as_forces(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[Any]:
    """Pass the inputs on as forces: a control law (t, q, v, x, u)."""
    return list(u)


def _position_indices(m: Mechanism, names: Sequence[str]) -> list[int]:
    return [m.columns[0].index(name) for name in names]


def _joint_ranges(
    m: Mechanism, start: Array, moved: Sequence[str], sizes: Sequence[float]
) -> list[tuple[float, float]]:
    """Return the range of each slider: the joint's limits, at most +-size, and including the start."""
    joints = {j.name: j for j in m.own_joints}
    ranges = []
    for name, size, i in zip(moved, sizes, _position_indices(m, moved), strict=True):
        low, high = max(joints[name].limits.lower, -size), min(joints[name].limits.upper, size)
        ranges.append((min(low, start[i]), max(high, start[i])))
    return ranges


def _designed_servos(
    m: Mechanism, start: Array, moved: Sequence[str], ways: Array, speeds: tuple[float, ...], hold: Array
) -> Servos:
    """Return servos designed for the paths to the ends of the sliders and, in a tree, for random poses."""
    poses = [] if m.loops else [m.random(seed)[0] for seed in range(RANDOM_POSES)]
    positions = np.concatenate(
        [start[None], *(p[None] for p in poses), *ways[DESIGN_POSITION_STEP - 1 :: DESIGN_POSITION_STEP]]
    )
    most = max(MIN_DESIGN_POSITIONS, int(DESIGN_WORK / len(moved) ** 3))
    designed_gains = servos.servo_gains(m, positions[:: -(-len(positions) // most)], moved)
    places = tuple(float(start[i]) for i in _position_indices(m, moved))
    all_driven = not m.loops and len(moved) == m.nv == m.nq
    tree = InverseDynamics(m, lambda t: ([*places], [*places], [*places])) if all_driven else None
    return Servos(tuple(moved), places, speeds, designed_gains, hold, tree)


def _immobility_reason(m: Mechanism) -> str:
    """Return the reason why no joint can be driven."""
    if m.loops and m.loop_analysis.mobility == 0:
        return "the loops leave it no freedom"
    kinds = ", ".join(f"{j.name} ({j.kind})" for j in m.own_joints)
    free = " that the loops leave free" if m.loops and any(n in m.columns[0] for n in m.columns[1]) else ""
    return f"no joint{free} has a single coordinate; it has {kinds}"


def _force_lever(m: Mechanism, name: str, unit: str, inertia: float) -> Lever:
    """Return a slider for a force: up to the joint's effort limit, or twice the load or inertia it has to move."""
    effort = {j.name: j for j in m.own_joints}[name].limits.effort
    q = np.stack([m.neutral(), *(m.random(seed)[0] for seed in range(RANDOM_POSES))])
    weight = np.abs(m.gravity_torque(q))[:, m.columns[1].index(name)].max()
    most = effort if math.isfinite(effort) else 2.0 * max(float(weight), float(inertia))
    return Lever(name, RATES[unit][2], -most, most)


def state_plots(m: Mechanism) -> tuple[Plot, ...]:
    """Return plots of the positions and velocities of `m`, angles in degrees."""
    plots = []
    for key, names, measured in (("q", m.columns[0], units(m)[0]), ("v", m.columns[1], units(m)[1])):
        for unit, shown, scale in (("rad", "deg", 180.0 / math.pi), ("m", "m", 1.0)):
            columns = tuple(f"{n}.{key}" for n, u in zip(names, measured, strict=True) if u == unit)
            title = {"q": "Angles" if unit == "rad" else "Positions", "v": "Rates" if unit == "rad" else "Speeds"}[key]
            if columns:
                plots.append(Plot(title, shown + ("/s" if key == "v" else ""), columns, scale))
    return tuple(plots)


def lever_positions(machine: Machine, q: Array, point: Sequence[float]) -> list[float]:
    """Return positions of all levers that move the tool to a point, or near to it if it is out of reach.

    Parameters
    ----------
    machine
        Machine with position sliders.
    q
        Present positions, shape (nq,).
    point
        Target in the world frame, m.
    """
    m = machine.mechanism
    names = [lever.name for lever in machine.levers]
    if len(point) != 3:
        raise InputError(f"a point with {len(point)} coordinates; expected x, y and z.")
    if not tool_frame(machine):
        raise InputError(f'"{m.name}" has no tool to move: expected sliders for positions, no loops, and a frame.')
    frame = tool_frame(machine)
    rows, columns = [m.columns[0].index(n) for n in names], [m.columns[1].index(n) for n in names]
    low, high = (np.array([getattr(lever, end) for lever in machine.levers]) for end in ("low", "high"))
    q = np.array(q, float)
    for _ in range(MAX_ITERATIONS):
        error = np.asarray(point) - np.asarray(m.pose(q, frame))[:3, 3]
        if np.linalg.norm(error) < TOLERANCE_M:
            break
        J = np.asarray(m.jacobian(q, frame))[:3, columns]
        scale = DAMPING * max(float(np.linalg.norm(J)), 1e-6)
        free = np.ones(len(names), bool)
        step = np.zeros(len(names))
        for _ in range(2):  # joints at their limits are fixed, and the others do the rest
            A = J * free
            step = A.T @ np.linalg.solve(A @ A.T + scale * scale * np.eye(3), error)
            free = ~(((q[rows] >= high) & (step > 0)) | ((q[rows] <= low) & (step < 0)))
        q[rows] = np.clip(q[rows] + np.clip(step, -0.3, 0.3), low, high)
    return [float(x) for x in q[rows]]


def tool_frame(machine: Machine) -> str:
    """Return the tool frame of `machine`, the last one; empty unless all sliders are positions of a tree."""
    m = machine.mechanism
    led = all(x.neutral is None and x.name in m.columns[0] and x.name in m.columns[1] for x in machine.levers)
    return list(m.frames)[-1] if led and m.frames and not m.loops else ""
