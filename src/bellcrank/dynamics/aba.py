"""Articulated-body algorithm for forward dynamics.

R. Featherstone, The calculation of robot dynamics using articulated-body inertias, Int. J. Robotics Research 2 (1),
1983; equation numbers are those of Wong 1991, section 2.2.2. The velocity terms c and pA are part of the recursion, as
in R. Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 7.

Solves: forward_dynamics. Any tree whose joints do not share coordinates (for those that do, see
shared_aba_rnea.py); bodies may be flexible (aba_modes.py). Work O(n), span O(depth).

    c_i   acceleration of body i from velocities alone       IA_i      articulated-body inertia of body i
    pA_i  force that holds it at zero acceleration           D, psi    1/(s.IA s), IA s D for one axis s
    u     tau - s.pA

Differences from the paper: body coordinates instead of the inertial frame; `a` is the classical acceleration of the
frame's origin, so that linear velocities are never needed; a joint with several axes is eliminated one axis after the
other, last first.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.aba_modes import Modes, initial_modes
from bellcrank.dynamics.tree_sweeps import (
    Vector,
    Wrenches,
    external_forces,
    joint_elements,
    passive_torque,
    subspace_motion,
)
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import NO_INERTIA, ArticulatedInertia, Inertia, articulated_inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import NO_FORCE, ZERO, Acceleration, Force, Motion, Vec

ZERO_ARTICULATED = articulated_inertia(NO_INERTIA)


def forward_dynamics(
    tree: Tree, q: Vector, v: Vector, tau: Vector, frames: Sequence[str] = (), wrench: Wrenches = None
) -> list[Scalar]:
    """Return the accelerations.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    tau
        Joint forces and moments, nv elements.
    frames
        Names of the frames on which wrenches act.
    wrench
        [force, moment] for each of these frames, in world axes at its origin.
    """
    if tree.has_mimics:
        from bellcrank.dynamics import mimic_aba  # a local import, because that module uses the functions below

        return mimic_aba.forward_dynamics(tree, q, v, tau, frames, wrench)
    external_loads = external_forces(tree, q, frames, wrench)
    passive = passive_torque(tree, q, v)
    links, X, S = tree.links, [], []
    for link in links:
        link_geometry = transform_and_axes(link, q)
        X.append(link_geometry[0])
        S.append(link_geometry[1])

    w: list[Vec] = []
    c, pA, IA = [], [], []
    inertia = tree.link_inertias(q)
    for i, link in enumerate(links):
        m = velocity_acceleration(link, X[i], S[i], q, v, w[link.parent] if link.parent >= 0 else ZERO)
        w.append(m.w)
        c.append(Motion(m.dw, m.a))
        pA.append(bias_force(link, inertia[i], m.w, external_loads[i]))
        IA.append(articulated_inertia(inertia[i]))

    driven = [t + p for t, p in zip(tau, passive, strict=True)]
    modes_by_link = _flexible_modes(tree, q, v, driven, w, pA)
    modes_by_index = {body_modes.body.v_index: body_modes for all_of in modes_by_link.values() for body_modes in all_of}

    psi, D, u = {}, {}, {}
    for i, link in reversed(list(enumerate(links))):
        for body_modes in modes_by_link.get(i, ()):
            IA[i], pA[i] = body_modes.eliminate(IA[i], pA[i])
        if link.v_index in modes_by_index:  # a node of a flexible body: its columns are those of the modes
            modes_by_index[link.v_index].add_node(S[i], IA[i], pA[i] + IA[i] @ c[i], X[i])
        for s, k in () if link.v_index in modes_by_index else reversed(list(zip(S[i], link.v_index, strict=True))):
            psi[k], D[k], u[k], IA[i], pA[i] = eliminate_axis(link, s, driven[k], IA[i], pA[i])
        if link.parent >= 0:
            step("IA", links[link.parent].name)
            IA[link.parent] = IA[link.parent] + X[i].articulated(IA[i])
            step("pA", links[link.parent].name)
            pA[link.parent] = pA[link.parent] + X[i].force(pA[i] + IA[i] @ c[i])

    a: list[Scalar] = [0.0] * tree.nv
    A: list[Motion] = []
    base = Motion(ZERO, -tree.gravity)
    for body_modes in modes_by_link.get(-1, ()):
        body_modes.eliminate(ZERO_ARTICULATED, NO_FORCE)
        _store_modes(a, body_modes, base)
    for i, link in enumerate(links):
        step("a", link.name)
        A.append(X[i].motion(A[link.parent] if link.parent >= 0 else base) + c[i])
        for s, k in zip(S[i], link.v_index, strict=True):
            if link.v_index not in modes_by_index:
                a[k] = u[k] * D[k] - A[i].dot(psi[k])  # 2.18
            A[i] = A[i] + s * a[k]  # 2.17
        for body_modes in modes_by_link.get(i, ()):
            _store_modes(a, body_modes, A[i])
    return a


# -- the work of one body: the sweeps above use it for every body, and recursive_aba_rnea.py for link classes


def transform_and_axes(link: Link, q: Vector) -> tuple[Transform, list[Motion]]:
    """Return the transform and the motion subspace of `link` at positions `q`."""
    step("X", link.name)
    return link.transform(q), link.subspace(q)


def velocity_acceleration(link: Link, X: Transform, S: Sequence[Motion], q: Vector, v: Vector, w: Vec) -> Acceleration:
    """Return w of the body, and c: its acceleration due to velocities alone.

    Parameters
    ----------
    link
        Joint and its body.
    X
        Transform from the parent frame.
    S
        Motion subspace, one column for each axis.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    w
        Angular velocity of the parent, in its frame.
    """
    step("c", link.name)
    still = Acceleration(w, ZERO, ZERO)
    return X.acceleration(still).through_joint(subspace_motion(S, joint_elements(link, v)), link.bias(q, v))


def bias_force(link: Link, inertia: Inertia, w: Vec, outer: Force) -> Force:
    """Return pA of one body without its subtree.

    Parameters
    ----------
    link
        Joint and its body.
    inertia
        Inertia of the body.
    w
        Its angular velocity.
    outer
        External force on it.
    """
    step("pA", link.name)
    return inertia.newton_euler(Acceleration(w, ZERO, ZERO)) - outer


def eliminate_axis(
    link: Link, s: Motion, driven: Scalar, IA: ArticulatedInertia, pA: Force
) -> tuple[Force, Scalar, Scalar, ArticulatedInertia, Force]:
    """Return psi, D and u of one axis, and IA and pA as they remain beyond it.

    Parameters
    ----------
    link
        Joint and its body.
    s
        The axis.
    driven
        Drive and passive force along it.
    IA
        Articulated-body inertia.
    pA
        Bias force.
    """
    step("IA", link.name)
    free = IA.across_joint(s, link.armature)  # 2.14
    step("u", link.name)
    u = driven - s.dot(pA)
    step("pA", link.name)
    return free.psi, free.inverse, u, free.rest, pA + free.psi * u  # 2.16


def _flexible_modes(
    tree: Tree, q: Vector, v: Vector, driven: Vector, w: Sequence[Vec], pA: list[Force]
) -> dict[int, list[Modes]]:
    """Return the modes by the link whose frame they move in; add the force due to their motion to its pA."""
    modes_by_link: dict[int, list[Modes]] = {}
    for body in tree.flexible:
        body_modes, force = initial_modes(body, q, v, driven, w[body.link] if body.link >= 0 else ZERO)
        modes_by_link.setdefault(body.link, []).append(body_modes)
        if body.link >= 0:
            pA[body.link] = pA[body.link] + force
    return modes_by_link


def _store_modes(a: list[Scalar], body_modes: Modes, A: Motion) -> None:
    for k, x in zip(body_modes.body.v_index, body_modes.accelerations(A), strict=True):
        a[k] = x
