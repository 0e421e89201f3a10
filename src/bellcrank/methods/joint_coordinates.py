"""Joint coordinates: P. E. Nikravesh, G. Gim, A. Arabyan and U. Rein, Systematic generation of multibody equations of
motion suitable for recursive and parallel manipulation, 1989, sections 2.2 and 3. B is put together from joint blocks
after S. S. Kim and M. J. Vanderploeg, 1986.

Solves: mass_matrix, bias, forward_dynamics. Any tree, coupled joints too. Work O(n depth^2), span O(depth).

    B_ik  block of body i and coordinate k: [-d~ u; u]     theta'   joint velocities (our v)
    v_i   [r', w] of body i, absolute                      M_i      its inertia, in common axes (centres.py)
    Mbar  B^T M B, lower triangle by rows                  f        B^T (g - M B' theta')

Departs: our v of a ball or a floating joint is in the body's axes; the paper's, in common axes, is used where only the
accelerations are asked for (centres.py). The columns of one joint are summed before B' theta' is formed; -f is called
bias, and the gyroscopic terms of g are part of Newton's and Euler's M v' there; the factorisation is L^T D L along the
tree (state_space.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.methods.centres import Placed, from_common, placed, seen_from, to_common
from bellcrank.methods.state_space import Rows, coordinate_names, right_hand_side, solve, square
from bellcrank.methods.sweep import Vector, Wrenches, along, own
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.motion import NO_MOTION, Acceleration, Motion
from bellcrank.spatial.vector import ZERO

Blocks = dict[int, Motion]  # of one body, by coordinate


def velocity_transformation(tree: Tree, q: Vector) -> list[Blocks]:
    """B of v = B theta': by body, the block of every coordinate that moves it."""
    return assembled(tree, placed(tree, q))


def assembled(tree: Tree, bodies: Sequence[Placed]) -> list[Blocks]:
    B: list[Blocks] = []
    for i, link in enumerate(tree.links):
        step("B", link.name)
        row: Blocks = {}
        for j in reversed(tree.path(i)):
            d = bodies[i].r - bodies[j].p
            for u, k in zip(bodies[j].u, tree.links[j].v_index, strict=True):
                row[k] = row[k] + seen_from(u, d) if k in row else seen_from(u, d)  # 5
        B.append(row)
    return B


def projected(tree: Tree, bodies: Sequence[Placed], B: Sequence[Blocks]) -> Rows:
    """The lower triangle of Mbar."""
    Mbar: Rows = [{} for _ in range(tree.nv)]
    for link in tree.links:
        for k in link.v_index:
            Mbar[k][k] = Mbar[k].get(k, 0.0) + link.armature
    for link, body, Bi in zip(tree.links, bodies, B, strict=True):
        step("Mbar", link.name)
        for k, block in Bi.items():
            MB = body.M @ block
            for j, other in Bi.items():
                if j <= k:
                    Mbar[k][j] = Mbar[k].get(j, 0.0) + other.dot(MB)  # 9
    return Mbar


def velocities(tree: Tree, B: Sequence[Blocks], theta: Vector) -> list[Motion]:
    V = []
    for link, Bi in zip(tree.links, B, strict=True):
        step("v", link.name)
        V.append(along(list(Bi.values()), [theta[k] for k in Bi]))  # 5
    return V


def held(tree: Tree, bodies: Sequence[Placed], B: Sequence[Blocks], V: Sequence[Motion], theta: Vector) -> list[Scalar]:
    """-f."""
    u, du, p = [], [], []  # of each joint: u theta', the rate of that, and its point's velocity
    for link, body, Vj in zip(tree.links, bodies, V, strict=True):
        step("u'", link.name)
        uj, w = along(body.u, own(link, theta)), Vj.ang
        u.append(uj)
        du.append(NO_MOTION if body.fixed else Motion(w.cross(uj.ang), w.cross(uj.lin)) + body.du)
        p.append(Vj.lin - w.cross(body.d))
    f: list[Scalar] = [0.0] * tree.nv
    for i, link in enumerate(tree.links):
        step("B' theta'", link.name)
        a = NO_MOTION
        for j in reversed(tree.path(i)):
            turned = u[j].ang.cross(V[i].lin - p[j])
            a = a + seen_from(du[j], bodies[i].r - bodies[j].p) + Motion(ZERO, turned)
        step("f", link.name)
        F = bodies[i].M.newton_euler(Acceleration(V[i].ang, a.ang, a.lin - tree.gravity))
        for k, block in B[i].items():
            f[k] = f[k] + block.dot(F)  # 10
    return f


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    bodies = placed(tree, q)
    return square(projected(tree, bodies, assembled(tree, bodies)))


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    bodies = placed(tree, q, v)
    B = assembled(tree, bodies)
    return held(tree, bodies, B, velocities(tree, B, v), v)


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """theta'' of Mbar theta'' = f."""
    bodies = placed(tree, q, v, common=True)
    B, theta = assembled(tree, bodies), to_common(tree, bodies, v)
    V = velocities(tree, B, theta)
    pushed = to_common(tree, bodies, right_hand_side(tree, q, v, tau, [0.0] * tree.nv, frames, wrench))
    f = [t - h for t, h in zip(pushed, held(tree, bodies, B, V, theta), strict=True)]
    a = solve(projected(tree, bodies, B), f, coordinate_names(tree))  # 8
    return from_common(tree, bodies, [Vj.ang for Vj in V], theta, a)
