"""A program for the mesh: a list of atoms per processor, the routes of the values, and initial data; its trace.

Initial data of the processors are parameters of the bodies, and angles and rates of the joints:

    A_i  transforms parent coordinates into those of body i       k_i  from the centre of mass to the joint
    l_i  from the parent's centre of mass to joint i              z_i  the axis in body i's coordinates
    J_i  inertia about the centre of mass                         m_i  mass

`general_arm` builds an arm with arbitrary parameters: every number is an input, also the axis, as in a program for any
arm. It uses only the structure that table 3.1 uses: the two zeros of A_i, and that w x z has two products. `arm_of`
takes the parameters of a mechanism as constants, so that operations with zeros and constants are folded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from bellcrank.errors import InputError
from bellcrank.graph import Node, Tape
from bellcrank.model import Mechanism
from bellcrank.nodes.tape import Table
from bellcrank.scalar import Scalar, cos, sin, step
from bellcrank.spatial.vector import AXES, IDENTITY, ZERO, Mat, SymMat, Vec

Cpu = tuple[int, int]  # row, column


@dataclass(frozen=True)
class MeshBody:
    """Body of an arm, numbered from 1; 0 is the ground."""

    number: int
    parent: int
    rotation: Callable[[], Mat]  # A_i, computed on every processor that needs it
    k: Vec
    l: Vec
    z: Vec
    J: SymMat
    m: Scalar
    rate: Scalar
    joint_force: Callable[[], Scalar]  # joint force: tau plus passive forces of springs and friction
    rotor: Scalar = 0.0


@dataclass(frozen=True)
class MeshArm:
    """Tree of bodies with its inputs on the tape."""

    name: str
    bodies: tuple[MeshBody, ...]
    gravity: Vec
    ground_motion: tuple[Vec, Vec]  # angular velocity and acceleration of the ground: zero, but inputs of a general arm
    zero_sum: Scalar  # partial sum that enters the last column: zero, but an input of a general arm
    inputs: dict[str, tuple[int, ...]]

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.bodies)

    def path(self, i: int) -> list[int]:
        """Return the joints from body `i` to the ground, its own first: a row of the connectivity matrix (3.14)."""
        joints = []
        while i:
            joints.append(i)
            i = self.bodies[i - 1].parent
        return joints


def general_arm(tape: Tape, parents: Sequence[int]) -> MeshArm:
    """Return an arm whose parameters are inputs of the tape.

    Parameters
    ----------
    tape
        Tape that gets the inputs.
    parents
        Parent of each body; 0 is the ground.
    """
    n = len(parents)
    inputs: dict[str, tuple[int, ...]] = {"q": (n,), "v": (n,), "tau": (n,), "number": (18 * n + 10,)}
    q, v, tau, number = (tape.inputs(name, shape) for name, shape in inputs.items())
    numbers = iter(number)

    def vec() -> Vec:
        return Vec(next(numbers), next(numbers), next(numbers))

    def turn(angle: Scalar, c: Scalar, s: Scalar) -> Callable[[], Mat]:
        def rotation() -> Mat:  # 3.18; c and s are cosine and sine of the twist
            C, S = cos(angle), sin(angle)
            return Mat(Vec(C, c * S, s * S), Vec(-S, c * C, s * C), Vec(0.0, -s, c))

        return rotation

    bodies = []
    for i, parent in enumerate(parents):
        A = turn(q[i], next(numbers), next(numbers))
        k, l, z = vec(), vec(), vec()
        J, m = SymMat(*(next(numbers) for _ in range(6))), next(numbers)
        if not 0 <= parent <= i:
            raise InputError(f"body {i + 1} has parent {parent}; expected 0 to {i}.")
        bodies.append(MeshBody(i + 1, parent, A, k, l, z, J, m, v[i], partial(tau.__getitem__, i)))
    return MeshArm(f"any arm of {n} joints", tuple(bodies), vec(), (vec(), vec()), next(numbers), inputs)


def arm_of(tape: Tape, mechanism: Mechanism) -> MeshArm:
    """Return the arm of a mechanism, with its parameters as constants.

    Parameters
    ----------
    tape
        Tape that gets the inputs q, v and tau.
    mechanism
        Tree of revolute joints without mimic joints.
    """
    tree, n = mechanism.tree, len(mechanism.tree.links)
    inputs: dict[str, tuple[int, ...]] = {"q": (n,), "v": (n,), "tau": (n,)}
    for link in tree.links:
        if link.kind.name != "revolute" or link.joint.mimic is not None:
            raise InputError(
                f'{mechanism.name}: joint "{link.joint.name}" is {link.kind.name}; '
                "Wong's mesh needs independent revolute joints. Schedule the graph on a machine instead."
            )
    q, v, tau = (tape.inputs(name, shape) for name, shape in inputs.items())
    centres = [link.inertia.centre for link in tree.links]

    def turn(link: Any) -> Callable[[], Mat]:
        def rotation() -> Mat:
            x, y, z = (link.transform(q).down(axis) for axis in AXES)
            return Mat(x, y, z).T

        return rotation

    def load(link: Any) -> Callable[[], Scalar]:
        return lambda: tau[link.v_index[0]] + sum(link.passive(q, v))

    bodies = []
    for i, link in enumerate(tree.links):
        m, centre, J = link.inertia.m, link.inertia.centre, link.inertia.I_centre
        joint_position = link.transform([0.0] * tree.nq).pose(IDENTITY, ZERO)[1]
        l = joint_position - centres[link.parent] if link.parent >= 0 else joint_position
        joint_terms = v[link.v_index[0]], load(link), link.armature
        bodies.append(MeshBody(i + 1, link.parent + 1, turn(link), -centre, l, AXES[2], J, m, *joint_terms))
    return MeshArm(mechanism.name, tuple(bodies), tree.gravity, (ZERO, ZERO), 0.0, inputs)


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
    """Return the scalars of `value`, a matrix, vector or scalar."""
    if isinstance(value, Mat):
        return [x for row in value.rows for x in row]
    return list(value) if isinstance(value, Vec) else [value]
