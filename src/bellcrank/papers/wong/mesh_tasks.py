"""Tasks of the mesh: one for each atom, and one for each value that a processor only forwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from bellcrank.graph import Graph, Node
from bellcrank.papers.wong.atom_programs import Atom, Cpu, MeshProgram
from bellcrank.scheduling import Task, Tasks

Entry = tuple[int, Cpu, str, Atom | None]  # cycle, processor, name of the atom or the value; None for a forwarded value


@dataclass(frozen=True)
class MeshTasks:
    """Translation of the program of a mesh to tasks.

    Parameters
    ----------
    graph
        Graph of all atoms.
    program
        Atoms of each processor.
    atoms
        Atoms by the names of their results.
    nodes
        Nodes of an atom, by its name.
    scalars
        Words of a value; none for constants.
    message_routes
        Sender of each (value, processor).
    arrivals
        Cycle in which each value is computed on, or arrives at, a processor.
    """

    graph: Graph
    program: MeshProgram
    atoms: Mapping[str, Atom]
    nodes: Mapping[str, tuple[Node, ...]]
    scalars: Mapping[str, tuple[Node, ...]]
    message_routes: Mapping[tuple[str, Cpu], Cpu]
    arrivals: Mapping[tuple[str, Cpu], int]

    @cached_property
    def forwarded(self) -> set[tuple[str, Cpu]]:
        """Values that a processor receives and sends on."""
        routes = self.message_routes
        return {(value, sender) for (value, _), sender in routes.items() if (value, sender) in routes}

    @cached_property
    def entries(self) -> list[Entry]:
        """Atoms and forwarded values, in the order of the cycles."""
        entries: list[Entry] = [
            (self.arrivals[atom.name, cpu], cpu, atom.name, atom)
            for cpu, atoms in self.program.atoms.items()
            for atom in atoms
        ]
        entries += [(self.arrivals[value, cpu], cpu, value, None) for value, cpu in self.forwarded]
        return sorted(entries, key=lambda t: (t[0], t[1], t[3] is None, t[2]))

    @cached_property
    def indices(self) -> dict[tuple[str, Cpu], int]:
        """Index of the task of each (atom or value, processor)."""
        return {(name, cpu): k for k, (_, cpu, name, _) in enumerate(self.entries)}

    @cached_property
    def makers(self) -> dict[int, tuple[int, Cpu]]:
        """Task and processor that compute each node, by serial number."""
        rows = ((k, cpu, self.nodes[name]) for k, (_, cpu, name, atom) in enumerate(self.entries) if atom)
        return {n.serial: (k, cpu) for k, cpu, nodes in rows for n in nodes}

    @cached_property
    def travelling(self) -> set[str]:
        """Values that another processor needs."""
        return {value for value, _ in self.message_routes}

    def tasks(self) -> Tasks:
        """Return all tasks."""
        rows = enumerate(self.entries)
        return Tasks(self.graph.name, "atom", tuple(self._task(k, *entry[1:]) for k, entry in rows), self.graph)

    def _task(self, k: int, cpu: Cpu, name: str, atom: Atom | None) -> Task:
        if atom is None:
            words = self.scalars[name]
            return Task(k, f"{name} passes", (), {self._source(name, self.message_routes[name, cpu]): len(words)},
                        len(words), words)  # fmt: skip
        needs = {self._source(value, cpu): len(self.scalars[value]) for value in atom.operands if self.scalars[value]}
        sent = tuple(x for value in atom.results if value in self.travelling for x in self.scalars[value])
        for x in (*sent, *(a for n in self.nodes[name] for a in n.operands)):
            maker, made_on = self.makers.get(x.serial, (k, cpu))
            if maker != k and made_on == cpu:  # an equal operation of an earlier atom, which is not repeated
                needs.setdefault(maker, 1)
        return Task(k, name, self.nodes[name], dict(sorted(needs.items())), len(sent), sent)

    def _source(self, value: str, cpu: Cpu) -> int:
        """Return the task that supplies a value to a processor."""
        while self.atoms[value].cpu != cpu and (value, cpu) not in self.forwarded:
            cpu = self.message_routes[value, cpu]
        return self.indices[self.atoms[value].name if self.atoms[value].cpu == cpu else value, cpu]
