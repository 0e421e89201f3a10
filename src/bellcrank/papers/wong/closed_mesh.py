"""Program of the mesh for closed chains (wong1991, section 6.4.3): P = H-bar G takes the place of H-bar.

The velocities of all joints follow from those of n independent coordinates, dq_r = G dq (6.7), and their accelerations
are ddq_r = G ddq + g with g = dG dq (6.10). Then M_c = P^T M P (6.13, 6.15), and the force vector is P^T [dL; m p''],
with dL and p'' of the accelerations g (6.14). Mimic joints have a constant G.

    host       G and g, from the equations of the loops; it gets all angles anyway (section 4.5)
    row 0      as for a tree, with g in dw and p'', then the products with P and with the joints' forces
    row 1      P: c and h of unit velocities of the independent coordinates, passed on east and south
    rows 1..n  J c and m h: processor (a, i) has the vectors of body i and coordinate a
    all        the sums of the products move to the column of their coordinate, from both sides
    all        the equations are solved as for a tree; the n accelerations move along row 0, where all others follow

The thesis asks how P can be computed by few processors. Here column i of P follows from that of its parent,
c_i = A c_p + z G and h_i = A (h_p + c_p x l) + k x c_i, as c and rho do in a tree. There is one column for each body
and one row for each independent coordinate, so that no processors are needed for dependent coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from bellcrank.dynamics.loops import analysis
from bellcrank.dynamics.loops.constrained_dynamics import CoordinatePartition
from bellcrank.dynamics.loops.constraint_equations import loop_equations
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints
from bellcrank.dynamics.loops.coordinate_partitioning import choose_pivots, eliminate_unknowns
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from bellcrank.papers.wong.atom_programs import Cpu, MeshProgram, column_path
from bellcrank.papers.wong.mesh_atoms import angular, gyroscopic, momentum
from bellcrank.papers.wong.mesh_bodies import MechanismSymbols, MeshArm, MeshBody, body_of
from bellcrank.papers.wong.mesh_solver import Equations, append_solver
from bellcrank.papers.wong.processor_assignment import HOST, Applied, append_kinematics
from bellcrank.scalar import Scalar, is_zero
from bellcrank.spatial.vector import NO_MOTION, ZERO, Mat, Motion, Vec, weighted_sum


def independent_coordinates(mechanism: Mechanism) -> tuple[list[int], CoordinatePartition]:
    """Return the independent elements of v of a `mechanism`, and the partition that makes them so."""
    loops, tree = analysis(mechanism), mechanism.tree
    C = evaluate_constraints(tree, loops.samples[0]).C[list(loops.rank.rows)] * loops.rank.natural(mechanism.nv)
    partition = CoordinatePartition(loops.rank, tuple(choose_pivots(C, loops.pattern, loops.rank)))
    return partition.independent(mechanism.nv), partition


def closed_arm(mechanism: Mechanism, symbols: MechanismSymbols) -> MeshArm:
    """Return the bodies of a mechanism, one column each; the columns of axes are numbers of coordinates.

    Parameters
    ----------
    mechanism
        Mechanism with loops or mimic joints.
    symbols
        Its inputs on a tape.
    """
    tree = symbols.tree
    bodies = [
        body_of(symbols, i, i + 1, link.parent + 1, [k + 1 for k in link.v_index]) for i, link in enumerate(tree.links)
    ]
    return MeshArm(mechanism.name, tuple(bodies), tree.gravity, (ZERO, ZERO), 0.0, symbols.inputs)


def write_closed_program(
    mechanism: Mechanism, symbols: MechanismSymbols, applied: Applied
) -> tuple[MeshProgram, Equations]:
    """Return the program of a mechanism with loops or mimic joints, whose outputs are the values a[1], a[2], ...

    Parameters
    ----------
    mechanism
        The mechanism.
    symbols
        Its inputs on a tape.
    applied
        Names of the values that are further forces on the coordinates, on the processors of row 0.
    """
    free, partition = independent_coordinates(mechanism)
    arm, n = closed_arm(mechanism, symbols), len(free)
    if not n:
        raise InputError(f"{mechanism.name} cannot move: its loops leave no freedom, and the mesh has no rows.")
    p = MeshProgram(arm)
    columns = max(len(arm.bodies), n)
    equations = Equations(n, columns - n, [0.0] * n, [(lambda: 0.0, ())] * n)
    _append_host(p, symbols, free, partition)
    for body in arm.bodies:
        _append_momenta(p, body)
        _append_velocities(p, body, n)
    for a in range(n + 1):
        for i in range(1, columns + 1):
            if i <= len(arm.bodies):
                _append_products(p, arm.bodies[i - 1], a, n, applied)
            for b in range(max(a, 1), n + 1):
                _append_sum(p, a, i, b, equations, columns)
    append_solver(p, equations)
    _append_accelerations(p, equations, mechanism.nv)
    return p, equations


def coordinate_processor(arm: MeshArm, coordinate: int) -> Cpu:
    """Return the processor of row 0 that has the joint of a coordinate.

    Parameters
    ----------
    arm
        The bodies.
    coordinate
        Its number, from 1; the first joint has it where others mimic it.
    """
    return 0, next(b.number for b in arm.bodies if any(axis.column == coordinate for axis in b.axes))


def null_space(
    symbols: MechanismSymbols, free: Sequence[int], partition: CoordinatePartition
) -> tuple[list[list[Scalar]], list[Scalar]]:
    """Return G by rows, and g = dG dq.

    Parameters
    ----------
    symbols
        Inputs of the mechanism.
    free
        Indices of the independent coordinates.
    partition
        The partition of the coordinates.
    """
    G: list[list[Scalar]] = [[float(k == f) for f in free] for k in range(symbols.tree.nv)]
    g: list[Scalar] = [0.0] * symbols.tree.nv
    if partition.order:
        rows = partition.rank.select(loop_equations(symbols.tree, list(symbols.q), list(symbols.v)))
        lines = eliminate_unknowns([e.row for e in rows], partition.order, [{"gamma": -e.bias} for e in rows]).lines
        for c, line in lines.items():
            G[c] = [-line.get(f, 0.0) for f in free]
            g[c] = line.get("gamma", 0.0)
    return G, g


def _append_host(
    p: MeshProgram, symbols: MechanismSymbols, free: Sequence[int], partition: CoordinatePartition
) -> None:
    nv, n = symbols.tree.nv, len(free)
    names = [f"G[{k},{a}]" for k in range(1, nv + 1) for a in range(1, n + 1)] + [f"g[{k}]" for k in range(1, nv + 1)]

    def elements() -> tuple[Scalar, ...]:
        G, g = null_space(symbols, free, partition)
        return (*(x for row in G for x in row), *g)

    p.append(HOST, " ".join(names), (), elements)
    for body in p.arm.bodies:
        for axis in body.axes:
            east = [(0, i) for i in range(body.number + 1)]
            p.add_route(f"g[{axis.column}]", east)
            for a in range(1, n + 1):
                p.add_route(f"G[{axis.column},{a}]", [*east, *column_path(body.number, 1, a)])


def _append_momenta(p: MeshProgram, body: MeshBody) -> None:
    """Append the program of row 0, with J w and J dw computed there: row 1 has enough to do."""
    i, cpu = body.number, (0, body.number)
    append_kinematics(p, body, p.arm.way, driven=True)
    p.append(cpu, f"a[{i}]J", (f"w[{i}]",), lambda w: angular(body.J, w))
    p.append(cpu, f"b[{i}]J", (f"dw[{i}]",), lambda dw: angular(body.J, dw))
    takes = (f"w[{i}]", f"a[{i}]J", f"p[{i}]")
    p.append(cpu, f"cm[{i}] mp[{i}]", takes, lambda w, a, x: gyroscopic(w, a, body.m, x))
    p.append(cpu, f"L[{i}]", (f"cm[{i}]", f"b[{i}]J"), momentum)


def _append_velocities(p: MeshProgram, body: MeshBody, n: int) -> None:
    """Append P of one body: c and h for each of n independent coordinates, and their products with J and m."""
    i, parent, cpu = body.number, body.parent, (1, body.number)
    p.append(cpu, f"A'[{i}]", (), body.rotation)
    length = f"l'[{i}]"
    p.append(cpu, length, (), body.l if callable(body.l) else partial(_constant, body.l))
    for a in range(1, n + 1):
        c, h = f"c[{i},{a}]", f"h[{i},{a}]"
        G = [f"G[{axis.column},{a}]" for axis in body.axes]
        p.append(cpu, f"u[{i},{a}]", G, lambda *G: weighted_sum([x.motion() for x in body.axes], G, NO_MOTION))
        if parent:
            last = f"c[{parent},{a}]", f"h[{parent},{a}]"
            for value in last:
                p.add_route(value, p.arm.way(1, parent, i))
            p.append(cpu, c, (f"A'[{i}]", last[0], f"u[{i},{a}]"), lambda A, c, u: A @ c + u.ang)
            takes = (f"A'[{i}]", *last, length, c, f"u[{i},{a}]")
            p.append(cpu, h, takes, lambda *given: carried_velocity(*given, k=body.k))
        else:
            p.append(cpu, c, (f"u[{i},{a}]",), lambda u: u.ang)
            p.append(cpu, h, (c, f"u[{i},{a}]"), lambda c, u: body.k.cross(c) + u.lin)
        for value in (c, h):
            p.add_route(value, column_path(i, 1, a))
            p.add_route(value, [cpu, (0, i)])
    for a in range(1, n + 1):
        p.append((a, i), f"P[{i},{a}]", (f"c[{i},{a}]",), lambda c: angular(body.J, c))
        p.append((a, i), f"mh[{i},{a}]", (f"h[{i},{a}]",), lambda h: h * body.m)


def _constant(value: Vec) -> Vec:
    return value


def carried_velocity(A: Mat, c: Vec, h: Vec, l: Vec, turned: Vec, u: Motion, *, k: Vec) -> Vec:
    """Return h_i = A (h_p + c_p x l) + k x c_i + d G, the velocity of the centre of mass of body i.

    Parameters
    ----------
    A
        Rotation from the parent.
    c, h
        Vectors of the parent.
    l
        From the parent's centre of mass to the joint.
    turned
        c of body i.
    u
        Velocity of the joint.
    k
        From the centre of mass of body i to the joint.
    """
    return A @ (h + c.cross(l)) + k.cross(turned) + u.lin


def _append_products(p: MeshProgram, body: MeshBody, a: int, n: int, applied: Applied) -> None:
    """Append the products of row a with all coordinates, and the terms of the joint: rotors, or in row 0 forces."""
    i, cpu = body.number, (a, body.number)
    for b in range(max(a, 1), n + 1):
        takes = [f"c[{i},{b}]", f"h[{i},{b}]", *((f"P[{i},{a}]", f"mh[{i},{a}]") if a else (f"L[{i}]", f"mp[{i}]"))]
        columns = [axis.column for axis in body.axes]
        if a:
            rotors = [axis for axis in body.axes if not is_zero(axis.rotor)]
            takes += [f"G[{axis.column},{x}]" for axis in rotors for x in (a, b)]
            p.append(cpu, f"x[{a},{i},{b}]", takes, partial(_mass_product, [axis.rotor for axis in rotors]))
            continue
        takes += [f"{name}[{k}]" if name == "g" else f"{name}[{k},{b}]" for k in columns for name in ("G", "g")]
        own = {k: tuple(applied.get(k, ())) for k in columns if coordinate_processor(p.arm, k) == cpu}
        takes += [name for names in own.values() for name in names]
        counts = [len(own.get(k, ())) for k in columns]
        p.append(cpu, f"x[0,{i},{b}]", takes, partial(_force_product, body, counts))


def _mass_product(rotors: Sequence[Scalar], c: Vec, h: Vec, P: Vec, p: Vec, *G: Scalar) -> Scalar:
    """Return c . P + h . p, plus the rotors' part of G^T M G; `G` has two elements for each of the `rotors`."""
    total = c.dot(P) + h.dot(p)
    for k, rotor in enumerate(rotors):
        total = total + rotor * (G[2 * k] * G[2 * k + 1])
    return total


def _force_product(body: MeshBody, counts: Sequence[int], c: Vec, h: Vec, L: Vec, p: Vec, *given: Scalar) -> Scalar:
    """Return c . L + h . p, less G times the forces of the joint.

    Parameters
    ----------
    body
        The body.
    counts
        Number of further forces on each coordinate of the joint.
    c, h, L, p
        Vectors of the body.
    given
        G and g of each coordinate, then the further forces.
    """
    total, further = c.dot(L) + h.dot(p), list(given[2 * len(body.axes) :])
    for k, (axis, count) in enumerate(zip(body.axes, counts, strict=True)):
        G, g = given[2 * k : 2 * k + 2]
        force = axis.force() - axis.rotor * g
        for _ in range(count):
            force = force + further.pop(0)
        total = total - G * force
    return total


def _append_sum(p: MeshProgram, a: int, i: int, b: int, equations: Equations, columns: int) -> None:
    """Append one partial sum: sums move west and east to the column of coordinate b."""
    cpu, goal = (a, i), equations.column(b)
    takes = [f"x[{a},{i},{b}]"] if i <= len(p.arm.bodies) else []
    if goal <= i < columns:
        takes.append(f"S[{a},{i + 1},{b}]")
        p.add_route(takes[-1], [(a, i + 1), cpu])
    if 1 < i <= goal:
        takes.append(f"E[{a},{i - 1},{b}]")
        p.add_route(takes[-1], [(a, i - 1), cpu])
    p.append(cpu, f"{'S' if i >= goal else 'E'}[{a},{i},{b}]", takes, _sum)


def _sum(*terms: Scalar) -> Any:
    total: Scalar = 0.0
    for x in terms:
        total = total + x
    return total


def _append_accelerations(p: MeshProgram, equations: Equations, nv: int) -> None:
    """Append ddq_r = G ddq + g (6.10) on the processors of the joints."""
    exit_column = equations.column(1)
    for k in range(1, nv + 1):
        cpu = coordinate_processor(p.arm, k)
        goal = cpu[1]
        for x in equations.solution_names:
            step = 1 if goal > exit_column else -1
            p.add_route(x, [(0, i) for i in range(exit_column, goal + step, step)])
        G = [f"G[{k},{a}]" for a in range(1, equations.n + 1)]
        p.append(cpu, f"a[{k}]", [f"g[{k}]", *G, *equations.solution_names], _lifted)


def _lifted(g: Scalar, *given: Scalar) -> Scalar:
    n = len(given) // 2
    return g + _sum(*(x * y for x, y in zip(given[:n], given[n:], strict=True)))
