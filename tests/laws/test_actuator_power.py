"""Power of actuators for any parameters: friction dissipates, and hydraulics gives no more than its pump."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bellcrank.actuators import PD, PID, RotaryHydraulics, SpringDamper, StribeckFriction

speeds = st.floats(-1e3, 1e3)
positive = st.floats(1e-3, 1e3)


@given(positive, positive, positive, positive, st.floats(0, 10), speeds)
def test_friction_takes_power(F_c: float, F_s: float, v_s: float, v_t: float, b: float, v: float) -> None:
    rubbing = StribeckFriction("a", F_c, F_s, v_s, v_t, b)
    f, _ = rubbing(0.0, 0.0, v, [], 0.0)
    back, _ = rubbing(0.0, 0.0, -v, [], 0.0)
    assert f * v <= 0.0
    assert back == -f
    assert abs(f) <= max(F_c, F_s) + b * abs(v) + 1e-9


@given(positive, positive, speeds, speeds)
def test_spring_damper_power_balances(k: float, d: float, q: float, v: float) -> None:
    """d(k q^2 / 2)/dt + d v^2 = -(power of the actuator)."""
    f, _ = SpringDamper("a", k, d)(0.0, q, v, [], 0.0)
    assert math.isclose(-f * v, k * q * v + d * v * v, rel_tol=1e-9, abs_tol=1e-6)


@given(st.floats(-10, 10), speeds, st.floats(-10, 10), st.floats(-10, 10))
def test_a_servo_within_its_limit(q: float, v: float, integral: float, command: float) -> None:
    for servo, x in ((PD("a", 50.0, 3.0, limit=7.0), []), (PID("a", 50.0, 4.0, 3.0, limit=7.0), [integral])):
        assert abs(servo(0.0, q, v, x, command)[0]) <= 7.0


valves = st.builds(
    RotaryHydraulics,
    st.just("a"),
    P_s=st.floats(1000, 8000),
    G=st.floats(50, 600),
    beta_m=st.floats(0, 1e5),
    P_e=st.floats(0, 500),
    laminar=st.sampled_from([0.0, 5.0]),
)
fractions = st.floats(0.01, 0.99)


@given(valves, fractions, fractions, st.floats(-0.1, 0.1), st.floats(-0.3, 0.3))
def test_hydraulics_gives_no_more_than_its_pump(
    motor: RotaryHydraulics, a: float, b: float, command: float, v: float
) -> None:
    """Fluid energy of the lines plus shaft power equals p Q at the valve, which is at most P_s Q - P_e Q.

    The fluid energy is p^2 / 2 beta_v, and damping losses are added to the shaft power. P_s is the supply pressure, P_e
    the drain pressure. All in in lbf, of which 8 are a joule (as printed).
    """
    p_in, p_out = (motor.P_e + f * (motor.P_s - motor.P_e) for f in (a, b))
    tau, (dp_in, dp_out) = motor(0.0, 0.0, v, [p_in, p_out], command)
    s = motor.spool(command)
    Q_in, Q_out = motor.flows(s, p_in, p_out)
    stored = (p_in * dp_in + p_out * dp_out) / motor.beta_v
    shaft = 8.0 * (tau + motor.beta_m * v) * v
    valve = p_in * Q_in - p_out * Q_out
    scale = abs(p_in * Q_in) + abs(p_out * Q_out) + abs(shaft) + 1.0
    assert math.isclose(stored + shaft, valve, abs_tol=1e-9 * scale)
    supply = motor.P_s * Q_in - motor.P_e * Q_out if s > 0 else motor.P_e * Q_in - motor.P_s * Q_out
    assert valve <= supply + 1e-9 * scale
    assert np.sign(Q_in) == np.sign(Q_out) == np.sign(s)  # fluid enters on one side and leaves on the other


@given(
    valves,
    st.lists(st.tuples(st.floats(-0.1, 0.1), st.floats(-1, 1)), min_size=1, max_size=30),
    st.sampled_from([1e-3, 1e-4]),
)
def test_pressures_stay_between_drain_and_supply(
    motor: RotaryHydraulics, drive: list[tuple[float, float]], h: float
) -> None:
    """For any spool position and speed, a pressure exceeds its bounds by at most one step."""
    x = [motor.P_e, motor.P_e]
    for command, v in drive:
        for _ in range(10):
            _, rates = motor(0.0, 0.0, v, x, command)
            step = h * motor.beta_v * (abs(v) * motor.D_m * motor.G + motor.k_f * 0.05 * math.sqrt(motor.P_s))
            x = [p + h * r for p, r in zip(x, rates, strict=True)]
            for p in x:
                assert motor.P_e - step - 1e-6 <= p <= motor.P_s + step + 1e-6
            x = [min(max(p, low), high) for p, (low, high) in zip(x, motor.limits(), strict=True)]  # type: ignore[misc]
