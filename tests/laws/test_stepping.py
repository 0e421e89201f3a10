"""Steppers equal simulations to the last bit, for any number of runs, lanes and threads."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.llvm.host import host
from bellcrank.integrate import INTEGRATORS
from bellcrank.sim.program.counter_rng import Random, seed_numbers
from carts import plant

LANES = host().lanes("float64")
RUNS = 2 * LANES + 3  # whole blocks and one partial block
ACTIONS = 12


def starts(runs: int = RUNS) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(runs, 4)) * [1.0, 0.5, 0.3, 0.3]


def pushes(runs: int = RUNS) -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, (ACTIONS, runs, 1))


def stepped(env: bc.Stepper, u: np.ndarray) -> np.ndarray:
    return np.stack([env.step(x).copy() for x in u])


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_states_are_the_rows_of_a_run(integrator: str) -> None:
    y0, u = starts(), pushes()
    env = bc.stepper(plant(), RUNS, 0.02, step=0.005, integrator=integrator)
    env.reset(start=y0)
    found = stepped(env, u)
    how = {"step": 0.005, "every": 0.02, "input_step": 0.02, "integrator": integrator}
    run = bc.simulate(plant(), 0.02 * ACTIONS, y0[:, :2], y0[:, 2:], inputs={"push": u[..., 0].T}, **how)
    rows = np.concatenate([run.q, run.v], axis=-1)[:, 1:]
    np.testing.assert_array_equal(found, np.moveaxis(rows, 1, 0))
    np.testing.assert_array_equal(env.state, found[-1])
    np.testing.assert_array_equal(env.t, run.t[..., -1])


def test_multistep_method_restarts_with_every_action() -> None:
    """A multistep method restarts with every action, even if the inputs do not change.

    A run with constant inputs has other step errors, so the two converge to each other at the method's order.
    """
    y0, off = starts(), []
    for h in (0.01, 0.005, 0.0025):
        env = bc.stepper(plant(), RUNS, 0.04, step=h, integrator="abm4")
        env.reset(start=y0)
        found = stepped(env, np.full((5, RUNS, 1), 0.3))
        run = bc.simulate(plant(), 0.2, y0[:, :2], y0[:, 2:], inputs={"push": 0.3}, step=h, every=0.04,
                          integrator="abm4")  # fmt: skip
        rows = np.moveaxis(np.concatenate([run.q, run.v], axis=-1)[:, 1:], 1, 0)
        np.testing.assert_array_equal(found[0], rows[0])  # both have started once
        off.append(np.abs(found[1:] - rows[1:]).max())
    ratios = np.divide(off[:-1], off[1:])
    assert (ratios > 2.0**3.5).all(), off
    assert off[-1] > 0.0


@pytest.mark.parametrize("integrator", ["rk4", "abm4"])
def test_observation_does_not_change_a_run_without_inputs(integrator: str) -> None:
    s = bc.system(bc.zoo.chain(3))
    q, v, _ = s.mechanism.random(3, RUNS)
    env = bc.stepper(s, RUNS, 0.01, step=0.002, integrator=integrator)
    env.reset(start=np.concatenate([q, v], axis=-1))
    found = np.stack([env.step().copy() for _ in range(5)])
    run = bc.simulate(s, 0.05, q, v, step=0.002, every=0.01, integrator=integrator)
    np.testing.assert_array_equal(found, np.moveaxis(np.concatenate([run.q, run.v], axis=-1)[:, 1:], 1, 0))


def test_with_closed_loops() -> None:
    m = bc.zoo.four_bar()
    env = bc.stepper(bc.system(m), 3, 0.01, step=0.001)
    y0 = env.state
    found = np.stack([env.step().copy() for _ in range(5)])
    run = bc.simulate(m, 0.05, y0[:, : m.nq], y0[:, m.nq :], step=0.001, every=0.01, form="projected")
    np.testing.assert_array_equal(found, np.moveaxis(np.concatenate([run.q, run.v], axis=-1)[:, 1:], 1, 0))


def drawn(random: Random) -> dict:
    return {"hinge.q": random.uniform(-0.1, 0.1), "slide.v": random.normal(0.0, 0.2)}


TASK = {
    "reward": lambda t, q, v, x, u: 1.0 - q["hinge"] * q["hinge"] - 0.01 * u["push"] * u["push"],
    "ends": lambda t, q, v, x, u: bc.fabs(q["hinge"]) > 0.2,
    "limit": 0.3,
    "start": drawn,
}


@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_runs_and_threads_gives_the_same_numbers(threads: int) -> None:
    most, u = 5 * RUNS, pushes(5 * RUNS)
    whole = bc.stepper(plant(), most, 0.05, step=0.005, restart=True, seed=7, **TASK)
    first, seen, judged = whole.reset(seed=7), [], []
    for x in u:
        seen.append(whole.step(x).copy())
        judged.append(np.stack([whole.reward, whole.ended]))
    assert (np.stack(judged)[:, 1] > 0).any(axis=0).all()  # every lane restarted at least once
    for runs in (1, 2, LANES, RUNS):
        env = bc.stepper(plant(), runs, 0.05, step=0.005, restart=True, seed=7, threads=threads, **TASK)
        np.testing.assert_array_equal(env.reset(seed=7), first[:runs])
        for k, x in enumerate(u[:, :runs]):
            np.testing.assert_array_equal(env.step(x), seen[k][:runs])
            np.testing.assert_array_equal([env.reward, env.ended], judged[k][:, :runs])


def test_one_run_has_no_axis() -> None:
    env, many = bc.stepper(plant(), None, 0.02, **TASK), bc.stepper(plant(), 1, 0.02, **TASK)
    assert env.reset(seed=3).shape == (4,)
    assert env.t.shape == env.reward.shape == ()
    many.reset(seed=3)
    np.testing.assert_array_equal(env.step(np.array([0.3])), many.step(np.array([[0.3]]))[0])
    assert env.reward == many.reward[0] != 0.0


def test_mask_restarts_only_selected_runs() -> None:
    env, u = bc.stepper(plant(), RUNS, 0.02, start=drawn), pushes()
    stepped(env, u)
    before, t = env.state, env.t
    mask = np.arange(RUNS) % 3 == 1
    seen = env.reset(mask)
    np.testing.assert_array_equal(env.state[~mask], before[~mask])
    np.testing.assert_array_equal(env.t, np.where(mask, 0.0, t))
    np.testing.assert_array_equal(seen, env.state)
    assert (env.state[mask] != before[mask]).any(axis=-1).all()
    env.reset(mask, start={"hinge.q": 0.5})
    np.testing.assert_array_equal(env.state[mask], [[0.0, 0.5, 0.0, 0.0]] * mask.sum())
    np.testing.assert_array_equal(env.state[~mask], before[~mask])


def test_restored_snapshot_continues_identically() -> None:
    env, u = bc.stepper(plant(), RUNS, 0.05, restart=True, **TASK), pushes()
    stepped(env, u[:3])
    kept = env.snapshot()
    first = stepped(env, u), env.reward.copy(), env.ended.copy(), env.t
    env.restore(kept)
    again = stepped(env, u), env.reward, env.ended, env.t
    other = bc.stepper(plant(), RUNS, 0.05, restart=True, **TASK)
    other.restore(kept)
    there = stepped(other, u), other.reward, other.ended, other.t
    for a, b, c in zip(first, again, there, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_free_numbers_are_of_each_run() -> None:
    pole = bc.parameter("push", 10.0)
    s = bc.system(
        plant().mechanism, control=lambda t, q, v, x, u: {"slide": pole * u["push"]}, inputs=["push"], parameters=[pole]
    )
    values, u = np.linspace(5.0, 15.0, RUNS), pushes()
    env = bc.stepper(s, RUNS, 0.02, step=0.005, parameters={"push": values})
    found = stepped(env, u)
    how = {"step": 0.005, "every": 0.02, "input_step": 0.02, "parameters": {"push": values}}
    run = bc.simulate(s, 0.02 * ACTIONS, inputs={"push": u[..., 0].T}, **how)
    np.testing.assert_array_equal(found[-1], np.concatenate([run.q, run.v], axis=-1)[:, -1])
    mask = np.arange(RUNS) < 4
    env.reset(mask, parameters={"push": 1.0})
    np.testing.assert_array_equal(env.parameters[:, 0], np.where(mask, 1.0, values))


def test_ended_run_stays_while_others_continue() -> None:
    env = bc.stepper(plant(), 3, 0.02, ends=TASK["ends"], reward=TASK["reward"])
    env.reset(start={"hinge.q": np.array([0.0, 0.19, 0.0]), "hinge.v": np.array([0.0, 2.0, 0.0])})
    env.step(np.zeros((3, 1)))
    assert env.reasons == ["", "ended", ""]
    assert env.reward[1] != 0.0  # of the action that led there
    kept = env.state[1]
    env.step(np.full((3, 1), 0.5))
    np.testing.assert_array_equal(env.state[1], kept)
    assert env.reward[1] == 0.0
    assert env.reward[0] != 0.0
    assert env.t.tolist() == [0.04, 0.02, 0.04]


def test_a_run_that_diverges_ends_with_its_reason() -> None:
    env = bc.stepper(plant(), 3, 0.02, step=0.02, integrator="euler")
    env.reset(start={"hinge.v": np.array([0.0, 1e160, 0.0])})
    env.step(np.zeros((3, 1)))
    assert env.reasons == ["", "not finite", ""]
    assert np.isfinite(env.state).all()


def test_final_observation_of_a_restarted_run() -> None:
    task = {"ends": TASK["ends"], "start": drawn, "limit": 0.2}
    env, plain = (bc.stepper(plant(), RUNS, 0.05, restart=r, seed=5, **task) for r in (True, False))
    u = pushes()
    for x in u[:4]:
        y, z = env.step(x), plain.step(x)
        over = env.ended > 0
        np.testing.assert_array_equal(np.where(over[:, None], env.final, y), z)
        np.testing.assert_array_equal(env.ended, plain.ended)
        if over.any():
            break
    assert over.any()
    assert (env.t == np.where(over, 0.0, plain.t)).all()


# -- random numbers


def numbers(runs: int, starts: int, draws: int, seed: int = 1) -> np.ndarray:
    """Random numbers (draws, starts, runs), by plain numpy."""
    run, start = np.meshgrid(np.arange(runs, dtype=float), np.arange(starts, dtype=float))
    random = Random(seed_numbers(seed), run, start)
    return np.stack([random.uniform() for _ in range(draws)])


def test_random_numbers_are_spread_evenly() -> None:
    x = numbers(400, 50, 6)
    assert ((x > 0.0) & (x < 1.0)).all()
    assert len(np.unique(x[0])) > 0.999 * x[0].size  # of 2**24
    counts = np.histogram(x, 200, (0.0, 1.0))[0]
    chi2 = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert 130 < chi2 < 280  # 199 on average, with a deviation of 20
    for axis in range(3):  # neighbours among draws, starts and runs are independent
        a, b = np.take(x, range(x.shape[axis] - 1), axis), np.take(x, range(1, x.shape[axis]), axis)
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 4 / np.sqrt(a.size)
        pairs = np.histogram2d(a.ravel(), b.ravel(), 16, ((0, 1), (0, 1)))[0]
        assert 160 < ((pairs - pairs.mean()) ** 2 / pairs.mean()).sum() < 360  # 255 and 23
    assert abs(np.corrcoef(x.ravel(), numbers(400, 50, 6, seed=2).ravel())[0, 1]) < 4 / np.sqrt(x.size)


def test_random_numbers_are_exact_in_single_precision() -> None:
    single = Random([np.float32(w) for w in seed_numbers(1)], np.arange(400, dtype=np.float32), np.float32(3.0))
    double = Random(seed_numbers(1), np.arange(400.0), 3.0)
    np.testing.assert_allclose(single.uniform(), double.uniform(), atol=1e-7)


def test_starts_of_a_normal_distribution() -> None:
    env = bc.stepper(plant(), 4000, 0.02, start=lambda random: {"slide.q": random.normal(1.0, 2.0)})
    x = env.state[:, 0]
    assert x.mean() == pytest.approx(1.0, abs=0.15)
    assert x.std() == pytest.approx(2.0, abs=0.1)
    again = env.reset()[:, 0]
    assert (again != x).all()
    np.testing.assert_array_equal(env.reset(seed=0)[:, 0], x)
