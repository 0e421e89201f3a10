"""Frame pairs: the two ends of a loop joint or a spring, relative to the last body that carries both.

Everything is relative to that common body and in its axes (as the user defined them; the world's for the ground), so
that a loop depends only on its own joints ("performed separately on each closed loop", nikravesh1989, section 2.3).

    R, p   pose of the end            columns   motion for each unit of v: angular, and linear at p
    w, u   its velocity               dw, a     its acceleration at zero joint acceleration

An equation of a loop is one between such ends. Springs and dampers act between their origins:

    L      distance between the ends        n       direction from end a to end b
    T      tension: k (L - l0) + c dL/dt    dL/dq   change of L for each unit of v

The generalised forces -(dL/dq) T are added to damping, friction and springs of the joints (passive_torque in
tree_sweeps.py), so that methods need not treat springs. Where the forces through the joints matter, springs are
wrenches on the two bodies instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellcrank.model.parts import Spring
from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, is_zero, maximum, ordered_sum, sqrt, step
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Motion, Vec

Vector = Sequence[Scalar]
JacobianRow = dict[int, Scalar]  # row of a Jacobian: nonzero elements by index in v
MIN_DISTANCE_SQUARED = 1e-150  # m^2: where two ends coincide, the direction of the tension is undefined


@dataclass(slots=True, eq=False)
class FrameEnd:
    """Pose and motion of one end, relative to the common body."""

    R: Mat
    p: Vec
    columns: list[tuple[int, Motion]]
    w: Vec
    u: Vec
    dw: Vec
    a: Vec

    @property
    def x(self) -> Vec:
        """Return the x axis of the end."""
        return self.R.T.a

    @property
    def y(self) -> Vec:
        """Return the y axis of the end."""
        return self.R.T.b

    @property
    def z(self) -> Vec:
        """Return the z axis of the end."""
        return self.R.T.c


def frame_pair(tree: Tree, a: str, b: str, q: Vector, v: Vector | None) -> tuple[FrameEnd, FrameEnd]:
    """Return the ends at frames a and b; without v their velocities and accelerations are zero.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    a
        Name of the first frame.
    b
        Name of the second frame.
    q
        Positions, nq elements.
    v
        Velocities, or None.
    """
    common = common_body(tree, a, b)
    turn = tree.frames[tree.links[common].name][1].T if common >= 0 else tree.ground.pose(IDENTITY, ZERO)[0]
    start = turn, -_anchor_point(tree, a, common, turn)
    return _relative_end(tree, a, common, start, q, v), _relative_end(tree, b, common, start, q, v)


def common_body(tree: Tree, a: str, b: str) -> int:
    """Return the last body that carries both frames; -1 is the ground.

    Parameters
    ----------
    tree
        Kinematic tree of the mechanism.
    a
        Name of the first frame.
    b
        Name of the second frame.
    """
    return last_carrier(tree, [tree.frames[a][0], tree.frames[b][0]])


def last_carrier(tree: Tree, links: Sequence[int]) -> int:
    """Return the last link of `tree` that is or carries each of `links`; -1 is the ground."""
    carrier, *others = links
    for other in others:
        while carrier != other:  # parents come before children
            carrier, other = sorted((carrier, other))
            other = tree.links[other].parent
    return carrier


def _anchor_point(tree: Tree, frame: str, common: int, R: Mat) -> Vec:
    """Return the point on the common body relative to which the positions of the ends are computed, in axes R.

    Only differences of positions matter. Relative to the origin of the world, the positions in a loop far away from it
    would be large numbers with small differences, and near singular configurations every digit counts.
    """
    body, _, p_frame = tree.frames[frame]
    if body == common:
        return R @ p_frame
    path = tree.path(body)
    first = path[-1] if common < 0 else path[path.index(common) - 1]
    return tree.links[first].placement.pose(R, ZERO)[1]


def jacobian_row(
    a: FrameEnd, b: FrameEnd, on_a: Callable[[Motion], Scalar], on_b: Callable[[Motion], Scalar]
) -> JacobianRow:
    """Return the Jacobian row of a number that depends on the motions of both ends.

    Parameters
    ----------
    a
        First end.
    b
        Second end.
    on_a
        Change of the number for a motion of `a`.
    on_b
        Change for a motion of `b`.
    """
    elements: JacobianRow = {}
    for end, along in ((a, on_a), (b, on_b)):
        for k, s in end.columns:
            x = along(s)
            if not is_zero(x):
                elements[k] = elements[k] + x if k in elements else x
    return elements


def _relative_end(tree: Tree, frame: str, common: int, start: tuple[Mat, Vec], q: Vector, v: Vector | None) -> FrameEnd:
    body, R_frame, p_frame = tree.frames[frame]
    R, p = start
    w = u = dw = acc = ZERO
    carried_columns: list[tuple[int, Motion, Vec]] = []  # index in v, motion at F, origin of F
    below = set(tree.path(common))
    for i in reversed([k for k in tree.path(body) if k not in below]):
        link = tree.links[i]
        step("end", link.name)
        before = p
        R, p = link.transform(q).pose(R, p)
        r = p - before
        S = [s.rotated(R) for s in link.subspace(q)]
        carried_columns += [(k, s, p) for s, k in zip(S, link.v_index, strict=True)]
        if v is None:
            continue
        wJ, lJ = ZERO, ZERO
        for s, k in zip(S, link.v_index, strict=True):
            wJ, lJ = wJ + s.ang * v[k], lJ + s.lin * v[k]
        bias = link.bias(q, v).rotated(R)
        acc = acc + dw.cross(r) + w.cross(w.cross(r)) + (w + w + wJ).cross(lJ) + bias.lin
        dw = dw + w.cross(wJ) + bias.ang
        u = u + w.cross(r) + lJ
        w = w + wJ
    step("end", frame)
    r = R @ p_frame
    end = p + r
    columns = [(k, Motion(s.ang, s.lin + s.ang.cross(end - origin))) for k, s, origin in carried_columns]
    if v is None:
        return FrameEnd(R.times(R_frame), end, columns, ZERO, ZERO, ZERO, ZERO)
    return FrameEnd(R.times(R_frame), end, columns, w, u + w.cross(r), dw, acc + dw.cross(r) + w.cross(w.cross(r)))


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


def spring_torque(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
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


def spring_energy(tree: Tree, q: Vector) -> Scalar:
    """Return k (L - l0)^2 / 2, summed over all springs of `tree` at positions `q`."""
    still = [0.0] * tree.nv
    return ordered_sum(stretch_energy(s, *frame_pair(tree, s.a, s.b, q, still)) for s in tree.springs)


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


@dataclass(slots=True, eq=False)
class Equation:
    """One scalar equation of a loop."""

    value: Scalar
    row: JacobianRow
    bias: Scalar  # second derivative at zero joint acceleration
    rate: Scalar  # first derivative
    force: tuple[Vec, Vec]  # on end b, for a unit multiplier: force and moment about it
    back: tuple[Vec, Vec]  # the same on end a
