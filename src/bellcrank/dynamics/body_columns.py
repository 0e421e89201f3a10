"""Matrices as what one body says (neighbours.py): of each of its coordinates a column, or, of those that are as wide as
there are coordinates, its elements of the product with a vector. All columns are then a batch of unit vectors
(build/by_tangents.py).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from bellcrank.dynamics import aba
from bellcrank.dynamics.body_motion import each, gathered, moving
from bellcrank.dynamics.centroidal import about
from bellcrank.dynamics.flow import flow
from bellcrank.dynamics.frame_motion import axes_in_space
from bellcrank.dynamics.kinematics import Pose, motion_seen
from bellcrank.dynamics.neighbours import Asked, Body, Frames, FromChildren, FromParent, Ground, Hands
from bellcrank.dynamics.sweep import Vector, along
from bellcrank.model.tree import Link
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.inertia import articulated
from bellcrank.spatial.moves import Shift
from bellcrank.spatial.vector import IDENTITY, NO_FORCE, NO_MOTION, ZERO, Force, Motion, vec

# -- of a frame, those of every body that carries it


def jacobian(link: Link, ground: Ground, q: Vector, seen: Frames, reference: str) -> Body:
    (X,) = yield from moving(link, ground, "X", q)
    place, _ = yield from _place(X, NO_MOTION, seen, reference)
    step("J", link.name)
    found = [_from(place, X, Z) for Z in link.subspace(q)]
    return [x for m in found for x in (*m.lin, *m.ang)]


def jacobian_rate(link: Link, ground: Ground, q: Vector, v: Vector, seen: Frames, reference: str) -> Body:
    X, V = yield from moving(link, ground, "XV", q, v)
    place, moves = yield from _place(X, V, seen, reference)
    step("dJ", link.name)
    found = [_from(place, X, dZ) - moves.cross(_from(place, X, Z)) for _, Z, dZ in axes_in_space(link, q, v, V)]
    return [x for m in found for x in (*m.lin, *m.ang)]


def _place(X: Pose, V: Motion, seen: Frames, reference: str) -> Generator[Asked, Any, tuple[Pose, Motion]]:
    """From where the frame's motion is seen: axes and point in the world, and how they move, in those axes. The body
    that has the frame knows, and tells those that carry it.
    """
    parts = yield FromChildren()
    if seen.points:
        ((axes, r),) = each(seen)
        (R, p), m = X, motion_seen(V, X, (axes, r), reference)
        found = {
            "aligned": ((IDENTITY, p + R @ r), Motion(ZERO, m.lin)),
            "local": ((R.times(axes), p + R @ r), m),
            "world": ((IDENTITY, ZERO), NO_MOTION),
        }[reference]
    else:
        (found,) = parts
    yield Hands(found)
    return found


def _from(place: Pose, X: Pose, m: Motion) -> Motion:
    """A motion about the body's F, as it is seen from a place."""
    (axes, point), (R, p) = place, X
    return Shift(point - p).motion(m.turned(R)).turned(axes.T)


# -- of all: what a joint moves is its body and all that this carries


def com_jacobian(link: Link, ground: Ground, q: Vector) -> Body:
    ((R, _),) = yield from moving(link, ground, "X", q)
    (Ic,) = yield from gathered([link.inertia], link.transform(q).inertia)
    step("f", link.name)
    return [x for Z in link.subspace(q) for x in R @ (Ic @ Z).lin]


def momentum_matrix(link: Link, ground: Ground, q: Vector, c: Vector) -> Body:
    ((R, p),) = yield from moving(link, ground, "X", q)
    (Ic,) = yield from gathered([link.inertia], link.transform(q).inertia)
    step("f", link.name)
    found = [about(vec(c) - p, (Ic @ Z).turned(R)) for Z in link.subspace(q)]
    return [x for f in found for x in (*f.lin, *f.ang)]


def momentum_matrix_rate(link: Link, ground: Ground, q: Vector, v: Vector, c: Vector, dc: Vector) -> Body:
    (R, p), V = yield from moving(link, ground, "XV", q, v)
    X = link.transform(q)
    (Ic,) = yield from gathered([link.inertia], X.inertia)
    (B,) = yield from gathered([flow(link.inertia, V)], lambda B: B.up(X))
    out: list[Scalar] = []
    step("df", link.name)
    for _, Z, dZ in axes_in_space(link, q, v, V):
        turning = (B @ Z + Force(B.row(Z), ZERO)) * 0.5  # (dIc/dt) Z
        f, df = (Ic @ Z).turned(R), (Ic @ dZ + turning).turned(R)
        found = about(vec(c) - p, df) + Force(f.lin.cross(vec(dc)), ZERO)
        out += [*found.lin, *found.ang]
    return out


# -- products with a vector x


def coriolis_product(link: Link, ground: Ground, q: Vector, v: Vector, x: Vector) -> Body:
    """C x (coriolis.py): W is how the body would move by x, dW how that changes in space while it moves by v."""
    X, S = link.transform(q), link.subspace(q)
    V, W, dW = yield FromParent((NO_MOTION, NO_MOTION, NO_MOTION))
    step("V", link.name)
    V, W = X.motion(V) + along(S, v), X.motion(W) + along(S, x)
    step("dZ", link.name)
    dW = X.motion(dW) + along([dZ for _, _, dZ in axes_in_space(link, q, v, V)], x)
    yield Hands((V, W, dW))
    step("C", link.name)
    (f,) = yield from gathered([link.inertia @ dW + (flow(link.inertia, V) @ W) * 0.5], X.force)
    return [s.dot(f) for s in S]


def factor_product(link: Link, ground: Ground, q: Vector, x: Vector) -> Body:
    """U x and D of each coordinate, M = U D U^T. A unit force in a joint, carried with all that is free to move
    beyond it, is felt in the joints before it: z is what x makes of those.
    """
    X, S = aba.placed(link, q)
    IA, z = yield from _free(link)
    found: list[Scalar] = []
    for s, k in reversed(list(zip(S, link.v_index, strict=True))):
        step("U", link.name)
        y = x[k] + s.dot(z)
        psi, inverse, _, IA, _ = aba.eliminated(link, s, 0.0, IA, NO_FORCE)
        z, found = z + psi * x[k], [y, 1.0 / inverse, *found]
    yield Hands((X.articulated(IA), X.force(z)))
    return found


def _free(link: Link) -> Generator[Asked, Any, Any]:
    """Of the body with all that it carries, which is free to move: inertia, and what x makes of it."""
    IA, z = articulated(link.inertia), NO_FORCE
    parts = yield FromChildren()
    for inertia, more in parts:
        IA, z = IA + inertia, z + more
    return IA, z
