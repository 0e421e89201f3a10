"""Equations that close a loop, by kind of joint (nikravesh1989, section 2.3; table 6.1 of wong1991 for the joints).

Every equation is one of four, and knows its value, its row of C = D*B and its acceleration while all joints have none:

    along     a direction u and the vector d between the ends      u.d = 0
    square    a direction of one end and one of the other         u.w = 0
    distance  a length between the ends                           (d.d - l^2)/(2 l) = 0
    coupled   two coordinates                                     q_1 - k q_0 - c = 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellcrank.dynamics.ends import End, Row, Vector, ends, row
from bellcrank.errors import ModelError, unknown
from bellcrank.model.parts import Loop
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, step
from bellcrank.spatial.vector import AXES, ZERO, Vec


@dataclass(slots=True, eq=False)
class Equation:
    value: Scalar
    row: Row
    bias: Scalar  # second derivative where all accelerations of joints are zero
    rate: Scalar  # first derivative
    force: tuple[Vec, Vec]  # on end b, for a unit multiplier: force and moment about it
    back: tuple[Vec, Vec]  # the same on end a


def along(a: End, b: End, u: Vec, carried: bool) -> Equation:
    """u.d = 0 with d from a to b; u is an axis of a (carried), or of the common body."""
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
    """u.w = 0 with u an axis of a and w one of b."""
    across = u.cross(w)
    turning = a.w - b.w
    bias = (a.dw - b.dw).dot(across) + turning.dot(a.w.cross(u).cross(w) + u.cross(b.w.cross(w)))
    found = row(a, b, lambda s: s.ang.dot(across), lambda s: -s.ang.dot(across))
    return Equation(u.dot(w), found, bias, turning.dot(across), (ZERO, -across), (ZERO, across))


def distance(a: End, b: End, length: Scalar) -> Equation:
    """(d.d - l^2)/(2 l) = 0: near zero it is the error of the length."""
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

LENGTHS = (*MEET, *ACROSS, "off plane", "length")

# kind -> what its equations are called, and what makes them
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
    "gear": (("ratio",), None),
    "rack": (("ratio",), None),
}
SHIPPED = dict(CLOSURES)  # what the table was before anybody added to it


def equations(tree: Tree, q: Vector, v: Vector | None) -> list[Equation]:
    """Of all loops, in their order. Without v their rates and biases are those at rest: zero."""
    found: list[Equation] = []
    for loop in tree.loops:
        step("closure", loop.name)
        make = _closure(loop)[1]
        if make is None:
            found.append(_coupled(tree, loop, q, v))
        else:
            found += make(*ends(tree, loop.a, loop.b, q, v), loop)
    return found


def facing(tree: Tree, q: Vector) -> list[Scalar]:
    """Cosines that are 1 where the loops are closed, and -1 where the equations hold, but one end is upside down."""
    found: list[Scalar] = []
    for loop in tree.loops:
        what = _closure(loop)[0]
        if PARALLEL[0] in what or UNTWISTED[0] in what:
            a, b = ends(tree, loop.a, loop.b, q, None)
            found += [a.z.dot(b.z)] if PARALLEL[0] in what else []
            found += [a.x.dot(b.x)] if UNTWISTED[0] in what else []
    return found


def names(tree: Tree) -> list[str]:
    """Of the equations: "closing: x", "closing: tilt about y"."""
    return [f"{loop.name}: {what}" for loop in tree.loops for what in _closure(loop)[0]]


def families(tree: Tree) -> list[tuple[list[int], bool]]:
    """Equations of one loop and one unit, and whether that is the metre: turned axes would mix them."""
    found, at = [], 0
    for loop in tree.loops:
        what = _closure(loop)[0]
        lengths = [at + k for k, name in enumerate(what) if name in LENGTHS]
        others = [at + k for k, name in enumerate(what) if name not in LENGTHS]
        found += [(x, x is lengths) for x in (lengths, others) if x]
        at += len(what)
    return found


def _closure(loop: Loop) -> tuple[tuple[str, ...], Callable[[End, End, Loop], Sequence[Equation]] | None]:
    if loop.kind not in CLOSURES:
        raise ModelError(f'loop "{loop.name}": {unknown("kind of closure", loop.kind, CLOSURES)}')
    return CLOSURES[loop.kind]


def _coupled(tree: Tree, loop: Loop, q: Vector, v: Vector | None) -> Equation:
    first, second = (next(x for x in tree.links if x.joint.name == name) for name in loop.joints)
    (i,), (j,) = first.v_index, second.v_index
    (qi,), (qj,) = first.coordinates(q), second.coordinates(q)
    (vi,), (vj,) = (first.velocities(v), second.velocities(v)) if v is not None else ([0.0], [0.0])
    ki = 1.0 if first.joint.mimic is None else first.joint.mimic.multiplier
    kj = 1.0 if second.joint.mimic is None else second.joint.mimic.multiplier
    found: Row = {j: kj}
    found[i] = found.get(i, 0.0) - loop.value * ki
    return Equation(qj - qi * loop.value - loop.offset, found, 0.0, vj - vi * loop.value, (ZERO, ZERO), (ZERO, ZERO))
