"""Animation of a run: an SVG with the shapes of the replay that plays wherever pictures are shown.

Each frame is a group of shapes, and a style sheet shows one after the other in an endless loop, without a script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError
from bellcrank.model.parts import Array
from bellcrank.quoting import xml
from bellcrank.view import scene, still
from bellcrank.view.record_page import lane_of

if TYPE_CHECKING:
    from bellcrank.model import Mechanism
    from bellcrank.record.record import Record

MOST_MOMENTS = 400  # maximum number of frames
FAR = 1.5  # scene radii: the camera follows a mechanism that moves further
MARKS, GREY = 9, "#c3cad3"  # ground lines under a followed mechanism


def svg(run: Record, asked: Any, frames: int, speed: float) -> str:
    """Return an animation of one run.

    Parameters
    ----------
    run
        Record.
    asked
        Index of the run in the batch.
    frames
        Number of frames.
    speed
        Simulated time per real time.
    """
    m, lane = run.mechanism, lane_of(run, asked)
    if m is None or not run.has_state("q") or not m.bodies:
        raise InputError("the record has no mechanism with positions; there is nothing to draw.")
    if not 2 <= frames <= MOST_MOMENTS or not speed > 0.0:
        raise InputError(
            f"frames is {frames!r} and speed {speed!r}; expected 2 to {MOST_MOMENTS} frames, and a speed above 0."
        )
    t, q = run.t[lane], run.q[lane]
    good = np.flatnonzero(np.isfinite(t) & np.isfinite(q).all(axis=-1))
    if good.size < 2:
        raise InputError("the record has fewer than two rows; there is no motion to draw.")
    times = np.linspace(t[good[0]], t[good[-1]], frames)
    rows = good[np.searchsorted(t[good], times).clip(0, good.size - 1)]
    lasts = float(times[-1] - times[0]) / speed
    share = 100.0 / frames
    style = (
        f"g{{visibility:hidden;animation:on {lasts:.3f}s step-end infinite}}"
        f"@keyframes on{{0%{{visibility:visible}}{share:.4f}%{{visibility:hidden}}}}"
    )
    groups = [
        f'<g style="animation-delay:{k * lasts / frames:.3f}s">{"".join(drawn)}</g>'
        for k, drawn in enumerate(_moments(m, q[rows]))
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {still.WIDTH:g} {still.HEIGHT:g}" '
        f'width="{still.WIDTH:g}" role="img" aria-label="{xml(m.name)}, moving"><style>{style}</style>'
        + "\n".join(groups)
        + "</svg>\n"
    )


def _moments(m: Mechanism, q: Array) -> list[list[str]]:
    placed, found = scene.poses(m, q), scene.scene(m, q[:1])
    up = np.asarray(found["up"])
    moved = placed[:, :, :3].mean(axis=1) - placed[0, :, :3].mean(axis=0)
    moved = moved - np.outer(moved @ up, up)
    follows = (
        float(np.linalg.norm(moved, axis=-1).max()) > FAR * found["radius"]
    )  # otherwise it would leave the picture
    if not follows:
        found, moved = scene.scene(m, q), np.zeros_like(moved)
    shapes, out = still.simple(m, found), []
    for now, way, row in zip(placed, moved, q, strict=True):
        centre = np.asarray(found["centre"]) + way
        seen, scale = still.eye(found, centre)
        drawn = _ground(found, centre, seen) if follows else []
        for shape in shapes:
            drawn += still.shape(shape, now, seen, scale)
        drawn += still.bent(m, row, now, seen, scale)
        out.append([element for _, element in sorted(drawn)])
    return out


def _ground(found: dict[str, Any], centre: Array, seen: Any) -> list[still.Drawn]:
    """Return fixed lines on the ground, behind everything, that make the motion visible."""
    up, step = np.asarray(found["up"]), 0.5 * found["radius"]
    east = np.eye(3)[int(np.argmin(np.abs(up)))]
    north = np.cross(up, east)
    first = int(np.floor(east @ centre / step)) - MARKS // 2
    lines = []
    for k in range(first, first + MARKS):
        a, b = (seen(k * step * east + (north @ centre + side * step) * north) for side in (-1.0, 1.0))
        lines.append((-np.inf, f'<path d="M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" stroke="{GREY}"/>'))
    return lines
