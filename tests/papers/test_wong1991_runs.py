"""Wong 1991, sections 3.5 and 5.5.2: his runs repeated. docs/experiments has the pages."""

from __future__ import annotations

import numpy as np
import pytest
from reruns import rerun

import bellcrank as bc
from bellcrank.control import InverseDynamics, wong
from bellcrank.excavators import spool_control as excavator
from bellcrank.papers import open_loop
from bellcrank.papers.wong import experiments


@pytest.mark.parametrize(("name", "printed"), [("theta", -1e-4), ("dtheta", -5e-5), ("ddtheta", 6e-5)])
def test_puma_errors_of_joint_6_are_the_printed_ones(name: str, printed: float) -> None:
    """Sign and size; he prints one digit, read from a plot."""
    row = rerun("wong-3.5.1")[f"joint 6, largest error of {name}"]
    assert row.ours == pytest.approx(printed, rel=0.2)
    assert row.agrees


def test_puma_errors_are_those_of_a_loop_in_python() -> None:
    """A loop of RK4 in Python, with torques at t, t + h/2, t + h/2, t + h, gives the same run."""
    arm, path, h = bc.zoo.puma600(), wong(6), 0.01
    control = InverseDynamics(arm, path)

    def f(t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[6:], arm.forward_dynamics(y[:6], y[6:], np.array(control(t, None, None), float))])

    y, run = np.zeros(12), rerun("wong-3.5.1").records["run"]
    for n in range(300):
        t = n * h
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        k4 = f(t + h, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    np.testing.assert_allclose(run.q[300], y[:6], atol=1e-11)
    np.testing.assert_allclose(run.v[300], y[6:], atol=1e-11)


def test_puma_torque_at_rest_is_gravity() -> None:
    run = rerun("wong-3.5.1").records["run"]
    first = [run[f"joint{i}.tau"][0] for i in range(1, 7)]
    np.testing.assert_allclose(first, bc.zoo.puma600().gravity_torque(np.zeros(6)), atol=1e-12)


def test_torso_is_stable_only_with_the_small_step() -> None:
    found = rerun("wong-3.5.2")
    assert abs(found["joint 6, largest error of theta, h = 0.001 s"].ours) < 0.1  # type: ignore[arg-type]
    assert abs(found["joint 6, largest error of theta, h = 0.01 s"].ours) > 90.0  # type: ignore[arg-type]
    assert found["joint 6 is off by 1 deg after, h = 0.001 s"].agrees


def test_torso_fails_for_another_reason_than_printed() -> None:
    """The step is inside RK4's region of stability, but the motion is unstable.

    With feedback the step is sufficient.
    """
    found = rerun("wong-3.5.2")
    assert found["fastest |lambda| h at h = 0.01 s (RK4: 2.785)"].ours < 0.2  # type: ignore[operator]
    assert found["growth factor of a small error in 5 s"].ours > 1e10  # type: ignore[operator]
    assert abs(found["joint 6, largest error of theta, h = 0.01 s, with feedback"].ours) < 1e-5  # type: ignore[arg-type]


def test_growth_equals_that_of_disturbed_runs() -> None:
    """|Phi| from the linearised equations equals the growth in runs with slightly different starts."""
    path = wong(6, experiments.TORSO_SECONDS)
    made = open_loop.simulator(bc.zoo.torso(), path)
    eps = 1e-8
    beside = np.concatenate([np.zeros((1, 12)), eps * np.eye(12)])
    run = made.run(1.0, q0=beside[:, :6], v0=beside[:, 6:], step=0.0005, every=1.0)
    end = np.concatenate([run.q, run.v], axis=-1)[:, -1]
    _, sizes = open_loop.error_growth(made, path, 1.0)
    assert np.linalg.norm((end[1:] - end[0]) / eps, 2) == pytest.approx(sizes[-1], rel=1e-2)


def test_statements_on_the_excavator_figures_hold() -> None:
    rows = rerun("wong-5.5.2").rows
    assert [row.what for row in rows if row.agrees is False] == []
    assert sum(row.agrees is True for row in rows) >= 16


def test_excavator_runs_are_those_of_the_stiff_integrator() -> None:
    """rodas4 with a tolerance agrees with RK4 at 1 ms.

    rodas4 uses laminar flow near zero, where the root has no derivative.
    """
    control = excavator.joint_mode()
    run = experiments.simulate_mode(control, 0.001)
    stiff = bc.system(bc.zoo.excavator(), excavator.hydraulics(laminar=1.0), control)
    other = bc.simulate(stiff, 15.0, excavator.poses()[0], integrator="rodas4", tolerance=1e-6, every=0.01)
    assert np.degrees(np.abs(run.q - other.q).max()) < 0.01


@pytest.mark.parametrize("mode", ["joint", "resolved"])
def test_excavator_record_has_all_that_the_figures_show(mode: str) -> None:
    run = rerun("wong-5.5.2").records[mode]
    assert len(run) == 1501
    for joint in excavator.JOINTS:
        spool, volts = run[f"{joint}.spool"], run[f"{joint}.command"]
        assert (np.abs(spool) <= 0.05).all()
        assert (spool[np.abs(volts) * excavator.OPENING <= 0.005] == 0.0).all()
