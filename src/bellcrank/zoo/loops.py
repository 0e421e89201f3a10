"""Mechanisms with closed loops: public validation problems, classics, and machines.

All but `andrews` are assembled at q = 0; `start` gives a configuration and velocities for each. Numbers without a
source are plausible assumptions. Planar mechanisms lie in the xy plane, with gravity along -y.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sin, sqrt
from typing import Any

import numpy as np

from bellcrank.formats.builder import Builder
from bellcrank.model import Array, Mechanism
from bellcrank.zoo.families import MAX_LOOP_BODIES, checked_count, explain_impossible_mechanism
from bellcrank.zoo.published import add_rod, data

GRAVITY = (0.0, -9.81, 0.0)
Z = (0.0, 0.0, 1.0)


@explain_impossible_mechanism
def start(mechanism: Mechanism) -> tuple[Array, Array]:
    """Return the assembled initial state of a zoo mechanism.

    It is at rest at the zero configuration, unless its data specify another state.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism of the zoo.

    Returns
    -------
    tuple[ndarray, ndarray]
        q, shape (nq,), and v, shape (nv,).
    """
    q, v = dict.fromkeys(mechanism.columns[0], 0.0), dict.fromkeys(mechanism.columns[1], 0.0)
    neutral = dict(zip(mechanism.columns[0], mechanism.neutral(), strict=True))
    if mechanism.name == "andrews":
        q |= data("andrews")["q0"]
    if mechanism.name.startswith("n_four_bar"):
        rate = data("n_four_bar")["speed"] / data("n_four_bar")["length"]
        v |= {name: -rate if name.startswith("A") else rate for name in v}  # couplers stay horizontal
    return np.array(list((neutral | {k: x for k, x in q.items() if x}).values())), np.array(list(v.values()))


@explain_impossible_mechanism
def rod_pendulum(length: float = 1.0, mass: float = 1.0) -> Mechanism:
    """Ball that moves in the plane, held at a constant distance by a massless rod (IFToMM A01).

    It starts at (-length, 0). The motion equals that of `pendulum`, with a constraint instead of a coordinate: the
    third coordinate is the ball's own rotation, which nothing drives.

    Parameters
    ----------
    length : float, default 1.0
        Length of the rod, m.
    mass : float, default 1.0
        Mass of the ball, kg.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    b = Builder("rod_pendulum", gravity=GRAVITY)
    b.body("ball", mass=mass, com=(-length, 0, 0), inertia=[0.4 * mass * (0.1 * length) ** 2] * 3)
    b.joint("plane", "planar", "ground", "ball", point=(-length, 0, 0), axis=Z)
    b.close("rod", "distance", "ground", "ball", point_a=(0, 0, 0), point_b=(-length, 0, 0))
    b.frame("P", "ball", point=(-length, 0, 0))
    return b.build()


@explain_impossible_mechanism
def four_bar(ground: float = 0.4, crank: float = 0.1, coupler: float = 0.35, rocker: float = 0.25) -> Mechanism:
    """Planar four-bar linkage; with the default lengths the crank rotates fully and the rocker swings (Grashof).

    The crank points along x at q = 0. All four joints of the loop are given, and bellcrank cuts one of them.

    Parameters
    ----------
    ground : float, default 0.4
        Distance of the pivots on the ground, m.
    crank : float, default 0.1
        Length of the crank, m.
    coupler : float, default 0.35
        Length of the coupler, m.
    rocker : float, default 0.25
        Length of the rocker, m.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    tip = np.array([crank, 0.0, 0.0])
    # From the crank's tip to the rocker's pivot, third side of a triangle with coupler and rocker.
    pivot_offset = np.array([ground, 0.0, 0.0]) - tip
    gap = float(np.linalg.norm(pivot_offset))
    along = (coupler**2 - rocker**2 + gap**2) / (2 * gap)
    meet = tip + along * pivot_offset / gap + sqrt(coupler**2 - along**2) * np.array([0.0, 1.0, 0.0])
    b = Builder("four_bar", gravity=GRAVITY)
    add_rod(b, "crank", (0, 0, 0), tip, density=2.0)
    add_rod(b, "coupler", tip, meet, density=2.0)
    add_rod(b, "rocker", (ground, 0, 0), meet, density=2.0)
    b.joint("A", "revolute", "ground", "crank", point=(0, 0, 0), axis=Z)
    b.joint("B", "revolute", "crank", "coupler", point=tip, axis=Z)
    b.joint("C", "revolute", "coupler", "rocker", point=meet, axis=Z)
    b.joint("D", "revolute", "ground", "rocker", point=(ground, 0, 0), axis=Z)
    return b.build()


@explain_impossible_mechanism
def n_four_bar(n: int = 2) -> Mechanism:
    """Row of n windows from 2 n + 1 uniform rods, upright at q = 0 (IFToMM A02).

    Frame "B0" is the top of the first rod.

    Parameters
    ----------
    n : int, default 2
        Number of windows.

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
    table = data("n_four_bar")
    size, mass = table["length"], table["mass"]
    b = Builder(f"n_four_bar{n}", gravity=GRAVITY)
    for i in range(n + 1):
        add_rod(b, f"rod{i}", (i * size, 0, 0), (i * size, size, 0), mass)
        b.joint(f"A{i}", "revolute", "ground", f"rod{i}", point=(i * size, 0, 0), axis=Z)
    for i in range(n):
        left, right = (i * size, size, 0), ((i + 1) * size, size, 0)
        add_rod(b, f"top{i}", left, right, mass)
        b.joint(f"B{i}", "revolute", f"rod{i}", f"top{i}", point=left, axis=Z)
        b.joint(f"C{i}", "revolute", f"top{i}", f"rod{i + 1}", point=right, axis=Z)
    b.frame("B0", "rod0", point=(0, size, 0))
    return b.build()


@explain_impossible_mechanism
def ring(n: int = 12, radius: float = 1.0) -> Mechanism:
    """Ring of n equal rods with hinges in the vertical plane, hung by one hinge: one loop, a regular polygon at q = 0.

    A track, a chain and a bracelet are such rings. The numbers are assumed.

    Parameters
    ----------
    n : int, default 12
        Number of rods, at least 3.
    radius : float, default 1.0
        Radius of the polygon's corners, m.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If `n` is not an integer in its range.
    """
    checked_count(n, "n", least=3, most=MAX_LOOP_BODIES)
    b = Builder(f"ring{n}", gravity=GRAVITY)
    corners = [_circle_point(radius, pi / 2 + 2 * pi * i / n, 0.0) - np.array([0.0, radius, 0.0]) for i in range(n)]
    for i in range(n):
        add_rod(b, f"rod{i}", corners[i], corners[(i + 1) % n], density=1.0)
        b.joint(f"A{i}", "revolute", f"rod{i - 1}" if i else "ground", f"rod{i}", point=corners[i], axis=Z)
    b.joint("closing", "revolute", f"rod{n - 1}", "ground", point=corners[0], axis=Z)
    return b.build()


@explain_impossible_mechanism
def parallel_cranks(n: int = 3) -> Mechanism:
    """Bar on n equal parallel cranks: two of them determine its motion, so each further one is redundant.

    The numbers are assumed.

    Parameters
    ----------
    n : int, default 3
        Number of cranks, at least 2.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    InputError
        If `n` is not an integer in its range.
    """
    b = Builder(f"parallel_cranks{checked_count(n, 'n', least=2, most=MAX_LOOP_BODIES)}", gravity=GRAVITY)
    add_rod(b, "bar", (0, 1, 0), (n - 1, 1, 0), density=1.0)
    for i in range(n):
        add_rod(b, f"crank{i}", (i, 0, 0), (i, 1, 0), density=1.0)
        b.joint(f"A{i}", "revolute", "ground", f"crank{i}", point=(i, 0, 0), axis=Z)
        b.joint(f"B{i}", "revolute", f"crank{i}", "bar", point=(i, 1, 0), axis=Z)
    return b.build()


def andrews() -> Mechanism:
    """Andrews' squeezing mechanism: seven small bodies, three loops, a spring (Hairer and Wanner; IFToMM A03).

    The joints have the names and the angles of the literature. The loops are open at q = 0; `start` returns a
    configuration that closes them. Drive beta with the torque data("andrews")["mom"].

    Returns
    -------
    Mechanism
        The mechanism.
    """
    g: Mapping[str, Any] = data("andrews")
    A, B = np.array([g["xa"], g["ya"], 0.0]), np.array([g["xb"], g["yb"], 0.0])
    O, x, y = np.zeros(3), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    b = Builder("andrews", gravity=(0.0, 0.0, 0.0))
    # For each body at q = 0: joint, parent, joint position, and centre of mass relative to it.
    K1, K2 = O + g["rr"] * x, O + (g["rr"] - g["d"]) * x
    K5, K7 = A + g["zt"] * x, A - g["u"] * y
    bodies = {
        "K1": ("beta", "ground", O, g["ra"] * x),
        "K2": ("theta", "K1", K1, -g["da"] * x),
        "K3": ("gamma", "ground", B, g["sb"] * x - g["sa"] * y),
        "K4": ("phi", "K5", K5, (g["ea"] - g["e"]) * y),
        "K5": ("delta", "ground", A, g["ta"] * x + g["tb"] * y),
        "K6": ("omega", "K7", K7, (g["zf"] - g["fa"]) * x),
        "K7": ("epsilon", "ground", A, -g["ub"] * x - g["ua"] * y),
    }
    for m, I, (name, (_, _, point, com)) in zip(g["m"], g["I"], bodies.items(), strict=True):
        b.body(name, mass=m, com=point + com, inertia=(I / 2, I / 2, I))
    for name, (joint, parent, point, _) in bodies.items():
        b.joint(joint, "revolute", parent, name, point=point, axis=Z)
    ends = {"K3": B - g["ss"] * y, "K4": K5 - g["e"] * y, "K6": K7 + g["zf"] * x}
    for name, end in ends.items():
        b.close(f"K2-{name}", "revolute", "K2", name, point_a=K2, point_b=end, axis=Z)
    D, C = B + g["sd"] * x - g["sc"] * y, np.array([g["xc"], g["yc"], 0.0])
    b.spring("spring", "K3", "ground", point_a=D, point_b=C, stiffness=g["c0"], length=g["l0"])
    return b.build()


def bricard() -> Mechanism:
    """Ring of six revolute joints along the edges of a cube (Bricard), over-constrained but movable (IFToMM A04).

    Returns
    -------
    Mechanism
        The mechanism.
    """
    table = data("bricard")
    corners = table["length"] * np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], float)
    b = Builder("bricard", gravity=GRAVITY)
    for i in range(5):
        add_rod(b, f"rod{i + 1}", corners[i], corners[i + 1], table["mass"])
    ring = ["ground", *(f"rod{i + 1}" for i in range(5)), "ground"]
    for i in range(6):
        before, after = corners[i] - corners[i - 1], corners[(i + 1) % 6] - corners[i]
        axis = np.cross(before, after) / table["length"] ** 2
        parent, child = (ring[i], ring[i + 1]) if i < 5 else (ring[i + 1], ring[i])
        b.joint(f"R{i + 1}", "revolute", parent, child, point=corners[i], axis=axis)
    return b.build()


@explain_impossible_mechanism
def stewart(base: float = 1.0, platform: float = 0.6, height: float = 1.2) -> Mechanism:
    """Gough-Stewart platform (Stewart 1965): six legs, each a universal joint, a cylinder and a ball.

    The numbers are assumed.

    Parameters
    ----------
    base : float, default 1.0
        Radius of the joints on the ground, m.
    platform : float, default 0.6
        Radius of the joints on the platform, m.
    height : float, default 1.2
        Height of the platform at q = 0, m.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    b = Builder("stewart")
    b.body("platform", mass=50.0, com=(0, 0, height), inertia=(4.5, 4.5, 9.0))
    for i in range(6):
        side, hand = (2 * pi / 3) * (i // 2), 1 if i % 2 else -1
        foot = _circle_point(base, side + hand * 0.2, 0.0)
        head = _circle_point(platform, side + hand * (pi / 3 - 0.25), height)
        leg = (head - foot) / np.linalg.norm(head - foot)
        across = np.cross(Z, leg) / np.linalg.norm(np.cross(Z, leg))
        middle = (foot + head) / 2
        add_rod(b, f"lower{i + 1}", foot, middle, mass=5.0, radius=0.03)
        add_rod(b, f"upper{i + 1}", middle, head, mass=2.0, radius=0.02)
        axes: dict[str, Any] = {"axis": across, "second_axis": np.cross(leg, across)}
        b.joint(f"U{i + 1}", "universal", "ground", f"lower{i + 1}", point=foot, **axes)
        b.joint(f"P{i + 1}", "prismatic", f"lower{i + 1}", f"upper{i + 1}", point=middle, axis=leg)
        b.joint(f"S{i + 1}", "spherical", f"upper{i + 1}", "platform", point=head)
    b.frame("tool", "platform", point=(0, 0, height))
    return b.build()


def delta() -> Mechanism:
    """Delta robot (Clavel 1988): three arms, each with a parallelogram of two rods down to the platform.

    The numbers are assumed. The rods have universal joints at the arms and ball joints at the platform, so that none of
    them can spin about its axis.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    base, arm, rod, hand, wide = 0.2, 0.3, 0.7, 0.06, 0.05
    b = Builder("delta")
    drop = sqrt(rod**2 - (base + arm - hand) ** 2)  # the arms are horizontal at q = 0
    b.body("platform", mass=0.5, com=(0, 0, -drop), inertia=(5e-4, 5e-4, 1e-3))
    for i in range(3):
        out, across = _circle_point(1.0, 2 * pi / 3 * i, 0.0), _circle_point(1.0, 2 * pi / 3 * i + pi / 2, 0.0)
        shoulder, elbow, wrist = base * out, (base + arm) * out, hand * out - drop * np.array(Z)
        along = (wrist - elbow) / rod
        add_rod(b, f"arm{i + 1}", shoulder, elbow, mass=0.8, radius=0.02)
        b.joint(f"shoulder{i + 1}", "revolute", "ground", f"arm{i + 1}", point=shoulder, axis=across)
        for letter, aside in (("a", wide * across), ("b", -wide * across)):
            name = f"{i + 1}{letter}"
            add_rod(b, f"rod{name}", elbow + aside, wrist + aside, mass=0.1, radius=0.006)
            axes: dict[str, Any] = {"axis": across, "second_axis": np.cross(along, across)}
            b.joint(f"U{name}", "universal", f"arm{i + 1}", f"rod{name}", point=elbow + aside, **axes)
            b.joint(f"S{name}", "spherical", f"rod{name}", "platform", point=wrist + aside)
    b.frame("tool", "platform", point=(0, 0, -drop))
    return b.build()


@explain_impossible_mechanism
def double_wishbone(damping: float = 1500.0) -> Mechanism:
    """Double-wishbone suspension, front left, on a fixed chassis: its one freedom is the wheel travel.

    x is forward, y to the left, z up. The tie rod is a distance constraint; spring and damper stand on the lower arm.
    The numbers are assumed.

    Parameters
    ----------
    damping : float, default 1500.0
        Damping of the strut, N s/m.

    Returns
    -------
    Mechanism
        The mechanism.
    """
    b = Builder("double_wishbone")
    low, high, steer = (0.0, 0.72, -0.10), (-0.02, 0.68, 0.18), (-0.12, 0.70, -0.02)  # points on the upright
    b.body("lower", mass=5.0, com=(0.0, 0.52, -0.10), inertia=(0.08, 0.05, 0.12))
    b.body("upper", mass=3.0, com=(-0.01, 0.56, 0.17), inertia=(0.03, 0.02, 0.04))
    b.body("upright", mass=35.0, com=(0.0, 0.76, 0.02), inertia=(0.9, 1.4, 0.9))
    b.joint("lower_pivot", "revolute", "ground", "lower", point=(0.0, 0.35, -0.10), axis=(1, 0, 0))
    b.joint("upper_pivot", "revolute", "ground", "upper", point=(0.0, 0.42, 0.16), axis=(cos(0.05), 0, sin(0.05)))
    b.joint("lower_ball", "spherical", "lower", "upright", point=low)
    b.joint("upper_ball", "spherical", "upper", "upright", point=high)
    b.close("tie_rod", "distance", "ground", "upright", point_a=(-0.12, 0.36, -0.03), point_b=steer)
    foot, mount = (0.0, 0.58, -0.08), (0.0, 0.45, 0.42)
    b.spring("strut", "ground", "lower", mount, foot, stiffness=35e3, length=0.55, damping=damping)
    b.frame("hub", "upright", point=(0.0, 0.78, 0.02))
    return b.build()


def _circle_point(radius: float, angle: float, z: float) -> Array:
    return np.array([radius * cos(angle), radius * sin(angle), z])
