"""Springs and dampers between two points, as forces on the coordinates.

    L     distance between the ends           n        direction from end a to end b
    T     tension: k (L - l0) + c dL/dt       dL/dq    how L changes for each unit of v

On the coordinates they are -(dL/dq) T, beside damping, friction and springs of the joints (passive_torque in sweep.py),
so that no method has a case for them. Where it matters what passes through the joints, they are wrenches on the two
bodies instead.
"""

from __future__ import annotations

from bellcrank.dynamics.ends import End, Row, Vector, ends, row
from bellcrank.model.parts import Spring
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, is_zero, maximum, sqrt, step
from bellcrank.spatial.vector import Vec

TOUCHING = 1e-150  # m^2: where two ends meet, nothing tells the direction of the tension


def pull(s: Spring, a: End, b: End) -> Vec:
    """The force on end a, in the common body's axes; end b has the opposite."""
    d, dd = b.p - a.p, b.u - a.u
    if is_zero(s.length) and is_zero(s.damping):
        f: Vec = d * s.stiffness  # smooth, even where the ends meet
        return f
    square = maximum(d.dot(d), TOUCHING)
    L = sqrt(square)
    T = (L - s.length) * s.stiffness
    if not is_zero(s.damping):
        T = T + d.dot(dd) / L * s.damping
    f = d * (T / L)
    return f


def _felt(f: Vec, a: End, b: End) -> Row:
    return row(a, b, lambda m: f.dot(m.lin), lambda m: -f.dot(m.lin))


def torque(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """-(dL/dq) T of all springs, one element for each of v."""
    out: list[Scalar] = [0.0] * tree.nv
    for s in tree.springs:
        a, b = ends(tree, s.a, s.b, q, v)
        step("spring", s.name)
        f = pull(s, a, b)
        for k, x in _felt(f, a, b).items():
            out[k] = out[k] + x
    return out


def energy(tree: Tree, q: Vector) -> Scalar:
    """k (L - l0)^2 / 2 of all springs."""
    total: Scalar = 0.0
    still = [0.0] * tree.nv
    for s in tree.springs:
        a, b = ends(tree, s.a, s.b, q, still)
        total = total + stretched(s, a, b)
    return total


def stretched(s: Spring, a: End, b: End) -> Scalar:
    """The energy of one of them."""
    step("spring", s.name)
    d = b.p - a.p
    square = d.dot(d)
    beyond = square if is_zero(s.length) else (sqrt(square) - s.length) * (sqrt(square) - s.length)
    return beyond * s.stiffness * 0.5
