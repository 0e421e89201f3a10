"""Shapes that touch: each in a frame of its own, and where two of them meet.

`touching(a, b, pose)` gives the places where shape b, whose frame stands at `pose` in that of a, may touch shape a: of
each the gap (negative: they overlap), the normal from a to b, and where it is, all in the axes of a. The list has the
same length in every state, and nothing branches: a robot on its feet is a straight line of code in all lanes.

    plane, terrain     sphere, capsule (both its ends), box (8 corners), cylinder (the lowest point of either rim)
    box                sphere, capsule (both its ends), box (its 8 corners; see `fit`)
    sphere             sphere, capsule, box, cylinder's axis as a capsule
    capsule            capsule

Nearest points of segments: V. J. Lumelsky. On fast computation of distance between line segments. Information
Processing Letters 21(2), 55-61, 1985. A terrain is taken as the plane that touches it below the shape's lowest point,
which is exact where it is flat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import InputError, brief
from bellcrank.forces.element import Triple, dot
from bellcrank.jets import Jet, jet
from bellcrank.misfits import explained
from bellcrank.parameters.part_numbers import check_range
from bellcrank.scalar import Scalar, clip, fabs, float_array, maximum, sqrt, where

TINY = 1e-24  # m^2: where two points meet, nothing tells a direction


@dataclass(frozen=True)
class Touch:
    gap: Scalar
    normal: Triple
    place: Triple


@dataclass(frozen=True)
class Shape:
    def __post_init__(self) -> None:
        check_range(self, type(self).__name__, vars(self), above_zero=True)


@dataclass(frozen=True)
class Plane(Shape):
    """z = 0 of its frame; what is below is inside."""


@dataclass(frozen=True)
class Terrain(Shape):
    """z = height(x, y) of its frame: any function, or `grid(...)` of heights."""

    height: Callable[[Scalar, Scalar], Scalar]

    def __post_init__(self) -> None:
        if not callable(self.height):
            raise InputError(f"Terrain: height is {brief(self.height)}; expected a function of (x, y), or grid(...).")


@dataclass(frozen=True)
class Sphere(Shape):
    radius: Scalar


@dataclass(frozen=True)
class Capsule(Shape):
    """A cylinder along z with round ends; length is that of its straight part."""

    radius: Scalar
    length: Scalar


@dataclass(frozen=True)
class Box(Shape):
    size: tuple[Scalar, Scalar, Scalar]  # along x, y and z, from side to side

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", tuple(self.size) if getattr(self.size, "ndim", 0) == 1 else self.size)
        if not isinstance(self.size, tuple | list) or len(self.size) != 3:
            raise InputError(f"Box: size is {brief(self.size)}; expected three lengths, (x, y, z).")
        super().__post_init__()


@dataclass(frozen=True)
class Cylinder(Shape):
    """A cylinder whose axis is z."""

    radius: Scalar
    length: Scalar


@explained
def grid(xs: Sequence[float], ys: Sequence[float], heights: Any) -> Callable[[Scalar, Scalar], Scalar]:
    """Heights at points of a grid, heights[i][j] at (xs[i], ys[j]), bilinear between them and level beyond."""
    try:
        H, at = float_array(heights), [float_array(xs), float_array(ys)]
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"grid: xs is {brief(xs)}, ys {brief(ys)} and heights {brief(heights)}; expected numbers in rows."
        ) from None
    if H.shape != (at[0].size, at[1].size) or min(H.shape) < 2:
        raise InputError(f"grid: heights has the shape {H.shape}; expected {(at[0].size, at[1].size)}, at least 2 x 2.")
    if not np.isfinite(H).all():
        i, j = np.argwhere(~np.isfinite(H))[0].tolist()
        raise InputError(f"grid: heights[{i}][{j}] is {H[i, j]}; expected finite numbers.")
    for name, x in zip("xy", at, strict=True):
        if (np.diff(x) <= 0.0).any():
            raise InputError(f"grid: {name}s must increase; {x.tolist()!r} does not.")

    def height(x: Scalar, y: Scalar) -> Scalar:
        along, across = _hats(x, at[0]), _hats(y, at[1])
        total: Scalar = 0.0
        for i, u in enumerate(along):
            line: Scalar = 0.0
            for j, w in enumerate(across):
                if H[i, j]:
                    line = line + w * float(H[i, j])
            total = total + line * u
        return total

    return height


def _hats(x: Scalar, at: Any) -> list[Scalar]:
    """How much each point counts at x: 1 there, 0 at its neighbours."""
    x = clip(x, float(at[0]), float(at[-1]))
    found: list[Scalar] = []
    for k, here in enumerate(at):
        left = float(here - at[k - 1]) if k else 1.0
        right = float(at[k + 1] - here) if k + 1 < len(at) else 1.0
        found.append(maximum(1.0 - where(x < float(here), (float(here) - x) / left, (x - float(here)) / right), 0.0))
    return found


def touching(a: Shape, b: Shape, pose: Any) -> list[Touch]:
    for mine, others, find in PAIRS:
        if isinstance(a, mine) and isinstance(b, others):
            found: list[Touch] = find(a, b, pose)
            return found
    raise InputError(
        f"no contact between {type(a).__name__} and {type(b).__name__}, in this order. Known, the first on frame a: "
        f"{'; '.join(f'{_name(m)} and {_name(o)}' for m, o, _ in PAIRS)}."
    )


def _name(kinds: Any) -> str:
    return "/".join(k.__name__ for k in (kinds if isinstance(kinds, tuple) else (kinds,)))


def _origin(pose: Any) -> Triple:
    return [pose[k, 3] for k in range(3)]


def _axis(pose: Any) -> Triple:
    return [pose[k, 2] for k in range(3)]


def _at(pose: Any, x: Sequence[Scalar]) -> Triple:
    """A point of b, as a sees it."""
    return [pose[k, 0] * x[0] + pose[k, 1] * x[1] + pose[k, 2] * x[2] + pose[k, 3] for k in range(3)]


def _along(p: Triple, n: Sequence[Scalar], s: Scalar) -> Triple:
    return [x + s * y for x, y in zip(p, n, strict=True)]


# -- on a plane: spheres, one for each point that may touch


def _points(b: Shape, pose: Any, normal: Sequence[Scalar] = (0.0, 0.0, 1.0)) -> list[tuple[Triple, Scalar]]:
    """(centre, radius) of the spheres that touch a plane where the shape does."""
    if isinstance(b, Sphere):
        return [(_origin(pose), b.radius)]
    p, z = _origin(pose), _axis(pose)
    if isinstance(b, Capsule):
        return [(_along(p, z, s * 0.5 * b.length), b.radius) for s in (1.0, -1.0)]
    if isinstance(b, Box):
        x, y, h = (0.5 * s for s in b.size)
        return [(_at(pose, (i * x, j * y, k * h)), 0.0) for i in (1, -1) for j in (1, -1) for k in (1, -1)]
    assert isinstance(b, Cylinder)
    return [(_lowest(b, z, end, normal), 0.0) for end in _ends(b, pose)]


def _ends(b: Cylinder, pose: Any) -> list[Triple]:
    """The middles of its two rims."""
    return [_along(_origin(pose), _axis(pose), s * 0.5 * b.length) for s in (1.0, -1.0)]


def _lowest(b: Cylinder, axis: Triple, middle: Triple, normal: Sequence[Scalar]) -> Triple:
    """The rim's lowest point: from its middle against the normal, less the part along the axis."""
    c = dot(normal, axis)
    down = [c * s - n for s, n in zip(axis, normal, strict=True)]
    length = sqrt(maximum(dot(down, down), 1e-12))  # upright it has no lowest point, and none is far from the middle
    return _along(middle, down, b.radius / length)


def _on_plane(a: Plane, b: Shape, pose: Any) -> list[Touch]:
    return [Touch(p[2] - r, [0.0, 0.0, 1.0], [p[0], p[1], p[2] - r]) for p, r in _points(b, pose)]


def _on_terrain(a: Terrain, b: Shape, pose: Any) -> list[Touch]:
    points = _points(b, pose)
    if isinstance(b, Cylinder):  # what is lowest on a slope is judged by its normal below the middle of the rim
        points = [(_lowest(b, _axis(pose), end, _above(a, end)[1]), 0.0) for end in _ends(b, pose)]
    found = []
    for p, r in points:
        height, n = _above(a, p)
        found.append(Touch(height - r, n, _along(p, n, -1.0 * r)))
    return found


def _above(a: Terrain, p: Triple) -> tuple[Scalar, Triple]:
    """How far a point is from the plane that touches the terrain below it, and the normal of that."""
    along = jet(a.height(Jet(p[0], 1.0), jet(p[1])))
    across = jet(a.height(jet(p[0]), Jet(p[1], 1.0)))
    size = sqrt(1.0 + along.d * along.d + across.d * across.d)
    return (p[2] - along.x) / size, [-along.d / size, -across.d / size, 1.0 / size]


# -- round shapes against each other


def _rounds(p: Triple, r: Scalar, c: Triple, s: Scalar) -> Touch:
    """Two spheres, of radius r around p (of a) and s around c (of b)."""
    d = [y - x for x, y in zip(p, c, strict=True)]
    L = sqrt(maximum(dot(d, d), TINY))
    n = [x / L for x in d]
    return Touch(L - r - s, n, _along(c, n, -1.0 * s))


def _on_sphere(a: Sphere, b: Shape, pose: Any) -> list[Touch]:
    origin: Triple = [0.0, 0.0, 0.0]
    if isinstance(b, Sphere):
        return [_rounds(origin, a.radius, _origin(pose), b.radius)]
    p = _origin(pose)
    R = [[pose[k, i] for k in range(3)] for i in range(3)]  # its axes
    if isinstance(b, Box):
        return [_in_box(b, [-dot(R[i], p) for i in range(3)], pose, R, a.radius)]
    assert isinstance(b, Capsule | Cylinder)
    s = clip(-dot(R[2], p), -0.5 * b.length, 0.5 * b.length)
    return [_rounds(origin, a.radius, _along(p, R[2], s), b.radius)]


def _in_box(b: Box, own: Triple, pose: Any, R: list[Triple], radius: Scalar) -> Touch:
    """A sphere around `own`, in the axes of the box: the nearest point of it, or from inside the nearest side."""
    half = [0.5 * s for s in b.size]
    near = [clip(x, -1.0 * h, h) for x, h in zip(own, half, strict=True)]
    place = _at(pose, near)
    L2 = dot(place, place)
    L = sqrt(maximum(L2, TINY))
    inside = [h - fabs(x) for x, h in zip(own, half, strict=True)]
    depth: Scalar = inside[0]
    out = [-where(own[0] < 0.0, -1.0, 1.0) * x for x in R[0]]
    for k in (1, 2):
        sign = where(own[k] < 0.0, -1.0, 1.0)
        nearer = inside[k] < depth
        out = [where(nearer, -sign * x, old) for x, old in zip(R[k], out, strict=True)]
        depth = where(nearer, inside[k], depth)
    within = L2 < TINY
    normal = [where(within, n, x / L) for n, x in zip(out, place, strict=True)]
    gap = where(within, -1.0 * depth, L) - radius
    return Touch(gap, normal, [where(within, -n * depth, x) for n, x in zip(out, place, strict=True)])


def _on_box(a: Box, b: Shape, pose: Any) -> list[Touch]:
    """Corners of another box, or the ends of a capsule, against its sides, edges and corners."""
    half, found = [0.5 * s for s in a.size], []
    for p, r in _points(b, pose):
        near = [clip(x, -1.0 * h, h) for x, h in zip(p, half, strict=True)]
        apart = [x - y for x, y in zip(p, near, strict=True)]
        L2 = dot(apart, apart)
        L = sqrt(maximum(L2, TINY))
        depth: Scalar = half[0] - fabs(p[0])
        out: Triple = [where(p[0] < 0.0, -1.0, 1.0), 0.0, 0.0]
        for k in (1, 2):
            inside, sign = half[k] - fabs(p[k]), where(p[k] < 0.0, -1.0, 1.0)
            out = [where(inside < depth, sign if i == k else 0.0, x) for i, x in enumerate(out)]
            depth = where(inside < depth, inside, depth)
        within = L2 < TINY
        n = [where(within, x, y / L) for x, y in zip(out, apart, strict=True)]
        found.append(Touch(where(within, -1.0 * depth, L) - r, n, _along(p, n, -1.0 * r)))
    return found


def _on_capsule(a: Capsule, b: Capsule | Cylinder, pose: Any) -> list[Touch]:
    p, u = _origin(pose), _axis(pose)
    h, k = 0.5 * a.length, 0.5 * b.length
    c = u[2]  # of the axes: ours is z
    apart = maximum(1.0 - c * c, 1e-12)
    s = clip((p[2] - c * dot(u, p)) / apart, -1.0 * h, h)
    w = clip(s * c - dot(u, p), -1.0 * k, k)
    s = clip(p[2] + w * c, -1.0 * h, h)
    return [_rounds([0.0, 0.0, s], a.radius, _along(p, u, w), b.radius)]


# The table of pairs: what is on frame a, what is on frame b, and who finds where they touch.
PAIRS: list[tuple[Any, Any, Callable[..., list[Touch]]]] = [
    (Plane, (Sphere, Capsule, Box, Cylinder), _on_plane),
    (Terrain, (Sphere, Capsule, Box, Cylinder), _on_terrain),
    (Sphere, (Sphere, Capsule, Box, Cylinder), _on_sphere),
    (Capsule, (Capsule, Cylinder), _on_capsule),
    (Box, (Sphere, Capsule, Box), _on_box),
]


def thickness(shape: Shape) -> float:
    """From the middle of a shape to where it is nearest to its outside, m; of what has no middle, 0."""
    found = [float(x) for x in (getattr(shape, "radius", None),) if isinstance(x, int | float)]
    if isinstance(shape, Cylinder) and isinstance(shape.length, int | float):
        found.append(0.5 * float(shape.length))
    if isinstance(shape, Box):
        found += [0.5 * float(x) for x in shape.size if isinstance(x, int | float)]
    return min(found, default=0.0)


def reach(shape: Shape) -> float:
    """Return how far the outside of a shape is from its origin at most, m; 0 of what has no end."""
    if isinstance(shape, Box):
        return math.hypot(*(0.5 * float(x) for x in shape.size))
    if isinstance(shape, Cylinder):
        return math.hypot(float(shape.radius), 0.5 * float(shape.length))
    half = 0.5 * float(shape.length) if isinstance(shape, Capsule) else 0.0
    return half + float(shape.radius) if isinstance(shape, Sphere | Capsule) else 0.0


def fit(a: Shape, b: Shape) -> str:
    """Return "none" if no side of box b lies within a side of box a, "some" if not each does, "all" otherwise.

    Of two boxes only the corners of b are tested: a side of b that is larger than the side of a below it falls through.
    Other shapes fit, and so do boxes whose sizes are left open.
    """
    if not (isinstance(a, Box) and isinstance(b, Box)) or not all(
        isinstance(x, int | float) for x in (*a.size, *b.size)
    ):
        return "all"
    ours, theirs = sorted(map(float, a.size)), sorted(map(float, b.size))
    if not (theirs[0] < ours[1] and theirs[1] < ours[2]):
        return "none"
    return "all" if theirs[1] < ours[0] and theirs[2] < ours[1] else "some"
