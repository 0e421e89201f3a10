"""Original Composite Rigid-Body algorithm (O C R-B): M. W. Walker and D. E. Orin, Efficient dynamic computer simulation
of robotic mechanisms, J. Dyn. Sys. Meas. Control 104, 1982, method 3, which A. Fijany 1989 compares with; equation
numbers are those of Wong 1991, section 2.2.1.

Solves: mass_matrix. Any tree, coupled joints too. Work O(n depth), span O(depth).

    M_j, c_j, J_j   mass, centre and central inertia of body j and all it carries, in body j's frame
    r_j             from the composite's centre to that of a part          z_j   axis of joint j
    F_j, N_j        force and moment on the composite's centre             f, n  what a joint passes on

Departs: the slides do not print it. k_i and d_i of the print are signed the other way, from the joint outwards; a body
may carry several.
"""

from __future__ import annotations

from itertools import pairwise

from bellcrank.methods.mass_matrix.columns import Central, Matrix, central, columns, path, transforms
from bellcrank.methods.sweep import Vector
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Inertia, about_centre
from bellcrank.spatial.motion import Force
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import IDENTITY, SYM_ZERO, ZERO


def seen_by_parent(part: Central, X: Transform) -> Central:
    """The same body in the parent's frame."""
    c = X.force(Force(ZERO, part.S)).lin + X.pose(IDENTITY, ZERO)[1]
    return Central(part.m, c, X.inertia(Inertia(0.0, ZERO, part.J)).I)


def composite(parts: list[Central]) -> Central:
    M = sum((part.m for part in parts[1:]), parts[0].m)  # 2.4
    if len(parts) == 1 or (isinstance(M, float) and M == 0.0):
        return Central(M, parts[0].S, sum((part.J for part in parts[1:]), parts[0].J))
    c, J = ZERO, SYM_ZERO
    for part in parts:
        c = c + part.S * (part.m / M)  # 2.5
    for part in parts:
        J = J + part.J + about_centre(part.m, part.S - c, SYM_ZERO).I  # 2.6-2.9
    return Central(M, c, J)


def mass_matrix(tree: Tree, q: Vector) -> list[list[Scalar]]:
    X = transforms(tree, q)
    z = columns(tree, q)
    parts = [[central(link.inertia)] for link in tree.links]
    A = Matrix(tree)
    for j, link in reversed(list(enumerate(tree.links))):
        step("J", link.name)
        whole = composite(parts[j])
        if link.parent >= 0:
            parts[link.parent].append(seen_by_parent(whole, X[j]))
        for a in z[j]:
            step("F", link.name)
            F = (a.Z.lin + a.Z.ang.cross(whole.S)) * whole.m  # 2.10
            N = whole.J @ a.Z.ang
            f = Force(N + whole.S.cross(F), F)
            A.felt(a, z[j], f)
            for above, i in pairwise(path(tree, j)):
                step("f", link.name)
                f = X[above].force(f)  # 2.11
                step("M", link.name)
                A.felt(a, z[i], f)  # 2.12
    return A.square()
