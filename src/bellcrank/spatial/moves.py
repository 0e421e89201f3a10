"""Transforms as sequences of elementary moves: turns about a coordinate axis, shifts, and rotation matrices.

Every move transforms quantities between its two sides: motions go down (parent to child coordinates), forces and
inertias go up. Keeping the moves apart is cheaper than multiplying them out: a turn about z costs a vector 4
multiplications and a symmetric matrix 8, and a constant quarter turn only permutes and negates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bellcrank.scalar import Scalar
from bellcrank.spatial.inertia import ArticulatedInertia, Inertia
from bellcrank.spatial.vector import Acceleration, Force, Mat, Motion, SymMat, Vec


class Move(Protocol):
    """An elementary transform from parent to child coordinates."""

    def down(self, v: Vec) -> Vec:
        """Return the direction `v` in child axes."""

    def point(self, p: Vec) -> Vec:
        """Return the point `p` in child coordinates."""

    def motion(self, m: Motion) -> Motion:
        """Return the motion `m` in child coordinates."""

    def acceleration(self, m: Acceleration) -> Acceleration:
        """Return the acceleration `m` of the child frame, from that of the parent frame."""

    def force(self, f: Force) -> Force:
        """Return the child's force `f` in parent coordinates."""

    def inertia(self, i: Inertia) -> Inertia:
        """Return the child's inertia `i` in parent coordinates."""

    def articulated(self, i: ArticulatedInertia) -> ArticulatedInertia:
        """Return the child's articulated-body inertia `i` in parent coordinates."""

    def pose(self, R: Mat, p: Vec) -> tuple[Mat, Vec]:
        """Return the child's pose in the world from the parent's, `R` and `p`."""


class Rotation(ABC):
    """Base of all rotations, in terms of down(Vec), up(Vec), and congruences of matrices."""

    @abstractmethod
    def down(self, v: Vec) -> Vec:
        """Return the direction `v` in child axes."""

    @abstractmethod
    def up(self, v: Vec) -> Vec:
        """Return the child's direction `v` in parent axes."""

    @abstractmethod
    def up_sym(self, S: SymMat) -> SymMat:
        """Return R S R^T for the symmetric matrix `S`."""

    @abstractmethod
    def up_mat(self, H: Mat) -> Mat:
        """Return R H R^T for the matrix `H`."""

    def point(self, p: Vec) -> Vec:
        """Return the point `p` in child coordinates."""
        return self.down(p)

    def motion(self, m: Motion) -> Motion:
        """Return the motion `m` in child coordinates."""
        return Motion(self.down(m.ang), self.down(m.lin))

    def acceleration(self, m: Acceleration) -> Acceleration:
        """Return the acceleration `m` of the child frame, from that of the parent frame."""
        return Acceleration(self.down(m.w), self.down(m.dw), self.down(m.a))

    def force(self, f: Force) -> Force:
        """Return the child's force `f` in parent coordinates."""
        return Force(self.up(f.ang), self.up(f.lin))

    def inertia(self, i: Inertia) -> Inertia:
        """Return the child's inertia `i` in parent coordinates."""
        return Inertia(i.m, self.up(i.h), self.up_sym(i.I))

    def articulated(self, i: ArticulatedInertia) -> ArticulatedInertia:
        """Return the child's articulated-body inertia `i` in parent coordinates."""
        return ArticulatedInertia(self.up_sym(i.I), self.up_mat(i.H), self.up_sym(i.M))

    def pose(self, R: Mat, p: Vec) -> tuple[Mat, Vec]:
        """Return the child's pose in the world from the parent's, `R` and `p`."""
        return Mat(self.down(R.a), self.down(R.b), self.down(R.c)), p


@dataclass(slots=True, eq=False)
class Turn(Rotation):
    """A turn by the angle with cosine c and sine s about a coordinate axis (0, 1, 2 = x, y, z)."""

    axis: int
    c: Scalar
    s: Scalar

    def down(self, v: Vec) -> Vec:
        """Return the direction `v` in child axes."""
        return self._turned(v, self.s)

    def up(self, v: Vec) -> Vec:
        """Return the child's direction `v` in parent axes."""
        return self._turned(v, -self.s)

    def _turned(self, v: Vec, s: Scalar) -> Vec:
        c, k = self.c, self.axis
        e = [v.x, v.y, v.z]
        i, j = (k + 1) % 3, (k + 2) % 3
        e[i], e[j] = c * e[i] + s * e[j], c * e[j] - s * e[i]
        return Vec(*e)

    def up_sym(self, S: SymMat) -> SymMat:
        """Return R S R^T for the symmetric matrix `S`."""
        k = self.axis
        i, j = (k + 1) % 3, (k + 2) % 3
        e = [list(row) for row in S.rows]
        ii, ij, _, jj = self._block(e[i][i], e[i][j], e[i][j], e[j][j])
        ik, jk = self._up_pair(e[i][k], e[j][k])
        out = {(i, i): ii, (j, j): jj, (k, k): e[k][k]}
        for (a, b), x in {(i, j): ij, (i, k): ik, (j, k): jk}.items():
            out[min(a, b), max(a, b)] = x
        return SymMat(out[0, 0], out[1, 1], out[2, 2], out[0, 1], out[0, 2], out[1, 2])

    def up_mat(self, H: Mat) -> Mat:
        """Return R H R^T for the matrix `H`."""
        k = self.axis
        i, j = (k + 1) % 3, (k + 2) % 3
        e = [list(row) for row in H.rows]
        e[i][i], e[i][j], e[j][i], e[j][j] = self._block(e[i][i], e[i][j], e[j][i], e[j][j])
        e[i][k], e[j][k] = self._up_pair(e[i][k], e[j][k])
        e[k][i], e[k][j] = self._up_pair(e[k][i], e[k][j])
        return Mat(Vec(*e[0]), Vec(*e[1]), Vec(*e[2]))

    def _up_pair(self, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
        return self.c * x - self.s * y, self.s * x + self.c * y

    def _block(self, a: Scalar, b: Scalar, d: Scalar, e: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """Return R [[a b] [d e]] R^T in the plane of the turn, with u = s (a - e) + c (b + d): four multiplications.

        The trace and b - d do not change, which saves the others.
        """
        c, s = self.c, self.s
        if isinstance(c, float) and isinstance(s, float):
            if s == 0.0:  # no turn or half a turn
                return a, b, d, e
            if c == 0.0:  # a quarter turn
                return e, -d, -b, a
        u = s * (a - e) + (c * (b + d) if b is not d else (c + c) * b)
        return a - s * u, c * u - d, c * u - b, e + s * u


@dataclass(slots=True, eq=False)
class FullRotation(Rotation):
    """Any rotation matrix R_PC, child to parent."""

    R: Mat

    def down(self, v: Vec) -> Vec:
        """Return the direction `v` in child axes."""
        return self.R.T @ v

    def up(self, v: Vec) -> Vec:
        """Return the child's direction `v` in parent axes."""
        return self.R @ v

    def up_sym(self, S: SymMat) -> SymMat:
        """Return R S R^T for the symmetric matrix `S`, in 31 multiplications instead of 45.

        A multiple of 1, which no rotation changes, is subtracted first: then one element of S is zero, and the last
        element of the result follows from the trace.
        """
        a, b, c = self.R.rows
        T = SymMat(S.xx - S.zz, S.yy - S.zz, 0.0, S.xy, S.xz, S.yz)
        Ta, Tb = T @ a, T @ b
        xx, yy = Ta.dot(a) + S.zz, Tb.dot(b) + S.zz
        return SymMat(xx, yy, (S.xx + S.yy + S.zz) - xx - yy, Ta.dot(b), Ta.dot(c), Tb.dot(c))

    def up_mat(self, H: Mat) -> Mat:
        """Return R H R^T for the matrix `H`."""
        return self.R.times(H).times(self.R.T)


@dataclass(slots=True, eq=False)
class Shift:
    """A translation: the child's origin is at r in parent coordinates, with the same axes."""

    r: Vec

    def down(self, v: Vec) -> Vec:
        """Return the direction `v` in child axes."""
        return v

    def point(self, p: Vec) -> Vec:
        """Return the point `p` in child coordinates."""
        return p - self.r

    def motion(self, m: Motion) -> Motion:
        """Return the motion `m` in child coordinates."""
        return Motion(m.ang, m.lin + m.ang.cross(self.r))

    def acceleration(self, m: Acceleration) -> Acceleration:
        """Return the acceleration `m` of the child frame, from that of the parent frame."""
        return Acceleration(m.w, m.dw, m.a + m.K @ self.r)

    def force(self, f: Force) -> Force:
        """Return the child's force `f` in parent coordinates."""
        return Force(f.ang + self.r.cross(f.lin), f.lin)

    def inertia(self, i: Inertia) -> Inertia:
        """Return the child's inertia `i` in parent coordinates.

        I + 2 (g.r) 1 - g r^T - r g^T with g = h + m r/2.
        """
        r = self.r
        g = i.h + r * (i.m * 0.5)
        gx, gy, gz = (r.x * 2.0) * g.x, (r.y * 2.0) * g.y, (r.z * 2.0) * g.z
        h, moments = i.h + r * i.m, (gy + gz, gx + gz, gx + gy)
        products = -(r.y * g.x + r.x * g.y), -(r.z * g.x + r.x * g.z), -(r.z * g.y + r.y * g.z)
        return Inertia(i.m, h, i.I + SymMat(*moments, *products))

    def articulated(self, i: ArticulatedInertia) -> ArticulatedInertia:
        """Return the child's articulated-body inertia `i` in parent coordinates.

        H' = H + [r] M;  I'_ij = I_ij + (r x H_j)_i + (r x H'_i)_j, with H_j the rows of H.
        """
        r = self.r
        m1, m2, m3 = (list(row) for row in i.M.rows)
        # columns of [r] M are r x (columns of M)
        cols = [r.cross(Vec(m1[k], m2[k], m3[k])) for k in range(3)]
        H1 = i.H + Mat(*cols).T  # [r] M, by its columns
        h, g = i.H.rows, H1.rows
        d = [list(r.cross(h[k] + g[k]))[k] for k in range(3)]

        def off(a: int, b: int) -> Scalar:
            return list(r.cross(h[b]))[a] + list(r.cross(g[a]))[b]

        return ArticulatedInertia(i.I + SymMat(d[0], d[1], d[2], off(0, 1), off(0, 2), off(1, 2)), H1, i.M)

    def pose(self, R: Mat, p: Vec) -> tuple[Mat, Vec]:
        """Return the child's pose in the world from the parent's, `R` and `p`."""
        return R, p + R @ self.r


@dataclass(slots=True, eq=False)
class Transform:
    """Moves from a parent frame to a child frame, in order."""

    moves: Sequence[Move]

    def __add__(self, o: Transform) -> Transform:
        return Transform([*self.moves, *o.moves])

    def down(self, v: Vec) -> Vec:
        """Return the direction `v` in child axes."""
        for move in self.moves:
            v = move.down(v)
        return v

    def point(self, p: Vec) -> Vec:
        """Return the point `p` in child coordinates."""
        for move in self.moves:
            p = move.point(p)
        return p

    def motion(self, m: Motion) -> Motion:
        """Return the motion `m` in child coordinates."""
        for move in self.moves:
            m = move.motion(m)
        return m

    def acceleration(self, m: Acceleration) -> Acceleration:
        """Return the acceleration `m` of the child frame, from that of the parent frame."""
        for move in self.moves:
            m = move.acceleration(m)
        return m

    def force(self, f: Force) -> Force:
        """Return the child's force `f` in parent coordinates."""
        for move in reversed(self.moves):
            f = move.force(f)
        return f

    def inertia(self, i: Inertia) -> Inertia:
        """Return the child's inertia `i` in parent coordinates."""
        for move in reversed(self.moves):
            i = move.inertia(i)
        return i

    def articulated(self, i: ArticulatedInertia) -> ArticulatedInertia:
        """Return the child's articulated-body inertia `i` in parent coordinates."""
        for move in reversed(self.moves):
            i = move.articulated(i)
        return i

    def pose(self, R: Mat, p: Vec) -> tuple[Mat, Vec]:
        """Return the child's pose in the world from the parent's, `R` and `p`."""
        for move in self.moves:
            R, p = move.pose(R, p)
        return R, p


IDENTITY_TRANSFORM = Transform(())
