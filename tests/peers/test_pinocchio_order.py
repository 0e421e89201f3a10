"""bc.pinocchio_order on every robot of example-robot-data: equal states give equal poses, energies and powers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robot_files import short, urdf_files

import bellcrank as bc
from bellcrank.dynamics import kinematics
from bellcrank.errors import InputError

pin = pytest.importorskip("pinocchio")
Array = np.ndarray[Any, Any]
BROKEN = ("falcon", "ur3")  # invalid files (test_pinocchio_robots.py)
FILES = [path for path in urdf_files() if path.stem not in BROKEN]
# Robots for whose mimic joints Pinocchio itself finds no order.
NO_MIMIC = ("alex_psyonic_hands", "romeo", "talos_full_v2", "talos_full_v2_box")


def model_of(path: Path, base: str, mimic: bool) -> Any:
    root = [pin.JointModelFreeFlyer()] if base == "floating" else []
    return pin.buildModelFromUrdf(str(path), *root, mimic=mimic)


@pytest.mark.parametrize("mimic", [False, True])
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("path", FILES, ids=short)
def test_states_convert_between_orders(path: Path, base: str, mimic: bool) -> None:
    if mimic and path.stem in NO_MIMIC:
        with pytest.raises(ValueError, match="mimic"):
            model_of(path, base, mimic)
        return
    m = bc.read(path, base=base, right_angles=0.0).frictionless()
    model = model_of(path, base, mimic)
    order = bc.pinocchio_order(m, model)
    Q, V, TAU = m.random(1, (2,))
    theirs = order.q_to_pinocchio(Q), order.v_to_pinocchio(V)
    assert theirs[0].shape == (2, model.nq)
    back = order.q_from_pinocchio(theirs[0])
    np.testing.assert_allclose(order.q_to_pinocchio(back), theirs[0], atol=1e-9)  # angles up to whole turns
    np.testing.assert_allclose(order.v_from_pinocchio(theirs[1]), V)
    np.testing.assert_allclose(order.tau_from_pinocchio(order.tau_to_pinocchio(TAU)), TAU)
    taus = np.random.default_rng(1).uniform(-1, 1, (2, model.nv))
    np.testing.assert_allclose((order.tau_from_pinocchio(taus) * V).sum(-1), (taus * theirs[1]).sum(-1), atol=1e-9)
    same_motion(m, model, Q[0], V[0], theirs[0][0], theirs[1][0])


def same_motion(m: bc.Mechanism, model: Any, Q: Array, V: Array, q: Array, v: Array) -> None:
    """Check poses and velocities of all bodies."""
    data = model.createData()
    pin.forwardKinematics(model, data, q, v)
    pin.updateFramePlacements(model, data)
    for body in m.bodies:
        frame = model.getFrameId(body.name, pin.FrameType.BODY)
        X = np.array(kinematics.pose(m.tree, Q.tolist(), body.name), float)
        np.testing.assert_allclose(X, data.oMf[frame].homogeneous, atol=1e-9)
        velocity = np.array(kinematics.velocity(m.tree, Q.tolist(), V.tolist(), body.name), float)
        expected = pin.getFrameVelocity(model, data, frame, pin.LOCAL_WORLD_ALIGNED).vector
        np.testing.assert_allclose(velocity, expected, atol=1e-9 * max(1.0, np.abs(expected).max()))


def robot(name: str) -> Path:
    return next(path for path in FILES if path.name == name)


def test_index_arrays_are_the_permutation() -> None:
    """Without mimic and continuous joints: q_theirs = q_ours[order.q]."""
    path = robot("talos_reduced.urdf")
    m, model = bc.read(path, base="floating"), model_of(path, "floating", False)
    order = bc.pinocchio_order(m, model)
    q, v, _ = m.random(1)
    assert sorted(order.q) == list(range(m.nq))
    assert not np.array_equal(order.v, np.arange(m.nv))
    np.testing.assert_array_equal(order.q_to_pinocchio(q), q[order.q])
    np.testing.assert_array_equal(order.v_to_pinocchio(v), v[order.v])
    np.testing.assert_array_equal(order.v_from_pinocchio(v[order.v]), v)


@pytest.mark.parametrize("name", ["anymal.urdf", "tiago_no_hand.urdf", "kinova.urdf"])
def test_accelerations_are_pinocchios(name: str) -> None:
    path = robot(name)
    m, model = bc.read(path, base="floating", right_angles=0.0).frictionless(), model_of(path, "floating", False)
    order = bc.pinocchio_order(m, model)
    q, v, tau = m.random(2)
    theirs = pin.aba(
        model, model.createData(), order.q_to_pinocchio(q), order.v_to_pinocchio(v), order.tau_to_pinocchio(tau)
    )
    expected = m.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(order.v_from_pinocchio(theirs), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_reduced_models_and_locked_joints() -> None:
    path = robot("panda.urdf")
    held = ["panda_joint3", "panda_finger_joint1"]
    model = model_of(path, "fixed", False)
    both = [model.getJointId(name) for name in (*held, "panda_finger_joint2")]  # the second follows the first
    less = pin.buildReducedModel(model, both, pin.neutral(model))
    order = bc.pinocchio_order(bc.read(path, lock=held), less)
    assert order.q.shape == (less.nq,)
    with pytest.raises(InputError, match='only the mechanism has "panda_joint3"'):
        bc.pinocchio_order(bc.read(path), less)
    with pytest.raises(InputError, match='only the model has "panda_joint3"'):
        bc.pinocchio_order(bc.read(path, lock=["panda_joint3"]), model)
    assert np.array_equal(order.q, np.arange(6))


def test_wrong_arguments_are_named() -> None:
    path = robot("ur5_robot.urdf")
    m = bc.read(path)
    with pytest.raises(InputError, match=r"expected a pinocchio\.Model"):
        bc.pinocchio_order(m, path)
    order = bc.pinocchio_order(m, model_of(path, "fixed", False))
    with pytest.raises(InputError, match=r"q has the shape \(5,\); expected \(\.\.\., 6\)"):
        order.q_to_pinocchio(np.zeros(5))
