"""Flexible-body layer: extend methods for rigid bodies to flexible bodies.

At every instant a flexible body is a rigid body of its current shape, with other bodies attached to its nodes, and the
contribution of its modes is independent of the method for the rigid bodies (model/flexible_body.py):

    mass_matrix         the method's, of the rigid bodies; plus the modes' rows, M_kl and (Cr_k, Ct_k) carried down
    bias, ...           the method's, of the rigid bodies; plus the forces due to the modes' motion
    forward_dynamics    M a = tau + passive + J^T wrench - C with both

rnea and crba treat flexible bodies themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bellcrank.dynamics import crba, rnea
from bellcrank.dynamics.ltl_factorisation import (
    TreeMatrix,
    accelerations,
    axis_columns,
    coordinate_names,
    full_matrix,
    inverse_matrix,
    nonzero_triangle,
    udu_factors,
)
from bellcrank.dynamics.method_table import MODAL_QUANTITIES
from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, generalised_forces
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import NO_FORCE, ZERO

FORCE_QUANTITIES = ("bias", "gravity_torque", "coriolis_torque", "inverse_dynamics")


def rigid_snapshot(tree: Tree, q: Vector) -> Tree:
    """Return `tree` with every flexible body replaced by a rigid body of its shape at positions `q`."""
    links = zip(tree.links, tree.link_inertias(q), strict=True)
    return replace(tree, flexible=(), links=tuple(replace(link, inertia=inertia) for link, inertia in links))


@dataclass(frozen=True)
class FlexibleLayer:
    """Functions of a method for rigid bodies, extended to trees with flexible bodies."""

    rigid_function: Callable[[str], Callable[..., Any]]
    solves: tuple[str, ...]

    def function(self, name: str) -> Callable[..., Any]:
        """Return the function `name`, extended if modes contribute to this quantity."""
        if name not in MODAL_QUANTITIES:
            return self.rigid_function(name)
        return partial(self.joint_forces, name) if name in FORCE_QUANTITIES else getattr(self, name)

    def mass_matrix(self, tree: Tree, q: Vector) -> list[list[Scalar]]:
        """Return the mass matrix of `tree` at positions `q`."""
        rigid_mass_matrix = self.rigid_function("mass_matrix") if "mass_matrix" in self.solves else crba.mass_matrix
        rigid, modes = rigid_mass_matrix(rigid_snapshot(tree, q), q), _modal_mass(tree, q)
        return [[a + b for a, b in zip(*pair, strict=True)] for pair in zip(rigid, modes, strict=True)]

    def mass_matrix_factors(self, tree: Tree, q: Vector) -> list[list[Scalar]]:
        """Return U and D, with M = U D U^T, of `tree` at positions `q`."""
        return udu_factors(nonzero_triangle(self.mass_matrix(tree, q)), coordinate_names(tree))

    def inverse_mass_matrix(self, tree: Tree, q: Vector) -> list[list[Scalar]]:
        """Return M^-1 of `tree` at positions `q`."""
        return inverse_matrix(nonzero_triangle(self.mass_matrix(tree, q)), coordinate_names(tree))

    def joint_forces(self, name: str, tree: Tree, q: Vector, *motion: Vector, **options: Any) -> list[Scalar]:
        """Return generalised forces: the method's, of the rigid bodies, plus those due to the modes' motion.

        Parameters
        ----------
        name
            One of FORCE_QUANTITIES.
        tree
            Kinematic tree of the mechanism.
        q
            Positions, nq elements.
        motion
            Velocities and accelerations, as far as the quantity depends on them.
        options
            External wrenches, as in `rnea.inverse_dynamics`.
        """
        rigid_function = rnea.bias if name == "bias" and name not in self.solves else self.rigid_function(name)
        rigid = rigid_function(rigid_snapshot(tree, q), q, *motion, **options)
        still = [0.0] * tree.nv
        v, a = (*motion, still, still)[:2]
        modal = _modal_forces(replace(tree, gravity=ZERO) if name == "coriolis_torque" else tree, q, v, a)
        total = _add_vectors(rigid, modal)
        for body in tree.flexible if name == "inverse_dynamics" else ():
            for k, f in zip(body.v_index, body.passive(q, v), strict=True):
                total[k] = total[k] - f
        return total

    def forward_dynamics(
        self, tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
    ) -> list[Scalar]:
        """Return the accelerations.

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
        frames
            Names of the frames on which wrenches act.
        wrench
            [force, moment] for each of these frames, in world axes at its origin.
        """
        M, C = self.mass_matrix(tree, q), self.joint_forces("bias", tree, q, v)
        return accelerations(tree, q, v, tau, M, C, frames, wrench)


def _modal_mass(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return the contribution of the modes to the mass matrix."""
    S, M = axis_columns(tree, q), TreeMatrix(tree)
    for body in tree.flexible:
        M.add_modes(body, S, q, lambda i, F: tree.links[i].transform(q).force(F))
    added: list[dict[int, Scalar]] = [{} for _ in range(tree.nv)]
    for (k, j), terms in M.terms.items():
        added[k][j] = sum(terms[1:], terms[0])
    return full_matrix(added)


def _modal_forces(tree: Tree, q: Vector, v: Vector, a: Vector) -> list[Scalar]:
    """Return the generalised forces due to the modes' motion, for joints and modes."""
    A = rnea.forward_sweep(tree, q, v, a)
    forces = [NO_FORCE] * len(tree.links)
    out: list[Scalar] = [0.0] * tree.nv
    for body in tree.flexible:
        force, modal = body.newton_euler(q, v, a, A[body.link])
        if body.link >= 0:
            forces[body.link] = forces[body.link] + force
        for k, f in zip(body.v_index, modal, strict=True):
            out[k] = out[k] + f
    return _add_vectors(generalised_forces(tree, q, forces), out)


def _add_vectors(a: Vector, b: Vector) -> list[Scalar]:
    return [x + y for x, y in zip(a, b, strict=True)]
