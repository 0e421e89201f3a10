"""Operating points: a system whose commands and forces are inputs, and its state, inputs, parameters and time.

Declared inputs, commands, joint forces and free parameters can all be inputs, selected by name. A command or force that
is not declared becomes an additional input, which is added to the output of the control and is zero by default.
Linearisation and equilibrium therefore deal with inputs only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.actuators import IdealTorque
from bellcrank.dynamics.loops.assembly import assemble_batch
from bellcrank.dynamics.loops.constraint_values import displace
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar
from bellcrank.sim.run_arguments import (
    RunArguments,
    as_tuple,
    check_known,
    check_unique_names,
    real_array,
    vector_argument,
)
from bellcrank.sim.system.systems import System, system


@dataclass(frozen=True, eq=False)
class OpenSystem:
    """A system with the names of the inputs and free parameters that were requested."""

    system: System
    requested: tuple[str, ...]
    original: System  # the system without additional inputs

    @property
    def columns(self) -> list[tuple[str, int]]:
        """Return, for each requested name, the input of a graph ("u" or "p") and the index in it."""
        u, p = list(self.system.inputs), list(self.system.parameters)
        return [("u", u.index(name)) if name in u else ("p", p.index(name)) for name in self.requested]


def open_system(plant: Mechanism | System, inputs: Sequence[str] | None = None, also: Sequence[str] = ()) -> OpenSystem:
    """Return a system with additional inputs for requested commands and forces.

    Parameters
    ----------
    plant
        Mechanism or system.
    inputs
        Names of the requested inputs; None selects the declared inputs, or all commands of a system without inputs and
        control.
    also
        Names of commands and forces that must be inputs even if they are not requested; other names are ignored.
    """
    s = system(plant)
    if s.sampled:
        raise InputError(
            f'"{s.mechanism.name}" has sampled controllers, which hold their outputs between samples: neither its rate '
            "nor one of its steps describes it. Use the plant without them, with its commands as inputs."
        )
    commands = {command_name(s, n): n for n in s.commands}
    default_names = s.inputs or (tuple(commands) if s.control is None else ())
    requested = default_names if inputs is None else as_tuple("inputs", inputs, "names")
    check_unique_names("input", requested)
    single = [n for n in s.mechanism.columns[1] if n in s.mechanism.columns[0]]
    forces = {f"{n}.tau": n for n in single if f"{n}.tau" not in commands}
    known = [*s.inputs, *commands, *forces, *s.parameters]
    check_known(f'inputs of "{s.mechanism.name}"', "input", requested, known)
    added = [n for n in (*requested, *also) if n not in s.inputs and n not in s.parameters]
    return OpenSystem(_widened(s, [n for n in commands if n in added], [n for n in forces if n in added]), requested, s)


def operating_values(plant: Mechanism | System, point: Any) -> dict[str, Any]:
    """Return an operating point as a mapping.

    Parameters
    ----------
    plant
        Mechanism or system.
    point
        None, an array (q), a mapping, a row of a record, or an equilibrium. An equilibrium of another plant, such as
        one without control, contributes the elements that this plant has.
    """
    if point is None:
        return {}
    if isinstance(point, Mapping):
        return dict(point)  # for a row of a record: the columns that it stores
    if not hasattr(point, "plant"):
        return {"q": point}
    if point.plant is plant:
        return dict(point.at)
    s = open_system(plant).system
    known = ("q", "t", *(x.name for x in s.states), *s.inputs, *s.parameters)
    return {name: x for name, x in point.at.items() if name in known}


def force_names(names: Iterable[Any]) -> tuple[str, ...]:
    """Return the commands and forces among `names`: inputs that exist only if a caller gives them."""
    return tuple(n for n in names if isinstance(n, str) and n.endswith((".tau", ".command")))


def command_name(s: System, joint: str) -> str:
    """Return the name of the command of a `joint` of the system `s`; without actuators it is the force itself."""
    return f"{joint}.{'command' if s.actuators else 'tau'}"


def _widened(s: System, commands: Sequence[str], forces: Sequence[str]) -> System:
    """Return the system with these commands and forces as inputs after its own."""
    if not commands and not forces:
        return s
    names = (*s.inputs, *commands, *forces)
    pushed = tuple(IdealTorque(name.removesuffix(".tau")) for name in forces)
    return replace(
        s,
        actuators=(*s.actuators, *pushed),
        control=WidenedControl(s, tuple(commands), tuple(forces)),
        inputs=names,
        defaults={**s.defaults, **dict.fromkeys((*commands, *forces), 0.0)},
        free=(*s.free, s.control),
    )


@dataclass(frozen=True, eq=False)
class WidenedControl:
    """The control of a system, if it has one, plus the additional commands and forces."""

    system: System
    commands: tuple[str, ...]
    forces: tuple[str, ...]

    @property
    def __name__(self) -> str:
        """Return the name of the wrapped control."""
        return self.system.control_name if self.system.control is not None else "inputs"

    def __call__(self, t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Any:
        """Return the commands plus the additional inputs, and the rates of the control's states if it has any."""
        s = self.system
        commands, rates = s.commanded(t, [*q, *v, *x], list(u)[: len(s.inputs)])
        command_names = [command_name(s, n) for n in s.commands]
        total = [g + u[n] if n in self.commands else g for g, n in zip(commands, command_names, strict=True)]
        total += [u[n] for n in self.forces]
        return (total, rates) if s.control_states else total


Array = np.ndarray[Any, Any]
VECTOR_NAMES = ("q", "v", "x", "u", "p")


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """One operating point or a batch of them.

    Attributes
    ----------
    system
        The system that the point belongs to.
    y
        States, (points, size).
    u
        Inputs, (points, nu).
    p
        Free parameters, (points, np).
    t
        Times, (points,).
    shape
        Shape of the batch, () for one point.
    """

    system: System
    y: Array
    u: Array
    p: Array
    t: Array
    shape: tuple[int, ...]

    @property
    def vectors(self) -> dict[str, Array]:
        """Return q, v, x, u, p and t in the shape of the batch, as the argument `at` takes them."""
        m = self.system.mechanism
        q, v, x = np.split(self.y, [m.nq, m.nq + m.nv], axis=-1)
        vectors = {"q": q, "v": v, "x": x, "u": self.u, "p": self.p}
        shaped = {key: a.reshape((*self.shape, a.shape[-1])) for key, a in vectors.items()}
        return shaped | {"t": self.t.reshape(self.shape)}


def element_places(s: System) -> dict[str, tuple[str, int]]:
    """Return group and index of every element of a point of the system `s`, by all its names, those of records too."""
    q, v = s.mechanism.columns
    input_names = {"u": list(s.inputs), "p": list(s.parameters)}
    names = {"q": [f"{n}.q" for n in q], "v": [f"{n}.v" for n in v], "x": [z.name for z in s.states], **input_names}
    places = {name: (key, i) for key, group_names in names.items() for i, name in enumerate(group_names)}
    prefixes = {"u": "input", "p": "parameter"}
    prefixed = [(f"{prefixes[key]}.{name}", key, i) for key in prefixes for i, name in enumerate(input_names[key])]
    return places | {name: (key, i) for name, key, i in prefixed}


def operating_point(s: System, given: Mapping[str, Any]) -> OperatingPoint:
    """Return an operating point from a mapping such as {"q": [...], "elbow.v": 0.3, "target": 1.0}.

    Defaults: neutral positions, velocities 0, initial values of states, default inputs, nominal parameters.

    Parameters
    ----------
    s
        System.
    given
        Whole vectors by q, v, x, u (inputs) and p (free parameters), the time by t, single elements by their names.
    """
    known = element_places(s)
    check_known(f'at, of "{s.mechanism.name}"', "element", given, [*VECTOR_NAMES, "t", *known])
    m, free = s.mechanism, s.parameters
    q = _vector("q", given, known, m.columns[0], m.neutral())
    v = _vector("v", given, known, m.columns[1], np.zeros(m.nv))
    x = _vector("x", given, known, [z.name for z in s.states], [z.initial for z in s.states])
    u = _vector("u", given, known, s.inputs, [s.defaults.get(n, np.nan) for n in s.inputs])
    p = _vector("p", given, known, list(free), list(free.values()))
    given_inputs = {n: u[..., i] for i, n in enumerate(s.inputs) if not np.isnan(u[..., i]).any()}
    t = real_array("at: t", given.get("t", 0.0))
    q, v, x = (np.broadcast_to(a, (*np.broadcast_shapes(a.shape[:-1], t.shape), a.shape[-1])) for a in (q, v, x))
    batch = RunArguments(s, q, v, x, given_inputs, None, {n: p[..., i] for i, n in enumerate(free)}, None)
    times = np.broadcast_to(t, batch.shape).reshape(-1)
    return OperatingPoint(s, batch.y, batch.table[:, 0], batch.parameters, times, batch.shape)


def mechanism_at(s: System, p: Array) -> Mechanism:
    """Return the mechanism of the system `s` with the values `p` of the free parameters of the system."""
    m, names = s.mechanism, list(s.parameters)
    return m.at({n: float(p[names.index(n)]) for n in m.parameters}) if m.parameters else m


def displaced_positions(s: System, p: Array, q: Array, xi: Array, independent: Sequence[int]) -> Array:
    """Return positions after a displacement, with the dependent joints solved so that the loops close.

    Parameters
    ----------
    s
        System.
    p
        Values of its free parameters.
    q
        Positions, (..., nq).
    xi
        Displacements along v, (..., nv).
    independent
        Elements of v that keep their displacement.
    """
    tree = mechanism_at(s, p).tree
    moved_there = displace(tree, np.broadcast_to(q, (*xi.shape[:-1], q.shape[-1])), xi)
    if not tree.loops:
        return moved_there
    return assemble_batch(tree, moved_there, free=dependent_mask(s, independent))[0]


def dependent_mask(s: System, independent: Sequence[int]) -> Array:
    """Return a mask over v of the system `s`: 0 for the `independent` elements, 1 for the others."""
    return np.array([0.0 if i in independent else 1.0 for i in range(s.mechanism.nv)])


def _vector(
    key: str, given: Mapping[str, Any], known: Mapping[str, tuple[str, int]], names: Any, default: Any
) -> Array:
    """Return one of the vectors: given as a whole, overridden by single elements."""
    vector = vector_argument(f"at: {key}", given.get(key), list(names), default)
    single = {known[n][1]: real_array(f'at: "{n}"', x) for n, x in given.items() if n in known and known[n][0] == key}
    try:
        shape = np.broadcast_shapes(vector.shape[:-1], *(x.shape for x in single.values()))
    except ValueError:
        shapes = ", ".join(f"{names[i]} {x.shape}" for i, x in single.items())
        raise InputError(f"at: elements of {key} do not broadcast: {shapes}, with {vector.shape[:-1]}.") from None
    out = np.array(np.broadcast_to(vector, (*shape, len(names))))
    for i, x in single.items():
        out[..., i] = x
    return out
