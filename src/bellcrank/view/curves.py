"""Panels of curves, and line charts, as SVG: small and without a plotting library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np

from bellcrank.quoting import xml

Array = np.ndarray[Any, Any]
WIDTH, HEIGHT = 330, 170  # px, size of a panel with its axes
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 22, 24  # px, margins of a panel
HEAD, FOOT = 48, 22  # px, title and legend above the panels, label of the axis below
MAX_DEVIATION_PX = 0.25  # px, largest distance of a point from the drawn line
COLOURS = ("#1f5fa8", "#c44e1c", "#2f8f5b", "#7d4bb0", "#8a6d1d", "#555555")
CHART_WIDTH, CHART_HEIGHT = 560, 360  # px, size of a line chart
CHART_LEFT, CHART_RIGHT, CHART_TOP, CHART_BOTTOM = 56, 16, 34, 44  # px, its margins


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


def line_chart(
    title: str,
    across: str,
    up: str,
    series: Mapping[str, Mapping[float, float]],
    marks: Mapping[float, float] | None = None,
    marked: str = "",
) -> str:
    """Draw a chart with one line for each series.

    Parameters
    ----------
    title
        Title of the chart.
    across
        Label of the horizontal axis.
    up
        Label of the vertical axis.
    series
        Points {x: y} of the lines by name.
    marks
        Single points {x: y} to circle.
    marked
        Label of the circled points.
    """
    points = [*((x, y) for line in series.values() for x, y in line.items()), *(marks or {}).items()]
    xs, top = sorted({x for x, _ in points}), _round_up(max(y for _, y in points))
    low, high = xs[0], xs[-1]

    def at(x: float, y: float) -> tuple[float, float]:
        a = CHART_LEFT + (CHART_WIDTH - CHART_LEFT - CHART_RIGHT) * ((x - low) / (high - low) if high > low else 0.5)
        return round(a, 1), round(CHART_HEIGHT - CHART_BOTTOM - (CHART_HEIGHT - CHART_TOP - CHART_BOTTOM) * y / top, 1)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        "<!-- bellcrank chart -->",
        f'<rect width="{CHART_WIDTH}" height="{CHART_HEIGHT}" fill="white"/>',
        f'<text x="{CHART_LEFT}" y="18" font-size="14">{xml(title)}</text>',
    ]
    for k in range(6):
        y = top * k / 5
        a, b = at(low, y)
        out.append(f'<path d="M{a} {b}H{CHART_WIDTH - CHART_RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{a - 6}" y="{b + 4}" text-anchor="end">{y:g}</text>')
    for x in xs:
        a, b = at(x, 0.0)
        out.append(f'<text x="{a}" y="{b + 16}" text-anchor="middle">{x:g}</text>')
    middle = (CHART_LEFT + CHART_WIDTH - CHART_RIGHT) / 2
    out.append(f'<text x="{middle:g}" y="{CHART_HEIGHT - 8}" text-anchor="middle">{xml(across)}</text>')
    turned = f"rotate(-90 14 {CHART_HEIGHT / 2:g})"
    out.append(f'<text x="14" y="{CHART_HEIGHT / 2:g}" text-anchor="middle" transform="{turned}">{xml(up)}</text>')
    for k, (name, line) in enumerate(series.items()):
        colour = COLOURS[k % len(COLOURS)]
        places = [at(x, y) for x, y in sorted(line.items())]
        way = " ".join(f"{a},{b}" for a, b in places)
        out.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>' for a, b in places]
        out.append(f'<text x="{CHART_LEFT + 12}" y="{CHART_TOP + 14 + 16 * k}" fill="{colour}">{xml(name)}</text>')
    for x, y in (marks or {}).items():
        a, b = at(x, y)
        out.append(f'<circle cx="{a}" cy="{b}" r="6" fill="none" stroke="black" stroke-width="1.5"/>')
    if marks:
        out.append(f'<text x="{CHART_LEFT + 12}" y="{CHART_TOP + 14 + 16 * len(series)}">○ {xml(marked)}</text>')
    return "\n".join([*out, "</svg>\n"])


def _round_up(y: float) -> float:
    """Round up to a number that gives round values when divided by five."""
    if y <= 0.0:
        return 1.0
    unit = 10.0 ** floor(log10(y))
    return next(m * unit for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * unit >= y) if y > unit else unit * ceil(y / unit)
