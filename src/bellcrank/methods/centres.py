"""Absolute coordinates: where every body is, in one frame for all, at its centre of mass (nikravesh1989, section 2.1).

    A_i   axes of body i                     J_i   inertia about the centre of mass, in common axes
    r_i   its centre of mass                 u_j   columns of joint j: how its frame F_j moves, at the origin p_j of F_j
    M_i   [J_i, m_i] as an Inertia           d_ji  = r_i - p_j, from joint j to the centre of body i

Common axes are those of the internal ground frame, in which the gravity of a Tree is given.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.methods.sweep import Vector, along, own
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.motion import Force, Motion
from bellcrank.spatial.moves import FullRotation, Shift
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Sym, Vec

# Moments below this part of what they were about F are the rounding of our own difference.
NOISE = 1e-14


@dataclass(slots=True, eq=False)
class Placed:
    A: Mat
    p: Vec
    r: Vec
    M: Inertia
    u: list[Motion]
    du: Motion  # what their change in F alone adds to the acceleration: (dS/dt) v

    @property
    def d(self) -> Vec:
        return self.r - self.p

    def force(self, f: Force) -> Force:
        """A force in F about its origin, in common axes about the centre of mass."""
        lin = self.A @ f.lin
        return Force(self.A @ f.ang - self.d.cross(lin), lin)


def seen_from(m: Motion, d: Vec) -> Motion:
    """The same motion at a point that is d away: [-d~ u; u]."""
    return Motion(m.ang, m.lin + m.ang.cross(d))


def central(inertia: Inertia) -> tuple[Vec, Sym]:
    """Centre of mass in F, and the inertia about it in F's axes; F's origin for a body without mass."""
    if isinstance(inertia.m, float) and inertia.m == 0.0:
        return ZERO, inertia.I
    c = inertia.h * (1.0 / inertia.m)
    J, I = Shift(-c).inertia(inertia).I, inertia.I
    large = [I.xx + I.yy + I.zz] * 6
    return c, Sym(*map(_clean, (J.xx, J.yy, J.zz, J.xy, J.xz, J.yz), large))


def _clean(x: Scalar, large: Scalar) -> Scalar:
    return 0.0 if isinstance(x, float) and isinstance(large, float) and abs(x) < NOISE * large else x


def placed(tree: Tree, q: Vector, v: Vector | None = None) -> list[Placed]:
    found: list[Placed] = []
    for link in tree.links:
        step("A", link.name)
        up = found[link.parent] if link.parent >= 0 else None
        A, p = link.transform(q).pose(*((up.A, up.p) if up is not None else (IDENTITY, ZERO)))
        step("r", link.name)
        c, J = central(link.inertia)
        r = p + A @ c
        step("J", link.name)
        M = Inertia(link.inertia.m, ZERO, FullRotation(A).up_sym(J))
        step("u", link.name)
        u = [_turned(A, s) for s in link.subspace(q)]
        du = _turned(A, link.bias(q, v if v is not None else [0.0] * tree.nv))
        found.append(Placed(A, p, r, M, u, du))
    return found


def _turned(A: Mat, m: Motion) -> Motion:
    return Motion(A @ m.ang, A @ m.lin)


@dataclass(slots=True, eq=False)
class Passed:
    """How one body's velocity follows from its parent's: v_j = G_j v_i + H_j theta_j' (eq 28)."""

    G: Shift  # from the parent's centre to this body's
    H: list[Motion]
    gamma: Motion  # G_j' v_i + H_j' theta_j' (eq 30)
    w: Vec  # angular velocity


def passed(tree: Tree, bodies: list[Placed], v: Vector) -> list[Passed]:
    found: list[Passed] = []
    for link, b in zip(tree.links, bodies, strict=True):
        step("H", link.name)
        H = [seen_from(u, b.d) for u in b.u]
        h, wi = along(H, own(link, v)), found[link.parent].w if link.parent >= 0 else ZERO
        G = Shift(b.r - (bodies[link.parent].r if link.parent >= 0 else ZERO))
        step("gamma", link.name)
        wj, ds = wi + h.ang, seen_from(b.du, b.d)
        moved = wi.cross(G.r) + h.lin  # the rate of G.r; H turns with body j
        gamma = Motion(wi.cross(h.ang) + ds.ang, wi.cross(moved) + wj.cross(h.lin) + ds.lin)  # 30
        found.append(Passed(G, H, gamma, wj))
    return found


def path(tree: Tree, i: int) -> list[int]:
    """The joints that carry body i, from the ground up."""
    out = []
    while i >= 0:
        out.append(i)
        i = tree.links[i].parent
    return out[::-1]


def invertible(link: Link) -> bool:
    """Whether M_i^-1 exists: the body has mass, and no moment of inertia is (next to) nothing."""
    _, J = central(link.inertia)
    a, b, c = J.rows
    det, trace = a.dot(b.cross(c)), J.xx + J.yy + J.zz
    return bool(link.inertia.m > 0.0 and det > 1e-9 * trace**3)
