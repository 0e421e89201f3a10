"""Articulated-body algorithm for forward dynamics.

R. Featherstone, The calculation of robot dynamics using articulated-body inertias, Int. J. Robotics Research 2 (1),
1983; equation numbers are those of Wong 1991, section 2.2.2. The velocity terms c and pA are part of the recursion, as
in R. Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 7.

Solves: forward_dynamics. Any tree; bodies may be flexible. Work O(n), span O(depth).

    c_i   acceleration of body i from velocities alone       IA_i      articulated-body inertia of body i
    pA_i  force that holds it at zero acceleration           D, psi    1/(s.IA s), IA s D for one axis s
    u     tau - s.pA

The axes of a joint are eliminated as soon as its body's subtree is known. A coordinate that several joints share
(shared_coordinates.py) stays open until all of them are known. For a subtree with acceleration A at its root and open
coordinates a_k,

    force at its root    IA A + pA + sum F_k a_k
    coordinate k         sum M_kl a_l = u_k - F_k . A            where k ends and may be eliminated

    open         A joint's axis s has coordinate k: A is A' + s a_k, where A' comes from the parent.
    eliminate    a_k is solved for, and F, M, u, IA and pA are reduced accordingly.

The forward sweep undoes each in reverse order. The modes of a flexible body are free motions of it, beside its joint's
axes: open in its nodes, and eliminated in the body before the axes. The coordinate of a mimic joint is open between the
joints that have it. The work grows by the square of the number of coordinates open at one place.

Differences from the paper: body coordinates instead of the inertial frame; `a` is the classical acceleration of the
frame's origin, so that linear velocities are never needed; a joint with several axes is eliminated one axis after the
other, last first. "auto" does not select this method for mimic joints by itself: crba is less work for few bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bellcrank.dynamics.tree_sweeps import (
    Body,
    BodyRecursion,
    Exchange,
    FromParent,
    LinkShare,
    Send,
    SendInwards,
    Sum,
    Vector,
    Wrenches,
    external_force,
    external_forces,
    joint_elements,
    passive_torque,
    subspace_motion,
    sweep,
)
from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.model.tree import Link, Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import ArticulatedInertia, Inertia, articulated_inertia
from bellcrank.spatial.moves import Move, Transform
from bellcrank.spatial.vector import AT_REST, NO_FORCE, NO_MOTION, ZERO, Acceleration, Force, Mat, Motion, SymMat, Vec


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
    external_loads = external_forces(tree, q, frames, wrench)
    driven = [t + p for t, p in zip(tau, passive_torque(tree, q, v), strict=True)]
    swept = sweep(tree, body_acceleration, {"q": q, "v": v, "tau": driven}, external_loads, passive=False)
    return swept.by_coordinate(lambda found: found.ending)


# -- the work of one body


def body_forward_dynamics(body: Body) -> BodyRecursion:
    """Return the accelerations of the coordinates that end at the `body`."""
    body = replace(body, external=(yield from external_force(body)))
    return (yield from body_acceleration(body)).ending


def body_response(body: Body) -> BodyRecursion:
    """Return the elements of M^-1 tau that end at the `body`: accelerations due to joint forces alone."""
    return (yield from body_acceleration(body, still=True)).ending


@dataclass(frozen=True, slots=True, eq=False)
class BodyAcceleration:
    """Accelerations of the coordinates that end at a body, of its joint and modes, and of its frame."""

    ending: list[Scalar]
    own: list[Scalar]
    A: Acceleration


def body_acceleration(body: Body, still: bool = False) -> Generator[Exchange, Any, BodyAcceleration]:
    """Return the accelerations of one body.

    Parameters
    ----------
    body
        The body.
    still
        At rest, without gravity, springs and friction.
    """
    link, q, v, share = body.link, body.q, body.v, body.share
    X, S = transform_and_axes(link, q)
    m, resisted = AT_REST, [0.0] * len(S)
    if not still:
        w = yield FromParent(ZERO)
        m = velocity_acceleration(link, X, S, q, v, w)
        yield Send(m.w)
    c, subtree = Motion(m.dw, m.a), _body_alone(body, m.w)
    if not still:
        add_initial_modes(body, m.w, subtree)
    subtree.IA, subtree.pA, subtree.open_terms = yield Sum(
        link.name, {"IA": subtree.IA, "pA": subtree.pA, "F": subtree.open_terms}
    )
    if body.passive and not still:
        step("passive", link.name)
        resisted = link.passive(q, v)
    ending_forces = iter(body.tau)
    driven = [next(ending_forces) + p if closes else p for p, closes in zip(resisted, share.closes, strict=True)]
    for k, force in zip(share.ends, ending_forces, strict=True):
        subtree.open_terms.u[k] = subtree.open_terms.u[k] + force
    # Where no axis is eliminated, IA does not change there, and its product with c serves all axes.
    before, behind = (NO_MOTION, c) if any(share.closes) else (c, NO_MOTION)
    subtree.add_velocity_terms(before)
    for k in reversed(share.ends):
        subtree.eliminate(k)
    subtree.release_joint(link, share, S, driven)
    yield SendInwards(lambda: subtree.in_parent_frame(link, X, behind))
    gravity = ZERO if still else body.ground.gravity
    A, a = yield FromParent((Motion(ZERO, -gravity), [0.0] * share.slots))
    step("a", link.name)
    A, a = X.motion(A) + behind, [x if k in share.open else 0.0 for k, x in enumerate(a)]
    for forward_step in reversed(subtree.forward_steps):
        A = forward_step(A, a)
    A = A + before
    yield Send((A, a))
    joint = [subtree.axis_accelerations[i] if k < 0 else a[k] for i, k in enumerate(share.axes)]
    ending = [x for x, closes in zip(joint, share.closes, strict=True) if closes] + [a[k] for k in share.ends]
    return BodyAcceleration(ending, [*joint, *(a[k] for k in share.modes)], Acceleration(m.w, A.ang, A.lin))


def body_product(body: Body) -> BodyRecursion:
    """Return U x and D of each coordinate of the `body`, with M = U D U^T.

    A unit force in a joint, carried down with everything beyond it free to move, acts on the joints before it: z is the
    sum of these forces weighted by x.
    """
    link, x = body.link, body.x
    X, S = transform_and_axes(link, body.q)
    IA, z = yield Sum(link.name, {"IA": articulated_inertia(body.inertia), "U": NO_FORCE})
    products: list[Scalar] = []
    for s, k in reversed(list(zip(S, link.v_index, strict=True))):
        step("U", link.name)
        y = x[k] + s.dot(z)
        psi, inverse, _, IA, _ = eliminate_axis(link, s, 0.0, IA, NO_FORCE)
        z, products = z + psi * x[k], [y, 1.0 / inverse, *products]
    yield Send((X.articulated(IA), X.force(z)))
    return products


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


# -- the body and its subtree in the backward sweep


@dataclass
class OpenTerms:
    """Terms of the open coordinates: F, u, and the lower triangle of M, by slots."""

    F: list[Force]
    u: list[Scalar]
    M: list[list[Scalar]]

    def __add__(self, o: OpenTerms) -> OpenTerms:
        return OpenTerms(
            [x + y for x, y in zip(self.F, o.F, strict=True)],
            [x + y for x, y in zip(self.u, o.u, strict=True)],
            [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(self.M, o.M, strict=True)],
        )

    def element(self, k: int, l: int) -> Scalar:
        """Return the element M_kl of slots `k` and `l`."""
        return self.M[max(k, l)][min(k, l)]

    def add(self, k: int, l: int, x: Scalar) -> None:
        """Add `x` to the element M_kl of slots `k` and `l`."""
        row, column = max(k, l), min(k, l)
        self.M[row][column] = self.M[row][column] + x


def no_open_terms(slots: int) -> OpenTerms:
    """Return zero terms for `slots` slots."""
    return OpenTerms([NO_FORCE] * slots, [0.0] * slots, [[0.0] * (k + 1) for k in range(slots)])


@dataclass
class Subtree:
    """A body with its subtree in the backward sweep.

    forward_steps are to be applied last first; each takes A and the accelerations of the slots, and returns A.
    """

    IA: ArticulatedInertia
    pA: Force
    open_terms: OpenTerms
    slots: range
    forward_steps: list[Any] = field(default_factory=list)
    axis_accelerations: dict[int, Scalar] = field(default_factory=dict)  # accelerations of axes that are not shared

    def add_velocity_terms(self, c: Motion) -> None:
        """Replace the acceleration A of the body by A + `c`."""
        o = self.open_terms
        self.pA = self.pA + self.IA @ c
        o.u = [x - c.dot(F) for x, F in zip(o.u, o.F, strict=True)]

    def release_joint(self, link: Link, share: LinkShare, S: Sequence[Motion], driven: Vector) -> None:
        """Open or eliminate the axes of a joint, the last one first.

        Parameters
        ----------
        link
            Joint and its body.
        share
            Its share of shared coordinates.
        S
            The axes.
        driven
            Drive and passive force along each of them.
        """
        for axis in reversed(range(len(S))):
            k = share.axes[axis]
            if k < 0:
                self.eliminate_axis(link, axis, S[axis], driven[axis])
                continue
            self.open_axis(k, S[axis], driven[axis], link.armature)
            if share.closes[axis]:
                self.eliminate(k)

    def open_axis(self, k: int, s: Motion, driven: Scalar, armature: Scalar) -> None:
        """Open an axis for slot k: add its terms.

        Parameters
        ----------
        k
            Slot.
        s
            The axis.
        driven
            Drive and passive force along it.
        armature
            Rotor inertia.
        """
        U, o = self.IA @ s, self.open_terms
        o.u[k] = o.u[k] + driven - s.dot(self.pA)
        for l in self.slots:
            o.add(k, l, s.dot(o.F[l]) * (2.0 if l == k else 1.0))
        o.add(k, k, s.dot(U) + armature)
        o.F[k] = o.F[k] + U
        self.forward_steps.append(lambda A, a: A + s * a[k])

    def eliminate(self, k: int) -> None:
        """Eliminate the coordinate in slot `k`."""
        o, others = self.open_terms, [l for l in self.slots if l != k]
        F, u, inverse = o.F[k], o.u[k], 1.0 / o.element(k, k)
        psi, ratio = F * inverse, {l: o.element(k, l) * inverse for l in others}

        def solved(A: Motion, a: list[Scalar]) -> Motion:
            a[k] = (u - A.dot(F)) * inverse
            for l, x in ratio.items():
                a[k] = a[k] - x * a[l]
            return A

        self.forward_steps.append(solved)
        self.IA, self.pA = subtract_outer_product(self.IA, F, psi), self.pA + psi * u
        for i, l in enumerate(others):
            for j in others[: i + 1]:
                o.add(l, j, -(ratio[l] * o.element(k, j)))
            o.F[l], o.u[l] = o.F[l] - F * ratio[l], o.u[l] - ratio[l] * u
        self.clear(k)

    def clear(self, k: int) -> None:
        """Set all terms of slot `k` to zero."""
        self.open_terms.F[k], self.open_terms.u[k] = NO_FORCE, 0.0
        for l in self.slots:
            self.open_terms.M[max(k, l)][min(k, l)] = 0.0

    def eliminate_axis(self, link: Link, axis: int, s: Motion, driven: Scalar) -> None:
        """Eliminate an axis that is not shared, at once, as in aba.py.

        Parameters
        ----------
        link
            Joint and its body.
        axis
            Index of the axis in the joint.
        s
            The axis.
        driven
            Drive and passive force along it.
        """
        o, e = self.open_terms, [s.dot(F) for F in self.open_terms.F]
        psi, D, u, self.IA, self.pA = eliminate_axis(link, s, driven, self.IA, self.pA)
        for k in self.slots:
            o.F[k], o.u[k] = o.F[k] - psi * e[k], o.u[k] - e[k] * (D * u)
            for l in range(k + 1):
                o.add(k, l, -(e[k] * D * e[l]))

        def solved(A: Motion, a: list[Scalar]) -> Motion:
            axis_acceleration = u * D - A.dot(psi)
            for k in self.slots:
                axis_acceleration = axis_acceleration - e[k] * D * a[k]
            self.axis_accelerations[axis] = axis_acceleration
            moved: Motion = A + s * axis_acceleration
            return moved

        self.forward_steps.append(solved)

    def in_parent_frame(self, link: Link, X: Transform | Move, c: Motion) -> Iterator[Any]:
        """Yield inertia, bias force and open terms in the parent's frame.

        Parameters
        ----------
        link
            Joint and its body.
        X
            Transform from the parent frame.
        c
            Acceleration of the body due to velocities, if not added before.
        """
        step("IA", link.joint.parent)
        yield X.articulated(self.IA)
        step("pA", link.joint.parent)
        self.add_velocity_terms(c)
        yield X.force(self.pA)
        o = self.open_terms
        yield OpenTerms([X.force(F) for F in o.F], o.u, o.M)


def _body_alone(body: Body, w: Vec) -> Subtree:
    """Return the body without its children."""
    slots, inertia = body.share.slots, body.inertia
    IA, pA = articulated_inertia(inertia), bias_force(body.link, inertia, w, body.external)
    return Subtree(IA, pA, no_open_terms(slots), range(slots))


def add_initial_modes(body: Body, w: Any, subtree: Subtree) -> None:
    """Add the initial terms of the body's modes.

    Parameters
    ----------
    body
        The body.
    w
        Angular velocity of the body.
    subtree
        Subtree to which they are added.
    """
    if body.modes is not None:
        elastic = body.modes.passive(body.q, body.v) if body.passive else [0.0] * len(body.share.modes)
        add_modes(subtree, body.modes, body.share.modes, body.q, body.v, Acceleration(w, ZERO, ZERO), elastic)


def add_modes(
    subtree: Subtree,
    modes: FlexibleBody,
    slots: Sequence[int],
    q: Vector,
    v: Vector,
    m: Acceleration,
    elastic: Vector,
    moved: Callable[[Force], Force] = lambda f: f,
) -> None:
    """Add the initial terms of the modes of a flexible body.

    Parameters
    ----------
    subtree
        Subtree to which they are added.
    modes
        The flexible body.
    slots
        Slots of its modes.
    q, v
        Positions and velocities.
    m
        Acceleration of its frame F where the acceleration of the subtree is zero.
    elastic
        Elastic and damping force on each mode.
    moved
        Moves a force about F to the point to which the subtree refers.
    """
    force, needed = modes.newton_euler(q, v, [0.0] * len(v), m)
    subtree.pA = subtree.pA + moved(force)
    rows = zip(slots, modes.modal_momentum(q), elastic, needed, strict=True)
    for i, (k, F, resisted, need) in enumerate(rows):
        subtree.open_terms.F[k], subtree.open_terms.u[k] = moved(F), resisted - need
        for j, l in enumerate(slots[: i + 1]):
            subtree.open_terms.add(k, l, modes.M[i][j])


def subtract_outer_product(IA: ArticulatedInertia, U: Force, psi: Force) -> ArticulatedInertia:
    """Return the symmetric matrix IA - U psi^T.

    Parameters
    ----------
    IA
        Articulated-body inertia.
    U
        IA s.
    psi
        U / (s . U).
    """

    def product(a: Vec, b: Vec) -> SymMat:
        return SymMat(a.x * b.x, a.y * b.y, a.z * b.z, a.x * b.y, a.x * b.z, a.y * b.z)

    H = Mat(*(psi.lin * x for x in U.ang))
    return ArticulatedInertia(IA.I - product(U.ang, psi.ang), IA.H - H, IA.M - product(U.lin, psi.lin))
