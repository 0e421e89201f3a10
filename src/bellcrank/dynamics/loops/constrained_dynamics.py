"""Constrained dynamics with closed loops, on top of a method for the tree (nikravesh1989, equations 11 to 26).

    C, gamma    C v = 0 and C a = gamma, for the nontrivial equations (12, 13)
    lagrange    M a = Q + C^T lam,  C a = gamma  (13, 14); with Baumgarte, gamma - 2 alpha dPhi - alpha^2 Phi
    minimal     v = E v_i,  a = E a_i + g  (16 to 18, 22 to 25);  E^T M E a_i = E^T (Q - M g)  (19 to 21)

The null-space basis E comes from the partition of the coordinates into dependent and independent ones
(coordinate_partitioning.py), and so does the correction of the dependent ones by Newton's method (26).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from bellcrank.dynamics import kinematics, rnea
from bellcrank.dynamics.frame_pairs import Equation
from bellcrank.dynamics.loops.constraint_equations import loop_equations
from bellcrank.dynamics.loops.coordinate_partitioning import EliminationResult, eliminate_unknowns
from bellcrank.dynamics.loops.rank import LoopRank, Multipliers, solve_multipliers
from bellcrank.dynamics.ltl_factorisation import solve
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, fabs, is_zero, maximum, minimum, ordered_sum, step
from bellcrank.spatial.vector import ZERO

Dynamics = Callable[..., Sequence[Scalar]]
State = list[Scalar]
SparseColumn = dict[int, Scalar]  # nonzero elements by index


def without_forces(tree: Tree) -> Tree:
    """Return `tree` without gravity, springs, damping and friction, so that its forward dynamics at rest is M^-1."""
    links = tuple(replace(x, joint=replace(x.joint, damping=0.0, friction=0.0, stiffness=0.0)) for x in tree.links)
    bending = tuple(body.without_elasticity() for body in tree.flexible)
    return replace(tree, links=links, gravity=ZERO, springs=(), flexible=bending)


def lagrange(
    tree: Tree,
    forward: Dynamics,
    rank: LoopRank,
    q: Vector,
    v: Vector,
    tau: Vector,
    alpha: Scalar = 0.0,
    **options: object,
) -> tuple[State, Multipliers]:
    """Return accelerations and multipliers (13, 14), by any method of forward dynamics for the tree.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    forward
        Forward dynamics of the tree.
    rank
        Rank of the loop equations.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    tau
        Joint forces and moments, nv elements.
    alpha
        Baumgarte stabilisation, 1/s.
    options
        External wrenches, passed to `forward`.
    """
    *_, last = solutions(tree, forward, rank, q, v, tau, alpha, **options)
    return last


def solutions(
    tree: Tree,
    forward: Dynamics,
    rank: LoopRank,
    q: Vector,
    v: Vector,
    tau: Vector,
    alpha: Scalar = 0.0,
    **options: object,
) -> Iterator[tuple[State, Multipliers]]:
    """Yield accelerations and multipliers, first without any refinement and then after each one.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    forward
        Forward dynamics of the tree.
    rank
        Rank of the loop equations.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    tau
        Joint forces and moments, nv elements.
    alpha
        Baumgarte stabilisation, 1/s.
    options
        External wrenches, passed to `forward`.
    """
    rows = rank.select(loop_equations(tree, q, v))
    free_accelerations = list(forward(tree, q, v, tau, **options))
    responses = _unit_responses(tree, forward, rows, q)
    gammas: list[Scalar] = []
    for e in rows:
        step("gamma - C a")
        gamma = -e.bias
        if not is_zero(alpha):
            gamma = gamma - 2.0 * alpha * e.rate - alpha * alpha * e.value
        gammas.append(gamma)
    missing = [gamma - sparse_inner(e.row, free_accelerations) for gamma, e in zip(gammas, rows, strict=True)]
    step("lambda")

    def product(i: int, j: int) -> Scalar:
        return sparse_inner(rows[i].row, responses[j])

    lam = solve_multipliers(rank, product, missing)
    a = _apply_multipliers(free_accelerations, lam.values, responses)
    yield a, lam
    for _ in range(rank.refinements):
        step("refinement")
        correction = (
            [0.0] * tree.nv if options else _residual_accelerations(tree, forward, rows, (q, v, tau), a, lam.values)
        )
        a = [x + y for x, y in zip(a, correction, strict=True)]
        missing = [gamma - sparse_inner(e.row, a) for gamma, e in zip(gammas, rows, strict=True)]
        more = solve_multipliers(rank, product, missing)
        a = _apply_multipliers(a, more.values, responses)
        lam = replace(lam, values=[x + y for x, y in zip(lam.values, more.values, strict=True)])
        yield a, lam


def _residual_accelerations(
    tree: Tree,
    forward: Dynamics,
    rows: Sequence[Equation],
    state: tuple[Vector, Vector, Vector],
    a: Vector,
    lam: Vector,
) -> State:
    """Return M^-1 (Q + C^T lam - M a), the accelerations due to unbalanced forces."""
    q, v, tau = state
    force = [t - f for t, f in zip(tau, rnea.inverse_dynamics(tree, q, v, a), strict=True)]
    for e, y in zip(rows, lam, strict=True):
        for k, x in e.row.items():
            force[k] = force[k] + x * y
    return list(forward(without_forces(tree), q, [0.0] * tree.nv, force))


def _unit_responses(tree: Tree, forward: Dynamics, rows: Sequence[Equation], q: Vector) -> list[State]:
    """Return M^-1 C^T by columns; columns that move disjoint sets of bodies are computed together."""
    empty, zeros, root = without_forces(tree), [0.0] * tree.nv, _root_bodies(tree)
    responses: list[State] = [[] for _ in rows]
    for group in _disjoint_groups([{root[k] for k in e.row} for e in rows]):
        step("1/M C^T")
        force = {k: x for i in group for k, x in rows[i].row.items()}
        moved = list(forward(empty, q, zeros, [force.get(k, 0.0) for k in range(tree.nv)]))
        for i in group:
            roots = {root[k] for k in rows[i].row}
            responses[i] = [x if root[k] in roots else 0.0 for k, x in enumerate(moved)]
    step("C 1/M C^T")
    return responses


def _root_bodies(tree: Tree) -> list[int]:
    """Return for every coordinate the body on the ground that carries it: forces there do not move other branches.

    With shared coordinates or flexible bodies, all coordinates count as one branch.
    """
    root = [0] * tree.nv
    if tree.coupled or tree.flexible:
        return root
    root_of_link = list(range(len(tree.links)))
    for i, link in enumerate(tree.links):
        root_of_link[i] = root_of_link[link.parent] if link.parent >= 0 else i
        for k in link.v_index:
            root[k] = root_of_link[i]
    return root


def _disjoint_groups(sets: Sequence[set[int]]) -> list[list[int]]:
    """Partition sets into groups of disjoint ones, greedily."""
    groups: list[tuple[set[int], list[int]]] = []
    for i, elements in enumerate(sets):
        used, members = next((g for g in groups if not g[0] & elements), (set[int](), list[int]()))
        if not members:
            groups.append((used, members))
        used |= elements
        members.append(i)
    return [members for _, members in groups]


def _apply_multipliers(x: Vector, lam: Vector, moves: Sequence[State]) -> State:
    """Return x + M^-1 C^T lam."""
    out = list(x)
    for y, move in zip(lam, moves, strict=True):
        out = [a + y * b for a, b in zip(out, move, strict=True)]
    return out


def project_state(
    tree: Tree, forward: Dynamics, rank: LoopRank, q: Vector, v: Vector, rounds: int
) -> tuple[State, State, Scalar]:
    """Return the nearest configuration and velocity that close the loops, in the metric of the kinetic energy.

    The third result is the smallest independent part of any row, in the same metric: 1 for a row that is orthogonal to
    all others, near zero close to a singular configuration.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    forward
        Forward dynamics of the tree.
    rank
        Rank of the loop equations.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    rounds
        Number of Newton iterations.
    """
    still = [0.0] * tree.nv

    def nearest(q: Vector, residual: Callable[[Equation], Scalar]) -> tuple[State, Scalar]:
        rows = rank.select(loop_equations(tree, q, still))
        moves = _unit_responses(tree, forward, rows, q)
        lam = solve_multipliers(rank, lambda i, j: sparse_inner(rows[i].row, moves[j]), [-residual(e) for e in rows])
        return _apply_multipliers(still, lam.values, moves), lam.conditioning

    for _ in range(rounds):
        step("Newton")
        q = kinematics.integrate(tree, list(q), nearest(q, lambda e: e.value)[0])

    def nearest_velocity(v: Vector) -> tuple[State, Scalar]:
        change, conditioning = nearest(q, lambda e: sparse_inner(e.row, v))
        return [a + b for a, b in zip(v, change, strict=True)], conditioning

    step("C v")
    allowed, conditioning = nearest_velocity(v)
    for _ in range(rank.refinements):
        allowed, _ = nearest_velocity(allowed)
    return list(q), allowed, conditioning


def singularity_distance(tree: Tree, forward: Dynamics, rank: LoopRank, q: Vector) -> Scalar:
    """Return the distance of a configuration from a singular one, in the measure of `project_state`.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    forward
        Forward dynamics of the tree.
    rank
        Rank of the loop equations.
    q
        Positions, nq elements.
    """
    rows = rank.select(loop_equations(tree, q, [0.0] * tree.nv))
    moves = _unit_responses(tree, forward, rows, q)
    return solve_multipliers(rank, lambda i, j: sparse_inner(rows[i].row, moves[j]), [0.0] * len(rows)).conditioning


@dataclass(frozen=True)
class CoordinatePartition:
    """Coordinate partitioning: dependent coordinates and their equations in order of elimination."""

    rank: LoopRank
    order: tuple[tuple[int, int], ...]  # (place in rank.rows, index of v)

    @property
    def dependent(self) -> tuple[int, ...]:
        """Return the indices of the dependent elements of v."""
        return tuple(c for _, c in self.order)

    def independent(self, nv: int) -> list[int]:
        """Return the indices of the independent elements among `nv`."""
        return [k for k in range(nv) if k not in self.dependent]


def _eliminate(
    part: CoordinatePartition, every: Sequence[Equation], right: Callable[[Equation], dict[str, Scalar]]
) -> EliminationResult:
    rows = part.rank.select(every)
    step("elimination")
    return eliminate_unknowns([e.row for e in rows], part.order, [right(e) for e in rows])


def least_relative_pivot(part: CoordinatePartition, elimination: EliminationResult) -> Scalar:
    """Return the smallest pivot relative to its usual size: near zero if the partition or configuration is bad.

    Parameters
    ----------
    part
        The partition.
    elimination
        Result of the elimination.
    """
    smallest: Scalar = 1e300
    for (k, c), x in zip(part.order, elimination.pivots, strict=True):
        natural = part.rank.columns[c] if part.rank.columns else 1.0
        smallest = minimum(smallest, fabs(x) * (natural / (part.rank.scale[k] * part.rank.usual_pivot)))
    return smallest


def correct_dependent(tree: Tree, part: CoordinatePartition, q: Vector, rounds: int) -> State:
    """Return q with its dependent coordinates moved until the loops close (26).

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    part
        The partition.
    q
        Positions, nq elements.
    rounds
        Number of Newton iterations.
    """
    still = [0.0] * tree.nv
    for _ in range(rounds):
        step("Newton")
        elimination = _eliminate(part, loop_equations(tree, q, still), lambda e: {"phi": e.value})
        move: State = [0.0] * tree.nv
        for c, line in elimination.lines.items():
            move[c] = -line.get("phi", 0.0)
        q = kinematics.integrate(tree, list(q), move)
    return list(q)


def largest_magnitude(values: Sequence[Scalar]) -> Scalar:
    """Return the largest absolute value among `values`."""
    return reduce(maximum, map(fabs, values), 0.0)


@dataclass(frozen=True)
class MassProduct:
    """The mass matrix as a product with a vector, which is cheaper than all its elements if there are few freedoms."""

    times: Callable[[Vector], Sequence[Scalar]]


MassFunction = Callable[[Tree, Vector], "Sequence[Vector] | MassProduct"]


@dataclass(frozen=True, eq=False)
class NullSpaceForm:
    """Equations of motion in the null space of C: E by columns, and E^T M E."""

    null_space: dict[int, dict[int, Scalar]]
    M: Sequence[Vector] | MassProduct
    reduced_mass: list[dict[int, Scalar]]
    largest: Scalar  # largest element of E, in natural sizes
    conditioning: Scalar  # smallest relative pivot, see `least_relative_pivot`
    lines: EliminationResult

    def solve_reduced(self, force: Vector) -> State:
        """Return x with E^T M E x = E^T `force`."""
        right = [sparse_inner(column, force) for column in self.null_space.values()]
        return solve(self.reduced_mass, right, [str(k) for k in self.null_space]) if right else []

    def lift(self, x: Vector, start: Vector) -> State:
        """Return `start` + E `x`."""
        out = list(start)
        for (_, column), y in zip(self.null_space.items(), x, strict=True):
            for c, e in column.items():
                out[c] = out[c] + e * y
        return out


def reduce_to_null_space(tree: Tree, mass: MassFunction, part: CoordinatePartition, q: Vector) -> NullSpaceForm:
    """Return the null-space basis E and the reduced mass matrix.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    mass
        Mass matrix, or product with it.
    part
        The partition.
    q
        Positions, nq elements.
    """
    elimination = _eliminate(part, loop_equations(tree, q, [0.0] * tree.nv), lambda e: {})
    free = part.independent(tree.nv)
    E: dict[int, dict[int, Scalar]] = {k: {k: 1.0} for k in free}
    for c, line in elimination.lines.items():
        for k, x in line.items():
            E[k][c] = -x
    M = mass(tree, q)
    step("E^T M E")
    products = _times(M, list(E.values()), tree.nv)
    # Products that have an element in each row: in a large tree most pairs of columns do not overlap.
    touched: dict[int, list[int]] = {}
    for j, product in enumerate(products):
        for c in product:
            touched.setdefault(c, []).append(j)
    small: list[dict[int, Scalar]] = []
    for i, k in enumerate(free):
        met = {j for c in E[k] for j in touched.get(c, ()) if j <= i} | {i}
        entries = {j: ordered_sum(e * products[j][c] for c, e in E[k].items() if c in products[j]) for j in sorted(met)}
        small.append({j: x for j, x in entries.items() if j == i or not is_zero(x)})
    return NullSpaceForm(
        E,
        M,
        small,
        largest_magnitude(_natural_elements(part.rank, elimination)),
        least_relative_pivot(part, elimination),
        elimination,
    )


def _natural_elements(rank: LoopRank, elimination: EliminationResult) -> list[Scalar]:
    """Return the elements of E in natural sizes of both coordinates."""
    size = rank.columns
    if not size:
        return [x for line in elimination.lines.values() for x in line.values()]
    out: list[Scalar] = []
    for c, line in elimination.lines.items():
        out += [x if size[k] == size[c] else x * (size[k] / size[c]) for k, x in line.items()]
    return out


def allowed_velocity(
    tree: Tree, mass: MassFunction, part: CoordinatePartition, q: Vector, v: Vector
) -> tuple[State, NullSpaceForm]:
    """Return the velocity allowed by the loops (16) that is nearest to v: the difference is orthogonal in M.

    Keeping the independent elements and computing the others from them would put all rounding errors of E into the
    energy, and near a singular configuration these are large.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    mass
        Mass matrix, or product with it.
    part
        The partition.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    form = reduce_to_null_space(tree, mass, part, q)
    step("E v")
    momentum = list(form.M.times(v)) if isinstance(form.M, MassProduct) else [sparse_dot(row, v) for row in form.M]
    return form.lift(form.solve_reduced(momentum), [0.0] * tree.nv), form


def minimal(
    tree: Tree, inverse: Dynamics, mass: MassFunction, part: CoordinatePartition, q: Vector, v: Vector, tau: Vector
) -> State:
    """Return accelerations from as many equations as the mechanism has freedoms (19).

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    inverse
        Inverse dynamics of the tree.
    mass
        Mass matrix, or product with it.
    part
        The partition.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    tau
        Joint forces and moments, nv elements.
    """
    elimination = _eliminate(part, loop_equations(tree, q, v), lambda e: {"gamma": -e.bias})
    g: State = [0.0] * tree.nv
    for c, line in elimination.lines.items():
        g[c] = line.get("gamma", 0.0)
    step("Q - M g")
    needed = inverse(tree, q, v, g)
    unbalanced = [t - f for t, f in zip(tau, needed, strict=True)]
    form = reduce_to_null_space(tree, mass, part, q)
    return form.lift(form.solve_reduced(unbalanced), g)


def _times(M: Sequence[Vector] | MassProduct, columns: Sequence[SparseColumn], nv: int) -> list[SparseColumn]:
    """Return M times each of the columns of E."""
    if isinstance(M, MassProduct):
        dense = [M.times([column.get(k, 0.0) for k in range(nv)]) for column in columns]
        return [{i: x for i, x in enumerate(row) if not is_zero(x)} for row in dense]
    by_column = sparse_columns(M)
    return [sparse_product(by_column, column) for column in columns]


# -- sparse products, for large trees with loops in which most pairs of joints do not interact: zeros cost nothing


def sparse_columns(M: Sequence[Vector]) -> list[SparseColumn]:
    """Return the sparse columns of the square matrix `M`."""
    sparse: list[SparseColumn] = [{} for _ in M]
    for i, row in enumerate(M):
        for k, x in enumerate(row):
            if x.__class__ is not float or x != 0.0:
                sparse[k][i] = x
    return sparse


def sparse_product(M: Sequence[SparseColumn], column: SparseColumn) -> SparseColumn:
    """Return the matrix with columns `M`, times a `column`."""
    places = sorted({i for k in column for i in M[k]})
    return {i: ordered_sum(M[k][i] * x for k, x in column.items() if i in M[k]) for i in places}


def sparse_dot(row: Vector, x: Vector) -> Scalar:
    """Return the inner product of `row` and `x`, skipping constant zeros in `row`."""
    return ordered_sum(a * b for a, b in zip(row, x, strict=True) if a.__class__ is not float or a != 0.0)


def sparse_inner(row: Mapping[int, Scalar], x: Vector) -> Scalar:
    """Return the inner product of the sparse `row` with `x`."""
    return ordered_sum(e * x[k] for k, e in row.items())
