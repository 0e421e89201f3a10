"""A program for the mesh: a list of atoms per processor, and the routes of the values; its trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bellcrank.errors import InputError
from bellcrank.graph import Node, Tape
from bellcrank.nodes.tape import Table
from bellcrank.papers.wong.mesh_bodies import MeshArm
from bellcrank.scalar import step
from bellcrank.spatial.vector import Mat, Motion, Vec

Cpu = tuple[int, int]  # row, column


@dataclass(frozen=True)
class Atom:
    """One operation on a processor, with the names of its operands and results."""

    cpu: Cpu
    results: tuple[str, ...]
    operands: tuple[str, ...]
    function: Callable[..., Any]  # function of the operands; returns one value, or a tuple if there are several results

    @property
    def name(self) -> str:
        """Name of the atom: that of its last result."""
        return self.results[-1]


@dataclass
class MeshProgram:
    """Atoms of each processor in order, and routes of the values."""

    arm: MeshArm
    atoms: dict[Cpu, list[Atom]] = field(default_factory=dict)
    ways: dict[tuple[str, Cpu], Cpu] = field(default_factory=dict)  # (value, processor) -> neighbour that sends it

    def append(self, cpu: Cpu, gives: str, takes: Sequence[str], does: Callable[..., Any]) -> None:
        """Append an atom to the program of a processor.

        Parameters
        ----------
        cpu
            Processor.
        gives
            Names of the results, separated by spaces.
        takes
            Names of the operands.
        does
            Function of the operands.
        """
        self.atoms.setdefault(cpu, []).append(Atom(cpu, tuple(gives.split()), tuple(takes), does))

    def prepend(self, cpu: Cpu, gives: str, does: Callable[..., Any]) -> None:
        """Put an atom without operands at the beginning of the program of a processor.

        Parameters
        ----------
        cpu
            Processor.
        gives
            Names of the results, separated by spaces.
        does
            Function without operands.
        """
        self.atoms.setdefault(cpu, []).insert(0, Atom(cpu, tuple(gives.split()), (), does))

    def add_route(self, value: str, way: Sequence[Cpu]) -> None:
        """Route `value` along `way`, a sequence of neighbouring processors."""
        for a, b in pairwise(way):
            self.ways.setdefault((value, b), a)


def column_path(i: int, a: int, b: int) -> list[Cpu]:
    """Return the processors of column `i` from row `a` to row `b`."""
    return [(r, i) for r in (range(a, b + 1) if a <= b else range(a, b - 1, -1))]


# -- trace


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


def count_cost(nodes: Sequence[Node]) -> Cost:
    """Count the operations among `nodes`."""
    ops = [node.op for node in nodes]
    return Cost(ops.count("mul") + ops.count("div"), ops.count("add") + ops.count("sub"))


RECEIVED = "received"  # name of the inputs that stand for received scalars while a program is traced


@dataclass(frozen=True)
class TracedProgram:
    """Operations of a program: its tape, the values by name, and the nodes of every atom by the atom's name."""

    tape: Tape
    values: Mapping[str, Any]
    nodes: Mapping[str, tuple[Node, ...]]


def trace_program(tape: ProcessorTape, written: MeshProgram) -> TracedProgram:
    """Trace a program, with the processors in turn, each as far as its operands are available.

    A processor knows only the numbers that it receives, not how they were computed: they are inputs while it is traced,
    so that no operation folds with one of another processor.

    Parameters
    ----------
    tape
        Tape of the graph.
    written
        Program.
    """
    values: dict[str, Any] = {}
    nodes: dict[str, tuple[Node, ...]] = {}
    makers: dict[str, Cpu] = {}
    pending = {cpu: list(reversed(atoms)) for cpu, atoms in written.atoms.items()}
    while any(pending.values()):
        count = len(values)
        for cpu, atoms in pending.items():
            tape.select(cpu)
            while atoms and all(value in values for value in atoms[-1].operands):
                atom, first_node = atoms.pop(), len(tape.nodes)
                step(atom.name)
                operands = [values[x] if makers[x] == cpu else received(values[x]) for x in atom.operands]
                results = atom.function(*operands)
                values |= zip(atom.results, results if len(atom.results) > 1 else (results,), strict=True)
                makers |= dict.fromkeys(atom.results, cpu)
                nodes[atom.name] = tuple(node for node in tape.nodes[first_node:] if node.op != "input")
        if len(values) == count:
            stuck = next(atoms[-1] for atoms in pending.values() if atoms)
            raise InputError(f'"{stuck.name}" on {stuck.cpu} waits for a value that never arrives.')
    step("")
    return _linked(tape, values, nodes)


def received(x: Any) -> Any:
    """Return the matrix, vector or scalar `x` with an input in place of every operation."""
    if isinstance(x, Mat):
        return Mat(*map(received, x.rows))
    if isinstance(x, Vec):
        return Vec(*map(received, x))
    return x.tape.node("input", RECEIVED, x.serial) if isinstance(x, Node) and x.op != "input" else x


def _linked(tape: Tape, values: Mapping[str, Any], nodes: Mapping[str, tuple[Node, ...]]) -> TracedProgram:
    """Return the program with the operations of the senders in place of received scalars."""
    linked, counterpart = Tape(), dict[int, Any]()
    for node in tape.nodes:
        if node.op == "input":
            name, k = node.args
            counterpart[node.serial] = counterpart[k] if name == RECEIVED else linked.node("input", name, k)
            continue
        arguments = tuple(counterpart[a.serial] if isinstance(a, Node) else a for a in node.args)
        counterpart[node.serial] = Node(linked, node.op, arguments, len(linked.nodes), node.label)
        linked.nodes.append(counterpart[node.serial])

    def mapped(x: Any) -> Any:
        if isinstance(x, Mat | Vec):
            return type(x)(*map(mapped, x.rows if isinstance(x, Mat) else x))
        return counterpart[x.serial] if isinstance(x, Node) else x

    known = {name: mapped(value) for name, value in values.items()}
    return TracedProgram(linked, known, {name: tuple(map(mapped, them)) for name, them in nodes.items()})


def scalars_of(value: Any) -> list[Any]:
    """Return the scalars of `value`, a matrix, vector, motion or scalar."""
    if isinstance(value, Motion):
        return [*value.ang, *value.lin]
    if isinstance(value, Mat):
        return [x for row in value.rows for x in row]
    return list(value) if isinstance(value, Vec) else [value]
