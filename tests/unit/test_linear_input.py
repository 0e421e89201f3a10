"""Arguments of bc.linearize: names, shapes, invalid operating points, and their messages."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.actuators import PD
from bellcrank.emit.cuda import device


def arm() -> bc.Mechanism:
    b = bc.Builder("arm")
    b.body("upper", mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.body("lower", mass=1.0, com=(0, 0, -2), inertia=(0.1, 0.1, 0.1))
    b.joint("shoulder", "revolute", "ground", "upper", axis=(0, 1, 0))
    b.joint("elbow", "revolute", "upper", "lower", point=(0, 0, -1), axis=(0, 1, 0))
    return b.build()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"at": {"elbo.q": 0.1}}, 'no element "elbo.q".*Did you mean "elbow.q"'),
        ({"at": {"q": [0.1]}}, r"at: q has the shape \(1,\); expected \(..., 2\): shoulder, elbow"),
        ({"at": {"elbow.q": np.nan}}, 'at: "elbow.q" is nan; expected finite'),
        ({"at": {"elbow.q": [0.1, 0.2], "shoulder.q": [0.1, 0.2, 0.3]}}, "do not broadcast"),
        ({"inputs": ["elbow.torque"]}, 'no input "elbow.torque".*Did you mean'),
        ({"inputs": "elbow.tau"}, "expected a list of names"),
        ({"inputs": ["elbow.tau", "elbow.tau"]}, "more than one input"),
        ({"outputs": ["elbow.w"]}, 'no column "elbow.w"'),
        ({"independent": ["wrist"]}, 'no joint "wrist"'),
        ({"step": 0.0}, "step is 0.0; expected a number above zero"),
        ({"step": 0.1, "integrator": "rk5"}, 'no integrator "rk5"'),
        ({"integrator": "rk4"}, "no step is given"),
    ],
)
def test_bad_input(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(bc.InputError, match=match):
        bc.linearize(arm(), **arguments)


def test_non_mechanism_raises() -> None:
    with pytest.raises(bc.InputError, match="expected a Mechanism"):
        bc.linearize("arm")  # type: ignore[arg-type]


def test_input_without_a_value_raises() -> None:
    plant = bc.system(arm(), [PD("elbow", 1.0, 1.0)], lambda t, q, v, x, u: [u["target"]], inputs=["target"])
    with pytest.raises(bc.InputError, match="nothing is given for target"):
        bc.linearize(plant)
    assert bc.linearize(plant, at={"target": 0.1}).inputs == ("target",)


def test_loops_must_be_closed() -> None:
    m = bc.zoo.four_bar()
    with pytest.raises(bc.InputError, match=r"at: q0 does not close the loops.*assemble"):
        bc.linearize(m, at={"A.q": 0.3})
    with pytest.raises(bc.InputError, match=r"at: v0 opens the loops"):
        bc.linearize(m, at={"A.v": 0.3})
    with pytest.raises(bc.InputError, match="A, B do not determine its motion, or depend on each other; it has 1"):
        bc.linearize(m, independent=["A", "B"])


def test_singular_configuration_gives_nan_and_a_message() -> None:
    """A singular operating point gives NaN and a message, and does not affect the other points.

    A flat parallelogram can move in two ways.
    """
    m = bc.zoo.n_four_bar(1)
    good, _ = m.assemble()
    flat, _ = m.assemble([np.pi / 2 if n.startswith("A") else -np.pi / 2 for n in m.columns[0]])
    with pytest.warns(RuntimeWarning, match=r"singular configuration.*at 1 of 3 points \(1\); the result there is NaN"):
        lin = bc.linearize(m, at={"q": [good, flat, good]})
    assert np.isnan(lin.A[1]).all()
    assert np.array_equal(lin.A[0], lin.A[2])
    assert np.isfinite(lin.A[0]).all()
    with pytest.raises(bc.InputError, match="not finite there"):
        lin[1].modes()
    with pytest.raises(bc.InputError, match="not finite there"):
        _ = lin.eigenvalues


def test_many_points_are_picked_one_by_one() -> None:
    lin = bc.linearize(arm(), at={"elbow.q": [0.1, 0.2]})
    for ask in (lin.modes, lin.to_control, lambda: lin.deviation([0.0, 0.0], [0.0, 0.0])):
        with pytest.raises(bc.InputError, match=r"there are \(2,\) points; pick one"):
            ask()
    assert len(lin[0].modes()) == len(lin[1].modes())
    with pytest.raises(bc.InputError, match="at one point"):
        lin[0][0]


def test_feedback_needs_matching_gains_and_no_control() -> None:
    lin = bc.linearize(arm())
    with pytest.raises(bc.InputError, match=r"K has the shape \(2, 2\); expected \(2, 4\)"):
        lin.feedback(np.eye(2))
    driven = bc.system(arm(), [PD("elbow", 1.0, 1.0)], lambda t, q, v, x, u: [u["target"]], inputs={"target": 0.0})
    with pytest.raises(bc.InputError, match="Linearise the plant without its control"):
        bc.linearize(driven).feedback(np.zeros((1, 4)))


def test_results_go_to_other_processes() -> None:
    lin = pickle.loads(pickle.dumps(bc.linearize(arm(), at={"elbow.q": 0.3})))
    assert lin.states == bc.linearize(arm()).states
    assert len(lin.modes()) == 2
    rest = pickle.loads(pickle.dumps(bc.equilibrium(arm(), at=[0.1, 0.2], hold="q")))
    assert rest.inputs.keys() == {"shoulder.tau", "elbow.tau"}


def test_linear_system_prints() -> None:
    text = str(bc.linearize(arm()))
    assert "arm: the rate, 4 states, 2 inputs, 4 outputs" in text
    assert "elbow.tau" in text
    assert "a step of 0.01 s at 2 points" in str(bc.linearize(arm(), at={"elbow.q": [0.1, 0.2]}, step=0.01))


def test_sampled_controllers_are_refused() -> None:
    arm = bc.zoo.pendulum()
    plant = bc.system(arm, control=bc.Sampled(lambda t, q, v, x, u: [-1.0 * q[0]], every=0.01))
    for ask in (bc.linearize, bc.equilibrium):
        with pytest.raises(bc.InputError, match="sampled controllers"):
            ask(plant)


MANY = {"shoulder.q": np.linspace(-1.0, 1.0, 50), "elbow.v": 0.3}


def test_many_points_agree_on_threads_and_gpu() -> None:
    """Many points give the same bits on several threads; without a GPU the CPU is used, with a message."""
    want = bc.linearize(arm(), at=MANY)
    np.testing.assert_array_equal(bc.linearize(arm(), at=MANY, threads=2).A, want.A)
    with pytest.raises(bc.InputError, match="threads is 0"):
        bc.linearize(arm(), threads=0)
    if device.unavailable_reason():
        with pytest.warns(RuntimeWarning, match="The CPU computes"):
            np.testing.assert_array_equal(bc.linearize(arm(), at=MANY, target="cuda").A, want.A)


@pytest.mark.skipif(bool(device.unavailable_reason()), reason=device.unavailable_reason())
def test_on_a_gpu() -> None:
    there, here = (bc.linearize(arm(), at=MANY, target=target) for target in ("cuda", "cpu"))
    for a, b in zip(there, here, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
