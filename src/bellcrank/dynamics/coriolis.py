"""Coriolis matrix from Christoffel symbols.

S. Echeandia and P. M. Wensing, Numerical methods to compute the Coriolis matrix and Christoffel symbols for rigid-body
systems, J. Comput. Nonlinear Dynam. 16, 2021, algorithm 1.

Solves: coriolis_matrix. Any tree, with mimic joints too. Work O(n depth), span O(depth).

    Ic   inertia of the subtree of a joint         Z, dZ   a joint's axis, and its rate of change in space
    B    its Coriolis matrix, twice (derivatives.py)

    C_oc = Z_o . (Ic dZ_c + B/2 Z_c)      for a joint o that carries joint c, and
    C_co = Z_c . (Ic dZ_o + B/2 Z_o)

so that C v are the Coriolis forces and C + C^T is the rate of the mass matrix.

A flexible body has modal velocities beside the velocity V of its frame; f_k is the momentum of a unit of one of them:

    C_ok = Z_o . (dI_k V/2 + V x f_k + sum_l (f_k,l + f_l,k) dn_l / 2)        f_k,l = df_k/dn_l,  dI_k = dI/dn_k
    C_ko = dZ_o . f_k + Z_o . (-dI_k V/2 + sum_l (f_k,l - f_l,k) dn_l / 2)    C_kl = V . (f_k,l - f_l,k) / 2

Differences from the paper: everything is in body coordinates, and B has 12 numbers instead of 36, as in derivatives.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.centroidal import (
    Rows,
    bending_rates,
    composites,
    moving_flexible_bodies,
    subtree_moments,
    transport_rate,
)
from bellcrank.dynamics.frame_motion import axis_rates
from bellcrank.dynamics.kinematics import velocities
from bellcrank.dynamics.momentum_moments import rigid_momentum_moments, rotate_to_parent
from bellcrank.dynamics.tree_sweeps import (
    Body,
    BodyRecursion,
    FromParent,
    Send,
    Vector,
    accumulate_subtree,
    subspace_motion,
)
from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.model.tree import Tree
from bellcrank.scalar import step
from bellcrank.spatial.vector import NO_MOTION, Motion

Axes = list[tuple[int, Motion, Motion]]


def coriolis_matrix(tree: Tree, q: Vector, v: Vector) -> Rows:
    """Return C, nv x nv.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    Ic, B, X = composites(tree, q), subtree_moments(tree, q, v), [link.transform(q) for link in tree.links]
    D, V, axes = bending_rates(tree, q, v), velocities(tree, q, v), []
    for link, velocity in zip(tree.links, V, strict=True):
        step("dZ", link.name)
        axes.append(axis_rates(link, q, v, velocity))
    C: Rows = [[0.0] * tree.nv for _ in range(tree.nv)]
    for i, link in enumerate(tree.links):
        for k, Z, dZ in axes[i]:
            step("C", link.name)
            e = (D[i] @ Z) * 0.5
            u, r, b = Ic[i] @ dZ + (B[i] @ Z) * 0.5 + e, Ic[i] @ Z, B[i].row(Z) * 0.5
            for o, Z_o, _ in axes[i]:
                C[o][k] = C[o][k] + Z_o.dot(u)
            above = i
            while tree.links[above].parent >= 0:
                step("C", link.name)
                u, r, e = X[above].force(u), X[above].force(r), X[above].force(e)
                b, above = rotate_to_parent(X[above], b), tree.links[above].parent
                for o, Z_o, dZ_o in axes[above]:
                    C[o][k] = C[o][k] + Z_o.dot(u)
                    C[k][o] = C[k][o] + dZ_o.dot(r) + Z_o.ang.dot(b) + Z_o.dot(e)
    for body in moving_flexible_bodies(tree):
        _add_modes(tree, q, v, body, V[body.link], axes, C)
    return C


def _add_modes(tree: Tree, q: Vector, v: Vector, body: FlexibleBody, V: Motion, axes: Sequence[Axes], C: Rows) -> None:
    """Add the rows and columns of a flexible body's modes."""
    for m, (k, f, slope) in enumerate(
        zip(body.v_index, body.modal_momentum(q), body.inertia_derivatives(q), strict=True)
    ):
        step("C", tree.links[body.link].name)
        rate, derivative, half = body.modal_momentum_rate(m, v), body.momentum_derivative(m, v), (slope @ V) * 0.5
        # forces on the joints due to modal velocities, and forces on the mode due to joint velocities
        joint_force = half + transport_rate(V, f) + (rate + derivative) * 0.5
        mode_force = (rate - derivative) * 0.5 - half
        above = body.link
        while True:
            for o, Z, dZ in axes[above]:
                C[o][k] = C[o][k] + Z.dot(joint_force)
                C[k][o] = C[k][o] + dZ.dot(f) + Z.dot(mode_force)
            if tree.links[above].parent < 0:
                break
            X = tree.links[above].transform(q)
            joint_force, mode_force, f = X.force(joint_force), X.force(mode_force), X.force(f)
            above = tree.links[above].parent
        for l, j in enumerate(body.v_index):
            gyroscopic = body.C1[m][l] - body.C1[l][m]
            C[k][j] = C[k][j] + 0.5 * gyroscopic.dot(V.ang)


# -- the work of one body


def body_product(body: Body) -> BodyRecursion:
    """Return the elements of C x that belong to the `body`.

    W is the body's velocity for x, and dW the rate of W in space while the body moves with v.
    """
    link, X, S, x = body.link, body.X, body.S, body.x
    V, W, dW = yield FromParent((NO_MOTION, NO_MOTION, NO_MOTION))
    step("V", link.name)
    V, W = X.motion(V) + subspace_motion(S, body.v), X.motion(W) + subspace_motion(S, x)
    step("dZ", link.name)
    dW = X.motion(dW) + subspace_motion([dZ for _, _, dZ in axis_rates(link, body.q, body.v, V)], x)
    yield Send((V, W, dW))
    step("C", link.name)
    own = body.inertia @ dW + (rigid_momentum_moments(body.inertia, V) @ W) * 0.5
    (f,) = yield from accumulate_subtree(body, X.force, C=own)
    return [s.dot(f) for s in S]
