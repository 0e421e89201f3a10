"""Solution of the equations on the mesh (wong1991, section 4.5): the data shift, and the cells of the feed-forward LU.

The matrix and the right-hand side move to the edge of the mesh, and x leaves cell (0, 1). Cell (r, n + 1) of the solver
is processor (0, n + 1 - r): row 0 takes the place of the last column. Row i of [M 1] enters column i at the top, and
[-b 0] the last column, one element after the other; a pivot row turns east on the diagonal. The elements of a row
arrive at the top in the order in which they are needed, so that the shift overlaps with the elimination of the first
columns: x is complete 5 n - 2 cycles after the last sum. The thesis does both in sequence: n cycles for the shift, then
4 n rotations and 4 n messages in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellcrank.papers.wong.atom_programs import Cpu, MeshProgram, column_path
from bellcrank.scalar import Scalar, is_zero

Load = tuple[Callable[[], Scalar], Sequence[str]]  # force that a processor computes, and names of further forces


@dataclass(frozen=True)
class Equations:
    """Equations M x = b, whose elements are sums on the mesh: M[i, j] on processor (i, j), -b[i] + load on (0, i)."""

    n: int
    offset: int  # columns west of the first one of the equations
    rotors: Sequence[Scalar]  # added to the diagonal
    loads: Sequence[Load]  # forces on the coordinates

    def column(self, i: int) -> int:
        """Return the column of coordinate `i` on the mesh."""
        return i + self.offset

    def processor(self, r: int, i: int) -> Cpu:
        """Return the processor of the solver's cell in row `r` and column `i`."""
        return (r, self.column(i)) if i <= self.n else (0, self.column(self.n + 1 - r))

    def sum_name(self, i: int, j: int) -> str:
        """Return the name of the sum of elements (`i`, `j`), or of the right-hand side if `i` is 0."""
        return f"S[{i},{self.column(j)},{j}]"

    def element_name(self, i: int, j: int) -> str:
        """Return the name of the element (`i`, `j`) of M."""
        return self.sum_name(i, j) if i != j or is_zero(self.rotors[i - 1]) else f"M[{i},{i}]"

    def north_input(self, r: int, i: int, e: int) -> str | float:
        """Return what a cell gets from the north: the name of a value, or a number.

        Parameters
        ----------
        r, i
            Row and column of the cell.
        e
            Number of the element, of 2 n.
        """
        if r > 1:
            return f"y[{r - 1},{i},{e}]"
        if i > self.n:
            return f"-b[{e}]" if e <= self.n else 0.0
        return self.element_name(min(i, e), max(i, e)) if e <= self.n else float(e - self.n == i)

    @property
    def solution_names(self) -> list[str]:
        """Names of the elements of x, as they leave the last cell."""
        return [f"y[{self.n},{self.n + 1},{self.n + e}]" for e in range(1, self.n + 1)]


def append_solver(p: MeshProgram, equations: Equations) -> None:
    """Append the solution of the equations to a program.

    Parameters
    ----------
    p
        The program.
    equations
        The equations.
    """
    n, column = equations.n, equations.column
    for i in range(1, n + 1):
        rotor, (load, applied) = equations.rotors[i - 1], equations.loads[i - 1]
        if not is_zero(rotor):
            p.append((i, column(i)), f"M[{i},{i}]", (equations.sum_name(i, i),), lambda x, r=rotor: x + r)
        takes = (equations.sum_name(0, i), *applied)
        p.append((0, column(i)), f"-b[{i}]", takes, lambda f, *more, load=load: unbalanced(f, load(), more))
        p.add_route(f"-b[{i}]", [(0, column(k)) for k in range(i, n + 1)])
        for j in range(i, n + 1):  # M[i,j] is at (i, j): as row j it moves up column j, as row i west and up
            value = equations.element_name(i, j)
            p.add_route(value, column_path(column(j), i, 1))
            west = [(i, column(k)) for k in range(j, i - 1, -1)]
            p.add_route(value, [*west, *column_path(column(i), i, 1)[1:]])
    for r in range(1, n + 1):
        for i in range(r + 1, n + 2):
            _append_cell(p, equations, r, i)


def unbalanced(f: Scalar, load: Scalar, applied: Sequence[Scalar]) -> Scalar:
    """Return the inertial and gravitational force `f` less the `load` and all forces in `applied`."""
    total = f - load
    for force in applied:
        total = total - force
    return total


def _append_cell(p: MeshProgram, equations: Equations, r: int, i: int) -> None:
    """Append all operations of cell (r, i), element by element (equation 4.30)."""
    n, cpu = equations.n, equations.processor(r, i)
    for e in range(r, 2 * n + 1):
        x, y = equations.north_input(r, r, e), equations.north_input(r, i, e)
        above, diagonal = equations.processor(r - 1, i), equations.processor(r - 1, r)
        row = [equations.processor(r, k) for k in range(r, i + 1)]
        for value, way in ((y, [above, cpu] if r > 1 else []), (x, [diagonal, *row] if r > 1 else row)):
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
