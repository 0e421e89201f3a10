"""Flexible bodies in the articulated-body algorithm.

The modes of a flexible body are free motions of it, beside its joint's axes, and are eliminated before them.

    M_kl   inertia between modes, with all bodies on the nodes    F_k   inertia between a mode and the frame
    u_k    tau + passive less the force due to velocities

A node hands its subtree on twice: to its body's frame, as any link does to its parent, and to the modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import ArticulatedInertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import ZERO, Acceleration, Force, Mat, Motion, SymMat, Vec


@dataclass
class Modes:
    """Modes of one flexible body in the backward sweep: M, F and u."""

    body: FlexibleBody
    M: list[list[Scalar]]
    F: list[Force]
    u: list[Scalar]

    def add_node(self, S: Sequence[Motion], IA: ArticulatedInertia, pA: Force, X: Transform) -> None:
        """Add the subtree of a node to the modes.

        Parameters
        ----------
        S
            Columns of the node, one for each mode.
        IA
            Articulated-body inertia on the node.
        pA
            Its bias force, c included.
        X
            Transform of the node.
        """
        for k, s in enumerate(S):
            U = IA @ s
            for l, other in enumerate(S[: k + 1]):
                self.M[k][l] = self.M[k][l] + other.dot(U)
            self.F[k] = self.F[k] + X.force(U)
            self.u[k] = self.u[k] - s.dot(pA)

    def eliminate(self, IA: ArticulatedInertia, pA: Force) -> tuple[ArticulatedInertia, Force]:
        """Return the articulated-body inertia and bias force of the body with its modes eliminated, last mode first.

        Parameters
        ----------
        IA
            Inertia of the body with all that its joints carry.
        pA
            Its bias force.
        """
        for k in reversed(range(len(self.u))):
            inverse = 1.0 / self.M[k][k]
            psi = self.F[k] * inverse
            IA, pA = subtract_outer_product(IA, self.F[k], psi), pA + psi * self.u[k]
            for l in range(k):
                ratio = self.M[k][l] * inverse
                for j in range(l + 1):
                    self.M[l][j] = self.M[l][j] - ratio * self.M[k][j]
                self.F[l] = self.F[l] - self.F[k] * ratio
                self.u[l] = self.u[l] - ratio * self.u[k]
        return IA, pA

    def accelerations(self, A: Motion) -> list[Scalar]:
        """Return the accelerations of the modes for the acceleration `A` of the frame; call it after `eliminate`."""
        modal_accelerations: list[Scalar] = []
        for k, u in enumerate(self.u):
            force = u - A.dot(self.F[k])
            for l, a in enumerate(modal_accelerations):
                force = force - self.M[k][l] * a
            modal_accelerations.append(force / self.M[k][k])
        return modal_accelerations


def initial_modes(body: FlexibleBody, q: Vector, v: Vector, driven: Vector, w: Vec) -> tuple[Modes, Force]:
    """Return the initial modes, and the force that the frame needs for the present motion.

    Parameters
    ----------
    body
        The flexible body.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    driven
        tau + passive.
    w
        Angular velocity of the frame.
    """
    still = [0.0] * len(v)
    force, needed = body.newton_euler(q, v, still, Acceleration(w, ZERO, ZERO))
    u = [x - y for x, y in zip(body.own_elements(driven), needed, strict=True)]
    M: list[list[Scalar]] = [list(row[: k + 1]) for k, row in enumerate(body.M)]
    return Modes(body, M, body.modal_momentum(q), u), force


def subtract_outer_product(IA: ArticulatedInertia, U: Force, psi: Force) -> ArticulatedInertia:
    """Return the symmetric matrix IA - U psi^T.

    Parameters
    ----------
    IA
        Articulated-body inertia.
    U
        IA s.
    psi
        U / (s . U).
    """

    def product(a: Vec, b: Vec) -> SymMat:
        return SymMat(a.x * b.x, a.y * b.y, a.z * b.z, a.x * b.y, a.x * b.z, a.y * b.z)

    H = Mat(*(psi.lin * x for x in U.ang))
    return ArticulatedInertia(IA.I - product(U.ang, psi.ang), IA.H - H, IA.M - product(U.lin, psi.lin))
