"""Force elements: power balance in any state and over a run, action and reaction, and the purpose of each element."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.forces import (
    Belt,
    Between,
    Bushing,
    Cable,
    Coupling,
    Element,
    EndStop,
    Gear,
    JointLaw,
    JointSpring,
    Law,
    NonlinearSpring,
    Rack,
    Worm,
    curve,
    damping_of,
    joint_stops,
    restitution_of,
)
from bellcrank.jets import Jet
from bellcrank.model import Spring
from bellcrank.record.evaluation import time_integral
from trees import rotation

PROGRESSIVE = curve([(-0.5, -900.0), (-0.1, -50.0), (0.0, 0.0), (0.1, 60.0), (0.5, 400.0)])
SMOOTH = curve([(-0.5, -900.0), (-0.1, -50.0), (0.0, 0.0), (0.1, 60.0), (0.5, 400.0)], "smooth")
FRAMES: list[Between] = [
    Bushing("rubber", "ground", "b", (900.0, 800.0, 700.0, 30.0, 20.0, 10.0), (1.0, 2.0, 3.0, 0.1, 0.2, 0.3)),
    Bushing("preloaded", "ground", "b", (900.0, 0.0, 700.0, 30.0, 20.0, 10.0), rest=(0.1, -0.2, 0.3)),
    NonlinearSpring("table", "ground", "b", PROGRESSIVE, lambda u: 5.0 * u + u**3, 0.6),
    NonlinearSpring("smooth", "ground", "b", SMOOTH, curve([(-1.0, -80.0), (0.0, 0.0), (1.0, 20.0)]), 0.6),
    NonlinearSpring("cubic", "ground", "b", lambda s: 100.0 * s + 900.0 * s**3, length=0.5),
    Cable("rope", "ground", "b", length=0.4, stiffness=500.0, damping=20.0),
    Cable("slack", "ground", "b", length=9.0, stiffness=500.0, damping=20.0),
    Law("mine", "ground", "b", lambda t, X, V: ([-3.0 * V[0], 0.0, 0.0], [0.0, -V[4], 0.0])),
]
JOINTS: list[Coupling] = [
    EndStop("stop", ("one",), -0.2, 0.3, 400.0, damping_of(0.4, 0.8)),
    EndStop("half", ("one",), upper=0.1, stiffness=400.0),
    JointSpring("torque", ("one",), PROGRESSIVE, lambda u: 0.3 * u, rest=0.05),
    Gear("teeth", ("one", "two"), -2.5, 300.0, 0.1, 0.5),
    Gear("tight", ("one", "two"), 1.5, 300.0),
    Rack("rack", ("one", "two"), 0.04, 1e4, 1e-3, 2.0),
    Belt("belt", ("one", "two"), 0.1, 0.2, 1e4, 20.0, 50.0),
    Belt("crossed", ("one", "two"), 0.1, -0.2, 1e4, 20.0, 50.0),
    Worm("worm", ("one", "two"), 0.02, 0.1, 0.1, 1e5, 30.0, 0.05),
    JointLaw("own", ("one", "two"), lambda t, q, v: [-v[0], -0.5 * v[1]]),
]
EVERY: list[Element] = [*FRAMES, *JOINTS]


def moving(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return a pose, its velocity, and the pose as a function of time."""
    R, p = rotation(rng), rng.normal(size=3) * 0.5
    V = rng.normal(size=6)
    dR = np.array([np.cross(V[3:], c) for c in R.T]).T
    X, jets = np.eye(4, dtype=object), np.eye(4, dtype=object)
    X[:3, :3], X[:3, 3] = R, p
    for i in range(3):
        for j in range(3):
            jets[i, j] = Jet(R[i, j], dR[i, j])
        jets[i, 3] = Jet(p[i], V[i])
    return X, list(V), jets


def rate(x: Any) -> float:
    return float(x.d) if isinstance(x, Jet) else 0.0


@pytest.mark.parametrize("e", FRAMES, ids=lambda e: e.name)
def test_power_between_frames_balances(e: Between) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        X, V, jets = moving(rng)
        f, n, _ = e(0.0, X, V, [])
        given = float(np.dot([*f, *n], V))
        lost = float(e.loss(0.0, X, V, []))
        assert lost >= 0.0
        assert math.isclose(given, -rate(e.energy(0.0, jets, [])) - lost, rel_tol=1e-12, abs_tol=1e-11)


@pytest.mark.parametrize("e", JOINTS, ids=lambda e: e.name)
def test_power_between_joints_balances(e: Coupling) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        q, v = rng.normal(size=len(e.joints)) * 0.3, rng.normal(size=len(e.joints))
        f, _ = e(0.0, list(q), list(v), [])
        lost = float(e.loss(0.0, list(q), list(v), []))
        grown = rate(e.energy(0.0, [Jet(*x) for x in zip(q, v, strict=True)], []))
        assert lost >= -1e-12
        assert math.isclose(float(np.dot(f, v)), -grown - lost, rel_tol=1e-12, abs_tol=1e-10)


def flying() -> bc.Mechanism:
    """Two free bodies with nothing else acting on them."""
    b = bc.Builder("flying", gravity=(0, 0, 0))
    b.body("a", mass=1.0, com=(0.02, 0, 0), inertia=(0.02, 0.03, 0.04))
    b.body("b", mass=2.0, com=(0, 0.03, 0), inertia=(0.05, 0.03, 0.04))
    b.joint("free_a", "floating", "ground", "a")
    b.joint("free_b", "floating", "ground", "b")
    return b.build()


def turning() -> bc.Mechanism:
    b = bc.Builder("turning", gravity=(0, 0, 0))
    for name, I in (("one", 0.1), ("two", 0.3)):
        b.body(name, mass=1.0, inertia=(I, I, I))
        b.joint(name, "revolute", "ground", name)
    return b.build()


@pytest.mark.parametrize("e", FRAMES, ids=lambda e: e.name)
def test_action_is_reaction_and_runs_balance(e: Between) -> None:
    """Total momentum and angular momentum are constant, and energy equals what the element stores and dissipates."""
    m = flying()
    s = bc.system(m, elements=[replace(e, a="a")])
    q0, v0, _ = m.random(3)
    q0[:3], q0[7:10] = 0.0, (0.3, 0.2, 0.1)
    run = bc.simulate(s, 0.2, q0, 0.3 * v0, step=2e-4)
    P = m.momentum(run.q, run.v)
    P0 = P[:1, :3]
    assert np.abs(P[:, :3] - P0).max() < 1e-7
    about = P[:, 3:] + np.cross(m.com(run.q), P[:, :3])
    if e.name != "mine":  # the author of "mine" defines its force in the axes of a only
        assert np.abs(about - about[:1]).max() < 1e-7
    whole = run["energy"] + run[f"{e.name}.energy"] + integral(run, f"{e.name}.loss")
    assert np.abs(whole - whole[0]).max() < 2e-6 * np.abs(run["energy"]).max()


def integral(run: bc.Record, name: str) -> Any:
    return time_integral(run.t, run[name])


@pytest.mark.parametrize("e", [x for x in JOINTS if len(x.joints) == 2], ids=lambda e: e.name)
def test_runs_of_couplings_balance(e: Coupling) -> None:
    run = bc.simulate(bc.system(turning(), elements=[e]), 0.2, [0.1, 0.0], [2.0, -1.0], step=2e-5)
    whole = run["energy"] + run[f"{e.name}.energy"] + integral(run, f"{e.name}.loss")
    assert np.abs(whole - whole[0]).max() < 1e-5 * np.abs(whole[0])
    assert run.residuals()["energy"] < 1e-5


@pytest.mark.parametrize("form", ["minimal", "projected", "lagrange"])
def test_elements_in_loops(form: str) -> None:
    """A spring element acts like the same spring of the mechanism, in every form."""
    m = bc.zoo.four_bar()
    crank = m.columns[1][0]
    q0, v0 = m.assemble({crank: 1.0}, {crank: 4.0}, fixed=[crank])
    body = m.bodies[1].name
    own = bc.simulate(with_spring(m, body), 0.3, q0, v0, step=5e-4, form=form)
    spring = NonlinearSpring("s", m.ground, body, lambda s: 40.0 * s, lambda u: 0.3 * u, 0.1)
    run = bc.simulate(bc.system(m, elements=[spring]), 0.3, q0, v0, step=5e-4, form=form)
    assert np.abs(run.q - own.q).max() < 1e-11
    assert run.residuals()["energy"] < 1e-7


def with_spring(m: bc.Mechanism, body: str) -> bc.Mechanism:
    return replace(m, springs=(Spring("s", m.ground, body, 40.0, 0.1, 0.3),))


@pytest.mark.parametrize("restitution", [0.05, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("speed", [0.2, 3.0])
def test_restitution(restitution: float, speed: float) -> None:
    """The rebound speed is the given fraction of the impact speed; and the two functions are inverses."""
    d = damping_of(restitution, speed)
    assert math.isclose(restitution_of(d, speed), restitution, rel_tol=1e-9)
    b = bc.Builder("cart")
    b.body("cart", mass=2.0)
    b.joint("slide", "prismatic", "ground", "cart", axis=(1, 0, 0), lower=-0.5, upper=0.01)
    m = b.build()
    run = bc.simulate(bc.system(m, elements=joint_stops(m, 1e5, restitution, speed)), 0.1, [0.0], [speed], step=1e-5)
    assert math.isclose(float(run["slide.v"][-1]), -restitution * speed, rel_tol=1e-4)


def test_hunt_and_crossleys_formula() -> None:
    for speed in (0.01, 0.05, 0.1):
        d = 0.05
        assert abs(restitution_of(d, speed) - (1.0 - 2.0 / 3.0 * d * speed)) < (d * speed) ** 2


def test_worm_gear_is_self_locking() -> None:
    """The wheel drives the worm if friction is below tan(lead), and does not if it is above."""
    ways = []
    for friction in (0.02, 0.3):
        e = Worm("w", ("one", "two"), 0.02, 0.1, 0.1, 1e5, 100.0, friction)
        assert e.locks == (friction > math.tan(0.1))
        push = JointSpring("push", ("two",), lambda q: -5.0)
        run = bc.simulate(bc.system(turning(), elements=[e, push]), 1.0, integrator="rodas4", every=0.01)
        ways.append(float(run["one.q"][-1]))
    assert ways[0] > 10.0 * abs(ways[1])


def test_a_cable_does_not_push() -> None:
    rope = next(e for e in FRAMES if e.name == "rope")
    X = np.eye(4)
    for x in (0.1, 0.39, 0.401, 0.5):
        X[0, 3] = x
        f = rope(0.0, X, [-50.0, 0, 0, 0, 0, 0], [])[0]
        assert f[0] <= 0.0
        if x < 0.4:
            assert f[0] == 0.0


def test_backlash_is_free() -> None:
    e = Gear("g", ("one", "two"), 1.0, 1e4, 0.2)
    run = bc.simulate(bc.system(turning(), elements=[e]), 0.05, [0.0, 0.0], [1.0, 0.0], step=1e-4)
    assert np.abs(run["g.two"]).max() == 0.0  # 0.05 rad, and the play begins at 0.1
    later = bc.simulate(bc.system(turning(), elements=[e]), 0.3, [0.0, 0.0], [1.0, 0.0], step=1e-4)
    assert later["g.two"].max() > 1.0


def test_lanes_gradients_and_parameters() -> None:
    """A free stiffness works in lanes, and its gradient equals differences."""
    k = bc.parameter("k", 50.0, "N/m")
    e = Bushing("rubber", "ground", "b", (k, 40.0, 30.0, 1.0, 1.0, 1.0), (0.1,) * 6)
    s = bc.system(flying(), elements=[e])
    run = bc.simulate(s, 0.1, step=1e-3, parameters={"k": np.array([40.0, 50.0, 60.0])}, v0=0.2 * np.ones(12))
    alone = bc.simulate(s, 0.1, step=1e-3, parameters={"k": 60.0}, v0=0.2 * np.ones(12))
    np.testing.assert_allclose(run.q[2], alone.q, atol=1e-14)
    slope = bc.gradient(s, 0.1, final="b.x", step=1e-3, v0=0.2 * np.ones(12)).parameters["k"]
    ends = bc.simulate(s, 0.1, step=1e-3, parameters={"k": np.array([49.9, 50.1])}, v0=0.2 * np.ones(12))["b.x"][:, -1]
    assert math.isclose(float(slope), float(np.diff(ends)[0] / 0.2), rel_tol=1e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Cable("r", "a", "b", 0.0, 1.0), "becomes taut"),
        (lambda: Cable("r", "a", "b", 1.0, -1.0), "stiffness"),
        (lambda: Bushing("r", "a", "b", (1.0, 2.0)), "expected 6 numbers"),
        (lambda: NonlinearSpring("r", "a", "b", 3.0), "curve"),
        (lambda: curve([(0.0, 1.0), (0.0, 2.0)]), "must increase"),
        (lambda: curve([(0.0, 1.0, 2.0)]), "pairs"),
        (lambda: EndStop("r", ("one",), 1.0, 0.0, 1.0), "expected lower below upper"),
        (lambda: EndStop("r", ("one", "two"), stiffness=1.0), "name of one joint"),
        (lambda: Gear("r", ("one", "one"), 1.0, 1.0), "that differ"),
        (lambda: Gear("r", ("one", "two"), 0.0, 1.0), "ratio is 0.0; expected a number that is not zero"),
        (lambda: Belt("r", ("one", "two"), 0.1, 0, 1.0), "radius_b is 0; expected a number that is not zero"),
        (lambda: bc.system(flying(), elements=[Cable("", "a", "b", 1.0, 1.0)]), "name of the element is empty"),
        (lambda: damping_of(0.0, 1.0), "small restitution"),
        (lambda: damping_of(0.5, 0.0), "speed"),
        (lambda: bc.system(flying(), elements=[3]), "is not a force element"),
        (lambda: bc.system(flying(), elements=[Cable("r", "a", "c", 1.0, 1.0)]), 'no frame "c"'),
        (lambda: bc.system(flying(), elements=[Cable("r", "a", "a", 1.0, 1.0)]), "on one body"),
        (lambda: bc.system(flying(), elements=[EndStop("r", ("x",), stiffness=1.0)]), "joint"),
        (lambda: bc.system(flying(), elements=[FRAMES[0], FRAMES[0]]), "more than one element"),
        (lambda: joint_stops(turning(), joints=["one"]), "has no limits"),
    ],
)
def test_bad_input(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
