"""Assignment of the computation to processors, one ordered list per processor (wong1991, sections 4.2 to 4.5).

    row 0      A, w, dw, W, W k, W l, p'', then dL and m p'': the force vector
    row 1      A, then c and rho of all ancestor joints in turn, passed on east and south; J w and J dw for row 0
    rows 1..n  J c and m (rho x c): processor (j, i) has the vectors of body i and joint j
    all        H^T: the vectors [c; rho x c] of a column move north, one row at a time, the sums of the products west
    all        the matrix moves to row 1 and b to (0, n), and the equations are solved feed-forward

An atom of computation takes about as long as sending three numbers to a neighbour: a matrix-vector product, or a cross
product with further terms. Costs are not stored: they are counted when the atoms are traced. The printed costs are in
the tests. Columns, rows and equations are numbered as in the thesis. A value moves from neighbour to neighbour, and
every processor on its route may keep it. Where a mechanism branches, rows 0 and 1 follow the tree (section 6.4.2);
other rows are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bellcrank.papers.wong.atom_programs import Cpu, MeshProgram, column_path
from bellcrank.papers.wong.mesh_atoms import (
    acceleration,
    angular,
    arm_of_force,
    body_velocity,
    carried,
    centripetal,
    displaced,
    forwarded,
    gyroscopic,
    known_acceleration,
    linear,
    momentum,
    projected,
    slide_acceleration,
    turned,
    velocity,
)
from bellcrank.papers.wong.mesh_bodies import MeshArm, MeshAxis, MeshBody
from bellcrank.papers.wong.mesh_solver import Equations, append_solver
from bellcrank.spatial.vector import Vec

Way = Callable[[int, int, int], Sequence[Cpu]]
Applied = Mapping[int, Sequence[str]]
HOST: Cpu = (0, 0)


def write_program(
    arm: MeshArm, balanced: bool = True, passed: bool = True, solver: bool = True, applied: Applied | None = None
) -> MeshProgram:
    """Return the program of the mesh for `arm`.

    Parameters
    ----------
    arm
        Arm or tree.
    balanced
        If True, row 1 computes J w and J dw for row 0.
    passed
        If True, rho x c is sent north; else it is computed again on every processor that needs it.
    solver
        If True, the equations are solved on the mesh too.
    applied
        Names of the values that are further forces on the coordinates, by column, on the processors of row 0.
    """
    p = MeshProgram(arm)
    for body in arm.bodies:
        _momenta(p, body, balanced)
        _complement(p, body, balanced, passed)
    _sweep(p, passed)
    if solver:
        append_solver(p, tree_equations(arm, applied or {}))
    return p


def tree_equations(arm: MeshArm, applied: Applied) -> Equations:
    """Return the equations of a tree, whose matrix is M.

    Parameters
    ----------
    arm
        The tree.
    applied
        Names of further forces by column.
    """
    axes = [axis for body in arm.bodies for axis in body.axes]
    loads = [(axis.force, tuple(applied.get(axis.column, ()))) for axis in axes]
    return Equations(len(axes), 0, [axis.rotor for axis in axes], loads)


def _momenta(p: MeshProgram, body: MeshBody, balanced: bool) -> None:
    """Append the program of row 0 (tables 4.3 and 4.6)."""
    i, cpu = body.number, (0, body.number)
    append_kinematics(p, body, p.arm.way)
    if not balanced:
        _rates(p, cpu, body)

        def both_momenta(w: Vec, a: Vec, b: Vec, x: Vec) -> tuple[Vec, Vec]:
            c, mp = gyroscopic(w, a, body.m, x)
            return mp, momentum(c, b)

        p.append(cpu, f"mp[{i}] L[{i}]", (f"w[{i}]", f"a[{i}]", f"b[{i}]", f"p[{i}]"), both_momenta)
        return
    for value in (f"a[{i}]", f"b[{i}]"):
        p.add_route(value, [(1, i), cpu])
    takes = (f"w[{i}]", f"a[{i}]", f"p[{i}]")
    p.append(cpu, f"cm[{i}] mp[{i}]", takes, lambda w, a, x: gyroscopic(w, a, body.m, x))
    p.append(cpu, f"L[{i}]", (f"cm[{i}]", f"b[{i}]"), momentum)


def append_kinematics(p: MeshProgram, body: MeshBody, way: Way, driven: bool = False) -> None:
    """Append w, dw and p'' of a body to row 0.

    Parameters
    ----------
    p
        The program.
    body
        The body.
    way
        Processors of a row between a body and its parent.
    driven
        If True, the joint has a known acceleration (6.10): the values g[a] of its coordinates a.
    """
    i, g, (still, steady) = body.number, -p.arm.gravity, p.arm.ground_motion
    cpu, parent = (0, i), body.parent
    given = tuple(f"g[{axis.column}]" for axis in body.axes) if driven else ()
    inputs = [f"w[{parent}]", f"dw[{parent}]", f"p[{parent}]", f"Wl[{parent},{i}]"]
    p.append(cpu, f"A[{i}]", (), body.rotation)
    if callable(body.l) and parent:
        p.append(cpu, f"l[{i}]", (), body.l)
        p.add_route(f"l[{i}]", way(0, i, parent))
    if parent:
        for value in inputs:
            p.add_route(value, way(0, parent, i))
        p.append(cpu, f"w[{i}]", (f"A[{i}]", inputs[0]), lambda A, w: velocity(A, w, body))
        takes = (f"A[{i}]", inputs[1], f"w[{i}]", *given)
        p.append(cpu, f"dw[{i}]", takes, lambda A, dw, w, *g: acceleration(A, dw, w, body, g))
    elif body.motion is None:
        p.append(cpu, f"w[{i}]", (), lambda: Vec(still.x, still.y, body.rate))
        p.append(cpu, f"dw[{i}]", given, lambda *g: known_acceleration(body, g).ang + steady)
    else:
        p.append(cpu, f"w[{i}]", (), body_velocity(body))
        p.append(cpu, f"dw[{i}]", given, lambda *g: known_acceleration(body, g).ang)
    p.append(cpu, f"W[{i}]", (f"w[{i}]", f"dw[{i}]"), centripetal)
    p.append(cpu, f"Wk[{i}]", (f"W[{i}]",), lambda W: W @ body.k)
    for child in _children(p.arm, i):
        _append_reach(p, cpu, i, child)
    slide = (f"s[{i}]",) if body.slides else ()
    if slide:
        p.append(cpu, f"s[{i}]", (f"w[{i}]", *given), lambda w, *g: slide_acceleration(body, w, g))
    if parent:
        p.append(cpu, f"p[{i}]", (f"A[{i}]", inputs[2], inputs[3], f"Wk[{i}]", *slide), carried)
    else:
        takes = (f"A[{i}]", f"Wk[{i}]", *slide)
        p.append(cpu, f"p[{i}]", takes, lambda A, Wk, *s: carried(A, g, still, Wk, *s))


def _append_reach(p: MeshProgram, cpu: Cpu, i: int, child: MeshBody) -> None:
    """Append W l, the acceleration of a child's joint relative to the centre of mass of body i."""
    name, l = f"Wl[{i},{child.number}]", child.l
    if not callable(l):
        p.append(cpu, name, (f"W[{i}]",), lambda W: W @ l)
    elif child.number != i:
        p.append(cpu, name, (f"W[{i}]", f"l[{child.number}]"), lambda W, l: W @ l)


def _children(arm: MeshArm, i: int) -> list[MeshBody]:
    """Return the children of body i, or the body itself for a leaf.

    The last body of a chain computes W l like the others, for a body that may be attached to it.
    """
    return [b for b in arm.bodies if b.parent == i] or [arm.body(i)]


def _rates(p: MeshProgram, cpu: Cpu, body: MeshBody) -> None:
    i = body.number
    p.append(cpu, f"a[{i}]", (f"w[{i}]",), lambda w: angular(body.J, w))
    p.append(cpu, f"b[{i}]", (f"dw[{i}]",), lambda dw: angular(body.J, dw))


def _complement(p: MeshProgram, body: MeshBody, balanced: bool, passed: bool) -> None:
    """Append the program of rows 1..n in column i (tables 4.2 and 4.5, for other joints 6.1)."""
    i, cpu = body.number, (1, body.number)
    p.append(cpu, f"A'[{i}]", (), body.rotation)
    if callable(body.l) and body.parent:
        p.append(cpu, f"l'[{i}]", (), body.l)
    for joint in p.arm.carriers(i):
        for axis in reversed(joint.axes):
            _append_axis(p, body, axis, "c", axis.turns)
            _append_axis(p, body, axis, "t", axis.slides)
        if joint.turns:
            _append_distance(p, body, joint, passed)
    for joint in p.arm.carriers(i):
        for axis in reversed(joint.axes):
            j = axis.column
            if axis.turns:
                p.append((j, i), f"P[{i},{j}]", (f"c[{i},{j}]",), lambda c: angular(body.J, c))
            takes = _arm_operands(joint, axis, i)
            p.append((j, i), f"h[{i},{j}] mh[{i},{j}]", takes, lambda *given: linear(body.m, *given))
    if balanced:
        for value in (f"w[{i}]", f"dw[{i}]"):
            p.add_route(value, [(0, i), cpu])
        _rates(p, cpu, body)


def _append_axis(p: MeshProgram, body: MeshBody, axis: MeshAxis, kind: str, exists: bool) -> None:
    """Append c, the angular part of an axis in the coordinates of body i, or t, the linear part."""
    if not exists:
        return
    i, j, parent, cpu = body.number, axis.column, body.parent, (1, body.number)
    value, last = f"{kind}[{i},{j}]", f"{kind}[{parent},{j}]"
    if axis in body.axes:
        p.append(cpu, value, (), (lambda: axis.motion().ang) if kind == "c" else (lambda: axis.motion().lin))
    else:
        p.add_route(last, p.arm.way(1, parent, i))
        p.append(cpu, value, (f"A'[{i}]", last), turned)
    p.add_route(value, column_path(i, 1, j))
    if kind == "c":
        p.add_route(value, [cpu, (0, i)])


def _append_distance(p: MeshProgram, body: MeshBody, joint: MeshBody, passed: bool) -> None:
    """Append rho, from the centre of mass of body i to a joint."""
    i, j, parent, cpu = body.number, joint.number, body.parent, (1, body.number)
    value, last, l = f"rho[{i},{j}]", f"rho[{parent},{j}]", body.l
    if i == j:
        p.append(cpu, value, (), lambda: body.k)
    else:
        p.add_route(last, p.arm.way(1, parent, i))
        if callable(l):
            p.append(cpu, value, (f"A'[{i}]", last, f"l'[{i}]"), lambda A, r, l: displaced(A, r, l, body.k))
        else:
            p.append(cpu, value, (f"A'[{i}]", last), lambda A, r: displaced(A, r, l, body.k))
    p.add_route(value, column_path(i, 1, j))
    if not passed:
        p.add_route(value, [cpu, (0, i)])


def _arm_operands(joint: MeshBody, axis: MeshAxis, i: int) -> tuple[str, ...]:
    """Return the operands of h = rho x c + t, without those that do not exist."""
    turning = (f"rho[{i},{joint.number}]", f"c[{i},{axis.column}]") if axis.turns else ()
    return (*turning, *((f"t[{i},{axis.column}]",) if axis.slides else ()))


def _sweep(p: MeshProgram, passed: bool) -> None:
    """Append the multiplication by H^T (4.8, table 4.7).

    In phase s processor (k, i) multiplies with joint k + s, and adds its product of n - i phases ago to the sum of the
    same age that arrives from the next column. Row 0 is joint 0.
    """
    arm, n = p.arm, p.arm.n
    paths = {i: set(arm.path(i)) for i in range(1, n + 1)}
    for k in range(n + 1):
        for i in range(max(k, 1), n + 1):
            for s in range(n + 1):
                if k + s <= i and k + s > 0:
                    _product(p, k, i, k + s, k + s in paths[i] and (not k or k in paths[i]), passed)
                j = k + s - (n - i)
                if max(k, 1) <= j <= i:
                    _sum(p, k, i, j)


def _product(p: MeshProgram, k: int, i: int, j: int, on_path: bool, passed: bool) -> None:
    """Append one product, with h received from the south and forwarded, or computed here."""
    cpu, value = (k, i), f"x[{k},{i},{j}]"
    if not on_path:
        p.append(cpu, value, (), lambda: 0.0)
        return
    axis, joint = p.arm.axis(j), next(b for b in p.arm.bodies if b.first <= j <= b.number)
    h = f"h[{i},{j}]"
    turning = axis.turns and (not k or p.arm.axis(k).turns)  # else c . P is zero
    c = (f"c[{i},{j}]",) if turning else ()
    momenta = (f"P[{i},{k}]", f"mh[{i},{k}]")[1 - turning :] if k else (f"L[{i}]", f"mp[{i}]")[1 - turning :]
    if j == k:
        p.append(cpu, value, (*c, h, *momenta), projected)
    elif passed:
        south = _last_user_row(p.arm, k, i, j)
        incoming = h if south == j else f"{h}@{south}"
        p.add_route(incoming, column_path(i, south, k))
        p.append(cpu, f"{h}@{k} {value}", (*c, incoming, *momenta), forwarded)
    else:
        if axis.slides:
            p.add_route(f"t[{i},{j}]", column_path(i, 1, k))
        p.append(cpu, f"{h}@{k}", _arm_operands(joint, axis, i), arm_of_force)
        p.append(cpu, value, (*c, f"{h}@{k}", *momenta), projected)


def _last_user_row(arm: MeshArm, k: int, i: int, j: int) -> int:
    """Return the row south of k in column i that used joint j last: rows of other branches only forward it."""
    return min(r for r in arm.path(i) if k < r <= j)


def _sum(p: MeshProgram, k: int, i: int, j: int) -> None:
    cpu, product, value = (k, i), f"x[{k},{i},{j}]", f"S[{k},{i},{j}]"
    if i == p.arm.n:
        p.append(cpu, value, (product,), lambda x: x + p.arm.zero_sum)
    else:
        incoming = f"S[{k},{i + 1},{j}]"
        p.add_route(incoming, [(k, i + 1), cpu])
        p.append(cpu, value, (product, incoming), lambda x, s: x + s)
