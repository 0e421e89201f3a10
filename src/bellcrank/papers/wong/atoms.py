"""Atoms of computation (wong1991, chapters 3 and 4): matrix-vector products, and cross products with further terms.

An atom takes about as long as sending three numbers to a neighbour. Equation numbers are those of the thesis. Costs are
not stored: they are counted when the atoms are traced. The printed costs are in the tests.
"""

from __future__ import annotations

from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import ZERO, Acceleration, Mat, SymMat, Vec


def turned(A: Mat, c: Vec) -> Vec:
    """Return c_ij = `A` c_i-1,j, with `c` the vector of body i - 1 (3.19)."""
    return A @ c


def displaced(A: Mat, rho: Vec, l: Vec, k: Vec) -> Vec:
    """Return rho_ij = `A` (`rho` - `l`) + `k`, with `rho` the vector of body i - 1 (3.20)."""
    return A @ (rho - l) + k


def angular(J: SymMat, c: Vec) -> Vec:
    """Return `J` `c` (3.21); used for J w and J dw too."""
    return J @ c


def linear(m: Scalar, rho: Vec, c: Vec) -> tuple[Vec, Vec]:
    """Return h = `rho` x `c` and `m` h (3.22)."""
    h = rho.cross(c)
    return h, h * m


def velocity(A: Mat, w: Vec, rate: Scalar) -> Vec:
    """Return the angular velocity `A` `w` + z dtheta, with `rate` = dtheta (3.27)."""
    w = A @ w
    return Vec(w.x, w.y, w.z + rate)


def acceleration(A: Mat, dw: Vec, w: Vec, rate: Scalar) -> Vec:
    """Return dw = `A` `dw` + `w` x z dtheta, with `rate` = dtheta and without joint acceleration (3.28)."""
    dw = A @ dw
    return Vec(dw.x + w.y * rate, dw.y - w.x * rate, dw.z)


def centripetal(w: Vec, dw: Vec) -> Mat:
    """Return W = [`dw`] + [`w`]^2, with six products (3.29)."""
    return Acceleration(w, dw, ZERO).K


def carried(A: Mat, p: Vec, Wl: Vec, Wk: Vec) -> Vec:
    """Return p'' = `A` (`p` + `Wl`) - `Wk`, the acceleration of the centre of mass (3.30)."""
    return A @ (p + Wl) - Wk


def gyroscopic(w: Vec, a: Vec, m: Scalar, p: Vec) -> tuple[Vec, Vec]:
    """Return c = `w` x `a`, with `a` = J w, and `m` `p` (3.31); table 4.4 prints a x w, which has the wrong sign."""
    return w.cross(a), p * m


def momentum(c: Vec, b: Vec) -> Vec:
    """Return dL = `c` + `b`, with `b` = J dw (3.31)."""
    return c + b


def projected(c: Vec, h: Vec, P: Vec, p: Vec) -> Scalar:
    """Return `c` . `P` + `h` . `p`, one element of H^T H or of H^T [dL; m p''] (4.9)."""
    return c.dot(P) + h.dot(p)
