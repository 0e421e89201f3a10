"""A program for many processors traced into one graph, and what its atoms cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import InputError
from bellcrank.graph import Node, Tape
from bellcrank.nodes.tape import Table
from bellcrank.papers.wong.code import Cpu, Program
from bellcrank.scalar import step
from bellcrank.spatial.vector import Mat, Vec


class Apart(Tape):
    """A tape on which the same operation on two processors is two nodes: they do not know each other's results."""

    def __init__(self) -> None:
        super().__init__()
        self._tables: dict[Cpu, Table] = {}

    def at(self, cpu: Cpu) -> None:
        self.table = self._tables.setdefault(cpu, defaultdict(dict))


@dataclass(frozen=True)
class Cost:
    M: int  # multiplications and divisions
    A: int  # additions and subtractions

    def __add__(self, o: Cost) -> Cost:
        return Cost(self.M + o.M, self.A + o.A)

    def time(self, multiply: float = 1.0, add: float = 0.5) -> float:
        return multiply * self.M + add * self.A

    def __str__(self) -> str:
        return f"{self.M} M, {self.A} A"


NOTHING = Cost(0, 0)


def cost(nodes: Sequence[Node]) -> Cost:
    ops = [node.op for node in nodes]
    return Cost(ops.count("mul") + ops.count("div"), ops.count("add") + ops.count("sub"))


def traced(tape: Apart, written: Program) -> tuple[dict[str, Any], dict[str, tuple[Node, ...]]]:
    """The values by name, and the nodes of every atom by its name. Processors take turns, each as far as it gets."""
    values: dict[str, Any] = {}
    nodes: dict[str, tuple[Node, ...]] = {}
    todo = {cpu: list(reversed(atoms)) for cpu, atoms in written.of.items()}
    while any(todo.values()):
        before = len(values)
        for cpu, atoms in todo.items():
            tape.at(cpu)
            while atoms and all(value in values for value in atoms[-1].takes):
                atom, since = atoms.pop(), len(tape.nodes)
                step(atom.name)
                found = atom.does(*(values[value] for value in atom.takes))
                values |= zip(atom.gives, found if len(atom.gives) > 1 else (found,), strict=True)
                nodes[atom.name] = tuple(node for node in tape.nodes[since:] if node.op != "input")
        if len(values) == before:
            stuck = next(atoms[-1] for atoms in todo.values() if atoms)
            raise InputError(f'"{stuck.name}" on {stuck.cpu} waits for what never comes.')
    step("")
    return values, nodes


def flat(value: Any) -> list[Any]:
    if isinstance(value, Mat):
        return [x for row in value.rows for x in row]
    return list(value) if isinstance(value, Vec) else [value]
