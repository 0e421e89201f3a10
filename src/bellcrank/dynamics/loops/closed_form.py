"""Equations of motion of closed loops in the notation of nikravesh1989, sections 2.3 and 2.4, term by term.

The other modules here compute accelerations with few operations. This one computes the terms that the paper prints, so
that they can be read, exported and checked one by one; B, G and H are in historical/velocity_transformation.py.
Redundant rows of the loop equations are left out, and the null-space matrix is explicit, loop by loop:

    Psi        loop equations without redundant ones                                        11
    C          their Jacobian, Psi' = C theta'                                              12, 15
    Cv         C' theta', so that C theta'' + Cv = 0                                        13
    E          theta' = E theta'_(i), from C_d and C_i of each loop                         16, 23
    Ev         E' theta'_(i) = [0; -C_d^-1 C' theta']                                       25
    Mr, fr     Mbar' = E^T Mbar E and f' = E^T (f - Mbar E' theta'_(i)), with f after 10    20, 21

Up to three equations of a loop are solved by determinants, as the paper does for its four-bar; more by elimination.
The kept rows and the dependent coordinates are those of one partition. Where its C_d is singular, E does not exist, and
its elements are infinite or not numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.dynamics.loops.constraint_equations import closure, closure_bias, closure_jacobian
from bellcrank.dynamics.loops.constraint_values import evaluate_constraints
from bellcrank.dynamics.loops.coordinate_partitioning import choose_pivots, eliminate_unknowns
from bellcrank.dynamics.loops.equation_analysis import Analysis, analysis
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step

MAX_DETERMINANT_ROWS = 3  # a larger C_d is eliminated
# Least singular value of C_d, relative to that of C, at every sampled configuration: the first coordinates that leave
# this much are independent.
LEAST_SHARE = 0.05

Matrix = list[list[Scalar]]
Pair = tuple[int, int]


@dataclass(frozen=True)
class LoopPartition:
    """Partition of one loop, or of loops that share coordinates: (equation, dependent coordinate) in order."""

    pairs: tuple[Pair, ...]

    @property
    def rows(self) -> list[int]:
        """Indices of the kept equations."""
        return [k for k, _ in self.pairs]

    @property
    def dependent(self) -> list[int]:
        """Indices of the dependent coordinates."""
        return [c for _, c in self.pairs]


@dataclass(frozen=True)
class ClosedForm:
    """Partition of all coordinates of a mechanism with loops."""

    nv: int
    loops: tuple[LoopPartition, ...]
    pattern: Mapping[int, frozenset[int]]  # coordinates of each kept equation

    @property
    def rows(self) -> list[int]:
        """Indices of the kept equations, in ascending order."""
        return sorted(k for loop in self.loops for k in loop.rows)

    @property
    def dependent(self) -> list[int]:
        """Indices of the dependent coordinates, in ascending order."""
        return sorted(c for loop in self.loops for c in loop.dependent)

    @property
    def independent(self) -> list[int]:
        """Indices of the independent coordinates."""
        dependent = set(self.dependent)
        return [k for k in range(self.nv) if k not in dependent]


def closed_form(mechanism: Mechanism, independent: Sequence[str] = ()) -> ClosedForm:
    """Return the partition for printed equations.

    Parameters
    ----------
    mechanism
        Mechanism with loops.
    independent
        Names of the independent coordinates; by default the first ones that determine all others in every sampled
        configuration.
    """
    loops = analysis(mechanism)
    plain = mechanism.at() if mechanism.parameters else mechanism
    rows = list(loops.rank.rows)
    sizes = np.array(loops.rank.natural(loops.nv)) / np.array(loops.rank.scale)[:, None]
    scaled = evaluate_constraints(plain.tree, loops.samples).C[:, rows] * sizes
    chosen = _named(mechanism, independent, loops, scaled) if independent else _first_independent(scaled, loops)
    masked = np.where(np.isin(np.arange(loops.nv), chosen), 0.0, scaled[0])
    order = choose_pivots(masked, loops.pattern, None)[: loops.nv - loops.mobility]
    pattern = {rows[k]: frozenset(map(int, np.flatnonzero(loops.pattern[k]))) for k, _ in order}
    return ClosedForm(loops.nv, _separate([(rows[k], c) for k, c in order], pattern), pattern)


def _first_independent(C: np.ndarray, loops: Analysis) -> list[int]:
    """Return the first coordinates without which C keeps its rank in all sampled configurations."""
    rank = loops.nv - loops.mobility
    least = np.linalg.svd(C, compute_uv=False)[:, rank - 1]
    independent: list[int] = []
    for k in range(loops.nv):
        rest = np.delete(C, [*independent, k], axis=-1)
        if rest.shape[-1] < rank:
            break
        if (np.linalg.svd(rest, compute_uv=False)[:, rank - 1] >= LEAST_SHARE * least).all():
            independent.append(k)
    if len(independent) < loops.mobility:  # every choice is singular somewhere: take the best one at the start
        dependent = [c for _, c in choose_pivots(C[0], loops.pattern, None)[:rank]]
        return [k for k in range(loops.nv) if k not in dependent]
    return independent


def _named(mechanism: Mechanism, names: Sequence[str], loops: Analysis, C: np.ndarray) -> list[int]:
    """Return the indices of independent coordinates given by name, after a check that they determine the others."""
    columns = mechanism.columns[1]
    where = f'equations of "{mechanism.name}": independent={", ".join(names)}'
    unknown = [name for name in names if name not in columns]
    if unknown or len(set(names)) != loops.mobility:
        raise InputError(
            f"{where}: expected {loops.mobility} different coordinate(s), as many as degrees of freedom, out of "
            f"{', '.join(columns)}."
        )
    chosen = [columns.index(name) for name in names]
    rest, rank = np.delete(C[0], chosen, axis=-1), loops.nv - loops.mobility
    values = np.linalg.svd(rest, compute_uv=False)
    if len(values) < rank or values[rank - 1] <= 1e-9 * np.linalg.svd(C[0], compute_uv=False)[rank - 1]:
        raise InputError(f"{where}: with these held, other coordinates can still move at the start; choose others.")
    return chosen


def _separate(pairs: Sequence[Pair], pattern: Mapping[int, frozenset[int]]) -> tuple[LoopPartition, ...]:
    """Divide pairs into sets that share no dependent coordinate."""
    dependent = {c for _, c in pairs}
    sets: list[tuple[list[Pair], set[int]]] = []
    for pair in pairs:
        group, touched = [pair], set(pattern[pair[0]] & dependent) | {pair[1]}
        for other in [s for s in sets if s[1] & touched]:
            sets.remove(other)
            group, touched = other[0] + group, touched | other[1]
        sets.append((group, touched))
    ordered = [tuple(pair for pair in pairs if pair in group) for group, _ in sets]
    return tuple(LoopPartition(group) for group in sorted(ordered, key=min))


# -- loop equations


def loop_residuals(tree: Tree, form: ClosedForm, q: Vector) -> list[Scalar]:
    """Return Psi, the equations of `tree` that `form` keeps, at positions `q` (11)."""
    values = closure(tree, q)
    return [values[k] for k in form.rows]


def constraint_jacobian(tree: Tree, form: ClosedForm, q: Vector) -> Matrix:
    """Return C, the rows of the Jacobian of `tree` that `form` keeps, at positions `q` (12)."""
    rows = closure_jacobian(tree, q)
    return [list(rows[k]) for k in form.rows]


def constraint_bias(tree: Tree, form: ClosedForm, q: Vector, v: Vector) -> list[Scalar]:
    """Return C' theta' of the kept rows, the second term of 13.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    form
        The partition.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    values = closure_bias(tree, q, v)
    return [values[k] for k in form.rows]


# -- null space


def null_space(form: ClosedForm, C: Matrix) -> Matrix:
    """Return E (23), with one column for each independent coordinate.

    Parameters
    ----------
    form
        The partition.
    C
        Kept rows of the Jacobian.
    """
    columns = form.independent
    E = [[float(i == k) for k in columns] for i in range(form.nv)]
    right = [[-row[k] for k in columns] for row in C]
    _put_solutions(form, C, right, E, "E")
    return E


def null_space_rate(form: ClosedForm, C: Matrix, Cv: Vector) -> list[Scalar]:
    """Return E' theta'_(i) (25).

    Parameters
    ----------
    form
        The partition.
    C
        Kept rows of the Jacobian.
    Cv
        C' theta' of these rows.
    """
    out: Matrix = [[0.0] for _ in range(form.nv)]
    _put_solutions(form, C, [[-x] for x in Cv], out, "Ev")
    return [row[0] for row in out]


def _put_solutions(form: ClosedForm, C: Matrix, right: Matrix, out: Matrix, name: str) -> None:
    """Solve C_d x = right for each loop, and write x into the rows of its dependent coordinates."""
    place = {k: i for i, k in enumerate(form.rows)}
    for loop in form.loops:
        rows = [place[k] for k in loop.rows]
        C_d = [[C[i][c] for c in loop.dependent] for i in rows]
        few = len(rows) <= MAX_DETERMINANT_ROWS
        x = (_by_determinants if few else _by_elimination)(C_d, [right[i] for i in rows], name)
        for c, values in zip(loop.dependent, x, strict=True):
            out[c] = values


def determinant(A: Sequence[Sequence[Scalar]]) -> Scalar:
    """Return the determinant of the small matrix `A`, by its first row."""
    if len(A) == 1:
        return A[0][0]
    total: Scalar = 0.0
    for k, x in enumerate(A[0]):
        minor = determinant([[*row[:k], *row[k + 1 :]] for row in A[1:]])
        total = total - x * minor if k % 2 else total + x * minor
    return total


def _by_determinants(A: Matrix, right: Matrix, name: str) -> Matrix:
    """Solve A x = right by Cramer's rule; `name` labels the quotients."""
    step("det")
    det = determinant(A)
    x: Matrix = []
    for c in range(len(A)):
        line: list[Scalar] = []
        for k in range(len(right[0])):
            step(name)
            replaced = [[*row[:c], b[k], *row[c + 1 :]] for row, b in zip(A, right, strict=True)]
            line.append(determinant(replaced) / det)
        x.append(line)
    return x


def _by_elimination(A: Matrix, right: Matrix, name: str) -> Matrix:
    """Solve A x = right with pivots on the diagonal, which `choose_pivots` has put there; `name` labels the steps."""
    step(name)
    rows = [dict(enumerate(row)) for row in A]
    sides = [{f"b{k}": b for k, b in enumerate(row)} for row in right]
    lines = eliminate_unknowns(rows, [(k, k) for k in range(len(A))], sides).lines
    return [[lines[c].get(f"b{k}", 0.0) for k in range(len(right[0]))] for c in range(len(A))]


# -- minimal equations


def reduced_mass(E: Matrix, M: Matrix) -> Matrix:
    """Return Mbar' = E^T Mbar E (20).

    Parameters
    ----------
    E
        Null-space matrix.
    M
        Mass matrix of the tree.
    """
    step("ME")
    ME = [_combined(row, E) for row in M]
    step("Mr")
    lower = [[_inner([row[i] for row in E], [row[j] for row in ME]) for j in range(i + 1)] for i in range(len(E[0]))]
    return [[lower[max(i, j)][min(i, j)] for j in range(len(lower))] for i in range(len(lower))]


def reduced_force(E: Matrix, M: Matrix, f: Vector, Ev: Vector) -> list[Scalar]:
    """Return f' = E^T (f - Mbar E' theta'_(i)) (21).

    Parameters
    ----------
    E
        Null-space matrix.
    M
        Mass matrix of the tree.
    f
        Generalised force of the tree (10): tau and passive forces less the bias.
    Ev
        E' theta'_(i).
    """
    step("n")
    needed = [x - _inner(row, Ev) for x, row in zip(f, M, strict=True)]
    step("fr")
    return [_inner([row[i] for row in E], needed) for i in range(len(E[0]))]


def _combined(row: Vector, E: Matrix) -> list[Scalar]:
    return [_inner(row, [line[k] for line in E]) for k in range(len(E[0]))]


def _inner(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total
