"""Display of objects in notebooks: a table, a picture or a page in a frame, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.errors import BellcrankError
from bellcrank.model import Mechanism
from bellcrank.quoting import xml
from bellcrank.view import mechanism_picture

if TYPE_CHECKING:
    from bellcrank.graph import Graph
    from bellcrank.graph.graph import Count
    from bellcrank.record.record import Record
    from bellcrank.scheduling.timetable import Schedule

MAX_PICTURE_NODES = 60  # maximum number of nodes of a graph that is drawn; a larger graph is listed
MAX_LISTED_LINES = 40  # listed lines of a graph
POLE_PLOT_PX = 260.0  # px, size of the plot of poles


def text(shown: str) -> str:
    """Return the text `shown` in monospace."""
    # overrides the notebook's style of pre, which may have another font and broken lines
    style = "font-family:monospace;font-size:.88em;white-space:pre;overflow-x:auto;margin:0;line-height:1.35"
    return f'<pre style="{style}">{escape(shown)}</pre>'


def frame(title: str, page: str, height: int = 560) -> str:
    """Return a sandboxed frame with the HTML `page`, its `title` and `height` in px."""
    style = f"width:100%;height:{height}px;border:1px solid #8884;border-radius:8px"
    return f'<iframe title="{xml(title)}" sandbox="allow-scripts" srcdoc="{escape(page)}" style="{style}"></iframe>'


def side_by_side(picture: str, words: str) -> str:
    """Return `picture` and `words` side by side, or below each other if the space is narrow."""
    cells = f'<div style="flex:none">{picture}</div><div style="flex:1 1 24em;min-width:0">{words}</div>'
    return f'<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start">{cells}</div>'


def mechanism(m: Mechanism) -> str:
    """Return the table of `m`, and a picture of its neutral configuration with closed loops."""
    try:
        q = m.assemble(m.neutral())[0] if m.loops else m.neutral()
    except BellcrankError:  # loops that cannot be closed are drawn open
        q = m.neutral()
    return side_by_side(mechanism_picture.svg(m, np.asarray(q, float)), text(str(m)))


def count(c: Count) -> str:
    """Return the operation counts `c` as a table."""
    cells = [(kind, n) for kind, n in c.by_kind.items() if n or kind in ("mul", "add", "sub", "div")]
    head = "".join(f'<th style="text-align:right">{xml(kind)}</th>' for kind, _ in (*cells, ("total", 0)))
    row = "".join(f'<td style="text-align:right">{n}</td>' for _, n in (*cells, ("total", c.arithmetic)))
    return f"<table><thead><tr>{head}</tr></thead><tbody><tr>{row}</tr></tbody></table>"


def graph(g: Graph) -> str:
    """Return the counts of `g`, and its picture if it is small, else its first lines."""
    head = f"{text(repr(g)[1:-1])}{count(g.count())}<p>span {g.span():g}</p>"
    if len(g.nodes) <= MAX_PICTURE_NODES:
        return f'{head}<div style="overflow-x:auto">{g.svg()}</div>'
    lines = str(g).splitlines()
    more = [f"... {len(lines) - MAX_LISTED_LINES} more lines"] if len(lines) > MAX_LISTED_LINES else []
    return head + text("\n".join([*lines[:MAX_LISTED_LINES], *more]))


def record(run: Record) -> str:
    """Return the report page of the first run of `run`."""
    if not np.isfinite(run.t).any():
        return text(str(run))
    return frame(repr(run)[1:-1], run.html(), 640)


def schedule(s: Schedule) -> str:
    """Return the page of the schedule `s`."""
    return frame(s.tasks.name, s.html())


def poles(shown: str, eigenvalues: Sequence[complex], discrete: bool) -> str:
    """Return a plot of the `eigenvalues` of a linearised system, `discrete` or continuous, beside its text `shown`."""
    values = np.asarray(eigenvalues, complex)
    values = values[np.isfinite(values)]
    reach = 1.15 * max(float(np.abs(values).max(initial=0.0)), 1.0 if discrete else 1e-9)
    middle, scale = POLE_PLOT_PX / 2, POLE_PLOT_PX / 2 / reach
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {POLE_PLOT_PX:g} {POLE_PLOT_PX:g}" '
        f'width="{POLE_PLOT_PX:g}" role="img" aria-label="poles">',
        f'<rect width="{POLE_PLOT_PX:g}" height="{POLE_PLOT_PX:g}" fill="none" stroke="#8884"/>',
        f'<path d="M0 {middle:g}H{POLE_PLOT_PX:g}M{middle:g} 0V{POLE_PLOT_PX:g}" stroke="#8888"/>',
    ]
    if discrete:
        lines.append(f'<circle cx="{middle:g}" cy="{middle:g}" r="{scale:.1f}" fill="none" stroke="#8888"/>')
    for s in values:
        x, y = middle + s.real * scale, middle - s.imag * scale
        stable = abs(s) <= 1.0 if discrete else s.real <= 0.0
        colour = "#2563c9" if stable else "#d6293c"
        mark = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
        lines.append(
            f'<path d="{mark}" stroke="{colour}" stroke-width="2"><title>{s.real:.4g} {s.imag:+.4g}i</title></path>'
        )
    unit = "" if discrete else " 1/s"
    lines.append(f'<text x="4" y="{POLE_PLOT_PX - 5:g}" font-size="11" fill="#888">±{reach:.3g}{unit}</text></svg>')
    return side_by_side("\n".join(lines), text(shown))
