"""Equations of what rolls, cuts or glides along something that another body carries.

All is as somebody sees it who moves with end a, whose axes he takes for fixed:

    d, u, acc     from a to b, its velocity, its acceleration while those of the joints are zero
    w, dw         how b turns
    c             from b's origin to where it touches; dc how that changes

    touching      n.d - r sqrt(1 - (n.s)^2) = 0      n: the plane's normal, s: the wheel's axle (a ball has none)
    rolling       t.(u + w x c) = 0                  for two directions t of the plane
    knife edge    t.u = 0                            t: across the blade, which b carries
    surface       F(d) = 0                           grad F.u = 0

Rolling and the knife edge are nonholonomic: they say something of velocities only, so their value is 0 wherever the
bodies are, and Newton's method has nothing to correct there.

J. I. Neimark, N. A. Fufaev. Dynamics of Nonholonomic Systems. American Mathematical Society, 1972.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.dynamics.ends import End, row
from bellcrank.dynamics.loops.equation import Equation
from bellcrank.jets import Jet, jet
from bellcrank.model.formula import computed
from bellcrank.model.parts import Loop
from bellcrank.scalar import Scalar, sqrt
from bellcrank.spatial.vector import ZERO, Vec


@dataclass(slots=True, eq=False)
class RelativeMotion:
    """b, as somebody on a sees it, in the common axes."""

    d: Vec
    u: Vec
    w: Vec
    acc: Vec
    dw: Vec


def relative_motion(a: End, b: End) -> RelativeMotion:
    d = b.p - a.p
    u = b.u - a.u - a.w.cross(d)
    w = b.w - a.w
    acc = b.a - a.a - a.dw.cross(d) - a.w.cross(a.w.cross(d)) - a.w.cross(u) * 2.0
    return RelativeMotion(d, u, w, acc, b.dw - a.dw - a.w.cross(w))


def _held(a: End, b: End, of: RelativeMotion, value: Scalar, t: Vec, c: Vec, dc: Vec, more: Scalar = 0.0) -> Equation:
    """t.(u + w x c) = 0; more: what of its derivative is not in the accelerations."""
    arm, back = c.cross(t), (of.d + c).cross(t)
    found = row(a, b, lambda s: -(t.dot(s.lin) + back.dot(s.ang)), lambda s: t.dot(s.lin) + arm.dot(s.ang))
    bias = t.dot(of.acc + of.dw.cross(c) + of.w.cross(dc)) + more
    return Equation(value, found, bias, t.dot(of.u + of.w.cross(c)), (t, arm), (-t, -back))


def ball(a: End, b: End, loop: Loop) -> Sequence[Equation]:
    of, r = relative_motion(a, b), loop.value
    c = a.z * (-1.0 * r)
    touch = _held(a, b, of, a.z.dot(of.d) - r, a.z, ZERO, ZERO)
    return [touch, *(_held(a, b, of, 0.0, t, c, ZERO) for t in (a.x, a.y))]


def wheel(a: End, b: End, loop: Loop) -> Sequence[Equation]:
    of, r, n, s = relative_motion(a, b), loop.value, a.z, b.z
    ds = of.w.cross(s)
    ns, dns = n.dot(s), n.dot(ds)
    k = sqrt(1.0 - ns * ns)
    m = (n - s * ns) * (1.0 / k)
    dm = (s * dns + ds * ns) * (-1.0 / k) + m * (ns * dns / (k * k))
    c, dc = m * (-1.0 * r), dm * (-1.0 * r)
    touch = _held(a, b, of, n.dot(of.d) - r * k, n, c, dc)
    return [touch, *(_held(a, b, of, 0.0, t, c, dc) for t in (a.x, a.y))]


def knife_edge(a: End, b: End, loop: Loop) -> Sequence[Equation]:
    of, t = relative_motion(a, b), b.y
    return [_held(a, b, of, 0.0, t, ZERO, ZERO, of.w.cross(t).dot(of.u))]


def surface(a: End, b: End, loop: Loop) -> Sequence[Equation]:
    """One equation for each function, of the place of b in a's axes."""
    of = relative_motion(a, b)
    turn = a.R.T
    x, dx = list(turn @ of.d), list(turn @ of.u)
    found = []
    for law in loop.law.split("|"):
        slope: list[Any] = []
        for k in range(3):
            slope.append(jet(computed(law, *(Jet(p, 1.0) if i == k else p for i, p in enumerate(x)))))
        along = jet(computed(law, *(Jet(p, s) for p, s in zip(x, dx, strict=True))))
        g = a.R @ Vec(*(s.d for s in slope))
        found.append(_held(a, b, of, along.x, g, ZERO, ZERO, along.c))
    return found
