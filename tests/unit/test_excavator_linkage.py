"""excavator_linkage: geometry, statics, driving by levers and by the autopilot, and its stops."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.excavators.geometry import CYLINDERS, JOINTS, DiggingCycle, Linkage
from bellcrank.excavators.linkage_control import FULL_STICK_RATES, FULL_STICK_SPEEDS, FUNCTIONS, LinkageControl
from bellcrank.excavators.linkage_system import hydraulics, parts
from bellcrank.parameters import nominal
from bellcrank.sim.realtime.realtime_drive import Drive
from bellcrank.sim.realtime.realtime_memory import Clock
from waiting import wait

Array = np.ndarray[Any, Any]
LINKAGE = Linkage.of_zoo()
M = bc.zoo.excavator_linkage()
N = M.columns[0]


@cache
def simulator() -> bc.Simulator:
    """Return a simulator with rk4 and half a millisecond, which equals bc.Drive at 1 kHz with two steps a period."""
    return bc.Simulator(bc.system(**parts()), "rk4", form="projected")


def driven(seconds: float, **inputs: Any) -> Any:
    return simulator().run(seconds, step=5e-4, every=0.01, inputs=dict.fromkeys(LinkageControl.inputs, 0.0) | inputs)


def angles(run: Any) -> Array:
    return np.stack([run[f"{n}.q"] + a for n, a in zip(FUNCTIONS, LINKAGE.start, strict=True)], axis=-1)


def places(run: Any) -> Array:
    return np.array([LINKAGE.arm.forward(theta) for theta in angles(run)])


def posed(*theta: float) -> Array:
    """Return q of the whole mechanism with the arm at these angles."""
    wanted = {n: a - b for n, a, b in zip(FUNCTIONS, theta, LINKAGE.start, strict=True)}
    return M.assemble(wanted, fixed=list(FUNCTIONS))[0]


def reachable(n: int) -> list[Array]:
    rng = np.random.default_rng(5)
    low, high = np.array(LINKAGE.stops[1:]).T
    return [np.array([rng.uniform(-1, 1), *rng.uniform(low, high)]) for _ in range(n)]


# -- geometry


def test_four_functions_move() -> None:
    assert M.loop_analysis.mobility == 4
    assert len(M.bodies) == 12


def test_masses_are_those_of_the_class() -> None:
    upper = sum(b.mass for b in M.bodies)
    assert 14e3 < upper < 16e3  # 22.5 t with an undercarriage of 7 to 8 t


@pytest.mark.parametrize("name", ["cab", "boom", "stick", "bucket"])
def test_inertias_are_those_of_boxes(name: str) -> None:
    """A box has the inertia of eight equal points at its half lengths over the root of three."""
    given, body = bc.zoo.data("excavator_linkage")[name], next(b for b in M.bodies if b.name == name)
    points = np.array(list(product((-1.0, 1.0), repeat=3))) * np.array(given["size"]) / (2.0 * np.sqrt(3.0))
    inertia = sum(given["mass"] / 8 * (p @ p * np.eye(3) - np.outer(p, p)) for p in points)
    np.testing.assert_allclose(np.linalg.eigvalsh(np.array(body.inertia)), np.linalg.eigvalsh(inertia), rtol=1e-12)


@pytest.mark.parametrize("k", range(6))
def test_cylinders_are_as_long_as_their_triangles(k: int) -> None:
    """Cylinder lengths, pin to pin and as coordinates, agree with the closed form."""
    theta = reachable(6)[k]
    q = posed(*theta)
    for name, (length, _), out in zip(CYLINDERS, LINKAGE.lengths(theta), LINKAGE.extensions(theta), strict=True):
        foot, eye = (M.pose(q, frame)[:3, 3] for frame in (f"{name}_barrel", f"{name}_eye.b"))
        assert np.linalg.norm(eye - foot) == pytest.approx(length, abs=1e-9)
        at_start = LINKAGE.extensions(LINKAGE.start)[CYLINDERS.index(name)]
        assert q[N.index(f"{name}_cylinder")] == pytest.approx(out - at_start, abs=1e-9)


@pytest.mark.parametrize("k", range(6))
def test_gears_are_those_of_the_loops(k: int) -> None:
    """The ratio of cylinder speed to joint speed is that of the constraint Jacobian."""
    theta = reachable(6)[k]
    q = posed(*theta)
    for i, name in enumerate(CYLINDERS):
        wanted = dict.fromkeys(FUNCTIONS, 0.0) | {name: 1.0}
        _, v = M.assemble(q, wanted, fixed=list(FUNCTIONS))
        assert v[N.index(f"{name}_cylinder")] == pytest.approx(LINKAGE.gears(theta)[i], abs=1e-9)


@pytest.mark.parametrize("k", range(6))
def test_tip_position_equals_that_of_the_arm(k: int) -> None:
    theta = reachable(6)[k]
    x, y, z = M.pose(posed(*theta), "tip")[:3, 3]
    radius, swing, height, _ = LINKAGE.arm.forward(theta)
    np.testing.assert_allclose([x, y, z], [radius * np.cos(swing), radius * np.sin(swing), height], atol=1e-9)


def test_strokes_give_the_working_range() -> None:
    """The strokes give the working range of this class.

    A reach of about 10 m on the ground, and a depth of 6 to 7 m.
    """
    (_, boom, stick, bucket) = LINKAGE.stops
    for pair in (boom, stick, bucket):
        assert 1.7 < pair[1] - pair[0] < 3.0
    grid = [(0.0, b, s, 0.0) for b in np.linspace(*boom, 60) for s in np.linspace(*stick, 60)]
    found = np.array([LINKAGE.arm.forward(theta) for theta in grid])
    assert -7.0 < found[:, 2].min() < -6.0
    at_the_ground = found[np.abs(found[:, 2]) < 0.2]
    assert at_the_ground[:, 0].max() == pytest.approx(10.0, abs=0.5)


# -- statics


def test_pressures_hold_the_weight() -> None:
    """Each cylinder's force times its gear is the derivative of the potential energy by its angle (virtual work)."""
    h = 1e-4
    for k, (name, actuator) in enumerate(zip(CYLINDERS, parts()["actuators"][1:], strict=True)):
        around = []
        for sign in (-1, 1):
            theta = list(LINKAGE.start)
            theta[k + 1] += sign * h
            around.append(float(M.potential_energy(posed(*theta))))
        slope = (around[1] - around[0]) / (2 * h)
        a_A, a_B = actuator.areas
        force = a_A * actuator.p_A - a_B * actuator.p_B
        assert force * LINKAGE.gears(LINKAGE.start)[k] == pytest.approx(slope, rel=1e-5), name
    assert 5e6 < parts()["actuators"][1].p_A < 15e6  # a plausible pressure under the boom


def test_machine_stands_still_with_sticks_at_rest() -> None:
    run = driven(5.0)
    assert np.abs(angles(run) - LINKAGE.start).max() < np.radians(0.3)
    for joint, p in (("boom_cylinder", "p_A"), ("stick_cylinder", "p_B")):
        assert run[f"{joint}.{p}"][-1] == pytest.approx(run[f"{joint}.{p}"][0], rel=0.05)


# -- driving


@pytest.mark.parametrize(("name", "stick"), list(zip(FUNCTIONS, LinkageControl.inputs, strict=False)))
def test_joint_mode_moves_one_joint(name: str, stick: str) -> None:
    run = driven(2.0, **{stick: 0.2})
    moved = angles(run)[-1] - LINKAGE.start
    i = FUNCTIONS.index(name)
    assert moved[i] == pytest.approx(0.4, abs=0.04)
    assert np.abs(np.delete(moved, i)).max() < 0.02


def test_the_swing_comes_to_rest() -> None:
    """The swing comes to rest.

    With more gain it would oscillate: oil and cab vibrate at 7.5 rad/s with little damping.
    """
    turning = driven(0.7, first=1.0)
    end, still = (turning.q[-1], turning.v[-1], turning.x[-1]), dict.fromkeys(LinkageControl.inputs, 0.0)
    run = simulator().run(12.0, *end, step=5e-4, every=0.01, inputs=still)
    late = run.t > 10.0
    assert np.abs(run["swing.v"][late]).max() < 2e-3
    assert np.ptp(run["swing.p_A"][late]) < 2e6


def test_resolved_mode_goes_straight_out() -> None:
    run = driven(3.0, first=0.5, resolved=1.0)
    path = places(run)
    assert path[-1, 0] - path[0, 0] == pytest.approx(1.5, abs=0.1)
    assert np.abs(path[:, 2] - path[0, 2]).max() < 0.06
    assert np.abs(path[:, 3] - path[0, 3]).max() < 0.03


def test_resolved_mode_slides_along_the_end_of_the_reach() -> None:
    run = driven(12.0, first=1.0, resolved=1.0)
    path = places(run)
    assert run.stops[0].reason == "end"
    assert path[:, 0].max() < 10.2
    assert np.abs(run["stick_cylinder.v"][-1]) < 0.02


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_held_sticks_end_before_the_stops(sign: float) -> None:
    """Levers that are held for ever end before the stops.

    The desired angles stay within the strokes, and so do the cylinders, apart from oscillations of the arm.
    """
    run = driven(10.0, third=0.5 * sign, fourth=0.6 * sign, second=0.3)
    for actuator in simulator().system.actuators[1:]:
        out = run[f"{actuator.joint}.q"] + actuator.offset  # type: ignore[attr-defined]
        assert out.min() > -0.01
        assert out.max() < actuator.stroke + 0.01  # type: ignore[attr-defined]


def test_full_sticks_thrown_about_do_no_harm() -> None:
    """Random full levers do no harm in both modes, at the stops and in the ground.

    No run fails, no loop opens, and the relief and make-up valves limit the pressures.
    """
    rng, runs, lines = np.random.default_rng(3), 8, 6
    full = np.maximum(FULL_STICK_RATES, FULL_STICK_SPEEDS)
    inputs = {n: rng.choice([-1, 0, 1], size=(runs, lines)) * full[i] for i, n in enumerate(LinkageControl.inputs[:4])}
    inputs["resolved"] = rng.integers(0, 2, size=(runs, lines)).astype(float)
    inputs["autopilot"] = np.zeros((runs, lines))
    run = simulator().run(12.0, step=5e-4, every=0.02, inputs=inputs, input_step=2.0)
    # the step is coarse where the arm is pressed into stops
    assert {s.reason for s in run.stops} <= {"end", "not resolved"}
    assert run.provenance["loops open by at most"] < 1e-9
    for actuator in simulator().system.actuators[1:]:
        out = run[f"{actuator.joint}.q"] + actuator.offset  # type: ignore[attr-defined]
        assert out.min() > -0.03
        assert out.max() < actuator.stroke + 0.03  # type: ignore[attr-defined]
        for p in ("p_A", "p_B"):
            assert run[f"{actuator.joint}.{p}"].min() > -0.1e6  # no vacuum
            assert run[f"{actuator.joint}.{p}"].max() < LINKAGE.given["hydraulics"]["relief"] + 4e6
    assert heights(angles(run)).min() < -0.5  # some runs went into the ground


def heights(theta: Array) -> Array:
    """Return the heights of the teeth."""
    return np.asarray(LINKAGE.arm.forward(np.moveaxis(theta, -1, 0))[2])


def test_the_pump_is_shared() -> None:
    """All levers at once ask for more flow than the pump has: all valves close in proportion."""
    control = LinkageControl(hydraulics(LINKAGE))
    theta, flows = LINKAGE.start, [a.valve.flow for a in control.actuators]
    alone = control.wanted(theta, [0.0, 0.2, 0.0, 0.0], theta)
    assert alone[1] * flows[1] == pytest.approx(0.2 * LINKAGE.gears(theta)[0] * control.actuators[1].areas[0])
    both = control.wanted(theta, [1.0, 0.35, -0.6, -0.8], theta)
    x = {"engine": control.diesel.idle} | {f"{a.joint}.{p}": 1e6 for a in control.actuators for p in ("p_A", "p_B")}
    share, _, flow = control.supply(both, x)
    assert flow == pytest.approx(share * sum(abs(o) * q for o, q in zip(both, flows, strict=True)))
    assert flow == pytest.approx(control.diesel.flow)
    assert control.supply(alone, x)[0] == 1.0


def test_the_pump_has_no_more_power_than_the_engine() -> None:
    """Flow times pressure is limited by the engine's power: one loaded function leaves less for the others."""
    control = LinkageControl(hydraulics(LINKAGE))
    d, wanted = control.diesel, [0.9, 0.9, -0.8, -0.7]
    x = {"engine": d.idle} | {f"{a.joint}.{p}": 2e6 for a in control.actuators for p in ("p_A", "p_B")}
    light = control.supply(wanted, x)
    heavy = control.supply(wanted, x | {"stick_cylinder.p_B": 25e6})
    assert heavy[1] == pytest.approx(27e6)
    assert heavy[0] < 0.7 * light[0]
    assert heavy[1] * heavy[2] == pytest.approx(d.efficiency * d.power)
    tired = control.supply(wanted, x | {"stick_cylinder.p_B": 25e6, "engine": 0.9 * d.idle})
    assert tired[2] < 0.6 * heavy[2]  # an engine at lower speed gets less load


def test_the_engine_slows_down_under_load_and_recovers() -> None:
    d = LinkageControl(hydraulics(LINKAGE)).diesel
    w = d.idle
    for _ in range(4000):
        w += 1e-3 * d.acceleration(w, 30e6, d.available(w, 30e6))
    assert 0.95 * d.speed < w < 0.99 * d.speed
    power = d.governor * (d.speed - w) * w
    assert power == pytest.approx(d.available(w, 30e6) * 30e6 / d.efficiency, rel=1e-6)  # the available power is used
    for _ in range(4000):
        w += 1e-3 * d.acceleration(w, d.margin, 0.0)
    assert w == pytest.approx(d.speed, rel=1e-3)


def test_actuators_in_another_order() -> None:
    with pytest.raises(InputError, match="expected swing, boom_cylinder"):
        LinkageControl(hydraulics(LINKAGE)[::-1])


# -- energy and real time


def test_energy_growth_equals_the_work_of_forces() -> None:
    """The growth of energy over a dig is the work of hydraulics, friction and soil."""
    run = driven(9.0, autopilot=1.0)
    power = run["drive_power"] + run["passive_power"] + run["external_power"]
    work = np.concatenate([[0.0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(run.t))])
    grown = run["energy"] - run["energy"][0]
    assert np.ptp(grown) > 4e4  # joules: large enough to compare
    np.testing.assert_allclose(grown, work, atol=2e-3 * np.ptp(grown))


def test_the_real_time_loop_is_the_same_run() -> None:
    """The real-time loop at 1 kHz with two steps a period, on a clock that never waits, gives the same run."""
    clock = [0]

    def now() -> int:
        clock[0] += 1000
        return clock[0]

    def sleep(until: int) -> None:
        clock[0] = max(clock[0], until)
        if clock[0] > 3_000_000_000:
            drive.shared.set("stop", 1)

    drive = Drive(simulator().system, 1000, "rk4", substeps=2, every=10, clock=Clock(now, sleep))
    drive.input({"autopilot": 1.0})
    drive.start()
    wait(lambda: not drive.running)
    drive.stop()
    found, plain = drive.record(), driven(3.0, autopilot=1.0)
    n = min(len(found), len(plain) - 1)
    assert n > 250
    rows = np.searchsorted(plain.t, found.t[:n] - 1e-9)
    at_rows = np.abs(plain.t[rows] - found.t[:n]) < 1e-9
    assert at_rows.sum() > 250
    np.testing.assert_allclose(found.q[:n][at_rows], plain.q[rows][at_rows], atol=1e-9)
    assert drive.report()["overruns"] == 0


# -- the autopilot


def test_the_cycle_is_closed_smooth_and_within_reach() -> None:
    cycle = DiggingCycle()
    T, h = cycle.period, 1e-5
    np.testing.assert_allclose(cycle(0.0)[0], cycle(3 * T + 1e-9)[0], atol=1e-6)
    for t in np.linspace(0.1, 2.5 * T, 40):
        before, now, after = (np.array(cycle(t + d)[0]) for d in (-h, 0.0, h))
        np.testing.assert_allclose((after - before) / (2 * h), cycle(t)[1], atol=1e-5)
        theta = LINKAGE.arm.inverse(now)
        np.testing.assert_allclose(LINKAGE.arm.forward(theta), now, atol=1e-9)
        for angle, (low, high) in zip(theta, LINKAGE.stops, strict=True):
            assert low < angle < high


def test_the_autopilot_digs_swings_and_dumps() -> None:
    cycle = DiggingCycle()
    run = driven(31.0, autopilot=1.0)
    assert run.stops[0].reason == "end"
    assert run.provenance["loops open by at most"] < 1e-9
    path, wanted = places(run), np.array([cycle(t)[0] for t in run.t])
    late = run.t > 3.0  # it begins in the pose of the machine
    assert np.abs(path - wanted)[late].max(axis=0) == pytest.approx([0.0] * 4, abs=0.2)
    assert path[:, 2].min() < -0.4  # it dug
    assert np.degrees(path[:, 1].max()) > 75.0  # it swung
    assert np.degrees(path[run.t > 22.0, 3].max()) > -85.0  # it dumped
    given = LINKAGE.given["hydraulics"]
    for joint in JOINTS:
        for p in ("p_A", "p_B"):
            assert run[f"{joint}.{p}"].min() > -1e5
            assert run[f"{joint}.{p}"].max() < given["relief"] + 1e6


def test_soil_takes_power_from_the_hydraulics() -> None:
    """Dragging the teeth puts power into the soil: without it the joint forces would do more work."""
    run = driven(10.0, autopilot=1.0)
    dug = np.flatnonzero((run.t > 5.0) & (run.t < 9.0))
    assert (places(run)[dug, 2] < -0.3).all()
    soil = nominal(parts()["forces"]["tip"])
    for i in dug[::40]:
        q, v = run.q[i], run.v[i]
        V = M.jacobian(q, "tip") @ v
        force, _ = soil(0.0, M.pose(q, "tip"), V)
        assert float(np.dot(force, V[:3])) < 0.0
        boom = float((M.jacobian(q, "tip")[:3].T @ np.array(force, float))[N.index("boom")])
        assert run["boom.external"][i] == pytest.approx(boom, rel=1e-9)


def test_levers_pulled_together_slow_each_other_down() -> None:
    """Levers pulled together slow each other down.

    Alone, the boom rises half as fast again, and the engine speed drops when all levers are pulled.
    """
    alone = driven(2.0, second=0.35)
    together = driven(2.0, first=1.0, second=0.35, third=0.5, fourth=0.7)
    assert 0.1 < together["boom.q"][-1] < 0.75 * alone["boom.q"][-1]
    assert together["engine"].min() < alone["engine"].min() < LINKAGE.given["engine"]["speed"]
    assert together["engine"].min() > 0.85 * LINKAGE.given["engine"]["speed"]  # it is not stalled
