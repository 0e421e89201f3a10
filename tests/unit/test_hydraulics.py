"""Valve, pump, oil, cylinder and motor: limits, orifice laws, power balance, and the rest state of runs."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import HydraulicCylinder, HydraulicMotor, ProportionalValve
from bellcrank.actuators.proportional_valve import RELIEF_RANGE_PA
from bellcrank.errors import InputError
from bellcrank.graph import trace

VALVE = ProportionalValve(flow=4e-3, p_pump=30e6, relief=33e6, drops=(2e6, 5e6))
CYLINDER = HydraulicCylinder("slide", VALVE, bore=0.1, rod=0.07, stroke=1.0, offset=0.5, friction=500.0, viscous=1e4)
SLOW = replace(CYLINDER, valve=replace(VALVE, flow=1e-3))
a_A, a_B = math.pi / 4 * 0.1**2, math.pi / 4 * (0.1**2 - 0.07**2)
MASS = 2000.0


def pushed(cylinder: HydraulicCylinder, load: float = 0.0, seconds: float = 6.0, **inputs: float) -> Any:
    """Return a mass on a level slide; load is a force on it that grows within the first second."""
    b = bc.Builder("press")
    b.body("ram", mass=MASS, com=(0, 0, 0), inertia=(10, 10, 10))
    b.joint("slide", "prismatic", "ground", "ram", axis=(1, 0, 0))
    forces = {"ram": lambda t, pose, velocity: ([load * bc.scalar.minimum(t, 1.0), 0.0, 0.0], [0.0, 0.0, 0.0])}
    s = bc.system(b.build(), [cylinder], lambda t, q, v, x, u: [u["spool"]], inputs=["spool"], forces=forces)
    return bc.simulate(s, seconds, step=5e-4, every=0.01, inputs={"spool": 0.0, **inputs})


# -- the valve


@pytest.mark.parametrize("load", [0.0, 10e6, 27e6])
def test_a_load_sensing_pump_gives_its_rated_flow_at_any_load(load: float) -> None:
    into, _ = VALVE.flows(1.0, load, 0.0)
    assert into == pytest.approx(4e-3, rel=1e-12)


def test_no_flow_at_the_pumps_pressure_and_none_back_through_the_check_valve() -> None:
    assert VALVE.supplied(30e6) == 0.0
    assert VALVE.supplied(32e6) == 0.0
    flows = [VALVE.supplied(p) for p in np.linspace(28e6, 30e6, 20)]
    assert all(a > b for a, b in pairwise(flows))


def test_the_rated_flow_returns_at_the_drops() -> None:
    assert VALVE.flows(-1.0, 2e6, 10e6)[0] == pytest.approx(-4e-3)
    assert VALVE.flows(1.0, 10e6, 5e6)[1] == pytest.approx(-4e-3)


def test_the_root_is_a_root_and_goes_straight_through_zero() -> None:
    assert VALVE.root(1e7) == pytest.approx(math.sqrt(1e7), rel=1e-3)
    assert VALVE.root(-3e5) == -VALVE.root(3e5)
    assert VALVE.root(1.0) == pytest.approx(1.0 / math.sqrt(VALVE.laminar), rel=1e-9)


def test_the_overlap_keeps_it_shut_and_the_command_steps_over_it() -> None:
    assert VALVE.flows(0.05, 10e6, 10e6) == (0.0, 0.0)
    assert VALVE.flows(-0.05, 10e6, 10e6) == (0.0, 0.0)
    for o in (-1.0, -0.4, -0.02, 0.0, 0.02, 0.7, 1.0):
        assert VALVE.opening(VALVE.command(o)) == pytest.approx(o, abs=1e-15)


def test_the_spool_lags_and_stays_within_its_ends() -> None:
    assert VALVE.moved(0.25, 5.0) == pytest.approx((1.0 - 0.25) / VALVE.lag)
    assert VALVE.moved(0.25, -5.0) == pytest.approx((-1.0 - 0.25) / VALVE.lag)


def test_relief_and_make_up_valves() -> None:
    assert VALVE.ports(33e6) == 0.0
    assert VALVE.ports(1e6) == 0.0
    assert VALVE.ports(33e6 + RELIEF_RANGE_PA) == pytest.approx(-4e-3)
    assert VALVE.ports(-1e4) > 0.0


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"flow": 0.0}, ("flow", "above zero")),
        ({"overlap": 1.0}, ("overlap", "less than 1")),
        ({"drops": (1e6,)}, ("drops", "two pressures")),
    ],
)
def test_bad_numbers(numbers: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as error:
        replace(VALVE, **numbers)
    for word in words:
        assert word in str(error.value)


def test_numbers_of_the_valve_may_be_left_open() -> None:
    names = ("flow", "p_pump", "relief", "margin", "overlap", "lag", "laminar")

    def function(numbers: Any, x: Any) -> dict[str, Any]:
        valve = replace(VALVE, **dict(zip(names, numbers, strict=True)))
        return {"r": replace(CYLINDER, valve=valve)(0.0, 0.1, 0.2, list(x), 0.3)[1]}

    graph = trace("open", function, {"numbers": (len(names),), "x": (3,)})
    x = [3e6, 5e6, 0.4]
    got = graph.evaluate(numbers=[getattr(VALVE, n) for n in names], x=x)["r"]
    np.testing.assert_allclose(got, CYLINDER(0.0, 0.1, 0.2, x, 0.3)[1], rtol=1e-12)


# -- oil


def test_the_oil_is_stiff_under_pressure_and_soft_without() -> None:
    assert CYLINDER.modulus(20e6) == pytest.approx(1.2e9, rel=0.01)
    assert CYLINDER.modulus(0.0) < 0.05 * 1.2e9
    found = [CYLINDER.modulus(p) for p in np.linspace(0.0, 30e6, 50)]
    assert all(a < b for a, b in pairwise(found))


@pytest.mark.parametrize("seed", range(20))
def test_power_balance(seed: int) -> None:
    """p Q at the ports = power at the rod with friction added + power stored in the oil + leakage power."""
    rng = np.random.default_rng(seed)
    cylinder = replace(CYLINDER, leakage=2e-12)
    p_A, p_B, s = rng.uniform(1e6, 35e6), rng.uniform(1e6, 35e6), rng.uniform(-1, 1)
    q, v = rng.uniform(-0.4, 0.4), rng.uniform(-1, 1)
    F, (dp_A, dp_B, _) = cylinder(0.0, q, v, [p_A, p_B, s], 0.0)
    Q_A, Q_B = VALVE.flows(s, p_A, p_B)
    V_A, V_B = cylinder.volumes(q)
    rubbing = 500.0 * math.tanh(v / cylinder.friction_speed) + 1e4 * v
    stored = p_A * V_A * dp_A / cylinder.modulus(p_A) + p_B * V_B * dp_B / cylinder.modulus(p_B)
    leaked = 2e-12 * (p_A - p_B) ** 2
    assert p_A * Q_A + p_B * Q_B == pytest.approx((F + rubbing) * v + stored + leaked, rel=1e-9, abs=1e-6)


def test_volumes_and_areas() -> None:
    assert CYLINDER.areas == pytest.approx((a_A, a_B))
    assert CYLINDER.volumes(-0.5) == pytest.approx((2e-3, 2e-3 + a_B))
    assert CYLINDER.volumes(0.5) == pytest.approx((2e-3 + a_A, 2e-3))
    assert CYLINDER.volumes(0.7) == CYLINDER.volumes(0.5)
    two = replace(CYLINDER, count=2)
    assert two.areas == pytest.approx((2 * a_A, 2 * a_B))


# -- stops


def test_stops_push_back_beyond_the_ends_and_never_pull() -> None:
    k = CYLINDER.stop_stiffness
    assert CYLINDER.stops(-0.5, 1.0) == 0.0
    assert CYLINDER.stops(0.5, -1.0) == 0.0
    assert CYLINDER.stops(-0.501, 0.0) == pytest.approx(k * 1e-3)
    assert CYLINDER.stops(0.501, 0.0) == pytest.approx(-k * 1e-3)
    # moving into the stop meets more force than leaving it
    assert CYLINDER.stops(0.501, 0.1) < CYLINDER.stops(0.501, 0.0)
    for v in (-9.0, -0.1, 0.1, 9.0):
        assert CYLINDER.stops(0.51, v) <= 0.0 <= CYLINDER.stops(-0.51, v)


# -- runs


def test_cylinder_extends_at_rated_flow_and_stalls_at_its_stop() -> None:
    run = pushed(SLOW, spool=1.0, seconds=8.0)
    steady = (run.t > 1.0) & (run["slide.q"] < 0.3)
    assert steady.sum() > 20
    np.testing.assert_allclose(run["slide.v"][steady], 1e-3 / a_A, rtol=0.02)
    beyond = run["slide.q"][-1] - 0.5
    assert run["slide.p_A"][-1] == pytest.approx(30e6, rel=1e-3)  # the pump's pressure at zero flow
    force = a_A * run["slide.p_A"][-1] - a_B * run["slide.p_B"][-1]
    assert beyond == pytest.approx(force / CYLINDER.stop_stiffness, rel=1e-3)
    assert abs(run["slide.v"][-1]) < 1e-5


def test_cylinder_retracts_faster_by_its_smaller_rod_side() -> None:
    run = pushed(SLOW, spool=-1.0, seconds=4.0)
    steady = (run.t > 0.8) & (run["slide.q"] > -0.4)
    assert steady.sum() > 10
    np.testing.assert_allclose(run["slide.v"][steady], -1e-3 / a_B, rtol=0.02)
    assert run["slide.q"].min() > -0.5 - 0.01


def test_a_shut_valve_holds_a_load_up_to_its_relief() -> None:
    held = pushed(CYLINDER, load=-100e3, seconds=3.0)
    assert held["slide.p_A"][-1] == pytest.approx((100e3 + a_B * held["slide.p_B"][-1]) / a_A, rel=0.02)
    assert -0.05 < held["slide.q"][-1] < 0.0
    given_way = pushed(CYLINDER, load=-280e3, seconds=3.0)  # 280 kN are 35.7 MPa in the bore
    over = given_way["slide.p_A"].max() - VALVE.relief
    assert over > 0.0
    assert over < RELIEF_RANGE_PA
    assert given_way["slide.q"][-1] < -0.3


def test_a_motors_torque_is_limited_by_its_reliefs() -> None:
    motor = HydraulicMotor("swing", replace(VALVE, relief=26e6, p_pump=26e6), displacement=2.5e-3, volume=2e-3)
    b = bc.Builder("house")
    b.body("house", mass=1e4, com=(0, 0, 0), inertia=(1e5, 1e5, 1e5))
    b.joint("swing", "revolute", "ground", "house", axis=(0, 0, 1))
    s = bc.system(b.build(), [motor], lambda t, q, v, x, u: [bc.scalar.where(t < 3.0, 1.0, 0.0)])
    run = bc.simulate(s, 8.0, step=5e-4, every=0.01)
    top = 4e-3 / 2.5e-3
    assert run["swing.v"].max() == pytest.approx(top, rel=0.1)
    torque = run["swing.tau"]
    assert torque.max() > 0.9 * 26e6 * 2.5e-3  # it starts with the full torque
    assert torque.min() < -0.9 * 26e6 * 2.5e-3  # the relief valve brakes it when the spool shuts
    through = run["swing.v"].max() / top  # share of the rated flow when it brakes from its highest speed
    assert through < 1.15
    assert np.abs(torque).max() < (26e6 + RELIEF_RANGE_PA * through - run["swing.p_A"].min()) * 2.5e-3
    assert run["swing.p_A"].min() > -5e4
    assert run["swing.p_B"].min() > -5e4
