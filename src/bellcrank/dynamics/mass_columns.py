"""What the mass matrix algorithms share: columns (the axes of the joints), one fixed frame, and the matrix
as it fills.

A slide's joint has one axis Z(j). Here a joint has a Column for each of its axes, and a column's Z is what a unit of
its coordinate does to the joint's frame, turning and sliding. The fixed frame is that of the first body: M does not
change when the whole mechanism is moved, and what hangs on the ground beside it has nothing to do with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bellcrank.dynamics.state_space import Rows, square
from bellcrank.dynamics.sweep import Vector
from bellcrank.model.bending import Bending
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.motion import NO_MOTION, Force, Motion
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec


@dataclass(frozen=True, eq=False)
class Column:
    link: int
    k: int  # its element of v
    c: int  # its place among the link's own
    Z: Motion


def transforms(tree: Tree, q: Vector) -> list[Transform]:
    """From every parent's frame to the child's."""
    found = []
    for link in tree.links:
        step("X", link.name)
        found.append(link.transform(q))
    return found


def columns(tree: Tree, q: Vector, R: Sequence[Mat] | None = None) -> list[list[Column]]:
    """The columns of every link, in its own frame or turned by R."""
    S: list[list[Motion]] = []
    for i, link in enumerate(tree.links):
        step("Z", link.name)
        S.append([s.turned(R[i]) if R else s for s in link.subspace(q)])
    return numbered(tree, S)


def numbered(tree: Tree, S: Sequence[Sequence[Motion]]) -> list[list[Column]]:
    """The axes of every joint as columns."""
    own = [zip(link.v_index, axes, strict=True) for link, axes in zip(tree.links, S, strict=True)]
    return [[Column(i, k, c, s) for c, (k, s) in enumerate(of)] for i, of in enumerate(own)]


def fixed_frame(tree: Tree, q: Vector) -> tuple[list[Mat], list[Vec]]:
    """R(i) from body i's axes to the fixed ones, and P(i) from its parent's origin to its own, in fixed axes."""
    R: list[Mat] = []
    P: list[Vec] = []
    for link in tree.links:
        step("R", link.name)
        r, p = (IDENTITY, ZERO) if link.parent < 0 else link.transform(q).pose(R[link.parent], ZERO)
        R.append(r)
        P.append(p)
    return R, P


def carried(tree: Tree) -> list[list[int]]:
    """Of every link: itself and all it carries, parents before children."""
    found = [[i] for i in range(len(tree.links))]
    for i in reversed(range(len(found))):
        if tree.links[i].parent >= 0:
            found[tree.links[i].parent] += found[i]
    return [sorted(links) for links in found]


def balanced(terms: Sequence[Any]) -> Any:
    """The sum of one or more terms, in pairs: as long as the logarithm of their number."""
    while len(terms) > 1:
        terms = [sum(terms[i + 1 : i + 2], terms[i]) for i in range(0, len(terms), 2)]
    return terms[0]


class Matrix:
    """a(i, j), filled by pairs of columns."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.terms: dict[tuple[int, int], list[Scalar]] = defaultdict(list)

    def put(self, a: Column, b: Column, x: Scalar) -> None:
        """What one column feels of the other, each pair once: those that share a coordinate meet on the diagonal, from
        both sides.
        """
        twice = a is not b and a.k == b.k
        self.terms[max(a.k, b.k), min(a.k, b.k)].append(x + x if twice else x)

    def felt(self, a: Column, others: Sequence[Column], f: Force) -> None:
        """What the columns of a joint feel of the force f there, that a unit of column a makes."""
        for b in others:
            if a.link != b.link or b.c <= a.c:
                self.put(a, b, b.Z.dot(f))

    def handed_down(
        self, a: Column, Z: Sequence[Sequence[Column]], f: Force, up: Callable[[int, Force], Force]
    ) -> None:
        """What all the joints that carry column a feel of f, which a unit of a needs; `up(i, f)` is how f, about link
        i's frame, looks from its parent's.
        """
        name = self.tree.links[a.link].name
        step("M", name)
        self.felt(a, Z[a.link], f)
        for above, below in pairwise(self.tree.path(a.link)):
            step("F", name)
            f = up(above, f)
            step("M", name)
            self.felt(a, Z[below], f)

    def modes(self, body: Bending, Z: Sequence[Sequence[Column]], q: Vector, up: Callable[[int, Force], Force]) -> None:
        """What a body that bends adds: its modes feel each other, and the joints that carry it."""
        for i, (k, f) in enumerate(zip(body.v_index, body.felt(q), strict=True)):
            for j, l in enumerate(body.v_index[: i + 1]):
                self.terms[k, l].append(body.M[i][j])
            if body.link >= 0:
                self.handed_down(Column(body.link, k, self.tree.nv, NO_MOTION), Z, f, up)

    def rows(self) -> Rows:
        """The lower triangle, only where a joint carries another (or shares its coordinate), and the rotors."""
        rows: Rows = [{} for _ in range(self.tree.nv)]
        for link in self.tree.links:
            for k in link.v_index:
                self.terms[k, k].append(link.armature)
        for (k, j), terms in self.terms.items():
            rows[k][j] = balanced(terms)
        return rows

    def square(self) -> list[list[Scalar]]:
        return square(self.rows())
