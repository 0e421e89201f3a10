"""Animation of a run: an SVG with the shapes of the replay that plays wherever pictures are shown.

Each frame is a group of shapes, and a style sheet shows one after the other in an endless loop, without a script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.model.parts import Array
from bellcrank.quoting import xml
from bellcrank.view import scene, static_picture
from bellcrank.view.record_page import checked_lane

if TYPE_CHECKING:
    from bellcrank.model import Mechanism
    from bellcrank.record.record import Record

MAX_FRAMES = 400  # maximum number of frames
FOLLOW_RADII = 1.5  # scene radii: the camera follows a mechanism that moves further
GROUND_LINES, GREY = 9, "#c3cad3"  # ground lines under a followed mechanism


def svg(run: Record, run_index: Any, frames: int, speed: float) -> str:
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
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {static_picture.WIDTH:g} {static_picture.HEIGHT:g}" '
        f'width="{static_picture.WIDTH:g}" role="img" aria-label="{xml(m.name)}, moving"><style>{style}</style>'
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
    shapes, out = static_picture.simple_shapes(m, scene_data), []
    for now, way, row in zip(poses, moved, q, strict=True):
        centre = np.asarray(scene_data["centre"]) + way
        seen, scale = static_picture.projection(scene_data, centre)
        drawn = _ground(scene_data, centre, seen) if follows else []
        for shape in shapes:
            drawn += static_picture.shape_elements(shape, now, seen, scale)
        drawn += static_picture.flexible_elements(m, row, now, seen, scale)
        out.append([element for _, element in sorted(drawn)])
    return out


def _ground(ground: dict[str, Any], centre: Array, project: Any) -> list[static_picture.DrawnElement]:
    """Return fixed lines on the ground, behind everything, that make the motion visible."""
    up, step = np.asarray(ground["up"]), 0.5 * ground["radius"]
    east = np.eye(3)[int(np.argmin(np.abs(up)))]
    north = np.cross(up, east)
    first = int(np.floor(east @ centre / step)) - GROUND_LINES // 2
    lines = []
    for k in range(first, first + GROUND_LINES):
        a, b = (project(k * step * east + (north @ centre + side * step) * north) for side in (-1.0, 1.0))
        lines.append((-np.inf, f'<path d="M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" stroke="{GREY}"/>'))
    return lines
