"""Loop equations by kind of joint (nikravesh1989, section 2.3; table 6.1 of wong1991 for the joints).

Every equation is one of four, with its value, its row of C = D*B and its second derivative at zero joint acceleration:

    along     a direction u and the vector d between the ends      u.d = 0
    square    a direction of one end and one of the other         u.w = 0
    distance  a length between the ends                           (d.d - l^2)/(2 l) = 0
    coupled   two coordinates                                     q_1 - k q_0 - c = 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.dynamics.ends import End, Row, Vector, ends, row
from bellcrank.dynamics.loops.equation import Equation
from bellcrank.dynamics.loops.rolling_rows import ball, knife_edge, surface, wheel
from bellcrank.errors import ModelError, unknown
from bellcrank.jets import Jet, jet
from bellcrank.model.formula import computed
from bellcrank.model.parts import Loop
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import AXES, ZERO, Vec


def along(a: End, b: End, u: Vec, carried: bool) -> Equation:
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
        found = row(a, b, lambda s: -u.dot(s.lin), lambda s: u.dot(s.lin))
        return Equation(u.dot(d), found, bias, rate, (u, ZERO), (-u, ZERO))
    across = u.cross(d)
    turned = a.w.cross(u)
    bias = bias + a.dw.dot(across) + a.w.cross(turned).dot(d) + 2.0 * turned.dot(dd)
    found = row(a, b, lambda s: s.ang.dot(across) - u.dot(s.lin), lambda s: u.dot(s.lin))
    return Equation(u.dot(d), found, bias, rate + turned.dot(d), (u, ZERO), (-u, across))


def square(a: End, b: End, u: Vec, w: Vec) -> Equation:
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
    found = row(a, b, lambda s: s.ang.dot(across), lambda s: -s.ang.dot(across))
    return Equation(u.dot(w), found, bias, turning.dot(across), (ZERO, -across), (ZERO, across))


def distance(a: End, b: End, length: Scalar) -> Equation:
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
    found = row(a, b, lambda s: -n.dot(s.lin), lambda s: n.dot(s.lin))
    value = 0.5 * (n.dot(d) - length)
    return Equation(value, found, one * dd.dot(dd) + n.dot(b.a - a.a), n.dot(dd), (n, ZERO), (-n, ZERO))


def _meet(a: End, b: End) -> list[Equation]:
    return [along(a, b, e, carried=False) for e in AXES]


def _across(a: End, b: End) -> list[Equation]:
    return [along(a, b, a.x, carried=True), along(a, b, a.y, carried=True)]


def _parallel(a: End, b: End) -> list[Equation]:
    return [square(a, b, a.z, b.x), square(a, b, a.z, b.y)]


def _untwisted(a: End, b: End) -> list[Equation]:
    return [square(a, b, a.x, b.y)]


MEET, ACROSS, PARALLEL, UNTWISTED = (
    ("x", "y", "z"), ("across x", "across y"), ("tilt about y", "tilt about x"), ("twist",)
)  # fmt: skip

TOUCH = ("touch", "slip x", "slip y")
LENGTHS = (*MEET, *ACROSS, *TOUCH, "off plane", "length", "slip", "off surface", "off curve y", "off curve z")
# Equations between velocities, which do not constrain positions.
NONHOLONOMIC = ("slip x", "slip y", "slip")

# kind -> names of its equations, and the function that makes them
CLOSURES: dict[str, tuple[tuple[str, ...], Callable[[End, End, Loop], Sequence[Equation]] | None]] = {
    "spherical": (MEET, lambda a, b, loop: _meet(a, b)),
    "universal": ((*MEET, "square"), lambda a, b, loop: [*_meet(a, b), square(a, b, a.z, b.x)]),
    "revolute": ((*MEET, *PARALLEL), lambda a, b, loop: [*_meet(a, b), *_parallel(a, b)]),
    "fixed": (
        (*MEET, *PARALLEL, *UNTWISTED),
        lambda a, b, loop: [*_meet(a, b), *_parallel(a, b), *_untwisted(a, b)],
    ),
    "cylindrical": ((*ACROSS, *PARALLEL), lambda a, b, loop: [*_across(a, b), *_parallel(a, b)]),
    "prismatic": (
        (*ACROSS, *PARALLEL, *UNTWISTED),
        lambda a, b, loop: [*_across(a, b), *_parallel(a, b), *_untwisted(a, b)],
    ),
    "planar": (("off plane", *PARALLEL), lambda a, b, loop: [along(a, b, a.z, carried=True), *_parallel(a, b)]),
    "distance": (("length",), lambda a, b, loop: [distance(a, b, loop.value)]),
    "point_on_line": (ACROSS, lambda a, b, loop: _across(a, b)),
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


def equations(tree: Tree, q: Vector, v: Vector | None) -> list[Equation]:
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
    found: list[Equation] = []
    for loop in tree.loops:
        step("closure", loop.name)
        make = _closure(loop)[1]
        if make is None:
            found.append((_cam if loop.law else _coupled)(tree, loop, q, v))
        else:
            found += make(*ends(tree, loop.a, loop.b, q, v), loop)
    return found


def facing(tree: Tree, q: Vector) -> list[Scalar]:
    """Return cosines that are 1 in closed loops, and -1 if the equations hold but one end is upside down.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    q
        Positions, nq elements.
    """
    found: list[Scalar] = []
    for loop in tree.loops:
        what = _closure(loop)[0]
        if PARALLEL[0] in what or UNTWISTED[0] in what:
            a, b = ends(tree, loop.a, loop.b, q, None)
            found += [a.z.dot(b.z)] if PARALLEL[0] in what else []
            found += [a.x.dot(b.x)] if UNTWISTED[0] in what else []
    return found


def names(tree: Tree) -> list[str]:
    """Return the names of the equations of `tree`: "closing: x", "closing: tilt about y"."""
    return [f"{loop.name}: {what}" for loop in tree.loops for what in _closure(loop)[0]]


def families(tree: Tree) -> list[tuple[list[int], bool]]:
    """Return the equations of each loop of `tree` by unit, and True if the unit is the metre.

    Equations of different units must not be mixed by a rotation of the axes.
    """
    found, at = [], 0
    for loop in tree.loops:
        what = _closure(loop)[0]
        lengths = [at + k for k, name in enumerate(what) if name in LENGTHS]
        others = [at + k for k, name in enumerate(what) if name not in LENGTHS]
        found += [(x, x is lengths) for x in (lengths, others) if x]
        at += len(what)
    return found


def coupled_rows(tree: Tree) -> set[int]:
    """Return the equations of `tree` between coordinates only: gears, racks, cams and the like."""
    found, at = set[int](), 0
    for loop in tree.loops:
        count = len(_closure(loop)[0])
        if _closure(loop)[1] is None:
            found.update(range(at, at + count))
        at += count
    return found


def _closure(loop: Loop) -> tuple[tuple[str, ...], Callable[[End, End, Loop], Sequence[Equation]] | None]:
    if loop.kind not in CLOSURES:
        raise ModelError(f'loop "{loop.name}": {unknown("kind of closure", loop.kind, CLOSURES)}')
    return CLOSURES[loop.kind]


def _coordinates(tree: Tree, loop: Loop, q: Vector, v: Vector | None) -> list[tuple[int, Scalar, Scalar, Scalar]]:
    """Return index in v, coordinate, velocity and multiplier for each of the loop's joints."""
    found = []
    for name in loop.joints:
        link = next(x for x in tree.links if x.joint.name == name)
        (k,), (x,) = link.v_index, link.coordinates(q)
        (u,) = link.velocities(v) if v is not None else [0.0]
        found.append((k, x, u, 1.0 if link.joint.mimic is None else link.joint.mimic.multiplier))
    return found


def _coupled(tree: Tree, loop: Loop, q: Vector, v: Vector | None) -> Equation:
    """Return the equation of a weighted sum of coordinates; for two, the second is a multiple of the first."""
    weights = loop.weights or (-1.0 * loop.value, 1.0)
    value, rate = -1.0 * loop.offset, 0.0
    found: Row = {}
    for w, (k, x, u, by) in reversed(list(zip(weights, _coordinates(tree, loop, q, v), strict=True))):
        value, rate = value + w * x, rate + w * u
        found[k] = found[k] + w * by if k in found else w * by
    return Equation(value, found, 0.0, rate, (ZERO, ZERO), (ZERO, ZERO))


def _cam(tree: Tree, loop: Loop, q: Vector, v: Vector | None) -> Equation:
    """Return the equation of a cam: the second coordinate is a function of the first."""
    (i, x, u, by), (j, y, w, of) = _coordinates(tree, loop, q, v)
    lift = jet(computed(loop.law, Jet(x, 1.0)))
    found: Row = {j: of}
    found[i] = found.get(i, 0.0) - lift.d * by
    return Equation(y - lift.x, found, -1.0 * lift.c * u * u, w - lift.d * u, (ZERO, ZERO), (ZERO, ZERO))
