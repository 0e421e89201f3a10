"""Newton-Euler equations with global Jacobians: P. Schaefer and W. Schiehlen, Application of parallel computing to
robot dynamics, 1992, section 2, after the program NEWEUL of E. Kreuzer and G. Leister; equation numbers are theirs.
Every body is cut free, its Newton-Euler equations (3) are written in the inertial frame at its centre of mass, and
d'Alembert's principle takes the constraint forces out of all of them at once: M = J^T Mbar J, k = J^T kbar and
q = J^T qbar. The equations of reaction (7) are in reaction_equations.py.

Solves: mass_matrix, bias, forward_dynamics. Any tree, coupled joints too. Work O(n depth^2), span O(depth). The three
modules M, k and q share S, r, J and I and nothing else, which is what the paper's strategies live on.

    S_i, r_i     rotation and centre of mass of body i       J_Ti, J_Ri   its Jacobians, by coordinate
    m_i, I_i     mass, and inertia about r_i                 w, dw, a     angular velocity; dw_i and a_i at zero ydd
    kbar_i       Coriolis and centrifugal force and moment   qbar_i       applied force and moment
    y, yd, ydd   the paper's coordinates are our q, v, a     u            the paper's control inputs are our tau

Departs: the terms with a bar in (2) come from a recursion over the bodies instead of derivatives of (1). Drives,
springs and friction enter q as they are, since J^T of a pair of forces along an axis is the force itself. M is
factorised by state_space.py instead of Cholesky's way, without square roots. The scan has J_T for J_R in the angular
parts of (2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bellcrank.methods.kinematics import passive_torque
from bellcrank.methods.state_space import Rows, coordinate_names, solve, square
from bellcrank.methods.sweep import Vector, Wrenches, along, external, own
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.motion import NO_MOTION, Acceleration, Force, Motion, euler_moment
from bellcrank.spatial.moves import FullRotation, Shift
from bellcrank.spatial.vector import IDENTITY, SYM_ZERO, ZERO, Mat, Sym, Vec


@dataclass(frozen=True, slots=True)
class Free:
    """A body cut free, in the inertial frame."""

    S: Mat
    p: Vec  # where its joint's frame stands
    c: Vec  # from there to r
    r: Vec
    m: Scalar
    I: Sym
    axes: list[tuple[int, Vec, Motion]]  # that move it: coordinate, a point of the axis, velocity there
    J: dict[int, Motion]  # columns of J_R (ang) and J_T (lin), by coordinate


GROUND = Free(IDENTITY, ZERO, ZERO, ZERO, 0.0, SYM_ZERO, [], {})


def cut_free(tree: Tree, q: Vector) -> list[Free]:
    bodies: list[Free] = []
    for link in tree.links:
        up, centre = bodies[link.parent] if link.parent >= 0 else GROUND, link.inertia.centre
        step("S", link.name)
        S, p = link.transform(q).pose(up.S, up.p)  # 1
        c = S @ centre
        r = p + c  # 1
        step("J", link.name)
        J: dict[int, Motion] = {}
        axes = list(up.axes)
        for k, at, s in up.axes:
            J[k] = J.get(k, NO_MOTION) + Shift(r - at).motion(s)  # 2
        for s, k in zip(link.subspace(q), link.v_index, strict=True):
            ang = S @ s.ang
            axes.append((k, p, Motion(ang, S @ s.lin)))
            J[k] = J.get(k, NO_MOTION) + Motion(ang, S @ (s.lin + s.ang.cross(centre)))  # 2
        step("I", link.name)
        bodies.append(Free(S, p, c, r, link.inertia.m, FullRotation(S).up_sym(link.inertia.I_centre), axes, J))
    return bodies


def inertia_matrix(tree: Tree, bodies: Sequence[Free]) -> Rows:
    """M = J^T Mbar J, lower triangle."""
    M: Rows = [{} for _ in range(tree.nv)]
    for link, body in zip(tree.links, bodies, strict=True):
        step("M", link.name)
        for j, J in body.J.items():
            f = Force(body.I @ J.ang, J.lin * body.m)  # Mbar J
            for k in body.J:
                if k >= j:
                    M[k][j] = M[k].get(j, 0.0) + body.J[k].dot(f)  # 6
        for k in link.v_index:
            M[k][k] = M[k].get(k, 0.0) + link.armature
    return M


def coriolis(tree: Tree, bodies: Sequence[Free], q: Vector, v: Vector) -> list[Force]:
    """kbar: what moves each body as it moves at zero ydd."""
    A: list[Acceleration] = []
    kbar = []
    for link, body in zip(tree.links, bodies, strict=True):
        step("k", link.name)
        up = A[link.parent] if link.parent >= 0 else Acceleration(ZERO, ZERO, ZERO)
        at = bodies[link.parent].r if link.parent >= 0 else GROUND.r
        vJ, c = along(link.subspace(q), own(link, v)), link.bias(q, v)
        vJ, c = Motion(body.S @ vJ.ang, body.S @ vJ.lin), Motion(body.S @ c.ang, body.S @ c.lin)
        through = Shift(body.p - at).acceleration(up).through_joint(vJ, c)
        A.append(Shift(body.c).acceleration(through))  # 2, w dw a
        kbar.append(Force(euler_moment(body.I, A[-1]), A[-1].a * body.m))  # 3
    return kbar


def applied(
    tree: Tree, bodies: Sequence[Free], q: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Force]:
    """qbar: gravity, and wrenches from outside."""
    qbar = []
    for link, body, f in zip(tree.links, bodies, external(tree, q, frames, wrench), strict=True):
        step("q", link.name)
        lin, ang = body.S @ f.lin, body.S @ f.ang
        qbar.append(Force(ang - body.c.cross(lin), lin + tree.gravity * body.m))  # 3
    return qbar


def projected(tree: Tree, bodies: Sequence[Free], f: Sequence[Force], quantity: str) -> list[Scalar]:
    """J^T f: what no constraint force has a part in."""
    out: list[Scalar] = [0.0] * tree.nv
    for link, body, x in zip(tree.links, bodies, f, strict=True):
        step(quantity, link.name)
        for k, J in body.J.items():
            out[k] = out[k] + J.dot(x)  # 6
    return out


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    return square(inertia_matrix(tree, cut_free(tree, q)))


def bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """k less the part of q that gravity has."""
    bodies = cut_free(tree, q)
    k = projected(tree, bodies, coriolis(tree, bodies, q, v), "k")
    g = projected(tree, bodies, applied(tree, bodies, q), "q")
    step("k - q")
    return [x - y for x, y in zip(k, g, strict=True)]


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    bodies = cut_free(tree, q)
    M = inertia_matrix(tree, bodies)
    k = projected(tree, bodies, coriolis(tree, bodies, q, v), "k")
    qa, passive = projected(tree, bodies, applied(tree, bodies, q, frames, wrench), "q"), passive_torque(tree, q, v)
    step("q - k")
    b = [f + t + p - c for f, t, p, c in zip(qa, tau, passive, k, strict=True)]
    return solve(M, b, coordinate_names(tree))  # 6
