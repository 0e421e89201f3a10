"""Draws excavator_linkage from the side at its start, with the range of its teeth: python excavator_linkage.py > ...svg"""

from __future__ import annotations

from typing import Any

import numpy as np

import bellcrank as bc
from bellcrank.excavators.linkage.geometry import Linkage

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


def drawing() -> str:
    m, linkage = bc.zoo.excavator_linkage(), Linkage.of_zoo()
    g, q = linkage.given, m.neutral()

    def at(frame: str) -> Point:
        return m.pose(q, frame)[[0, 2], 3]

    boom, stick, bucket, tip = (at(n) for n in ("boom", "stick", "bucket", "tip"))
    ends = {n: (at(f"{n}_barrel"), at(f"{n}_eye.b")) for n in ("boom", "stick", "bucket")}
    lever, knee, ear = at("lever"), at("link"), at("link_bucket.b")
    yellow, dark = 'fill="#f2b632" stroke="#8a6410" stroke-width="1.5"', 'fill="#4b5560" stroke="#222"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * SCALE:.0f} {HEIGHT * SCALE:.0f}" '
        'font-family="sans-serif" font-size="15" fill="#222">',
        f'<rect width="100%" height="100%" fill="#fbfaf7"/><rect y="{TOP * SCALE:.1f}" width="100%" height="100%" '
        'fill="#e9e1d0"/>',
        shape(envelope(linkage), 'fill="#2a78c0" fill-opacity="0.08" stroke="#2a78c0" stroke-dasharray="6 5"'),
        shape([(-2.2, 0.0), (2.2, 0.0), (2.2, 0.55), (1.8, 0.95), (-1.8, 0.95), (-2.2, 0.55)], dark),
        shape([(-2.8, 1.05), (0.55, 1.05), (0.95, 1.25), (0.95, 1.5), (0.3, 2.0), (-2.8, 2.2)], yellow),
        shape(
            [(-0.9, 2.1), (0.1, 2.0), (0.35, 1.9), (0.35, 2.6), (0.1, 2.96), (-0.9, 2.96)],
            'fill="#c9dbe6" stroke="#555"',
        ),
    ]
    for name, (foot, eye) in ends.items():
        way = (eye - foot) / np.linalg.norm(eye - foot)
        barrel = foot + way * g["cylinders"][name]["closed"] * 0.9
        lines.append(shape([foot, eye], 'fill="none" stroke="#9aa5ad" stroke-width="6"', close=False))
        lines.append(shape([foot, barrel], 'fill="none" stroke="#5d6a73" stroke-width="12"', close=False))
    over = (boom + stick) / 2 + np.array([-0.62, 0.86])
    arm = stick - boom
    up = np.array([-arm[1], arm[0]]) / np.linalg.norm(arm)
    lines += [
        shape([boom - 0.15 * up, ends["boom"][1] - 0.35 * up, stick - 0.18 * up, stick + 0.2 * up,
               ends["stick"][0] - 0.05 * up, over, ends["boom"][1] + 0.25 * up, boom + 0.22 * up], yellow),
        shape([ends["stick"][1], ends["bucket"][0], lever + [0.08, 0.05], bucket + [0.12, 0.0], bucket - [0.12, 0.05],
               stick - [0.12, 0.25]], yellow),
    ]  # fmt: skip
    along = (tip - bucket) / np.linalg.norm(tip - bucket)
    behind = np.array([-along[1], along[0]])
    shell = [tip, tip + 0.1 * behind - 0.35 * along, bucket + 0.95 * along + 0.55 * behind,
             bucket + 0.45 * along + 0.72 * behind, ear + 0.12 * behind, ear - 0.1 * along, bucket - 0.12 * behind]  # fmt: skip
    lines.append(shape(shell, 'fill="#8d8f92" stroke="#333" stroke-width="1.5"'))
    for a, b in ((lever, knee), (knee, ear)):
        lines.append(shape([a, b], 'fill="none" stroke="#333" stroke-width="7" stroke-linecap="round"', close=False))
    for a, b in ((boom, stick), (stick, bucket), (bucket, tip)):
        lines.append(shape([a, b], 'fill="none" stroke="#b3261e" stroke-width="1" stroke-dasharray="3 4"', close=False))
    pins = [boom, stick, bucket, lever, knee, ear, tip, *(p for pair in ends.values() for p in pair)]
    lines += [pin(p) for p in pins]
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
