"""Atoms of computation: functions of values that a processor computes in one cycle (wong1991, chapters 3, 4 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.papers.wong.mesh_bodies import MeshBody
from bellcrank.scalar import Scalar
from bellcrank.spatial.vector import NO_MOTION, ZERO, Acceleration, Mat, Motion, SymMat, Vec, weighted_sum


def turned(A: Mat, c: Vec) -> Vec:
    """Return c_ij = `A` c_i-1,j, with `c` the vector of body i - 1 (3.19)."""
    return A @ c


def displaced(A: Mat, rho: Vec, l: Vec, k: Vec) -> Vec:
    """Return rho_ij = `A` (`rho` - `l`) + `k`, with `rho` the vector of body i - 1 (3.20)."""
    return A @ (rho - l) + k


def angular(J: SymMat, c: Vec) -> Vec:
    """Return `J` `c` (3.21); used for J w and J dw too."""
    return J @ c


def arm_of_force(*given: Vec) -> Vec:
    """Return h = rho x c + t, with rho, c and t in `given`, as far as they exist (table 6.1)."""
    h = given[0].cross(given[1]) if len(given) > 1 else given[0]
    return h + given[2] if len(given) > 2 else h


def linear(m: Scalar, *given: Vec) -> tuple[Vec, Vec]:
    """Return h and `m` h, with h = rho x c + t from `given` (3.22)."""
    h = arm_of_force(*given)
    return h, h * m


def body_velocity(body: MeshBody) -> Callable[[], Vec]:
    """Return the function that computes the angular velocity of a `body` on the ground."""
    assert body.motion is not None
    velocity = body.motion.velocity
    return lambda: velocity().ang


def velocity(A: Mat, w: Vec, body: MeshBody) -> Vec:
    """Return the angular velocity `A` `w` + z dtheta of a `body` (3.27), or for all axes of its joint (6.1)."""
    w = A @ w
    return Vec(w.x, w.y, w.z + body.rate) if body.motion is None else w + body.motion.velocity().ang


def known_acceleration(body: MeshBody, given: Sequence[Scalar]) -> Motion:
    """Return the bias of the joint of a `body`, plus its axes times the `given` accelerations (6.10)."""
    start = NO_MOTION if body.motion is None else body.motion.bias()
    return weighted_sum([axis.motion() for axis in body.axes[: len(given)]], given, start)


def acceleration(A: Mat, dw: Vec, w: Vec, body: MeshBody, given: Sequence[Scalar] = ()) -> Vec:
    """Return dw = `A` `dw` + `w` x z dtheta of a `body`, without unknown accelerations (3.28, 6.2).

    Parameters
    ----------
    A
        Rotation from the parent.
    dw
        Value of the parent.
    w
        Angular velocity of the body.
    body
        The body.
    given
        Known accelerations of the joint.
    """
    dw, known = A @ dw, known_acceleration(body, given).ang
    if body.motion is None:
        return Vec(dw.x + w.y * body.rate, dw.y - w.x * body.rate, dw.z) + known
    return dw + w.cross(body.motion.velocity().ang) + known


def slide_acceleration(body: MeshBody, w: Vec, given: Sequence[Scalar] = ()) -> Vec:
    """Return (2 w - w_J) x v_J and known terms: the acceleration of the joint's frame that its slide adds.

    w - w_J is the angular velocity of the parent; the slide v_J turns with the parent, and with the joint.

    Parameters
    ----------
    body
        The body.
    w
        Its angular velocity.
    given
        Known accelerations of the joint.
    """
    assert body.motion is not None
    joint = body.motion.velocity()
    return (w * 2.0 - joint.ang).cross(joint.lin) + known_acceleration(body, given).lin


def centripetal(w: Vec, dw: Vec) -> Mat:
    """Return W = [`dw`] + [`w`]^2, with six products (3.29)."""
    return Acceleration(w, dw, ZERO).K


def carried(A: Mat, p: Vec, Wl: Vec, Wk: Vec, slide: Vec = ZERO) -> Vec:
    """Return p'' = `A` (`p` + `Wl`) - `Wk`, the acceleration of the centre of mass (3.30), plus that of a `slide`."""
    return A @ (p + Wl) - Wk + slide


def gyroscopic(w: Vec, a: Vec, m: Scalar, p: Vec) -> tuple[Vec, Vec]:
    """Return c = `w` x `a`, with `a` = J w, and `m` `p` (3.31); table 4.4 prints a x w, which has the wrong sign."""
    return w.cross(a), p * m


def momentum(c: Vec, b: Vec) -> Vec:
    """Return dL = `c` + `b`, with `b` = J dw (3.31)."""
    return c + b


def projected(*vectors: Vec) -> Scalar:
    """Return c . P + h . p of the `vectors` c, h, P and p, or h . p of two: an element of H^T H (4.9)."""
    if len(vectors) == 2:
        return vectors[0].dot(vectors[1])
    c, h, P, p = vectors
    return c.dot(P) + h.dot(p)


def forwarded(*vectors: Vec) -> tuple[Vec, Scalar]:
    """Return h of the `vectors`, which is sent on, and the product (`projected`)."""
    return vectors[-2 if len(vectors) == 2 else 1], projected(*vectors)
