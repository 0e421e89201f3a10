"""Map of the best methods as SVG: rows of bodies, columns of processors, one colour for each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.quoting import xml

LEFT, TOP, CELL_WIDTH, CELL_HEIGHT = 64, 60, 118, 44
COLOURS = ("#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6", "#fb9a99", "#ffff99", "#d9d9d9", "#8dd3c7", "#e5c494", "#f4cae4")


def svg(title: str, cells: Mapping[tuple[int, int], tuple[str, str]]) -> str:
    """Draw the map.

    Parameters
    ----------
    title
        Title of the picture.
    cells
        Name of the winner, and a second line, for each pair (bodies, processors).
    """
    rows, columns = (sorted({key[k] for key in cells}) for k in (0, 1))
    colours = _colours([name for name, _ in cells.values()])
    width, height = LEFT + CELL_WIDTH * len(columns) + 16, TOP + CELL_HEIGHT * len(rows) + 16
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="11">',
        "<!-- bellcrank chart -->",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="12" y="20" font-size="14">{xml(title)}</text>',
        f'<text x="12" y="{TOP - 10}">bodies</text>',
    ]
    for k, p in enumerate(columns):
        x = LEFT + CELL_WIDTH * (k + 0.5)
        out.append(f'<text x="{x:g}" y="{TOP - 10}" text-anchor="middle">{p} processor{"s" if p > 1 else ""}</text>')
    for r, n in enumerate(rows):
        y = TOP + CELL_HEIGHT * r
        out.append(f'<text x="{LEFT - 10}" y="{y + CELL_HEIGHT / 2 + 4:g}" text-anchor="end">{n}</text>')
        for k, p in enumerate(columns):
            if (n, p) in cells:
                name, text = cells[n, p]
                out += _cell(LEFT + CELL_WIDTH * k, y, colours[name], name, text)
    return "\n".join([*out, "</svg>\n"])


def _colours(names: Sequence[str]) -> dict[str, str]:
    return {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(dict.fromkeys(names))}


def _cell(x: float, y: float, colour: str, name: str, text: str) -> list[str]:
    middle = f'x="{x + CELL_WIDTH / 2:g}" text-anchor="middle"'
    return [
        f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{CELL_WIDTH - 2}" height="{CELL_HEIGHT - 2}" fill="{colour}"/>',
        f'<text {middle} y="{y + 18:g}" font-size="10">{xml(name)}</text>',
        f'<text {middle} y="{y + 34:g}">{xml(text)}</text>',
    ]
