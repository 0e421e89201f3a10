"""SVG pictures of a mechanism: the shapes of the replay in a parallel projection, slightly from above; still or moving.

A moving picture plays wherever pictures are shown: each frame is a group of shapes, and a style sheet shows one after
the other in an endless loop, without a script.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.argument_errors import sequence_elements
from bellcrank.errors import InputError
from bellcrank.model import Mechanism
from bellcrank.model.parts import Array
from bellcrank.parameters.parameter_table import nominal
from bellcrank.quoting import xml
from bellcrank.view import scene
from bellcrank.view.self_contained_page import LIGHT_COLOURS

if TYPE_CHECKING:
    from bellcrank.record.record import Record

WIDTH, HEIGHT, MARGIN = 420.0, 300.0, 14.0
GREY, STEEL, GROUND_GREY = "#9aa3ae", "#b9c2cc", "#c3cad3"
AZIMUTH, ELEVATION = np.radians(-60.0), np.radians(20.0)
MAX_FRAMES = 400  # maximum number of frames of a moving picture
FOLLOW_RADII = 1.5  # scene radii: the camera follows a mechanism that moves further
GROUND_LINES = 9  # ground lines under a followed mechanism
DrawnElement = tuple[float, str]  # depth towards the eye, and the SVG element


def svg(m: Mechanism, q: Array) -> str:
    """Draw `m` at the positions `q`; nearer elements are drawn later."""
    placed = scene.poses(m, np.asarray(q, float)[None])[0]
    scene_data = scene.scene(m, np.asarray(q, float)[None])
    project, scale = projection(scene_data, np.asarray(scene_data["centre"]))
    drawn: list[DrawnElement] = []
    for each in simple_shapes(m, scene_data):
        drawn += shape_elements(each, placed, project, scale)
    drawn += flexible_elements(m, np.asarray(q, float), placed, project, scale)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" width="{WIDTH:g}" '
        f'role="img" aria-label="{xml(m.name)}">',
        *(element for _, element in sorted(drawn)),
    ]
    return "\n".join([*lines, "</svg>"])


def simple_shapes(m: Mechanism, scene_data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the shapes of the scene `scene_data` of `m`, with bars and boxes in place of meshes."""
    meshed = sorted({s["body"] for s in scene_data["shapes"] if s["kind"] == "mesh" and s["body"] >= 0})
    plain = nominal(m)
    stand_ins = [s for i in meshed for s in scene.body_shapes(plain, i, scene_data["unit"])]
    return [*(s for s in scene_data["shapes"] if s["kind"] != "mesh"), *stand_ins]


def projection(scene_data: dict[str, Any], centre: Array) -> tuple[Callable[[Any], Array], float]:
    """Return the projection of points to picture and depth for `scene_data` around `centre`, and its scale."""
    to_eye = _view_rotation(np.asarray(scene_data["up"]))
    scale = (min(WIDTH, HEIGHT) / 2 - MARGIN) / max(scene_data["radius"], 1e-9)

    def seen(p: Any) -> Array:
        x, y, z = to_eye @ (np.asarray(p, float) - centre) * scale
        return np.array([WIDTH / 2 + x, HEIGHT / 2 - y, z])

    return seen, scale


def _view_rotation(up: Array) -> Array:
    """Return the rotation from the world to the picture: its rows point right, up and to the eye."""
    side = np.eye(3)[int(np.argmin(np.abs(up)))]
    east = side - up * (side @ up)
    east /= np.linalg.norm(east)
    north = np.cross(up, east)
    level = np.cos(AZIMUTH) * east + np.sin(AZIMUTH) * north  # horizontal direction from the centre to the eye
    eye = np.cos(ELEVATION) * level + np.sin(ELEVATION) * up
    right = np.cross(up, eye)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(eye, right), eye])


def _world(pose: Array | None, point: Any) -> Array:
    """Return a point of a body in the world, by the pose [x y z qx qy qz qw] of the body; None is the ground."""
    p = np.asarray(point, float)
    return p if pose is None else scene.in_world(pose, p)


def shape_elements(shape: dict[str, Any], placed: Array, project: Any, scale: float) -> list[DrawnElement]:
    """Return the drawn elements of a shape.

    Parameters
    ----------
    shape
        Shape of a scene.
    placed
        Poses of the bodies, shape (bodies, 7).
    project
        Projection.
    scale
        Picture units per metre.
    """
    body = shape["body"]
    pose = placed[body] if body >= 0 else None
    colour = LIGHT_COLOURS[body % len(LIGHT_COLOURS)] if body >= 0 else GREY
    if shape["kind"] == "bar":
        a, b = (project(_world(pose, shape[end])) for end in "ab")
        return [_line(a, b, 2 * shape["ra"] * scale, colour)]
    if shape["kind"] == "rod":
        parent = placed[shape["parent"]] if shape["parent"] >= 0 else None
        a, b = project(_world(parent, shape["from"])), project(_world(pose, (0.0, 0.0, 0.0)))
        return [_line(a, b, 2 * shape["r"] * scale, GREY)]
    if shape["kind"] == "box":
        axes, half = np.asarray(shape["axes"]), np.asarray(shape["half"])
        corners = [shape["at"] + axes @ (half * signs) for signs in product((-1, 1), repeat=3)]
        points = [project(_world(pose, corner)) for corner in corners]
        outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in _hull([(p[0], p[1]) for p in points]))
        depth = float(np.mean([p[2] for p in points]))
        return [(depth, f'<polygon points="{outline}" fill="{colour}" stroke="#555"/>')]
    x, y, z = project(_world(pose, shape["at"]))
    radius = max(shape["r"] * scale, 2.5)
    return [(z + radius, f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="#fff" stroke="#555"/>')]


def flexible_elements(m: Mechanism, q: Array, placed: Array, project: Any, scale: float) -> list[DrawnElement]:
    """Return the drawn elements of flexible bodies: beams with their thickness, others by the edges of their skin.

    Parameters
    ----------
    m
        Mechanism.
    q
        Positions, shape (nq,).
    placed
        Poses of the bodies, shape (bodies, 7).
    project
        Projection.
    scale
        Picture units per metre.
    """
    index, columns = {b.name: i for i, b in enumerate(m.bodies)}, m.columns[0]
    drawn: list[DrawnElement] = []

    def spot(body: str, point: Any, shift: Any, coordinates: Any) -> Array:
        away = [q[columns.index(x)] for x in coordinates] @ np.array(shift, float).reshape(-1, 3)
        return np.asarray(project(_world(placed[index[body]] if body in index else None, np.add(point, away))))

    for o in m.outlines:
        spots = [spot(s.body, s.point, s.shift, s.coordinates) for s in o.slices]
        for a, b, s in zip(spots, spots[1:], o.slices, strict=False):
            drawn.append(_line(a, b, 2 * scale * max(float(np.hypot(*c)) for c in s.corners), STEEL))
        if o.skin:
            pairs = zip(o.skin.points, o.skin.shift, strict=True)
            spots = [spot(o.skin.body, p, shift, o.skin.coordinates) for p, shift in pairs]
            edges = {tuple(sorted(pair)) for cell in o.skin.cells for pair in combinations(cell, 2)}
            drawn += [_line(spots[a], spots[b], 1.0, STEEL) for a, b in sorted(edges)]
    return drawn


def _line(a: Array, b: Array, width: float, colour: str) -> DrawnElement:
    """Return a line as a polygon of the given width, with an outline."""
    way = b[:2] - a[:2]
    length = float(np.linalg.norm(way))
    across = np.array([-way[1], way[0]]) / length if length > 1e-9 else np.array([1.0, 0.0])
    side = across * max(width, 2.0) / 2
    corners = (a[:2] + side, b[:2] + side, b[:2] - side, a[:2] - side)
    outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    element = f'<polygon points="{outline}" fill="{colour}" stroke="#555" stroke-linejoin="round"/>'
    return float(a[2] + b[2]) / 2, element


def _hull(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the convex hull of points in a plane, counterclockwise."""
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered

    def half(way: list[tuple[float, float]]) -> list[tuple[float, float]]:
        corners: list[tuple[float, float]] = []
        for x, y in way:
            while len(corners) > 1:
                (x0, y0), (x1, y1) = corners[-2:]
                if (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) > 0:
                    break
                corners.pop()
            corners.append((x, y))
        return corners[:-1]

    return half(ordered) + half(ordered[::-1])


# -- moving pictures


def animated_svg(run: Record, run_index: Any, frames: int, speed: float) -> str:
    """Return an animation of one run.

    Parameters
    ----------
    run
        Record.
    run_index
        Index of the run in the batch.
    frames
        Number of frames.
    speed
        Simulated time per real time.
    """
    m, lane = run.mechanism, checked_lane(run, run_index)
    if m is None or not run.has_state("q") or not m.bodies:
        raise InputError("the record has no mechanism with positions; there is nothing to draw.")
    if not 2 <= frames <= MAX_FRAMES or not speed > 0.0:
        raise InputError(
            f"frames is {frames!r} and speed {speed!r}; expected 2 to {MAX_FRAMES} frames, and a speed above 0."
        )
    t, q = run.t[lane], run.q[lane]
    finite_rows = np.flatnonzero(np.isfinite(t) & np.isfinite(q).all(axis=-1))
    if finite_rows.size < 2:
        raise InputError("the record has fewer than two rows; there is no motion to draw.")
    times = np.linspace(t[finite_rows[0]], t[finite_rows[-1]], frames)
    rows = finite_rows[np.searchsorted(t[finite_rows], times).clip(0, finite_rows.size - 1)]
    duration = float(times[-1] - times[0]) / speed
    share = 100.0 / frames
    style = (
        f"g{{visibility:hidden;animation:on {duration:.3f}s step-end infinite}}"
        f"@keyframes on{{0%{{visibility:visible}}{share:.4f}%{{visibility:hidden}}}}"
    )
    groups = [
        f'<g style="animation-delay:{k * duration / frames:.3f}s">{"".join(drawn)}</g>'
        for k, drawn in enumerate(_frame_elements(m, q[rows]))
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" '
        f'width="{WIDTH:g}" role="img" aria-label="{xml(m.name)}, moving"><style>{style}</style>'
        + "\n".join(groups)
        + "</svg>\n"
    )


def _frame_elements(m: Mechanism, q: Array) -> list[list[str]]:
    poses, scene_data = scene.poses(m, q), scene.scene(m, q[:1])
    up = np.asarray(scene_data["up"])
    moved = poses[:, :, :3].mean(axis=1) - poses[0, :, :3].mean(axis=0)
    moved = moved - np.outer(moved @ up, up)
    # Otherwise it would leave the picture.
    follows = float(np.linalg.norm(moved, axis=-1).max()) > FOLLOW_RADII * scene_data["radius"]
    if not follows:
        scene_data, moved = scene.scene(m, q), np.zeros_like(moved)
    shapes, out = simple_shapes(m, scene_data), []
    for now, way, row in zip(poses, moved, q, strict=True):
        centre = np.asarray(scene_data["centre"]) + way
        seen, scale = projection(scene_data, centre)
        drawn = _ground_lines(scene_data, centre, seen) if follows else []
        for shape in shapes:
            drawn += shape_elements(shape, now, seen, scale)
        drawn += flexible_elements(m, row, now, seen, scale)
        out.append([element for _, element in sorted(drawn)])
    return out


def _ground_lines(ground: dict[str, Any], centre: Array, project: Any) -> list[DrawnElement]:
    """Return fixed lines on the ground, behind everything, that make the motion visible."""
    up, step = np.asarray(ground["up"]), 0.5 * ground["radius"]
    east = np.eye(3)[int(np.argmin(np.abs(up)))]
    north = np.cross(up, east)
    first = int(np.floor(east @ centre / step)) - GROUND_LINES // 2
    lines = []
    for k in range(first, first + GROUND_LINES):
        a, b = (project(k * step * east + (north @ centre + side * step) * north) for side in (-1.0, 1.0))
        lines.append((-np.inf, f'<path d="M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" stroke="{GROUND_GREY}"/>'))
    return lines


def checked_lane(run: Record, run_index: int | Sequence[int]) -> tuple[int, ...]:
    """Return the index of the run `run_index` in the batch of `run`, checked; () is the first run of a batch."""
    elements = sequence_elements(run_index)
    try:
        lane = tuple(map(operator.index, [run_index] if elements is None else elements))
    except TypeError:
        lane = (-1,) * (1 + len(run.batch))
    if run.batch and not lane:
        return tuple(0 for _ in run.batch)
    if len(lane) != len(run.batch) or not all(0 <= i < n for i, n in zip(lane, run.batch, strict=True)):
        has = f"the batch has the shape {run.batch}" if run.batch else "there is no batch, so leave it out"
        raise InputError(f"lane is {run_index!r}; expected an index, from 0, for each axis of the batch: {has}.")
    return lane
