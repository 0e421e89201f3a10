"""Absolute coordinates: where every body is, in one frame for all, at its centre of mass (nikravesh1989, section 2.1).

    A_i   axes of body i                     J_i   inertia about the centre of mass, in common axes
    r_i   its centre of mass                 u_j   columns of joint j: how its frame F_j moves, at the origin p_j of F_j
    M_i   [J_i, m_i] as an Inertia           d_ji  = r_i - p_j, from joint j to the centre of body i

Common axes are those of the internal ground frame, in which the gravity of a Tree is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.methods.sweep import Vector, along, own
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, is_zero, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.motion import Force, Motion
from bellcrank.spatial.moves import FullRotation, Shift
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Vec, vec


@dataclass(slots=True, eq=False)
class Placed:
    A: Mat
    p: Vec
    r: Vec
    M: Inertia
    u: list[Motion]
    du: Motion  # what their change in F alone adds to the acceleration: (dS/dt) v
    fixed: bool  # the columns stand still in common axes instead of turning with the body: see `placed`

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


def placed(tree: Tree, q: Vector, v: Vector | None = None, common: bool = False) -> list[Placed]:
    """With `common`, joints that turn (or slide) freely have their columns along the common axes, where most of them
    is zeros and ones: the block of a ball joint is then [-d~; 1]. `to_common` and `from_common` change velocities,
    forces and accelerations accordingly.
    """
    found: list[Placed] = []
    for link in tree.links:
        step("A", link.name)
        up = found[link.parent] if link.parent >= 0 else None
        A, p = link.transform(q).pose(*((up.A, up.p) if up is not None else (IDENTITY, ZERO)))
        step("r", link.name)
        r = p + A @ link.inertia.centre
        step("J", link.name)
        M = FullRotation(A).inertia(link.inertia.central)
        step("u", link.name)
        S = link.subspace(q)
        fixed = common and _free(S) and not link.armature  # a rotor's own axes turn
        u = S if fixed else [_turned(A, s) for s in S]
        du = _turned(A, link.bias(q, v if v is not None else [0.0] * tree.nv))
        found.append(Placed(A, p, r, M, u, du, fixed))
    return found


def _turned(A: Mat, m: Motion) -> Motion:
    return Motion(A @ m.ang, A @ m.lin)


def _free(S: list[Motion]) -> bool:
    """Whether the columns are all three turns, or all three slides, or both."""
    turns, slides = sum(still(s.lin) for s in S), sum(still(s.ang) for s in S)
    return turns in (0, 3) and slides in (0, 3) and turns + slides == len(S)


def still(x: Vec) -> bool:
    return all(is_zero(e) for e in x)


def to_common(tree: Tree, bodies: Sequence[Placed], x: Vector) -> list[Scalar]:
    """A velocity or force on the coordinates, along the common axes where the columns are."""
    out = list(x)
    for link, body in zip(tree.links, bodies, strict=True):
        step("common", link.name)
        for three in _threes(link, body):
            for k, e in zip(three, body.A @ vec([x[k] for k in three]), strict=True):
                out[k] = e
    return out


def from_common(tree: Tree, bodies: Sequence[Placed], w: Sequence[Vec], v: Vector, a: Vector) -> list[Scalar]:
    """Accelerations along the bodies' own axes again: those turn with w, so A^T (a - w x v)."""
    out = list(a)
    for link, body, wj in zip(tree.links, bodies, w, strict=True):
        step("common", link.name)
        for three in _threes(link, body):
            turning = wj.cross(vec([v[k] for k in three]))
            for k, e in zip(three, body.A.T @ (vec([a[k] for k in three]) - turning), strict=True):
                out[k] = e
    return out


def _threes(link: Link, body: Placed) -> list[tuple[int, ...]]:
    return [link.v_index[c : c + 3] for c in range(0, len(link.v_index), 3)] if body.fixed else []


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
        turning = Motion(ZERO, h.ang.cross(wj.cross(b.d))) if b.fixed else Motion(wi.cross(h.ang), wj.cross(h.lin))
        rate = wi.cross(G.r) + h.lin  # of G.r
        gamma = Motion(ZERO, wi.cross(rate)) + turning + ds  # 30
        found.append(Passed(G, H, gamma, wj))
    return found
