"""A System: mechanics, actuators, control and outputs as one first-order system, dy/dt = f(t, y; u, p).

y is q, then v, then x: the states of the actuators ("boom.p_in"), then those of the control. The control turns state
and inputs u into commands, an actuator turns its command into a force on one joint. Without actuators the commands are
the forces on all joints. Forces from outside act on frames (wrenches.py). Everything is plain Python over scalars, and
nothing here knows of graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from bellcrank.actuators import Actuator, StateVariable
from bellcrank.dynamics.field import Field
from bellcrank.errors import InputError, unknown
from bellcrank.forces.element import Element
from bellcrank.misfits import explained
from bellcrank.model import Mechanism
from bellcrank.model.given_values import possible
from bellcrank.parameters import Parameters
from bellcrank.parameters.part_numbers import check_numbers
from bellcrank.quoting import line
from bellcrank.record.contents import COMPONENTS, FORCES
from bellcrank.scalar import Scalar
from bellcrank.sim import between
from bellcrank.sim.arguments import Named, listed, nothing, number, unique
from bellcrank.sim.element_passes import Passes
from bellcrank.sim.everywhere import checked as checked_field
from bellcrank.sim.everywhere import everywhere as acting_everywhere
from bellcrank.sim.frame_passes import large
from bellcrank.sim.given_parts import possible_parts
from bellcrank.sim.motions import Motion
from bellcrank.sim.motions import checked as checked_motions
from bellcrank.sim.motions import unit as unit_of
from bellcrank.sim.sampling import Sampled, as_control
from bellcrank.sim.user_code import called, vector
from bellcrank.sim.wrenches import Wrench, acting, torques
from bellcrank.sim.wrenches import checked as checked_forces

Control = Callable[..., Any]
Vector = Sequence[Scalar]


@dataclass(frozen=True, eq=False)
class System:
    """A mechanism with what moves it: actuators, control, forces, inputs, outputs. Made by bc.system, which checks that
    they fit; never changed.
    """

    mechanism: Mechanism
    actuators: tuple[Actuator, ...] = ()
    control: Control | None = None
    inputs: tuple[str, ...] = ()
    outputs: Mapping[str, Callable[..., Scalar]] = field(default_factory=dict)
    control_states: tuple[StateVariable, ...] = ()
    wrenches: Mapping[str, Wrench] = field(default_factory=dict)  # forces from outside, by frame
    free: tuple[Any, ...] = ()  # parameters that no part shows, because a function hides them
    defaults: Mapping[str, float] = field(default_factory=dict)  # of inputs that a run need not give
    sampled: tuple[Sampled, ...] = ()
    elements: tuple[Element, ...] = ()  # between frames, or between joints
    motions: Mapping[str, Motion] = field(default_factory=dict)  # prescribed, by joint or FRAME.x
    everywhere: Field | None = None  # what acts on every body alike

    @cached_property
    def parameters(self) -> Parameters:
        """The numbers of mechanism, actuators and control that were left free, by name; the order of p."""
        m = self.mechanism
        parts = (m.gravity, m.bodies, m.joints, tuple(m.frames.values()), m.loops, m.springs)
        more = (
            self.actuators,
            self.control,
            self.sampled,
            tuple(self.wrenches.values()),
            self.elements,
            tuple(self.motions.values()),
            self.free,
        )
        return Parameters(*parts, *more, judge=self._judge)

    def _judge(self, names: Sequence[str], p: Any, where: str) -> None:
        """An error where values of free numbers make a body, a joint or a part that cannot be."""
        possible(self.mechanism, names, p, where)
        possible_parts((*self.actuators, *self.wrenches.values(), *self.elements), names, p, where)

    @property
    def rigid(self) -> bool:
        """Whether it is rigid bodies on joints, with nothing else in it that steps could be too long for."""
        return not (self.elements or self.motions or self.mechanism.flexible or self.mechanism.outlines)

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """What the control gives: a command for each actuator that takes one, or a force for each element of v."""
        if not self.actuators:
            return self.mechanism.columns[1]
        return tuple(a.joint for a in self.actuators if a.commanded)

    @cached_property
    def descriptions(self) -> tuple[str, ...]:
        """The actuators in words: every record has them, so they are put together once."""
        return tuple(str(a) for a in self.actuators)

    @property
    def control_name(self) -> str:
        """What the control is called in records and errors."""
        return _called(self.control)

    @cached_property
    def states(self) -> tuple[StateVariable, ...]:
        """x: all state variables that are not the mechanism's, with their full names."""
        own = [replace(z, name=f"{a.joint}.{z.name}") for a in self.actuators for z in a.states]
        own += [replace(z, name=f"{e.name}.{z.name}") for e in self.elements for z in e.states]
        return (*own, *self.control_states, *(z for c in self.sampled for z in c.variables))

    @property
    def nx(self) -> int:
        """How many states actuators and control have."""
        return len(self.states)

    @property
    def size(self) -> int:
        """How many states there are in all: nq + nv + nx."""
        return self.mechanism.nq + self.mechanism.nv + self.nx

    # -- over any scalar

    def split(self, y: Vector) -> tuple[Named, Named, Named]:
        """The state y taken apart: q, v, x."""
        m = self.mechanism
        q, v, x = y[: m.nq], y[m.nq : m.nq + m.nv], y[m.nq + m.nv : self.size]
        return Named("q", m.columns[0], q), Named("v", m.columns[1], v), Named("x", [s.name for s in self.states], x)

    def commanded(self, t: Scalar, y: Vector, u: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """The commands, and the rates of the control's own states."""
        if self.control is None:
            return [0.0] * len(self.commands), []
        what = f"control ({_called(self.control)})"
        found = called(what, self.control, t, *self.split(y), Named("u", self.inputs, u))
        rates: Any = ()
        if self.control_states:
            if not isinstance(found, tuple) or len(found) != 2:
                raise InputError(
                    f"{what} has states ({', '.join(s.name for s in self.control_states)}) and returned "
                    f"{type(found).__name__}; expected the pair (commands, rates of its states)."
                )
            found, rates = found
        names = [s.name for s in self.control_states]
        return vector(what, found, self.commands), vector(f"rates of {what}", rates, names) if names else []

    def forces(self, t: Scalar, y: Vector, commands: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """tau: what drives do to each element of v, and nothing else; and the rates of the actuators' states."""
        if not self.actuators:
            return list(commands), []
        q, v, x = self.split(y)
        tau: list[Scalar] = [0.0] * len(v)
        rates: list[Scalar] = []
        given, at = iter(commands), 0
        for a in self.actuators:
            mine = x[at : at + len(a.states)]
            at += len(a.states)
            what = f'{type(a).__name__} on "{a.joint}"'
            command = next(given) if a.commanded else 0.0
            force, dx = called(what, a, t, q[a.joint], v[a.joint], mine, command)
            i = v.names.index(a.joint)
            tau[i] = tau[i] + force
            rates += vector(f"rates of {what}", dx, [s.name for s in a.states]) if a.states else []
        return tau, rates

    def outside(self, t: Scalar, y: Vector) -> tuple[list[Scalar], dict[str, list[Scalar]]]:
        """What acts from outside: on each element of v, and as wrenches on frames."""
        q, v, _ = self.split(y)
        acts = acting(self.mechanism, self.wrenches, t, list(q), list(v))
        found = torques(self.mechanism, acts, list(q))
        if self.everywhere is not None:
            more = acting_everywhere(self.mechanism, self.everywhere, q, v)
            found = [a + b for a, b in zip(found, more, strict=True)]
        return found, acts

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of forces that there are, by the last part of their columns' names."""
        return tuple(
            kind for kind in FORCES if kind not in ("element", "motion") or (kind == "element" and self.elements)
        )

    @cached_property
    def element_units(self) -> dict[str, str]:
        """Columns of all force elements, with their units."""
        return between.columns(self.mechanism, self.elements) if self.elements else {}

    @property
    def motion_units(self) -> dict[str, str]:
        """Columns of what prescribed motions take, with their units."""
        m = self.mechanism
        felt = {f"{name}.motion": unit_of(m, name) for name in m.columns[1]} if self.motions else {}
        return {f"{name}.drive": unit_of(m, name) for name in self.motions} | felt

    def acts(self, t: Scalar, y: Vector, shown: bool = False) -> list[between.Act]:
        """What each force element does. shown: also what it says of itself."""
        q, v, x = self.split(y)
        at, found = sum(len(a.states) for a in self.actuators), []
        if self.elements and large(self.mechanism, list(q)):
            end = at + sum(len(e.states) for e in self.elements)  # states of the control come after them
            return self._passes.acts(t, list(q), list(v), list(x[at:end]), shown)
        for e in self.elements:
            found.append(between.act(self.mechanism, e, t, list(q), list(v), x[at : at + len(e.states)]))
            at += len(e.states)
        return found

    @cached_property
    def _passes(self) -> Passes:
        return Passes(self.mechanism, self.elements, self.parameters)

    def summed(self, acts: Sequence[between.Act], y: Vector) -> list[Scalar]:
        """What elements do to each element of v, together."""
        total: list[Scalar] = [0.0] * self.mechanism.nv
        for act in acts:
            for k, f in act.torque.items():
                total[k] = total[k] + f
        wrenches = [w for act in acts for w in act.wrenches]
        if not wrenches:
            return total
        return [a + b for a, b in zip(total, self._passes.felt(wrenches, list(self.split(y)[0])), strict=True)]

    def pushed(self, t: Scalar, y: Vector, tau: Vector) -> list[Scalar]:
        """Drives, what acts from outside and elements together: the forces that accelerate."""
        more = [self.outside(t, y)[0]] if self.wrenches or self.everywhere else []
        more += [self.summed(self.acts(t, y), y)] if self.elements else []
        total = list(tau)
        for forces in more:
            total = [a + b for a, b in zip(total, forces, strict=True)]
        return total

    @cached_property
    def quaternions(self) -> list[int]:
        """Where in y a quaternion begins."""
        return [i for i, name in enumerate(self.mechanism.columns[0]) if name.endswith(".qx")]

    def limits(self) -> list[tuple[Scalar, Scalar] | None]:
        """(lowest, highest) of each element of x, or None."""
        found = [pair for a in self.actuators for pair in a.limits()]
        return found + [None] * (self.nx - len(found))

    def observed(self, t: Scalar, y: Vector, u: Vector) -> dict[str, Scalar]:
        """The outputs that the user asked for."""
        given = (t, *self.split(y), Named("u", self.inputs, u))
        return {
            name: vector(f'output "{name}"', called(f'output "{name}"', f, *given), [name])[0]
            for name, f in self.outputs.items()
        }

    def __str__(self) -> str:
        m = self.mechanism
        lines = [f"{m.name}: {m.nq} positions, {m.nv} velocities, {self.nx} further states"]
        lines += [f"  {a}" for a in self.actuators]
        if self.control is not None:
            lines.append(f"  control: {_called(self.control)}")
        lines += [f"  sampled every {c.every:g} s: {c.name}" for c in self.sampled]
        lines += [f"  force on {frame}: {_called(f)}" for frame, f in self.wrenches.items()]
        lines += [f"  {e}" for e in self.elements]
        lines += [f"  motion of {name}: {_called(f)}" for name, f in self.motions.items()]
        if self.inputs:
            lines.append(f"  inputs: {', '.join(self.inputs)}")
        return "\n".join(map(line, lines))


def _called(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


@explained
def system(
    mechanism: Mechanism | System,
    actuators: Sequence[Actuator] = (),
    control: Control | Sampled | None = None,
    inputs: Sequence[str] | Mapping[str, float] = (),
    outputs: Mapping[str, Callable[..., Scalar]] | None = None,
    states: Mapping[str, float] | Sequence[StateVariable] = (),
    parameters: Sequence[Any] = (),
    forces: Mapping[str, Wrench] | None = None,
    sampled: Sequence[Sampled] = (),
    elements: Sequence[Element] = (),
    motions: Mapping[str, Motion] | None = None,
    everywhere: Field | None = None,
) -> System:
    """Joins a mechanism with what moves and watches it.

        bc.system(arm, [PD("elbow", 80.0, 8.0)], lambda t, q, v, x, u: {"elbow": u["target"]}, inputs=["target"])

    control(t, q, v, x, u) gives the commands, one for each actuator that takes one (or, without actuators, the forces
    on all joints): a list, an array, or a mapping by joint. It runs once, on symbols: write where(...) for if. If it
    has states of its own (states=..., or an attribute of that name), it gives (commands, rates of its states), and
    finds them in x. inputs are the names of u, each of which a run must give, or a mapping to what they are where it
    does not ({"target": 0.0}). outputs are functions of (t, q, v, x, u), by name. forces from outside are functions of
    (t, pose, velocity) by the name of a frame, and give (force, moment) on it, in world axes.
    parameters: those that only a function of the user knows. sampled: controllers that run at times of their own, and
    whose outputs are in x (bellcrank.Sampled); the control itself may be one. elements: springs, cables, stops, gears,
    contacts, tyres between frames or between joints (bellcrank.forces). motions: functions of t by the name of a joint,
    or of a place of a frame ("tool.x"), which it then follows, whatever force that takes ("NAME.drive"). everywhere: a
    function of (place, velocity, mass) that gives the force on every body's centre of mass, all in world axes.
    """
    if isinstance(mechanism, System):
        more = actuators, inputs, outputs, states, parameters, forces, sampled, elements, motions, everywhere
        if control is not None or not all(map(nothing, more)):
            raise InputError(
                "this is a system already; give the mechanism together with actuators, control and inputs."
            )
        return mechanism
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"expected a Mechanism, got {mechanism!r}; bellcrank.read(file) makes one.")
    taken = _sampled(sampled)
    if isinstance(control, Sampled):
        if states:
            raise InputError("states of a sampled control are its own: Sampled(..., states=...).")
        bare = System(mechanism, _actuators(mechanism, actuators))
        last, control = as_control(control, bare.commands)
        taken = (*taken, last)
    if control is not None and not callable(control):
        raise InputError(f"control is {control!r}; expected a function control(t, q, v, x, u).")
    own = _states(getattr(control, "states", ()) if nothing(states) else states, control)
    names, defaults = _inputs(inputs)
    free = listed("parameters", parameters, "parameters")
    if not isinstance(outputs or {}, Mapping):
        raise InputError(f"outputs is {outputs!r}; expected functions of (t, q, v, x, u) by name.")
    seen, outside = dict(outputs or {}), {} if nothing(forces) else checked_forces(mechanism, forces)
    parts = _actuators(mechanism, actuators), control, names, seen, own, outside, free, defaults, taken
    between_frames = () if nothing(elements) else between.checked(mechanism, elements)
    moved = {} if nothing(motions) else checked_motions(mechanism, motions)
    law = checked_field(mechanism, everywhere) if everywhere is not None else None
    made = System(mechanism, *parts, between_frames, moved, law)
    unique("state", [s.name for s in made.states])
    unique("input", made.inputs)
    unique("output", list(made.outputs))
    _check_columns(made)
    return made


def _inputs(given: Any) -> tuple[tuple[str, ...], dict[str, float]]:
    """Their names, and what those are where a run does not say."""
    if not isinstance(given, Mapping):
        return listed("inputs", given, "names"), {}
    return listed("inputs", tuple(given), "names"), {n: number(f'input "{n}"', x) for n, x in given.items()}


def _actuators(m: Mechanism, given: Any) -> tuple[Actuator, ...]:
    known = [name for name in m.columns[1] if name in m.columns[0]]
    found = listed("actuators", given, "actuators")
    for a in found:
        if not isinstance(a, Actuator):
            raise InputError(f"actuators: {a!r} is no actuator; see bellcrank.actuators.")
        check_numbers(a, "actuators")
        if a.joint not in known:
            raise InputError(f'actuator {type(a).__name__} of "{m.name}": {unknown("joint", a.joint, known)}')
    return found


def _sampled(given: Any) -> tuple[Sampled, ...]:
    found = listed("sampled", given, "sampled controllers")
    for c in found:
        if not isinstance(c, Sampled):
            raise InputError(f"sampled: {c!r} is no sampled controller; write bellcrank.Sampled(function, every=...).")
    return found


def _states(given: Any, control: Control | None) -> tuple[StateVariable, ...]:
    """The states that the control brings along."""
    if isinstance(given, Mapping):
        given = [StateVariable(name, "", number(f'state "{name}"', x)) for name, x in given.items()]
    found = listed("states", given, "states")
    for z in found:
        if not isinstance(z, StateVariable):
            raise InputError(f'states: {z!r} is no state; expected a mapping, states={{"integral": 0.0}}.')
    if found and control is None:
        raise InputError(
            f"there are states ({', '.join(str(z.name) for z in found)}) but no control that would move them."
        )
    return found


def _check_columns(s: System) -> None:
    """States and outputs are columns of a record, and none may stand in the place of another."""
    q, v = s.mechanism.columns
    taken = {"t", "run", *(f"{n}.q" for n in q), *(f"{n}.{k}" for n in v for k in ("v", "a", *FORCES))}
    taken |= {f"{frame}.{c}" for frame in s.wrenches for c in COMPONENTS} | {f"{n}.command" for n in s.commands}
    taken |= set(s.element_units) | {f"{name}.drive" for name in s.motions}
    states = [z.name for z in s.states]
    for what, names, others in (("state", states, taken), ("output", list(s.outputs), taken.union(states))):
        for name in names:
            if name in others:
                raise InputError(f'{what} "{name}" has the name of a column that every record has; give it another.')
            if not name:
                raise InputError(f"a {what} has an empty name; every column of a record needs one of its own.")
    for name, f in s.outputs.items():
        if not callable(f):
            raise InputError(f'output "{name}" is {f!r}; expected a function of (t, q, v, x, u).')
