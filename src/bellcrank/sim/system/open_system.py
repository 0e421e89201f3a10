"""A system whose declared inputs, commands, joint forces and free parameters can all be inputs, selected by name.

A command or force that is not declared becomes an additional input, which is added to the output of the control and is
zero by default. Linearisation and equilibrium therefore deal with inputs only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.actuators import IdealTorque
from bellcrank.errors import InputError, unknown
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar
from bellcrank.sim.run_arguments import as_tuple, check_unique_names
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
    for name in requested:
        if name not in known:
            raise InputError(f'inputs of "{s.mechanism.name}": {unknown("input", name, known)}')
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
