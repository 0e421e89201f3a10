"""Methods for rigid bodies over bodies that bend: one layer on any of them, and no case inside.

At every moment a body that bends is a rigid body of the shape that it has now, on whose nodes other bodies stand, and
what its modes add is the same whichever way the rest is computed (model/bending.py):

    mass_matrix         the method's, of the rigid bodies; and the modes' rows, M_kl and (Cr_k, Ct_k) handed down
    bias, ...           the method's, of the rigid bodies; and what the modes' motion adds to joints and modes
    forward_dynamics    M a = tau + passive + J^T wrench - C with both

rnea and crba do so by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bellcrank.dynamics import crba, rnea
from bellcrank.dynamics.inertia_matrix import (
    Matrix,
    accelerations,
    columns,
    coordinate_names,
    factors,
    inverse,
    inverted,
    rows,
    square,
    upper,
)
from bellcrank.dynamics.sweep import Vector, Wrenches, felt
from bellcrank.dynamics.table import MODAL
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import NO_FORCE, ZERO


def frozen(tree: Tree, q: Vector) -> Tree:
    """The rigid bodies of this moment."""
    links = zip(tree.links, tree.inertias(q), strict=True)
    return replace(tree, flexible=(), links=tuple(replace(link, inertia=inertia) for link, inertia in links))


@dataclass(frozen=True)
class Bent:
    """A method's functions, for trees with bodies that bend."""

    own: Callable[[str], Callable[..., Any]]
    solves: tuple[str, ...]

    def function(self, name: str) -> Callable[..., Any]:
        given = {} if name not in MODAL else {name: getattr(self, name)}
        return given.get(name) or self.own(name)

    def mass_matrix(self, tree: Tree, q: Vector) -> list[list[Scalar]]:
        by = self.own("mass_matrix") if "mass_matrix" in self.solves else crba.mass_matrix
        rigid, modes = by(frozen(tree, q), q), _modes(tree, q)
        return [[a + b for a, b in zip(*pair, strict=True)] for pair in zip(rigid, modes, strict=True)]

    def mass_matrix_factors(self, tree: Tree, q: Vector) -> list[list[Scalar]]:
        L, D, _ = factors(rows(self.mass_matrix(tree, q)), coordinate_names(tree))
        return upper(L, D)

    def inverse_mass_matrix(self, tree: Tree, q: Vector) -> list[list[Scalar]]:
        names = coordinate_names(tree)
        L, _, inverse_D = factors(rows(self.mass_matrix(tree, q)), names)
        return inverse(inverted(L, names), inverse_D, names)

    def bias(self, tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
        by = self.own("bias") if "bias" in self.solves else rnea.bias
        still = [0.0] * tree.nv
        return _sums(by(frozen(tree, q), q, v), _motion(tree, q, v, still))

    def gravity_torque(self, tree: Tree, q: Vector) -> list[Scalar]:
        still = [0.0] * tree.nv
        return _sums(self.own("gravity_torque")(frozen(tree, q), q), _motion(tree, q, still, still))

    def coriolis_torque(self, tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
        weightless, still = replace(tree, gravity=ZERO), [0.0] * tree.nv
        return _sums(self.own("coriolis_torque")(frozen(tree, q), q, v), _motion(weightless, q, v, still))

    def inverse_dynamics(self, tree: Tree, q: Vector, v: Vector, a: Vector, **options: Any) -> list[Scalar]:
        rigid = self.own("inverse_dynamics")(frozen(tree, q), q, v, a, **options)
        elastic: list[Scalar] = [0.0] * tree.nv
        for body in tree.flexible:
            for k, f in zip(body.v_index, body.passive(q, v), strict=True):
                elastic[k] = elastic[k] - f
        return _sums(_sums(rigid, _motion(tree, q, v, a)), elastic)

    def forward_dynamics(
        self, tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
    ) -> list[Scalar]:
        M, C = self.mass_matrix(tree, q), self.bias(tree, q, v)
        return accelerations(tree, q, v, tau, M, C, frames, wrench)


def _modes(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """What the modes add to the mass matrix."""
    S, M = columns(tree, q), Matrix(tree)
    for body in tree.flexible:
        M.modes(body, S, q, lambda i, F: tree.links[i].transform(q).force(F))
    added: list[dict[int, Scalar]] = [{} for _ in range(tree.nv)]
    for (k, j), terms in M.terms.items():
        added[k][j] = sum(terms[1:], terms[0])
    return square(added)


def _motion(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Scalar]:
    """What the modes' motion adds to the forces that the joints and the modes need."""
    A = rnea.sweep_out(tree, q, v, a)
    forces = [NO_FORCE] * len(tree.links)
    out: list[Scalar] = [0.0] * tree.nv
    for body in tree.flexible:
        force, modal = body.newton_euler(q, v, a, A[body.link])
        if body.link >= 0:
            forces[body.link] = forces[body.link] + force
        for k, f in zip(body.v_index, modal, strict=True):
            out[k] = out[k] + f
    return _sums(felt(tree, q, forces), out)


def _sums(a: Vector, b: Vector) -> list[Scalar]:
    return [x + y for x, y in zip(a, b, strict=True)]
