"""Articulated-body algorithm for forward dynamics.

R. Featherstone, The calculation of robot dynamics using articulated-body inertias, Int. J. Robotics Research 2 (1),
1983; equation numbers are those of Wong 1991, section 2.2.2. The velocity terms c and pA are part of the recursion, as
in R. Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 7.

Solves: forward_dynamics. Any tree whose joints do not share coordinates (for those that do, see body_shares.py); bodies
may be flexible (aba_modes.py). Work O(n), span O(depth).

    c_i   acceleration of body i from velocities alone       IA_i      articulated-body inertia of body i
    pA_i  force that holds it at zero acceleration           D, psi    1/(s.IA s), IA s D for one axis s
    u     tau - s.pA

Differences from the paper: body coordinates instead of the inertial frame; `a` is the classical acceleration of the
frame's origin, so that linear velocities are never needed; a joint with several axes is eliminated one axis after the
other, last first.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.dynamics.aba_modes import Modes, modes
from bellcrank.dynamics.sweep import Vector, Wrenches, along, external, own, passive_torque
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import NO_INERTIA, Articulated, Inertia, articulated
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import NO_FORCE, ZERO, Acceleration, Force, Motion, Vec

STILL = articulated(NO_INERTIA)


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
    if tree.following:
        from bellcrank.dynamics import following  # a local import, because that module uses the functions below

        return following.forward_dynamics(tree, q, v, tau, frames, wrench)
    outer = external(tree, q, frames, wrench)
    passive = passive_torque(tree, q, v)
    links, X, S = tree.links, [], []
    for link in links:
        here = placed(link, q)
        X.append(here[0])
        S.append(here[1])

    w: list[Vec] = []
    c, pA, IA = [], [], []
    inertia = tree.inertias(q)
    for i, link in enumerate(links):
        m = moved(link, X[i], S[i], q, v, w[link.parent] if link.parent >= 0 else ZERO)
        w.append(m.w)
        c.append(Motion(m.dw, m.a))
        pA.append(held(link, inertia[i], m.w, outer[i]))
        IA.append(articulated(inertia[i]))

    driven = [t + p for t, p in zip(tau, passive, strict=True)]
    bent = _bent(tree, q, v, driven, w, pA)
    of = {made.body.v_index: made for all_of in bent.values() for made in all_of}

    psi, D, u = {}, {}, {}
    for i, link in reversed(list(enumerate(links))):
        for made in bent.get(i, ()):
            IA[i], pA[i] = made.freed(IA[i], pA[i])
        if link.v_index in of:  # a node of a flexible body: its columns are those of the modes
            of[link.v_index].gather(S[i], IA[i], pA[i] + IA[i] @ c[i], X[i])
        for s, k in () if link.v_index in of else reversed(list(zip(S[i], link.v_index, strict=True))):
            psi[k], D[k], u[k], IA[i], pA[i] = eliminated(link, s, driven[k], IA[i], pA[i])
        if link.parent >= 0:
            step("IA", links[link.parent].name)
            IA[link.parent] = IA[link.parent] + X[i].articulated(IA[i])
            step("pA", links[link.parent].name)
            pA[link.parent] = pA[link.parent] + X[i].force(pA[i] + IA[i] @ c[i])

    a: list[Scalar] = [0.0] * tree.nv
    A: list[Motion] = []
    base = Motion(ZERO, -tree.gravity)
    for made in bent.get(-1, ()):
        made.freed(STILL, NO_FORCE)
        _put(a, made, base)
    for i, link in enumerate(links):
        step("a", link.name)
        A.append(X[i].motion(A[link.parent] if link.parent >= 0 else base) + c[i])
        for s, k in zip(S[i], link.v_index, strict=True):
            if link.v_index not in of:
                a[k] = u[k] * D[k] - A[i].dot(psi[k])  # 2.18
            A[i] = A[i] + s * a[k]  # 2.17
        for made in bent.get(i, ()):
            _put(a, made, A[i])
    return a


# -- the work of one body: the sweeps above use it for every body, and bodies.py for link classes


def placed(link: Link, q: Vector) -> tuple[Transform, list[Motion]]:
    """Return the transform and the motion subspace of `link` at positions `q`."""
    step("X", link.name)
    return link.transform(q), link.subspace(q)


def moved(link: Link, X: Transform, S: Sequence[Motion], q: Vector, v: Vector, w: Vec) -> Acceleration:
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
    return X.acceleration(still).through_joint(along(S, own(link, v)), link.bias(q, v))


def held(link: Link, inertia: Inertia, w: Vec, outer: Force) -> Force:
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


def eliminated(
    link: Link, s: Motion, driven: Scalar, IA: Articulated, pA: Force
) -> tuple[Force, Scalar, Scalar, Articulated, Force]:
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
    free = IA.freed(s, link.armature)  # 2.14
    step("u", link.name)
    u = driven - s.dot(pA)
    step("pA", link.name)
    return free.psi, free.inverse, u, free.rest, pA + free.psi * u  # 2.16


def _bent(
    tree: Tree, q: Vector, v: Vector, driven: Vector, w: Sequence[Vec], pA: list[Force]
) -> dict[int, list[Modes]]:
    """Return the modes by the link whose frame they move in; add the force due to their motion to its pA."""
    found: dict[int, list[Modes]] = {}
    for body in tree.flexible:
        made, force = modes(body, q, v, driven, w[body.link] if body.link >= 0 else ZERO)
        found.setdefault(body.link, []).append(made)
        if body.link >= 0:
            pA[body.link] = pA[body.link] + force
    return found


def _put(a: list[Scalar], made: Modes, A: Motion) -> None:
    for k, x in zip(made.body.v_index, made.accelerations(A), strict=True):
        a[k] = x
