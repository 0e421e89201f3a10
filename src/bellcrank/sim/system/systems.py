"""System: mechanism, actuators, control and outputs as one first-order system, dy/dt = f(t, y; u, p).

y is q, then v, then x: the states of the actuators ("boom.p_in"), then those of the control. The control turns state
and inputs u into commands, an actuator turns its command into a force on one joint. Without actuators the commands are
the forces on all joints. External forces act on frames (external_forces.py). All code is plain Python over scalars and
does not depend on graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.actuators import Actuator, StateVariable
from bellcrank.argument_errors import explain_argument_errors
from bellcrank.dynamics.force_field import ForceLaw
from bellcrank.dynamics.singular_mass import check_parameter_values
from bellcrank.errors import InputError
from bellcrank.forces.bearings import BearingFriction
from bellcrank.forces.element import Element
from bellcrank.forces.latch import Latch
from bellcrank.model import Mechanism
from bellcrank.model.part_checks import check_values
from bellcrank.parameters import Parameters, evaluate, expressions, has_free, replace_free
from bellcrank.parameters.validation import check_numbers
from bellcrank.quoting import single_line
from bellcrank.record.contents import COMPONENTS, FORCES
from bellcrank.scalar import Scalar
from bellcrank.sim.run_arguments import (
    NamedVector,
    as_tuple,
    call_user_function,
    check_known,
    check_unique_names,
    is_omitted,
    named_scalars,
    real_number,
)
from bellcrank.sim.system import element_forces, external_forces, joint_loads, latch_equations, prescribed_motions
from bellcrank.sim.system.sampling import Sampled, as_control

Control = Callable[..., Any]
Vector = Sequence[Scalar]


@dataclass(frozen=True, eq=False)
class System:
    """A mechanism with actuators, control, forces, inputs and outputs. Made by bc.system, which checks them; immutable.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    actuators : tuple of Actuator
        Actuators of joints.
    control : callable, optional
        Function of (t, q, v, x, u) that returns commands.
    inputs : tuple of str
        Names of the inputs u.
    outputs : mapping of str to callable
        Functions of (t, q, v, x, u).
    control_states : tuple of StateVariable
        States of the control.
    wrenches : mapping of str to callable
        External forces by frame.
    free : tuple
        Free parameters inside functions, which no part shows.
    defaults : mapping of str to float
        Values of inputs that a run need not give.
    sampled : tuple of Sampled
        Sampled controllers.
    elements : tuple of Element
        Force elements between frames or joints.
    motions : mapping of str to callable
        Prescribed motions by joint or FRAME.x.
    everywhere : ForceLaw, optional
        Force law that acts on every body.
    bearings : tuple of BearingFriction
        Bearings with friction, whose forces follow from those through their joints.
    latches : tuple of Latch
        Joints that events close and open.
    """

    mechanism: Mechanism
    actuators: tuple[Actuator, ...] = ()
    control: Control | None = None
    inputs: tuple[str, ...] = ()
    outputs: Mapping[str, Callable[..., Scalar]] = field(default_factory=dict)
    control_states: tuple[StateVariable, ...] = ()
    wrenches: Mapping[str, external_forces.Wrench] = field(default_factory=dict)
    free: tuple[Any, ...] = ()
    defaults: Mapping[str, float] = field(default_factory=dict)
    sampled: tuple[Sampled, ...] = ()
    elements: tuple[Element, ...] = ()
    motions: Mapping[str, prescribed_motions.Motion] = field(default_factory=dict)
    everywhere: ForceLaw | None = None
    bearings: tuple[BearingFriction, ...] = ()
    latches: tuple[Latch, ...] = ()

    @cached_property
    def parameters(self) -> Parameters:
        """Return the free parameters of all parts by name, in the order of p."""
        m = self.mechanism
        parts = (m.gravity, m.bodies, m.joints, tuple(m.frames.values()), m.loops, m.springs)
        laws = tuple(self.wrenches.values()), self.elements, tuple(self.motions.values()), self.bearings, self.free
        return Parameters(*parts, self.actuators, self.control, self.sampled, *laws, judge=self._check_values)

    def _check_values(self, names: Sequence[str], p: Any, where: str) -> None:
        """Raise an InputError if values of free parameters make a body, joint or part physically impossible."""
        check_values(self.mechanism, names, p, where)
        check_parameter_values(self.mechanism, names, p, where)
        check_parts((*self.actuators, *self.wrenches.values(), *self.elements, *self.bearings), names, p, where)

    @property
    def rigid(self) -> bool:
        """Return True for rigid bodies on joints without other parts that limit the step."""
        m = self.mechanism
        return not (self.elements or self.solved_elements or self.motions or m.springs or m.flexible or m.outlines)

    @property
    def solved_elements(self) -> tuple[Element, ...]:
        """Return the elements whose forces are solved with the accelerations, in the order of their columns."""
        return *self.latches, *self.bearings

    @property
    def commanded_latches(self) -> tuple[Latch, ...]:
        """Return the latches that have a command."""
        return tuple(e for e in self.latches if e.command is not None)

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """Return the names of the commands: joints of commanded actuators, or without actuators all of v."""
        if not self.actuators:
            return self.mechanism.columns[1]
        return tuple(a.joint for a in self.actuators if a.commanded)

    @cached_property
    def descriptions(self) -> tuple[str, ...]:
        """Return the actuators as text, cached because every record contains it."""
        return tuple(str(a) for a in self.actuators)

    @property
    def control_name(self) -> str:
        """Return the name of the control in records and errors."""
        return _function_name(self.control)

    @cached_property
    def states(self) -> tuple[StateVariable, ...]:
        """Return the state variables x: all except those of the mechanism, with their full names."""
        states = [replace(z, name=f"{a.joint}.{z.name}") for a in self.actuators for z in a.states]
        states += [replace(z, name=f"{e.name}.{z.name}") for e in (*self.elements, *self.latches) for z in e.states]
        return (*states, *self.control_states, *(z for c in self.sampled for z in c.variables))

    @property
    def nx(self) -> int:
        """Return the number of further states x."""
        return len(self.states)

    @property
    def size(self) -> int:
        """Return the number of states: nq + nv + nx."""
        return self.mechanism.nq + self.mechanism.nv + self.nx

    # -- over any scalar

    def split(self, y: Vector) -> tuple[NamedVector, NamedVector, NamedVector]:
        """Split a state into its parts, each indexable by name.

        Parameters
        ----------
        y : sequence of scalar
            State: q, v and x.

        Returns
        -------
        tuple of NamedVector
            q, v and x.
        """
        m = self.mechanism
        q, v = NamedVector("q", m.columns[0], y[: m.nq]), NamedVector("v", m.columns[1], y[m.nq : m.nq + m.nv])
        return q, v, NamedVector("x", [s.name for s in self.states], y[m.nq + m.nv : self.size])

    def commanded(self, t: Scalar, y: Vector, u: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """Return the commands, and the rates of the control's states.

        Parameters
        ----------
        t, y, u
            Time, state and inputs.

        Returns
        -------
        commands : list of scalar
            In the order of `commands`.
        rates : list of scalar
            Time derivatives of the control's states.
        """
        if self.control is None:
            return [0.0] * len(self.commands), []
        what = f"control ({_function_name(self.control)})"
        returned = call_user_function(what, self.control, t, *self.split(y), NamedVector("u", self.inputs, u))
        rates: Any = ()
        if self.control_states:
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise InputError(
                    f"{what} has states ({', '.join(s.name for s in self.control_states)}) and returned "
                    f"{type(returned).__name__}; expected the pair (commands, rates of its states)."
                )
            returned, rates = returned
        names = [s.name for s in self.control_states]
        commands = named_scalars(what, returned, self.commands)
        return commands, named_scalars(f"rates of {what}", rates, names) if names else []

    def forces(self, t: Scalar, y: Vector, commands: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """Return the generalised forces of the actuators, and the rates of the actuators' states.

        Parameters
        ----------
        t, y
            Time and state.
        commands
            Commands, in the order of `commands`.

        Returns
        -------
        tau : list of scalar
            Generalised forces, in the order of v.
        rates : list of scalar
            Time derivatives of the actuators' states.
        """
        if not self.actuators:
            return list(commands), []
        q, v, x = self.split(y)
        tau: list[Scalar] = [0.0] * len(v)
        rates: list[Scalar] = []
        for a, own_states, command in self.driven_actuators(x, commands):
            what = f'{type(a).__name__} on "{a.joint}"'
            force, dx = call_user_function(what, a, t, q[a.joint], v[a.joint], own_states, command)
            i = v.names.index(a.joint)
            tau[i] = tau[i] + force
            rates += named_scalars(f"rates of {what}", dx, [s.name for s in a.states]) if a.states else []
        return tau, rates

    def driven_actuators(self, x: Vector, commands: Vector) -> Iterator[tuple[Actuator, Vector, Scalar]]:
        """Yield each actuator with its states and its command, 0 for one without.

        Parameters
        ----------
        x : sequence of scalar
            Further states.
        commands : sequence of scalar
            Commands, in the order of `commands`.

        Yields
        ------
        tuple of Actuator, sequence of scalar, and scalar
            The actuator, its part of x, and its command.
        """
        remaining_commands, first_state = iter(commands), 0
        for a in self.actuators:
            command = next(remaining_commands) if a.commanded else 0.0
            yield a, x[first_state : first_state + len(a.states)], command
            first_state += len(a.states)

    def elements_with_states(self, x: Vector) -> Iterator[tuple[Element, Vector]]:
        """Yield each force element with its states.

        Parameters
        ----------
        x : sequence of scalar
            Further states.

        Yields
        ------
        tuple of Element and sequence of scalar
            The element and its part of x.
        """
        first_state = sum(len(a.states) for a in self.actuators)
        for e in self.elements:
            yield e, x[first_state : first_state + len(e.states)]
            first_state += len(e.states)

    def outside(self, t: Scalar, y: Vector) -> tuple[list[Scalar], dict[str, list[Scalar]]]:
        """Return the external forces.

        Parameters
        ----------
        t, y
            Time and state.

        Returns
        -------
        tau : list of scalar
            Generalised forces, in the order of v.
        wrenches : dict of str to list of scalar
            Wrenches by frame.
        """
        q, v, _ = self.split(y)
        acts = external_forces.frame_wrenches(self.mechanism, self.wrenches, t, list(q), list(v))
        generalised = external_forces.wrench_forces(self.mechanism, acts, list(q))
        if self.everywhere is not None:
            field_forces = external_forces.law_forces(self.mechanism, self.everywhere, q, v)
            generalised = [a + b for a, b in zip(generalised, field_forces, strict=True)]
        return generalised, acts

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of forces that exist, as the last parts of their columns' names."""
        absent = {"motion"} if self.elements or self.solved_elements else {"motion", "element"}
        return tuple(kind for kind in FORCES if kind not in absent)

    @cached_property
    def element_units(self) -> dict[str, str]:
        """Return the columns of all force elements with their units."""
        m = self.mechanism
        columns = element_forces.element_columns(m, self.elements) if self.elements else {}
        if self.latches:
            columns |= latch_equations.latch_columns(self.latches)
        return columns | (joint_loads.bearing_columns(m, self.bearings) if self.bearings else {})

    @property
    def element_descriptions(self) -> dict[str, dict[str, Any]]:
        """Return the description of each force element that a record keeps."""
        told = {e.name: element_forces.element_description(e) for e in self.elements}
        told |= {e.name: {"what": str(e), "frames": [e.a, e.b]} for e in self.latches}
        return told | {e.name: joint_loads.bearing_description(self.mechanism, e) for e in self.bearings}

    @property
    def motion_units(self) -> dict[str, str]:
        """Return the columns of the forces of prescribed motions with their units."""
        m = self.mechanism
        forces = {f"{name}.drive": name for name in self.motions}
        forces |= {f"{name}.motion": name for name in m.columns[1]} if self.motions else {}
        return {column: prescribed_motions.drive_unit(m, name) for column, name in forces.items()}

    def acts(self, t: Scalar, y: Vector, shown: bool = False) -> list[element_forces.ElementResult]:
        """Return the action of each force element.

        Parameters
        ----------
        t, y
            Time and state.
        shown
            True includes the columns that an element records.

        Returns
        -------
        list of ElementResult
            Generalised forces and wrenches of each element.
        """
        q, v, x = self.split(y)
        if self.elements and external_forces.uses_recursions(self.mechanism, list(q)):
            element_states = [z for _, own_states in self.elements_with_states(x) for z in own_states]
            return self._passes.acts(t, list(q), list(v), element_states, shown)
        return [
            element_forces.element_result(self.mechanism, e, t, list(q), list(v), own_states)
            for e, own_states in self.elements_with_states(x)
        ]

    @cached_property
    def _passes(self) -> element_forces.ElementPasses:
        return element_forces.ElementPasses(self.mechanism, self.elements, self.parameters)

    def summed(self, acts: Sequence[element_forces.ElementResult], y: Vector) -> list[Scalar]:
        """Return the generalised forces of force elements.

        Parameters
        ----------
        acts
            Actions of the force elements.
        y
            State.

        Returns
        -------
        list of scalar
            Their sum, in the order of v.
        """
        total: list[Scalar] = [0.0] * self.mechanism.nv
        for act in acts:
            for k, f in act.torque.items():
                total[k] = total[k] + f
        wrenches = [w for act in acts for w in act.wrenches]
        if not wrenches:
            return total
        forces = self._passes.generalised_forces(wrenches, list(self.split(y)[0]))
        return [a + b for a, b in zip(total, forces, strict=True)]

    def pushed(self, t: Scalar, y: Vector, tau: Vector) -> list[Scalar]:
        """Return the total generalised forces.

        Parameters
        ----------
        t, y
            Time and state.
        tau
            Generalised forces of the actuators.

        Returns
        -------
        list of scalar
            Those of actuators, external forces and force elements, in the order of v.
        """
        more = [self.outside(t, y)[0]] if self.wrenches or self.everywhere else []
        more += [self.summed(self.acts(t, y), y)] if self.elements else []
        total = list(tau)
        for forces in more:
            total = [a + b for a, b in zip(total, forces, strict=True)]
        return total

    @cached_property
    def quaternions(self) -> list[int]:
        """Return the indices in y at which a quaternion begins."""
        return [i for i, name in enumerate(self.mechanism.columns[0]) if name.endswith(".qx")]

    def limits(self) -> list[tuple[Scalar, Scalar] | None]:
        """Return the limits of the further states.

        Returns
        -------
        list of (scalar, scalar) or None
            Lowest and highest value of each element of x; None for one without limits.
        """
        pairs = [pair for a in self.actuators for pair in a.limits()]
        return pairs + [None] * (self.nx - len(pairs))

    def observed(self, t: Scalar, y: Vector, u: Vector) -> dict[str, Scalar]:
        """Return the outputs by name.

        Parameters
        ----------
        t, y, u
            Time, state and inputs.

        Returns
        -------
        dict of str to scalar
            Values of the output functions.
        """
        arguments = (t, *self.split(y), NamedVector("u", self.inputs, u))
        return {
            name: named_scalars(f'output "{name}"', call_user_function(f'output "{name}"', f, *arguments), [name])[0]
            for name, f in self.outputs.items()
        }

    def __str__(self) -> str:
        m = self.mechanism
        lines = [f"{m.name}: {m.nq} positions, {m.nv} velocities, {self.nx} further states"]
        lines += [f"  {a}" for a in self.actuators]
        if self.control is not None:
            lines.append(f"  control: {_function_name(self.control)}")
        lines += [f"  sampled every {c.every:g} s: {c.name}" for c in self.sampled]
        lines += [f"  force on {frame}: {_function_name(f)}" for frame, f in self.wrenches.items()]
        lines += [f"  {e}" for e in (*self.elements, *self.solved_elements)]
        lines += [f"  motion of {name}: {_function_name(f)}" for name, f in self.motions.items()]
        if self.inputs:
            lines.append(f"  inputs: {', '.join(self.inputs)}")
        return "\n".join(map(single_line, lines))


def _function_name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


@explain_argument_errors
def system(
    mechanism: Mechanism | System,
    actuators: Sequence[Actuator] = (),
    control: Control | Sampled | None = None,
    inputs: Sequence[str] | Mapping[str, float] = (),
    outputs: Mapping[str, Callable[..., Scalar]] | None = None,
    states: Mapping[str, float] | Sequence[StateVariable] = (),
    parameters: Sequence[Any] = (),
    forces: Mapping[str, external_forces.Wrench] | None = None,
    sampled: Sequence[Sampled] = (),
    elements: Sequence[Element] = (),
    motions: Mapping[str, prescribed_motions.Motion] | None = None,
    everywhere: ForceLaw | None = None,
) -> System:
    """Combine a mechanism with actuators, control, forces, inputs and outputs.

    Functions of the user run once, on symbols, and are compiled: write where(...) instead of if.

    Parameters
    ----------
    mechanism : Mechanism or System
        The mechanism; a system is returned unchanged, and takes no other arguments.
    actuators : sequence of Actuator
        Actuators of joints.
    control : callable or Sampled, optional
        Function of (t, q, v, x, u) that returns the commands, one for each commanded actuator (without actuators, the
        forces on all joints), as a list, an array, or a mapping by joint. With states it returns (commands, rates of
        its states) and finds the states in x.
    inputs : sequence of str, or mapping of str to float
        Names of the inputs u, which a run must give, or a mapping to default values.
    outputs : mapping of str to callable, optional
        Functions of (t, q, v, x, u).
    states : mapping of str to float, or sequence of StateVariable
        States of the control with initial values; default: its attribute `states`.
    parameters : sequence
        Free parameters that occur only inside functions of the user.
    forces : mapping of str to callable, optional
        External forces by frame: functions of (t, pose, velocity) that return (force, moment) at its origin, world
        axes.
    sampled : sequence of Sampled
        Controllers with their own sampling times, whose outputs are in x.
    elements : sequence of Element
        Springs, cables, stops, gears, contacts and tyres between frames or joints, friction of bearings, and latches
        (bellcrank.forces).
    motions : mapping of str to callable, optional
        Prescribed motions: functions of t by the name of a joint or of a position of a frame ("tool.x"). The drive
        applies the necessary force, recorded as "NAME.drive".
    everywhere : callable, optional
        Function of (place, velocity, mass) that returns the force on the centre of mass of every body, world axes.

    Returns
    -------
    System
        The system, after checking that its parts fit.

    Raises
    ------
    InputError
        If a part is invalid or refers to an unknown name.

    Examples
    --------
    ::

        bc.system(arm, [PD("elbow", 80.0, 8.0)], lambda t, q, v, x, u: {"elbow": u["target"]}, inputs=["target"])
    """
    if isinstance(mechanism, System):
        more = actuators, inputs, outputs, states, parameters, forces, sampled, elements, motions, everywhere
        if control is not None or not all(map(is_omitted, more)):
            raise InputError(
                "this is already a system; give the mechanism together with actuators, control and inputs."
            )
        return mechanism
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"expected a Mechanism, got {mechanism!r}; bellcrank.read(file) makes one.")
    controllers = _checked_controllers(sampled)
    if isinstance(control, Sampled):
        if states:
            raise InputError("give the states of a sampled control to the controller: Sampled(..., states=...).")
        plain_system = System(mechanism, _checked_actuators(mechanism, actuators))
        control_sampler, control = as_control(control, plain_system.commands)
        controllers = (*controllers, control_sampler)
    if control is not None and not callable(control):
        raise InputError(f"control is {control!r}; expected a function control(t, q, v, x, u).")
    control_states = _control_states(getattr(control, "states", ()) if is_omitted(states) else states, control)
    names, defaults = _inputs_and_defaults(inputs)
    free = as_tuple("parameters", parameters, "parameters")
    if not isinstance(outputs or {}, Mapping):
        raise InputError(f"outputs is {outputs!r}; expected functions of (t, q, v, x, u) by name.")
    wrenches = {} if is_omitted(forces) else external_forces.checked_forces(mechanism, forces)
    by_function = _checked_actuators(mechanism, actuators), control, names, dict(outputs or {}), control_states
    between, bearings, latches = _checked_elements(mechanism, elements)
    prescribed = {} if is_omitted(motions) else prescribed_motions.checked_motions(mechanism, motions)
    body_force_law = external_forces.checked_law(mechanism, everywhere) if everywhere is not None else None
    acting = between, prescribed, body_force_law, bearings, latches
    checked_system = System(mechanism, *by_function, wrenches, free, defaults, controllers, *acting)
    check_unique_names("state", [s.name for s in checked_system.states])
    check_unique_names("input", checked_system.inputs)
    check_unique_names("output", list(checked_system.outputs))
    _check_columns(checked_system)
    return checked_system


def _inputs_and_defaults(given: Any) -> tuple[tuple[str, ...], dict[str, float]]:
    """Return the names of the inputs, and their default values."""
    if not isinstance(given, Mapping):
        return as_tuple("inputs", given, "names"), {}
    return as_tuple("inputs", tuple(given), "names"), {n: real_number(f'input "{n}"', x) for n, x in given.items()}


def _checked_actuators(m: Mechanism, given: Any) -> tuple[Actuator, ...]:
    known = [name for name in m.columns[1] if name in m.columns[0]]
    actuators = as_tuple("actuators", given, "actuators")
    for a in actuators:
        if not isinstance(a, Actuator):
            raise InputError(f"actuators: {a!r} is not an actuator; see bellcrank.actuators.")
        check_numbers(a, "actuators")
        check_known(f'actuator {type(a).__name__} of "{m.name}"', "joint", [a.joint], known)
    return actuators


def _checked_elements(
    m: Mechanism, given: Any
) -> tuple[tuple[Element, ...], tuple[BearingFriction, ...], tuple[Latch, ...]]:
    """Return the force elements by position and velocity, those by the force in a joint, and latches."""
    elements = () if is_omitted(given) else element_forces.checked_elements(m, given)
    bearings = tuple(e for e in elements if isinstance(e, BearingFriction))
    latches = tuple(e for e in elements if isinstance(e, Latch))
    others = tuple(e for e in elements if not isinstance(e, BearingFriction | Latch))
    if bearings:
        bearings = joint_loads.checked_bearings(m, bearings)
    return others, bearings, latch_equations.checked_latches(m, latches) if latches else latches


def _checked_controllers(given: Any) -> tuple[Sampled, ...]:
    controllers = as_tuple("sampled", given, "sampled controllers")
    for c in controllers:
        if not isinstance(c, Sampled):
            raise InputError(f"sampled: {c!r} is not a Sampled controller; use bellcrank.Sampled(function, every=...).")
    return controllers


def _control_states(given: Any, control: Control | None) -> tuple[StateVariable, ...]:
    """Return the states of the control."""
    if isinstance(given, Mapping):
        given = [StateVariable(name, "", real_number(f'state "{name}"', x)) for name, x in given.items()]
    states = as_tuple("states", given, "states")
    for z in states:
        if not isinstance(z, StateVariable):
            raise InputError(f'states: {z!r} is not a state; expected a mapping, states={{"integral": 0.0}}.')
    if states and control is None:
        raise InputError(
            f"there are states ({', '.join(str(z.name) for z in states)}) but no control that gives their rates."
        )
    return states


def _check_columns(s: System) -> None:
    """Raise an InputError if a state or output has the name of another column of a record."""
    q, v = s.mechanism.columns
    reserved = {"t", "run", *(f"{n}.q" for n in q), *(f"{n}.{k}" for n in v for k in ("v", "a", *FORCES))}
    reserved |= {f"{frame}.{c}" for frame in s.wrenches for c in COMPONENTS} | {f"{n}.command" for n in s.commands}
    reserved |= set(s.element_units) | {f"{name}.drive" for name in s.motions}
    states = [z.name for z in s.states]
    for what, names, others in (("state", states, reserved), ("output", list(s.outputs), reserved.union(states))):
        for name in names:
            if name in others:
                raise InputError(f'{what} "{name}" has the name of a column that every record has; give it another.')
            if not name:
                raise InputError(f"a {what} has an empty name; every column of a record needs a name of its own.")
    for name, f in s.outputs.items():
        if not callable(f):
            raise InputError(f'output "{name}" is {f!r}; expected a function of (t, q, v, x, u).')


Array = np.ndarray[Any, Any]
MAX_CHECKED_RUNS = 32  # largest number of runs of which every one is checked


def check_parts(parts: Iterable[Any], names: Sequence[str], p: Array, where: str) -> None:
    """Raise an InputError if parameter values make a part invalid.

    Parameters
    ----------
    parts
        Actuators, forces and elements.
    names
        Names of the parameters.
    p
        Values, (..., len(names)).
    where
        Call that is named in the error.
    """
    flat = p.reshape(-1, len(names))
    for part in parts:
        if not hasattr(part, "__post_init__") or not has_free(part):
            continue
        for run in _checked_runs(part, names, flat):
            values = dict(zip(names, flat[run].tolist(), strict=True))
            try:
                _rebuild(part, values)
            except InputError as error:
                part_parameters = {str(leaf.args[0]): None for x in expressions(part) for leaf in x.leaves}
                assignments = ", ".join(f"{name} = {values[name]:g}" for name in part_parameters)
                among = f" (run {run} of {len(flat)})" if len(flat) > 1 else ""
                raise InputError(f"{where}: the parameters {assignments}{among} make a part invalid. {error}") from None


def _rebuild(part: Any, values: Mapping[str, float]) -> None:
    replace_free(part, lambda x: evaluate(x, lambda leaf: values[leaf.args[0]]))


def _checked_runs(part: Any, names: Sequence[str], flat: Array) -> Iterator[int]:
    if len(flat) <= MAX_CHECKED_RUNS:
        yield from range(len(flat))
        return
    known = dict[Any, Any]()

    def column(leaf: Any) -> Array:
        values: Array = flat[:, names.index(leaf.args[0])]
        return values

    extreme_runs: set[int] = set()
    for x in expressions(part):
        with np.errstate(all="ignore"):
            values = np.broadcast_to(np.asarray(evaluate(x, column, known), float), len(flat))
        extreme_runs |= {int(np.argmin(values)), int(np.argmax(values))}  # both are the first NaN, if there is one
    yield from sorted(extreme_runs)
