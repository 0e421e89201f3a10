"""Large mechanisms of many identical parts with closed loops, measured in docs/size.md.

All numbers are assumed. Planar mechanisms lie in the xy plane with gravity along -y, and all are assembled at q = 0.
"""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np

from bellcrank.errors import InputError
from bellcrank.formats.builder import Builder
from bellcrank.model import Array, Mechanism
from bellcrank.zoo.families import (
    LINK_LENGTH,
    LINK_MASS,
    LINK_MOMENTS,
    LINK_WIDTH,
    MAX_LOOP_BODIES,
    checked_count,
    explain_impossible_mechanism,
)
from bellcrank.zoo.loops import GRAVITY, Z
from bellcrank.zoo.published import add_rod

TROLLEY_MASS = 40.0  # kg
DAMPING_RATE_HZ = 2.0  # 1/s, damping of a link's rotation, relative to its inertia m L^2
X, Y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])


@explain_impossible_mechanism
def scissor(n: int = 4, angle: float = 0.5, length: float = 2.0) -> Mechanism:
    """Scissor lift of n stages with one freedom and n loops.

    One foot is fixed, the other slides along x; the joint "foot" of the slider drives the lift. Each loop has joints of
    two stages only.

    Parameters
    ----------
    n : int, default 4
        Number of stages.
    angle : float, default 0.5
        Angle of the bars to the ground at q = 0, rad.
    length : float, default 2.0
        Length of the bars, m.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If `n` is not an integer in its range.
    """
    checked_count(n, "n", bodies=2, most=MAX_LOOP_BODIES)
    b = Builder(f"scissor{n}", gravity=GRAVITY)
    wide, high = length * cos(angle), length * sin(angle)
    corner = [np.array([0.0, i * high, 0.0]) for i in range(n + 1)]
    b.body("shoe", mass=1.0, com=wide * X)
    b.joint("foot", "prismatic", "ground", "shoe", point=wide * X, axis=tuple(X))
    for i in range(n):
        left, right = corner[i], corner[i] + wide * X
        middle = left + (wide * X + high * Y) / 2
        add_rod(b, f"rise{i}", left, right + high * Y, density=3.0)  # rises from the left foot to the right
        add_rod(b, f"fall{i}", right, left + high * Y, density=3.0)
        b.joint(f"left{i}", "revolute", f"fall{i - 1}" if i else "ground", f"rise{i}", point=left, axis=Z)
        b.joint(f"middle{i}", "revolute", f"rise{i}", f"fall{i}", point=middle, axis=Z)
        b.joint(f"right{i}", "revolute", f"rise{i - 1}" if i else "shoe", f"fall{i}", point=right, axis=Z)
    b.frame("top", f"rise{n - 1}", point=corner[n] + wide * X)
    return b.build()


@explain_impossible_mechanism
def track(n: int = 90, pitch: float = 0.2, radius: float = 0.4) -> Mechanism:
    """Crawler track: n shoes in a ring round two wheels, with a level lower strand.

    The first shoe is hinged to the ground, as if a tooth of the sprocket held it.

    Parameters
    ----------
    n : int, default 90
        Number of shoes, at least 8.
    pitch : float, default 0.2
        Length of a shoe, m.
    radius : float, default 0.4
        Radius of the wheels, m.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If `n` is not an integer in its range.
    """
    checked_count(n, "n", least=8, most=MAX_LOOP_BODIES)
    shoes_per_turn = int(np.clip(round(2 * pi * radius / pitch / 2), 3, n // 2 - 1))  # number of shoes round each wheel
    straight_shoes = (n - 2 * shoes_per_turn) // 2
    turn = [pi / shoes_per_turn] * shoes_per_turn
    bends = [*[0.0] * straight_shoes, *turn, *[0.0] * (n - 2 * shoes_per_turn - straight_shoes), *turn]
    heading, points = 0.0, [np.zeros(3)]
    for bend in bends:
        heading += bend / 2
        points.append(points[-1] + pitch * np.array([cos(heading), sin(heading), 0.0]))
        heading += bend / 2
    points = _close_polygon(points)
    b = Builder(f"track{n}", gravity=GRAVITY)
    for i in range(n):
        add_rod(b, f"shoe{i}", points[i], points[i + 1], mass=15.0, radius=0.03)
        b.joint(f"pin{i}", "revolute", f"shoe{i - 1}" if i else "ground", f"shoe{i}", point=points[i], axis=Z)
    b.joint("closing", "revolute", f"shoe{n - 1}", "ground", point=points[0], axis=Z)
    return b.build()


def _close_polygon(points: list[Array]) -> list[Array]:
    """Return a closed polygon: the gap is distributed over all corners."""
    gap, n = points[-1] - points[0], len(points) - 1
    return [p - gap * (i / n) for i, p in enumerate(points[:-1])] + [points[0]]


@explain_impossible_mechanism
def four_bars(n: int = 4) -> Mechanism:
    """Row of n equal, independent four-bar linkages: crank, coupler and rocker.

    Parameters
    ----------
    n : int, default 4
        Number of linkages.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If `n` is not an integer in its range.
    """
    checked_count(n, "n", bodies=3, most=MAX_LOOP_BODIES)
    b = Builder(f"four_bars{n}", gravity=GRAVITY)
    for i in range(n):
        foot = 0.6 * i * X
        tip, pivot, meet = foot + 0.1 * X, foot + 0.4 * X, foot + 0.25 * X + 0.2 * Y
        for name, begin, end in (("crank", foot, tip), ("coupler", tip, meet), ("rocker", pivot, meet)):
            add_rod(b, f"{name}{i}", begin, end, density=2.0)
        b.joint(f"A{i}", "revolute", "ground", f"crank{i}", point=foot, axis=Z)
        b.joint(f"B{i}", "revolute", f"crank{i}", f"coupler{i}", point=tip, axis=Z)
        b.joint(f"D{i}", "revolute", "ground", f"rocker{i}", point=pivot, axis=Z)
        b.joint(f"C{i}", "revolute", f"coupler{i}", f"rocker{i}", point=meet, axis=Z)
    return b.build()


@explain_impossible_mechanism
def tied_tree(n: int = 63, ties: int = 4) -> Mechanism:
    """Binary tree of n bodies, as `tree` has it, with rods between some leaves: each rod closes a loop.

    Parameters
    ----------
    n : int, default 63
        Number of bodies, at least 7.
    ties : int, default 4
        Number of rods.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If `n` is outside its range, or the tree has too few leaves for the rods.
    """
    checked_count(n, "n", least=7, most=MAX_LOOP_BODIES)
    checked_count(ties, "ties")
    leaves = list(range(n // 2, n))
    if ties > len(leaves) // 4:
        raise InputError(f"zoo: {ties} ties; a tree of {n} bodies has leaves for {len(leaves) // 4} of them.")
    b = Builder(f"tied_tree{n}x{ties}")
    base_points: list[Array] = []
    up, across = np.array([0.0, 0.0, LINK_LENGTH]), np.array([0.0, LINK_WIDTH, 0.0])
    for i in range(n):
        parent = (i - 1) // 2
        base_points.append(np.zeros(3) if not i else base_points[parent] + up + ((i - 1) % 2 - 0.5) * across)
        b.body(f"link{i}", mass=LINK_MASS, com=base_points[i] + up / 2, inertia=LINK_MOMENTS)
        axis = (1.0, 0.0, 0.0) if (i + 1).bit_length() % 2 else (0.0, 0.0, 1.0)
        carrier = f"link{parent}" if i else "ground"
        b.joint(f"joint{i}", "revolute", carrier, f"link{i}", point=base_points[i], axis=axis)
    leaf_groups = len(leaves) // 4  # groups of four leaves: the children of two neighbouring parents
    for k in range(ties):
        first = leaves[4 * (k * leaf_groups // ties)]
        ends = {"point_a": base_points[first] + up, "point_b": base_points[first + 2] + up}
        b.close(f"tie{k}", "distance", f"link{first}", f"link{first + 2}", **ends)
    return b.build()


@explain_impossible_mechanism
def rope(n: int = 200, length: float = 20.0, mass: float = 40.0) -> Mechanism:
    """Rope of n links between two trolleys on a horizontal rail.

    Winches may pull the trolleys: joints "left" and "right", both along x. At q = 0 the rope is an arc, so that all
    links are identical; released, it falls to a catenary.

    Parameters
    ----------
    n : int, default 200
        Number of links, at least 4.
    length : float, default 20.0
        Length of the rope, m.
    mass : float, default 40.0
        Mass of the rope, kg.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If `n` is not an integer in its range.
    """
    checked_count(n, "n", least=4, most=MAX_LOOP_BODIES)
    bend = 2.4 / n  # rad, angle from a link to the next
    link, weight = length / n, mass / n
    radius, damping = link / (2 * sin(bend / 2)), DAMPING_RATE_HZ * weight * link**2
    angles = [(i - n / 2) * bend for i in range(n + 1)]
    points = [radius * np.array([sin(a), cos(1.2) - cos(a), 0.0]) for a in angles]
    b = Builder(f"rope{n}", gravity=GRAVITY)
    for name, end in (("left", points[0]), ("right", points[n])):
        b.body(f"{name}_trolley", mass=TROLLEY_MASS, com=end, inertia=(0.4, 0.4, 0.4))
        b.joint(name, "prismatic", "ground", f"{name}_trolley", point=end, axis=tuple(X))
    for i in range(n):
        add_rod(b, f"link{i}", points[i], points[i + 1], mass=weight, radius=link / 8)
        before = f"link{i - 1}" if i else "left_trolley"
        b.joint(f"pin{i}", "revolute", before, f"link{i}", point=points[i], axis=Z, damping=damping)
    b.joint("end", "revolute", f"link{n - 1}", "right_trolley", point=points[n], axis=Z)
    b.frame("middle", f"link{n // 2}", point=points[n // 2])
    return b.build()
