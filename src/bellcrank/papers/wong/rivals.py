"""Programs of the rival algorithms of wong1991, section 4.7, for chains of revolute joints.

    lee       Lee and Chang: composite bodies by recursive doubling, n processors on a generalised cube network; the
              rows of all columns are shared evenly
    amin      Amin-Javaheri and Orin: the same on a hypercube. Source and destination compute the same products, so that
              every value travels one hop only; each processor finishes its own column
    hwang     Hwang, Bae, Haug and Kuhl: accumulated inertias about the origin, n processors, on a hypercube as in
              table 4.9 (the authors used a shared bus)
    fijany    Fijany and Bejczy: vcrb_parallel, n (n + 1)/2 processors on a mesh
    lee_force_vector   Newton-Euler by recursive doubling, which masks as another n processors (2.1 to 2.3)

Every program is traced with one table of nodes for each processor: equal operations on two processors are two nodes.
The label of a node names its equation and its processor, "n(3)[1]": row 1 of column 3.

    A_i      from the axes of body i to the inertial ones   p_i   origin of joint i        z_i   its axis
    d_i      from joint i to joint i + 1                    c_i   centre of composite body i, from joint i
    M, J, b  mass and inertia of composite bodies           f, n  force and moment of a unit of joint j at joint i
    K_i      accumulated inertia about the origin (2.21)    B_i   motion of joint i about the origin (2.23)

Differences from the papers, which the thesis describes and counts without printing them in full: Lee's even sharing
gives the upper half of column j to processor n + 1 - j.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bellcrank.dynamics import METHODS
from bellcrank.errors import InputError
from bellcrank.graph import Graph, trace
from bellcrank.model import Tree
from bellcrank.papers import operation_counts as papers
from bellcrank.papers.wong.atom_programs import ProcessorTape
from bellcrank.scalar import Scalar, step
from bellcrank.scheduling import Machine, Schedule, tasks
from bellcrank.scheduling.machines import Topology, complete, hypercube, machine_of_kind, triangle
from bellcrank.scheduling.placement import Placement, Plan, upward_rank
from bellcrank.spatial.moves import FullRotation, Shift
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Motion, SymMat, Vec

Scan = Callable[[Sequence[Any], str, Callable[[Any, Any], Any], bool], list[Any]]
LABEL_PATTERN = re.compile(r"[^(\[]*\((\d+)\)\[.*\]")  # the processor


class Processors:
    """The tape of a program, and the processor that computes."""

    def __init__(self, tape: ProcessorTape) -> None:
        """Record on a `tape`."""
        self.tape = tape

    def at(self, processor: int, equation: str, row: int) -> None:
        """Record the following operations as those of a `processor`, for a `row` of an `equation`."""
        self.tape.select((0, processor))
        step(f"{equation}({processor})", str(row))

    def doubled(self, values: Sequence[Any], name: str, join: Callable[[Any, Any], Any], outward: bool) -> list[Any]:
        """Combine the values up to each one by recursive doubling.

        Parameters
        ----------
        values
            One value for each processor.
        name
            Label of the steps.
        join
            Combination of a part nearer to the ground and one farther from it.
        outward
            True: from the ground to each body. False: from each body to the tip.
        """
        parts, distance = list(values), 1
        while distance < len(parts):
            before = list(parts)
            for i in range(len(parts)):
                j = i - distance if outward else i + distance
                if 0 <= j < len(parts):
                    self.at(i, f"{name}{distance}", i)
                    parts[i] = join(before[min(i, j)], before[max(i, j)])
            distance *= 2
        return parts

    def exchanged(self, values: Sequence[Any], name: str, join: Callable[[Any, Any], Any], outward: bool) -> list[Any]:
        """Combine the values up to each one by exchanges along the dimensions of a hypercube.

        Both partners compute the total of their halves, so that no value travels more than one hop.

        Parameters
        ----------
        values, name, join, outward
            As in `doubled`.
        """
        size = 1 << (len(values) - 1).bit_length()
        parts: list[Any] = [*values, *[None] * (size - len(values))]  # idle processors hold and pass totals
        totals, distance = list(parts), 1
        while distance < size:
            before = list(totals)
            for i in range(size):
                j = i ^ distance
                if (j < i) == outward and before[j] is not None and parts[i] is not None:
                    self.at(i, f"{name}{distance}", i)
                    parts[i] = join(before[j], parts[i]) if outward else join(parts[i], before[j])
                low, high = before[min(i, j)], before[max(i, j)]
                if low is not None and high is not None:
                    self.at(i, f"total {name}{distance}", i)
                    totals[i] = join(low, high)
                else:
                    totals[i] = low if high is None else high
            distance *= 2
        return parts[: len(values)]


def _plus(a: Any, b: Any) -> Any:
    return a + b


@dataclass(frozen=True)
class Frames:
    """Rotations, distances, positions and axes of all joints in the inertial frame."""

    A: list[Mat]
    d: list[Vec]  # from the joint before to this one
    p: list[Vec]
    z: list[Vec]


def _frames(on: Processors, tree: Tree, q: Sequence[Scalar], scan: Scan) -> Frames:
    local: list[tuple[Mat, Vec]] = []
    for i, link in enumerate(tree.links):
        on.at(i, "A", i)
        local.append(link.transform(q).pose(IDENTITY, ZERO))
    A = scan([R for R, _ in local], "A", Mat.times, True)
    d, z = [], []
    for i, link in enumerate(tree.links):
        on.at(i, "d", i)
        d.append(A[i - 1] @ local[i][1] if i else local[i][1])
        on.at(i, "z", i)
        z.append(A[i] @ link.subspace(q)[0].ang)
    return Frames(A, d, scan(d, "p", _plus, True), z)


def _square(r: Vec) -> SymMat:
    """Return (r.r) 1 - r r^T."""
    xx, yy, zz = r.x * r.x, r.y * r.y, r.z * r.z
    return SymMat(yy + zz, xx + zz, xx + yy, -(r.x * r.y), -(r.x * r.z), -(r.y * r.z))


def _unit_forces(on: Processors, tree: Tree, frames: Frames, scan: Scan) -> tuple[list[Vec], list[Vec]]:
    """Return F_j and n_j of a unit of each joint at the joint itself, by composite bodies (2.4 to 2.10)."""
    n, m = len(tree.links), [link.inertia.m for link in tree.links]
    M = [sum(m[i:]) for i in range(n)]  # 2.4, off-line
    centre, moment, J = [], [], []
    for i, link in enumerate(tree.links):
        on.at(i, "k", i)
        centre.append(frames.A[i] @ link.inertia.centre)
        on.at(i, "mk", i)
        moment.append((frames.p[i] + centre[i]) * m[i])
        on.at(i, "J", i)
        J.append(FullRotation(frames.A[i]).up_sym(link.inertia.I_centre))
    S = scan(moment, "S", _plus, False)
    c = []
    for i in range(n):
        on.at(i, "c", i)
        c.append(S[i] * (1.0 / M[i]) - frames.p[i])  # 2.5, from joint i
    b = []
    for i in range(n):
        on.at(i, "b", i)
        own = J[i] + _square(c[i] - centre[i]) * m[i]  # r*: 2.9
        b.append(own + _square(c[i + 1] + frames.d[i + 1] - c[i]) * M[i + 1] if i + 1 < n else own)  # r: 2.7, 2.8
    composite = scan(b, "J", _plus, False)  # 2.6
    F, N = [], []
    for i in range(n):
        on.at(i, "F", i)
        F.append(frames.z[i].cross(c[i]) * M[i])  # 2.10
        on.at(i, "N", i)
        N.append(composite[i] @ frames.z[i] + c[i].cross(F[i]))  # 2.11
    return F, N


def _columns(
    on: Processors, frames: Frames, F: Sequence[Vec], N: Sequence[Vec], owner: Callable[[int, int], int]
) -> Any:
    """Return the matrix: every column from the diagonal to the ground, row i of column j on processor owner(i, j)."""
    n = len(F)
    matrix = np.zeros((n, n), dtype=object)
    for j in range(n):
        moment = N[j]
        for i in range(j, -1, -1):
            if i < j:
                on.at(owner(i, j), f"dxf,{j}", i)
                arm = frames.d[i + 1].cross(F[j])
                on.at(j, f"n,{j}", i)
                moment = moment + arm  # 2.11
            on.at(owner(i, j), f"M,{j}", i)
            matrix[i, j] = matrix[j, i] = frames.z[i].dot(moment)  # 2.12
    return matrix


def lee(on: Processors, tree: Tree, q: Sequence[Scalar]) -> Any:
    """Return the mass matrix of `tree` at `q` by the program of Lee and Chang, recorded by `on`."""
    n = len(tree.links)
    half = (n + 2) // 2  # rows of a column that its own processor keeps
    frames = _frames(on, tree, q, on.doubled)
    F, N = _unit_forces(on, tree, frames, on.doubled)
    return _columns(on, frames, F, N, lambda i, j: j if j - i < half else n - 1 - j)


def amin(on: Processors, tree: Tree, q: Sequence[Scalar]) -> Any:
    """Return the mass matrix of `tree` at `q` by the program of Amin-Javaheri and Orin, recorded by `on`."""
    frames = _frames(on, tree, q, on.exchanged)
    F, N = _unit_forces(on, tree, frames, on.exchanged)
    return _columns(on, frames, F, N, lambda i, j: j)


def hwang(on: Processors, tree: Tree, q: Sequence[Scalar]) -> Any:
    """Return the mass matrix of `tree` at `q` by the program of Hwang, Bae, Haug and Kuhl, recorded by `on`."""
    frames = _frames(on, tree, q, on.doubled)  # operations 1 to 5 of table 4.9
    n, bodies, B = len(tree.links), [], []
    for i, link in enumerate(tree.links):
        on.at(i, "J", i)
        at_joint = FullRotation(frames.A[i]).inertia(link.inertia)  # 3
        on.at(i, "M", i)
        bodies.append(Shift(frames.p[i]).inertia(at_joint))  # 6 to 8, (2.22)
        on.at(i, "B", i)
        B.append(Motion(frames.z[i], frames.p[i].cross(frames.z[i])))  # 9, (2.23)
    K = on.doubled(bodies, "K", _plus, False)  # 10, (2.21)
    matrix = np.zeros((n, n), dtype=object)
    for j in range(n):
        on.at(j, "KB", j)
        f = K[j] @ B[j]  # 11
        for i in range(j + 1):
            on.at(j, f"BKB,{j}", i)
            matrix[i, j] = matrix[j, i] = B[i].dot(f)  # 12
    return matrix


def lee_force_vector(on: Processors, tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Return the bias forces of `tree` at `q`, `v` by the program of Lee and Chang, recorded by `on`."""
    n, frames = len(tree.links), _frames(on, tree, q, on.doubled)
    turns = []
    for i in range(n):
        on.at(i, "zv", i)
        turns.append(frames.z[i] * v[i])
    w = on.doubled(turns, "w", _plus, True)
    gyration = []
    for i in range(n):
        on.at(i, "wxzv", i)
        gyration.append(w[i - 1].cross(turns[i]) if i else ZERO)
    dw = on.doubled(gyration, "dw", _plus, True)
    rises = []
    for i in range(n):
        on.at(i, "a", i)
        d = frames.d[i]
        rises.append(dw[i - 1].cross(d) + w[i - 1].cross(w[i - 1].cross(d)) if i else -tree.gravity)
    a = on.doubled(rises, "a", _plus, True)
    forces, moments = [], []
    for i, link in enumerate(tree.links):
        on.at(i, "k", i)
        k = frames.A[i] @ link.inertia.centre
        on.at(i, "F", i)
        forces.append((a[i] + dw[i].cross(k) + w[i].cross(w[i].cross(k))) * link.inertia.m)
        on.at(i, "J", i)
        J = FullRotation(frames.A[i]).up_sym(link.inertia.I_centre)
        on.at(i, "N", i)
        moments.append(J @ dw[i] + w[i].cross(J @ w[i]) + k.cross(forces[i]))
    f = on.doubled(forces, "f", _plus, False)
    for i in range(n - 1):
        on.at(i, "dxf", i)
        moments[i] = moments[i] + frames.d[i + 1].cross(f[i + 1])  # 2.2
    moment = on.doubled(moments, "n", _plus, False)
    out = []
    for i in range(n):
        on.at(i, "fv", i)
        out.append(frames.z[i].dot(moment[i]))  # 2.3
    return out


@dataclass(frozen=True)
class Rival:
    """One algorithm: its title, its program, and the network of n joints."""

    title: str
    program: Callable[..., Any] | None  # None: a method of the table, on n (n + 1)/2 processors
    topology: Callable[[int], Topology]


def _cube(n: int) -> Topology:
    return hypercube((n - 1).bit_length())


RIVALS = {
    "lee": Rival("Lee and Chang", lee, complete),
    "amin": Rival("Amin-Javaheri and Orin", amin, _cube),
    "hwang": Rival("Hwang et al.", hwang, _cube),
    "fijany": Rival("Fijany and Bejczy", None, triangle),
}


@cache
def program_graph(name: str, n: int) -> Graph:
    """Trace a program for a general chain of `n` joints.

    Parameters
    ----------
    name
        A key of RIVALS, or "force" for Lee's force vector.
    n
        Number of joints.
    """
    return traced_program(name, papers.tree(n, False))


def traced_program(name: str, tree: Tree) -> Graph:
    """Trace a program for a serial chain of revolute joints.

    Parameters
    ----------
    name
        A key of RIVALS, or "force" for Lee's force vector.
    tree
        The chain.
    """
    if any(link.kind.name != "revolute" or link.parent != i - 1 for i, link in enumerate(tree.links)):
        raise InputError(f'the program "{name}" is for a serial chain of revolute joints.')
    n = len(tree.links)
    if name == "fijany":
        function = METHODS["vcrb_parallel"].function("mass_matrix")
        return trace("fijany", lambda q: {"M": function(tree, q)}, {"q": (n,)})
    tape = ProcessorTape()
    inputs: dict[str, tuple[int, ...]] = dict.fromkeys(("q", "v") if name == "force" else ("q",), (n,))
    symbols: list[list[Scalar]] = [list(tape.inputs(key, shape)) for key, shape in inputs.items()]
    program = lee_force_vector if name == "force" else RIVALS[name].program
    assert program is not None
    result = np.array(program(Processors(tape), tree, *symbols), dtype=object)
    step("")
    return Graph(f"{name}.chain{n}", inputs, {"fv" if name == "force" else "M": result}, tape)


def processor_of(name: str, n: int, label: str) -> int:
    """Return the processor that computes the operations with a label.

    Parameters
    ----------
    name
        A key of RIVALS, or "force".
    n
        Number of joints.
    label
        Label of a node.
    """
    if name != "fijany":
        match = LABEL_PATTERN.fullmatch(label)
        assert match, label
        return int(match[1])
    from bellcrank.papers.fijany import ARRAYS, equation_and_processor

    element = equation_and_processor(ARRAYS[0], n, label)[1]
    high = int((8 * element + 1) ** 0.5 - 1) // 2
    low = element - high * (high + 1) // 2
    return n + sum(n - row for row in range(low)) + high - low  # row low + 1 of the triangle


def rival_schedule(name: str, n: int, kind: str = "t800", topology: Topology | None = None) -> Schedule:
    """Return the schedule of a program on its own network, every step on its own processor.

    Parameters
    ----------
    name
        A key of RIVALS, or "force".
    n
        Number of joints.
    kind
        Cost model of the machine.
    topology
        Another network.
    """
    network = topology or (complete(n) if name == "force" else RIVALS[name].topology(n))
    return fixed_schedule(name, n, machine_of_kind(network, kind))


def fixed_schedule(name: str, n: int, machine: Machine) -> Schedule:
    """Return the schedule of a program on a `machine`; `name` and `n` are as in `rival_schedule`."""
    todo = tasks(program_graph(name, n), "cluster")
    plan = Plan(todo, machine)
    rank = upward_rank(plan)
    order = sorted(range(len(plan)), key=lambda i: (-rank[i], i))
    return Placement(plan).run(order, [processor_of(name, n, task.nodes[0].label) for task in todo])
