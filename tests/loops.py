"""Random mechanisms with closed loops: random trees, closed in a random configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from bellcrank.dynamics import kinematics
from bellcrank.formats.builder import Builder
from bellcrank.model import Frame, Loop, Mechanism, Spring
from bellcrank.model.parts import EQUATIONS, matrix, triple
from trees import ALL, SINGLE, Array, rotation, trees

# Rolling joints and prescribed motions have tests of their own: they do not allow every pose.
OWN = ("ball_on_plane", "wheel_on_plane", "knife_edge", "point_on_surface", "point_on_curve", "combination", "cam")
KINDS = tuple(k for k in EQUATIONS if k not in OWN)
# Loops closed at random may be singular, or so close to singular that the package warns of rounding.
at_random = pytest.mark.filterwarnings("ignore:.*it cannot move:RuntimeWarning", "ignore:.*not exact:RuntimeWarning")
FRAMED = tuple(k for k in KINDS if k not in ("gear", "rack"))


def pose(m: Mechanism, q: Sequence[float], frame: str) -> Array:
    return np.array(kinematics.pose(m.tree, list(q), frame), dtype=float)


def closed(m: Mechanism, seed: int, kinds: Sequence[str], springs: int = 0) -> tuple[Mechanism, list[float]]:
    """Return the tree with loops of these kinds between any two bodies, and a configuration that closes all of them."""
    rng = np.random.default_rng(seed)
    q = m.random(seed)[0].tolist()
    names = [m.ground, *(b.name for b in m.bodies)]
    frames, loops, ties = dict(m.frames), [], []
    single = [j for j in m.joints if j.kind in SINGLE]
    values = {x.joint.name: x.coordinates(q)[0] for x in m.tree.links if x.joint.kind in SINGLE}
    for i, kind in enumerate(kinds):
        if kind in ("gear", "rack"):
            if len(single) > 1:
                first, second = (single[k].name for k in rng.permutation(len(single))[:2])
                ratio = float(rng.uniform(0.5, 2) * rng.choice([-1, 1]))
                offset = float(values[second] - ratio * values[first])
                loops.append(Loop(f"l{i}", kind, value=ratio, offset=offset, joints=(first, second)))
            continue
        a, b = (names[k] for k in rng.permutation(len(names))[:2])
        A = Frame(f"l{i}.a", a, matrix(rotation(rng)), triple(rng.uniform(-0.5, 0.5, 3)))
        X_WA = _placed(m, q, A)
        X_WB = X_WA @ _allowed(kind, rng)
        R, p = _on(m, q, b, X_WB)
        frames |= {A.name: A, f"l{i}.b": Frame(f"l{i}.b", b, R, p)}
        gap = float(np.linalg.norm(X_WB[:3, 3] - X_WA[:3, 3])) if kind == "distance" else 0.0
        loops.append(Loop(f"l{i}", kind, A.name, f"l{i}.b", gap))
    for i in range(springs):
        a, b = (names[k] for k in rng.permutation(len(names))[:2])
        ends = [Frame(f"s{i}.{x}", body, point=triple(rng.uniform(-0.5, 0.5, 3))) for x, body in (("a", a), ("b", b))]
        frames |= {f.name: f for f in ends}
        length, damping = rng.choice([0.0, 0.7]), rng.choice([0.0, 2.0])
        numbers = (float(rng.uniform(1, 20)), float(length), float(damping))
        ties.append(Spring(f"s{i}", ends[0].name, ends[1].name, *numbers))
    return replace(m, frames=frames, loops=tuple(loops), springs=tuple(ties)), q


def _placed(m: Mechanism, q: Sequence[float], f: Frame) -> Array:
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = f.rotation, f.point
    return pose(m, q, f.body) @ X


def _on(m: Mechanism, q: Sequence[float], body: str, X: Array) -> Any:
    local = np.linalg.inv(pose(m, q, body)) @ X
    return matrix(local[:3, :3]), triple(local[:3, 3])


def _allowed(kind: str, rng: np.random.Generator) -> Array:
    """Return a random pose of b in a that the joint allows."""
    X = np.eye(4)
    t = rng.uniform(-1, 1)
    turned = np.array([[np.cos(t), -np.sin(t), 0.0], [np.sin(t), np.cos(t), 0.0], [0.0, 0.0, 1.0]])
    if kind in ("revolute", "cylindrical", "planar"):
        X[:3, :3] = turned
    elif kind == "universal":  # about z of a, then about x of b
        X[:3, :3] = turned @ np.array([[1.0, 0.0, 0.0], *np.c_[np.zeros(2), turned[:2, :2]]])
    elif kind in ("spherical", "distance", "point_on_line"):
        X[:3, :3] = rotation(rng)
    if kind in ("prismatic", "cylindrical", "point_on_line"):
        X[2, 3] = rng.uniform(-1, 1)
    elif kind == "planar":
        X[:2, 3] = rng.uniform(-1, 1, 2)
    elif kind == "distance":
        X[:3, 3] = rng.uniform(0.2, 1, 3)
    return X


Closed = tuple[Mechanism, list[float]]


def looped(
    kinds: Sequence[str] = KINDS, most: int = 3, springs: int = 0, joints: Sequence[str] = ALL, **options: Any
) -> st.SearchStrategy[Closed]:
    """Return (mechanism, configuration that closes its loops).

    kinds: kinds of loops; joints: kinds of joints of the tree.
    """
    return st.builds(
        closed,
        m=trees(joints, **options),
        seed=st.integers(0, 10**6),
        kinds=st.lists(st.sampled_from(kinds), min_size=1, max_size=most),
        springs=st.integers(0, springs),
    )


def four_bar_tower(sizes: Sequence[float], masses: Sequence[float], tilt: float = 0.0) -> Mechanism:
    """Return planar four-bars, each on the coupler of the one before, with all pins called C turned by `tilt`."""
    b = Builder("bars", gravity=(3.0, -9.81, 0.0))
    carrier, x, y = "ground", 0.0, 0.0
    for i, (L, mass) in enumerate(zip(sizes, masses, strict=True)):
        points = {"A": (x, y), "B": (x, y + L), "C": (x + 2 * L, y + 1.2 * L), "D": (x + 2 * L, y)}
        bodies = [carrier, f"crank{i}", f"coupler{i}", f"rocker{i}", carrier]
        centres = ((x, y + L / 2), (x + L, y + L), (x + 2 * L, y + 0.6 * L))
        for name, com in zip(bodies[1:4], centres, strict=True):
            b.body(name, mass=mass, com=(*com, 0.0), inertia=(mass * L**2 / 12,) * 3)
        for k, (pin, point) in enumerate(points.items()):
            axis = (np.sin(tilt), 0.0, np.cos(tilt)) if pin == "C" else (0.0, 0.0, 1.0)
            b.joint(f"{pin}{i}", "revolute", bodies[k], bodies[k + 1], point=(*point, 0.0), axis=axis)
        carrier, x, y = f"coupler{i}", x + 0.3 * L, y + L
    return b.build()
