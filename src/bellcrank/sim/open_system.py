"""A system with its inputs laid open: what is declared, commands, forces on joints and free numbers, by name.

A command or a force that nobody declared becomes one more input, which is added to what the control gives; it is zero
unless told. So whoever linearises or balances a system knows inputs and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.actuators import IdealTorque
from bellcrank.errors import InputError, unknown
from bellcrank.model import Mechanism
from bellcrank.scalar import Scalar
from bellcrank.sim.arguments import listed, unique
from bellcrank.sim.systems import System, system


@dataclass(frozen=True, eq=False)
class Open:
    """A system, and which of its inputs and free numbers are asked for."""

    system: System
    asked: tuple[str, ...]
    plain: System  # as it was given

    @property
    def columns(self) -> list[tuple[str, int]]:
        """For each that is asked for, the input of a graph ("u" or "p") and its place there."""
        u, p = list(self.system.inputs), list(self.system.parameters)
        return [("u", u.index(name)) if name in u else ("p", p.index(name)) for name in self.asked]


def opened(plant: Mechanism | System, inputs: Sequence[str] | None = None, also: Sequence[str] = ()) -> Open:
    """Inputs that are asked for, or else: those that are declared, or, where there is no control, all commands.

    also: names among which commands and forces may be that must be there, whether asked for or not.
    """
    s = system(plant)
    if s.sampled:
        raise InputError(
            f'"{s.mechanism.name}" has sampled controllers, which hold between their samples: the system is not one of '
            "rates, nor is one step of it all there is. Take the plant without them, and its commands as inputs."
        )
    commands = {command_name(s, n): n for n in s.commands}
    usual = s.inputs or (tuple(commands) if s.control is None else ())
    asked = usual if inputs is None else listed("inputs", inputs, "names")
    unique("input", asked)
    single = [n for n in s.mechanism.columns[1] if n in s.mechanism.columns[0]]
    forces = {f"{n}.tau": n for n in single if f"{n}.tau" not in commands}
    known = [*s.inputs, *commands, *forces, *s.parameters]
    for name in asked:
        if name not in known:
            raise InputError(f'inputs of "{s.mechanism.name}": {unknown("input", name, known)}')
    added = [n for n in (*asked, *also) if n not in s.inputs and n not in s.parameters]
    return Open(_wider(s, [n for n in commands if n in added], [n for n in forces if n in added]), asked, s)


def where_of(plant: Mechanism | System, at: Any) -> dict[str, Any]:
    """What says where, as a mapping: None, an array (q), a mapping, the row of a record, or something that rests.

    What rests may be of another plant, as of one without its control: then what this one has of it counts.
    """
    if at is None:
        return {}
    if isinstance(at, Mapping):
        return dict(at)  # of a record, what it stores
    if not hasattr(at, "plant"):
        return {"q": at}
    if at.plant is plant:
        return dict(at.at)
    s = opened(plant).system
    known = ("q", "t", *(x.name for x in s.states), *s.inputs, *s.parameters)
    return {name: x for name, x in at.at.items() if name in known}


def forces_in(names: Iterable[Any]) -> tuple[str, ...]:
    """Commands and forces among names: inputs that a system may have only because somebody gives them."""
    return tuple(n for n in names if isinstance(n, str) and n.endswith((".tau", ".command")))


def command_name(s: System, joint: str) -> str:
    """What a command is called: without actuators it is the force itself."""
    return f"{joint}.{'command' if s.actuators else 'tau'}"


def _wider(s: System, commands: Sequence[str], forces: Sequence[str]) -> System:
    """The system with these commands and forces as inputs, behind those that it has."""
    if not commands and not forces:
        return s
    names = (*s.inputs, *commands, *forces)
    pushed = tuple(IdealTorque(name.removesuffix(".tau")) for name in forces)
    return replace(
        s,
        actuators=(*s.actuators, *pushed),
        control=Widened(s, tuple(commands), tuple(forces)),
        inputs=names,
        defaults={**s.defaults, **dict.fromkeys((*commands, *forces), 0.0)},
        free=(*s.free, s.control),
    )


@dataclass(frozen=True, eq=False)
class Widened:
    """The control of a system, if it has one, and what comes in beside it."""

    system: System
    commands: tuple[str, ...]
    forces: tuple[str, ...]

    @property
    def __name__(self) -> str:
        return self.system.control_name if self.system.control is not None else "inputs"

    def __call__(self, t: Scalar, q: Any, v: Any, x: Any, u: Any) -> Any:
        s = self.system
        given, rates = s.commanded(t, [*q, *v, *x], list(u)[: len(s.inputs)])
        own = [command_name(s, n) for n in s.commands]
        total = [g + u[n] if n in self.commands else g for g, n in zip(given, own, strict=True)]
        total += [u[n] for n in self.forces]
        return (total, rates) if s.control_states else total
