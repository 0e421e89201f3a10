"""excavator_tracked stands on its tracks, tips at its static limit, slips at the friction limit, and travels."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from test_elements import moving, rate

import bellcrank as bc
from bellcrank.excavators.digging_forces import Stance
from bellcrank.excavators.geometry import Linkage
from bellcrank.excavators.linkage_machine import tracked
from bellcrank.excavators.linkage_system import (
    CONTACT_POINTS,
    CONTACT_STIFFNESS,
    SPHERE_RADIUS,
    TRACK_HALF_LENGTH,
    TRACK_SIDES,
    Belt,
    footing,
)
from bellcrank.forces import Plane, Sphere
from bellcrank.sim.stepper.stepper_factory import stepper

TRACKS = [f"track.{name}" for name, _ in CONTACT_POINTS]
GAUGE = TRACK_SIDES[0] + TRACK_SIDES[1]


class Parked:
    """The machine with its sticks at rest, over ground that is not dug."""

    def __init__(self) -> None:
        self.machine = tracked()
        self.names = self.machine.mechanism.columns[0]

    @cached_property
    def plant(self) -> Any:
        return stepper(self.machine.system, every=0.02, step=5e-4, integrator="rk4", form="projected")

    def __call__(self, seconds: float, **tuned: float) -> dict[str, float]:
        """Return q after the given time."""
        start = zip(self.names, self.machine.start, strict=True)  # type: ignore[arg-type]
        self.plant.reset(start={f"{n}.q": float(x) for n, x in start})
        still = {"tracks.left": 0.0, "tracks.right": 0.0, "load.extra": 0.0, "ground.height": -100.0}
        self.plant.tune(still | {name.replace("_", "."): x for name, x in tuned.items()})
        u = np.array(self.machine.first(), float)
        for _ in range(round(seconds / 0.02)):
            self.plant.step(u)
        y = np.asarray(self.plant.state).reshape(-1)
        return dict(zip(self.names, map(float, y), strict=False))


@pytest.fixture(scope="module")
def parked() -> Parked:
    return Parked()


def tilt(q: dict[str, float]) -> float:
    return 2.0 * math.hypot(q["carriage.qx"], q["carriage.qy"])


def heading(q: dict[str, float]) -> float:
    return 2.0 * math.atan2(q["carriage.qz"], q["carriage.qw"])


def test_machine_stands_without_creep(parked: Parked) -> None:
    """Its weight acts on eight springs; after two seconds it is at its initial position."""
    mass = sum(float(b.mass) for b in parked.machine.mechanism.at().bodies)
    q = parked(2.0)
    assert q["carriage.z"] == pytest.approx(-mass * 9.81 / (8 * CONTACT_STIFFNESS), rel=0.02)
    assert math.hypot(q["carriage.x"], q["carriage.y"]) < 1e-3
    assert tilt(q) < 0.01


def test_the_gauge_is_where_the_tracks_carry(parked: Parked) -> None:
    """The gauge is the centre of pressure by weights and arms, and equals that of the springs under the tracks."""
    m, plant = parked.machine, parked.plant
    u = np.array(m.first(), float)
    parked(1.0)
    for k in range(351):  # a payload that grows by a tonne per second
        plant.tune({"load.extra": 20.0 * k})
        plant.step(u)
        if k not in (100, 200, 350):
            continue
        q = np.asarray(plant.state).reshape(-1)[: m.mechanism.nq].copy()
        now = m.mechanism.at({"load.extra": 20.0 * k})
        stance = Stance(now, {}, footing(now, Linkage.of_zoo()), "carriage")
        places = np.array([m.mechanism.pose(q, name)[:3, 3] for name in TRACKS])
        pressed = CONTACT_STIFFNESS * np.maximum(SPHERE_RADIUS - places[:, 2], 0.0)
        centre = float(pressed @ places[:, 0] / pressed.sum()) - q[0]
        gauge = float(stance.utilisation(0.0, list(q), [0.0] * m.mechanism.nv)[0])
        assert gauge == pytest.approx(abs(centre) / TRACK_HALF_LENGTH, abs=0.02)
    assert 0.6 < gauge < 1.0
    assert pressed.min() == 0.0  # its rear has already lifted off


def test_heavy_load_tips_the_machine(parked: Parked) -> None:
    """A weight that falls into the bucket tips it; a third of that weight does not."""
    assert tilt(parked(3.0, load_extra=4000.0)) < 0.03
    assert tilt(parked(3.0, load_extra=14000.0)) > 0.3


def test_machine_travels_and_turns(parked: Parked) -> None:
    """With equal tracks it travels at track speed.

    With opposite tracks it turns, more slowly than without slip, because the tracks scrape sideways.
    """
    q = parked(2.0, tracks_left=0.5, tracks_right=0.5)
    assert q["carriage.x"] == pytest.approx(1.0, abs=0.03)
    assert abs(heading(q)) < 0.01
    q = parked(2.0, tracks_left=0.5, tracks_right=-0.5)
    free = -2.0 * 2.0 * 0.5 / GAUGE
    assert free < heading(q) < 0.3 * free
    assert math.hypot(q["carriage.x"], q["carriage.y"]) < 0.5


def test_the_gauge_of_digging_is_where_the_teeth_are(parked: Parked) -> None:
    """After a drive of 30 m to a slope, the digging resistance depends on the depth of the teeth there."""
    m, plant, given = parked.machine.mechanism, parked.plant, parked.machine.system.parameters
    start = dict(zip(parked.names, map(float, parked.machine.start), strict=True)) | {"carriage.x": 30.0}
    plant.reset(start={f"{name}.q": x for name, x in start.items()})
    height, slope = float(m.pose(np.array(list(start.values())), "tip")[2, 3]) - 2.8, 0.1
    plant.tune({"ground.height": height, "ground.slope_x": slope, "tracks.left": 0.0, "tracks.right": 0.0})
    out = np.asarray(plant.step(np.array(parked.machine.first(), float))).reshape(-1)
    x, _, z = m.pose(np.asarray(plant.state).reshape(-1)[: m.nq], "tip")[:3, 3]
    plant.tune({"ground.slope_x": 0.0})
    d = height + slope * x - z
    assert d > 0.5
    expected = given["ground.square"] * d * d + given["ground.linear"] * d
    assert out[list(plant.outputs).index("soil.resistance")] == pytest.approx(expected, rel=1e-6)


def cut(parked: Parked, hardness: float, **levers: float) -> Any:
    """Put teeth half a metre into the ground, then pull the levers for two seconds.

    Return the displacements of the carriage and the teeth, and the slip gauge with the carriage's position, every 20
    ms. hardness: factor on the usual soil's forces.
    """
    m, plant = parked.machine.mechanism, parked.plant
    parked(1.0)
    before = np.asarray(plant.state).reshape(-1)[: m.nq].copy()
    soil = {name: hardness * parked.machine.system.parameters[name] for name in ("ground.linear", "ground.square")}
    plant.tune({"ground.height": float(m.pose(before, "tip")[2, 3]) + 0.5} | soil)
    u = np.array(parked.machine.first(), float)
    u[1], u[2] = levers["boom"], levers["stick"]
    seen = []
    for _ in range(100):
        out = np.asarray(plant.step(u)).reshape(-1)
        seen.append((out[list(plant.outputs).index("slipping")], float(np.asarray(plant.state).reshape(-1)[0])))
    after = np.asarray(plant.state).reshape(-1)[: m.nq].copy()
    plant.tune({name: parked.machine.system.parameters[name] for name in soil})
    way = m.pose(after, "tip")[:2, 3] - m.pose(before, "tip")[:2, 3]
    return after[0] - before[0], float(np.hypot(*way)), np.array(seen) - [0.0, before[0]]


def test_hard_cut_pulls_the_machine_and_warns(parked: Parked) -> None:
    """In rock, twenty times as hard as the soil, the stick pulls the machine to the bucket while the boom presses down.

    The gauge exceeds its mark before the machine has moved far, and stays there while it slides.
    """
    went, _, seen = cut(parked, 20.0, boom=-1.0, stick=-1.0)
    assert went > 0.2
    mark = next(g.warn for g in parked.machine.gauges if g.column == "slipping") / 100.0
    assert seen[seen[:, 1] < 0.02, 0].max() > mark
    assert np.median(seen[seen[:, 1] > 0.05, 0]) > mark


def test_soil_leaves_the_machine_in_place_and_rock_stalls_the_arm(parked: Parked) -> None:
    went, cut_away, _ = cut(parked, 1.0, boom=0.0, stick=-1.0)
    assert abs(went) < 0.01
    assert cut_away > 1.5
    held, stalled, _ = cut(parked, 20.0, boom=0.0, stick=-1.0)
    assert abs(held) < 0.05
    assert stalled < 0.2 * cut_away


def test_a_belt_balances_its_power_and_ends_at_its_friction() -> None:
    """Power on the machine = drive power - losses - stored power; friction is mu N at most."""
    e = Belt("b", "ground", "b", Plane(), Sphere(0.3), 900.0, 0.3, 0.5, speed=0.8)
    rng, touched = np.random.default_rng(2), 0
    for _ in range(40):
        X, V, jets = moving(rng)
        f, n, _ = e(0.0, X, V, [])
        given, lost = float(np.dot([*f, *n], V)), float(e.loss(0.0, X, V, []))
        assert given == pytest.approx(-rate(e.energy(0.0, jets, [])) - lost, rel=1e-9, abs=1e-9)
        assert math.hypot(float(f[0]), float(f[1])) <= 0.5 * float(f[2]) + 1e-9
        touched += float(f[2]) > 0.0
    assert touched > 10


def test_page_shows_the_risk_of_tipping(parked: Parked) -> None:
    """The gauge is below 1 while the machine stands, for any heading and position of the carriage."""
    m = parked.machine
    stance = Stance(m.mechanism.at(), {}, footing(m.mechanism, Linkage.of_zoo()), "carriage")
    found = []
    for x, y, turn in ((0.0, 0.0, 0.0), (30.0, -20.0, 0.0), (5.0, 5.0, 2.0)):
        q: list[Any] = list(m.start)  # type: ignore[arg-type]
        q[0], q[1], q[5], q[6] = x, y, math.sin(turn / 2), math.cos(turn / 2)
        found.append(stance.utilisation(0.0, q, [0.0] * m.mechanism.nv)[0])
    np.testing.assert_allclose(found, found[0], rtol=1e-9)
    assert 0.0 < found[0] < 0.8
    assert "tipping" in [g.column for g in m.gauges]


@pytest.mark.parametrize("lift", [0.0, 0.5, 0.96, 3.0])
def test_gauges_are_the_moments_and_forces_on_the_tracks(lift: float) -> None:
    """Moments about the middle of the tracks are cross products; the load is at least a twentieth of the weight."""
    m, g, rng = bc.zoo.excavator_linkage(), 9.81, np.random.default_rng(4)
    base, own = footing(m, Linkage.of_zoo()), sum(float(b.mass) for b in m.bodies) * g
    q = m.neutral()
    weight = own + base.mass * g
    F = weight * np.array([*rng.uniform(-0.2, 0.2, 2), lift])
    tipping, slipping = Stance(m, {"tip": lambda t, X, V: (F, None)}, base).utilisation(0.0, list(q), [0.0] * m.nv)
    origin = np.array([0.0, 0.0, base.contact.level])
    M = np.cross(m.pose(q, "tip")[:3, 3] - origin, F) + np.cross(m.com(q) - origin, [0.0, 0.0, -own])
    load = max(weight - F[2], weight / 20.0)
    assert tipping == pytest.approx(max(abs(M[1]) / base.half_length, abs(M[0]) / base.sides[1]) / load)
    assert slipping == pytest.approx(math.hypot(F[0], F[1]) / (base.friction * load))


def test_tilt_is_the_angle_between_the_carriage_and_the_vertical() -> None:
    machine = tracked()
    m, s = machine.mechanism, machine.system
    rest = [0.0] * m.nv
    for turn in np.random.default_rng(1).normal(size=(5, 4)):
        q = np.array(machine.start)
        q[3:7] = turn / np.linalg.norm(turn)
        upright = float(m.pose(q, "carriage")[2, 2])
        tilt = s.outputs["carriage.tilt"](0.0, q.tolist(), rest, [], [])
        assert tilt == pytest.approx(math.acos(abs(upright)), abs=1e-7)
