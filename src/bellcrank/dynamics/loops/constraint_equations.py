"""Loop equations by kind of joint (nikravesh1989, section 2.3; table 6.1 of wong1991 for the joints), and of contacts.

Every equation of a joint is one of four, with its value, its row of C = D*B and its second derivative at zero joint
acceleration:

    along     a direction u and the vector d between the ends      u.d = 0
    square    a direction of one end and one of the other         u.w = 0
    distance  a length between the ends                           (d.d - l^2)/(2 l) = 0
    coupled   two coordinates                                     q_1 - k q_0 - c = 0

Equations of rolling, knife-edge and surface contacts; all motions are relative to end a, in the common axes:

    d, u, acc     from a to b, its velocity, its acceleration at zero joint acceleration
    w, dw         angular velocity and acceleration of b
    c             from b's origin to the point of contact; dc its rate

    touching      n.d - r sqrt(1 - (n.s)^2) = 0      n: the plane's normal, s: the wheel's axle (a ball has none)
    rolling       t.(u + w x c) = 0                  for two directions t of the plane
    knife edge    t.u = 0                            t: across the blade, fixed in b
    surface       F(d) = 0                           grad F.u = 0

Rolling and the knife edge are nonholonomic: they constrain velocities only, so their value is 0 in every configuration,
and Newton's method has nothing to correct there (J. I. Neimark, N. A. Fufaev. Dynamics of Nonholonomic Systems.
American Mathematical Society, 1972).

Solves: closure, closure_jacobian, closure_bias, with all equations, redundant or not, in the order of the loops.
Mechanisms with loops. Work O(joints of each loop).

    Phi     residual of each equation: metres, or cosines of angles between axes (nikravesh1989, section 2.3)
    C       dPhi/dt = C v                       (12; it is D*B of 15)
    bias    d2Phi/dt2 = C a + bias              (13; bias is its second term)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from bellcrank.dynamics.frame_pairs import Equation, FrameEnd, JacobianRow, Vector, frame_pair, jacobian_row
from bellcrank.errors import ModelError, unknown
from bellcrank.jets import Jet, jet
from bellcrank.model.function_text import evaluate_text
from bellcrank.model.parts import ACROSS, EQUATION_NAMES, MEET, PARALLEL, TOUCH, TWIST, Loop
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, sqrt, step
from bellcrank.spatial.vector import AXES, ZERO, Vec


def along_equation(a: FrameEnd, b: FrameEnd, u: Vec, carried: bool) -> Equation:
    """Return the equation u.d = 0 with d from a to b.

    Parameters
    ----------
    a
        First end.
    b
        Second end.
    u
        Direction.
    carried
        u is an axis of a, not of the common body.
    """
    d, dd = b.p - a.p, b.u - a.u
    bias, rate = u.dot(b.a - a.a), u.dot(dd)
    if not carried:
        jacobian = jacobian_row(a, b, lambda s: -u.dot(s.lin), lambda s: u.dot(s.lin))
        return Equation(u.dot(d), jacobian, bias, rate, (u, ZERO), (-u, ZERO))
    across = u.cross(d)
    turned = a.w.cross(u)
    bias = bias + a.dw.dot(across) + a.w.cross(turned).dot(d) + 2.0 * turned.dot(dd)
    jacobian = jacobian_row(a, b, lambda s: s.ang.dot(across) - u.dot(s.lin), lambda s: u.dot(s.lin))
    return Equation(u.dot(d), jacobian, bias, rate + turned.dot(d), (u, ZERO), (-u, across))


def angle_equation(a: FrameEnd, b: FrameEnd, u: Vec, w: Vec) -> Equation:
    """Return the equation u.w = 0.

    Parameters
    ----------
    a
        First end.
    b
        Second end.
    u
        Axis of a.
    w
        Axis of b.
    """
    across = u.cross(w)
    turning = a.w - b.w
    bias = (a.dw - b.dw).dot(across) + turning.dot(a.w.cross(u).cross(w) + u.cross(b.w.cross(w)))
    jacobian = jacobian_row(a, b, lambda s: s.ang.dot(across), lambda s: -s.ang.dot(across))
    return Equation(u.dot(w), jacobian, bias, turning.dot(across), (ZERO, -across), (ZERO, across))


def distance_equation(a: FrameEnd, b: FrameEnd, length: Scalar) -> Equation:
    """Return the equation (d.d - l^2)/(2 l) = 0, whose value near zero is the error of the length.

    Parameters
    ----------
    a
        First end.
    b
        Second end.
    length
        Distance of the ends.
    """
    d, dd = b.p - a.p, b.u - a.u
    one = 1.0 / length
    n = d * one
    jacobian = jacobian_row(a, b, lambda s: -n.dot(s.lin), lambda s: n.dot(s.lin))
    value = 0.5 * (n.dot(d) - length)
    return Equation(value, jacobian, one * dd.dot(dd) + n.dot(b.a - a.a), n.dot(dd), (n, ZERO), (-n, ZERO))


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


# Equations of joints, by their names.
PAIR_EQUATIONS: dict[str, Callable[[FrameEnd, FrameEnd], Equation]] = {
    **{name: partial(along_equation, u=e, carried=False) for name, e in zip("xyz", AXES, strict=True)},
    "across x": lambda a, b: along_equation(a, b, a.x, carried=True),
    "across y": lambda a, b: along_equation(a, b, a.y, carried=True),
    "off plane": lambda a, b: along_equation(a, b, a.z, carried=True),
    "tilt about y": lambda a, b: angle_equation(a, b, a.z, b.x),
    "tilt about x": lambda a, b: angle_equation(a, b, a.z, b.y),
    "square": lambda a, b: angle_equation(a, b, a.z, b.x),
    "twist": lambda a, b: angle_equation(a, b, a.x, b.y),
}
LENGTHS = (*MEET, *ACROSS, *TOUCH, "off plane", "length", "slip", "off surface", "off curve y", "off curve z")
# Equations between velocities, which do not constrain positions.
NONHOLONOMIC = ("slip x", "slip y", "slip")

MakeEquations = Callable[[FrameEnd, FrameEnd, Loop], Sequence[Equation]]


def _pair_equations(names: Sequence[str], a: FrameEnd, b: FrameEnd, loop: Loop) -> list[Equation]:
    return [PAIR_EQUATIONS[name](a, b) for name in names]


# The functions that make the equations of closures that consist of other than PAIR_EQUATIONS.
OTHER_EQUATIONS: dict[str, MakeEquations] = {
    "distance": lambda a, b, loop: [distance_equation(a, b, loop.value)],
    "ball_on_plane": ball,
    "wheel_on_plane": wheel,
    "knife_edge": knife_edge,
    "point_on_surface": surface,
    "point_on_curve": surface,
}
# kind -> names of its equations, and the function that makes them; None if they are between coordinates
CLOSURES: dict[str, tuple[tuple[str, ...], MakeEquations | None]] = {
    kind: (names, partial(_pair_equations, names) if names[0] in PAIR_EQUATIONS else OTHER_EQUATIONS.get(kind))
    for kind, names in EQUATION_NAMES.items()
}
SHIPPED = dict(CLOSURES)  # the table without registered closures


def loop_equations(tree: Tree, q: Vector, v: Vector | None) -> list[Equation]:
    """Return the equations of all loops, in their order.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities; without them rates and biases are zero.
    """
    all_equations: list[Equation] = []
    for loop in tree.loops:
        step("closure", loop.name)
        make = _closure(loop)[1]
        if make is None:
            all_equations.append((_cam if loop.law else _coordinate_sum)(tree, loop, q, v))
        else:
            all_equations += make(*frame_pair(tree, loop.a, loop.b, q, v), loop)
    return all_equations


def closure(tree: Tree, q: Vector) -> list[Scalar]:
    """Return Phi of `tree` at positions `q`."""
    return [e.value for e in loop_equations(tree, q, [0.0] * tree.nv)]


def closure_jacobian(tree: Tree, q: Vector) -> list[list[Scalar]]:
    """Return C of `tree` at positions `q`."""
    return [[e.row.get(k, 0.0) for k in range(tree.nv)] for e in loop_equations(tree, q, [0.0] * tree.nv)]


def closure_bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Return the second time derivative of Phi at zero acceleration.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    v
        Velocities, nv elements.
    """
    return [e.bias for e in loop_equations(tree, q, v)]


def end_cosines(tree: Tree, q: Vector) -> list[Scalar]:
    """Return cosines that are 1 in closed loops, and -1 if the equations hold but one end is upside down.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    """
    cosines: list[Scalar] = []
    for loop in tree.loops:
        what = _closure(loop)[0]
        if PARALLEL[0] in what or TWIST in what:
            a, b = frame_pair(tree, loop.a, loop.b, q, None)
            cosines += [a.z.dot(b.z)] if PARALLEL[0] in what else []
            cosines += [a.x.dot(b.x)] if TWIST in what else []
    return cosines


def equation_names(tree: Tree) -> list[str]:
    """Return the names of the equations of `tree`: "closing: x", "closing: tilt about y"."""
    return [f"{loop.name}: {what}" for loop in tree.loops for what in _closure(loop)[0]]


def equation_families(tree: Tree) -> list[tuple[list[int], bool]]:
    """Return the equations of each loop of `tree` by unit, and True if the unit is the metre.

    Equations of different units must not be mixed by a rotation of the axes.
    """
    unit_families = []
    for loop, rows in rows_by_loop(tree):
        is_length = [name in LENGTHS for name in _closure(loop)[0]]
        for unit in (True, False):
            family = [k for k, x in zip(rows, is_length, strict=True) if x == unit]
            unit_families += [(family, unit)] if family else []
    return unit_families


def coordinate_equations(tree: Tree) -> set[int]:
    """Return the equations of `tree` between coordinates only: gears, racks, cams and the like."""
    return {k for loop, rows in rows_by_loop(tree) if _closure(loop)[1] is None for k in rows}


def rows_by_loop(tree: Tree) -> list[tuple[Loop, range]]:
    """Return the loops of `tree`, each with its equations."""
    ends = [0, *accumulate(len(_closure(loop)[0]) for loop in tree.loops)]
    return [(loop, range(*rows)) for loop, rows in zip(tree.loops, pairwise(ends), strict=True)]


def _closure(loop: Loop) -> tuple[tuple[str, ...], MakeEquations | None]:
    if loop.kind not in CLOSURES:
        raise ModelError(f'loop "{loop.name}": {unknown("kind of closure", loop.kind, CLOSURES)}')
    return CLOSURES[loop.kind]


def _coordinates(tree: Tree, loop: Loop, q: Vector, v: Vector | None) -> list[tuple[int, Scalar, Scalar, Scalar]]:
    """Return index in v, coordinate, velocity and multiplier for each of the loop's joints."""
    joint_values = []
    for name in loop.joints:
        link = next(x for x in tree.links if x.joint.name == name)
        (k,), (x,) = link.v_index, link.coordinates(q)
        (u,) = link.velocities(v) if v is not None else [0.0]
        joint_values.append((k, x, u, 1.0 if link.joint.mimic is None else link.joint.mimic.multiplier))
    return joint_values


def _coordinate_sum(tree: Tree, loop: Loop, q: Vector, v: Vector | None) -> Equation:
    """Return the equation of a weighted sum of coordinates; for two, the second is a multiple of the first."""
    weights = loop.weights or (-1.0 * loop.value, 1.0)
    value, rate = -1.0 * loop.offset, 0.0
    jacobian: JacobianRow = {}
    for w, (k, x, u, slope) in reversed(list(zip(weights, _coordinates(tree, loop, q, v), strict=True))):
        value, rate = value + w * x, rate + w * u
        jacobian[k] = jacobian[k] + w * slope if k in jacobian else w * slope
    return Equation(value, jacobian, 0.0, rate, (ZERO, ZERO), (ZERO, ZERO))


def _cam(tree: Tree, loop: Loop, q: Vector, v: Vector | None) -> Equation:
    """Return the equation of a cam: the second coordinate is a function of the first."""
    (i, x, u, first_multiplier), (j, y, w, second_multiplier) = _coordinates(tree, loop, q, v)
    lift = jet(evaluate_text(loop.law, Jet(x, 1.0)))
    jacobian: JacobianRow = {j: second_multiplier}
    jacobian[i] = jacobian.get(i, 0.0) - lift.d * first_multiplier
    return Equation(y - lift.x, jacobian, -1.0 * lift.c * u * u, w - lift.d * u, (ZERO, ZERO), (ZERO, ZERO))
