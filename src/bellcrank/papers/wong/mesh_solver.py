"""Solution of the equations on the mesh: matrix and right-hand side move to its edge, and x leaves cell (0, 1).

This is section 4.5 of wong1991. Cell (r, n + 1) of the solver is processor (0, n + 1 - r): row 0 takes the place of the
last column. Row i of [M 1] enters column i at the top, and [-b 0] the last column, one element after the other; a pivot
row turns east on the diagonal. The elements of a row arrive at the top in the order in which they are needed, so that
the shift overlaps with the elimination of the first columns: x is complete 5 n - 2 cycles after the last sum. The
thesis does both in sequence: n cycles for the shift, then 4 n rotations and 4 n messages in turn.
"""

from __future__ import annotations

from bellcrank.papers.wong.arm_data import MeshArm
from bellcrank.papers.wong.atom_programs import Cpu, MeshProgram, column_path
from bellcrank.scalar import Scalar


def append_solver(p: MeshProgram) -> None:
    """Append the solution of the equations to the program `p`."""
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
