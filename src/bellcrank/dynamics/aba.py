"""Articulated bodies: R. Featherstone, The calculation of robot dynamics using articulated-body inertias, Int. J.
Robotics Research 2 (1), 1983; equation numbers are those of Wong 1991, section 2.2.2. The velocity terms c and pA are
part of the recursion, as in R. Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 7.

Solves: forward_dynamics. Any tree whose joints do not share coordinates. Work O(n), span O(depth).

    c_i   acceleration of body i from velocities alone       IA_i      inertia of body i with its subtree free to move
    pA_i  force that holds it at zero acceleration           D, psi    1/(s.IA s), IA s D for one axis s
    u     tau - s.pA

Departs: body coordinates instead of the inertial frame; `a` is the classical acceleration of the frame's origin, so
that linear velocities are never needed; a joint with several axes is eliminated one axis after the other, last first.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.kinematics import passive_torque
from bellcrank.dynamics.sweep import Vector, Wrenches, along, external, own
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import articulated
from bellcrank.spatial.motion import Acceleration, Motion
from bellcrank.spatial.vector import ZERO, Vec


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    outer = external(tree, q, frames, wrench)
    passive = passive_torque(tree, q, v)
    links, X, S = tree.links, [], []
    for link in links:
        step("X", link.name)
        X.append(link.transform(q))
        S.append(link.subspace(q))

    w: list[Vec] = []
    c, pA, IA = [], [], []
    for i, link in enumerate(links):
        step("c", link.name)
        still = Acceleration(w[link.parent] if link.parent >= 0 else ZERO, ZERO, ZERO)
        m = X[i].acceleration(still).through_joint(along(S[i], own(link, v)), link.bias(q, v))
        w.append(m.w)
        c.append(Motion(m.dw, m.a))
        step("pA", link.name)
        pA.append(link.inertia.newton_euler(Acceleration(m.w, ZERO, ZERO)) - outer[i])
        IA.append(articulated(link.inertia))

    psi, D, u = {}, {}, {}
    for i, link in reversed(list(enumerate(links))):
        for s, k in reversed(list(zip(S[i], link.v_index, strict=True))):
            step("IA", link.name)
            free = IA[i].freed(s, link.armature)
            psi[k], D[k], IA[i] = free.psi, free.inverse, free.rest  # 2.14
            step("u", link.name)
            u[k] = (tau[k] + passive[k]) - s.dot(pA[i])
            step("pA", link.name)
            pA[i] = pA[i] + psi[k] * u[k]  # 2.16
        if link.parent >= 0:
            step("IA", links[link.parent].name)
            IA[link.parent] = IA[link.parent] + X[i].articulated(IA[i])
            step("pA", links[link.parent].name)
            pA[link.parent] = pA[link.parent] + X[i].force(pA[i] + IA[i] @ c[i])

    a: list[Scalar] = [0.0] * tree.nv
    A: list[Motion] = []
    for i, link in enumerate(links):
        step("a", link.name)
        A.append(X[i].motion(A[link.parent] if link.parent >= 0 else Motion(ZERO, -tree.gravity)) + c[i])
        for s, k in zip(S[i], link.v_index, strict=True):
            a[k] = u[k] * D[k] - A[i].dot(psi[k])  # 2.18
            A[i] = A[i] + s * a[k]  # 2.17
    return a
