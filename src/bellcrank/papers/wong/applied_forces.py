"""Forces on the coordinates beside tau: actuators, friction, and springs between bodies (wong1991, section 6.4.4).

Actuators and friction of a joint need its own position and velocity only, which row 0 has. They are computed there, or
on a further row of processors above it, numbered -1. A processor of row 0 has no link left for that row: a T800 has
four, to both sides, to row 1 and to the last column. The forces therefore travel on the bus of section 6.4.2.

Springs between bodies need the positions of several joints. The host has all of them and computes these forces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from bellcrank.dynamics.frame_pairs import spring_torque
from bellcrank.errors import InputError
from bellcrank.graph import Tape
from bellcrank.model import Mechanism
from bellcrank.model.tree import Link
from bellcrank.papers.wong.atom_programs import Cpu, MeshProgram
from bellcrank.papers.wong.mesh_bodies import MechanismSymbols
from bellcrank.papers.wong.processor_assignment import HOST
from bellcrank.scalar import Scalar, is_zero
from bellcrank.sim.system.systems import System

ProcessorOf = Callable[[int], Cpu]  # of a coordinate, numbered from 1
UNSUPPORTED_PARTS = ("control", "wrenches", "sampled", "elements", "motions", "everywhere")


@dataclass
class AppliedForces:
    """Atoms of forces, and their names by coordinate (from 1)."""

    symbols: MechanismSymbols
    own_row: bool
    names: dict[int, list[str]] = field(default_factory=dict)
    rates: list[str] = field(default_factory=list)  # names of the rates of the actuators' states
    local: list[tuple[int, str, Callable[[], Any]]] = field(default_factory=list)  # coordinate, results, function
    springs: list[int] = field(default_factory=list)  # coordinates with forces of springs between bodies

    def add(self, coordinate: int, results: str, function: Callable[[], Any]) -> None:
        """Add an atom whose first result is a force.

        Parameters
        ----------
        coordinate
            Number of the coordinate on which it acts.
        results
            Names of the results, separated by spaces.
        function
            Function that returns them.
        """
        self.local.append((coordinate, results, function))
        self.names.setdefault(coordinate, []).append(results.split()[0])

    def append_to(self, program: MeshProgram, processor: ProcessorOf) -> None:
        """Put the atoms at the beginning of the programs of their processors.

        Parameters
        ----------
        program
            Program of the mesh.
        processor
            Processor of row 0 that needs the forces on a coordinate.
        """
        for coordinate, results, function in reversed(self.local):
            target = processor(coordinate)
            cpu = (-1, target[1]) if self.own_row else target
            program.prepend(cpu, results, function)
            if self.own_row:
                program.add_route(results.split()[0], [cpu, target])
        if self.springs:
            names = [f"spring[{k}]" for k in self.springs]
            program.prepend(HOST, " ".join(names), self._spring_forces)
            for k, name in zip(self.springs, names, strict=True):
                program.add_route(name, [(0, i) for i in range(processor(k)[1] + 1)])

    def _spring_forces(self) -> Any:
        s = self.symbols
        forces = spring_torque(s.tree, list(s.q), list(s.v))
        chosen = tuple(forces[k - 1] for k in self.springs)
        return chosen if len(chosen) > 1 else chosen[0]


def applied_forces(tape: Tape, what: Mechanism | System, symbols: MechanismSymbols, own_row: bool) -> AppliedForces:
    """Return the forces on a mechanism.

    Parameters
    ----------
    tape
        Tape that gets the inputs t, x (states of the actuators) and command.
    what
        Mechanism, or system with actuators.
    symbols
        Inputs of the mechanism.
    own_row
        If True, actuators and friction have a row of their own.
    """
    forces = AppliedForces(symbols, own_row)
    if isinstance(what, System):
        _add_actuators(forces, tape, what)
    if own_row:
        for link in symbols.tree.links:
            _add_friction(forces, link)
    if symbols.tree.springs:
        torque = spring_torque(symbols.tree, list(symbols.q), list(symbols.v))
        forces.springs = [k for k, x in enumerate(torque, 1) if not is_zero(x)]
        for k in forces.springs:
            forces.names.setdefault(k, []).append(f"spring[{k}]")
    return forces


def _add_friction(forces: AppliedForces, link: Link) -> None:
    """Add the passive forces of a joint; those of a mimic joint stay with its body."""
    s = forces.symbols
    if link.joint.mimic is not None:
        return
    for a, k in enumerate(link.v_index):
        if not is_zero(link.passive(s.q, s.v)[a]):
            forces.add(k + 1, f"friction[{k + 1}]", partial(_passive, link, s.q, s.v, a))


def _passive(link: Link, q: Sequence[Scalar], v: Sequence[Scalar], a: int) -> Scalar:
    return link.passive(q, v)[a]


def _add_actuators(forces: AppliedForces, tape: Tape, plant: System) -> None:
    """Add one atom per actuator, which gives its force and the rates of its states."""
    given = [name for name in UNSUPPORTED_PARTS if getattr(plant, name)]
    if given:
        raise InputError(
            f"{plant.mechanism.name}: the system has {given[0]}; on Wong's mesh a system consists of a mechanism "
            "and its actuators, and commands are inputs (section 5.4). Leave it out, or schedule a graph instead."
        )
    m, s = plant.mechanism, forces.symbols
    shapes: dict[str, tuple[int, ...]] = {"t": (), "x": (len(plant.states),), "command": (len(plant.commands),)}
    shapes = {name: shape for name, shape in shapes.items() if shape != (0,)}
    symbols = {name: tape.inputs(name, shape) for name, shape in shapes.items()}
    s.inputs.update(shapes)
    states, commands = list(symbols.get("x", ())), list(symbols.get("command", ()))
    positions, velocities = dict(_by_name(m, s.q, 0)), dict(_by_name(m, s.v, 1))
    first = 0
    for k, (a, own_states, command) in enumerate(plant.driven_actuators(states, commands), 1):
        index = m.columns[1].index(a.joint) + 1
        rates = [f"dx[{first + i + 1}]" for i in range(len(a.states))]
        first += len(a.states)
        forces.rates += rates
        arguments = np.ravel(symbols["t"])[0], positions[a.joint], velocities[a.joint], own_states, command
        forces.add(index, " ".join([f"act[{k}]", *rates]), partial(_actuated, a, *arguments))


def _by_name(m: Mechanism, values: Sequence[Scalar], which: int) -> Iterator[tuple[str, Scalar]]:
    yield from zip(m.columns[which], values, strict=True)


def _actuated(actuator: Any, *arguments: Any) -> Any:
    force, rates = actuator(*arguments)
    return (force, *rates) if len(actuator.states) else force
