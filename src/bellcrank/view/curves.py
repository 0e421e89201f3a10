"""Panels of curves as SVG, small and without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np

from bellcrank.quoting import xml
from bellcrank.view.chart import COLOURS

Array = np.ndarray[Any, Any]
WIDTH, HEIGHT = 330, 170  # px, size of a panel with its axes
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 22, 24  # px, margins of a panel
HEAD, FOOT = 48, 22  # px, title and legend above the panels, label of the axis below
MAX_DEVIATION_PX = 0.25  # px, largest distance of a point from the drawn line


@dataclass(frozen=True)
class Line:
    """Curve in a panel."""

    name: str  # lines of the same name share a colour and an entry in the legend
    x: Array
    y: Array
    dotted: bool = False
    wide: bool = False  # pale and broad, so that another line over it is visible


@dataclass(frozen=True)
class Panel:
    """Curves that share axes."""

    title: str
    lines: Sequence[Line]
    top: float | None = None  # end of the axis, if lines diverge; they are clipped there
    bottom: float | None = None


def figure(title: str, panels: Sequence[Panel], columns: int = 2, across: str = "t [s]") -> str:
    """Draw `panels` in rows of `columns`, under a `title`, with the label `across` of the common horizontal axis."""
    rows = ceil(len(panels) / columns)
    width, height = columns * WIDTH, HEAD + rows * HEIGHT + FOOT
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    first = {line.name: line for panel in reversed(panels) for line in reversed(panel.lines)}
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">{xml(title)}</text>',
    ]
    x = float(LEFT)
    for name in names:
        out.append(f'<path d="M{x:g} 34h18" {_pen(names.index(name), first[name])}/>')
        out.append(f'<text x="{x + 23:g}" y="38">{xml(name)}</text>')
        x += 40 + 6.2 * len(name)
    for k, panel in enumerate(panels):
        x0, y0 = (k % columns) * WIDTH, HEAD + (k // columns) * HEIGHT
        out += [f'<g transform="translate({x0} {y0})">', *_panel(panel, names, k), "</g>"]
    middle = (LEFT + width - RIGHT) / 2
    out.append(f'<text x="{middle:g}" y="{height - 6}" text-anchor="middle">{xml(across)}</text>')
    return "\n".join([*out, "</svg>\n"])


def _panel(panel: Panel, names: Sequence[str], k: int) -> list[str]:
    xs = np.concatenate([line.x for line in panel.lines])
    ys = np.concatenate([line.y for line in panel.lines])
    ys = ys[np.isfinite(ys)]
    low = panel.bottom if panel.bottom is not None else float(ys.min())
    high = panel.top if panel.top is not None else float(ys.max())
    if high - low < 1e-12 * max(abs(low), abs(high), 1e-300) or high == low:
        low, high = low - 1.0, high + 1.0
    x_low, x_high = float(xs.min()), float(xs.max())
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    room = 0.04 * (high - low)
    low, high = low - room, high + room
    across = (right - LEFT) / (x_high - x_low)
    up = (bottom - TOP) / (high - low)

    out = [f'<text x="{LEFT}" y="{TOP - 7}" fill="#333">{xml(panel.title)}</text>']
    out.append(
        f'<clipPath id="c{k}"><rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}"/></clipPath>'
    )
    for y in ticks(low, high, 4):
        b = round(bottom - (y - low) * up, 1)
        out.append(f'<path d="M{LEFT} {b}H{right}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{LEFT - 5}" y="{b + 4:g}" text-anchor="end" font-size="10">{y:.6g}</text>')
    for x in ticks(x_low, x_high, 6):
        a = round(LEFT + (x - x_low) * across, 1)
        out.append(f'<path d="M{a} {TOP}V{bottom}" stroke="#f0f0f0"/>')
        out.append(f'<text x="{a}" y="{bottom + 13}" text-anchor="middle" font-size="10">{x:.6g}</text>')
    out.append(f'<g clip-path="url(#c{k})" fill="none">')
    for line in panel.lines:
        good = np.isfinite(line.y)
        px = LEFT + (line.x[good] - x_low) * across
        py = np.clip(bottom - (line.y[good] - low) * up, -1e4, 1e4)
        way = " ".join(f"{p:.1f},{q:.1f}" for p, q in simplified(np.stack([px, py], -1)))
        out.append(f'<polyline points="{way}" {_pen(names.index(line.name), line)}/>')
    return [
        *out,
        "</g>",
        f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" fill="none" stroke="#999"/>',
    ]


def _pen(k: int, line: Line) -> str:
    how = ' stroke-dasharray="2 3"' if line.dotted else ' stroke-opacity="0.35"' if line.wide else ""
    return f'stroke="{COLOURS[k % len(COLOURS)]}" stroke-width="{4.5 if line.wide else 1.4}"{how}'


def ticks(low: float, high: float, wanted: int, multiples: Sequence[float] = (1.0, 2.0, 2.5, 5.0, 10.0)) -> list[float]:
    """Return about `wanted` round numbers between `low` and `high`, whose distance is one of `multiples` times 10^n."""
    rough = (high - low) / wanted
    unit = 10.0 ** floor(log10(rough))
    step = next(m * unit for m in multiples if m * unit >= rough * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(f"{n * step:.12g}") for n in range(first, last + 1)]


def simplified(points: Array) -> Array:
    """Return the `points` that a line needs to be within MAX_DEVIATION_PX of all.

    The algorithm is that of Ramer 1972 and of Douglas and Peucker 1973.
    """
    keep = np.zeros(len(points), bool)
    if len(points):
        keep[[0, -1]] = True
    todo = [(0, len(points) - 1)]
    while todo:
        i, j = todo.pop()
        if j - i < 2:
            continue
        start, way = points[i], points[j] - points[i]
        between = points[i + 1 : j] - start
        length = float(np.hypot(*way))
        if length > 0.0:
            along = np.clip(between @ way / length**2, 0.0, 1.0)
            away = np.hypot(*(between - along[:, None] * way).T)
        else:
            away = np.hypot(*between.T)
        k = int(away.argmax())
        if away[k] > MAX_DEVIATION_PX:
            keep[i + 1 + k] = True
            todo += [(i, i + 1 + k), (i + 1 + k, j)]
    return points[keep]
