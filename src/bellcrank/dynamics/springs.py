"""Springs and dampers between two points, as generalised forces.

    L     distance between the ends           n        direction from end a to end b
    T     tension: k (L - l0) + c dL/dt       dL/dq    change of L for each unit of v

The generalised forces -(dL/dq) T are added to damping, friction and springs of the joints (passive_torque in
tree_sweeps.py), so that methods need not treat springs. Where the forces through the joints matter, springs are
wrenches on the two bodies instead.
"""

from __future__ import annotations

from bellcrank.dynamics.frame_pairs import FrameEnd, JacobianRow, Vector, frame_pair, jacobian_row
from bellcrank.model.parts import Spring
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, is_zero, maximum, sqrt, step
from bellcrank.spatial.vector import Vec

MIN_DISTANCE_SQUARED = 1e-150  # m^2: where two ends coincide, the direction of the tension is undefined


def tension_force(s: Spring, a: FrameEnd, b: FrameEnd) -> Vec:
    """Return the force on end a, in the common body's axes; the force on end b is opposite.

    Parameters
    ----------
    s
        The spring.
    a
        End a.
    b
        End b.
    """
    d, dd = b.p - a.p, b.u - a.u
    if is_zero(s.length) and is_zero(s.damping):
        f: Vec = d * s.stiffness  # smooth, even where the ends meet
        return f
    square = maximum(d.dot(d), MIN_DISTANCE_SQUARED)
    L = sqrt(square)
    T = (L - s.length) * s.stiffness
    if not is_zero(s.damping):
        T = T + d.dot(dd) / L * s.damping
    f = d * (T / L)
    return f


def _generalised_force(f: Vec, a: FrameEnd, b: FrameEnd) -> JacobianRow:
    return jacobian_row(a, b, lambda m: f.dot(m.lin), lambda m: -f.dot(m.lin))


def torque(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return -(dL/dq) T of all springs, nv elements.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    out: list[Scalar] = [0.0] * tree.nv
    for s in tree.springs:
        a, b = frame_pair(tree, s.a, s.b, q, v)
        step("spring", s.name)
        f = tension_force(s, a, b)
        for k, x in _generalised_force(f, a, b).items():
            out[k] = out[k] + x
    return out


def energy(tree: Tree, q: Vector) -> Scalar:
    """Return k (L - l0)^2 / 2, summed over all springs of `tree` at positions `q`."""
    total: Scalar = 0.0
    still = [0.0] * tree.nv
    for s in tree.springs:
        a, b = frame_pair(tree, s.a, s.b, q, still)
        total = total + stretch_energy(s, a, b)
    return total


def stretch_energy(s: Spring, a: FrameEnd, b: FrameEnd) -> Scalar:
    """Return the energy of one spring.

    Parameters
    ----------
    s
        The spring.
    a
        End a.
    b
        End b.
    """
    step("spring", s.name)
    d = b.p - a.p
    square = d.dot(d)
    beyond = square if is_zero(s.length) else (sqrt(square) - s.length) * (sqrt(square) - s.length)
    return beyond * s.stiffness * 0.5
