"""Line chart as SVG, without a plotting library."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor, log10

from bellcrank.quoting import xml

COLOURS = ("#1f5fa8", "#c44e1c", "#2f8f5b", "#7d4bb0", "#8a6d1d", "#555555")
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 34, 44  # margins


def line_chart(
    title: str,
    across: str,
    up: str,
    series: Mapping[str, Mapping[float, float]],
    marks: Mapping[float, float] | None = None,
    marked: str = "",
    width: int = 560,
    height: int = 360,
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
    width
        Width, px.
    height
        Height, px.
    """
    points = [*((x, y) for line in series.values() for x, y in line.items()), *(marks or {}).items()]
    xs, top = sorted({x for x, _ in points}), _round_up(max(y for _, y in points))
    low, high = xs[0], xs[-1]

    def at(x: float, y: float) -> tuple[float, float]:
        a = LEFT + (width - LEFT - RIGHT) * ((x - low) / (high - low) if high > low else 0.5)
        return round(a, 1), round(height - BOTTOM - (height - TOP - BOTTOM) * y / top, 1)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12">',
        "<!-- bellcrank chart -->",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">{xml(title)}</text>',
    ]
    for k in range(6):
        y = top * k / 5
        a, b = at(low, y)
        out.append(f'<path d="M{a} {b}H{width - RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{a - 6}" y="{b + 4}" text-anchor="end">{y:g}</text>')
    for x in xs:
        a, b = at(x, 0.0)
        out.append(f'<text x="{a}" y="{b + 16}" text-anchor="middle">{x:g}</text>')
    middle = (LEFT + width - RIGHT) / 2
    out.append(f'<text x="{middle:g}" y="{height - 8}" text-anchor="middle">{xml(across)}</text>')
    turned = f"rotate(-90 14 {height / 2:g})"
    out.append(f'<text x="14" y="{height / 2:g}" text-anchor="middle" transform="{turned}">{xml(up)}</text>')
    for k, (name, line) in enumerate(series.items()):
        colour = COLOURS[k % len(COLOURS)]
        places = [at(x, y) for x, y in sorted(line.items())]
        way = " ".join(f"{a},{b}" for a, b in places)
        out.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>' for a, b in places]
        out.append(f'<text x="{LEFT + 12}" y="{TOP + 14 + 16 * k}" fill="{colour}">{xml(name)}</text>')
    for x, y in (marks or {}).items():
        a, b = at(x, y)
        out.append(f'<circle cx="{a}" cy="{b}" r="6" fill="none" stroke="black" stroke-width="1.5"/>')
    if marks:
        out.append(f'<text x="{LEFT + 12}" y="{TOP + 14 + 16 * len(series)}">○ {xml(marked)}</text>')
    return "\n".join([*out, "</svg>\n"])


def _round_up(y: float) -> float:
    """Round up to a number that gives round values when divided by five."""
    if y <= 0.0:
        return 1.0
    unit = 10.0 ** floor(log10(y))
    return next(m * unit for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * unit >= y) if y > unit else unit * ceil(y / unit)
