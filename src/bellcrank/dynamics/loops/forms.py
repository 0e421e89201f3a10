"""Dynamics with closed loops, on top of what a method says about the tree (nikravesh1989, equations 11 to 26).

    C, gamma    C v = 0 and C a = gamma, of the equations that say something (12, 13)
    lagrange    M a = Q + C^T lam,  C a = gamma  (13, 14); with Baumgarte, gamma - 2 alpha dPhi - alpha^2 Phi
    minimal     v = E v_i,  a = E a_i + g  (16 to 18, 22 to 25);  E^T M E a_i = E^T (Q - M g)  (19 to 21)

E comes from the partition of the coordinates into dependent and independent ones (elimination.py), and so does the
correction of the dependent ones by Newton's method (26).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bellcrank.dynamics import kinematics, rnea
from bellcrank.dynamics.inertia_matrix import solve
from bellcrank.dynamics.loops.elimination import Solved, solved
from bellcrank.dynamics.loops.equation import Equation
from bellcrank.dynamics.loops.products import Column, columns, dot, times
from bellcrank.dynamics.loops.rank import Multipliers, Rank, multipliers
from bellcrank.dynamics.loops.rows import equations
from bellcrank.dynamics.sweep import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, fabs, is_zero, maximum, minimum, step, total
from bellcrank.spatial.vector import ZERO

Dynamics = Callable[..., Sequence[Scalar]]
State = list[Scalar]


def bare(tree: Tree) -> Tree:
    """The same bodies with nothing that acts on them: then forward dynamics at rest is M^-1 and nothing else."""
    links = tuple(replace(x, joint=replace(x.joint, damping=0.0, friction=0.0, stiffness=0.0)) for x in tree.links)
    bending = tuple(body.limp() for body in tree.flexible)
    return replace(tree, links=links, gravity=ZERO, springs=(), flexible=bending)


def lagrange(
    tree: Tree,
    forward: Dynamics,
    rank: Rank,
    q: Vector,
    v: Vector,
    tau: Vector,
    alpha: Scalar = 0.0,
    **options: object,
) -> tuple[State, Multipliers]:
    """Accelerations and multipliers (13, 14), by any method of forward dynamics for the tree."""
    *_, last = solutions(tree, forward, rank, q, v, tau, alpha, **options)
    return last


def solutions(
    tree: Tree,
    forward: Dynamics,
    rank: Rank,
    q: Vector,
    v: Vector,
    tau: Vector,
    alpha: Scalar = 0.0,
    **options: object,
) -> Iterator[tuple[State, Multipliers]]:
    """Accelerations and multipliers, at first without any refinement and then after each one."""
    rows = rank.of(equations(tree, q, v))
    free = list(forward(tree, q, v, tau, **options))
    moves = _moves(tree, forward, rows, q)
    gammas: list[Scalar] = []
    for e in rows:
        step("gamma - C a")
        gamma = -e.bias
        if not is_zero(alpha):
            gamma = gamma - 2.0 * alpha * e.rate - alpha * alpha * e.value
        gammas.append(gamma)
    missing = [gamma - inner(e.row, free) for gamma, e in zip(gammas, rows, strict=True)]
    step("lambda")

    def product(i: int, j: int) -> Scalar:
        return inner(rows[i].row, moves[j])

    lam = multipliers(rank, product, missing)
    a = _pushed(free, lam.values, moves)
    yield a, lam
    for _ in range(rank.refinements):
        step("refinement")
        fall = [0.0] * tree.nv if options else _missing(tree, forward, rows, (q, v, tau), a, lam.values)
        a = [x + y for x, y in zip(a, fall, strict=True)]
        more = multipliers(rank, product, [gamma - inner(e.row, a) for gamma, e in zip(gammas, rows, strict=True)])
        a = _pushed(a, more.values, moves)
        lam = replace(lam, values=[x + y for x, y in zip(lam.values, more.values, strict=True)])
        yield a, lam


def _missing(
    tree: Tree, forward: Dynamics, rows: Sequence[Equation], now: tuple[Vector, Vector, Vector], a: Vector, lam: Vector
) -> State:
    """M^-1 (Q + C^T lam - M a): the accelerations that forces still ask for."""
    q, v, tau = now
    force = [t - f for t, f in zip(tau, rnea.inverse_dynamics(tree, q, v, a), strict=True)]
    for e, y in zip(rows, lam, strict=True):
        for k, x in e.row.items():
            force[k] = force[k] + x * y
    return list(forward(bare(tree), q, [0.0] * tree.nv, force))


def _moves(tree: Tree, forward: Dynamics, rows: Sequence[Equation], q: Vector) -> list[State]:
    """M^-1 C^T, column by column; what moves nothing that others move is done together with them."""
    empty, rest, root = bare(tree), [0.0] * tree.nv, _roots(tree)
    found: list[State] = [[] for _ in rows]
    for group in _apart([{root[k] for k in e.row} for e in rows]):
        step("1/M C^T")
        force = {k: x for i in group for k, x in rows[i].row.items()}
        moved = list(forward(empty, q, rest, [force.get(k, 0.0) for k in range(tree.nv)]))
        for i in group:
            mine = {root[k] for k in rows[i].row}
            found[i] = [x if root[k] in mine else 0.0 for k, x in enumerate(moved)]
    step("C 1/M C^T")
    return found


def _roots(tree: Tree) -> list[int]:
    """Of every coordinate, the body on the ground that its body hangs on: no force there moves what hangs on another.
    Where coordinates are shared, or bodies bend, nobody knows.
    """
    root = [0] * tree.nv
    if tree.coupled or tree.flexible:
        return root
    of = list(range(len(tree.links)))
    for i, link in enumerate(tree.links):
        of[i] = of[link.parent] if link.parent >= 0 else i
        for k in link.v_index:
            root[k] = of[i]
    return root


def _apart(sets: Sequence[set[int]]) -> list[list[int]]:
    """Which of them have nothing in common, in as few groups as come up."""
    groups: list[tuple[set[int], list[int]]] = []
    for i, mine in enumerate(sets):
        used, members = next((g for g in groups if not g[0] & mine), (set[int](), list[int]()))
        if not members:
            groups.append((used, members))
        used |= mine
        members.append(i)
    return [members for _, members in groups]


def _pushed(x: Vector, lam: Vector, moves: Sequence[State]) -> State:
    """x + M^-1 C^T lam."""
    out = list(x)
    for y, move in zip(lam, moves, strict=True):
        out = [a + y * b for a, b in zip(out, move, strict=True)]
    return out


def projected(
    tree: Tree, forward: Dynamics, rank: Rank, q: Vector, v: Vector, rounds: int
) -> tuple[State, State, Scalar]:
    """The nearest configuration and velocity that close the loops, near as the kinetic energy measures it.

    Also how much of a row is new to those before it, in the same measure, where that is least: 1 for a row that is
    square to all others, near zero where the mechanism is near a singular configuration.
    """
    still = [0.0] * tree.nv

    def nearest(q: Vector, residual: Callable[[Equation], Scalar]) -> tuple[State, Scalar]:
        rows = rank.of(equations(tree, q, still))
        moves = _moves(tree, forward, rows, q)
        lam = multipliers(rank, lambda i, j: inner(rows[i].row, moves[j]), [-residual(e) for e in rows])
        return _pushed(still, lam.values, moves), lam.sound

    for _ in range(rounds):
        step("Newton")
        q = kinematics.integrate(tree, list(q), nearest(q, lambda e: e.value)[0])
    step("C v")
    change, sound = nearest(q, lambda e: inner(e.row, v))
    allowed = [a + b for a, b in zip(v, change, strict=True)]
    for _ in range(rank.refinements):
        allowed = _closer(allowed, lambda x: nearest(q, lambda e: inner(e.row, x))[0])
    return list(q), allowed, sound


def _closer(v: State, change: Callable[[State], State]) -> State:
    return [a + b for a, b in zip(v, change(v), strict=True)]


def singularity(tree: Tree, forward: Dynamics, rank: Rank, q: Vector) -> Scalar:
    """How far a configuration is from singular, as `projected` has it."""
    rows = rank.of(equations(tree, q, [0.0] * tree.nv))
    moves = _moves(tree, forward, rows, q)
    return multipliers(rank, lambda i, j: inner(rows[i].row, moves[j]), [0.0] * len(rows)).sound


@dataclass(frozen=True)
class Partition:
    """Which coordinates depend on which, and in what order they are solved for."""

    rank: Rank
    order: tuple[tuple[int, int], ...]  # (place in rank.rows, index of v)

    @property
    def dependent(self) -> tuple[int, ...]:
        return tuple(c for _, c in self.order)

    def independent(self, nv: int) -> list[int]:
        return [k for k in range(nv) if k not in self.dependent]


def _solved(part: Partition, every: Sequence[Equation], right: Callable[[Equation], dict[str, Scalar]]) -> Solved:
    rows = part.rank.of(every)
    step("elimination")
    return solved([e.row for e in rows], part.order, [right(e) for e in rows])


def conditioned(part: Partition, found: Solved) -> Scalar:
    """The smallest pivot against what its row usually is: near zero where the partition, or the mechanism, is bad."""
    smallest: Scalar = 1e300
    for (k, c), x in zip(part.order, found.pivots, strict=True):
        natural = part.rank.columns[c] if part.rank.columns else 1.0
        smallest = minimum(smallest, fabs(x) * (natural / (part.rank.scale[k] * part.rank.usual_pivot)))
    return smallest


def corrected(tree: Tree, part: Partition, q: Vector, rounds: int) -> State:
    """q with its dependent coordinates moved until the loops close (26)."""
    still = [0.0] * tree.nv
    for _ in range(rounds):
        step("Newton")
        found = _solved(part, equations(tree, q, still), lambda e: {"phi": e.value})
        move: State = [0.0] * tree.nv
        for c, line in found.lines.items():
            move[c] = -line.get("phi", 0.0)
        q = kinematics.integrate(tree, list(q), move)
    return list(q)


def largest(values: Sequence[Scalar]) -> Scalar:
    found: Scalar = 0.0
    for x in values:
        found = maximum(found, fabs(x))
    return found


@dataclass(frozen=True)
class MassProduct:
    """The mass matrix by what it does to a vector: with few freedoms that is less than all its elements are."""

    times: Callable[[Vector], Sequence[Scalar]]


Mass = Callable[[Tree, Vector], "Sequence[Vector] | MassProduct"]


@dataclass(frozen=True, eq=False)
class Reduced:
    """What a configuration allows: E by columns, and E^T M E."""

    E: dict[int, dict[int, Scalar]]
    M: Sequence[Vector] | MassProduct
    small: list[dict[int, Scalar]]
    largest: Scalar  # of E
    sound: Scalar  # smallest pivot, see conditioned
    lines: Solved

    def freedoms(self, force: Vector) -> State:
        """x with E^T M E x = E^T force."""
        right = [inner(column, force) for column in self.E.values()]
        return solve(self.small, right, [str(k) for k in self.E]) if right else []

    def moved(self, x: Vector, start: Vector) -> State:
        """start + E x."""
        out = list(start)
        for (_, column), y in zip(self.E.items(), x, strict=True):
            for c, e in column.items():
                out[c] = out[c] + e * y
        return out


def reduced(tree: Tree, mass: Mass, part: Partition, q: Vector) -> Reduced:
    found = _solved(part, equations(tree, q, [0.0] * tree.nv), lambda e: {})
    free = part.independent(tree.nv)
    E: dict[int, dict[int, Scalar]] = {k: {k: 1.0} for k in free}
    for c, line in found.lines.items():
        for k, x in line.items():
            E[k][c] = -x
    M = mass(tree, q)
    step("E^T M E")
    by_column = None if isinstance(M, MassProduct) else columns(M)
    products = [_times(M, by_column, column, tree.nv) for column in E.values()]
    touched: dict[int, list[int]] = {}  # which products have an element there: of a large tree most pairs never meet
    for j, product in enumerate(products):
        for c in product:
            touched.setdefault(c, []).append(j)
    small: list[dict[int, Scalar]] = []
    for i, k in enumerate(free):
        met = {j for c in E[k] for j in touched.get(c, ()) if j <= i} | {i}
        entries = {j: total(e * products[j][c] for c, e in E[k].items() if c in products[j]) for j in sorted(met)}
        small.append({j: x for j, x in entries.items() if j == i or not is_zero(x)})
    return Reduced(
        E,
        M,
        small,
        largest(_natural(part.rank, found)),
        conditioned(part, found),
        found,
    )


def _natural(rank: Rank, found: Solved) -> list[Scalar]:
    """Elements of E by natural sizes: how much of its own size one coordinate moves for that of another."""
    size = rank.columns
    if not size:
        return [x for line in found.lines.values() for x in line.values()]
    out: list[Scalar] = []
    for c, line in found.lines.items():
        out += [x if size[k] == size[c] else x * (size[k] / size[c]) for k, x in line.items()]
    return out


def velocities(tree: Tree, mass: Mass, part: Partition, q: Vector, v: Vector) -> tuple[State, Reduced]:
    """The velocity that the loops allow (16) and that is nearest to v: what is taken away does no work on the rest.

    To keep the independent elements instead, and take the others from them, would put all rounding errors of E into
    the energy, and near a singular configuration they are large.
    """
    found = reduced(tree, mass, part, q)
    step("E v")
    momentum = list(found.M.times(v)) if isinstance(found.M, MassProduct) else [dot(row, v) for row in found.M]
    return found.moved(found.freedoms(momentum), [0.0] * tree.nv), found


def minimal(tree: Tree, inverse: Dynamics, mass: Mass, part: Partition, q: Vector, v: Vector, tau: Vector) -> State:
    """Accelerations (19): as many equations as the mechanism has freedoms."""
    found = _solved(part, equations(tree, q, v), lambda e: {"gamma": -e.bias})
    g: State = [0.0] * tree.nv
    for c, line in found.lines.items():
        g[c] = line.get("gamma", 0.0)
    step("Q - M g")
    needed = inverse(tree, q, v, g)
    rest = [t - f for t, f in zip(tau, needed, strict=True)]
    form = reduced(tree, mass, part, q)
    return form.moved(form.freedoms(rest), g)


def _times(M: Sequence[Vector] | MassProduct, by_column: list[Column] | None, column: Column, nv: int) -> Column:
    """M times a column of E."""
    if by_column is None:
        assert isinstance(M, MassProduct)
        dense = M.times([column.get(k, 0.0) for k in range(nv)])
        return {i: x for i, x in enumerate(dense) if not is_zero(x)}
    return times(by_column, column)


def inner(row: Mapping[int, Scalar], x: Vector) -> Scalar:
    """The product with a row that has few elements, each by its place."""
    return total(e * x[k] for k, e in row.items())
