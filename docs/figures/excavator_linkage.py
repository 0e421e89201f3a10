"""Draws excavator_linkage from the side at its start, with the range of its teeth: python FILE > ...svg"""

from __future__ import annotations

from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.excavators.geometry import Linkage

SCALE, LEFT, TOP = 62.0, 3.4, 9.9  # pixels for a metre, and metres to the left of and above the origin
WIDTH, HEIGHT = 14.2, 16.8  # m
Point = Any


def px(p: Point) -> str:
    return f"{(p[0] + LEFT) * SCALE:.1f},{(TOP - p[-1]) * SCALE:.1f}"


def shape(points: list[Point], style: str, close: bool = True) -> str:
    kind = "polygon" if close else "polyline"
    return f'<{kind} points="{" ".join(px(p) for p in points)}" {style}/>'


def pin(p: Point) -> str:
    x, y = px(p).split(",")
    return f'<circle cx="{x}" cy="{y}" r="3.5" fill="#fff" stroke="#222" stroke-width="1.5"/>'


def label(p: Point, text: str, dx: float = 8.0, dy: float = -8.0, anchor: str = "start") -> str:
    x, y = (float(v) for v in px(p).split(","))
    return f'<text x="{x + dx:.1f}" y="{y + dy:.1f}" text-anchor="{anchor}">{text}</text>'


def envelope(linkage: Linkage) -> list[Point]:
    """The edge of what the teeth can reach with the bucket in line with the stick, and around it."""
    (_, boom, stick, bucket) = linkage.stops
    outward = max(min(bucket[1], 0.0), bucket[0])
    high = [(boom[1], s, outward) for s in np.linspace(stick[0], stick[1], 30)]
    out = [(b, stick[1], outward) for b in np.linspace(boom[1], boom[0], 40)]
    low = [(boom[0], s, outward) for s in np.linspace(stick[1], stick[0], 30)]
    back = [(b, stick[0], outward) for b in np.linspace(boom[0], boom[1], 40)]
    found = [linkage.arm.forward([0.0, *angles]) for angles in (*high, *out, *low, *back)]
    return [(f[0], f[2]) for f in found]


Shape = tuple[list[Point], str, bool]  # points, style, whether it is closed
YELLOW, DARK = 'fill="#f2b632" stroke="#8a6410" stroke-width="1.5"', 'fill="#4b5560" stroke="#222"'


def body() -> list[Shape]:
    """Return the fixed parts in the plane of the arm: tracks, house, cab."""
    return [
        ([(-2.2, 0.0), (2.2, 0.0), (2.2, 0.55), (1.8, 0.95), (-1.8, 0.95), (-2.2, 0.55)], DARK, True),
        ([(-2.8, 1.05), (0.55, 1.05), (0.95, 1.25), (0.95, 1.5), (0.3, 2.0), (-2.8, 2.2)], YELLOW, True),
        (
            [(-0.9, 2.1), (0.1, 2.0), (0.35, 1.9), (0.35, 2.6), (0.1, 2.96), (-0.9, 2.96)],
            'fill="#c9dbe6" stroke="#555"',
            True,
        ),
    ]


def places(m: bc.Mechanism, q: Point) -> tuple[dict[str, Point], dict[str, tuple[Point, Point]]]:
    """Pins by name, and the two ends of each cylinder."""

    def at(frame: str) -> Point:
        return m.pose(q, frame)[[0, 2], 3]

    names = {"boom": "boom", "stick": "stick", "bucket": "bucket", "tip": "tip"}
    names |= {"lever": "lever", "knee": "link", "ear": "link_bucket.b"}
    ends = {n: (at(f"{n}_barrel"), at(f"{n}_eye.b")) for n in ("boom", "stick", "bucket")}
    return {name: at(frame) for name, frame in names.items()}, ends


def arm(pins: dict[str, Point], ends: dict[str, tuple[Point, Point]], cylinders: Any) -> list[Shape]:
    """Cylinders, boom, stick, bucket and its levers."""
    boom, stick, bucket, tip, lever, knee, ear = pins.values()
    shapes: list[Shape] = []
    for name, (foot, eye) in ends.items():
        way = (eye - foot) / np.linalg.norm(eye - foot)
        barrel = foot + way * cylinders[name]["closed"] * 0.9
        shapes.append(([foot, eye], 'fill="none" stroke="#9aa5ad" stroke-width="6"', False))
        shapes.append(([foot, barrel], 'fill="none" stroke="#5d6a73" stroke-width="12"', False))
    length = np.linalg.norm(stick - boom)
    ahead = (stick - boom) / length
    up = np.array([-ahead[1], ahead[0]])
    over = (boom + stick) / 2 + up * 0.86
    reach = bucket - stick
    side = np.array([reach[1], -reach[0]]) / np.linalg.norm(reach)
    shapes += [
        ([boom - 0.15 * up, ends["boom"][1] - 0.35 * up, stick - 0.18 * up, stick + 0.2 * up,
          ends["stick"][0] - 0.05 * up, over, ends["boom"][1] + 0.25 * up, boom + 0.22 * up], YELLOW, True),
        ([ends["stick"][1], ends["bucket"][0], lever - 0.09 * side, bucket - 0.12 * side, bucket + 0.12 * side,
          stick + 0.12 * side + 0.1 * reach], YELLOW, True),
    ]  # fmt: skip
    along = (tip - bucket) / np.linalg.norm(tip - bucket)
    behind = np.array([-along[1], along[0]])
    shell = [tip, tip + 0.1 * behind - 0.35 * along, bucket + 0.95 * along + 0.55 * behind,
             bucket + 0.45 * along + 0.72 * behind, ear + 0.12 * behind, ear - 0.1 * along,
             bucket - 0.12 * behind]  # fmt: skip
    shapes.append((shell, 'fill="#8d8f92" stroke="#333" stroke-width="1.5"', True))
    for a, b in ((lever, knee), (knee, ear)):
        shapes.append(([a, b], 'fill="none" stroke="#333" stroke-width="7" stroke-linecap="round"', False))
    return shapes


def drawing() -> str:
    m, linkage = bc.zoo.excavator_linkage(), Linkage.of_zoo()
    pins, ends = places(m, m.neutral())
    boom, stick, bucket, tip, lever, knee, ear = pins.values()
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * SCALE:.0f} {HEIGHT * SCALE:.0f}" '
        'font-family="sans-serif" font-size="15" fill="#222">',
        f'<rect width="100%" height="100%" fill="#fbfaf7"/><rect y="{TOP * SCALE:.1f}" width="100%" height="100%" '
        'fill="#e9e1d0"/>',
        shape(envelope(linkage), 'fill="#2a78c0" fill-opacity="0.08" stroke="#2a78c0" stroke-dasharray="6 5"'),
        *(shape(*part) for part in (*body(), *arm(pins, ends, linkage.given["cylinders"]))),
    ]
    for a, b in ((boom, stick), (stick, bucket), (bucket, tip)):
        lines.append(shape([a, b], 'fill="none" stroke="#b3261e" stroke-width="1" stroke-dasharray="3 4"', close=False))
    marked = [boom, stick, bucket, lever, knee, ear, tip, *(p for pair in ends.values() for p in pair)]
    lines += [pin(p) for p in marked]
    middle = {n: (a + b) / 2 for n, (a, b) in ends.items()}
    lines += [
        label(boom, "boom pin", -10, -6, "end"),
        label(stick, "stick pin", 12, -6),
        label(bucket, "bucket pin", -14, 6, "end"),
        label(tip, "teeth (tip)", 10, 18),
        label(lever, "lever pin", -12, 4, "end"),
        label(knee, "lever and link", 14, -2),
        label(ear, "link pin", 12, 6),
        label(middle["boom"], "boom cylinders", 14, 20),
        label(middle["stick"], "stick cylinder", -30, -22, "end"),
        label(middle["bucket"], "bucket cylinder", 18, 0),
        label((-2.7, 1.25), "cab (swings about z)", 0, 0),
        label((5.2, -4.6), "where the teeth can be, bucket in line with the stick", 0, 0, "middle"),
    ]
    lines += [shape([(-3.0, -6.5), (-2.0, -6.5)], 'fill="none" stroke="#222" stroke-width="2"', close=False)]
    lines += [label((-2.5, -6.5), "1 m", 0, -8, "middle"), "</svg>", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(drawing(), end="")
