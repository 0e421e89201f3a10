"""Articulated compliance: the response F^T J M^-1 J^T F of a tree to forces, without the mass matrix.

    rate = sum_i u_i^T D_i^-1 u_i     u_i = S_i^T z_i, z_i = F_i + sum of psi_c^T z_c over children c
    psi_i = (1 - S_i D_i^-1 U_i^T) X_i     X_i carries a motion from the parent to i

with U and D of the articulated bodies, as in aba. From the last body that carries every force down to the ground, the
sum is one matrix of that body, Omega_i = psi_i Omega_parent psi_i^T + S_i D_i^-1 S_i^T, so that a pair of forces costs
only the bodies between them. Computed numerically, in world axes, each body at its origin, [angular, linear].

Source: G. Rodriguez, A. Jain, K. Kreutz-Delgado. Spatial operator algebra for multibody system dynamics. Journal of the
Astronautical Sciences 40(1), 27-50, 1992.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellcrank.dynamics.frame_pairs import last_carrier
from bellcrank.dynamics.tree_sweeps import poses
from bellcrank.model.tree import Tree
from bellcrank.spatial.inertia import articulated_inertia, dense_matrix
from bellcrank.spatial.moves import FullRotation
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat

Array = np.ndarray[Any, Any]


class ArticulatedCompliance:
    """Compliance of a tree of rigid bodies whose joints are independent, in one configuration."""

    def __init__(self, tree: Tree, q: Sequence[float]) -> None:
        self.tree, self.poses = tree, poses(tree, q)
        self.S = [
            np.array([[*t.ang, *t.lin] for t in (s.rotated(R) for s in link.subspace(q))], float).T.reshape(6, -1)
            for link, (R, _) in zip(tree.links, self.poses, strict=True)
        ]
        self._articulate()

    def _articulate(self) -> None:
        links, n = self.tree.links, len(self.tree.links)
        IA = [
            np.array(dense_matrix(articulated_inertia(FullRotation(R).inertia(link.inertia))), float)
            for link, (R, _) in zip(links, self.poses, strict=True)
        ]
        self.inverse_D, self.psi, self.omega = ([np.zeros((6, 6))] * n for _ in range(3))
        for i in reversed(range(n)):
            S = self.S[i]
            U = IA[i] @ S
            self.inverse_D[i] = np.linalg.inv(S.T @ U + float(links[i].armature) * np.eye(S.shape[1]))
            X = _motion_shift(self.parent_offset(i))
            self.psi[i] = (np.eye(6) - S @ self.inverse_D[i] @ U.T) @ X
            if links[i].parent >= 0:
                IA[links[i].parent] = IA[links[i].parent] + X.T @ IA[i] @ self.psi[i]
        for i, link in enumerate(links):
            self.omega[i] = self.S[i] @ self.inverse_D[i] @ self.S[i].T
            if link.parent >= 0:
                self.omega[i] = self.omega[i] + self.psi[i] @ self.omega[link.parent] @ self.psi[i].T

    def parent_offset(self, i: int) -> Array:
        """Return the vector from the parent's origin to that of body `i`."""
        up = self.tree.links[i].parent
        before = self.poses[up][1] if up >= 0 else ZERO
        return np.array([*(self.poses[i][1] - before)], float)

    def compliance(self, forces: Mapping[int, Array]) -> float:
        """Return F^T J M^-1 J^T F for `forces` on bodies, each at the body's origin."""
        z, total = {i: f for i, f in forces.items() if i >= 0}, 0.0
        while z:
            i = max(z)  # children come after their parents
            body_force = z.pop(i)
            if not z:
                return total + float(body_force @ self.omega[i] @ body_force)
            u = self.S[i].T @ body_force
            total += float(u @ self.inverse_D[i] @ u)
            up = self.tree.links[i].parent
            if up >= 0:
                z[up] = z.get(up, 0.0) + self.psi[i].T @ body_force
        return total

    def axes(self, frame: str) -> Array:
        """Return the axes of `frame` in the world, one in each row."""
        body, R, _ = self.tree.frames[frame]
        before = self.poses[body][0] if body >= 0 else self.tree.ground.pose(IDENTITY, ZERO)[0]
        return _matrix_array(before.times(R)).T

    def position(self, frame: str) -> Array:
        """Return the position of `frame` in the world, m."""
        body, _, p = self.tree.frames[frame]
        R, origin = self.poses[body] if body >= 0 else self.tree.ground.pose(IDENTITY, ZERO)
        return np.array([*(origin + R @ p)], float)

    def frame_force(self, frame: str, force: Array, moment: Array) -> tuple[int, Array]:
        """Return the body of a frame, and a force and moment at the frame as a force at the body's origin.

        Parameters
        ----------
        frame
            Name of the frame.
        force
            Force, in world axes.
        moment
            Moment, in world axes.
        """
        body, _, p = self.tree.frames[frame]
        arm = np.array([*(self.poses[body][0] @ p)], float) if body >= 0 else np.zeros(3)
        return body, np.array([*(moment + np.cross(arm, force)), *force])

    def with_reaction(self, pair: Sequence[tuple[int, Array]]) -> list[tuple[int, Array]]:
        """Return a pair of forces with the reaction that limits their effect to the joints between their bodies.

        The body that carries both takes their resultant, which is zero for opposite forces along one line.

        Parameters
        ----------
        pair
            Two forces, each with the index of its body.
        """
        (i, a), (k, b) = pair
        carrier = last_carrier(self.tree, (i, k))
        if carrier < 0:
            return [*pair]
        carrier_origin = self.poses[carrier][1]
        arms = [np.array([*(self.poses[body][1] - carrier_origin)], float) for body in (i, k)]
        return [*pair, (carrier, -(_motion_shift(arms[0]).T @ a + _motion_shift(arms[1]).T @ b))]

    def joint_force(self, i: int, size: float) -> list[tuple[int, Array]]:
        """Return a force on the coordinate of a single-axis joint, as forces on its two bodies.

        Parameters
        ----------
        i
            Index of the joint.
        size
            The generalised force.
        """
        s = self.S[i][:, 0]
        wrench = size * s / (s @ s)
        return [(i, wrench), (self.tree.links[i].parent, -_motion_shift(self.parent_offset(i)).T @ wrench)]


def sum_by_body(forces: Sequence[tuple[int, Array]]) -> dict[int, Array]:
    """Sum `forces` by body."""
    total_by_body: dict[int, Array] = {}
    for i, f in forces:
        total_by_body[i] = total_by_body[i] + f if i in total_by_body else f
    return total_by_body


def _matrix_array(R: Mat) -> Array:
    return np.array([[*row] for row in R.rows], float)


def _motion_shift(r: Array) -> Array:
    """Return the matrix that moves a motion to a point at distance r."""
    return np.block([[np.eye(3), np.zeros((3, 3))], [-_cross(r), np.eye(3)]])


def _cross(r: Array) -> Array:
    x, y, z = r
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
