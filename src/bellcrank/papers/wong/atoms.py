"""The atoms of computation of wong1991, chapters 3 and 4: a matrix times a vector, or a cross product and what goes
with it, each about as long as sending three numbers to a neighbour. Equation numbers are the thesis'.

What they cost is nowhere written down: it is counted when they are traced. The print's costs are in the tests.
"""

from __future__ import annotations

from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import Mat, Sym, Vec, cross_matrix


def turned(A: Mat, c: Vec) -> Vec:
    """c_ij = A c_i-1,j (3.19)."""
    return A @ c


def displaced(A: Mat, rho: Vec, l: Vec, k: Vec) -> Vec:
    """rho_ij = A (rho_i-1,j - l) + k (3.20)."""
    return A @ (rho - l) + k


def angular(J: Sym, c: Vec) -> Vec:
    """J c (3.21); J w and J dw too."""
    return J @ c


def linear(m: Scalar, rho: Vec, c: Vec) -> tuple[Vec, Vec]:
    """rho x c and m (rho x c) (3.22)."""
    h = rho.cross(c)
    return h, h * m


def velocity(A: Mat, w: Vec, rate: Scalar) -> Vec:
    """w = A w + z dtheta (3.27)."""
    w = A @ w
    return Vec(w.x, w.y, w.z + rate)


def acceleration(A: Mat, dw: Vec, w: Vec, rate: Scalar) -> Vec:
    """dw = A dw + w x z dtheta (3.28) while nothing accelerates the joint."""
    dw = A @ dw
    return Vec(dw.x + w.y * rate, dw.y - w.x * rate, dw.z)


def centripetal(w: Vec, dw: Vec) -> Mat:
    """W = [dw] + [w]^2 (3.29): six products."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    squared = Mat(Vec(-(yy + zz), xy, xz), Vec(xy, -(xx + zz), yz), Vec(xz, yz, -(xx + yy)))
    return squared + cross_matrix(dw)


def carried(A: Mat, p: Vec, Wl: Vec, Wk: Vec) -> Vec:
    """p'' = A (p'' + W l) - W k (3.30)."""
    return A @ (p + Wl) - Wk


def gyroscopic(w: Vec, a: Vec, m: Scalar, p: Vec) -> tuple[Vec, Vec]:
    """c = w x a, with a = J w, and m p'' (3.31). Table 4.4 prints a x w, which has the wrong sign."""
    return w.cross(a), p * m


def momentum(c: Vec, b: Vec) -> Vec:
    """dL = c + b, with b = J dw (3.31)."""
    return c + b


def projected(c: Vec, h: Vec, P: Vec, p: Vec) -> Scalar:
    """One element of H^T H or of H^T [dL; m p''] (4.9)."""
    return c.dot(P) + h.dot(p)
