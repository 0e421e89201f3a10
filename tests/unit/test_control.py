"""Trajectories, inverse-dynamics control and the excavator's modes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.control import Cycloid, InverseDynamics, Ramp, Trajectory, saha, wong
from bellcrank.errors import InputError
from bellcrank.excavators.geometry import ExcavatorArm
from bellcrank.excavators.spool_control import EitherMode, JointMode, ResolvedMode
from bellcrank.graph import trace

EXCAVATOR = bc.zoo.excavator()
ARM = ExcavatorArm.of(EXCAVATOR)
LONG = ExcavatorArm.of(EXCAVATOR, tip=(1.2, 0.3))
START = (0.1, 0.6, -1.9, -0.2)


# ---- trajectories ------------------------------------------------------------------------------------------------


def test_cycloid_as_printed() -> None:
    """The cycloid is that of Wong eq 3.43 and Saha eq 18."""
    w, t = 2 * math.pi / 10, 3.7
    q, v, a = wong(6)(t)
    assert len(q) == len(v) == len(a) == 6
    assert q == pytest.approx([(w * t - math.sin(w * t)) / 2] * 6)
    assert v == pytest.approx([(w - w * math.cos(w * t)) / 2] * 6)
    assert a == pytest.approx([w * w * math.sin(w * t) / 2] * 6)
    assert saha([0.0] * 6, [math.pi] * 6)(t)[0] == pytest.approx(q)


PATHS = [
    Cycloid((0.0, 1.5, 0.0), (1.0, 1.0, 0.1), 4.0),
    Ramp((0.0, 1.5, 0.0), (1.0, 1.0, 0.1), 4.0),
    Ramp((0.0, 1.5, 0.0), (1.0, 1.0, 0.1), 4.0, begin=2.0),
]


@pytest.mark.parametrize("path", PATHS, ids=["cycloid", "ramp", "later"])
def test_derivatives_are_the_graphs_own(path: Trajectory) -> None:
    graph = trace("path", lambda t: dict(zip("qva", path(t), strict=True)), {"t": ()})
    t = np.array([-1.0, 0.3, 1.1, 2.5, 3.9, 5.5, 7.0])
    values = graph.evaluate(t=t)
    np.testing.assert_allclose(graph.jacobian("q", "t").evaluate(t=t)["dq_dt"], values["v"], atol=1e-13)
    np.testing.assert_allclose(graph.jacobian("v", "t").evaluate(t=t)["dv_dt"], values["a"], atol=1e-13)
    for i, at in enumerate(t):
        np.testing.assert_allclose(np.array(path(float(at))), [values[k][i] for k in "qva"], atol=1e-14)


@pytest.mark.parametrize("path", PATHS, ids=["cycloid", "ramp", "later"])
def test_held_before_and_after(path: Trajectory) -> None:
    for t, held in ((-3.0, path.start), (0.0, path.start), (6.0, path.end), (99.0, path.end)):
        q, v, a = path(t)
        assert q == pytest.approx(list(held), abs=1e-14)
        if t != 0.0 or path.progress(0.0)[1] == 0.0:  # a ramp jumps to its speed at 0
            assert [*v, *a] == pytest.approx([0.0] * 6, abs=1e-14)


def test_bad_trajectories() -> None:
    with pytest.raises(InputError, match="start has 2 numbers and end has 1"):
        Cycloid((0.0, 0.0), (1.0,), 1.0)
    with pytest.raises(InputError, match="T is 0"):
        Ramp((0.0,), (1.0,), 0)


# ---- inverse dynamics --------------------------------------------------------------------------------------------


def test_open_loop_is_the_torque_of_the_desired_motion() -> None:
    arm, path = bc.zoo.puma600(), wong(6)
    control = InverseDynamics(arm, path)
    assert control.open_loop
    tau = control(2.0, [9.0] * 6, [9.0] * 6)
    np.testing.assert_allclose(tau, arm.inverse_dynamics(*map(np.array, path(2.0))), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("method", ["rnea", "auto"])
def test_computed_torque_gives_the_error_a_linear_equation(method: str) -> None:
    """In any state the error obeys a_d - a + kv (v_d - v) + kp (q_d - q) = 0."""
    arm, path = bc.zoo.puma600(), wong(6)
    control = InverseDynamics(arm, path, kp=25.0, kv=[10.0, 9.0, 8.0, 7.0, 6.0, 5.0], method=method)
    assert not control.open_loop
    q, v, _ = arm.random(3)
    a = arm.forward_dynamics(q, v, np.array(control(2.0, q, v), dtype=float))
    q_d, v_d, a_d = map(np.array, path(2.0))
    np.testing.assert_allclose(a_d - a + np.arange(10, 4, -1) * (v_d - v) + 25.0 * (q_d - q), 0.0, atol=1e-8)


def test_inverse_dynamics_of_other_dimensions_raises() -> None:
    arm = bc.zoo.puma600()
    with pytest.raises(InputError, match='trajectory has 3 joints and "puma600" has 6'):
        InverseDynamics(arm, wong(3))
    with pytest.raises(InputError, match="kp has 2 numbers; expected one, or 6"):
        InverseDynamics(arm, wong(6), kp=[1.0, 2.0])
    with pytest.raises(InputError, match="There is no method"):
        InverseDynamics(arm, wong(6), method="magic")
    ball = bc.Builder("ball")
    ball.body("bob", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    ball.joint("socket", "spherical", "ground", "bob", point=(0, 0, 0))
    with pytest.raises(InputError, match="nq 4 and nv 3"):
        InverseDynamics(ball.build(), wong(3))


# ---- the excavator's arm -----------------------------------------------------------------------------------------


def reachable(arm: ExcavatorArm, n: int) -> Any:
    """Return random joint angles with the stick below the boom and the wrist within reach."""
    theta = np.random.default_rng(5).uniform([-3, -1, -2.6, -2], [3, 1.3, -0.4, 1], (n, 4))
    D = np.array([float(arm.wrist(arm.forward(x))[2]) for x in theta])
    low, high = arm.reach
    assert ((low < D) & (high > D)).all()
    return theta


def turned(arm: ExcavatorArm, theta: Any) -> Any:
    """Return the tip in axes of the cab, by the mechanism's own kinematics: [along, aside, up]."""
    p = EXCAVATOR.pose(theta, "bucket") @ np.array([*arm.tip, 0.0, 1.0])
    c, s = np.cos(theta[0]), np.sin(theta[0])
    return np.array([c * p[0] + s * p[1], c * p[1] - s * p[0], p[2]])


@pytest.mark.parametrize("arm", [ARM, LONG], ids=["hinge", "tip"])
def test_arm_against_the_mechanism(arm: ExcavatorArm) -> None:
    for theta in reachable(arm, 40):
        radius, swing, height, bucket = arm.forward(theta)
        along, aside, up = turned(arm, theta)
        assert (radius, height) == pytest.approx((along, up), abs=1e-12)
        # the boom's plane is offset from the axis
        assert aside == pytest.approx(EXCAVATOR.joints[1].point[1], abs=1e-12)
        assert swing == theta[0]
        R = EXCAVATOR.pose(theta, "bucket")[:3, :3]
        assert math.sin(bucket) == pytest.approx(R[2, 0], abs=1e-12)


@pytest.mark.parametrize("arm", [ARM, LONG], ids=["hinge", "tip"])
def test_inverse_kinematics_finds_the_way_back(arm: ExcavatorArm) -> None:
    for theta in reachable(arm, 400):
        target = arm.forward(theta)
        found = np.array(arm.inverse(target), dtype=float)
        np.testing.assert_allclose(arm.forward(found), target, atol=1e-9)
        np.testing.assert_allclose(np.exp(1j * found), np.exp(1j * theta), atol=1e-9)


@pytest.mark.parametrize("arm", [ARM, LONG], ids=["hinge", "tip"])
def test_joint_rates_against_the_jacobian(arm: ExcavatorArm) -> None:
    """The tip's velocity by the mechanism's Jacobian is the one that the levers command."""
    rng = np.random.default_rng(6)
    for theta in reachable(arm, 40):
        wanted = rng.uniform(-1, 1, 4)
        rates = np.array(arm.joint_rates(theta, wanted), dtype=float)
        J = EXCAVATOR.jacobian(theta, "bucket")
        linear, angular = J[:3] @ rates, J[3:] @ rates
        R = EXCAVATOR.pose(theta, "bucket")[:3, :3]
        v = linear + np.cross(angular, R @ [*arm.tip, 0.0])
        c, s = np.cos(theta[0]), np.sin(theta[0])
        along, aside = c * v[0] + s * v[1], c * v[1] - s * v[0]
        radius, offset = arm.forward(theta)[0], EXCAVATOR.joints[1].point[1]
        assert along == pytest.approx(wanted[0] - offset * wanted[1], abs=1e-9)  # the plane turns with the cab
        assert aside == pytest.approx(radius * wanted[1], abs=1e-9)
        assert v[2] == pytest.approx(wanted[2], abs=1e-9)
        assert sum(rates[1:]) == pytest.approx(wanted[3], abs=1e-9)


def test_out_of_reach_is_the_nearest_point_in_reach() -> None:
    low, high = ARM.reach
    assert (low, high) == pytest.approx((3.45, 6.95))
    for x, z, D in ((20.0, 9.0, high), (0.5, 0.2, low), (0.0, 0.0, low), (-8.0, 1.0, high)):
        theta = np.array(ARM.inverse([ARM.a + x, 0.0, ARM.c + z, -1.0]), dtype=float)
        assert np.isfinite(theta).all()
        X, Z, found = map(float, ARM.wrist(ARM.forward(theta)))
        assert found == pytest.approx(D)
        assert X * z == pytest.approx(Z * x, abs=1e-9)  # in the same direction
        assert math.radians(-180) < theta[2] < 0


def test_at_the_end_of_the_reach_the_tip_slides_along() -> None:
    out = [ARM.a + 6.95 * 0.8, 0.0, ARM.c + 6.95 * 0.6, -1.0]
    free = [0.3, 0.1, -0.2, 0.05]
    inside = [ARM.a + 4.0, 0.0, ARM.c, -1.0]
    np.testing.assert_allclose(ARM.allowed(inside, free), free, atol=1e-15)
    np.testing.assert_allclose(ARM.allowed(out, [-1.0, 0.0, 0.0, 0.0]), [-1.0, 0.0, 0.0, 0.0], atol=1e-12)
    # 1 m/s outwards along the radius, minus its part along (0.8, 0.6)
    np.testing.assert_allclose(ARM.allowed(out, [1.0, 0.1, 0.0, 0.0]), [0.36, 0.1, -0.48, 0.0], atol=1e-9)


def test_arm_of_something_else() -> None:
    with pytest.raises(InputError, match='"puma600" is not an excavator'):
        ExcavatorArm.of(bc.zoo.puma600())


# ---- the modes ---------------------------------------------------------------------------------------------------

GAINS: dict[str, Any] = {"kp": (2.0, 3.0, 2.0, 2.0), "kv": (1.0, 2.0, 1.0, 1.0), "start": START}


def named(control: Any, u: Any = (0.0, 0.0, 0.0, 0.0)) -> tuple[dict[str, float], dict[str, float]]:
    return {s.name: s.initial for s in control.states}, dict(zip(control.inputs, u, strict=True))


def test_joint_mode_is_eq_5_5() -> None:
    control = JointMode(**GAINS)
    assert [s.name for s in control.states] == ["cab_d", "boom_d", "stick_d", "bucket_d"]
    assert [s.initial for s in control.states] == list(START)
    x, u = named(control, (0.1, -0.2, 0.3, 0.0))
    q, v = [0.0, 0.5, -2.0, 0.0], [0.01, 0.02, 0.03, 0.04]
    commands, rates = control(0.0, q, v, x, u)
    assert rates == [0.1, -0.2, 0.3, 0.0]
    expected = [1 * 0.09 + 2 * 0.1, 2 * -0.22 + 3 * 0.1, 1 * 0.27 + 2 * 0.1, -0.04 + 2 * -0.2]
    assert commands == pytest.approx(expected)


def test_stops_hold_the_desired_angle() -> None:
    control = JointMode(**GAINS, stops=[(-9.0, 9.0), (-0.5, 0.6), (-2.0, 0.0), (-0.2, 1.0)])
    x, u = named(control, (0.1, 0.2, -0.3, -0.4))
    assert [float(r) for r in control(0.0, START, [0.0] * 4, x, u)[1]] == [0.1, 0.0, -0.3, 0.0]


def test_resolved_mode_moves_the_tip_as_commanded() -> None:
    control = ResolvedMode(**GAINS, arm=LONG)
    x, u = named(control, (0.2, 0.5, -0.1, 0.05))
    _, rates = control(0.0, START, [0.0] * 4, x, u)
    h = 1e-6
    after = LONG.forward([a + h * float(r) for a, r in zip(START, rates, strict=True)])
    before = LONG.forward([a - h * float(r) for a, r in zip(START, rates, strict=True)])
    speed = (np.array(after) - np.array(before)) / (2 * h)
    np.testing.assert_allclose(speed, [0.2, 0.5 / LONG.forward(START)[0], -0.1, 0.05], atol=1e-8)


def test_either_mode_switches() -> None:
    either, joint, resolved = EitherMode(**GAINS, arm=ARM), JointMode(**GAINS), ResolvedMode(**GAINS, arm=ARM)
    sticks = (0.2, 0.5, -0.1, 0.05)
    for switch, single in ((0.0, joint), (1.0, resolved)):
        x, u = named(either, (*sticks, switch))
        got = either(0.0, START, [0.0] * 4, x, u)
        want = single(0.0, START, [0.0] * 4, x, dict(zip(single.inputs, sticks, strict=True)))
        np.testing.assert_allclose(np.array(got, dtype=float), np.array(want, dtype=float), rtol=1e-15)


def test_modes_are_traced() -> None:
    """The control is one graph, with the levers and the switch as inputs."""
    either = EitherMode(**GAINS, arm=LONG, stops=[(-9.0, 9.0), (-0.5, 1.2), (-2.5, -0.3), (-2.0, 1.0)])
    names = [s.name for s in either.states]

    def function(t: Any, q: Any, v: Any, x: Any, u: Any) -> dict[str, Any]:
        commands, rates = either(t, q, v, dict(zip(names, x, strict=True)), dict(zip(either.inputs, u, strict=True)))
        return {"commands": commands, "rates": rates}

    graph = trace("either", function, {"t": (), "q": (4,), "v": (4,), "x": (4,), "u": (5,)})
    rng = np.random.default_rng(8)
    for theta in reachable(LONG, 20):
        q, v = rng.normal(size=(2, 4))
        u = [*rng.normal(size=4), float(rng.integers(2))]
        got = graph.evaluate(t=0.0, q=q, v=v, x=theta, u=u)
        want = function(0.0, q, v, theta, u)
        for key in want:
            np.testing.assert_allclose(got[key], np.array(want[key], dtype=float), rtol=1e-12, atol=1e-12)


def test_bad_modes() -> None:
    with pytest.raises(InputError, match="kp has 2 entries; expected 4: cab, boom, stick, bucket"):
        JointMode(kp=(1.0, 2.0), kv=GAINS["kv"], start=START)
    with pytest.raises(InputError, match="ResolvedMode: has no arm"):
        ResolvedMode(**GAINS)
