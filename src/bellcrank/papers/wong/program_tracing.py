"""Trace of a multiprocessor program as one graph, and the cost of its atoms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.errors import InputError
from bellcrank.graph import Node, Tape
from bellcrank.nodes.tape import Table
from bellcrank.papers.wong.atom_programs import Cpu, MeshProgram
from bellcrank.scalar import step
from bellcrank.spatial.vector import Mat, Vec


class ProcessorTape(Tape):
    """Tape with one node table per processor: equal operations on two processors stay two nodes."""

    def __init__(self) -> None:
        super().__init__()
        self._tables: dict[Cpu, Table] = {}

    def select(self, cpu: Cpu) -> None:
        """Record the following operations for the processor `cpu`."""
        self.table = self._tables.setdefault(cpu, defaultdict(dict))


@dataclass(frozen=True)
class Cost:
    """Number of operations."""

    M: int  # multiplications and divisions
    A: int  # additions and subtractions

    def __add__(self, o: Cost) -> Cost:
        return Cost(self.M + o.M, self.A + o.A)

    def time(self, multiply: float = 1.0, add: float = 0.5) -> float:
        """Return the execution time, in the unit of the times `multiply` per multiplication and `add` per addition."""
        return multiply * self.M + add * self.A

    def __str__(self) -> str:
        return f"{self.M} M, {self.A} A"


ZERO_COST = Cost(0, 0)


def count_cost(nodes: Sequence[Node]) -> Cost:
    """Count the operations among `nodes`."""
    ops = [node.op for node in nodes]
    return Cost(ops.count("mul") + ops.count("div"), ops.count("add") + ops.count("sub"))


def trace_program(tape: ProcessorTape, written: MeshProgram) -> tuple[dict[str, Any], dict[str, tuple[Node, ...]]]:
    """Trace a program, with the processors in turn, each as far as its operands are available.

    Return the values by name, and the nodes of every atom by the atom's name.

    Parameters
    ----------
    tape
        Tape of the graph.
    written
        Program.
    """
    values: dict[str, Any] = {}
    nodes: dict[str, tuple[Node, ...]] = {}
    pending = {cpu: list(reversed(atoms)) for cpu, atoms in written.atoms.items()}
    while any(pending.values()):
        count = len(values)
        for cpu, atoms in pending.items():
            tape.select(cpu)
            while atoms and all(value in values for value in atoms[-1].operands):
                atom, first_node = atoms.pop(), len(tape.nodes)
                step(atom.name)
                results = atom.function(*(values[value] for value in atom.operands))
                values |= zip(atom.results, results if len(atom.results) > 1 else (results,), strict=True)
                nodes[atom.name] = tuple(node for node in tape.nodes[first_node:] if node.op != "input")
        if len(values) == count:
            stuck = next(atoms[-1] for atoms in pending.values() if atoms)
            raise InputError(f'"{stuck.name}" on {stuck.cpu} waits for a value that never arrives.')
    step("")
    return values, nodes


def scalars_of(value: Any) -> list[Any]:
    """Return the scalars of `value`, a matrix, vector or scalar."""
    if isinstance(value, Mat):
        return [x for row in value.rows for x in row]
    return list(value) if isinstance(value, Vec) else [value]
