"""Contact: contact points in closed form, power, a thrown ball, a bouncing ball, a block on a slope, many lanes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_elements import moving, rate

import bellcrank as bc
from bellcrank.cockpit.machines import Lever, Machine
from bellcrank.cockpit.session import Session
from bellcrank.errors import InputError
from bellcrank.exporting.web_page import worker_data
from bellcrank.forces import (
    Belt,
    Box,
    Bushing,
    Cable,
    Capsule,
    Contact,
    Cylinder,
    Plane,
    Sphere,
    Terrain,
    feet,
    grid,
    restitution_of,
)
from bellcrank.forces.shapes import SHAPE_PAIRS, box_overlap, contact_points
from bellcrank.jets import Jet
from bellcrank.sim.realtime.realtime_drive import Drive
from bellcrank.sim.run.simulator import Simulator

Array = np.ndarray[Any, Any]
BODIES = [Sphere(0.3), Capsule(0.2, 0.7), Box((0.5, 0.6, 0.9)), Cylinder(0.3, 0.8)]
WAVES = Terrain(lambda x, y: 0.1 * bc.sin(2.0 * x) + 0.05 * x * y)
TABLE = [
    *((a, b) for a in (Plane(), Sphere(0.4)) for b in BODIES),
    *((WAVES, b) for b in BODIES),
    (Capsule(0.3, 0.8), Capsule(0.2, 0.7)),
    (Capsule(0.3, 0.8), Cylinder(0.2, 0.7)),
    *((Box((0.9, 0.8, 0.7)), b) for b in BODIES[:3]),
]


def named(pair: Any) -> str:
    return "-".join(type(x).__name__ for x in pair)


def test_the_table_is_whole() -> None:
    assert {(type(a), type(b)) for a, b in TABLE} == {
        (a, b) for a, others, _ in SHAPE_PAIRS for b in (others if isinstance(others, tuple) else (others,))
    }


@pytest.mark.parametrize("pair", TABLE, ids=named)
def test_power_balances(pair: Any) -> None:
    """The balance also holds for deep overlaps with simultaneous sliding and rotation."""
    flat = not isinstance(pair[0], Terrain)  # elsewhere the normal changes along the path
    for exponent in (1.0, 1.5):
        e = Contact("c", "a", "b", *pair, stiffness=900.0, damping=0.3, friction=0.5, exponent=exponent)
        rng, touched = np.random.default_rng(1), 0
        for _ in range(40):
            X, V, jets = moving(rng)
            X[:3, 3] *= 0.7
            for i in range(3):
                jets[i, 3] = Jet(X[i, 3], V[i])
            f, n, _ = e(0.0, X, V, [])
            given, lost = float(np.dot([*f, *n], V)), float(e.loss(0.0, X, V, []))
            touched += given != 0.0
            assert lost >= -1e-12
            if flat:
                assert math.isclose(given, -rate(e.energy(0.0, jets, [])) - lost, rel_tol=1e-9, abs_tol=1e-9)
        assert touched > 10


@pytest.mark.parametrize("shape", BODIES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("upright", [False, True])
def test_slope_equals_a_rotated_plane(shape: Any, upright: bool) -> None:
    """The contact point is the lowest relative to the slope.

    It is not the point of a cylinder's rim that is lowest in the world.
    """
    rng, n = np.random.default_rng(2), np.array([-0.3, 0.2, 1.0])
    R = np.eye(4)
    R[:3, 2] = n / np.linalg.norm(n)
    R[:3, 0] = np.cross([0.0, 1.0, 0.0], R[:3, 2]) / np.linalg.norm(np.cross([0.0, 1.0, 0.0], R[:3, 2]))
    R[:3, 1] = np.cross(R[:3, 2], R[:3, 0])
    slope = Terrain(lambda x, y: 0.3 * x - 0.2 * y)
    for _ in range(10):
        X = np.array(moving(rng)[0], float)
        X[:3, :3] = np.eye(3) if upright else X[:3, :3]
        for found, wanted in zip(contact_points(slope, shape, X), contact_points(Plane(), shape, R.T @ X), strict=True):
            assert math.isclose(float(found.gap), float(wanted.gap), abs_tol=1e-12)
            np.testing.assert_allclose(np.array(found.normal, float), R[:3, 2], atol=1e-12)
            np.testing.assert_allclose(np.array(found.place, float), R[:3, :3] @ np.array(wanted.place), atol=1e-9)


def nearest(shape: Any, pose: Any, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Points of a shape as a cloud, in the axes of a."""
    n = 20000
    if isinstance(shape, Box):
        own = rng.uniform(-0.5, 0.5, size=(n, 3)) * np.array(shape.size)
        own = np.concatenate([own, np.array(np.meshgrid(*([[-0.5, 0.5]] * 3))).reshape(3, -1).T * np.array(shape.size)])
    elif isinstance(shape, Cylinder):
        angle = np.linspace(0.0, 2 * np.pi, n)
        ends = np.where(np.arange(n) % 2, 0.5, -0.5) * shape.length
        own = np.stack([shape.radius * np.cos(angle), shape.radius * np.sin(angle), ends], axis=-1)
    else:
        d = rng.normal(size=(n, 3))
        own = shape.radius * d / np.linalg.norm(d, axis=1, keepdims=True)
        own[:, 2] += np.where(own[:, 2] > 0, 0.5, -0.5) * getattr(shape, "length", 0.0)
    return np.asarray(own @ np.array(pose[:3, :3], float).T + np.array(pose[:3, 3], float))


@pytest.mark.parametrize("shape", BODIES, ids=lambda s: type(s).__name__)
def test_the_lowest_point(shape: Any) -> None:
    """On a plane the gap is the height of the cloud's lowest point."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, _, _ = moving(rng)
        gap = min(float(t.gap) for t in contact_points(Plane(), shape, X))
        assert abs(gap - nearest(shape, X, rng)[:, 2].min()) < 2e-3 * (1 + 4 * isinstance(shape, Sphere | Capsule))


@pytest.mark.parametrize(
    "shape", [Sphere(0.3), Capsule(0.2, 0.7), Box((0.5, 0.6, 0.9))], ids=lambda s: type(s).__name__
)
def test_the_distance_to_a_sphere(shape: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, _, _ = moving(rng)
        X[:3, 3] *= 4.0
        (touch,) = contact_points(Sphere(0.1), shape, X)
        cloud = np.linalg.norm(nearest(shape, X, rng), axis=1).min() - 0.1
        assert -1e-9 < cloud - float(touch.gap) < 0.05


def test_capsules_cross() -> None:
    """Distance of two segments equals that of a search over both."""
    rng, s = np.random.default_rng(0), np.linspace(-0.5, 0.5, 401)
    for _ in range(30):
        X, _, _ = moving(rng)
        (touch,) = contact_points(Capsule(0.1, 0.8), Capsule(0.2, 0.6), X)
        p, u = np.array(X[:3, 3], float), np.array(X[:3, 2], float)
        ours = np.stack([0 * s, 0 * s, 0.8 * s], axis=-1)
        theirs = p + 0.6 * s[:, None] * u
        apart = np.linalg.norm(ours[:, None] - theirs[None], axis=-1).min()
        assert abs(float(touch.gap) - (apart - 0.3)) < 3e-3


def test_a_point_and_a_box() -> None:
    """Outside, the distance is that to a cloud of the box's points; inside, it is the distance to the nearest side.

    Either frame may have the box.
    """
    box, rng = Box((0.5, 0.6, 0.9)), np.random.default_rng(3)
    cloud = nearest(box, np.eye(4), rng)
    for _ in range(30):
        X = np.eye(4)
        X[:3, 3] = rng.uniform(-1.0, 1.0, 3)
        p = X[:3, 3]
        (touch,) = contact_points(box, Sphere(0.1), X)
        inside = np.array(box.size) / 2 - np.abs(p)
        expected = -inside.min() if (inside > 0).all() else np.linalg.norm(cloud - p, axis=1).min()
        assert abs(float(touch.gap) - (expected - 0.1)) < 0.05
        (other,) = contact_points(Sphere(0.1), box, np.linalg.inv(X))
        assert float(touch.gap) == pytest.approx(float(other.gap), abs=1e-12)
        np.testing.assert_allclose(np.array(touch.normal, float), -np.array(other.normal, float), atol=1e-12)


def test_a_box_rests_on_a_box() -> None:
    """A box placed off-centre on a table of the same kind rests on its corners and stays there."""
    b = bc.Builder("stack")
    b.body("block", mass=3.0, inertia=(0.02, 0.02, 0.02))
    b.joint("free", "floating", "ground", "block")
    stack, table, block = b.build(), Box((2.0, 2.0, 0.4)), Box((0.2, 0.2, 0.2))
    on = Contact("on", "ground", "block", table, block, stiffness=2e4, damping=2.0, friction=0.5)
    q0 = stack.neutral()
    q0[:3] = 0.6, -0.5, 0.31
    run = bc.simulate(bc.system(stack, elements=[on]), 2.0, q0, step=1e-4, every=0.1)
    assert run["on.fz"][-1] == pytest.approx(3.0 * 9.81, rel=1e-3)
    assert run["block.z"][-1] == pytest.approx(0.3 - 3.0 * 9.81 / (4 * 2e4), abs=1e-5)
    assert abs(run["block.x"][-1] - 0.6) < 1e-3


def test_a_grid_is_bilinear() -> None:
    h = grid([0.0, 1.0, 3.0], [0.0, 2.0], [[0.0, 1.0], [2.0, 3.0], [4.0, 9.0]])
    assert [float(h(x, y)) for x, y in ((0.5, 0.0), (2.0, 2.0), (0.5, 1.0), (-5.0, -5.0), (9.0, 9.0))] == [
        1,
        6,
        1.5,
        0,
        9,
    ]
    with pytest.raises(InputError, match="must increase"):
        grid([0.0, 0.0], [0.0, 1.0], np.zeros((2, 2)))
    with pytest.raises(InputError, match="shape"):
        grid([0.0, 1.0], [0.0, 1.0], np.zeros((3, 2)))


def ball(radius: float = 0.1, gravity: tuple[float, float, float] = (0, 0, -9.81)) -> bc.Mechanism:
    b = bc.Builder("ball", gravity=gravity)
    b.body("ball", mass=1.0, inertia=(0.4 * radius**2,) * 3)
    b.joint("free", "floating", "ground", "ball")
    return b.build()


def test_a_thrown_ball_slides_until_it_rolls() -> None:
    """v = 5/7 v0, from t = 2 v0 / (7 mu g) on."""
    m, mu, v0, k = ball(), 0.3, 2.0, 2e5
    e = Contact("c", "ground", "ball", Plane(), Sphere(0.1), stiffness=k, friction=mu, slow=1e-3)
    q0 = m.neutral()
    q0[2] = 0.1 - 9.81 / k
    run = bc.simulate(bc.system(m, elements=[e]), 0.3, q0, [v0, 0, 0, 0, 0, 0], step=1e-4, integrator="rodas4")
    assert abs(run["ball.speed"][-1] / (5 / 7 * v0) - 1) < 1e-3
    slip = run["ball.speed"] - 0.1 * np.linalg.norm(run.v[:, 3:], axis=1)
    rolls = 2 * v0 / (7 * mu * 9.81)
    assert abs(run.t[np.argmax(slip < 3e-3)] - rolls) < 1e-3
    before = run.t < 0.9 * rolls
    np.testing.assert_allclose(run["ball.speed"][before], (v0 - mu * 9.81 * run.t)[before], rtol=1e-3)


@pytest.mark.parametrize("exponent", [1.0, 1.5])
@pytest.mark.parametrize("speed", [0.1, 1.0, 3.0])
def test_a_bouncing_balls_restitution(exponent: float, speed: float) -> None:
    m = ball(gravity=(0, 0, 0))
    e = Contact("c", "ground", "ball", Plane(), Sphere(0.1), 1e6, 0.2, 0.0, exponent=exponent)
    q0 = m.neutral()
    q0[2] = 0.1001
    run = bc.simulate(bc.system(m, elements=[e]), round(0.02 + 1e-3 / speed, 5), q0, [0, 0, -speed, 0, 0, 0], step=1e-5)
    left = float(run.v[-1, 2])
    assert abs(left / speed - restitution_of(0.2, speed)) < 1e-3
    if speed * 0.2 < 0.05:
        assert abs(left / speed - (1 - 2 / 3 * 0.2 * speed)) < 1e-3  # as printed in the source


def block(angle: float) -> bc.Mechanism:
    """A block that slides and sinks without rotation."""
    b = bc.Builder("block", gravity=(9.81 * math.sin(angle), 0, -9.81 * math.cos(angle)))
    b.body("carriage")
    b.body("block", mass=1.0)
    b.joint("x", "prismatic", "ground", "carriage", axis=(1, 0, 0))
    b.joint("z", "prismatic", "carriage", "block", axis=(0, 0, 1))
    return b.build()


@pytest.mark.parametrize("angle", [0.35, 0.55])
def test_a_block_on_a_slope(angle: float) -> None:
    """Below the friction angle the block sticks, for 100 s with bristles; above it, it slides with Coulomb friction."""
    m, mu = block(angle), 0.5
    e = Contact("c", "ground", "block", Plane(), Sphere(0.1), 2e4, 2.0, mu, bristles=5e3)
    s = bc.system(m, elements=[e])
    sticks = math.tan(angle) < mu
    start = [0.0, 0.1 - 9.81 * math.cos(angle) / 2e4]
    run = bc.simulate(s, 100.0 if sticks else 1.0, start, integrator="rodas4", every=0.5, tolerance=1e-7)
    x, v = run["block.x"], run["x.v"]
    if sticks:
        assert abs(x[-1] - x[2]) < 1e-5  # after it has settled
        assert abs(x[-1]) < 1e-3
    else:
        assert abs((v[-1] - v[1]) / 0.5 / (9.81 * (math.sin(angle) - mu * math.cos(angle))) - 1) < 1e-4


def test_without_bristles_a_block_creeps_at_the_given_speed() -> None:
    e = Contact("c", "ground", "block", Plane(), Sphere(0.1), 2e4, 2.0, 0.5, slow=1e-3)
    start = [0.0, 0.1 - 9.81 * math.cos(0.35) / 2e4]
    run = bc.simulate(bc.system(block(0.35), elements=[e]), 2.0, start, integrator="rodas4", every=0.5)
    r = math.tan(0.35) / 0.5  # fraction of the available friction
    assert abs(run["block.speed"][-1] / (1e-3 * r / math.sqrt(1 - r * r)) - 1) < 1e-3


def test_a_box_lands_on_its_corners() -> None:
    b = bc.Builder("box")
    b.body("box", mass=1.0, inertia=(0.002,) * 3)
    b.joint("free", "floating", "ground", "box")
    m = b.build()
    q0 = m.neutral()
    q0[2] = 0.2
    q0[3:] = np.array([0.1, 0.05, 0.0, 1.0]) / math.sqrt(1.0125)
    e = Contact("c", "ground", "box", Plane(), Box((0.2, 0.2, 0.05)), 2e4, 2.0, 0.5)
    run = bc.simulate(bc.system(m, elements=[e]), 2.0, q0, step=2e-4)
    assert abs(run["box.z"][-1] - (0.025 - 9.81 / 8e4)) < 1e-5
    assert abs(run["c.fz"][-1] - 9.81) < 1e-2


def crate(size: Any, below: Any, angle: float = 0.0) -> bc.Record:
    """A box released just above the middle of another box on the ground, rotated about the vertical."""
    b = bc.Builder("crate")
    b.body("crate", mass=1.0, inertia=(0.01,) * 3)
    b.joint("free", "floating", "ground", "crate")
    m = b.build()
    q0 = m.neutral()
    q0[2] = 0.5 * (size[2] + below[2]) + 0.001
    q0[5:7] = math.sin(0.5 * angle), math.cos(0.5 * angle)
    e = Contact("c", "ground", "crate", Box(below), Box(size), 2e4, 20.0)
    return bc.simulate(bc.system(m, elements=[e]), 1.0, q0)


@pytest.mark.parametrize("scale", [0.3, 0.99, 1.0, 1.01, 3.0])
@pytest.mark.parametrize("angle", [0.0, math.pi / 4])
def test_box_rests_on_a_box_of_any_size(scale: float, angle: float) -> None:
    below = (0.4, 0.4, 0.4)
    size = tuple(scale * x for x in below)
    run = crate(size, below, angle)
    assert abs(run["crate.z"][-1] - 0.5 * (size[2] + below[2])) < 1e-3


def lying(yaw: float) -> list[float]:
    """Quaternion that turns z to the horizontal direction `yaw`."""
    h = math.sqrt(0.5)
    return [-h * math.sin(0.5 * yaw), h * math.cos(0.5 * yaw), h * math.sin(0.5 * yaw), h * math.cos(0.5 * yaw)]


def random_shape(kind: type, rng: np.random.Generator) -> Any:
    sizes = rng.uniform(0.1, 0.6, 3).tolist()
    if kind is Box:
        return Box(tuple(sizes))
    return Sphere(0.3 * sizes[0]) if kind is Sphere else kind(0.2 * sizes[0], 2.0 * sizes[1])


def released(below: Any, shape: Any, rng: np.random.Generator) -> tuple[bc.Record, float]:
    """A shape released 1 mm above another with its centre of mass above it, and its height then."""
    is_round, is_box = isinstance(below, Sphere | Capsule), isinstance(shape, Box)
    top = 0.5 * below.size[2] if isinstance(below, Box) else below.radius if is_round else 0.0
    half = 0.5 * shape.size[2] if is_box else shape.radius
    w = np.array([*shape.size]) if is_box else np.array([*[1.7 * shape.radius] * 2, getattr(shape, "length", 0.0)])
    inertia = ((w @ w - w * w) / 12.0 + 1e-4).tolist()
    b = bc.Builder("drop")
    b.body("shape", mass=1.0, inertia=inertia)
    yaw, z, frame = float(rng.uniform(0.0, math.pi)), top + half + 1e-3, "ground"
    if is_round:  # nothing balances on it, so that the motion is guided
        R = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # the axis of the capsule below lies along x
        b.frame("below", "ground", rotation=R if isinstance(below, Capsule) else np.eye(3))
        tip = np.eye(3) if is_box else R
        b.frame("tip", "shape", rotation=tip)
        b.joint("free", "prismatic", "ground", "shape", axis=(0, 0, 1))
        m, q0, frame, ours = b.build(), [z], "below", "tip"
    else:
        b.joint("free", "floating", "ground", "shape")
        m, ours = b.build(), "shape"
        room = [0.4 * x for x in below.size[:2]] if isinstance(below, Box) else [1.0, 1.0]
        turn = [0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw)] if is_box else lying(yaw)
        q0 = [*(x * float(rng.uniform(-1.0, 1.0)) for x in room), z, *turn]
    e = Contact("c", frame, ours, below, shape, damping=10.0)
    return bc.simulate(bc.system(m, elements=[e]), 0.3, q0), z


PAIRS = [(a, b) for a, others, _ in SHAPE_PAIRS for b in (others if isinstance(others, tuple) else (others,))]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(kind.__name__ for kind in pair))
@pytest.mark.parametrize("seed", [0, 1])
def test_shape_released_above_another_of_any_size_is_held(pair: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind, other = pair
    below = Plane() if kind is Plane else Terrain(lambda x, y: 0.0 * x) if kind is Terrain else random_shape(kind, rng)
    run, z = released(below, random_shape(other, rng), rng)
    assert abs(run["shape.z"][-1] - (z - 1e-3)) < 2e-3


@pytest.mark.parametrize("length", [0.2, 0.3, 1.0])
def test_rod_across_a_narrow_table_is_held(length: float) -> None:
    m = ball()
    q0 = [0.03, 0.01, 0.1, *lying(math.pi / 2)]
    e = Contact("c", "ground", "ball", Box((0.2, 0.2, 0.1)), Capsule(0.05, length))
    assert bc.simulate(bc.system(m, elements=[e]), 0.3, q0)["ball.z"][-1] == pytest.approx(0.1, abs=1e-3)


def test_closest_point_of_a_capsule_to_a_box_is_that_of_a_search() -> None:
    """The gap of its barrel differs by at most 1% of its radius."""
    rng, s = np.random.default_rng(4), np.linspace(-0.5, 0.5, 2001)
    box, rod, touched = Box((0.3, 0.4, 0.5)), Capsule(0.1, 0.9), 0
    for _ in range(200):
        X = np.array(moving(rng)[0], float)
        axis = X[:3, 3] + 0.9 * s[:, None] * X[:3, 2]
        apart = np.linalg.norm(np.maximum(np.abs(axis) - 0.5 * np.array(box.size), 0.0), axis=1).min()
        gap = min(float(x.gap) for x in contact_points(box, rod, X))
        if 0.02 < apart < 0.2:
            touched += 1
            assert -1e-6 < gap - (apart - 0.1) < 0.1 * 0.1
    assert touched > 10


def support_depth(half: Array, p: Array, u: Array, h: float, n: Array) -> Array:
    """Return how far a segment must move along each direction n, (k, 3), until a box is behind it."""
    depth: Array = np.abs(n) @ half - n @ p + h * np.abs(n @ u)
    return depth


def test_a_capsule_leaves_a_box_on_the_shortest_way() -> None:
    """With its axis inside the box: no direction is shorter, and along the found one the axis leaves."""
    rng = np.random.default_rng(8)
    for k in range(200):
        size, h, r = rng.uniform(0.1, 1.0, 3), rng.uniform(0.1, 1.0), rng.uniform(0.02, 0.1)
        X = moving(rng)[0]
        if k % 3 == 0:
            X[:3, 2] = np.eye(3)[k // 3 % 3] + 1e-3 * rng.normal(size=3)
            X[:3, 2] /= np.linalg.norm(X[:3, 2])
        X[:3, 3] = rng.uniform(-0.5, 0.5, 3) * size - rng.uniform(-h, h) * X[:3, 2]
        touch = contact_points(Box(tuple(size)), Capsule(r, 2.0 * h), X)[-1]
        arguments = 0.5 * size, X[:3, 3].astype(float), X[:3, 2].astype(float), h
        n, way = np.array(touch.normal, float), -float(touch.gap) - r
        random = rng.normal(size=(2000, 3))
        random /= np.linalg.norm(random, axis=1)[:, None]
        assert way <= support_depth(*arguments, random).min() + 1e-9
        assert way == pytest.approx(float(support_depth(*arguments, n)), abs=0.011 * r)
        assert np.linalg.norm(n) == pytest.approx(1.0)


@pytest.mark.parametrize("offset", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("tilt", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("bar", [Capsule(0.02, 1.0), Box((0.1, 0.1, 1.0))], ids=lambda s: type(s).__name__)
def test_energy_of_a_contact_rises_with_its_depth(bar: Any, tilt: float, offset: float) -> None:
    """A bar is lowered onto a table, away from the middle of the bar, and from that of the edges of the table."""
    e = Contact("c", "ground", "bar", Box((0.2, 0.6, 0.6)), bar, 1e4, friction=0.0)
    z, radius = np.array([math.cos(tilt), 0.0, math.sin(tilt)]), bar.radius if isinstance(bar, Capsule) else 0.05
    X = np.eye(4)
    X[:3, :3] = np.stack([np.cross([0.0, 1.0, 0.0], z), [0.0, 1.0, 0.0], z], axis=1)
    touching = 0.3 + radius / math.cos(tilt) + 0.1 * math.tan(tilt)  # height of the bar's axis above the table's middle
    energies = []
    for depth in np.linspace(0.3 * radius, 0.08 if isinstance(bar, Capsule) else 0.045, 60):
        X[:3, 3] = np.array([0.0, 0.15, touching - depth]) + offset * z / z[0]
        energies.append(float(e.energy(0.0, X, [])))
    assert np.all(np.diff(energies) > 0.0)


@pytest.mark.parametrize(("bar", "speed"), [(Capsule(0.02, 1.0), 6.0), (Box((0.1, 0.1, 1.0)), 4.0)])
@pytest.mark.parametrize("tilt", [0.0, 0.02, 0.3])
def test_hard_impact_away_from_the_middle_bounces(bar: Any, speed: float, tilt: float) -> None:
    """A guided bar hits a table several of its radii deep, and returns with its speed; it once passed through."""
    b = bc.Builder("bar", gravity=(0, 0, 0))
    b.body("bar", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", "ground", "bar", axis=(0, 0, 1))
    z = np.array([math.cos(tilt), 0.0, math.sin(tilt)])
    R = np.stack([np.cross([0.0, 1.0, 0.0], z), [0.0, 1.0, 0.0], z], axis=1)
    b.frame("shape", "bar", point=(0.3, 0.15, 0.3 * math.tan(tilt)), rotation=R)
    e = Contact("c", "ground", "shape", Box((0.2, 0.6, 0.6)), bar, 2e4, 0.0, 0.0)
    how: Any = {"v0": [-speed], "step": 1e-5, "keep": "final", "solver": bc.Solver(resolve=0.0)}
    run = bc.simulate(bc.system(b.build(), elements=[e]), 0.1, [0.45], **how)
    assert float(run["z.v"][-1]) == pytest.approx(speed, rel=1e-2)


@pytest.mark.parametrize("shape", BODIES[1:], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("keep", ["rows", "final"])
def test_bump_of_a_terrain_between_contact_points_is_a_warning(shape: Any, keep: str) -> None:
    """A bump between the ends or corners of a shape meets no force."""
    bump = Terrain(lambda x, y: 0.3 * bc.exp(-100.0 * (x * x + y * y)))
    m = ball()
    half = 0.45 if isinstance(shape, Box) else shape.radius
    start = lying(0.0) if not isinstance(shape, Box) else [0.0, 0.0, 0.0, 1.0]
    s = bc.system(m, elements=[Contact("c", "ground", "ball", bump, shape)])
    with pytest.warns(RuntimeWarning, match=r'"c": at t = .*the terrain on "ground" reaches .* between its contact'):
        bc.simulate(s, 0.5, [0.0, 0.0, 0.31 + half, *start], keep=keep)
    with pytest.raises(InputError, match=r"inside each other.*c.*"):
        bc.simulate(s, 0.5, [0.0, 0.0, half, *start])


def test_overlap_of_boxes_is_that_of_convex_sets() -> None:
    """Boxes overlap if a point is in both, and no way shorter than the overlap separates them."""
    scipy = pytest.importorskip("scipy")
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = random_shape(Box, rng), random_shape(Box, rng)
        pose = np.eye(4)
        pose[:3, :3] = scipy.spatial.transform.Rotation.from_quat(rng.normal(size=4)).as_matrix()
        pose[:3, 3] = rng.uniform(-0.5, 0.5, 3)
        depth = box_overlap(a, b, pose)
        # x in a, and R^T (x - p) in b
        R, p = pose[:3, :3], pose[:3, 3]
        rows = np.concatenate([np.eye(3), -np.eye(3), R.T, -R.T])
        limits = np.concatenate(
            [*[0.5 * np.array(a.size)] * 2, 0.5 * np.array(b.size) + R.T @ p, 0.5 * np.array(b.size) - R.T @ p]
        )
        common = scipy.optimize.linprog(np.zeros(3), rows, limits, bounds=(None, None)).status == 0
        assert common == (depth > 0.0)
        way = rng.normal(size=3)
        pose[:3, 3] += 0.999 * depth * way / np.linalg.norm(way)
        assert box_overlap(a, b, pose) > 0.0 or not depth


@pytest.mark.parametrize("keep", ["rows", "final"])
def test_boxes_inside_each_other_between_contact_points_are_a_warning(keep: str) -> None:
    s, q0, v0 = past_an_edge()
    with pytest.warns(RuntimeWarning, match=r'"c": at t = .* s the boxes on "ground" and "ball" are .* inside each'):
        run = bc.simulate(s, 0.2, q0, v0, keep=keep, step=1e-3)
    if keep == "rows":
        np.testing.assert_allclose(run.q[-1, 3:], run.q[0, 3:], atol=1e-9)  # no force has acted
        with pytest.raises(InputError, match=r"inside each other.*c.*"):
            bc.simulate(s, 0.2, run.q[-1])


def test_lanes_are_runs() -> None:
    m = ball()
    q0 = np.tile(m.neutral(), (8, 1))
    q0[:, 2] = np.linspace(0.08, 0.3, 8)
    s = bc.system(m, elements=[Contact("c", "ground", "ball", WAVES, Sphere(0.1))])
    run = bc.simulate(s, 0.3, q0, step=2e-4, solver=bc.Solver(resolve=0.0))
    alone = bc.simulate(s, 0.3, q0[5], step=2e-4, solver=bc.Solver(resolve=0.0))
    np.testing.assert_allclose(run.q[5], alone.q, atol=1e-12)
    assert np.isfinite(run.q).all()


def test_feet_and_bad_input() -> None:
    m = ball()
    assert [c.name for c in feet(["ball"], friction=0.4)] == ["ball.contact"]
    assert feet(["ball"], friction=0.4)[0].friction == 0.4
    for make, words in (
        (lambda: Contact("c", "a", "b", Sphere(0.1), Plane()), "in this order"),
        (lambda: Contact("c", "a", "b", Plane(), 0.1), "not a shape"),
        (lambda: Contact("c", "a", "b", Plane(), Sphere(0.1), exponent=1.3), "Hertz"),
        (lambda: Contact("c", "a", "b", Plane(), Sphere(0.1), stiffness=0.0), "stiffness"),
        (lambda: grid([0, 1], [0, 1], [[0, 0], [np.nan, 0]]), r"heights\[1\]\[0\] is nan"),
        (lambda: Sphere(0.0), "above zero"),
        (lambda: Box((1.0, -1.0, 1.0)), "above zero"),
    ):
        with pytest.raises(InputError, match=words):
            make()
    inside = bc.system(m, elements=[Contact("c", "ground", "ball", Plane(), Sphere(0.1))])
    with pytest.raises(InputError, match=r"inside each other.*c.*0.1 m"):
        bc.simulate(inside, 0.1, step=1e-4)


@pytest.fixture(scope="module")
def ball_on_floor() -> bc.System:
    """A ball whose neutral position is inside the floor."""
    return bc.system(ball(), elements=[Contact("c", "ground", "ball", Plane(), Sphere(0.1))])


@pytest.mark.parametrize(
    ("heights", "stops"),
    [
        ([0.3, -0.2], ["end", "refused"]),
        ([-0.2, 0.3], ["refused", "end"]),
        ([-0.2, -0.3], ["refused", "refused"]),
    ],
)
def test_study_of_starts_refuses_only_those_inside_the_floor(
    ball_on_floor: bc.System, heights: list[float], stops: list[str], tmp_path: Path
) -> None:
    study = bc.study(
        ball_on_floor, {"free.z.q": heights}, seconds=0.01, step=1e-3, keep="final", to=tmp_path / "s", workers=1
    )
    assert study.table().to_pydict()["stop"] == stops


def test_study_of_a_start_inside_the_floor_raises(ball_on_floor: bc.System, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="inside each other"):
        bc.study(ball_on_floor, {"free.0.v": [0.3, 0.2]}, seconds=0.01, step=1e-3, to=tmp_path / "s", workers=1)


def test_minimum_over_starts_above_the_floor_is_found(ball_on_floor: bc.System) -> None:
    over = {"free.z.q": bc.uniform(0.2, 0.5)}
    found = bc.minimize(ball_on_floor, "max(free.z.q)", over, seconds=0.01, step=1e-3, tries=2)
    assert found.values["free.z.q"] == pytest.approx(0.2, abs=1e-3)
    assert math.isnan(found.before)
    with pytest.raises(InputError, match="inside each other"):
        bc.minimize(ball_on_floor, "max(free.z.q)", {"ball.mass": bc.uniform(1.0, 2.0)}, seconds=0.01, step=1e-3)


def test_fit_of_a_start_begins_with_its_first_measurement(ball_on_floor: bc.System) -> None:
    t = np.arange(0.0, 0.03, 1e-3)
    z = 0.5 - 0.5 * 9.81 * t * t
    fit = bc.fit(ball_on_floor, {"t": t, "free.z.q": z}, ["free.z.q"], step=1e-3)
    assert fit.values[0] == pytest.approx(0.5, abs=1e-6)
    with pytest.raises(InputError, match=r"begin: .*inside each other.*give begin="):
        bc.fit(ball_on_floor, {"t": t, "ball.z": z}, ["free.z.q"], step=1e-3)


@pytest.mark.parametrize("batch", [None, 3])
def test_stepper_refuses_starts_inside_the_floor(ball_on_floor: bc.System, batch: int | None) -> None:
    env = bc.stepper(ball_on_floor, batch, step=1e-3)
    with pytest.raises(InputError, match=r"step: start.*inside each other.*reset"):
        env.step()
    with pytest.raises(InputError, match=r"start.*inside each other.*0.15 m"):
        env.reset(start={"free.z.q": -0.05})
    env.reset(start={"free.z.q": 0.5})
    above = env.snapshot()
    assert np.all(env.step()[..., 2] < 0.5)
    env.reset()
    with pytest.raises(InputError, match="inside each other"):
        env.step()
    env.restore(above)
    env.step()
    with pytest.warns(RuntimeWarning, match=r"stepper: start.*inside each other"):
        bc.stepper(ball_on_floor, batch, step=1e-3, start=lambda r: {"free.z.q": r.uniform(-0.3, -0.2)})


@pytest.mark.parametrize("kind", ["bushing", "cable", "belt"])
def test_a_damping_that_a_step_cannot_follow(kind: str) -> None:
    """The error names the damping's time constant; with the proposed step the motion decays."""
    m = ball(gravity=(0, 0, 0))
    start: dict[str, Any] = {"q0": [*[2.0, 0, 0], 0, 0, 0, 1.0], "v0": [1.0, 0, 0, 0, 0, 0]}
    e: Any = Bushing("damper", "ground", "ball", (0.0,) * 6, (1e3, 0.0, 0.0, 0.0, 0.0, 0.0))
    if kind == "cable":
        e = Cable("damper", "ground", "ball", 1.0, 1.0, 1e3)
    if kind == "belt":
        b = bc.Builder("pulleys")
        for name in ("one", "two"):
            b.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))
            b.joint(name, "revolute", "ground", name)
        m, start = b.build(), {"v0": [1.0, 0.0]}
        e = Belt("damper", ("one", "two"), 1.0, 1.0, 1.0, 250.0)
    s = bc.system(m, elements=[e])
    if kind == "cable":  # it acts only part of the time
        with pytest.warns(RuntimeWarning, match=r'"damper" damps what it moves within 0.001 s.*step=0.002'):
            bc.simulate(s, 0.1, **start, step=1e-2)
    else:
        with pytest.raises(InputError, match=r'"damper" damps what it moves within 0.001 s.*step=0.002'):
            bc.simulate(s, 0.1, **start, step=1e-2)
    run = bc.simulate(s, 0.1, **start, step=2e-3)
    assert np.abs(run.v).max() <= 1.0


def test_a_stiffness_that_a_step_cannot_follow() -> None:
    """The error names the frequency and proposes a step that resolves it.

    An element that acts only part of the time causes a warning instead.
    """
    m = ball(gravity=(0, 0, 0))
    rubber = Bushing("rubber", "ground", "ball", (1e8, 1.0, 1.0, 1.0, 1.0, 1.0))
    with pytest.raises(InputError, match=r'"rubber" oscillates at 1592 Hz.*step=0.0002') as error:
        bc.simulate(bc.system(m, elements=[rubber]), 1.0, step=1e-2)
    assert "rodas4" in str(error.value)
    with pytest.warns(RuntimeWarning, match="is not resolved"):  # but the motion stays bounded
        run = bc.simulate(bc.system(m, elements=[rubber]), 0.1, v0=[1, 0, 0, 0, 0, 0], step=2e-4)
    assert np.abs(run["ball.x"]).max() < 1.0 / 1e4 * 1.01
    hard = Contact("c", "ground", "ball", Plane(), Sphere(0.1), stiffness=1e8)
    q0 = m.neutral()
    q0[2] = 1.0
    with pytest.warns(RuntimeWarning, match="1592 Hz"):
        bc.simulate(bc.system(m, elements=[hard]), 0.1, q0, step=1e-2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sphere(math.inf), "Sphere: radius is inf"),
        (lambda: Sphere("a"), "Sphere: radius is 'a'"),  # type: ignore[arg-type]
        (lambda: Sphere(None), "Sphere: radius is None"),  # type: ignore[arg-type]
        (lambda: Capsule(0.1, -1.0), "Capsule: length is -1"),
        (lambda: Box((1.0, 2.0)), "Box: size is .*three lengths"),  # type: ignore[arg-type]
        (lambda: Box(3.0), "Box: size is 3"),  # type: ignore[arg-type]
        (lambda: Box((1.0, math.nan, 1.0)), "Box: size is"),
        (lambda: Terrain(3.0), "Terrain: height is 3.0; expected a function"),  # type: ignore[arg-type]
        (lambda: Contact("floor", "ground", "b", Plane(), Sphere(0.1), "x"), "Contact \"floor\": stiffness is 'x'"),  # type: ignore[arg-type]
        (lambda: Contact("floor", "ground", "b", Plane(), Sphere(0.1), 1e4, friction=None), "friction is None"),  # type: ignore[arg-type]
    ],
)
def test_sizes_and_numbers_that_cannot_be(make: Any, words: str) -> None:
    with pytest.raises(bc.InputError, match=words):
        make()


def machine_on_floor(height: float) -> Machine:
    """Return a machine that starts at `height`: a ball with one lever, whose neutral position is inside the floor."""
    s = bc.system(
        ball(),
        control=lambda t, q, v, x, u: [0.0, 0.0, u["lift"], 0.0, 0.0, 0.0],
        inputs={"lift": 0.0},
        elements=[Contact("c", "ground", "ball", Plane(), Sphere(0.1))],
    )
    lever = Lever("lift", "N", -1.0, 1.0)
    return Machine(s, (lever,), (), start=(0.0, 0.0, height, 0.0, 0.0, 0.0, 1.0))


def drive_in(machine: Machine, begin: Callable[[Drive, list[float]], Any]) -> None:
    drive = Drive(machine.system, 1000.0)
    begin(drive, list(machine.start or ()))
    drive.stop()


def start_after_reset(drive: Drive, q0: list[float]) -> None:
    drive.reset(q0)
    drive.start()


DOORS: dict[str, Callable[[Machine, Path], Any]] = {
    "simulate": lambda m, to: bc.simulate(m.system, 0.01, m.start, step=1e-3),
    "adaptive": lambda m, to: bc.simulate(m.system, 0.01, m.start, integrator="dopri5"),
    "gradient": lambda m, to: bc.gradient(m.system, 0.01, m.start, step=1e-3, final="free.z.q"),
    "stepper": lambda m, to: bc.stepper(m.system, step=1e-3).reset(start=list(m.start or ()) + [0.0] * 6),
    "drive": lambda m, to: bc.drive(m.system, 1000.0, 0.01, q0=m.start),
    "drive that is reset": lambda m, to: drive_in(m, start_after_reset),
    "session": lambda m, to: Session(m, lambda *given: Drive(*given)).drive.stop(),
    "page": lambda m, to: worker_data(m, Simulator(m.system, solver=bc.Solver(step=1e-3)), 1e3),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_a_start_inside_the_floor(door: str, tmp_path: Path) -> None:
    DOORS[door](machine_on_floor(0.5), tmp_path)
    with pytest.raises(InputError, match=r'bodies start inside each other: contact "c", "ball" in "ground" by 0.14 m'):
        DOORS[door](machine_on_floor(-0.04), tmp_path)


@pytest.mark.parametrize("door", ["drive", "stepper", "export", "fmu"])
def test_a_state_of_rest_inside_the_floor(door: str, tmp_path: Path) -> None:
    """Steps from it are refused; an importer of an export sets another one, after a warning."""
    s = machine_on_floor(0.5).system
    if door in ("export", "fmu"):
        with pytest.warns(RuntimeWarning, match="export: state of rest: bodies start inside each other.*set another"):
            bc.export(s, tmp_path / "it", **({"to": "fmu3"} if door == "fmu" else {}), step=1e-3)
        return
    plant: Any = bc.stepper(s, step=1e-3) if door == "stepper" else Drive(s, 1000.0)
    with pytest.raises(InputError, match="inside each other"):
        plant.step([0.0]) if door == "stepper" else plant.start()


@pytest.mark.parametrize("door", ["simulate", "gradient", "stepper", "drive"])
def test_every_door_refuses_a_start_beside_a_prescribed_motion(door: str, tmp_path: Path) -> None:
    """Only accelerations are imposed, so that the motion would be beside the prescribed one for ever."""
    b = bc.Builder("slide", gravity=(0, 0, 0))
    b.body("block", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("x", "prismatic", "ground", "block", axis=(1, 0, 0))
    s = bc.system(b.build(), motions={"x": lambda t: 0.3 + bc.sin(t) * bc.sin(t)})
    doors: dict[str, Callable[[list[float]], Any]] = {
        "simulate": lambda q: bc.simulate(s, 0.01, q, step=1e-3),
        "gradient": lambda q: bc.gradient(s, 0.01, q, step=1e-3, final="x.q"),
        "stepper": lambda q: bc.stepper(s, step=1e-3).reset(start={"x.q": q[0]}),
        "drive": lambda q: bc.drive(s, 1000.0, 0.01, q0=q),
    }
    doors[door]([0.3])
    with pytest.raises(InputError, match='not on the motion of "x"'):
        doors[door]([0.4])


def past_an_edge() -> tuple[bc.System, list[float], list[float]]:
    """A plank whose centre is beside a box; it moves into the box past the edges of the face towards that centre."""
    x = [[-0.4326, -0.9016, 0.007], [0.2917, -0.1473, -0.9451], [0.8531, -0.4068, 0.3267]]
    turn = pytest.importorskip("scipy.spatial.transform").Rotation.align_vectors(x, np.eye(3))[0]
    inside, way = np.array([-0.4595, -0.5877, 0.0097]), np.array([0.3356, 0.223, -0.9152])
    boxes = Contact("c", "ground", "ball", Box((0.2, 0.2, 0.1)), Box((2.0, 0.1, 0.1)))
    start, velocity = [*(inside + 0.2 * way), *turn.as_quat()], [*turn.inv().apply(-way), 0.0, 0.0, 0.0]
    return bc.system(ball(gravity=(0, 0, 0)), elements=[boxes]), start, velocity


def on_a_bump() -> tuple[bc.System, list[float], list[float]]:
    """A capsule that lies across a bump of a terrain, which its ends do not touch."""
    bump = Terrain(lambda x, y: 0.3 * bc.exp(-100.0 * (x * x + y * y)))
    s = bc.system(ball(), elements=[Contact("c", "ground", "ball", bump, Capsule(0.2, 0.7))])
    return s, [0.0, 0.0, 0.51, *lying(0.0)], [0.0] * 6


@pytest.mark.parametrize(
    ("plant", "seconds", "text"),
    [
        (on_a_bump, 0.5, 'the terrain on "ground" reaches .* between its contact'),
        (past_an_edge, 0.2, 'the boxes on "ground" and "ball" are .* inside each'),
    ],
)
@pytest.mark.parametrize("door", ["study", "stepper", "batch of steppers", "drive"])
def test_every_door_warns_of_shapes_inside_each_other(
    door: str, plant: Any, seconds: float, text: str, tmp_path: Path
) -> None:
    s, q0, v0 = plant()
    named_v0 = dict(zip(s.mechanism.columns[1], v0, strict=True))

    def many_steps(batch: int | None) -> None:
        env = bc.stepper(s, batch, every=0.01, step=1e-3)
        env.reset(start=[*q0, *v0])
        for _ in range(round(seconds / 0.01)):
            env.step()

    doors: dict[str, Callable[[], Any]] = {
        "study": lambda: bc.study(
            s,
            {"free.2.v": [v0[2], v0[2] - 1e-3]},
            q0=q0,
            v0=named_v0,
            seconds=seconds,
            step=1e-3,
            to=tmp_path / "s",
            workers=1,
        ),
        "stepper": lambda: many_steps(None),
        "batch of steppers": lambda: many_steps(3),
        "drive": lambda: bc.drive(s, 1000.0, seconds, q0=q0, v0=v0),
    }
    with pytest.warns(RuntimeWarning, match=rf'"c": at t = .*{text}') as w:
        doors[door]()
    assert len(w) == 1
