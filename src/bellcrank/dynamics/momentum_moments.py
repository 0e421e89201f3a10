"""Momentum and force moments over the points of a body, for derivatives.

    P, D    the sum of p (a momentum, a force) and of r p^T over the points

While all p rotate by x_ang, each at its point, their sum changes by (x_ang x p, r x (x_ang x p)), which P and D
determine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics.tree_sweeps import Vector, Wrenches, poses
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import Rotation, Shift, Transform
from bellcrank.spatial.vector import ZERO, Force, Mat, Motion, Vec, vec


@dataclass(slots=True, eq=False)
class MomentumMoments:
    """The sum P of p, and D, the sum of r p^T, over the points of a body."""

    P: Vec
    D: Mat

    def __add__(self, o: MomentumMoments) -> MomentumMoments:
        return MomentumMoments(self.P + o.P, self.D + o.D)

    def in_parent_frame(self, X: Transform) -> MomentumMoments:
        """Express the sums in the parent's frame, from which `X` leads to the body's."""
        P, D = self.P, self.D
        for move in reversed(X.moves):
            if isinstance(move, Shift):
                D = D + Mat(P * move.r.x, P * move.r.y, P * move.r.z)
            else:
                assert isinstance(move, Rotation)
                P, D = move.up(P), move.up_mat(D)
        return MomentumMoments(P, D)

    @property
    def trace(self) -> Scalar:
        """Return the trace of D."""
        return self.D.a.x + self.D.b.y + self.D.c.z

    def __matmul__(self, x: Motion) -> Force:
        """Return the sum of (r x (x_ang x p), x_ang x p)."""
        return Force(x.ang * self.trace - self.D.T @ x.ang, x.ang.cross(self.P))

    def row(self, Z: Motion) -> Vec:
        """Return b with Z . (B x) = b . x_ang, for the motion `Z`."""
        elements: Vec = Z.ang * self.trace - self.D @ Z.ang + self.P.cross(Z.lin)
        return elements


def rigid_momentum_moments(I: Inertia, V: Motion) -> MomentumMoments:
    """Return twice the flow of the momenta of a rigid body.

    The second moments of its points are half the trace of I, less I.

    Parameters
    ----------
    I
        Inertia of the body.
    V
        Its velocity.
    """
    I = I + I
    w, half = V.ang, (I.I.xx + I.I.yy + I.I.zz) * 0.5
    a, b, c = I.I.rows
    second = (Vec(half - a.x, -a.y, -a.z), Vec(-b.x, half - b.y, -b.z), Vec(-c.x, -c.y, half - c.z))
    return MomentumMoments(
        V.lin * I.m + w.cross(I.h),
        Mat(*(V.lin * h + w.cross(row) for h, row in zip(I.h, second, strict=True))),
    )


def rotate_to_parent(X: Transform, b: Vec) -> Vec:
    """Express the direction `b` in the parent's axes, from which `X` leads to the body's."""
    for move in reversed(X.moves):
        b = move.up(b) if isinstance(move, Rotation) else b
    return b


@dataclass(slots=True, eq=False)
class ExternalMoments:
    """External forces on a body, in its axes; they are constant in the world while the body moves."""

    moments: MomentumMoments
    moment: Vec  # moments, each at its own point

    def __add__(self, o: ExternalMoments) -> ExternalMoments:
        return ExternalMoments(self.moments + o.moments, self.moment + o.moment)

    def in_parent_frame(self, X: Transform) -> ExternalMoments:
        """Express the forces in the parent's frame, from which `X` leads to the body's."""
        return ExternalMoments(self.moments.in_parent_frame(X), rotate_to_parent(X, self.moment))

    @property
    def force(self) -> Force:
        """Return the total force about the frame: the sum of r x f is in D, off its diagonal."""
        D = self.moments.D
        return Force(self.moment + Vec(D.b.z - D.c.y, D.c.x - D.a.z, D.a.y - D.b.x), self.moments.P)

    def __matmul__(self, Z: Motion) -> Force:
        """Return, with reversed sign, the change of the forces in the axes of a body that is displaced along Z."""
        left = self.moments @ Z
        return Force(left.ang + Z.ang.cross(self.moment), left.lin)

    def row(self, Z: Motion) -> Vec:
        """Return e with Z . (self @ x) = e . x_ang, for the motion `Z`."""
        elements: Vec = self.moments.row(Z) + self.moment.cross(Z.ang)
        return elements


ZERO_MOMENTS = MomentumMoments(ZERO, Mat(ZERO, ZERO, ZERO))
NO_EXTERNAL_MOMENTS = ExternalMoments(ZERO_MOMENTS, ZERO)


def external_moments(tree: Tree, q: Vector, frames: Sequence[str], wrench: Wrenches) -> list[ExternalMoments]:
    """Return the external forces on each body.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    body_moments = [NO_EXTERNAL_MOMENTS] * len(tree.links)
    R = [R for R, _ in poses(tree, q)] if frames else []
    for name, w in zip(frames, wrench if wrench is not None else (), strict=True):
        step("wrench", name)
        body, _, p = tree.frames[name]
        if body >= 0:
            f, n = R[body].T @ vec(w[:3]), R[body].T @ vec(w[3:])
            body_moments[body] = body_moments[body] + ExternalMoments(
                MomentumMoments(f, Mat(f * p.x, f * p.y, f * p.z)), n
            )
    return body_moments
