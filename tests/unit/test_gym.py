"""Environments of gymnasium agree with gymnasium's own checker and with the stepper."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from carts import plant

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

from bellcrank.graph.program import FINISHED  # noqa: E402
from bellcrank.gym import TASKS, Env, VectorEnv, make  # noqa: E402
from bellcrank.gym.tasks import reacher  # noqa: E402

ROBOTS = [Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in __import__("sys").path]
ROBOT = next((f / "ur_description/urdf/ur5_robot.urdf" for f in ROBOTS if f.is_dir()), None)


@pytest.mark.parametrize("task", TASKS)
def test_the_checker_finds_nothing(task: str) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        check_env(make(task), skip_render_check=True)
    assert [str(w.message) for w in found] == []


@pytest.mark.parametrize("task", TASKS)
def test_batch_equals_single_runs(task: str) -> None:
    many, one = make(task, 5), make(task)
    y, _ = many.reset(seed=4)
    first, _ = one.reset(seed=4)
    np.testing.assert_array_equal(y[0], first)
    assert y in many.observation_space
    rng = np.random.default_rng(0)
    for _ in range(10):
        u = rng.uniform(-1, 1, many.action_space.shape)
        seen, rewards, terminated, truncated, _ = many.step(u)
        alone = one.step(u[0])
        if alone[2] or alone[3]:
            break
        np.testing.assert_array_equal(seen[0], alone[0])
        assert (rewards[0], terminated[0], truncated[0]) == alone[1:4]
    assert seen.shape == many.observation_space.shape
    assert rewards.shape == terminated.shape == truncated.shape == (5,)
    assert terminated.dtype == truncated.dtype == bool


def test_termination_differs_from_truncation() -> None:
    envs = make("cart_pole", 64, limit=0.4)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    envs.reset(seed=0)
    ended = limited = 0
    for _ in range(20):
        push = np.where(np.arange(64) < 32, 1.0, 0.0)[:, None]
        y, _, terminated, truncated, info = envs.step(push)
        over = terminated | truncated
        assert ("final_obs" in info) == over.any()
        if over.any():
            np.testing.assert_array_equal(info["_final_obs"], over)
            assert (np.abs(y[over]) < 0.051).all()  # the starts of their next runs
            last = info["final_obs"][terminated]
            assert (np.abs(last[:, 1]) > 0.2).all() or not len(last)
        ended, limited = ended + terminated[:32].sum(), limited + truncated[32:].sum()
    assert ended >= 32  # pushed carts lose their poles
    assert limited == 32  # carts that are not pushed keep theirs until the limit


def test_any_plant() -> None:
    envs = VectorEnv(plant(), 3, low=-2.0, high=[2.0], every=0.02, reward=lambda t, q, v, x, u: u["push"])
    y, _ = envs.reset(options={"start": {"hinge.q": 0.1}, "reset_mask": np.array([True, False, True])})
    assert y[:, 1].tolist() == [0.1, 0.0, 0.1]
    assert envs.step(np.array([[1.0], [2.0], [-1.0]]))[1].tolist() == [1.0, 2.0, -1.0]
    assert (envs.single_action_space.low, envs.single_action_space.high) == (-2.0, 2.0)
    still = VectorEnv(plant(), 2, restart=False, every=0.02)
    assert still.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    one = Env(bc.zoo.pendulum(), every=0.02, limit=0.04)
    one.reset()
    assert one.step(np.zeros(1))[2:4] == (False, False)
    assert one.step(np.zeros(1))[2:] == (False, True, {"reason": "limit"})
    with pytest.raises(bc.InputError, match="every run has ended"):
        one.step(np.zeros(1))


@pytest.mark.skipif(ROBOT is None, reason="example-robot-data is not installed")
def test_a_real_robot_reaches() -> None:
    assert ROBOT is not None
    arm = bc.read(ROBOT)
    envs = make(reacher(arm, "tool0"), 8)
    y, _ = envs.reset(seed=2)
    assert y.shape == (8, 3 + 3 * 6)
    assert (np.linalg.norm(y[:, :3], axis=-1) > 0.01).all()
    q = envs.stepper.state[:, :6]
    where = np.asarray(arm.pose(q, frame="tool0"))[:, :3, 3]
    np.testing.assert_allclose(y[:, :3], envs.stepper.state[:, 12:] - where, atol=1e-12)


def test_invalid_environments_raise() -> None:
    with pytest.raises(bc.InputError, match="no inputs"):
        Env(bc.system(bc.zoo.pendulum()))
    with pytest.raises(bc.InputError, match="low is"):
        Env(plant(), low=[1.0, 2.0])
    with pytest.raises(bc.InputError, match="cart_pole"):
        make("cart_pol")
    with pytest.raises(bc.InputError, match="tool9"):
        reacher(bc.zoo.puma600(), "tool9")
    with pytest.raises(bc.InputError, match="joints with a quaternion"):
        reacher(bc.zoo.random_tree(0, 3, ["spherical"]))


@pytest.mark.parametrize("bounds", [{"low": float("nan")}, {"low": None}, {"high": float("nan")}, {"low": 2.0}])
def test_bounds_that_hold_nothing(bounds: dict[str, Any]) -> None:
    for made in (lambda: Env(bc.zoo.chain(1), **bounds), lambda: VectorEnv(bc.zoo.chain(1), 2, **bounds)):
        with pytest.raises(bc.InputError, match="expected low up to high"):
            made()


def returns(
    task: str, decide: Callable[[Any, int], np.ndarray[Any, Any]]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the sum of rewards of 16 runs, and whether each ended before its limit.

    decide: a function of the stepper and the step.
    """
    task_ = TASKS[task]()
    env = bc.stepper(task_.plant, 16, seed=3, **{**task_.settings, "restart": False})
    env.reset()
    total, steps = np.zeros(16), round(env.task.limit / env.every)
    for k in range(steps):
        running = env.ended == 0.0
        env.step(np.broadcast_to(decide(env, k), (16, len(env.inputs))))
        total += np.where(running, env.reward, 0.0)
        if (env.ended > 0.0).all():
            break
    return total, (env.ended > 0.0) & (env.ended != FINISHED)


@pytest.mark.parametrize("task", TASKS)
def test_to_end_a_run_never_pays(task: str) -> None:
    """Ending a run early gives less reward than doing nothing until the limit."""
    n = len(TASKS[task]().plant.inputs)
    rng = np.random.default_rng(1)
    policies: dict[str, Callable[[Any, int], Any]] = {
        "right": lambda env, k: np.ones(n),
        "left": lambda env, k: -np.ones(n),
        "random": lambda env, k: rng.uniform(-1, 1, (16, n)),
        "to and fro": lambda env, k: np.full(n, 1.0 if k % 20 < 10 else -1.0),
    }
    idle, idle_ended = returns(task, lambda env, k: np.zeros(n))
    for name, policy in policies.items():
        total, ended = returns(task, policy)
        compared = ended & ~idle_ended
        assert (total[compared] < idle[compared]).all(), (name, total, idle)


def test_the_best_of_the_swing_up_is_to_swing_up() -> None:
    """Energy shaping with a linear controller near the top gets more reward than no action or random actions."""
    scipy = pytest.importorskip("scipy.linalg")
    plant_ = TASKS["cart_pole_swing_up"]().plant
    about = bc.linearize(plant_, at={"q": np.zeros(2), "push": 0.0})
    Q, R = np.diag([1.0, 10.0, 1.0, 1.0]), np.eye(1)
    K = np.linalg.solve(R, about.B.T @ scipy.solve_continuous_are(about.A, about.B, Q, R))

    def swing(env: Any, k: int) -> Any:
        x, angle, dx, turning = env.state[:, :4].T
        angle = (angle + np.pi) % (2 * np.pi) - np.pi
        energy = turning**2 / 60 + 0.1 * 9.81 * 0.5 * (np.cos(angle) - 1.0)
        pump = (
            3.0 * np.sign(energy * turning * np.cos(angle)) * np.minimum(1.0, 20 * np.abs(energy)) - 0.5 * x - 0.7 * dx
        )
        held = -(np.stack([x, angle, dx, turning], -1) @ K.T)[:, 0]
        near = (np.abs(angle) < 0.4) & (np.abs(turning) < 3.0)
        return np.clip(np.where(near, held, pump / 3.0), -1.0, 1.0)[:, None]

    best, ended = returns("cart_pole_swing_up", swing)
    idle, _ = returns("cart_pole_swing_up", lambda env, k: np.zeros(1))
    right, fell = returns("cart_pole_swing_up", lambda env, k: np.ones(1))
    assert not ended.any()
    assert fell.all()
    assert (best > 1.5 * idle).all()
    assert (idle > 2.0 * right).all()


def test_options_of_a_reset_are_named() -> None:
    for env in (make("cart_pole"), make("cart_pole", 2)):
        with pytest.raises(bc.InputError, match=r'There is no option "x".*start, parameters'):
            env.reset(options={"x": 1})
        with pytest.raises(bc.InputError, match="expected a dictionary"):
            env.reset(options=[1])
