"""Joint coordinates: P. E. Nikravesh, G. Gim, A. Arabyan and U. Rein, Systematic generation of multibody equations of
motion suitable for recursive and parallel manipulation, 1989, sections 2.2 and 3. B is put together from joint blocks
after S. S. Kim and M. J. Vanderploeg, 1986.

Solves: mass_matrix, bias, forward_dynamics. Any tree, coupled joints too. Work O(n depth^2), span O(depth).

    B_ik  block of body i and coordinate k: [-d~ u; u]     theta'   joint velocities (our v)
    v_i   [r', w] of body i, absolute                      M_i      its inertia, in common axes (centres.py)
    Mbar  B^T M B, lower triangle by rows                  f        B^T (g - M B' theta')

Departs: the columns of one joint are summed before B' theta' is formed; -f is called bias, and the gyroscopic terms of
g are part of Newton and Euler's M v' there; the factorisation is L^T D L along the tree (state_space.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.methods.centres import path, placed, seen_from
from bellcrank.methods.state_space import Rows, coordinate_names, right_hand_side, solve, square
from bellcrank.methods.sweep import Vector, Wrenches, along, own
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.motion import NO_MOTION, Acceleration, Motion


def velocity_transformation(tree: Tree, q: Vector) -> list[dict[int, Motion]]:
    """B of v = B theta': by body, the block of every coordinate that moves it."""
    bodies = placed(tree, q)
    B: list[dict[int, Motion]] = []
    for i, link in enumerate(tree.links):
        step("B", link.name)
        row: dict[int, Motion] = {}
        for j in path(tree, i):
            d = bodies[i].r - bodies[j].p
            for u, k in zip(bodies[j].u, tree.links[j].v_index, strict=True):
                row[k] = row[k] + seen_from(u, d) if k in row else seen_from(u, d)  # 5
        B.append(row)
    return B


def projected(tree: Tree, q: Vector) -> Rows:
    """The lower triangle of Mbar."""
    B = velocity_transformation(tree, q)
    Mbar: Rows = [{} for _ in range(tree.nv)]
    for link in tree.links:
        for k in link.v_index:
            Mbar[k][k] = Mbar[k].get(k, 0.0) + link.armature
    for link, body, Bi in zip(tree.links, placed(tree, q), B, strict=True):
        step("Mbar", link.name)
        for k, block in Bi.items():
            MB = body.M @ block
            for j, other in Bi.items():
                if j <= k:
                    Mbar[k][j] = Mbar[k].get(j, 0.0) + other.dot(MB)  # 9
    return Mbar


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    return square(projected(tree, q))


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """-f."""
    bodies, B = placed(tree, q, v), velocity_transformation(tree, q)
    V, u, du, p = (
        [],
        [],
        [],
        [],
    )  # of each body its velocity; of its joint u theta', the rate of that, the point's velocity
    for link, body, Bi in zip(tree.links, bodies, B, strict=True):
        step("v", link.name)
        V.append(along(list(Bi.values()), [v[k] for k in Bi]))  # 5
        step("u'", link.name)
        uj, w = along(body.u, own(link, v)), V[-1].ang
        u.append(uj)
        du.append(Motion(w.cross(uj.ang), w.cross(uj.lin)) + body.du)
        p.append(V[-1].lin - w.cross(body.d))
    f: list[Scalar] = [0.0] * tree.nv
    for i, link in enumerate(tree.links):
        step("B' theta'", link.name)
        a = NO_MOTION
        for j in path(tree, i):
            turned = u[j].ang.cross(V[i].lin - p[j])
            a = a + seen_from(du[j], bodies[i].r - bodies[j].p) + Motion(NO_MOTION.ang, turned)
        step("f", link.name)
        F = bodies[i].M.newton_euler(Acceleration(V[i].ang, a.ang, a.lin - tree.gravity))
        for k, block in B[i].items():
            f[k] = f[k] + block.dot(F)  # 10
    return f


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """theta'' of Mbar theta'' = f."""
    f = right_hand_side(tree, q, v, tau, bias(tree, q, v), frames, wrench)
    return solve(projected(tree, q), f, coordinate_names(tree))  # 8
