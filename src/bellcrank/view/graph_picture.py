"""Layered drawing of a small graph as SVG: inputs at the left, outputs at the right, one column per level.

The nodes of a column are ordered by the mean position of their neighbours, in alternating sweeps, until few lines
cross; then each moves as near to its neighbours as the order allows. A line that passes a column occupies a position in
it (K. Sugiyama, S. Tagawa, M. Toda, Methods for visual understanding of hierarchical system structures, IEEE Trans.
Systems, Man and Cybernetics 11, 1981).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bellcrank.errors import InputError
from bellcrank.graph.graph_text import Array, element, expression_text
from bellcrank.nodes.node import Node
from bellcrank.quoting import xml
from bellcrank.scalar import step_of
from bellcrank.view.self_contained_page import css_classes, step_colours

MAX_NODES = 400  # a picture of more nodes is unreadable
BOX_HEIGHT, ROW_GAP, LINE_HEIGHT, COLUMN_GAP, MARGIN, SWEEPS = 24, 10, 9, 30, 28, 24
SIGNS = str.maketrans({"*": "×", "-": "−", "/": "÷"})


@dataclass(eq=False)
class Spot:
    """Position in a column: a node, an input, an output, or a line that passes the column."""

    text: str = ""
    hint: str = ""
    css_class: str = ""  # CSS class; "" is a line that passes
    is_critical: bool = False
    column: int = 0
    x: float = 0.0  # left
    y: float = 0.0  # middle
    predecessors: list[Spot] = field(default_factory=list)
    successors: list[Spot] = field(default_factory=list)

    @property
    def width(self) -> float:
        """Width of the box."""
        return max(BOX_HEIGHT, 14 + 7.2 * len(self.text)) if self.css_class else 0.0

    @property
    def half_height(self) -> float:
        """Half of the height in the column, with the gap."""
        return (BOX_HEIGHT + ROW_GAP if self.css_class else LINE_HEIGHT) / 2


Lines = list[list[Spot]]  # each from a node, through the columns it passes, to a user


def svg(
    name: str, inputs: Mapping[str, tuple[int, ...]], outputs: Mapping[str, Array], nodes: Sequence[Node],
    critical: Sequence[Node],
) -> str:  # fmt: skip
    """Draw a graph.

    Parameters
    ----------
    name
        Title of the picture.
    inputs
        Shapes of the inputs by name.
    outputs
        Arrays of nodes or constants by name.
    nodes
        Nodes in topological order.
    critical
        Nodes of the critical path, which is drawn in red.
    """
    if len(nodes) > MAX_NODES:
        raise InputError(
            f"{name} has {len(nodes)} nodes; a picture of more than {MAX_NODES} is unreadable. --target dot writes it "
            "for Graphviz, and `bellcrank schedule` draws its schedule."
        )
    steps = step_colours(step_of(n.label) for n in nodes if n.op != "input")
    spots, lines = _spots(inputs, outputs, nodes, critical, steps)
    columns = _columns(spots, lines)
    _order(columns)
    _place(columns)
    return _svg_text(name, columns, lines, steps)


def _spots(
    inputs: Mapping[str, tuple[int, ...]], outputs: Mapping[str, Array], nodes: Sequence[Node],
    critical: Sequence[Node], steps: Mapping[str, int],
) -> tuple[list[Spot], Lines]:  # fmt: skip
    critical_serials = {n.serial for n in critical}
    spot_of_node: dict[int, Spot] = {}
    spots: list[Spot] = []
    lines: Lines = []
    for node in nodes:
        if node.op == "input":
            spot_of_node[node.serial] = spot = Spot(
                element(node.args[0], inputs[node.args[0]], node.args[1]), "input", "end"
            )
        else:
            arguments = [spot_of_node[a.serial] for a in node.operands]
            spot = Spot(_node_text(node), node.label, f"s{steps[step_of(node.label)]}")
            spot.column = 1 + max((a.column for a in arguments), default=0)
            lines += [[a, spot] for a in dict.fromkeys(arguments)]
            spot_of_node[node.serial] = spot
        spot.is_critical = node.serial in critical_serials
        spots.append(spot)
    for spot in spots:  # an input is placed just before its first user
        if spot.css_class == "end":
            spot.column = min((b.column for a, b in lines if a is spot), default=1) - 1
    last = 1 + max((s.column for s in spots), default=0)
    for key, array in outputs.items():
        for flat, x in enumerate(array.flat):
            end = Spot(element(key, array.shape, flat), "output", "end", column=last)
            if isinstance(x, Node):
                end.is_critical = x.serial == critical[-1].serial
                lines.append([spot_of_node[x.serial], end])
            else:
                end.text += f" = {x:.4g}"
            spots.append(end)
    return spots, lines


def _node_text(node: Node) -> str:
    """Return the text of a node: × for a product, 9.81 × with a constant, sin for a sine."""
    if node.op == "call":
        return str(node.args[0].name)
    text = expression_text(node, ["" if isinstance(a, Node) else f"{a:.4g}" for a in node.args])
    return re.sub(r"\([\s,]*\)", "", text).translate(SIGNS).strip()


def _columns(spots: list[Spot], lines: Lines) -> list[list[Spot]]:
    columns: list[list[Spot]] = [[] for _ in range(1 + max((s.column for s in spots), default=0))]
    for spot in spots:
        columns[spot.column].append(spot)
    for line in lines:
        a, b = line
        passed = [Spot(column=c) for c in range(a.column + 1, b.column)]
        line[1:1] = passed
        for spot in passed:
            columns[spot.column].append(spot)
        for one, other in pairwise(line):
            one.successors.append(other)
            other.predecessors.append(one)
    return columns


def _order(columns: list[list[Spot]]) -> None:
    """Order the columns in alternating sweeps, by the mean of the neighbours in the previous column."""
    for column in columns:
        _number(column)
    for sweep in range(SWEEPS):
        forth = sweep % 2 == 0
        for column in columns if forth else reversed(columns):
            column.sort(key=lambda s: _mean((s.predecessors if forth else s.successors), s.y))
            _number(column)


def _number(column: list[Spot]) -> None:
    for k, spot in enumerate(column):
        spot.y = k - len(column) / 2


def _mean(spots: list[Spot], otherwise: float) -> float:
    return sum(s.y for s in spots) / len(spots) if spots else otherwise


def _place(columns: list[list[Spot]]) -> None:
    x = float(MARGIN)
    for column in columns:
        wide = max((s.width for s in column), default=0.0)
        lines = sum(len(s.successors) for s in column)
        for spot in column:
            spot.x = x + (wide - spot.width) / 2
        x += wide + COLUMN_GAP + min(30, lines / 2)
    for sweep in range(2 * SWEEPS):
        for column in columns if sweep % 2 else reversed(columns):
            _spread(column, [_mean(s.predecessors + s.successors, s.y) for s in column])
    top = min((s.y for column in columns for s in column), default=0.0)
    for column in columns:
        for spot in column:
            spot.y += MARGIN + 40 - top


def _spread(column: list[Spot], wanted: list[float]) -> None:
    """Move spots as near to `wanted` as order and gaps allow (isotonic regression by pooled blocks)."""
    offset, offsets = 0.0, []
    for k, spot in enumerate(column):
        offset += column[k - 1].half_height + spot.half_height if k else 0.0
        offsets.append(offset)
    blocks: list[list[float]] = []  # sum of wanted positions, number of spots
    for wish, off in zip(wanted, offsets, strict=True):
        blocks.append([wish - off, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    k = 0
    for total, count in blocks:
        for _ in range(int(count)):
            column[k].y = total / count + offsets[k]
            k += 1


def _svg_text(name: str, columns: list[list[Spot]], lines: Lines, steps: Mapping[str, int]) -> str:
    spots = [s for column in columns for s in column]
    legend = sum(28 + 7 * len(step) for step in steps)
    width = round(max([s.x + s.width for s in spots] + [legend, 8.5 * len(name)], default=0) + MARGIN)
    height = round(max((s.y for s in spots), default=0.0) + 76)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{xml(name)}" font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{xml(name)}</title>",
        f"<style>{css_classes()}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        f'<text class="ink" x="{MARGIN}" y="34" font-size="16" font-weight="600">{xml(name)}</text>',
        '<g fill="none" stroke-width="1.1" opacity="0.75">',
    ]
    chain = set(pairwise(s for s in spots if s.is_critical))
    out += [f'<path class="message" d="{_curve(line)}"/>' for line in lines]
    out.append('</g><g fill="none" stroke-width="2">')
    out += [f'<path class="critical" d="{_curve(line)}"/>' for line in lines if (line[0], line[-1]) in chain]
    out.append("</g>")
    out += [_box(s) for s in spots if s.css_class]
    x = MARGIN
    for step, colour in steps.items():
        out.append(f'<rect class="s{colour}" x="{x}" y="{height - 32}" width="12" height="12" rx="3"/>')
        out.append(f'<text class="ink" x="{x + 17}" y="{height - 22}">{xml(step)}</text>')
        x += 28 + 7 * len(step)
    return "\n".join([*out, "</svg>"]) + "\n"


def _curve(line: list[Spot]) -> str:
    x, y = line[0].x + line[0].width, line[0].y
    path = f"M{x:.1f} {y:.1f}"
    for spot in line[1:]:
        mid = (x + spot.x) / 2
        path += f"C{mid:.1f} {y:.1f} {mid:.1f} {spot.y:.1f} {spot.x:.1f} {spot.y:.1f}"
        x, y = spot.x + spot.width, spot.y
    return path


def _box(s: Spot) -> str:
    end = s.css_class == "end"
    classes = f"{'raised' if end else s.css_class} {'critical' if s.is_critical else 'rule'}"
    look = f'class="{classes}" stroke-width="{2 if s.is_critical else 1}"'
    corner = f'x="{s.x:.1f}" y="{s.y - BOX_HEIGHT / 2:.1f}"'
    box = f'{corner} width="{s.width:.1f}" height="{BOX_HEIGHT}" rx="{12 if end else 5}"'
    position = f'x="{s.x + s.width / 2:.1f}" y="{s.y + 4:.1f}" text-anchor="middle"'
    return f'<g><title>{xml(s.hint)}</title><rect {look} {box}/><text class="ink" {position}>{xml(s.text)}</text></g>'
