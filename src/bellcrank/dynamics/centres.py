"""Bodies cut free: where every body is, in one frame for all, at its centre of mass, how the coordinates move it and
what pushes it (nikravesh1989, section 2.1; schaefer1992, section 2).

    A_i   axes of body i                     J_i   inertia about the centre of mass, in common axes
    r_i   its centre of mass                 u_j   columns of joint j: how its frame F_j moves, at the origin p_j of F_j
    M_i   [J_i, m_i] as an Inertia           d_ji  = r_i - p_j, from joint j to the centre of body i (d_i where j is i)
    B_ik  block of body i and coordinate k: [-d~ u; u]

Common axes are those of the internal ground frame, in which the gravity of a Tree is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.dynamics.inertial import inertial_poses
from bellcrank.dynamics.sweep import Vector, Wrenches, along, external, own
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, is_zero, step
from bellcrank.spatial.inertia import Inertia
from bellcrank.spatial.moves import FullRotation, Shift
from bellcrank.spatial.vector import NO_MOTION, ZERO, Force, Mat, Motion, Vec, vec


@dataclass(slots=True, eq=False)
class Placed:
    A: Mat
    p: Vec
    d: Vec
    r: Vec
    M: Inertia
    u: list[Motion]
    H: list[Motion]  # the same columns at the centre
    du: Motion  # what their change in F alone adds to the acceleration: (dS/dt) v
    fixed: bool  # the columns stand still in common axes instead of turning with the body: see `placed`

    def force(self, f: Force) -> Force:
        """A force in F about its origin, in common axes about the centre of mass."""
        f = f.turned(self.A)
        return Force(f.ang - self.d.cross(f.lin), f.lin)


def placed(tree: Tree, q: Vector, v: Vector | None = None, common: bool = False) -> list[Placed]:
    """With `common`, joints that turn (or slide) freely have their columns along the common axes, where most of them
    is zeros and ones: the block of a ball joint is then [-d~; 1]. `to_common` and `from_common` change velocities,
    forces and accelerations accordingly.
    """
    found: list[Placed] = []
    for link, (A, p) in zip(tree.links, inertial_poses(tree, q), strict=True):
        step("r", link.name)
        centre = link.inertia.centre
        d = A @ centre
        step("J", link.name)
        M = FullRotation(A).inertia(link.inertia.central)
        step("u", link.name)
        S = link.subspace(q)
        fixed = common and _free(S) and not link.armature  # a rotor's own axes turn
        u = S if fixed else [s.turned(A) for s in S]
        H = [Shift(d).motion(s) for s in S] if fixed else [Shift(centre).motion(s).turned(A) for s in S]
        du = link.bias(q, v if v is not None else [0.0] * tree.nv).turned(A)
        found.append(Placed(A, p, d, p + d, M, u, H, du, fixed))
    return found


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


def _one(a: Vec, b: Vec) -> bool:
    """Whether two points are one in every state, as the origins in a wrist are: then distances are found again."""
    return all(x is y for x, y in zip(a, b, strict=True))


def reach(joint: Placed, body: Placed) -> Shift:
    """d_ji as a move, from joint j to the centre of body i."""
    return Shift(body.d if _one(joint.p, body.p) else body.r - joint.p)


def between(up: Placed, body: Placed) -> Shift:
    """From centre to centre."""
    return Shift(body.d - up.d if _one(up.p, body.p) else body.r - up.r)


def jacobians(tree: Tree, bodies: Sequence[Placed]) -> list[dict[int, Motion]]:
    """How every coordinate on the path to a body moves its centre: [-d~ u; u], summed where joints share one."""
    found = []
    for i, link in enumerate(tree.links):
        step("B", link.name)
        row: dict[int, Motion] = {}
        for j in reversed(tree.path(i)):
            H = bodies[i].H if j == i else [reach(bodies[j], bodies[i]).motion(u) for u in bodies[j].u]
            for h, k in zip(H, tree.links[j].v_index, strict=True):
                row[k] = row.get(k, NO_MOTION) + h
        found.append(row)
    return found


def applied(
    tree: Tree, q: Vector, bodies: Sequence[Placed], frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Force]:
    """Gravity, and wrenches from outside."""
    found = []
    for link, body, f in zip(tree.links, bodies, external(tree, q, frames, wrench), strict=True):
        step("g", link.name)
        found.append(body.force(f) + Force(ZERO, tree.gravity * body.M.m))
    return found


@dataclass(slots=True, eq=False)
class Passed:
    """How one body's velocity follows from its parent's: v_j = G_j v_i + H_j theta_j' (eq 28)."""

    G: Shift  # from the parent's centre to this body's
    gamma: Motion  # G_j' v_i + H_j' theta_j' (eq 30)
    w: Vec  # angular velocity


def passed(tree: Tree, bodies: list[Placed], v: Vector) -> list[Passed]:
    found: list[Passed] = []
    for link, b in zip(tree.links, bodies, strict=True):
        step("v", link.name)
        h, wi = along(b.H, own(link, v)), found[link.parent].w if link.parent >= 0 else ZERO
        G = between(bodies[link.parent], b) if link.parent >= 0 else Shift(b.r)
        step("gamma", link.name)
        wj, ds = wi + h.ang, Shift(b.d).motion(b.du)
        turning = Motion(ZERO, h.ang.cross(wj.cross(b.d))) if b.fixed else Motion(wi.cross(h.ang), wj.cross(h.lin))
        rate = wi.cross(G.r) + h.lin  # of G.r
        gamma = Motion(ZERO, wi.cross(rate)) + turning + ds  # 30
        found.append(Passed(G, gamma, wj))
    return found
