"""Contact shapes, and the closest points of each supported pair.

`contact_points(a, b, pose)` returns the possible contact points of shape b, whose frame has the pose `pose` in the
frame of a: the gap (negative if they overlap), the normal from a to b, and the position, all in the axes of a. The list
has the same length in every state, and nothing branches, so that a legged robot compiles to straight-line code in all
lanes.

    plane, terrain     sphere, capsule (both its ends), box (8 corners), cylinder (the lowest point of either rim)
    box                sphere, capsule (both its ends and the point between them that is closest to the box),
                       box (its 8 corners, and 4 edges of the box on frame a)
    sphere             sphere, capsule, box, cylinder's axis as a capsule
    capsule            capsule

Between its ends a capsule touches a box with a barrel, whose radius falls by 1% from its middle to its ends: without
it, the closest point of a capsule that lies flat would jump from end to end with the slightest tilt. Edges of a box are
such barrels inside it, along the edges of the face that is towards the other box. A barrel whose axis is inside a box
is pushed out on the shortest way, by the separating axes of a segment and a box.

Closest points of segments: V. J. Lumelsky. On fast computation of distance between line segments. Information
Processing Letters 21(2), 55-61, 1985. A terrain is replaced by its tangent plane below the shape's lowest point,
which is exact where it is flat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from bellcrank.argument_errors import explain_argument_errors
from bellcrank.errors import InputError, brief
from bellcrank.forces.element import Triple, dot
from bellcrank.jets import Jet, jet
from bellcrank.parameters.validation import check_range
from bellcrank.scalar import Scalar, clip, fabs, float_array, maximum, minimum, sqrt, where

MIN_SQUARED_DISTANCE = 1e-24  # m^2, smallest squared distance: coincident points have no direction
MIN_AXIS_COMPONENT = 1e-12  # smallest component of a segment's axis, so that it crosses every plane somewhere
BARREL = 0.02  # share of its squared radius that a barrel loses from its middle to its ends
NO_WAY_M = 1e12  # m, length of a way out of a box that does not exist
PARALLEL_EDGES = 1e-6  # sine of the angle between edges of two boxes below which they count as parallel
CORE_POINTS = 9  # points along a shape between which a terrain is searched for bumps
Way = tuple[Scalar, Triple, Scalar]  # out of a box: length, direction, and place along a segment
EDGE_RADIUS = 0.1  # radius of a box's edges in contact with boxes, as a share of the smallest half edge length of both


@dataclass(frozen=True)
class ContactPoint:
    """Contact point: gap (m, negative if overlapping), normal from a to b, and position, in the axes of a.

    `slope` is the derivative of the gap by a motion of b along the normal: 1, or less where a barrel touches.
    """

    gap: Scalar
    normal: Triple
    place: Triple
    slope: Scalar = 1.0


@dataclass(frozen=True)
class Shape:
    """Base class of contact shapes; all numbers are lengths above zero."""

    def __post_init__(self) -> None:
        check_range(self, type(self).__name__, vars(self), above_zero=True)


@dataclass(frozen=True)
class Plane(Shape):
    """Half-space below z = 0 of its frame."""


@dataclass(frozen=True)
class Terrain(Shape):
    """Ground below z = height(x, y) of its frame.

    Parameters
    ----------
    height : callable
        Height in m as a function of (x, y) in m: any function, or `grid(...)`.
    """

    height: Callable[[Scalar, Scalar], Scalar]

    def __post_init__(self) -> None:
        if not callable(self.height):
            raise InputError(f"Terrain: height is {brief(self.height)}; expected a function of (x, y), or grid(...).")


@dataclass(frozen=True)
class Sphere(Shape):
    """Sphere about the origin of its frame.

    Parameters
    ----------
    radius : Scalar
        Radius, m.
    """

    radius: Scalar


@dataclass(frozen=True)
class Capsule(Shape):
    """Cylinder along z with hemispherical ends, centred at the origin of its frame.

    Parameters
    ----------
    radius : Scalar
        Radius, m.
    length : Scalar
        Length of the cylindrical part, m.
    """

    radius: Scalar
    length: Scalar


@dataclass(frozen=True)
class Box(Shape):
    """Box centred at the origin of its frame.

    Parameters
    ----------
    size : tuple of 3 Scalar
        Edge lengths along x, y and z, m.
    """

    size: tuple[Scalar, Scalar, Scalar]  # edge lengths along x, y and z

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", tuple(self.size) if getattr(self.size, "ndim", 0) == 1 else self.size)
        if not isinstance(self.size, tuple | list) or len(self.size) != 3:
            raise InputError(f"Box: size is {brief(self.size)}; expected three lengths, (x, y, z).")
        super().__post_init__()


@dataclass(frozen=True)
class Cylinder(Shape):
    """Cylinder along z, centred at the origin of its frame.

    Parameters
    ----------
    radius : Scalar
        Radius, m.
    length : Scalar
        Length, m.
    """

    radius: Scalar
    length: Scalar


@explain_argument_errors
def grid(xs: Sequence[float], ys: Sequence[float], heights: Any) -> Callable[[Scalar, Scalar], Scalar]:
    """Return a height function that interpolates a grid bilinearly.

    Parameters
    ----------
    xs, ys : sequence of float
        Increasing coordinates of the grid lines, m; at least two each.
    heights : array_like, shape (len(xs), len(ys))
        Height at (xs[i], ys[j]), m.

    Returns
    -------
    callable
        height(x, y) for `Terrain`; constant beyond the edges of the grid.

    Raises
    ------
    InputError
        If the shapes do not match, a height is not finite or a coordinate does not increase.
    """
    try:
        H, grid_lines = float_array(heights), [float_array(xs), float_array(ys)]
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"grid: xs is {brief(xs)}, ys {brief(ys)} and heights {brief(heights)}; expected numbers in rows."
        ) from None
    if H.shape != (grid_lines[0].size, grid_lines[1].size) or min(H.shape) < 2:
        raise InputError(
            f"grid: heights has the shape {H.shape}; expected {(grid_lines[0].size, grid_lines[1].size)}, "
            "at least 2 x 2."
        )
    if not np.isfinite(H).all():
        i, j = np.argwhere(~np.isfinite(H))[0].tolist()
        raise InputError(f"grid: heights[{i}][{j}] is {H[i, j]}; expected finite numbers.")
    for name, x in zip("xy", grid_lines, strict=True):
        if (np.diff(x) <= 0.0).any():
            raise InputError(f"grid: {name}s must increase; {x.tolist()!r} does not.")

    def height(x: Scalar, y: Scalar) -> Scalar:
        weights_x, weights_y = _hat_weights(x, grid_lines[0]), _hat_weights(y, grid_lines[1])
        total: Scalar = 0.0
        for i, u in enumerate(weights_x):
            line: Scalar = 0.0
            for j, w in enumerate(weights_y):
                if H[i, j]:
                    line = line + w * float(H[i, j])
            total = total + line * u
        return total

    return height


def _hat_weights(x: Scalar, grid_line: Any) -> list[Scalar]:
    """Return the weight of each grid point at x: hat functions, 1 at the point and 0 at its neighbours."""
    x = clip(x, float(grid_line[0]), float(grid_line[-1]))
    weights: list[Scalar] = []
    for k, coordinate in enumerate(grid_line):
        left = float(coordinate - grid_line[k - 1]) if k else 1.0
        right = float(grid_line[k + 1] - coordinate) if k + 1 < len(grid_line) else 1.0
        middle = float(coordinate)
        weights.append(maximum(1.0 - where(x < middle, (middle - x) / left, (x - middle) / right), 0.0))
    return weights


def contact_points(a: Shape, b: Shape, pose: Any) -> list[ContactPoint]:
    """Return the contact points of shapes `a` and `b`, where `pose` is the 4x4 pose of b in a."""
    for shapes_a, shapes_b, find_contacts in SHAPE_PAIRS:
        if isinstance(a, shapes_a) and isinstance(b, shapes_b):
            contacts: list[ContactPoint] = find_contacts(a, b, pose)
            return contacts
    raise InputError(
        f"no contact between {type(a).__name__} and {type(b).__name__}, in this order. Known, the first on frame a: "
        f"{'; '.join(f'{_name(m)} and {_name(o)}' for m, o, _ in SHAPE_PAIRS)}."
    )


def _name(kinds: Any) -> str:
    return "/".join(k.__name__ for k in (kinds if isinstance(kinds, tuple) else (kinds,)))


def _origin(pose: Any) -> Triple:
    return [pose[k, 3] for k in range(3)]


def _axis(pose: Any) -> Triple:
    return [pose[k, 2] for k in range(3)]


def _transformed_point(pose: Any, x: Sequence[Scalar]) -> Triple:
    """Return a point x of b in the frame of a."""
    return [pose[k, 0] * x[0] + pose[k, 1] * x[1] + pose[k, 2] * x[2] + pose[k, 3] for k in range(3)]


def _offset_point(p: Triple, n: Sequence[Scalar], s: Scalar) -> Triple:
    return [x + s * y for x, y in zip(p, n, strict=True)]


# -- on a plane: one sphere for each possible contact point


def _touching_spheres(b: Shape, pose: Any, normal: Sequence[Scalar] = (0.0, 0.0, 1.0)) -> list[tuple[Triple, Scalar]]:
    """Return (centre, radius) of spheres that touch a plane where the shape does."""
    if isinstance(b, Sphere):
        return [(_origin(pose), b.radius)]
    p, z = _origin(pose), _axis(pose)
    if isinstance(b, Capsule):
        return [(_offset_point(p, z, s * 0.5 * b.length), b.radius) for s in (1.0, -1.0)]
    if isinstance(b, Box):
        x, y, h = (0.5 * s for s in b.size)
        signs = (1, -1)
        return [(_transformed_point(pose, (i * x, j * y, k * h)), 0.0) for i in signs for j in signs for k in signs]
    assert isinstance(b, Cylinder)
    return [(_lowest_rim_point(b, z, end, normal), 0.0) for end in _rim_centres(b, pose)]


def _rim_centres(b: Cylinder, pose: Any) -> list[Triple]:
    """Return the centres of the cylinder's two rims."""
    return [_offset_point(_origin(pose), _axis(pose), s * 0.5 * b.length) for s in (1.0, -1.0)]


def _lowest_rim_point(b: Cylinder, axis: Triple, middle: Triple, normal: Sequence[Scalar]) -> Triple:
    """Return the lowest point of a rim: from its centre against the normal, without the component along the axis."""
    c = dot(normal, axis)
    down = [c * s - n for s, n in zip(axis, normal, strict=True)]
    length = sqrt(maximum(dot(down, down), 1e-12))  # an upright cylinder has no lowest point; any is near the middle
    return _offset_point(middle, down, b.radius / length)


def _on_plane(a: Plane, b: Shape, pose: Any) -> list[ContactPoint]:
    return [ContactPoint(p[2] - r, [0.0, 0.0, 1.0], [p[0], p[1], p[2] - r]) for p, r in _touching_spheres(b, pose)]


def _on_terrain(a: Terrain, b: Shape, pose: Any) -> list[ContactPoint]:
    points = _touching_spheres(b, pose)
    if isinstance(b, Cylinder):  # the lowest point depends on the terrain's normal below the rim's centre
        points = [
            (_lowest_rim_point(b, _axis(pose), end, tangent_plane_height(a, end)[1]), 0.0)
            for end in _rim_centres(b, pose)
        ]
    contacts = []
    for p, r in points:
        height, n = tangent_plane_height(a, p)
        contacts.append(ContactPoint(height - r, n, _offset_point(p, n, -1.0 * r)))
    return contacts


def tangent_plane_height(a: Terrain, p: Triple) -> tuple[Scalar, Triple]:
    """Return the distance of the point `p` from the tangent plane of terrain `a` below it, and that plane's normal."""
    along = jet(a.height(Jet(p[0], 1.0), jet(p[1])))
    across = jet(a.height(jet(p[0]), Jet(p[1], 1.0)))
    size = sqrt(1.0 + along.d * along.d + across.d * across.d)
    return (p[2] - along.x) / size, [-along.d / size, -across.d / size, 1.0 / size]


# -- round shapes in contact with each other


def _sphere_contact(p: Triple, r: Scalar, c: Triple, s: Scalar) -> ContactPoint:
    """Return the contact of two spheres, of radius r about p (on a) and of radius s about c (on b)."""
    d = [y - x for x, y in zip(p, c, strict=True)]
    L = sqrt(maximum(dot(d, d), MIN_SQUARED_DISTANCE))
    n = [x / L for x in d]
    return ContactPoint(L - r - s, n, _offset_point(c, n, -1.0 * s))


def _on_sphere(a: Sphere, b: Shape, pose: Any) -> list[ContactPoint]:
    origin: Triple = [0.0, 0.0, 0.0]
    if isinstance(b, Sphere):
        return [_sphere_contact(origin, a.radius, _origin(pose), b.radius)]
    p = _origin(pose)
    R = [[pose[k, i] for k in range(3)] for i in range(3)]  # axes of b
    if isinstance(b, Box):
        return [_sphere_in_box(b, [-dot(R[i], p) for i in range(3)], pose, R, a.radius)]
    assert isinstance(b, Capsule | Cylinder)
    s = clip(-dot(R[2], p), -0.5 * b.length, 0.5 * b.length)
    return [_sphere_contact(origin, a.radius, _offset_point(p, R[2], s), b.radius)]


def _sphere_in_box(b: Box, sphere_centre: Triple, pose: Any, R: list[Triple], radius: Scalar) -> ContactPoint:
    """Return the contact of a box with a sphere about `sphere_centre` (box axes).

    It is at the closest point, or at the closest side from inside.
    """
    half = [0.5 * s for s in b.size]
    closest_point = [clip(x, -1.0 * h, h) for x, h in zip(sphere_centre, half, strict=True)]
    place = _transformed_point(pose, closest_point)
    L2 = dot(place, place)
    L = sqrt(maximum(L2, MIN_SQUARED_DISTANCE))
    side_distances = [h - fabs(x) for x, h in zip(sphere_centre, half, strict=True)]
    depth: Scalar = side_distances[0]
    outward = [-where(sphere_centre[0] < 0.0, -1.0, 1.0) * x for x in R[0]]
    for k in (1, 2):
        sign = where(sphere_centre[k] < 0.0, -1.0, 1.0)
        nearer = side_distances[k] < depth
        outward = [where(nearer, -sign * x, old) for x, old in zip(R[k], outward, strict=True)]
        depth = where(nearer, side_distances[k], depth)
    is_inside = L2 < MIN_SQUARED_DISTANCE
    normal = [where(is_inside, n, x / L) for n, x in zip(outward, place, strict=True)]
    gap = where(is_inside, -1.0 * depth, L) - radius
    return ContactPoint(gap, normal, [where(is_inside, -n * depth, x) for n, x in zip(outward, place, strict=True)])


def _on_box(a: Box, b: Shape, pose: Any) -> list[ContactPoint]:
    """Return contacts of box a with another box's corners or a capsule's ends, and with what lies between them."""
    half = [0.5 * x for x in a.size]
    contacts = [_box_contact(half, p, r) for p, r in _touching_spheres(b, pose)]
    if isinstance(b, Capsule):
        contacts.append(_barrel_on_box(half, _origin(pose), _axis(pose), 0.5 * b.length, b.radius))
    if isinstance(b, Box):
        contacts += _edges_in_box(a, b, pose)
    return contacts


def _box_contact(half: Sequence[Scalar], p: Triple, r: Scalar) -> ContactPoint:
    """Return the contact of a box with a sphere of radius r about p, in the axes of the box."""
    closest_point = [clip(x, -1.0 * h, h) for x, h in zip(p, half, strict=True)]
    separation = [x - y for x, y in zip(p, closest_point, strict=True)]
    L2 = dot(separation, separation)
    L = sqrt(maximum(L2, MIN_SQUARED_DISTANCE))
    depth: Scalar = half[0] - fabs(p[0])
    outward: Triple = [where(p[0] < 0.0, -1.0, 1.0), 0.0, 0.0]
    for k in (1, 2):
        inside, sign = half[k] - fabs(p[k]), where(p[k] < 0.0, -1.0, 1.0)
        outward = [where(inside < depth, sign if i == k else 0.0, x) for i, x in enumerate(outward)]
        depth = where(inside < depth, inside, depth)
    is_inside = L2 < MIN_SQUARED_DISTANCE
    n = [where(is_inside, x, y / L) for x, y in zip(outward, separation, strict=True)]
    return ContactPoint(where(is_inside, -1.0 * depth, L) - r, n, _offset_point(p, n, -1.0 * r))


def _barrel_on_box(half: Sequence[Scalar], p: Triple, u: Triple, h: Scalar, r: Scalar) -> ContactPoint:
    """Return the contact of a box with a barrel about the segment p + s u, |s| <= h, in the axes of the box.

    Its gap is the least sqrt(distance^2 + e s^2) - r, with e s^2 what the squared radius has lost at s. Half the
    derivative of the square by s rises along the segment and bends only where the segment crosses a plane of a side:
    its zero lies between two of these crossings, and is linear there. So the gap's derivative by the pose is that at a
    fixed s, and the contact is conservative. A segment that enters the box is pushed out on the shortest way.
    """
    e = BARREL * (r / h) * (r / h)

    def derivative(s: Scalar) -> Scalar:
        point = _offset_point(p, u, s)
        return e * s + dot(u, [x - clip(x, -1.0 * k, k) for x, k in zip(point, half, strict=True)])

    below, above, entry, exit_ = -1.0 * h, h, -1.0 * h, h
    derivative_below, derivative_above = derivative(below), derivative(above)
    for x, direction, k in zip(p, u, half, strict=True):
        divisor = where(fabs(direction) < MIN_AXIS_COMPONENT, MIN_AXIS_COMPONENT, direction)
        crossings = [(side - x) / divisor for side in (-1.0 * k, k)]
        entry, exit_ = maximum(entry, minimum(*crossings)), minimum(exit_, maximum(*crossings))
        for crossing in crossings:
            s = clip(crossing, -1.0 * h, h)
            d = derivative(s)
            is_below = d < 0.0
            below = where(is_below, maximum(below, s), below)
            above = where(is_below, above, minimum(above, s))
            derivative_below = where(is_below, maximum(derivative_below, d), derivative_below)
            derivative_above = where(is_below, derivative_above, minimum(derivative_above, d))
    rise = maximum(derivative_above - derivative_below, MIN_SQUARED_DISTANCE)
    s = below + (above - below) * clip(-1.0 * derivative_below / rise, 0.0, 1.0)
    point = _offset_point(p, u, s)
    separation = [x - clip(x, -1.0 * k, k) for x, k in zip(point, half, strict=True)]
    L2 = dot(separation, separation)
    L, distance = (sqrt(maximum(x, MIN_SQUARED_DISTANCE)) for x in (L2, L2 + e * s * s))
    depth, out, s_inside = _way_out_of_box(half, p, u, h, r)
    is_inside = entry < exit_
    n = [where(is_inside, x, y / L) for x, y in zip(out, separation, strict=True)]
    place = _offset_point(_offset_point(p, u, where(is_inside, s_inside, s)), n, -1.0 * r)
    return ContactPoint(where(is_inside, -1.0 * depth, distance) - r, n, place, where(is_inside, 1.0, L / distance))


def _way_out_of_box(half: Sequence[Scalar], p: Triple, u: Triple, h: Scalar, r: Scalar) -> Way:
    """Return the shortest way on which the segment p + s u, |s| <= h, leaves the box: length, direction, and place s.

    It leaves through a side or across an edge. Through a side, its deepest point counts, with the radius r of the
    barrel, if that point is behind the side. Across an edge, the direction is perpendicular to both. Either length is
    the greatest of its kind for the pose, so that its derivative is that at a fixed s.
    """
    ways: list[Way] = []
    bend = BARREL * r / (h * h)  # curvature of the barrel
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        outward = where(p[k] < 0.0, -1.0, 1.0)
        s = clip(-outward * u[k] / bend, -1.0 * h, h)
        x = _offset_point(p, u, s)
        is_beside = maximum(fabs(x[i]) - half[i], fabs(x[j]) - half[j]) > 0.0
        length = half[k] - outward * x[k] - 0.5 * bend * s * s
        ways.append((where(is_beside, NO_WAY_M, length), [outward if axis == k else 0.0 for axis in range(3)], s))
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        across2 = u[i] * u[i] + u[j] * u[j]
        across = sqrt(maximum(across2, MIN_AXIS_COMPONENT))
        offset = (u[i] * p[j] - u[j] * p[i]) / across
        outward = where(offset < 0.0, -1.0, 1.0)
        n_i, n_j = -outward * u[j] / across, outward * u[i] / across
        length = half[i] * fabs(n_i) + half[j] * fabs(n_j) - fabs(offset)
        edge_i, edge_j = where(n_i < 0.0, -1.0 * half[i], half[i]), where(n_j < 0.0, -1.0 * half[j], half[j])
        s = clip(((edge_i - p[i]) * u[i] + (edge_j - p[j]) * u[j]) / (across * across), -1.0 * h, h)
        n: Triple = [0.0, 0.0, 0.0]
        n[i], n[j] = n_i, n_j
        ways.append((where(across2 < MIN_AXIS_COMPONENT, NO_WAY_M, length), n, s))
    return reduce(_shorter_way, ways)


def _shorter_way(a: Way, b: Way) -> Way:
    """Return the shorter one of two ways, each with its length, direction and place."""
    shorter = b[0] < a[0]
    direction = [where(shorter, y, x) for x, y in zip(a[1], b[1], strict=True)]
    return where(shorter, b[0], a[0]), direction, where(shorter, b[2], a[2])


def _edges_in_box(a: Box, b: Box, pose: Any) -> list[ContactPoint]:
    """Return contacts of box b with the four edges of the face of box a that is towards the centre of b."""
    half, half_b, centre = [0.5 * x for x in a.size], [0.5 * x for x in b.size], _origin(pose)
    r = 0.5 * EDGE_RADIUS * reduce(minimum, (*a.size, *b.size))
    inset, sides = [h - r for h in half], [where(x < 0.0, -1.0, 1.0) for x in centre]
    outside = [fabs(x) - h for x, h in zip(centre, half, strict=True)]
    towards_x = where(outside[0] < outside[1], 0.0, where(outside[0] < outside[2], 0.0, 1.0))
    towards_z = where(towards_x > 0.5, 0.0, where(outside[2] < outside[1], 0.0, 1.0))
    towards = [towards_x, 1.0 - towards_x - towards_z, towards_z]
    contacts = []
    for along, across in ((1, 1), (1, -1), (2, 1), (2, -1)):
        # The face's axes follow its normal cyclically: y, z for x; z, x for y; x, y for z.
        middle: Triple = [0.0, 0.0, 0.0]
        axis: Triple = [0.0, 0.0, 0.0]
        length: Scalar = 0.0
        for k in range(3):
            i, j = (k + along) % 3, (k + 3 - along) % 3
            middle[k] = middle[k] + towards[k] * sides[k] * inset[k]
            middle[j] = middle[j] + towards[k] * across * inset[j]
            axis[i] = axis[i] + towards[k]
            length = length + towards[k] * inset[i]
        offset = [x - y for x, y in zip(middle, centre, strict=True)]
        p, u = ([dot([pose[k, i] for k in range(3)], x) for i in range(3)] for x in (offset, axis))
        touch = _barrel_on_box(half_b, p, u, length, r)
        n = [-dot([pose[k, i] for i in range(3)], touch.normal) for k in range(3)]
        contacts.append(ContactPoint(touch.gap, n, _transformed_point(pose, touch.place), touch.slope))
    return contacts


def _on_capsule(a: Capsule, b: Capsule | Cylinder, pose: Any) -> list[ContactPoint]:
    p, u = _origin(pose), _axis(pose)
    h, k = 0.5 * a.length, 0.5 * b.length
    c = u[2]  # cosine between the axes; a's axis is z
    squared_sine = maximum(1.0 - c * c, 1e-12)
    s = clip((p[2] - c * dot(u, p)) / squared_sine, -1.0 * h, h)
    w = clip(s * c - dot(u, p), -1.0 * k, k)
    s = clip(p[2] + w * c, -1.0 * h, h)
    return [_sphere_contact([0.0, 0.0, s], a.radius, _offset_point(p, u, w), b.radius)]


# Supported pairs: shapes on frame a, shapes on frame b, function that returns the contact points.
SHAPE_PAIRS: list[tuple[Any, Any, Callable[..., list[ContactPoint]]]] = [
    (Plane, (Sphere, Capsule, Box, Cylinder), _on_plane),
    (Terrain, (Sphere, Capsule, Box, Cylinder), _on_terrain),
    (Sphere, (Sphere, Capsule, Box, Cylinder), _on_sphere),
    (Capsule, (Capsule, Cylinder), _on_capsule),
    (Box, (Sphere, Capsule, Box), _on_box),
]


def inner_radius(shape: Shape) -> float:
    """Return the smallest distance from the centre of `shape` to its surface, m; 0 if it has no centre."""
    distances = [float(x) for x in (getattr(shape, "radius", None),) if isinstance(x, int | float)]
    if isinstance(shape, Cylinder) and isinstance(shape.length, int | float):
        distances.append(0.5 * float(shape.length))
    if isinstance(shape, Box):
        distances += [0.5 * float(x) for x in shape.size if isinstance(x, int | float)]
    return min(distances, default=0.0)


def outer_radius(shape: Shape) -> float:
    """Return the largest distance of the surface of `shape` from its origin, m; 0 if it is unbounded."""
    if isinstance(shape, Box):
        return math.hypot(*(0.5 * float(x) for x in shape.size))
    if isinstance(shape, Cylinder):
        return math.hypot(float(shape.radius), 0.5 * float(shape.length))
    half = 0.5 * float(shape.length) if isinstance(shape, Capsule) else 0.0
    return half + float(shape.radius) if isinstance(shape, Sphere | Capsule) else 0.0


def core_points(shape: Shape) -> np.ndarray[Any, Any]:
    """Return points inside `shape`, (n, 3), at least half its inner radius below its surface; none of a sphere."""
    depth = 0.5 * inner_radius(shape)
    if isinstance(shape, Capsule):
        z = np.linspace(-0.5, 0.5, CORE_POINTS) * float(shape.length)
        return np.stack([0.0 * z, 0.0 * z, z], axis=1)
    if isinstance(shape, Cylinder):
        angle = np.linspace(0.0, 2.0 * math.pi, 8, endpoint=False)
        rim = (float(shape.radius) - depth) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        z = np.linspace(-1.0, 1.0, CORE_POINTS) * (0.5 * float(shape.length) - depth)
        return np.array([(x, y, k) for x, y in (*rim.tolist(), (0.0, 0.0)) for k in z.tolist()])
    if isinstance(shape, Box):
        lines = [np.linspace(-1.0, 1.0, CORE_POINTS) * (0.5 * float(x) - depth) for x in shape.size]
        return np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, 3)
    return np.zeros((0, 3))


def box_overlap(a: Box, b: Box, pose: Any) -> float:
    """Return how deep two boxes are inside each other, m; 0 if they are apart.

    It is the least overlap along the axes that can separate them: the normals of their faces, and the products of
    their edges. `pose` is the 4x4 pose of b in a, and the sizes are numbers.
    """
    X = np.array(pose, float)
    R, p = X[:3, :3], X[:3, 3]
    half_a, half_b = (0.5 * np.array([float(x) for x in box.size]) for box in (a, b))
    axes = np.concatenate([np.eye(3), R.T, np.cross(np.eye(3)[:, None], R.T[None]).reshape(9, 3)])
    lengths = np.linalg.norm(axes, axis=1)
    axes = axes[lengths > PARALLEL_EDGES] / lengths[lengths > PARALLEL_EDGES, None]
    overlaps = np.abs(axes) @ half_a + np.abs(axes @ R) @ half_b - np.abs(axes @ p)
    return max(0.0, float(np.min(overlaps)))


def terrain_in_core(a: Shape, b: Shape, pose: Any) -> float:
    """Return how far a terrain rises above points in the core of `b`, m; 0 if it is below all of them.

    The contact points of capsules, boxes and cylinders are at their ends and corners: a bump between them meets no
    force. `pose` is the 4x4 pose of b in a, and the sizes are numbers.
    """
    points = core_points(b) if isinstance(a, Terrain) else np.zeros((0, 3))
    if not isinstance(a, Terrain) or not len(points):
        return 0.0
    X = np.array(pose, float)
    x, y, z = X[:3, :3] @ points.T + X[:3, 3:]
    return max(0.0, float(np.max(a.height(x, y) - z)))
