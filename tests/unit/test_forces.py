"""External forces: on a frame, as generalised forces; and soil as the first force element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PD
from bellcrank.errors import InputError
from bellcrank.forces import Soil


def arm(gravity: float = 9.81) -> bc.Mechanism:
    b = bc.Builder("arm", gravity=(0, 0, -gravity))
    b.body("upper", mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2))
    b.body("lower", mass=1.0, com=(1.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("shoulder", "revolute", "ground", "upper", axis=(0, -1, 0))
    b.joint("elbow", "revolute", "upper", "lower", point=(1, 0, 0), axis=(0, -1, 0))
    b.frame("hand", "lower", point=(2, 0, 0.1))
    b.frame("c1", "upper", point=(0.5, 0, 0))
    b.frame("c2", "lower", point=(1.5, 0, 0))
    return b.build()


def test_weights_as_forces_are_weights() -> None:
    """Gravity as forces on the centres of mass gives the same run as gravity."""

    def weight(m: float) -> Any:
        return lambda t, pose, velocity: ([0.0, 0.0, -9.81 * m], [0.0, 0.0, 0.0])

    ours = bc.simulate(bc.system(arm(0.0), forces={"c1": weight(2.0), "c2": weight(1.0)}), 1.0, [0.3, -0.2])
    theirs = bc.simulate(arm(), 1.0, [0.3, -0.2])
    np.testing.assert_allclose(ours.q, theirs.q, atol=1e-12)
    gravity = np.array([-arm().gravity_torque(q) for q in ours.q[::100]])
    np.testing.assert_allclose(ours["shoulder.external"][::100], gravity[:, 0], atol=1e-10)
    np.testing.assert_allclose(ours["elbow.external"][::100], gravity[:, 1], atol=1e-10)


def test_pose_velocity_and_moment() -> None:
    """A spring, damper and moment at the hand give J^T [f, n] in every row, recorded apart from the servo's force."""
    m = arm()
    k, d, n = 30.0, 5.0, np.array([0.3, -2.0, 0.1])

    def tied(t: Any, pose: Any, velocity: Any) -> Any:
        return -k * pose[:3, 3] - d * velocity[:3], n + 0.1 * velocity[3:]

    servo = PD("elbow", 20.0, 2.0)
    run = bc.simulate(bc.system(m, [servo], lambda *_: [0.4], forces={"hand": tied}), 0.5, [0.3, -0.2], every=0.1)
    for i in range(len(run)):
        q, v = run.q[i], run.v[i]
        J = m.jacobian(q, "hand")
        f = -k * m.pose(q, "hand")[:3, 3] - d * (J @ v)[:3]
        expected = J.T @ np.concatenate([f, n + 0.1 * (J @ v)[3:]])
        np.testing.assert_allclose(run.external[i], expected, atol=1e-10)
        np.testing.assert_allclose(run.tau[i], [0.0, 20.0 * (0.4 - q[1]) - 2.0 * v[1]], atol=1e-10)


def test_on_a_loop_it_does_the_same_work() -> None:
    """The power of the force at the hand equals the power of the joint forces on every motion of a loop."""
    m = bc.zoo.four_bar()
    q, v = m.assemble({"A": 1.0}, {"A": 2.0}, fixed=["A"])
    frame = next(iter(m.frames))
    push = bc.system(m, forces={frame: lambda t, pose, velocity: ([1.0, 2.0, 0.0], [0.0, 0.0, 0.5])})
    run = bc.simulate(push, 0.1, q, v)
    power = sum(run[f"{name}.external"][0] * v[i] for i, name in enumerate(m.columns[1]))
    assert power == pytest.approx((m.jacobian(q, frame) @ v) @ [1.0, 2.0, 0.0, 0.0, 0.0, 0.5], abs=1e-12)


def test_record_and_system_name_their_forces() -> None:
    s = bc.system(arm(), forces={"hand": Soil()})
    assert "force on hand: Soil" in str(s)
    assert "Soil" in bc.simulate(s, 0.01).provenance["forces"]["hand"]


def test_numbers_may_be_left_open() -> None:
    soil = Soil(cohesion=bc.parameter("cohesion", 1e3), ground=bc.parameter("ground", 0.0))
    s = bc.system(arm(), forces={"hand": soil})
    assert list(s.parameters) == ["cohesion", "ground"]
    run = bc.simulate(s, 0.3, parameters={"cohesion": [1e2, 1e4]})
    assert run.q[0, -1, 0] < run.q[1, -1, 0]  # softer ground, deeper


@pytest.mark.parametrize(
    ("forces", "words"),
    [
        ({"hnad": Soil()}, ('no frame "hnad"', '"hand"')),
        ({"hand": 3.0}, ('force on "hand"', "3.0", "(t, pose, velocity)")),
        ([Soil()], ("forces is", "by the name of a frame")),
    ],
)
def test_bad_forces(forces: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as error:
        bc.system(arm(), forces=forces)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("force", "words"),
    [
        (lambda t, pose: ([0.0] * 3, [0.0] * 3), ('force on "hand"', "3 arguments", "(t, pose, velocity)")),
        (lambda t, pose, velocity: [1.0, 2.0, 3.0], ("pair (force, moment)",)),
        (lambda t, pose, velocity: ([1.0], [0.0] * 3), ('force on "hand"', "1 numbers", "x, y, z")),
    ],
)
def test_bad_results(force: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as error:
        bc.simulate(bc.system(arm(), forces={"hand": force}), 0.1)
    for word in words:
        assert word in str(error.value)


# -- soil


def felt(height: float, velocity: tuple[float, float, float], soil: Soil | None = None) -> Any:
    pose = np.eye(4)
    pose[2, 3] = height
    f, moment = (soil or Soil())(0.0, pose, np.array([*velocity, 0.0, 0.0, 0.0]))
    assert moment == [0.0, 0.0, 0.0]
    return np.array(f, float)


@pytest.mark.parametrize("velocity", [(0, 0, 0), (1, 2, -3), (-1, 0, 1)])
def test_no_soil_above_the_ground(velocity: tuple[float, float, float]) -> None:
    assert not felt(0.0, velocity).any()
    assert not felt(2.0, velocity).any()
    assert felt(0.5, velocity, Soil(ground=1.0)).any()


@pytest.mark.parametrize("seed", range(10))
def test_soil_opposes_the_motion(seed: int) -> None:
    """Soil without its static support takes power in both directions of motion, and more at greater depth."""
    u = np.random.default_rng(seed).normal(size=3)
    cut = felt(-0.3, tuple(u)) - felt(-0.3, (0, 0, 0))
    assert cut @ u < 0.0
    np.testing.assert_allclose(np.cross(cut, u), 0.0, atol=1e-9)
    deeper = felt(-0.6, tuple(u)) - felt(-0.6, (0, 0, 0))
    assert np.linalg.norm(deeper) > 2.0 * np.linalg.norm(cut)


def test_the_ground_bears() -> None:
    assert felt(-0.05, (0, 0, 0))[2] == pytest.approx(10e3)
    assert felt(-5.0, (0, 0, 0))[2] < 20e3
    assert felt(-0.3, (10.0, 0, 0))[0] == pytest.approx(-1.2 * 0.3 * (30e3 + 40e3 * 0.3), rel=1e-4)


def test_a_width_of_nothing() -> None:
    with pytest.raises(InputError, match="width is 0"):
        Soil(width=0.0)


@pytest.mark.parametrize("restitution", [1e-12, 1e-9, 1e-4, 1e-3, 0.01, 0.3, 0.99, 1.0 - 1e-9])
def test_damping_and_restitution_belong_together(restitution: float) -> None:
    """Damping from restitution is defined down to the smallest coefficient.

    Rounding reaches values beyond 1 / restitution, where the logarithm is undefined.
    """
    from bellcrank.forces import damping_of, restitution_of

    assert restitution_of(damping_of(restitution, 2.0), 2.0) == pytest.approx(restitution, rel=1e-6)
