"""What aba.py does where bodies bend: their modes are free motions of the body, beside its joint's, and are eliminated
before them.

    M_kl   inertia that modes feel of each other, with all that stands on the nodes    F_k   the same, of the frame
    u_k    tau + passive less what velocities need

A node hands on what stands on it twice: to its body's frame, as any link does to its parent, and to the modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics.sweep import Vector
from bellcrank.model.bending import Bending
from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import Articulated
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import ZERO, Acceleration, Force, Mat, Motion, Sym, Vec


@dataclass
class Modes:
    body: Bending
    M: list[list[Scalar]]
    F: list[Force]
    u: list[Scalar]

    def gather(self, S: Sequence[Motion], IA: Articulated, pA: Force, X: Transform) -> None:
        """What stands on a node that moves by S: an articulated body and the force that it needs, c included."""
        for k, s in enumerate(S):
            U = IA @ s
            for l, other in enumerate(S[: k + 1]):
                self.M[k][l] = self.M[k][l] + other.dot(U)
            self.F[k] = self.F[k] + X.force(U)
            self.u[k] = self.u[k] - s.dot(pA)

    def freed(self, IA: Articulated, pA: Force) -> tuple[Articulated, Force]:
        """The body as its joint feels it, its modes free to move; last mode first."""
        for k in reversed(range(len(self.u))):
            inverse = 1.0 / self.M[k][k]
            psi = self.F[k] * inverse
            IA, pA = less(IA, self.F[k], psi), pA + psi * self.u[k]
            for l in range(k):
                ratio = self.M[k][l] * inverse
                for j in range(l + 1):
                    self.M[l][j] = self.M[l][j] - ratio * self.M[k][j]
                self.F[l] = self.F[l] - self.F[k] * ratio
                self.u[l] = self.u[l] - ratio * self.u[k]
        return IA, pA

    def accelerations(self, A: Motion) -> list[Scalar]:
        """Of the modes, where the frame has A; after `freed`."""
        found: list[Scalar] = []
        for k, u in enumerate(self.u):
            rest = u - A.dot(self.F[k])
            for l, a in enumerate(found):
                rest = rest - self.M[k][l] * a
            found.append(rest / self.M[k][k])
        return found


def modes(body: Bending, q: Vector, v: Vector, driven: Vector, w: Vec) -> tuple[Modes, Force]:
    """At the start, and the force that the frame needs for what moves now. driven: tau + passive; w: of the frame."""
    still = [0.0] * len(v)
    force, needed = body.newton_euler(q, v, still, Acceleration(w, ZERO, ZERO))
    u = [x - y for x, y in zip(body.own(driven), needed, strict=True)]
    M: list[list[Scalar]] = [list(row[: k + 1]) for k, row in enumerate(body.M)]
    return Modes(body, M, body.felt(q), u), force


def less(IA: Articulated, U: Force, psi: Force) -> Articulated:
    """IA - U psi^T, which is symmetric."""

    def product(a: Vec, b: Vec) -> Sym:
        return Sym(a.x * b.x, a.y * b.y, a.z * b.z, a.x * b.y, a.x * b.z, a.y * b.z)

    H = Mat(*(psi.lin * x for x in U.ang))
    return Articulated(IA.I - product(U.ang, psi.ang), IA.H - H, IA.M - product(U.lin, psi.lin))
