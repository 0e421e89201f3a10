"""Body recursions for forward and inverse dynamics with shared coordinates.

aba.py eliminates the axes of a joint as soon as its body's subtree is known. A coordinate that several joints share
(shares.py) stays open until all of them are known. For a subtree with acceleration A at its root and open coordinates
a_k,

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
from bellcrank.dynamics.aba_modes import less
from bellcrank.dynamics.neighbours import Asked, Body, FromChildren, FromParent, Ground, Hands
from bellcrank.dynamics.shares import Sharing
from bellcrank.dynamics.sweep import Vector
from bellcrank.model.bending import Bending
from bellcrank.model.tree import Link
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import Articulated, Inertia, articulated
from bellcrank.spatial.moves import Transform
from bellcrank.spatial.vector import NO_FORCE, ZERO, Acceleration, Force, Motion


@dataclass
class Open:
    """Terms of the open coordinates: F, u, and the lower triangle of M, by slots."""

    F: list[Force]
    u: list[Scalar]
    M: list[list[Scalar]]

    def __add__(self, o: Open) -> Open:
        return Open(
            [x + y for x, y in zip(self.F, o.F, strict=True)],
            [x + y for x, y in zip(self.u, o.u, strict=True)],
            [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(self.M, o.M, strict=True)],
        )

    def at(self, k: int, l: int) -> Scalar:
        """Return the element M_kl of slots `k` and `l`."""
        return self.M[max(k, l)][min(k, l)]

    def add(self, k: int, l: int, x: Scalar) -> None:
        """Add `x` to the element M_kl of slots `k` and `l`."""
        row, column = max(k, l), min(k, l)
        self.M[row][column] = self.M[row][column] + x


def nothing_open(slots: int) -> Open:
    """Return zero terms for so many `slots`."""
    return Open([NO_FORCE] * slots, [0.0] * slots, [[0.0] * (k + 1) for k in range(slots)])


@dataclass
class Subtree:
    """A body with its subtree in the backward sweep.

    undo has the steps of the forward sweep, to be applied last first; each takes A and the accelerations of the slots.
    """

    IA: Articulated
    pA: Force
    open: Open
    slots: range
    undo: list[Any] = field(default_factory=list)
    solved: dict[int, Scalar] = field(default_factory=dict)  # accelerations of axes that are not shared

    def enter(self, k: int, s: Motion, driven: Scalar, armature: Scalar) -> None:
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
        U, o = self.IA @ s, self.open
        o.u[k] = o.u[k] + driven - s.dot(self.pA)
        for l in self.slots:
            o.add(k, l, s.dot(o.F[l]) * (2.0 if l == k else 1.0))
        o.add(k, k, s.dot(U) + armature)
        o.F[k] = o.F[k] + U
        self.undo.append(lambda A, a: A + s * a[k])

    def close(self, k: int) -> None:
        """Eliminate the coordinate in slot `k`."""
        o, others = self.open, [l for l in self.slots if l != k]
        F, u, inverse = o.F[k], o.u[k], 1.0 / o.at(k, k)
        psi, ratio = F * inverse, {l: o.at(k, l) * inverse for l in others}

        def solved(A: Motion, a: list[Scalar]) -> Motion:
            a[k] = u * inverse - A.dot(psi)
            for l, x in ratio.items():
                a[k] = a[k] - x * a[l]
            return A

        self.undo.append(solved)
        self.IA, self.pA = less(self.IA, F, psi), self.pA + psi * u
        for i, l in enumerate(others):
            for j in others[: i + 1]:
                o.add(l, j, -(ratio[l] * o.at(k, j)))
            o.F[l], o.u[l] = o.F[l] - F * ratio[l], o.u[l] - ratio[l] * u
        self.clear(k)

    def clear(self, k: int) -> None:
        """Set all terms of slot `k` to zero."""
        self.open.F[k], self.open.u[k] = NO_FORCE, 0.0
        for l in self.slots:
            self.open.M[max(k, l)][min(k, l)] = 0.0

    def free(self, link: Sharing, axis: int, s: Motion, driven: Scalar) -> None:
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
        o, e = self.open, [s.dot(F) for F in self.open.F]
        psi, D, u, self.IA, self.pA = aba.eliminated(link, s, driven, self.IA, self.pA)
        for k in self.slots:
            o.F[k], o.u[k] = o.F[k] - psi * e[k], o.u[k] - e[k] * (D * u)
            for l in range(k + 1):
                o.add(k, l, -(e[k] * D * e[l]))

        def solved(A: Motion, a: list[Scalar]) -> Motion:
            found = u * D - A.dot(psi)
            for k in self.slots:
                found = found - e[k] * D * a[k]
            self.solved[axis] = found
            moved: Motion = A + s * found
            return moved

        self.undo.append(solved)

    def handed(self, X: Transform, c: Motion) -> tuple[Articulated, Force, Open]:
        """Return inertia, bias force and open terms in the parent's frame.

        Parameters
        ----------
        X
            Transform from the parent frame.
        c
            Acceleration of the body due to velocities.
        """
        o = self.open
        u = [x - c.dot(F) for x, F in zip(o.u, o.F, strict=True)]
        return X.articulated(self.IA), X.force(self.pA + self.IA @ c), Open([X.force(F) for F in o.F], u, o.M)


def bending_of(link: Link) -> Bending | None:
    """Return the modes of the body of `link`, or None."""
    return link.bending if isinstance(link, Sharing) else None


def inertia_of(link: Link, q: Vector) -> Inertia:
    """Return the inertia of the body of `link` in its shape at positions `q`."""
    body = bending_of(link)
    return link.inertia if body is None else link.inertia + body.inertia(q)


def freely(
    link: Sharing, ground: Ground, q: Vector, v: Vector, tau: Vector, outer: Force
) -> Generator[Asked, Any, tuple[list[Scalar], Force]]:
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
    outer
        External force on the body about the origin of its frame.
    """
    share, (X, S) = link.share, aba.placed(link, q)
    w = yield FromParent(ZERO)
    m = aba.moved(link, X, S, q, v, w)
    yield Hands(m.w)
    c, inertia = Motion(m.dw, m.a), inertia_of(link, q)
    own = Subtree(
        articulated(inertia), aba.held(link, inertia, m.w, outer), nothing_open(share.slots), range(share.slots)
    )
    begun(link, q, v, m.w, own)
    parts = yield FromChildren()
    for IA, pA, more in parts:
        own.IA, own.pA, own.open = own.IA + IA, own.pA + pA, own.open + more
    answers = iter(tau)
    driven = [next(answers) if closes else 0.0 for closes in share.closes]
    for k in share.ends:
        own.open.u[k] = own.open.u[k] + next(answers)
    for k in reversed(share.ends):
        own.close(k)
    passive = link.passive(q, v)
    for axis in reversed(range(len(S))):
        k, force = share.axes[axis], driven[axis] + passive[axis]
        if k < 0:
            own.free(link, axis, S[axis], force)
            continue
        own.enter(k, S[axis], force, link.armature)
        if share.closes[axis]:
            own.close(k)
    yield Hands(own.handed(X, c))
    A, a = yield FromParent((Motion(ZERO, -ground.gravity), [0.0] * share.slots))
    step("a", link.name)
    A, a = X.motion(A) + c, [x if k in share.open else 0.0 for k, x in enumerate(a)]
    for back in reversed(own.undo):
        A = back(A, a)
    yield Hands((A, a))
    joint = [own.solved[i] if k < 0 else a[k] for i, k in enumerate(share.axes)]
    found = [x for x, closes in zip(joint, share.closes, strict=True) if closes] + [a[k] for k in share.ends]
    every = [*joint, *(a[k] for k in share.modes)]
    return found, carried_by(link, q, v, every, Acceleration(m.w, A.ang, A.lin), outer)[0]


def begun(link: Sharing, q: Vector, v: Vector, w: Any, own: Subtree) -> None:
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
    own
        Subtree to which they are added.
    """
    body = link.bending
    if body is None:
        return
    force, needed = body.newton_euler(q, v, [0.0] * len(v), Acceleration(w, ZERO, ZERO))
    own.pA = own.pA + force
    rows = zip(link.share.modes, body.felt(q), body.passive(q, v), needed, strict=True)
    for i, (k, F, passive, need) in enumerate(rows):
        own.open.F[k], own.open.u[k] = F, passive - need
        for j, l in enumerate(link.share.modes[: i + 1]):
            own.open.add(k, l, body.M[i][j])


def needed(link: Sharing, ground: Ground, q: Vector, v: Vector, a: Vector, outer: Force, passive: bool) -> Body:
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
    outer
        External force on the body about the origin of its frame.
    passive
        Subtract springs and friction.
    """
    share, body = link.share, link.bending
    up = yield FromParent(Acceleration(ZERO, ZERO, -ground.gravity))
    A = rnea.beyond(link, q, v, a, up)
    yield Hands(A)
    f, felt = carried_by(link, q, v, a, A, outer)
    own: list[Scalar] = [0.0] * share.slots
    overcome = body.passive(q, v) if body is not None and passive else [0.0] * len(felt)
    for k, x, p in zip(share.modes, felt, overcome, strict=True):
        own[k] = x - p
    parts = yield FromChildren()
    for force, more in parts:
        f, own = f + force, [x + y for x, y in zip(own, more, strict=True)]
    step("tau", link.name)
    lost, joint = link.passive(q, v) if passive else [0.0] * len(share.axes), list[Scalar]()
    for i, (s, k) in enumerate(zip(link.subspace(q), share.axes, strict=True)):
        joint.append(s.dot(f) + link.armature * a[i] - lost[i])
        if k >= 0:
            own[k] = own[k] + joint[i]
    yield Hands((link.transform(q).force(f), [x if k in share.open else 0.0 for k, x in enumerate(own)]))
    answers = [x if k < 0 else own[k] for x, k, closes in zip(joint, share.axes, share.closes, strict=True) if closes]
    return [*answers, *(own[k] for k in share.ends)]


def carried_by(
    link: Link, q: Vector, v: Vector, a: Vector, A: Acceleration, outer: Force
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
    outer
        External force on the body about the origin of its frame.
    """
    step("f", link.name)
    f, body = inertia_of(link, q).newton_euler(A) - outer, bending_of(link)
    if body is None:
        return f, []
    force, felt = body.newton_euler(q, v, a, A)
    return f + force, felt
