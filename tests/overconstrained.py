"""Over-constrained linkages that move although a count of equations gives no mobility, in random proportions.

Any joint may be cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.model import Mechanism
from trees import rotation

Array = np.ndarray[Any, Any]
Z = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Hinge:
    name: str
    one: str
    other: str
    point: Any
    axis: Any


def linkage(
    name: str, hinges: Sequence[Hinge], cut: Sequence[str], seed: int, gravity: bool = True, turned: bool = True
) -> Mechanism:
    """Return bodies with some inertia between these hinges, turned at random; hinges in `cut` close the loops."""
    rng = np.random.default_rng(seed)
    R = rotation(rng) if turned else np.eye(3)
    places: dict[str, list[Array]] = {}
    for h in hinges:
        for body in (h.one, h.other):
            places.setdefault(body, []).append(R @ np.asarray(h.point, float))
    b = bc.Builder(name, gravity=tuple(R @ [0.3, -9.5, 0.1]) if gravity else (0, 0, 0))
    for body, points in places.items():
        if body != "ground":
            mass = float(rng.uniform(0.5, 2.0))
            b.body(body, mass=mass, com=np.mean(points, axis=0), inertia=[0.1 * mass] * 3)
    tree = {"ground"}
    left = [h for h in hinges if h.name not in cut]
    while left:
        h = next(x for x in left if (x.one in tree) != (x.other in tree))
        ends = (h.one, h.other) if h.one in tree else (h.other, h.one)
        b.joint(h.name, "revolute", *ends, point=R @ np.asarray(h.point, float), axis=R @ np.asarray(h.axis, float))
        tree.update(ends)
        left.remove(h)
    for h in hinges:
        if h.name in cut:
            at = R @ np.asarray(h.point, float)
            b.close(h.name, "revolute", h.one, h.other, point=at, axis=R @ np.asarray(h.axis, float))
    return b.build()


def plates(levels: int, cranks: int, seed: int) -> list[Hinge]:
    """Return a stack of plates, each on parallel cranks on the one below."""
    rng = np.random.default_rng(seed)
    hinges, below = [], "ground"
    base = np.zeros(3)
    for level in range(levels):
        plate = f"plate{level}"
        turn = rng.uniform(0, 2 * np.pi)
        arm = rng.uniform(0.3, 0.8) * np.array([np.cos(turn), np.sin(turn), 0.0])
        corner = rng.uniform(0, 2 * np.pi)
        for k in range(cranks):
            angle = corner + 2 * np.pi * (k + rng.uniform(-0.15, 0.15)) / cranks
            p = base + rng.uniform(0.7, 1.4) * np.array([np.cos(angle), np.sin(angle), 0.0])
            crank = f"crank{level}_{k}"
            hinges += [Hinge(f"A{level}_{k}", below, crank, p, Z), Hinge(f"B{level}_{k}", crank, plate, p + arm, Z)]
        base, below = base + arm, plate
    return hinges


def bennett(seed: int) -> list[Hinge]:
    """Return four hinges with equal opposite sides, lengths in proportion to the sines of the twists (G.

    T. Bennett, 1903).
    """
    rng = np.random.default_rng(seed)
    alpha, beta = rng.uniform(0.4, 0.9), rng.uniform(1.2, 2.2)
    a = rng.uniform(0.4, 1.0)
    b = a * np.sin(beta) / np.sin(alpha)
    first = rng.uniform(0.7, 2.2)
    second = 2 * np.arctan(np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2) / np.tan(first / 2))
    X, found = np.eye(4), []
    bodies = ["ground", "one", "two", "three", "ground"]
    for k, (turn, length, twist) in enumerate(
        zip((first, second, -first, -second), (a, b, a, b), (alpha, beta, alpha, beta), strict=True)
    ):
        found.append(Hinge(f"R{k}", bodies[k - 1] if k else "three", bodies[k], X[:3, 3].copy(), X[:3, 2].copy()))
        X = X @ _denavit(turn, length, twist)
    assert np.allclose(X, np.eye(4), atol=1e-12), X
    return found


def _denavit(turn: float, length: float, twist: float) -> Array:
    ct, st_, ca, sa = np.cos(turn), np.sin(turn), np.cos(twist), np.sin(twist)
    return np.array(
        [[ct, -st_ * ca, st_ * sa, length * ct], [st_, ct * ca, -ct * sa, length * st_], [0, sa, ca, 0], [0, 0, 0, 1]]
    )


def sarrus(seed: int) -> list[Hinge]:
    """Return a plate on two legs of three parallel hinges each, in different directions (P. F. Sarrus, 1853)."""
    rng = np.random.default_rng(seed)
    hinges = []
    for k, turn in enumerate((0.0, rng.uniform(0.9, 2.2))):
        out, axis = np.array([np.cos(turn), np.sin(turn), 0.0]), np.array([-np.sin(turn), np.cos(turn), 0.0])
        up = np.array([0.0, 0.0, 1.0])
        low, high = rng.uniform(0.4, 0.9, size=2)
        knee = out * (1.0 + rng.uniform(0.3, 0.6)) + up * low
        names = [f"L{k}_{i}" for i in range(3)]
        bodies = ["ground", f"shin{k}", f"thigh{k}", "plate"]
        points = [out, knee, out * rng.uniform(0.8, 1.1) + up * (low + high)]
        hinges += [Hinge(n, bodies[i], bodies[i + 1], p, axis) for i, (n, p) in enumerate(zip(names, points))]
    return hinges


KINDS = {
    "plate": lambda seed: plates(1, 3, seed),
    "four cranks": lambda seed: plates(1, 4, seed),
    "stack": lambda seed: plates(2, 3, seed),
    "bennett": bennett,
    "sarrus": sarrus,
}


def some(kind: str, seed: int, gravity: bool = True) -> Mechanism:
    """Return a random one of them, with as many joints cut as it has loops."""
    hinges = KINDS[kind](seed)
    bodies = {b for h in hinges for b in (h.one, h.other)} - {"ground"}
    rng = np.random.default_rng(seed + 1)
    while True:
        cut = list(rng.permutation([h.name for h in hinges])[: len(hinges) - len(bodies)])
        if _is_tree(hinges, cut):
            return linkage(kind.replace(" ", "_"), hinges, cut, seed, gravity)


def _is_tree(hinges: Sequence[Hinge], cut: Sequence[str]) -> bool:
    reached, n = {"ground"}, -1
    while n != len(reached):
        n = len(reached)
        for h in hinges:
            if h.name not in cut and (h.one in reached or h.other in reached):
                reached |= {h.one, h.other}
    return reached == {b for h in hinges for b in (h.one, h.other)} | {"ground"}


cases = st.tuples(st.sampled_from(list(KINDS)), st.integers(0, 10**6))
