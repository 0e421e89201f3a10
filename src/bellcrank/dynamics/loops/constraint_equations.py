"""Loop equations by kind of joint (nikravesh1989, section 2.3; table 6.1 of wong1991 for the joints).

Every equation is one of four, with its value, its row of C = D*B and its second derivative at zero joint acceleration:

    along     a direction u and the vector d between the ends      u.d = 0
    square    a direction of one end and one of the other         u.w = 0
    distance  a length between the ends                           (d.d - l^2)/(2 l) = 0
    coupled   two coordinates                                     q_1 - k q_0 - c = 0

Solves: closure, closure_jacobian, closure_bias, with all equations, redundant or not, in the order of the loops.
Mechanisms with loops. Work O(joints of each loop).

    Phi     residual of each equation: metres, or cosines of angles between axes (nikravesh1989, section 2.3)
    C       dPhi/dt = C v                       (12; it is D*B of 15)
    bias    d2Phi/dt2 = C a + bias              (13; bias is its second term)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise

from bellcrank.dynamics.frame_pairs import Equation, FrameEnd, JacobianRow, Vector, frame_pair, jacobian_row
from bellcrank.dynamics.loops.rolling_equations import ball, knife_edge, surface, wheel
from bellcrank.errors import ModelError, unknown
from bellcrank.jets import Jet, jet
from bellcrank.model.function_text import evaluate_text
from bellcrank.model.parts import Loop
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
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
MEET, ACROSS, PARALLEL, TWIST = ("x", "y", "z"), ("across x", "across y"), ("tilt about y", "tilt about x"), "twist"
TOUCH = ("touch", "slip x", "slip y")
LENGTHS = (*MEET, *ACROSS, *TOUCH, "off plane", "length", "slip", "off surface", "off curve y", "off curve z")
# Equations between velocities, which do not constrain positions.
NONHOLONOMIC = ("slip x", "slip y", "slip")

MakeEquations = Callable[[FrameEnd, FrameEnd, Loop], Sequence[Equation]]


def _joint(*names: str) -> tuple[tuple[str, ...], MakeEquations]:
    """Return a row of CLOSURES that consists of PAIR_EQUATIONS."""
    return names, lambda a, b, loop: [PAIR_EQUATIONS[name](a, b) for name in names]


# kind -> names of its equations, and the function that makes them
CLOSURES: dict[str, tuple[tuple[str, ...], MakeEquations | None]] = {
    "spherical": _joint(*MEET),
    "universal": _joint(*MEET, "square"),
    "revolute": _joint(*MEET, *PARALLEL),
    "fixed": _joint(*MEET, *PARALLEL, TWIST),
    "cylindrical": _joint(*ACROSS, *PARALLEL),
    "prismatic": _joint(*ACROSS, *PARALLEL, TWIST),
    "planar": _joint("off plane", *PARALLEL),
    "point_on_line": _joint(*ACROSS),
    "distance": (("length",), lambda a, b, loop: [distance_equation(a, b, loop.value)]),
    "ball_on_plane": (TOUCH, ball),
    "wheel_on_plane": (TOUCH, wheel),
    "knife_edge": (("slip",), knife_edge),
    "point_on_surface": (("off surface",), surface),
    "point_on_curve": (("off curve y", "off curve z"), surface),
    "gear": (("ratio",), None),
    "rack": (("ratio",), None),
    "combination": (("sum",), None),
    "cam": (("lift",), None),
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
