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

from bellcrank.papers.wong.atom_programs import Cpu, MeshArm, MeshBody, MeshProgram, column_path
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import ZERO, Acceleration, Mat, SymMat, Vec


def write_program(arm: MeshArm, balanced: bool = True, passed: bool = True, solver: bool = True) -> MeshProgram:
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
    """
    p = MeshProgram(arm)
    for body in arm.bodies:
        _momenta(p, body, balanced)
        _complement(p, body, balanced, passed)
    _sweep(p, passed)
    if solver:
        append_solver(p)
    return p


def _momenta(p: MeshProgram, body: MeshBody, balanced: bool) -> None:
    """Append the program of row 0 (tables 4.3 and 4.6)."""
    i, g, (still, steady) = body.number, -p.arm.gravity, p.arm.ground_motion
    cpu, parent = (0, i), body.parent
    inputs = [f"w[{parent}]", f"dw[{parent}]", f"p[{parent}]", f"Wl[{parent},{i}]"]
    p.append(cpu, f"A[{i}]", (), body.rotation)
    if parent:
        for value in inputs:
            p.add_route(value, [(0, parent), cpu])
        p.append(cpu, f"w[{i}]", (f"A[{i}]", inputs[0]), lambda A, w: velocity(A, w, body.rate))
        takes = (f"A[{i}]", inputs[1], f"w[{i}]")
        p.append(cpu, f"dw[{i}]", takes, lambda A, dw, w: acceleration(A, dw, w, body.rate))
    else:
        p.append(cpu, f"w[{i}]", (), lambda: Vec(still.x, still.y, body.rate))
        p.append(cpu, f"dw[{i}]", (), lambda: steady)
    p.append(cpu, f"W[{i}]", (f"w[{i}]", f"dw[{i}]"), centripetal)
    p.append(cpu, f"Wk[{i}]", (f"W[{i}]",), lambda W: W @ body.k)
    for child in _children(p.arm, i):
        p.append(cpu, f"Wl[{i},{child.number}]", (f"W[{i}]",), lambda W, child=child: W @ child.l)
    if parent:
        p.append(cpu, f"p[{i}]", (f"A[{i}]", inputs[2], inputs[3], f"Wk[{i}]"), carried)
    else:
        p.append(cpu, f"p[{i}]", (f"A[{i}]", f"Wk[{i}]"), lambda A, Wk: carried(A, g, still, Wk))
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


def _children(arm: MeshArm, i: int) -> list[MeshBody]:
    """Return the children of body i, or the body itself for a leaf.

    The last body of a chain computes W l like the others, for a body that may be attached to it.
    """
    return [b for b in arm.bodies if b.parent == i] or [arm.bodies[i - 1]]


def _rates(p: MeshProgram, cpu: Cpu, body: MeshBody) -> None:
    i = body.number
    p.append(cpu, f"a[{i}]", (f"w[{i}]",), lambda w: angular(body.J, w))
    p.append(cpu, f"b[{i}]", (f"dw[{i}]",), lambda dw: angular(body.J, dw))


def _complement(p: MeshProgram, body: MeshBody, balanced: bool, passed: bool) -> None:
    """Append the program of rows 1..n in column i (tables 4.2 and 4.5)."""
    i, parent, cpu, path = body.number, body.parent, (1, body.number), p.arm.path(body.number)
    p.append(cpu, f"A'[{i}]", (), body.rotation)
    for j in path:
        c, rho = f"c[{i},{j}]", f"rho[{i},{j}]"
        if j == i:
            p.append(cpu, c, (), lambda: body.z)
            p.append(cpu, rho, (), lambda: body.k)
        else:
            last = f"c[{parent},{j}]", f"rho[{parent},{j}]"
            for value in last:
                p.add_route(value, [(1, parent), cpu])
            p.append(cpu, c, (f"A'[{i}]", last[0]), turned)
            p.append(cpu, rho, (f"A'[{i}]", last[1]), lambda A, r: displaced(A, r, body.l, body.k))
        p.add_route(c, column_path(i, 1, j))
        p.add_route(rho, column_path(i, 1, j))
        p.add_route(c, [cpu, (0, i)])
        if not passed:
            p.add_route(rho, [cpu, (0, i)])
    for j in path:
        target = (j, i)
        p.append(target, f"P[{i},{j}]", (f"c[{i},{j}]",), lambda c: angular(body.J, c))
        takes = (f"rho[{i},{j}]", f"c[{i},{j}]")
        p.append(target, f"h[{i},{j}] mh[{i},{j}]", takes, lambda rho, c: linear(body.m, rho, c))
    if balanced:
        for value in (f"w[{i}]", f"dw[{i}]"):
            p.add_route(value, [(0, i), cpu])
        _rates(p, cpu, body)


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
    """Append one product, with h = rho x c received from the south and forwarded, or computed here."""
    cpu, value = (k, i), f"x[{k},{i},{j}]"
    if not on_path:
        p.append(cpu, value, (), lambda: 0.0)
        return
    c, h, row_vectors = f"c[{i},{j}]", f"h[{i},{j}]", (f"P[{i},{k}]", f"mh[{i},{k}]") if k else (f"L[{i}]", f"mp[{i}]")
    if j == k:
        p.append(cpu, value, (c, h, *row_vectors), projected)
    elif passed:
        south = _last_user_row(p.arm, k, i, j)
        incoming = h if south == j else f"{h}@{south}"
        p.add_route(incoming, column_path(i, south, k))
        p.append(cpu, f"{h}@{k} {value}", (c, incoming, *row_vectors), lambda c, h, P, q: (h, projected(c, h, P, q)))
    else:
        p.append(cpu, f"{h}@{k}", (f"rho[{i},{j}]", c), lambda rho, c: rho.cross(c))
        p.append(cpu, value, (c, f"{h}@{k}", *row_vectors), projected)


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


def append_solver(p: MeshProgram) -> None:
    """Append the solution of the equations to the program `p` (section 4.5).

    The matrix and the right-hand side move to the edge of the mesh, and x leaves cell (0, 1). Cell (r, n + 1) of the
    solver is processor (0, n + 1 - r): row 0 takes the place of the last column. Row i of [M 1] enters column i at the
    top, and [-b 0] the last column, one element after the other; a pivot row turns east on the diagonal. The elements
    of a row arrive at the top in the order in which they are needed, so that the shift overlaps with the elimination of
    the first columns: x is complete 5 n - 2 cycles after the last sum. The thesis does both in sequence: n cycles for
    the shift, then 4 n rotations and 4 n messages in turn.
    """
    arm, n = p.arm, p.arm.n
    for body in arm.bodies:
        i = body.number
        rotor, load = body.rotor, body.joint_force
        if not (isinstance(rotor, float) and rotor == 0.0):
            p.append((i, i), f"M[{i},{i}]", (f"S[{i},{i},{i}]",), lambda x, r=rotor: x + r)
        p.append((0, i), f"-b[{i}]", (f"S[0,{i},{i}]",), lambda f, load=load: f - load())
        p.add_route(f"-b[{i}]", [(0, k) for k in range(i, n + 1)])
        for j in range(i, n + 1):  # M[i,j] is at (i, j): as row j it moves up column j, as row i west and up
            value = _element_name(arm, i, j)
            p.add_route(value, column_path(j, i, 1))
            p.add_route(value, [*((i, k) for k in range(j, i - 1, -1)), *column_path(i, i, 1)[1:]])
    for r in range(1, n + 1):
        for i in range(r + 1, n + 2):
            _append_cell(p, r, i)


def _element_name(arm: MeshArm, i: int, j: int) -> str:
    plain = isinstance(arm.bodies[i - 1].rotor, float) and arm.bodies[i - 1].rotor == 0.0
    return f"S[{i},{j},{j}]" if i != j or plain else f"M[{i},{i}]"


def solver_processor(n: int, r: int, i: int) -> Cpu:
    """Return the processor of a cell of the solver.

    Parameters
    ----------
    n
        Number of joints.
    r
        Row of the cell.
    i
        Column of the cell.
    """
    return (r, i) if i <= n else (0, n + 1 - r)


def _north_input(arm: MeshArm, r: int, i: int, e: int) -> str | float:
    """Return element e (of 2 n) that cell (r, i) gets from the north: the name of a value, or a number."""
    n = arm.n
    if r > 1:
        return f"y[{r - 1},{i},{e}]"
    if i > n:
        return f"-b[{e}]" if e <= n else 0.0
    return _element_name(arm, min(i, e), max(i, e)) if e <= n else float(e - n == i)


def _append_cell(p: MeshProgram, r: int, i: int) -> None:
    """Append all operations of cell (r, i), element by element (equation 4.30)."""
    n, cpu = p.arm.n, solver_processor(p.arm.n, r, i)
    for e in range(r, 2 * n + 1):
        x, y = _north_input(p.arm, r, r, e), _north_input(p.arm, r, i, e)
        for value, way in (
            (y, [solver_processor(n, r - 1, i), cpu] if r > 1 else []),
            (x, [*([(r - 1, r)] if r > 1 else []), *(solver_processor(n, r, k) for k in range(r, i + 1))]),
        ):
            if isinstance(value, str):
                p.add_route(value, way)
        takes = [f"alpha[{r},{i}]"] if e > r else []
        takes += [value for value in (y, x) if isinstance(value, str)]

        def rotated(*got: Scalar, e: int = e, x: str | float = x, y: str | float = y) -> Scalar:
            words = iter(got)
            alpha = next(words) if e > r else 0.0
            north = next(words) if isinstance(y, str) else y
            west = next(words) if isinstance(x, str) else x
            return north + alpha * west if e > r else -(north / west)

        p.append(cpu, f"y[{r},{i},{e}]" if e > r else f"alpha[{r},{i}]", takes, rotated)


def solution_names(n: int) -> list[str]:
    """Return the names of the `n` elements of x, as they leave the last cell."""
    return [f"y[{n},{n + 1},{n + e}]" for e in range(1, n + 1)]


# -- atoms (chapters 3 and 4)


def turned(A: Mat, c: Vec) -> Vec:
    """Return c_ij = `A` c_i-1,j, with `c` the vector of body i - 1 (3.19)."""
    return A @ c


def displaced(A: Mat, rho: Vec, l: Vec, k: Vec) -> Vec:
    """Return rho_ij = `A` (`rho` - `l`) + `k`, with `rho` the vector of body i - 1 (3.20)."""
    return A @ (rho - l) + k


def angular(J: SymMat, c: Vec) -> Vec:
    """Return `J` `c` (3.21); used for J w and J dw too."""
    return J @ c


def linear(m: Scalar, rho: Vec, c: Vec) -> tuple[Vec, Vec]:
    """Return h = `rho` x `c` and `m` h (3.22)."""
    h = rho.cross(c)
    return h, h * m


def velocity(A: Mat, w: Vec, rate: Scalar) -> Vec:
    """Return the angular velocity `A` `w` + z dtheta, with `rate` = dtheta (3.27)."""
    w = A @ w
    return Vec(w.x, w.y, w.z + rate)


def acceleration(A: Mat, dw: Vec, w: Vec, rate: Scalar) -> Vec:
    """Return dw = `A` `dw` + `w` x z dtheta, with `rate` = dtheta and without joint acceleration (3.28)."""
    dw = A @ dw
    return Vec(dw.x + w.y * rate, dw.y - w.x * rate, dw.z)


def centripetal(w: Vec, dw: Vec) -> Mat:
    """Return W = [`dw`] + [`w`]^2, with six products (3.29)."""
    return Acceleration(w, dw, ZERO).K


def carried(A: Mat, p: Vec, Wl: Vec, Wk: Vec) -> Vec:
    """Return p'' = `A` (`p` + `Wl`) - `Wk`, the acceleration of the centre of mass (3.30)."""
    return A @ (p + Wl) - Wk


def gyroscopic(w: Vec, a: Vec, m: Scalar, p: Vec) -> tuple[Vec, Vec]:
    """Return c = `w` x `a`, with `a` = J w, and `m` `p` (3.31); table 4.4 prints a x w, which has the wrong sign."""
    return w.cross(a), p * m


def momentum(c: Vec, b: Vec) -> Vec:
    """Return dL = `c` + `b`, with `b` = J dw (3.31)."""
    return c + b


def projected(c: Vec, h: Vec, P: Vec, p: Vec) -> Scalar:
    """Return `c` . `P` + `h` . `p`, one element of H^T H or of H^T [dL; m p''] (4.9)."""
    return c.dot(P) + h.dot(p)
