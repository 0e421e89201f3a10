"""A linearisation is the derivative of the rate and of a step, with loops, actuators and control, at many points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.actuators import PD, PID, DCMotor
from bellcrank.dynamics import METHODS, kinematics
from bellcrank.dynamics.loops.assembly import consistent_velocity
from bellcrank.errors import BellcrankError
from bellcrank.integrate import INTEGRATORS
from bellcrank.sim.constraints.looped_dynamics import looped_dynamics
from bellcrank.sim.linear.operating_point import dependent_mask, displaced_positions, position_rate_matrix
from bellcrank.sim.settings import Solver
from loops import Closed, at_random
from loops import looped as mechanisms
from trees import HOLONOMIC, close, few, random_tree, trees

Array = np.ndarray[Any, Any]
EPSILON = 1e-200  # size of a complex step: no rounding loss


def pendulum(damping: float = 0.0) -> bc.Mechanism:
    b = bc.Builder("pendulum")
    b.body("bob", mass=2.0, com=(0, 0, -0.5), inertia=(0, 0, 0))
    b.joint("hinge", "revolute", "ground", "bob", axis=(0, 1, 0), damping=damping)
    b.frame("end", "bob", point=(0, 0, -0.5))
    return b.build()


def double_pendulum() -> bc.Mechanism:
    """Two masses of 1 on strings of length 1."""
    b = bc.Builder("double")
    b.body("upper", mass=1.0, com=(0, 0, -1), inertia=(0, 0, 0))
    b.body("lower", mass=1.0, com=(0, 0, -2), inertia=(0, 0, 0))
    b.joint("first", "revolute", "ground", "upper", axis=(0, 1, 0))
    b.joint("second", "revolute", "upper", "lower", point=(0, 0, -1), axis=(0, 1, 0))
    return b.build()


def exponential(A: Array, h: float) -> Array:
    """exp(A h) for small A h, by its series."""
    total = term = np.eye(len(A))
    for k in range(1, 30):
        term = term @ A * (h / k)
        total = total + term
    return total


def accelerated(m: bc.Mechanism, q: Array, v: Array, tau: Array) -> Array:
    """Accelerations with complex numbers, by the method's source."""
    found = METHODS["crba"].function("forward_dynamics")(m.tree, list(q), list(v), list(tau))
    return np.array(found)


@few(8)
@given(trees(passive=True, armature=True, max_bodies=4), st.integers(0, 99))
def test_tree_linearisation_equals_the_complex_step(m: bc.Mechanism, seed: int) -> None:
    """Accelerations by displacements, velocities and forces, for every kind of joint, in general motion."""
    q, v, tau = m.random(seed)
    lin = bc.linearize(m, at={"q": q, "v": v, "u": tau})
    n = m.nv
    for j in range(n):
        unit = np.eye(n)[j]
        dq = np.array(kinematics.rate(m.tree, list(q), list(unit)), float)
        moves = (dq, 0 * v, 0 * v), (0 * q, unit, 0 * v), (0 * q, 0 * v, unit)
        for D, (x, w, f) in zip((lin.A[n:, :n], lin.A[n:, n:], lin.B[n:]), moves, strict=True):
            answer = accelerated(m, q + 1j * EPSILON * x, v + 1j * EPSILON * w, tau + 1j * EPSILON * f)
            close(D[:, j], answer.imag / EPSILON, 1e-11)


@few(10)
@given(trees(kinds=HOLONOMIC))
def test_displacements_change_by_v(m: bc.Mechanism) -> None:
    q, v, _ = m.random(1)
    lin = bc.linearize(m, at={"q": q, "v": v})
    close(lin.A[: m.nv], np.hstack([np.zeros((m.nv, m.nv)), np.eye(m.nv)]))
    assert lin.states == (*(f"{n}.q" for n in m.columns[1]), *(f"{n}.v" for n in m.columns[1]))


def test_displacement_of_a_ball_joint_rotates_with_its_velocity() -> None:
    """dxi/dt = dw - w x xi in body axes; and the derivative of one step equals that of the flow."""
    m = random_tree(3, ["spherical"])
    q, v, _ = m.random(3)
    A = bc.linearize(m, at={"q": q, "v": v}).A
    x, y, z = v
    close(A[:3, :3], -np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]))
    close(A[:3, 3:], np.eye(3))


@few(8)
@given(trees(max_bodies=3), st.integers(0, 99))
def test_a_short_step_is_one_and_h_times_the_rate(m: bc.Mechanism, seed: int) -> None:
    """For every kind of joint in motion, also with quaternions, the remainder is of second order in h."""
    q, v, tau = m.random(seed)
    at = {"q": q, "v": v, "u": tau}
    A, B, _, _ = bc.linearize(m, at=at)

    def left(h: float) -> float:
        step = bc.linearize(m, at=at, step=h, integrator="rk4")
        return float(np.abs((step.A - np.eye(len(A))) / h - A).max() + np.abs(step.B / h - B).max())

    scale = 1.0 + np.abs(A).max() ** 2 + np.abs(v).max() ** 2 * (1.0 + np.abs(A).max())
    assert left(1e-6) <= 1e-5 * scale
    assert left(1e-6) <= 0.2 * left(1e-5) + 1e-8 * scale


@pytest.mark.parametrize("name", sorted(INTEGRATORS))
def test_a_step_at_rest_is_the_exponential_to_its_order(name: str) -> None:
    m = random_tree(5, ["revolute", "prismatic", "revolute"], passive=True)
    rest = bc.equilibrium(m, at=m.random(2)[0], hold="q")
    A = bc.linearize(m, at=rest).A
    order = INTEGRATORS[name].order

    def missed(h: float) -> float:
        return float(np.abs(bc.linearize(m, at=rest, step=h, integrator=name).A - exponential(A, h)).max())

    h = {1: 1e-3, 2: 1e-3}.get(order, 0.02)
    ratio = missed(h) / missed(h / 2)
    assert 2.0**order < ratio < 2.0 ** (order + 2), f"{name}: half the step has 1/{ratio:.2f} of the error"


@at_random
@few(10)
@given(mechanisms(most=2, springs=1, max_bodies=4))
def test_loops_linearise_to_differences_of_closed_states(example: Closed) -> None:
    m, q = example
    assume(m.loops)
    s = bc.system(m)
    try:
        by = looped_dynamics(s, Solver())
    except BellcrankError:
        assume(False)
    y = np.concatenate([q, np.random.default_rng(len(q)).normal(size=m.nv)])
    assume(by.closure.condition(y, np.zeros(0)).number < 1e2)
    y = by.correction.evaluate(y=y)["y"]
    try:
        lin = bc.linearize(m, at={"q": y[: m.nq], "v": y[m.nq :]})
    except BellcrankError:
        assume(False)
    names = lin.states[: len(lin.states) // 2]
    free = [m.columns[1].index(n.removesuffix(".q")) for n in names]
    assume(np.abs(lin.shapes).max(initial=0.0) < 10.0)

    def rate(xi: Array, w: Array) -> Array:
        full = np.zeros(m.nv)
        full[free] = xi
        there = displaced_positions(s, np.zeros(0), y[: m.nq], full, free)
        v = np.array(y[m.nq :])
        v[free] += w
        v = consistent_velocity(m.tree, there, v, free=dependent_mask(s, free))
        return by.f.evaluate(t=0.0, y=np.concatenate([there, v]))["dy"][m.nq :][free]

    k, e = len(free), 1e-6
    zero = np.zeros(k)
    for j in range(k):
        unit = e * np.eye(k)[j]
        close(lin.A[k:, j], (rate(unit, zero) - rate(-unit, zero)) / (2 * e), 1e-4)
        close(lin.A[k:, k + j], (rate(zero, unit) - rate(zero, -unit)) / (2 * e), 1e-4)


@pytest.mark.parametrize("name", ["rk4", "rodas4", "midpoint"])
def test_step_with_loops_equals_a_run(name: str) -> None:
    """For a moving linkage: both ends of a central difference close the loops."""
    m = bc.zoo.four_bar()
    q, v = m.assemble({"A": 0.7}, {"A": 3.0}, fixed=["A"])
    step = bc.linearize(m, at={"q": q, "v": v, "A.tau": 0.4}, step=0.01, integrator=name)
    joint = step.states[0].removesuffix(".q")
    run = bc.Simulator(bc.system(m, control=lambda t, q, v, x, u: {"A": u["push"]}, inputs=["push"]), name)

    def after(angle: float, speed: float, push: float) -> Array:
        near = dict(zip(m.columns[0], q, strict=True)) | {joint: angle}
        there, fast = m.assemble(near, {joint: speed}, fixed=[joint])
        end = run.run(0.01, q0=there, v0=fast, inputs={"push": push}, step=0.01)
        return np.array([end[f"{joint}.q"][-1], end[f"{joint}.v"][-1]])

    k = m.columns[0].index(joint)
    at, e = np.array([q[k], v[k], 0.4]), 1e-5
    found = np.stack([(after(*(at + d)) - after(*(at - d))) / (2 * e) for d in e * np.eye(3)], axis=1)
    close(step.A, found[:, :2], 1e-7)
    close(step.B[:, [0]], found[:, 2:], 1e-7)


def test_linearisation_includes_actuators_and_control() -> None:
    """A of a servo equals that of the open system closed by hand; its states are included with their names."""
    m = double_pendulum()
    kp, kd, ki = 30.0, 4.0, 7.0
    servo = bc.system(
        m,
        [PD("first", kp, kd), PID("second", kp, ki, kd)],
        lambda t, q, v, x, u: {"first": u["target"], "second": 2.0 * u["target"]},
        inputs=["target"],
        outputs={"sum": lambda t, q, v, x, u: q["first"] + q["second"] + 3.0 * u["target"]},
    )
    at = {"first.q": 0.3, "second.q": -0.2, "target": 0.0}
    lin, bare = bc.linearize(servo, at=at), bc.linearize(m, at={"q": [0.3, -0.2], "u": [-9.0, 6.0]})
    assert lin.inputs == ("target",)
    assert lin.outputs == ("sum",)
    close(lin.C, [[1.0, 1.0, 0.0, 0.0, 0.0]])
    close(lin.D, [[3.0]])
    K = np.array([[kp, 0, kd, 0], [0, kp, 0, kd]])
    close(lin.A[:4, :4], bare.A - bare.B @ K)
    integral = lin.states.index("second.integral")
    close(lin.A[integral, 1], -1.0)
    close(lin.B[:4, 0], bare.B @ [kp, 2.0 * kp])
    close(lin.A[:4, integral], bare.B @ [0.0, ki])


def test_inputs_may_be_forces_commands_and_free_numbers() -> None:
    arm = pendulum().free("bob.mass")
    motor = bc.system(arm, [DCMotor("hinge", 0.5, 1.0, 0.01)])
    lin = bc.linearize(motor, at={"hinge.q": 0.4}, inputs=["hinge.command", "hinge.tau", "bob.mass"])
    M = 2.0 * 0.25
    assert lin.states[2] == "hinge.current"
    close(lin.B[1, 1], 1.0 / M)
    close(lin.B[2, 0], 1.0 / 0.01)
    close(lin.B[1, 2], 0.0, 1e-9)  # a pendulum's acceleration does not depend on its mass
    pushed = bc.linearize(arm, at={"hinge.q": 0.4, "hinge.tau": 3.0}, inputs=["bob.mass"])
    close(pushed.B[1, 0], -3.0 / (2.0 * M), 1e-9)


def test_outputs_are_columns_of_a_record() -> None:
    m = pendulum()
    lin = bc.linearize(
        m, at={"hinge.q": 0.3, "hinge.v": 2.0}, outputs=["end.x", "end.speed", "kinetic_energy", "hinge.a"]
    )
    close(lin.C[0], [m.jacobian([0.3], "end")[0, 0], 0.0])
    close(lin.C[1], [0.0, 0.5])
    close(lin.C[2], [0.0, 0.5 * 2.0])
    close(lin.C[3], lin.A[1])
    close(lin.D[3], lin.B[1])


def test_many_points_are_the_same_as_one_by_one() -> None:
    m = random_tree(8, ["floating", "revolute", "spherical"])
    q, v, tau = m.random(0, batch=(2, 3))
    for step in (None, 0.01):
        many = bc.linearize(m, at={"q": q, "v": v, "u": tau}, step=step)
        assert many.A.shape == (2, 3, 2 * m.nv, 2 * m.nv)
        assert many.batch == (2, 3)
        for k in np.ndindex(2, 3):
            one = bc.linearize(m, at={"q": q[k], "v": v[k], "u": tau[k]}, step=step)
            for a, b in zip(many[k], one, strict=True):
                close(a, b, 1e-13)
            close(many[k].rate, one.rate, 1e-13)


def test_many_points_of_a_linkage_have_the_same_states() -> None:
    m = bc.zoo.four_bar()
    starts = [m.assemble({"A": a}, fixed=["A"])[0] for a in np.linspace(0.0, 6.0, 7)]
    many = bc.linearize(m, at={"q": starts}, independent=["A"])
    assert many.states == ("A.q", "A.v")
    for k, q in enumerate(starts):
        close(many.A[k], bc.linearize(m, at=q, independent=["A"]).A, 1e-10)
    assert len(bc.linearize(m, at={"q": starts}).states) == 2


def test_a_row_of_a_run_is_a_point() -> None:
    m = pendulum()
    plant = bc.system(m, [PD("hinge", 30.0, 2.0)], lambda t, q, v, x, u: [u["target"]], inputs={"target": 0.0})
    run = bc.simulate(plant, 0.5, inputs={"target": 0.7}, step=0.01)
    lin = bc.linearize(plant, at=run.final)
    close(lin.at["q"], run.q[-1], 0.0)
    close(lin.at["u"], [0.7], 0.0)
    close(lin.rate, [run.v[-1, 0], run.a[-1, 0]])


def test_feedback_from_the_matrices_stabilises_the_run() -> None:
    m = double_pendulum()
    rest = bc.equilibrium(m, at=[2.8, 0.4], hold="q")
    lin = bc.linearize(m, at=rest)
    K = np.array([[60.0, 20.0, 15.0, 4.0], [20.0, 30.0, 4.0, 6.0]])
    closed = bc.system(m, control=lin.feedback(K))
    close(bc.linearize(closed, at=rest).A, lin.A - lin.B @ K)
    run = bc.simulate(closed, 20.0, q0=rest.q + np.array([0.05, -0.05]))
    close(run.q[-1], rest.q, 1e-6)


@few(10)
@given(trees(max_bodies=6))
def test_motions_are_the_rate_of_positions(m: Any) -> None:
    """Each column is the rate of q for a unit of one velocity, joint by joint."""
    q, v, _ = m.random(3)
    close(v @ position_rate_matrix(m, q), np.array(kinematics.rate(m.tree, q.tolist(), v.tolist()), float), 1e-13)
