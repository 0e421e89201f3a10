"""Natural orthogonal complement: J. Angeles and O. Ma, Dynamic simulation of n-axis serial robotic manipulators using a
natural orthogonal complement, Int. J. Robotics Research 7 (5), 1988; the force vector from J. Angeles, O. Ma and
A. Rojas, An algorithm for the inverse dynamics of n-axis general manipulators using Kane's equations, Computers Math.
Applic. 17 (12), 1989. Equation numbers are those of Wong 1991, sections 3.1 and 3.3.

Solves: mass_matrix, bias, forward_dynamics. Any tree, coupled joints too. Work O(n depth^2), span O(depth).

    T     the complement: twists of the bodies by unit joint rates; Wong's matrix H is the same
    Jbar  factor of a body's central inertia, J = Jbar^T Jbar; mbar likewise of its mass
    P     diag(Jbar, mbar) T, so that M = P^T P

Departs: trees and all joints, as Wong has them. Jbar is lower triangular, which leaves one element where the axis is z.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.methods.complement import central, momentum_rates, projected
from bellcrank.methods.ness import transformation
from bellcrank.methods.state_space import Rows, accelerations, felt, square
from bellcrank.methods.sweep import Vector, Wrenches
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, sqrt, step
from bellcrank.spatial.motion import Force, Motion
from bellcrank.spatial.vector import Mat, Sym, Vec

FLAT = 1e-14  # a moment of inertia below this, of the largest, is rounding: the body is thin


def factor(J: Sym) -> Mat:
    """Jbar, from its last row up; a row without length is zero."""
    least = FLAT * (J.xx + J.yy + J.zz)

    def root(x: Scalar) -> Scalar:
        return sqrt(x) if x > least else 0.0

    def over(x: Scalar, by: Scalar) -> Scalar:
        return x / by if by else 0.0

    zz = root(J.zz)
    zx, zy = over(J.xz, zz), over(J.yz, zz)
    yy = root(J.yy - zy * zy)
    yx = over(J.xy - zx * zy, yy)
    xx = root(J.xx - zx * zx - yx * yx)
    return Mat(Vec(xx, 0.0, 0.0), Vec(yx, yy, 0.0), Vec(zx, zy, zz))


def inertia_matrix(tree: Tree, q: Vector) -> Rows:
    P = []
    for link, twists in zip(tree.links, transformation(tree, q), strict=True):
        step("P", link.name)
        m, _, J = central(link.inertia)
        Jbar, mbar = factor(J), sqrt(m)
        P.append({k: Motion(Jbar @ t.ang, t.lin * mbar) for k, t in twists.items()})
    return projected(tree, P, [{k: Force(p.ang, p.lin) for k, p in row.items()} for row in P])


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    return square(inertia_matrix(tree, q))


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """The O(n) way: moments about the joints, handed down the path instead of projected one by one."""
    forces = []
    for link, rate in zip(tree.links, momentum_rates(tree, q, v), strict=True):  # 3.27-3.31
        step("f", link.name)
        _, c, _ = central(link.inertia)
        forces.append(Force(rate.ang + c.cross(rate.lin), rate.lin))
    return felt(tree, q, forces)  # 3.33


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    return accelerations(tree, q, v, tau, mass_matrix(tree, q), bias(tree, q, v), frames, wrench)
