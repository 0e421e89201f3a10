"""Random mechanisms for the tests: trees of mixed joints, with numbers from a seed, to repeat a failing case."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from bellcrank import Builder
from bellcrank.dynamics import kinematics
from bellcrank.graph import trace
from bellcrank.model import Body, Frame, Joint, Mechanism, Mimic, Tree, mechanism_of
from bellcrank.model.joints import KINDS
from bellcrank.model.parts import matrix, triple

Array = np.ndarray[Any, Any]

ALL = tuple(k for k in KINDS if k != "fixed")
# Joints whose v is dq/dt: Lagrange's equations hold for them in textbook form.
HOLONOMIC = ("revolute", "prismatic", "helical", "cylindrical", "universal")
SINGLE = ("revolute", "prismatic", "helical")


def rotation(rng: np.random.Generator) -> Array:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.linalg.det(Q)


def quarter_turns(rng: np.random.Generator) -> Array:
    """Return one of the rotations that only permute and negate axes: constants fold there, and special cases occur."""
    P = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], size=3)
    return P * np.linalg.det(P)


def inertia(rng: np.random.Generator) -> Array:
    """Return the inertia of a box of mass about one: always physical, never degenerate."""
    a, b, c = rng.uniform(0.05, 0.4, 3)
    R = rotation(rng)
    return R @ np.diag([b + c, a + c, a + b]) @ R.T


def random_tree(
    seed: int,
    kinds: Sequence[str],
    parents: Sequence[int] = (),
    *,
    armature: bool = False,
    passive: bool = False,
    coupled: bool = False,
    gravity: bool = True,
    rooted: bool = False,
) -> Mechanism:
    """Attach body i to an earlier body or the ground, parents[i] mod (i + 1); without parents it is a chain.

    `rooted` lets only the first body touch the ground.

    About half of the joints have simple placements (quarter turns, coordinate axes, no offset), the others general
    ones.
    """
    rng = np.random.default_rng(seed)
    bodies, joints, frames = [], [], []
    for i, kind in enumerate(kinds):
        p = i - 1
        if parents and i:
            p = parents[i % len(parents)] % i if rooted else parents[i % len(parents)] % (i + 1) - 1
        nice = rng.random() < 0.5
        R = quarter_turns(rng) if nice else rotation(rng)
        axes = quarter_turns(rng) if nice or rng.random() < 0.5 else rotation(rng)
        point = rng.choice([0.0, 0.0, 0.5, -0.3], size=3) if nice else rng.uniform(-0.6, 0.6, 3)
        extra = {"armature": rng.uniform(0.05, 0.3)} if armature and rng.random() < 0.6 else {}
        if passive and rng.random() < 0.7:
            extra |= {"damping": rng.uniform(0.1, 1), "friction": rng.uniform(0, 0.5)}
            extra |= {"friction_speed": rng.uniform(0.1, 2)}  # wide, so that the ramp is tested as well as the plateau
            if KINDS[kind].nq == KINDS[kind].nv:
                extra |= {"stiffness": rng.uniform(0, 5), "rest": rng.uniform(-1, 1)}
        if coupled and kind in SINGLE and rng.random() < 0.5:
            masters = [j.name for j in joints if j.kind in SINGLE and j.mimic is None]
            if masters:
                extra["mimic"] = Mimic(str(rng.choice(masters)), rng.uniform(-2, 2), rng.uniform(-1, 1))
        bodies.append(Body(f"b{i}", rng.uniform(0.5, 2), triple(rng.uniform(-0.3, 0.3, 3)), matrix(inertia(rng))))
        joints.append(
            Joint(
                f"j{i}", kind, f"b{p}" if p >= 0 else "ground", f"b{i}", matrix(R), triple(point), triple(axes[0]),
                second_axis=triple(axes[1]) if kind == "universal" else None,
                pitch=rng.uniform(-0.3, 0.3) if kind == "helical" else 0.0, **extra,
            )
        )  # fmt: skip
        frames.append(Frame(f"f{i}", f"b{i}", matrix(rotation(rng)), triple(rng.uniform(-0.5, 0.5, 3))))
    g = rng.uniform(-10, 10, 3) if rng.random() < 0.5 else (0.0, 0.0, -9.81)
    return mechanism_of(f"tree{seed}", bodies, joints, frames, gravity=g if gravity else (0.0, 0.0, 0.0))


def gripper() -> Mechanism:
    """Return a mechanism with friction, springs, dampers and a rotor."""
    b = Builder("gripper")
    b.body("palm", mass=2.0, com=(0, 0, 0.2), inertia=(0.1, 0.1, 0.1))
    b.joint("lift", "prismatic", "ground", "palm", axis=(0, 0, 1), damping=3.0, friction=0.7, stiffness=40.0, rest=0.1)
    b.body("finger", mass=0.3, com=(0.1, 0, 0.3), inertia=(0.01, 0.02, 0.01))
    b.joint("knuckle", "revolute", "palm", "finger", point=(0.1, 0, 0.2), axis=(0, 1, 0), friction=0.2, armature=0.05)
    return b.build()


def trees(
    kinds: Sequence[str] = ALL, max_bodies: int = 6, base: str = "", **options: Any
) -> st.SearchStrategy[Mechanism]:
    """Return a strategy: hypothesis shrinks the structure, the seed gives the numbers.

    `base`: kind of the joint on the ground.
    """
    more = st.lists(st.sampled_from(kinds), min_size=0 if base else 1, max_size=max_bodies - bool(base))
    return st.builds(
        random_tree,
        seed=st.integers(0, 10**6),
        kinds=more.map(lambda k: [base, *k]) if base else more,
        parents=st.lists(st.integers(0, 100), max_size=max_bodies),
        rooted=st.just(bool(base)),
        **{key: st.just(value) if isinstance(value, bool) else value for key, value in options.items()},
    )


MOST_EXAMPLES = 8  # of a fixed set; `make test-all` tries more


def few(n: int) -> settings:
    """Limit a test to n examples by default. A deep run (conftest.py) has as many as its profile sets."""
    deep = os.environ.get("BELLCRANK_HYPOTHESIS") == "deep"
    return settings() if deep else settings(max_examples=min(n, MOST_EXAMPLES))


def state(m: Mechanism, seed: int = 0) -> tuple[list[float], list[float], list[float]]:
    """Return q, v and a (or tau) as plain floats, which the methods accept directly."""
    q, v, a = m.random(seed)
    return q.tolist(), v.tolist(), a.tolist()


def close(a: Any, b: Any, tolerance: float = 1e-11) -> None:
    """Check equality to rounding, relative to the largest element: a zero is judged by its neighbours."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    assert a.shape == b.shape
    scale = max(1.0, float(np.abs(b).max(initial=0.0)))
    worst = float(np.abs(a - b).max(initial=0.0))
    assert worst <= tolerance * scale, f"off by {worst:.2e}, {worst / scale:.2e} of the largest element:\n{a}\n{b}"


def momentum_rates(tree: Tree, q: Any, v: Any, a: Any) -> Any:
    """Return [linear, angular] momentum rates of each body about the world's origin, by differentiating the graph."""
    rate = np.array(kinematics.rate(tree, q, v), dtype=float)

    def momenta(t: Any) -> Any:
        """Return the momenta at q + t dq/dt and v + t a."""
        x, u = [c + d * t for c, d in zip(q, rate)], [c + d * t for c, d in zip(v, a)]
        rows = []
        for link, V, (R, p) in zip(tree.links, kinematics.velocities(tree, x, u), kinematics.poses(tree, x)):
            f = link.inertia @ V
            lin = R @ f.lin
            rows.append([*lin, *(R @ f.ang + p.cross(lin))])
        return {"h": rows}

    return trace("momenta", momenta, {"t": ()}).jacobian("h", "t").evaluate(t=0.0)["dh_dt"]
