"""Every actuator agrees with values derived by hand and with closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import (
    ACTUATORS,
    PD,
    PID,
    Actuator,
    DCMotor,
    HydraulicCylinder,
    HydraulicMotor,
    IdealTorque,
    ProportionalValve,
    RotaryHydraulics,
    SpringDamper,
    StribeckFriction,
)
from bellcrank.errors import InputError
from bellcrank.graph import trace

MOTOR = DCMotor("elbow", k=0.05, R=2.0, L=0.01, n=100.0)
BOOM = RotaryHydraulics("boom", P_s=7000.0, G=545.0, beta_m=1e5)
VALVE = ProportionalValve(flow=4e-3, p_pump=30e6, relief=33e6, drops=(2e6, 5e6))
SAMPLES: list[Actuator] = [
    IdealTorque("a", limit=3.0),
    IdealTorque("a"),
    PD("a", kp=10.0, kd=2.0, limit=3.0),
    PD("a", kp=10.0),
    PID("a", kp=10.0, ki=5.0, kd=2.0, limit=3.0),
    PID("a", kp=10.0, ki=5.0, kd=2.0),
    DCMotor("a", k=0.05, R=2.0, L=0.01, n=100.0, voltage=24.0, current=5.0, slew=200.0),
    MOTOR,
    SpringDamper("a", k=3.0, d=0.5, rest=0.1),
    StribeckFriction("a", F_c=1.0, F_s=1.5, b=0.2),
    BOOM,
    RotaryHydraulics("a", P_s=4000.0, G=220.0, beta_m=3e4, P_e=50.0, laminar=5.0, opening=0.1),
    HydraulicCylinder("a", VALVE, bore=0.12, rod=0.08, stroke=1.0, offset=0.4, count=2, leakage=1e-13, friction=2e3),
    HydraulicMotor("a", VALVE, displacement=2e-3, leakage=1e-13, friction=1e3, viscous=2e3),
]
ids = [f"{i} {type(a).__name__}" for i, a in enumerate(SAMPLES)]


def rk4(f: Callable[[float, Any], Any], x: Any, seconds: float, h: float) -> Any:
    x = np.array(x, dtype=float)
    for i in range(round(seconds / h)):
        t = i * h
        k1 = np.array(f(t, x))
        k2 = np.array(f(t + h / 2, x + h / 2 * k1))
        k3 = np.array(f(t + h / 2, x + h / 2 * k2))
        k4 = np.array(f(t + h, x + h * k3))
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x


def force(actuator: Actuator, q: float = 0.0, v: float = 0.0, x: Sequence[float] = (), command: float = 0.0) -> float:
    return float(actuator(0.0, q, v, x, command)[0])


def rates(
    actuator: Actuator, q: float = 0.0, v: float = 0.0, x: Sequence[float] = (), command: float = 0.0
) -> list[float]:
    return [float(r) for r in actuator(0.0, q, v, x, command)[1]]


# ---- all actuators -----------------------------------------------------------------------------------------------


def test_table_has_all_actuators() -> None:
    assert set(ACTUATORS.values()) == {type(a) for a in SAMPLES}


@pytest.mark.parametrize("actuator", SAMPLES, ids=ids)
def test_prints_as_a_row(actuator: Actuator) -> None:
    row = str(actuator)
    assert "\n" not in row
    for word in (type(actuator).__name__, actuator.joint, *(s.name for s in actuator.states), *actuator.numbers()):
        assert word in row
    assert ("passive" in row) is (not actuator.commanded)


@pytest.mark.parametrize("actuator", SAMPLES, ids=ids)
def test_floats_arrays_and_the_graph_agree(actuator: Actuator) -> None:
    rng, n = np.random.default_rng(7), len(actuator.states)
    q, v, u = rng.normal(size=(3, 50))
    x = rng.normal(size=(50, n)) * (3000.0 if isinstance(actuator, RotaryHydraulics) else 3.0)
    if isinstance(actuator, HydraulicCylinder | HydraulicMotor):
        x *= [1e7, 1e7, 0.3]

    def function(t: Any, q: Any, v: Any, x: Any, u: Any) -> dict[str, Any]:
        f, r = actuator(t, q, v, list(x), u)
        return {"f": [f], "r": r}

    graph = trace("actuator", function, {"t": (), "q": (), "v": (), "x": (n,), "u": ()})
    traced = graph.evaluate(t=0.0, q=q, v=v, x=x, u=u)
    f, r = actuator(0.0, q, v, list(x.T), u)
    np.testing.assert_allclose(traced["f"][:, 0], f, rtol=1e-13, atol=1e-9)
    np.testing.assert_allclose(traced["r"], np.array(r).T.reshape(50, n), rtol=1e-13, atol=1e-9)
    for i in range(50):
        one, each = actuator(0.0, float(q[i]), float(v[i]), [float(y) for y in x[i]], float(u[i]))
        np.testing.assert_allclose(one, np.asarray(f)[i], rtol=1e-13, atol=1e-9)
        np.testing.assert_allclose(each, [np.asarray(y)[i] for y in r], rtol=1e-13, atol=1e-9)


@pytest.mark.parametrize("actuator", [a for a in SAMPLES if a != IdealTorque("a")], ids=str)
def test_every_number_may_be_left_open(actuator: Actuator) -> None:
    """An actuator whose numbers are free parameters can be traced and gives the same values."""
    starts = ("p_in", "p_out", "p_A", "p_B")
    parts = {k: x for k, x in actuator.numbers().items() if not isinstance(x, (int, float))}
    numbers = {k: x for k, x in actuator.numbers().items() if k not in starts and k not in parts}
    given = {k: float(x) for k, x in numbers.items() if math.isfinite(x)}
    names, n = list(given), len(actuator.states)

    def function(numbers: Any, q: Any, v: Any, x: Any, u: Any) -> dict[str, Any]:
        opened = type(actuator)(actuator.joint, **parts, **dict(zip(names, numbers, strict=True)))
        assert "Node" in str(opened)
        f, r = opened(0.0, q, v, list(x), u)
        return {"f": [f], "r": r}

    graph = trace("open", function, {"numbers": (len(names),), "q": (), "v": (), "x": (n,), "u": ()})
    x = [0.7 + 0.1 * i for i in range(n)]
    got = graph.evaluate(numbers=list(given.values()), q=0.3, v=-0.2, x=x, u=0.4)
    f, r = actuator(0.0, 0.3, -0.2, x, 0.4)
    np.testing.assert_allclose(got["f"], [f], rtol=1e-12)
    np.testing.assert_allclose(got["r"], r, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: IdealTorque("a", limit=-1.0), ("IdealTorque", '"a"', "limit", "-1.0", "zero or more")),
        (lambda: PD("a", kp=math.nan), ("PD", "kp", "nan")),
        (lambda: PID("a", kp=1.0, ki=-2.0), ("PID", "ki", "-2.0")),
        (lambda: DCMotor("a", k=1.0, R=1.0, L=0.0), ("DCMotor", "L", "above zero")),
        (lambda: StribeckFriction("a", 1.0, 2.0, v_t=0.0), ("StribeckFriction", "v_t", "above zero")),
        (lambda: HydraulicCylinder("a", VALVE, bore=0.1, rod=0.2, stroke=1.0), ("rod", "0.2", "0.1", "thinner")),
        (lambda: HydraulicMotor("a", VALVE), ("HydraulicMotor", "displacement", "above zero")),
        (lambda: RotaryHydraulics("a", 4000.0, 307.0, 1e5, P_e=5000.0), ("P_e", "5000", "4000", "P_e < P_s")),
        (lambda: RotaryHydraulics("a", 4000.0, 307.0, 1e5, P_e=50.0, p_in=10.0), ("p_in", "10", "50", "4000")),
        (lambda: RotaryHydraulics("a", 4000.0, 307.0, 1e5, p_out=5000.0), ("p_out", "5000", "4000")),
        *(
            (lambda x=x: RotaryHydraulics("a", 4000.0, 307.0, 1e5, p_in=x), ("p_in", "finite number"))
            for x in ("x", math.nan, [1.0], {}, np.zeros(2), True, 1j)
        ),
    ],
)
def test_bad_numbers(make: Callable[[], Actuator], words: Sequence[str]) -> None:
    with pytest.raises(InputError) as error:
        make()
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("limit", [math.inf, 3.0])
def test_pid_integrates_the_error_except_further_beyond_a_limit(limit: float) -> None:
    """Within the limits the integral grows by the error; beyond one it only returns. Opposite states are opposite."""
    pid = PID("a", kp=10.0, ki=5.0, kd=2.0, limit=limit)
    for q, v, integral, command in np.random.default_rng(3).normal(size=(100, 4)).tolist():
        e = command - q
        wanted = 10.0 * e + 5.0 * integral - 2.0 * v
        state = {"q": q, "v": v, "x": [integral], "command": command}
        expected = 0.0 if abs(wanted) > limit and e * wanted > 0.0 else e
        assert rates(pid, **state) == pytest.approx([expected])
        opposite = {"q": -q, "v": -v, "x": [-integral], "command": -command}
        assert (force(pid, **opposite), rates(pid, **opposite)) == (-force(pid, **state), [-rates(pid, **state)[0]])


# ---- single actuators --------------------------------------------------------------------------------------------


def test_ideal_torque() -> None:
    assert [force(IdealTorque("a", limit=3.0), command=u) for u in (-5, -2, 0, 2, 5)] == [-3, -2, 0, 2, 3]
    assert force(IdealTorque("a"), command=1e9) == 1e9


def test_pd() -> None:
    servo = PD("a", kp=10.0, kd=2.0, limit=3.0)
    assert force(servo, q=0.1, v=0.5, command=0.3) == pytest.approx(10 * 0.2 - 2 * 0.5)
    assert force(servo, q=5.0) == -3.0
    assert force(servo, q=-5.0) == 3.0


def test_pd_stops_short_by_load_over_kp() -> None:
    servo, load = PD("a", kp=10.0, kd=5.0), 2.0
    end = rk4(lambda t, y: [y[1], force(servo, y[0], y[1], command=1.0) - load], [0.0, 0.0], 20.0, 0.01)
    np.testing.assert_allclose(end, [1.0 - load / 10.0, 0.0], atol=1e-9)


def test_pid_removes_the_error() -> None:
    servo, load = PID("a", kp=10.0, ki=5.0, kd=5.0), 2.0

    def f(t: float, y: Any) -> list[float]:
        return [y[1], force(servo, y[0], y[1], [y[2]], 1.0) - load, *rates(servo, y[0], y[1], [y[2]], 1.0)]

    np.testing.assert_allclose(rk4(f, [0.0, 0.0, 0.0], 60.0, 0.01), [1.0, 0.0, load / 5.0], atol=1e-8)


def test_pid_integrates_out_of_the_limit_and_not_into_it() -> None:
    servo = PID("a", kp=1.0, ki=2.0, limit=3.0)
    assert rates(servo, x=[0.5], command=1.0) == [1.0]  # w = 1 + 1
    assert rates(servo, x=[2.0], command=1.0) == [0.0]  # w = 1 + 4, above
    assert rates(servo, x=[3.0], command=-1.0) == [-1.0]  # -1 + 6, above the limit and moving back
    assert rates(servo, x=[-2.0], command=-1.0) == [0.0]
    assert rates(servo, x=[-3.0], command=1.0) == [1.0]
    assert force(servo, x=[9.0]) == 3.0


def test_pid_does_not_wind_up() -> None:
    """With the integral held at the limit, a weak drive on a long way overshoots far less than without."""
    careful = PID("a", kp=4.0, ki=1.0, kd=4.0, limit=0.5)
    naive = PID("a", kp=4.0, ki=1.0, kd=4.0)

    def overshoot(servo: PID) -> float:
        y, top = np.zeros(3), 0.0
        for _ in range(400):
            y = rk4(
                lambda t, y: [
                    y[1],
                    float(np.clip(force(servo, y[0], y[1], [y[2]], 10.0), -0.5, 0.5)),
                    *rates(servo, y[0], y[1], [y[2]], 10.0),
                ],
                y, 0.1, 0.02,
            )  # fmt: skip
            top = max(top, y[0] - 10.0)
        return top

    assert overshoot(naive) > 5.0
    assert overshoot(careful) < 0.6 * overshoot(naive)


def test_motor_step_response_with_the_rotor_held() -> None:
    """The current is i = V/R (1 - exp(-R t / L)), and the stall torque is n k V / R."""
    V, t = 12.0, 0.004
    i = rk4(lambda t, i: rates(MOTOR, x=list(i), command=V), [0.0], t, 1e-5)
    np.testing.assert_allclose(i, [V / 2.0 * (1 - math.exp(-2.0 * t / 0.01))], rtol=1e-10)
    assert force(MOTOR, x=[6.0]) == pytest.approx(100 * 0.05 * 6.0)


def test_motor_on_a_rotor_against_the_closed_form() -> None:
    """L di/dt = V - R i - K w, J dw/dt = K i: two exponentials, from the eigenvalues of the 2x2 matrix."""
    J, V, t = 0.5, 6.0, 0.3
    K = MOTOR.k * MOTOR.n
    A = np.array([[-MOTOR.R / MOTOR.L, -K / MOTOR.L], [K / J, 0.0]])
    lam, E = np.linalg.eig(A)
    steady = np.array([0.0, V / K])  # no load: no current, back-EMF = V
    exact = steady + (E @ np.diag(np.exp(lam * t)) @ np.linalg.inv(E) @ -steady).real
    y = rk4(lambda t, y: [*rates(MOTOR, v=y[1], x=[y[0]], command=V), force(MOTOR, x=[y[0]]) / J], [0, 0], t, 1e-5)
    np.testing.assert_allclose(y, exact, rtol=1e-9, atol=1e-11)


def test_motor_gives_as_much_power_as_it_takes() -> None:
    v, i = 0.7, 3.0
    V = 2.0 * i + MOTOR.k * MOTOR.n * v  # at a steady current
    assert rates(MOTOR, v=v, x=[i], command=V) == [pytest.approx(0.0, abs=1e-12)]
    assert V * i - 2.0 * i * i == pytest.approx(force(MOTOR, v=v, x=[i]) * v)


def test_motor_slew() -> None:
    """The voltage rises at the slew rate until slew * lag before the goal, then approaches it exponentially."""
    motor = DCMotor("a", k=0.05, R=2.0, L=0.01, voltage=10.0, slew=100.0, lag=0.01)
    assert [s.name for s in motor.states] == ["current", "voltage"]
    y = rk4(lambda t, y: rates(motor, x=list(y), command=99.0), [0.0, 0.0], 0.05, 1e-4)
    assert y[1] == pytest.approx(100.0 * 0.05)
    y = rk4(lambda t, y: rates(motor, x=list(y), command=99.0), y, 0.2, 1e-4)
    assert y[1] == pytest.approx(10.0, abs=1e-5)
    assert rates(motor, x=[0.0, 10.0], command=-99.0)[1] == -100.0


@pytest.mark.parametrize("v", [-20.0, 0.0, 20.0])
def test_motor_current_stays_within_its_limit(v: float) -> None:
    motor = DCMotor("a", k=0.05, R=2.0, L=0.01, n=10.0, current=4.0)
    assert rates(motor, v=v, x=[4.0], command=1e3) == [0.0]
    assert rates(motor, v=v, x=[-4.0], command=-1e3) == [0.0]
    assert rk4(lambda t, i: rates(motor, v=v, x=list(i), command=1e3), [0.0], 0.1, 1e-4) == pytest.approx(4.0)


def test_spring_damper() -> None:
    assert force(SpringDamper("a", k=3.0, d=0.5, rest=0.1), q=0.6, v=2.0) == pytest.approx(-3 * 0.5 - 0.5 * 2)


def test_friction_by_hand() -> None:
    rubbing = StribeckFriction("a", F_c=1.0, F_s=1.5, v_s=0.1, v_t=1e-3, b=0.2)
    assert force(rubbing, v=0.0) == 0.0
    assert force(rubbing, v=0.1) == pytest.approx(-(1 + 0.5 / math.e) - 0.02)
    assert force(rubbing, v=10.0) == pytest.approx(-1.0 - 2.0)
    assert force(rubbing, v=0.01) == pytest.approx(-(1 + 0.5 * math.exp(-0.01)) - 0.002, rel=1e-6)
    assert force(rubbing, v=1e200) < 0


def test_spool() -> None:
    """Figure 5.3: no flow within the dead band, then linear from zero up to the limit."""
    shown = [float(BOOM.spool(v)) for v in (-1.0, -0.015, -0.005, 0.0, 0.004, 0.006, 0.03, 0.055, 1.0)]
    np.testing.assert_allclose(shown, [-0.05, -0.01, 0, 0, 0, 0.001, 0.025, 0.05, 0.05], atol=1e-15)


def test_hydraulics_flow_as_printed() -> None:
    """Flow is k_f x sqrt(pressure drop), from the supply and to the drain, for both directions of the spool."""
    assert BOOM.flows(0.05, 600.0, 400.0) == pytest.approx((1.3 * math.sqrt(6400), 1.3 * math.sqrt(400)))
    assert BOOM.flows(-0.05, 400.0, 600.0) == pytest.approx((-1.3 * math.sqrt(400), -1.3 * math.sqrt(6400)))
    assert BOOM.flows(0.0, 400.0, 600.0) == (0.0, 0.0)
    assert force(BOOM, v=0.1, x=[2000.0, 500.0]) == pytest.approx(1500 * 0.7 / 8 * 545 - 1e5 * 0.1)


@pytest.mark.parametrize("s", [-0.04, -0.01, 0.01, 0.05])
def test_hydraulics_steady_speed(s: float) -> None:
    """Flow in = flow out = swept volume.

    This gives p_in + p_out = P_s, and speed = k_f s sqrt((P_s - |load pressure|)/2) / (D_m G).
    """
    drop = 1200.0 * math.copysign(1, s)  # p_in - p_out under a load that resists
    speed = 26.0 * s * math.sqrt((7000.0 - abs(drop)) / 2) / (0.7 * 545)
    x = [(7000.0 + drop) / 2, (7000.0 - drop) / 2]
    command = s + math.copysign(0.005, s)
    np.testing.assert_allclose(rates(BOOM, v=speed, x=x, command=command), [0.0, 0.0], atol=1e-7)


def test_hydraulics_with_the_spool_shut_is_a_spring() -> None:
    """The stiffness is k = 2 (D_m G)^2 beta_v / 8 while no line is empty or full."""
    dt, v, x = 1e-6, 0.2, [3000.0, 3000.0]
    after = [p + dt * r for p, r in zip(x, rates(BOOM, v=v, x=x), strict=True)]
    slope = (force(BOOM, x=after) - force(BOOM, x=x)) / (dt * v)
    assert slope == pytest.approx(-2 * (0.7 * 545) ** 2 * 1000 / 8, rel=1e-6)


def test_a_full_and_an_empty_line_stay_so() -> None:
    assert rates(BOOM, v=1.0, x=[0.0, 7000.0]) == [0.0, 0.0]  # the rates would leave the range between drain and supply
    assert rates(BOOM, v=-1.0, x=[0.0, 7000.0]) == pytest.approx([381500.0, -381500.0])
    assert BOOM.limits() == ((0.0, 7000.0), (0.0, 7000.0))


def test_laminar_flow_has_a_slope_at_no_pressure() -> None:
    valve = RotaryHydraulics("a", P_s=4000.0, G=220.0, beta_m=3e4, laminar=4.0)
    assert float(valve.root(1e-9)) == pytest.approx(1e-9 / 2.0)  # drop / sqrt(laminar)
    assert float(valve.root(4000.0)) == pytest.approx(math.sqrt(4000.0), rel=1e-3)
    assert BOOM.root(2500.0) == 50.0


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_laminar_flow_keeps_derivatives_finite_where_nothing_drops(mode: str) -> None:
    """With laminar flow the derivative stays finite where no pressure drops; the root's derivative is infinite there.

    A line that stays empty has derivative zero.
    """
    laminar = RotaryHydraulics("a", P_s=4000.0, G=220.0, beta_m=3e4, laminar=4.0)
    for valve in (BOOM, laminar):
        root = trace("root", lambda x, valve=valve: {"r": [valve.root(x[0])]}, {"x": (1,)})
        slope = root.jacobian("r", "x", mode).evaluate(x=[0.0])["dr_dx"]
        assert np.isfinite(slope).all() == (valve is laminar)
        rates = trace("rates", lambda x, valve=valve: {"r": valve(0.0, 0.0, 0.0, list(x), 0.03)[1]}, {"x": (2,)})
        assert np.isfinite(rates.jacobian("r", "x", mode).evaluate(x=[0.0, 0.0])["dr_dx"]).all()


def test_lines_begin_between_drain_and_supply() -> None:
    """Initial pressures outside the range raise an error.

    A step would move them back into the range, so that its length would decide the rest of the run.
    """
    b = bc.Builder("arm")
    b.body("bar", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("a", "revolute", "ground", "bar", axis=(0, 1, 0))
    plant = bc.system(b.build(), [RotaryHydraulics("a", P_s=400.0, G=2.0, beta_m=30.0, P_e=5.0, laminar=5.0)])
    ends = [bc.simulate(plant, 1e-3, tolerance=1e-9, step=h, integrator="dopri5")["a.p_in"] for h in (1e-4, 1e-6)]
    assert ends[0][0] == 5.0
    assert ends[0][-1] == pytest.approx(ends[1][-1], rel=1e-6)
    with pytest.raises(InputError, match=r"x0: .a\.p_in. is 0 psi; expected 5 to 400"):
        bc.simulate(plant, 1e-3, x0={"a.p_in": 0.0})
