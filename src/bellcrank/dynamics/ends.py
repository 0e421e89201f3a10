"""The two ends of a loop or a spring: frames on two bodies, seen from the last body that carries both.

Everything is in the axes of that common body (those that the user gave it; the world's for the ground) and against it,
so that a loop knows only its own joints ("performed separately on each closed loop", nikravesh1989, section 2.3).

    R, p   pose of the end            columns   how it moves for each unit of v: angular, and linear at p
    w, u   its velocity               dw, a     its acceleration while all accelerations of joints are zero
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellcrank.model.tree import Tree
from bellcrank.scalar import Scalar, is_zero, step
from bellcrank.spatial.vector import IDENTITY, ZERO, Mat, Motion, Vec

Vector = Sequence[Scalar]
Row = dict[int, Scalar]  # of a Jacobian: by index of v, only what is not zero


@dataclass(slots=True, eq=False)
class End:
    R: Mat
    p: Vec
    columns: list[tuple[int, Motion]]
    w: Vec
    u: Vec
    dw: Vec
    a: Vec

    @property
    def x(self) -> Vec:
        return self.R.T.a

    @property
    def y(self) -> Vec:
        return self.R.T.b

    @property
    def z(self) -> Vec:
        return self.R.T.c


def ends(tree: Tree, a: str, b: str, q: Vector, v: Vector | None) -> tuple[End, End]:
    """Frame a and frame b. Without v nobody asks how they move now, only how they could."""
    common = common_body(tree, a, b)
    start = (tree.frames[tree.links[common].name][1].T, ZERO) if common >= 0 else tree.ground.pose(IDENTITY, ZERO)
    start = start[0], -_anchor(tree, a, common, start)
    return _end(tree, a, common, start, q, v), _end(tree, b, common, start, q, v)


def common_body(tree: Tree, a: str, b: str) -> int:
    """The last body that carries both frames; -1 is the ground."""
    mine = set(tree.path(tree.frames[a][0]))
    return next((k for k in tree.path(tree.frames[b][0]) if k in mine), -1)


def _anchor(tree: Tree, frame: str, common: int, start: tuple[Mat, Vec]) -> Vec:
    """Where on the common body the way to a frame begins: places are counted from there.

    Only differences of places matter. Counted from the origin of the world, those of a loop far away from it would be
    large numbers with small differences, and near singular configurations every digit counts.
    """
    body, _, p_frame = tree.frames[frame]
    if body == common:
        R, p = start
        return p + R @ p_frame
    path = tree.path(body)
    first = path[-1] if common < 0 else path[path.index(common) - 1]
    return tree.links[first].placement.pose(*start)[1]


def row(a: End, b: End, on_a: Callable[[Motion], Scalar], on_b: Callable[[Motion], Scalar]) -> Row:
    """How a number changes for each unit of v, if it changes so with the motions of the ends."""
    found: Row = {}
    for end, along in ((a, on_a), (b, on_b)):
        for k, s in end.columns:
            x = along(s)
            if not is_zero(x):
                found[k] = found[k] + x if k in found else x
    return found


def _end(tree: Tree, frame: str, common: int, start: tuple[Mat, Vec], q: Vector, v: Vector | None) -> End:
    body, R_frame, p_frame = tree.frames[frame]
    R, p = start
    w = u = dw = acc = ZERO
    carried: list[tuple[int, Motion, Vec]] = []  # index, motion at F, where F is
    below = set(tree.path(common))
    for i in reversed([k for k in tree.path(body) if k not in below]):
        link = tree.links[i]
        step("end", link.name)
        before = p
        R, p = link.transform(q).pose(R, p)
        r = p - before
        S = [s.turned(R) for s in link.subspace(q)]
        carried += [(k, s, p) for s, k in zip(S, link.v_index, strict=True)]
        if v is None:
            continue
        wJ, lJ = ZERO, ZERO
        for s, k in zip(S, link.v_index, strict=True):
            wJ, lJ = wJ + s.ang * v[k], lJ + s.lin * v[k]
        bias = link.bias(q, v).turned(R)
        acc = acc + dw.cross(r) + w.cross(w.cross(r)) + (w + w + wJ).cross(lJ) + bias.lin
        dw = dw + w.cross(wJ) + bias.ang
        u = u + w.cross(r) + lJ
        w = w + wJ
    step("end", frame)
    r = R @ p_frame
    end = p + r
    columns = [(k, Motion(s.ang, s.lin + s.ang.cross(end - at))) for k, s, at in carried]
    if v is None:
        return End(R.times(R_frame), end, columns, ZERO, ZERO, ZERO, ZERO)
    return End(R.times(R_frame), end, columns, w, u + w.cross(r), dw, acc + dw.cross(r) + w.cross(w.cross(r)))
