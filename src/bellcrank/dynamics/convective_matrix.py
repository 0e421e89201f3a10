"""Rates of the twists of bodies, and the convective matrix of composite bodies (denoc.py).

Equation numbers are those of Saha 2001, whose twists obey t_i = B_ij t_j + p_i dtheta_i (4). A twist is that of the
joint's frame, so that B_ij' t_j = [0; w_j x dc]. Everything is in the axes of the body.

    H~_j = W_j M_j + sum B_ij^T (M~_i B_ij' + H~_i B_ij)     over the children i of body j, as M~ in (6)
    M~_j p_j' + H~_j p_j                                     wrench on the composite body due to the rate of p_j

Velocities do not enter H~, because a body that moves without rotation has no convective terms: its right half is zero.
The left half is a matrix H for the moment, and for the force the momentum P of the composite body relative to its
frame. A body is the sum of its particles, for which W = 0, and the sum over these is Omega (I - tr(I)/2 1).
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.dynamics.momentum_moments import rotate_to_parent
from bellcrank.dynamics.tree_sweeps import Vector, joint_elements, subspace_motion
from bellcrank.model.tree import Tree
from bellcrank.scalar import step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import Rotation, Transform
from bellcrank.spatial.vector import ZERO, Force, Mat, Motion, SymMat, Vec, cross_matrix


@dataclass(frozen=True, slots=True)
class Propagation:
    """Rates of one body that (4) and its derivative need, in the body's axes."""

    w: Vec  # angular velocity
    up: Vec  # that of the parent
    dc: Vec  # rate of the vector from the parent's frame to the body's: B_ij' t = [0; w x dc]


def propagations(tree: Tree, q: Vector, v: Vector) -> list[Propagation]:
    """Return the rates of every body of `tree` at positions `q` and velocities `v`."""
    rates: list[Propagation] = []
    for link in tree.links:
        step("w", link.name)
        up = rates[link.parent].w if link.parent >= 0 else ZERO
        turned = link.transform(q).motion(Motion(up, ZERO))
        joint = subspace_motion(link.subspace(q), joint_elements(link, v))
        rates.append(Propagation(turned.ang + joint.ang, turned.ang, turned.lin + joint.lin))  # 4
    return rates


def convective_wrench(M: Inertia, w: Vec) -> Force:
    """Return W M t of a body with the mass matrix `M` and the angular velocity `w`."""
    return Force(w.cross(M.I @ w), w.cross(w.cross(M.h)))


@dataclass(frozen=True, slots=True)
class ConvectiveMatrix:
    """H~ of a composite body: [H, 0; -[P], 0]."""

    H: Mat
    P: Vec

    def __add__(self, o: ConvectiveMatrix) -> ConvectiveMatrix:
        return ConvectiveMatrix(self.H + o.H, self.P + o.P)

    def __matmul__(self, t: Motion) -> Force:
        return Force(self.H @ t.ang, t.ang.cross(self.P))

    def in_parent_frame(self, X: Transform, M: Inertia, dc: Vec) -> ConvectiveMatrix:
        """Return B^T (M~ B' + H~ B), seen from the parent's frame and in its axes.

        Parameters
        ----------
        X
            Transform from the parent frame.
        M
            Mass matrix of the composite body, in its frame.
        dc
            Rate of the vector from the parent's frame.
        """
        c, P = -X.point(ZERO), self.P + dc * M.m
        H = self.H + moment_of_turning(M.h, dc) + moment_of_turning(c, P)
        for move in reversed(X.moves):
            H = move.up_mat(H) if isinstance(move, Rotation) else H
        return ConvectiveMatrix(H, rotate_to_parent(X, P))


def moment_of_turning(a: Vec, b: Vec) -> Mat:
    """Return the matrix of the map from w to a x (w x b) for vectors `a` and `b`."""
    d = a.dot(b)
    x, y, z = (a * -e for e in b)
    return Mat(Vec(d + x.x, x.y, x.z), Vec(y.x, d + y.y, y.z), Vec(z.x, z.y, d + z.z))


def convective_matrix(M: Inertia, w: Vec) -> ConvectiveMatrix:
    """Return W M of a body with the mass matrix `M` and the angular velocity `w`, about its frame."""
    I, half = M.I, (M.I.xx + M.I.yy + M.I.zz) * 0.5
    rows = SymMat(I.xx - half, I.yy - half, I.zz - half, I.xy, I.xz, I.yz).rows
    return ConvectiveMatrix(cross_matrix(w).times(Mat(*rows)), w.cross(M.h))
