"""Body recursions for forward and inverse dynamics with shared coordinates.

aba.py eliminates the axes of a joint as soon as its body's subtree is known. A coordinate that several joints share
(shared_coordinates.py) stays open until all of them are known. For a subtree with acceleration A at its root and open
coordinates a_k,

    force at its root    IA A + pA + sum F_k a_k
    coordinate k         sum M_kl a_l = u_k - F_k . A            where k ends and may be eliminated

    enter    A joint's axis s has coordinate k: A is A' + s a_k, where A' comes from the parent.
    close    a_k is solved for, and F, M, u, IA and pA are reduced accordingly.

The forward sweep undoes each in reverse order. Modes of a flexible body are open in its nodes and end in the body, as
in aba_modes.py; the coordinate of a mimic joint is open in between. So the work is that of aba.py, plus the square of
the number of coordinates open at one place.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bellcrank.dynamics import aba, rnea
from bellcrank.dynamics.aba_modes import subtract_outer_product
from bellcrank.dynamics.recursion.body_recursion import BodyRecursion, Exchange, FromChildren, FromParent, Ground, Send
from bellcrank.dynamics.shared_coordinates import SharingLink
from bellcrank.dynamics.tree_sweeps import Vector
from bellcrank.model.flexible_body import FlexibleBody
from bellcrank.model.tree import Link
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import ArticulatedInertia, Inertia, articulated_inertia
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import NO_FORCE, ZERO, Acceleration, Force, Motion


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

    undo has the steps of the forward sweep, to be applied last first; each takes A and the accelerations of the slots.
    """

    IA: ArticulatedInertia
    pA: Force
    open_terms: OpenTerms
    slots: range
    forward_steps: list[Any] = field(default_factory=list)
    axis_accelerations: dict[int, Scalar] = field(default_factory=dict)  # accelerations of axes that are not shared

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
            a[k] = u * inverse - A.dot(psi)
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

    def eliminate_axis(self, link: SharingLink, axis: int, s: Motion, driven: Scalar) -> None:
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
        psi, D, u, self.IA, self.pA = aba.eliminate_axis(link, s, driven, self.IA, self.pA)
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

    def in_parent_frame(self, X: Transform, c: Motion) -> tuple[ArticulatedInertia, Force, OpenTerms]:
        """Return inertia, bias force and open terms in the parent's frame.

        Parameters
        ----------
        X
            Transform from the parent frame.
        c
            Acceleration of the body due to velocities.
        """
        o = self.open_terms
        u = [x - c.dot(F) for x, F in zip(o.u, o.F, strict=True)]
        return X.articulated(self.IA), X.force(self.pA + self.IA @ c), OpenTerms([X.force(F) for F in o.F], u, o.M)


def body_modes(link: Link) -> FlexibleBody | None:
    """Return the modes of the body of `link`, or None."""
    return link.bending if isinstance(link, SharingLink) else None


def current_inertia(link: Link, q: Vector) -> Inertia:
    """Return the inertia of the body of `link` in its shape at positions `q`."""
    body = body_modes(link)
    return link.inertia if body is None else link.inertia + body.inertia(q)


def shared_body_acceleration(
    link: SharingLink, ground: Ground, q: Vector, v: Vector, tau: Vector, external: Force
) -> Generator[Exchange, Any, tuple[list[Scalar], Force]]:
    """Return the accelerations of the coordinates that end here, and the force about F that moves the body with them.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    tau
        Forces and moments on the joint's coordinates.
    external
        External force on the body about the origin of its frame.
    """
    share, (X, S) = link.share, aba.transform_and_axes(link, q)
    w = yield FromParent(ZERO)
    m = aba.velocity_acceleration(link, X, S, q, v, w)
    yield Send(m.w)
    c, inertia = Motion(m.dw, m.a), current_inertia(link, q)
    subtree = Subtree(
        articulated_inertia(inertia),
        aba.bias_force(link, inertia, m.w, external),
        no_open_terms(share.slots),
        range(share.slots),
    )
    add_initial_modes(link, q, v, m.w, subtree)
    parts = yield FromChildren()
    for IA, pA, more in parts:
        subtree.IA, subtree.pA, subtree.open_terms = subtree.IA + IA, subtree.pA + pA, subtree.open_terms + more
    answers = iter(tau)
    driven = [next(answers) if closes else 0.0 for closes in share.closes]
    for k in share.ends:
        subtree.open_terms.u[k] = subtree.open_terms.u[k] + next(answers)
    for k in reversed(share.ends):
        subtree.eliminate(k)
    passive = link.passive(q, v)
    for axis in reversed(range(len(S))):
        k, force = share.axes[axis], driven[axis] + passive[axis]
        if k < 0:
            subtree.eliminate_axis(link, axis, S[axis], force)
            continue
        subtree.open_axis(k, S[axis], force, link.armature)
        if share.closes[axis]:
            subtree.eliminate(k)
    yield Send(subtree.in_parent_frame(X, c))
    A, a = yield FromParent((Motion(ZERO, -ground.gravity), [0.0] * share.slots))
    step("a", link.name)
    A, a = X.motion(A) + c, [x if k in share.open else 0.0 for k, x in enumerate(a)]
    for back in reversed(subtree.forward_steps):
        A = back(A, a)
    yield Send((A, a))
    joint = [subtree.axis_accelerations[i] if k < 0 else a[k] for i, k in enumerate(share.axes)]
    accelerations = [x for x, closes in zip(joint, share.closes, strict=True) if closes] + [a[k] for k in share.ends]
    every = [*joint, *(a[k] for k in share.modes)]
    return accelerations, body_force(link, q, v, every, Acceleration(m.w, A.ang, A.lin), external)[0]


def add_initial_modes(link: SharingLink, q: Vector, v: Vector, w: Any, subtree: Subtree) -> None:
    """Add the initial terms of the body's modes.

    Parameters
    ----------
    link
        Joint and its body.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    w
        Angular velocity of the body.
    subtree
        Subtree to which they are added.
    """
    body = link.bending
    if body is None:
        return
    force, needed = body.newton_euler(q, v, [0.0] * len(v), Acceleration(w, ZERO, ZERO))
    subtree.pA = subtree.pA + force
    rows = zip(link.share.modes, body.modal_momentum(q), body.passive(q, v), needed, strict=True)
    for i, (k, F, passive, need) in enumerate(rows):
        subtree.open_terms.F[k], subtree.open_terms.u[k] = F, passive - need
        for j, l in enumerate(link.share.modes[: i + 1]):
            subtree.open_terms.add(k, l, body.M[i][j])


def required_forces(
    link: SharingLink, ground: Ground, q: Vector, v: Vector, a: Vector, external: Force, passive: bool
) -> BodyRecursion:
    """Return the generalised forces of the coordinates that end here: rnea.py as a body recursion.

    Parameters
    ----------
    link
        Joint and its body.
    ground
        Gravity and pose of the ground.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    a
        Accelerations of the joint's coordinates.
    external
        External force on the body about the origin of its frame.
    passive
        Subtract springs and friction.
    """
    share, body = link.share, link.bending
    up = yield FromParent(Acceleration(ZERO, ZERO, -ground.gravity))
    A = rnea.child_acceleration(link, q, v, a, up)
    yield Send(A)
    f, felt = body_force(link, q, v, a, A, external)
    slot_forces: list[Scalar] = [0.0] * share.slots
    overcome = body.passive(q, v) if body is not None and passive else [0.0] * len(felt)
    for k, x, p in zip(share.modes, felt, overcome, strict=True):
        slot_forces[k] = x - p
    parts = yield FromChildren()
    for force, more in parts:
        f, slot_forces = f + force, [x + y for x, y in zip(slot_forces, more, strict=True)]
    step("tau", link.name)
    lost, joint = link.passive(q, v) if passive else [0.0] * len(share.axes), list[Scalar]()
    for i, (s, k) in enumerate(zip(link.subspace(q), share.axes, strict=True)):
        joint.append(s.dot(f) + link.armature * a[i] - lost[i])
        if k >= 0:
            slot_forces[k] = slot_forces[k] + joint[i]
    yield Send((link.transform(q).force(f), [x if k in share.open else 0.0 for k, x in enumerate(slot_forces)]))
    answers = [
        x if k < 0 else slot_forces[k] for x, k, closes in zip(joint, share.axes, share.closes, strict=True) if closes
    ]
    return [*answers, *(slot_forces[k] for k in share.ends)]


def body_force(
    link: Link, q: Vector, v: Vector, a: Vector, A: Acceleration, external: Force
) -> tuple[Force, Sequence[Scalar]]:
    """Return the force about F that moves the body as given, and the generalised forces of its modes.

    Parameters
    ----------
    link
        Joint and its body.
    q
        Positions of the joint's coordinates.
    v
        Velocities of the joint's coordinates.
    a
        Accelerations of the joint's coordinates.
    A
        Acceleration of its frame.
    external
        External force on the body about the origin of its frame.
    """
    step("f", link.name)
    f, body = current_inertia(link, q).newton_euler(A) - external, body_modes(link)
    if body is None:
        return f, []
    force, felt = body.newton_euler(q, v, a, A)
    return f + force, felt
