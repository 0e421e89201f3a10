"""Joint-space inertia matrix of a tree: assembly by columns, and factorisation along the tree.

A joint has a Column for each of its axes; its Z is the motion of the joint's frame at unit rate of its coordinate. The
product of one column's Z with the force that another column needs is an element of the matrix.

The matrix is factorised along the tree after R. Featherstone, Efficient factorization of the joint-space inertia matrix
for branched kinematic trees, Int. J. Robotics Research 24, 2005: M = L^T D L, no square roots and no fill-in, work
O(n depth^2), span O(depth). Its inverse is L^-1 D^-1 L^-T, as sparse as the tree allows. (U of M = U D U^T is L^T.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, right_hand_side
from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, columnwise, dot, is_zero, ordered_sum, step
from bellcrank.spatial.vector import NO_MOTION, Force, Mat, Motion

Rows = list[dict[int, Scalar]]  # row i of a symmetric matrix: its nonzero columns j <= i


@dataclass(frozen=True, eq=False)
class AxisColumn:
    """One axis of a joint as a column of the motion subspaces."""

    link: int
    k: int  # index in v
    c: int  # index among the columns of the link
    Z: Motion


def axis_columns(tree: Tree, q: Vector, R: Sequence[Mat] | None = None) -> list[list[AxisColumn]]:
    """Return the columns of every link, in its own frame or rotated by `R`.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    R
        Rotation for each link, or None.
    """
    S: list[list[Motion]] = []
    for i, link in enumerate(tree.links):
        step("Z", link.name)
        S.append([s.rotated(R[i]) if R else s for s in link.subspace(q)])
    return indexed_columns(tree, S)


def indexed_columns(tree: Tree, S: Sequence[Sequence[Motion]]) -> list[list[AxisColumn]]:
    """Return the axes of every joint as columns.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    S
        Motion subspace of each joint.
    """
    subspaces = [zip(link.v_index, axes, strict=True) for link, axes in zip(tree.links, S, strict=True)]
    return [[AxisColumn(i, k, c, s) for c, (k, s) in enumerate(subspace)] for i, subspace in enumerate(subspaces)]


def pairwise_sum(terms: Sequence[Any]) -> Any:
    """Sum one or more `terms` in pairs, so that the longest chain of additions is logarithmic."""
    while len(terms) > 1:
        terms = [sum(terms[i + 1 : i + 2], terms[i]) for i in range(0, len(terms), 2)]
    return terms[0]


class TreeMatrix:
    """Symmetric matrix a(i, j), filled by pairs of columns."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.terms: dict[tuple[int, int], list[Scalar]] = defaultdict(list)

    def add_product(self, a: AxisColumn, b: AxisColumn, x: Scalar) -> None:
        """Add `x` to the element of columns `a` and `b`.

        Each pair is added once; columns that share a coordinate meet on the diagonal, from both sides.
        """
        twice = a is not b and a.k == b.k
        self.terms[max(a.k, b.k), min(a.k, b.k)].append(x + x if twice else x)

    def add_joint_products(self, a: AxisColumn, others: Sequence[AxisColumn], f: Force) -> None:
        """Add the products of a force with the columns of one joint.

        Parameters
        ----------
        a
            Column whose unit acceleration needs the force.
        others
            Columns of the joint.
        f
            Force, in the joint's frame.
        """
        for b in others:
            if a.link != b.link or b.c <= a.c:
                self.add_product(a, b, b.Z.dot(f))

    def carry_to_ground(
        self, a: AxisColumn, Z: Sequence[Sequence[AxisColumn]], f: Force, up: Callable[[int, Force], Force]
    ) -> None:
        """Carry the force of column a down to the ground and add its products with all joints on the path.

        Parameters
        ----------
        a
            The column.
        Z
            Columns of every link.
        f
            Force that a unit of `a` needs.
        up
            `up(i, f)` transforms f from the frame of link i to its parent's.
        """
        name = self.tree.links[a.link].name
        step("M", name)
        self.add_joint_products(a, Z[a.link], f)
        for above, below in pairwise(self.tree.path(a.link)):
            step("F", name)
            f = up(above, f)
            step("M", name)
            self.add_joint_products(a, Z[below], f)

    def add_modes(
        self, body: FlexibleBody, Z: Sequence[Sequence[AxisColumn]], q: Vector, up: Callable[[int, Force], Force]
    ) -> None:
        """Add the modes of a flexible body, among themselves and with the joints that carry it.

        Parameters
        ----------
        body
            The flexible body.
        Z
            Columns of every link.
        q
            Positions, nq elements.
        up
            Transforms a force from a link's frame to its parent's.
        """
        for i, (k, f) in enumerate(zip(body.v_index, body.modal_momentum(q), strict=True)):
            for j, l in enumerate(body.v_index[: i + 1]):
                self.terms[k, l].append(body.M[i][j])
            if body.link >= 0:
                self.carry_to_ground(AxisColumn(body.link, k, self.tree.nv, NO_MOTION), Z, f, up)

    def lower_triangle(self) -> Rows:
        """Return the lower triangle, with armature on the diagonal.

        Only elements of joints that carry each other or share a coordinate are present.
        """
        rows: Rows = [{} for _ in range(self.tree.nv)]
        for link in self.tree.links:
            for k in link.v_index:
                self.terms[k, k].append(link.armature)
        for (k, j), terms in self.terms.items():
            rows[k][j] = pairwise_sum(terms)
        return rows

    def full(self) -> list[list[Scalar]]:
        """Return the full symmetric matrix."""
        return full_matrix(self.lower_triangle())


def nonzero_triangle(M: Sequence[Vector]) -> Rows:
    """Return the lower triangle of `M` without the structural zeros of the tree."""
    return [{j: x for j, x in enumerate(row[: i + 1]) if not is_zero(x)} for i, row in enumerate(M)]


def full_matrix(M: Rows) -> list[list[Scalar]]:
    """Return the full symmetric matrix of the lower triangle `M`."""
    n = len(M)
    return [[M[max(i, j)].get(min(i, j), 0.0) for j in range(n)] for i in range(n)]


def coordinate_names(tree: Tree) -> list[str]:
    """Return the name of the body that each element of v of `tree` moves."""
    names = {k: link.name for link in tree.links for k in link.v_index}
    return [names[k] for k in range(tree.nv)]


def _reduce_block(M: Rows, L: Rows, joint_rows: Sequence[int]) -> None:
    """Subtract the joint's subtree from its own diagonal block.

    The block stays in registers, while each row of the subtree is read once for all of it.
    """
    for c in reversed(range(joint_rows[-1] + 1, len(M))):
        for i in (i for i in joint_rows if i in L[c]):
            for j in (j for j in joint_rows if j <= i and j in M[c]):
                M[i][j] = M[i].get(j, 0.0) - L[c][i] * M[c][j]


def factorise(M: Rows, names: Sequence[str], divide: bool = False) -> tuple[Rows, list[Scalar], list[Scalar]]:
    """Return L below its unit diagonal, D and 1/D, with M = L^T D L, eliminated from the leaves.

    Parameters
    ----------
    M
        Lower triangle of the matrix.
    names
        Body of each coordinate.
    divide
        Divide by D instead of multiplying by 1/D: one operation less for each coordinate, as in published operation
        counts, but slower on processors.
    """
    n = len(M)
    M = [dict(row) for row in M]
    L: Rows = [{} for _ in range(n)]
    D, inverse_D = [0.0] * n, [0.0] * n
    joints: dict[str, list[int]] = defaultdict(list)
    for k, name in enumerate(names):
        joints[name].append(k)
    for k in reversed(range(n)):
        step("L", names[k])
        joint_rows = joints[names[k]] if len(joints[names[k]]) > 1 else []
        if joint_rows and k == joint_rows[-1]:
            _reduce_block(M, L, joint_rows)
        carried = [c for c in reversed(range(k + 1, n)) if k in M[c]]
        for j in sorted({k, *M[k], *(j for c in carried for j in M[c] if j < k)}):
            for c in carried:
                if j in M[c] and not (j in joint_rows and c > joint_rows[-1]):
                    M[k][j] = M[k].get(j, 0.0) - L[c][k] * M[c][j]
        D[k] = M[k].pop(k, 0.0)  # an element that is exactly zero is not stored; dividing by it raises
        inverse_D[k] = 1.0 / D[k]
        for i, m in M[k].items():
            L[k][i] = m / D[k] if divide else m * inverse_D[k]
    return L, D, inverse_D


def solve(M: Rows, b: Vector, names: Sequence[str], divide: bool = False) -> list[Scalar]:
    """Return x with M x = b.

    Parameters
    ----------
    M
        Lower triangle of the matrix.
    b
        Right-hand side.
    names
        Body of each coordinate.
    divide
        As in `factorise`.
    """
    L, D, inverse_D = factorise(M, names, divide)
    return substitute(L, b, names, (lambda x, k: x / D[k]) if divide else (lambda x, k: x * inverse_D[k]))


def substitute(L: Rows, b: Vector, names: Sequence[str], divided: Callable[[Scalar, int], Scalar]) -> list[Scalar]:
    """Return x with L^T D L x = b.

    Parameters
    ----------
    L
        Factor of `factorise`.
    b
        Right-hand side.
    names
        Body of each coordinate.
    divided
        Function (x, k) -> x / D[k].
    """
    x = list(b)
    for k in reversed(range(len(x))):
        step("L", names[k])
        for i, l in L[k].items():
            x[i] = x[i] - l * x[k]
    for k in range(len(x)):
        step("a", names[k])
        x[k] = divided(x[k], k)
        for i, l in L[k].items():
            x[k] = x[k] - l * x[i]
    return x


def udu_matrix(L: Rows, D: Vector) -> list[list[Scalar]]:
    """Return U = L^T above the diagonal and D on it, with M = U D U^T, from `L` and `D`."""
    n = len(D)
    return [[D[i] if i == j else L[j].get(i, 0.0) for j in range(n)] for i in range(n)]


def inverse_factor(L: Rows, names: Sequence[str]) -> Rows:
    """Return L^-1 below its unit diagonal, from `L` and the body `names` of its coordinates."""
    W: Rows = []
    for k, row in enumerate(L):
        step("L^-1", names[k])
        W.append({})
        for i, l in row.items():
            for j, w in {**W[i], i: 1.0}.items():
                W[-1][j] = W[-1].get(j, 0.0) - l * w
    return W


def with_unit_diagonal(W: Rows) -> Rows:
    """Return `W` with its unit diagonal, and each row sorted by column, so that sums are reproducible to the bit."""
    return [{**dict(sorted(row.items())), k: 1.0} for k, row in enumerate(W)]


def inverse(W: Rows, inverse_D: Vector, names: Sequence[str]) -> list[list[Scalar]]:
    """Return M^-1 = W D^-1 W^T.

    Only elements of coordinates with a common ancestor are computed.

    Parameters
    ----------
    W
        L^-1, as `inverse_factor` returns it.
    inverse_D
        1/D.
    names
        Body of each coordinate.
    """
    W = with_unit_diagonal(W)
    out: Rows = []
    for k, row in enumerate(W):
        step("M^-1", names[k])
        scaled = {i: w * inverse_D[i] for i, w in row.items()}
        out.append({})
        for j in range(k + 1):
            for i, w in W[j].items():
                if i in scaled:
                    out[k][j] = out[k].get(j, 0.0) + w * scaled[i]
    return full_matrix(out)


def udu_factors(M: Rows, names: Sequence[str]) -> list[list[Scalar]]:
    """Return U and D of M = U D U^T, U above its unit diagonal and D on it, from `M` and the body `names`."""
    L, D, _ = factorise(M, names)
    return udu_matrix(L, D)


def inverse_matrix(M: Rows, names: Sequence[str]) -> list[list[Scalar]]:
    """Return M^-1 from the lower triangle `M` and the body `names` of its coordinates."""
    L, _, inverse_D = factorise(M, names)
    return inverse(inverse_factor(L, names), inverse_D, names)


class MassInverse:
    """M^-1 as a matrix and as its factors, for products with the columns of sparse matrices."""

    def __init__(self, M: Rows, names: Sequence[str]) -> None:
        L, _, inverse_D = factorise(M, names)
        W = inverse_factor(L, names)
        self.W = with_unit_diagonal(W)
        self.scaled = [{i: w * inverse_D[i] for i, w in row.items()} for row in self.W]  # W D^-1
        self.inverse_matrix = inverse(W, inverse_D, names)
        self._record_columns()

    def _record_columns(self) -> None:
        """Record that the columns of the inverse are computed alike, branch by branch.

        This holds below the diagonal; the elements above it follow by symmetry.
        """
        n = len(self.W)
        branches: dict[frozenset[int], list[int]] = {}
        for k in range(n):
            tips = frozenset(a for row in self.W if k in row for a in row)
            branches.setdefault(tips, []).append(k)
        for branch_columns in branches.values():
            carriers = sorted({a for k in branch_columns for a in self.W[k]})
            rows = range(branch_columns[0], n)
            shared = [self.scaled[i].get(a, 0.0) for i in rows for a in carriers]
            given = [[self.W[k].get(a, 0.0) for a in carriers] for k in branch_columns]
            columnwise(_products, shared, given, [[self.inverse_matrix[i][k] for i in rows] for k in branch_columns])

    def minus_times(self, *matrices: Sequence[Sequence[Scalar]]) -> list[list[list[Scalar]]]:
        """Return -M^-1 times each of `matrices`; columns that reach the same coordinates are computed alike."""
        step("M^-1 D")
        columns = [c for matrix in matrices for c in zip(*matrix, strict=True)]
        groups: dict[frozenset[int], list[int]] = {}
        for k, c in enumerate(columns):
            reached = frozenset(a for i, x in enumerate(c) if not is_zero(x) for a in self.W[i])
            groups.setdefault(reached, []).append(k)
        products: dict[int, Sequence[Scalar]] = {}
        for reached, members in groups.items():
            products |= zip(members, self._multiply_columns(reached, [columns[k] for k in members]), strict=True)
        n = len(self.W)
        return [
            [list(row) for row in zip(*(products[k] for k in range(start, start + n)), strict=True)]
            for start in range(0, len(columns), n)
        ]

    def _multiply_columns(self, reached: frozenset[int], columns: Sequence[Sequence[Scalar]]) -> list[Sequence[Scalar]]:
        """Multiply columns in whichever way takes fewer products: by the full matrix or by its factors.

        The factors win if branches have little in common: W^T c is nonzero only on the path to the ground, and every
        row of W D^-1 then takes only the elements on its own path.
        """
        rows = [i for i in range(len(self.W)) if not all(is_zero(c[i]) for c in columns)]
        if not rows:
            return [[0.0] * len(self.W) for _ in columns]
        by_factors = sum(len(self.W[i]) for i in rows) + sum(len(reached & row.keys()) for row in self.scaled)
        given = [[c[i] for i in rows] for c in columns]
        if by_factors >= len(rows) * len(self.W):
            return [*columnwise(_negative_product, [row[i] for row in self.inverse_matrix for i in rows], given)]
        return self._by_factors(rows, reached, given)

    def _by_factors(
        self, rows: Sequence[int], reached: frozenset[int], given: Sequence[Sequence[Scalar]]
    ) -> list[Sequence[Scalar]]:
        carriers = sorted(reached)
        inner_terms = [[(r, a) for r, i in enumerate(rows) if a in self.W[i]] for a in carriers]
        first = [self.W[rows[r]][a] for terms in inner_terms for r, a in terms]
        outer_terms = [[(carriers.index(a), w) for a, w in row.items() if a in reached] for row in self.scaled]
        second = [w for terms in outer_terms for _, w in terms]
        inner = [[r for r, _ in terms] for terms in inner_terms]
        outer = [[a for a, _ in terms] for terms in outer_terms]

        def column(shared: Sequence[Scalar], c: Sequence[Scalar]) -> list[Scalar]:
            factor = iter(shared)
            y = [ordered_sum(next(factor) * c[r] for r in terms) for terms in inner]
            return [-ordered_sum(next(factor) * y[a] for a in terms) for terms in outer]

        return [*columnwise(column, [*first, *second], given)]


def _products(rows: Sequence[Scalar], c: Sequence[Scalar]) -> list[Scalar]:
    """Return the product of a matrix, given row by row, with a column."""
    return [dot(rows[start : start + len(c)], c) for start in range(0, len(rows), len(c))]


def _negative_product(square: Sequence[Scalar], c: Sequence[Scalar]) -> list[Scalar]:
    return [-x for x in _products(square, c)]


def accelerations(
    tree: Tree,
    q: Vector,
    v: Vector,
    tau: Vector,
    M: Sequence[Vector],
    C: Vector,
    frames: Sequence[str] = (),
    wrench: Wrenches = None,
) -> list[Scalar]:
    """Return M^-1 (tau + passive + J^T wrench - C).

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    tau
        Joint forces and moments, nv elements.
    M
        Mass matrix, nv x nv.
    C
        Bias forces, nv elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    return solve(nonzero_triangle(M), right_hand_side(tree, q, v, tau, C, frames, wrench), coordinate_names(tree))
