"""Mechanisms of many alike parts with closed loops: what docs/size.md measures. All numbers are ours.

Planar ones lie in the xy plane with gravity along -y, and all are assembled at q = 0.
"""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np

from bellcrank.errors import InputError
from bellcrank.formats.builder import Builder
from bellcrank.model.mechanism import Mechanism
from bellcrank.model.parts import Array
from bellcrank.zoo.families import LENGTH, MASS, MOST_LOOPED, WIDTH, whole
from bellcrank.zoo.loops import DOWN, Z, _rod

TROLLEY = 40.0  # kg
RUBBING = 2.0  # 1/s, of a link that turns about its end
X, Y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])


def scissor(n: int = 4, angle: float = 0.5, length: float = 2.0) -> Mechanism:
    """A scissor lift of n stages, its bars at this angle to the ground. One foot stands, the other slides along x; the
    slider "foot" is what lifts. One freedom and n loops, each of which has joints of two stages only.
    """
    whole(n, "n", bodies=2, most=MOST_LOOPED)
    b = Builder(f"scissor{n}", gravity=DOWN)
    wide, high = length * cos(angle), length * sin(angle)
    corner = [np.array([0.0, i * high, 0.0]) for i in range(n + 1)]
    b.body("shoe", mass=1.0, com=wide * X)
    b.joint("foot", "prismatic", "ground", "shoe", point=wide * X, axis=tuple(X))
    for i in range(n):
        left, right = corner[i], corner[i] + wide * X
        middle = left + (wide * X + high * Y) / 2
        _rod(b, f"rise{i}", left, right + high * Y, density=3.0)  # from the left foot up to the right
        _rod(b, f"fall{i}", right, left + high * Y, density=3.0)
        b.joint(f"left{i}", "revolute", f"fall{i - 1}" if i else "ground", f"rise{i}", point=left, axis=Z)
        b.joint(f"middle{i}", "revolute", f"rise{i}", f"fall{i}", point=middle, axis=Z)
        b.joint(f"right{i}", "revolute", f"rise{i - 1}" if i else "shoe", f"fall{i}", point=right, axis=Z)
    b.frame("top", f"rise{n - 1}", point=corner[n] + wide * X)
    return b.build()


def track(n: int = 90, pitch: float = 0.2, radius: float = 0.4) -> Mechanism:
    """A crawler's track: n shoes in a ring round two wheels, whose lower strand lies level; the first shoe hangs on a
    hinge of the ground, as if a tooth of the sprocket held it.
    """
    whole(n, "n", least=8, most=MOST_LOOPED)
    turning = int(np.clip(round(2 * pi * radius / pitch / 2), 3, n // 2 - 1))  # shoes round each wheel
    straight = (n - 2 * turning) // 2
    bends = (
        [0.0] * straight + [pi / turning] * turning + [0.0] * (n - 2 * turning - straight) + [pi / turning] * turning
    )
    heading, points = 0.0, [np.zeros(3)]
    for bend in bends:
        heading += bend / 2
        points.append(points[-1] + pitch * np.array([cos(heading), sin(heading), 0.0]))
        heading += bend / 2
    points = _closed(points)
    b = Builder(f"track{n}", gravity=DOWN)
    for i in range(n):
        _rod(b, f"shoe{i}", points[i], points[i + 1], mass=15.0, radius=0.03)
        b.joint(f"pin{i}", "revolute", f"shoe{i - 1}" if i else "ground", f"shoe{i}", point=points[i], axis=Z)
    b.joint("closing", "revolute", f"shoe{n - 1}", "ground", point=points[0], axis=Z)
    return b.build()


def _closed(points: list[Array]) -> list[Array]:
    """A polygon that ends where it began: what is missing is spread over all corners."""
    gap, n = points[-1] - points[0], len(points) - 1
    return [p - gap * (i / n) for i, p in enumerate(points[:-1])] + [points[0]]


def four_bars(n: int = 4) -> Mechanism:
    """n equal four-bar linkages side by side, which have nothing to do with each other: crank, coupler and rocker."""
    whole(n, "n", bodies=3, most=MOST_LOOPED)
    b = Builder(f"four_bars{n}", gravity=DOWN)
    for i in range(n):
        foot = 0.6 * i * X
        tip, pivot, meet = foot + 0.1 * X, foot + 0.4 * X, foot + 0.25 * X + 0.2 * Y
        for name, begin, end in (("crank", foot, tip), ("coupler", tip, meet), ("rocker", pivot, meet)):
            _rod(b, f"{name}{i}", begin, end, density=2.0)
        b.joint(f"A{i}", "revolute", "ground", f"crank{i}", point=foot, axis=Z)
        b.joint(f"B{i}", "revolute", f"crank{i}", f"coupler{i}", point=tip, axis=Z)
        b.joint(f"D{i}", "revolute", "ground", f"rocker{i}", point=pivot, axis=Z)
        b.joint(f"C{i}", "revolute", f"coupler{i}", f"rocker{i}", point=meet, axis=Z)
    return b.build()


def tied_tree(n: int = 63, ties: int = 4) -> Mechanism:
    """A binary tree of n bodies as `tree` has it; some of whose ends are tied to a cousin by a rod: that many loops."""
    whole(n, "n", least=7, most=MOST_LOOPED)
    whole(ties, "ties")
    leaves = list(range(n // 2, n))
    if ties > len(leaves) // 4:
        raise InputError(f"zoo: {ties} ties; a tree of {n} bodies has ends for {len(leaves) // 4} of them.")
    b = Builder(f"tied_tree{n}x{ties}")
    base: list[Array] = []
    side, along = MASS * (LENGTH**2 + WIDTH**2) / 12, MASS * WIDTH**2 / 6
    up, across = np.array([0.0, 0.0, LENGTH]), np.array([0.0, WIDTH, 0.0])
    for i in range(n):
        parent = (i - 1) // 2
        base.append(np.zeros(3) if not i else base[parent] + up + ((i - 1) % 2 - 0.5) * across)
        b.body(f"link{i}", mass=MASS, com=base[i] + up / 2, inertia=(side, side, along))
        axis = (1.0, 0.0, 0.0) if (i + 1).bit_length() % 2 else (0.0, 0.0, 1.0)
        b.joint(f"joint{i}", "revolute", f"link{parent}" if i else "ground", f"link{i}", point=base[i], axis=axis)
    four = len(leaves) // 4  # ends of two neighbouring parents
    for k in range(ties):
        first = leaves[4 * (k * four // ties)]
        ends = {"point_a": base[first] + up, "point_b": base[first + 2] + up}
        b.close(f"tie{k}", "distance", f"link{first}", f"link{first + 2}", **ends)
    return b.build()


def rope(n: int = 200, length: float = 20.0, mass: float = 40.0) -> Mechanism:
    """A rope of n links that hangs between two trolleys on a level rail, on which winches may pull ("left" and "right",
    both along x). At q = 0 it is an arc, so that all links are alike; let go, it falls to a catenary.
    """
    whole(n, "n", least=4, most=MOST_LOOPED)
    bend = 2.4 / n  # rad, from a link to the next
    link, weight = length / n, mass / n
    radius = link / (2 * sin(bend / 2))
    angles = [(i - n / 2) * bend for i in range(n + 1)]
    points = [radius * np.array([sin(a), cos(1.2) - cos(a), 0.0]) for a in angles]
    b = Builder(f"rope{n}", gravity=DOWN)
    for name, end in (("left", points[0]), ("right", points[n])):
        b.body(f"{name}_trolley", mass=TROLLEY, com=end, inertia=(0.4, 0.4, 0.4))
        b.joint(name, "prismatic", "ground", f"{name}_trolley", point=end, axis=tuple(X))
    for i in range(n):
        _rod(b, f"link{i}", points[i], points[i + 1], mass=weight, radius=link / 8)
        before = f"link{i - 1}" if i else "left_trolley"
        b.joint(f"pin{i}", "revolute", before, f"link{i}", point=points[i], axis=Z, damping=RUBBING * weight * link**2)
    b.joint("end", "revolute", f"link{n - 1}", "right_trolley", point=points[n], axis=Z)
    b.frame("middle", f"link{n // 2}", point=points[n // 2])
    return b.build()
