"""Equations of rolling, knife-edge and surface contacts.

All motions are relative to end a, in the common axes:

    d, u, acc     from a to b, its velocity, its acceleration at zero joint acceleration
    w, dw         angular velocity and acceleration of b
    c             from b's origin to the point of contact; dc its rate

    touching      n.d - r sqrt(1 - (n.s)^2) = 0      n: the plane's normal, s: the wheel's axle (a ball has none)
    rolling       t.(u + w x c) = 0                  for two directions t of the plane
    knife edge    t.u = 0                            t: across the blade, fixed in b
    surface       F(d) = 0                           grad F.u = 0

Rolling and the knife edge are nonholonomic: they constrain velocities only, so their value is 0 in every configuration,
and Newton's method has nothing to correct there.

J. I. Neimark, N. A. Fufaev. Dynamics of Nonholonomic Systems. American Mathematical Society, 1972.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.dynamics.frame_pairs import Equation, FrameEnd, jacobian_row
from bellcrank.jets import Jet, jet
from bellcrank.model.function_text import evaluate_text
from bellcrank.model.parts import Loop
from bellcrank.scalar import Scalar, sqrt
from bellcrank.spatial.vector import ZERO, Vec


@dataclass(slots=True, eq=False)
class RelativeMotion:
    """Motion of b relative to a, in the common axes."""

    d: Vec
    u: Vec
    w: Vec
    acc: Vec
    dw: Vec


def relative_motion(a: FrameEnd, b: FrameEnd) -> RelativeMotion:
    """Return the motion of end `b` relative to end `a`."""
    d = b.p - a.p
    u = b.u - a.u - a.w.cross(d)
    w = b.w - a.w
    acc = b.a - a.a - a.dw.cross(d) - a.w.cross(a.w.cross(d)) - a.w.cross(u) * 2.0
    return RelativeMotion(d, u, w, acc, b.dw - a.dw - a.w.cross(w))


def _velocity_equation(
    a: FrameEnd, b: FrameEnd, motion: RelativeMotion, value: Scalar, t: Vec, c: Vec, dc: Vec, more: Scalar = 0.0
) -> Equation:
    """Return the equation t.(u + w x c) = 0; more: part of its derivative that is not in the accelerations."""
    arm, back = c.cross(t), (motion.d + c).cross(t)
    jacobian = jacobian_row(a, b, lambda s: -(t.dot(s.lin) + back.dot(s.ang)), lambda s: t.dot(s.lin) + arm.dot(s.ang))
    bias = t.dot(motion.acc + motion.dw.cross(c) + motion.w.cross(dc)) + more
    return Equation(value, jacobian, bias, t.dot(motion.u + motion.w.cross(c)), (t, arm), (-t, -back))


def ball(a: FrameEnd, b: FrameEnd, loop: Loop) -> Sequence[Equation]:
    """Return the equations of a ball on a plane.

    Parameters
    ----------
    a
        Plane, with normal z.
    b
        Ball.
    loop
        Its value is the radius.
    """
    motion, r = relative_motion(a, b), loop.value
    c = a.z * (-1.0 * r)
    touch = _velocity_equation(a, b, motion, a.z.dot(motion.d) - r, a.z, ZERO, ZERO)
    return [touch, *(_velocity_equation(a, b, motion, 0.0, t, c, ZERO) for t in (a.x, a.y))]


def wheel(a: FrameEnd, b: FrameEnd, loop: Loop) -> Sequence[Equation]:
    """Return the equations of a thin wheel on a plane.

    Parameters
    ----------
    a
        Plane, with normal z.
    b
        Wheel, with axle z.
    loop
        Its value is the radius.
    """
    motion, r, n, s = relative_motion(a, b), loop.value, a.z, b.z
    ds = motion.w.cross(s)
    ns, dns = n.dot(s), n.dot(ds)
    k = sqrt(1.0 - ns * ns)
    m = (n - s * ns) * (1.0 / k)
    dm = (s * dns + ds * ns) * (-1.0 / k) + m * (ns * dns / (k * k))
    c, dc = m * (-1.0 * r), dm * (-1.0 * r)
    touch = _velocity_equation(a, b, motion, n.dot(motion.d) - r * k, n, c, dc)
    return [touch, *(_velocity_equation(a, b, motion, 0.0, t, c, dc) for t in (a.x, a.y))]


def knife_edge(a: FrameEnd, b: FrameEnd, loop: Loop) -> Sequence[Equation]:
    """Return the equation of a knife edge.

    Parameters
    ----------
    a
        Plane.
    b
        Blade, with y across.
    loop
        Not used.
    """
    motion, t = relative_motion(a, b), b.y
    return [_velocity_equation(a, b, motion, 0.0, t, ZERO, ZERO, motion.w.cross(t).dot(motion.u))]


def surface(a: FrameEnd, b: FrameEnd, loop: Loop) -> Sequence[Equation]:
    """Return an equation for each function of the position of b in a's axes.

    Parameters
    ----------
    a
        End that carries the surface or curve.
    b
        Point on it.
    loop
        Its law has the functions.
    """
    motion = relative_motion(a, b)
    turn = a.R.T
    x, dx = list(turn @ motion.d), list(turn @ motion.u)
    surface_equations = []
    for law in loop.law.split("|"):
        slope: list[Any] = []
        for k in range(3):
            slope.append(jet(evaluate_text(law, *(Jet(p, 1.0) if i == k else p for i, p in enumerate(x)))))
        along = jet(evaluate_text(law, *(Jet(p, s) for p, s in zip(x, dx, strict=True))))
        g = a.R @ Vec(*(s.d for s in slope))
        surface_equations.append(_velocity_equation(a, b, motion, along.x, g, ZERO, ZERO, along.c))
    return surface_equations
