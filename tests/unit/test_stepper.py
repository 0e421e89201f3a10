"""Invalid arguments of a stepper raise an error and leave its runs unchanged."""

from __future__ import annotations

import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from carts import cart_pole, plant


@pytest.fixture
def env() -> bc.Stepper:
    made = bc.stepper(plant(), 3, 0.02, start=lambda random: {"hinge.q": random.uniform(-0.1, 0.1)})
    made.step(np.zeros((3, 1)))
    return made


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda e: e.step([[0.0], [np.nan], [0.0]]), r"u\[1, 0\] \(push\) is nan; expected finite"),
        (lambda e: e.step(np.full((3, 1), np.inf)), r"u\[0, 0\] \(push\) is inf"),
        (lambda e: e.step(np.zeros(3)), r"shape \(3,\); expected \(3, 1\): push"),
        (lambda e: e.step(np.zeros((4, 1))), r"shape \(4, 1\); expected \(3, 1\)"),
        (lambda e: e.step(np.zeros((2, 3, 1))), r"expected \(3, 1\)"),
        (lambda e: e.step(), "u is missing"),
        (lambda e: e.step(np.array([["a"]] * 3)), "dtype <U1; expected real numbers"),
        (lambda e: e.step(np.zeros((3, 1)), out=np.zeros((3, 1))), r"shape \(3, 4\); got float64 \(3, 1\)"),
        (lambda e: e.step(np.zeros((3, 1)), out=[0.0]), "got list"),
        (lambda e: e.reset([True, False]), r"mask has the shape \(2,\)"),
        (lambda e: e.reset([0, 1, 2]), "mask has the shape .* of int"),
        (lambda e: e.reset(start={"nobody": 1.0}), "nobody"),
        (lambda e: e.reset(start=np.zeros((2, 4))), r"start has the shape \(2, 4\); expected \(3, 4\)"),
        (lambda e: e.reset(start=np.full(4, np.nan)), "finite"),
        (lambda e: e.reset(parameters={"mass": 1.0}), "this system has no free parameters"),
        (lambda e: e.reset(seed=0.5), "seed is 0.5"),
        (lambda e: e.restore(np.zeros(3)), "ndarray is not a snapshot"),
        (lambda e: e.restore(bc.stepper(plant(), 4, 0.02).snapshot()), "batch: 4, not 3"),
        (lambda e: e.restore(bc.stepper(bc.zoo.chain(2), 3, 0.02).snapshot()), "mechanism: chain2, not cart_pole"),
    ],
)
def test_bad_input_leaves_everything_as_it_was(env: bc.Stepper, call: Any, says: str) -> None:
    before = env.snapshot()
    with pytest.raises(bc.InputError, match=says):
        call(env)
    after = env.snapshot()
    np.testing.assert_array_equal(after.run_data, before.run_data)
    env.step(np.zeros((3, 1)))  # it still works


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"every": 0.02, "step": 0.003}, "every is 0.02 s, which is 6.66667 times the step"),
        ({"every": -1.0}, "every is -1.0"),
        ({"batch": 0}, "batch is 0"),
        ({"limit": 0.0}, "limit is 0.0"),
        ({"outputs": ["nobody.q"]}, "nobody.q"),
        ({"outputs": []}, "outputs is empty"),
        ({"outputs": "hinge.q"}, "expected a list"),
        ({"reward": 1.0}, "reward is 1.0; expected a function"),
        ({"reward": lambda q: 0.0}, r"expected 5 arguments: \(t, q, v, x, u\)"),
        ({"reward": lambda t, q, v, x, u: q > 0}, "comparison|returned"),
        ({"start": lambda random: {"nobody": 0.0}}, "nobody"),
        ({"start": lambda random: [0.0]}, "expected 4 numbers"),
        ({"integrator": "simpson"}, "simpson"),
        ({"seed": "x"}, "seed is 'x'"),
        ({"parameters": {"mass": 1.0}}, "mass"),
        ({"target": "abacus"}, "abacus"),
        ({"dtype": "float32"}, "float64"),
        ({"solver": bc.Solver(tolerance=1e-6, integrator="dopri5")}, "fixed steps"),
    ],
)
def test_invalid_steppers_raise(how: dict[str, Any], says: str) -> None:
    with pytest.raises(bc.BellcrankError, match=says):
        bc.stepper(plant(), **how)


def test_a_step_after_the_end_of_all() -> None:
    env = bc.stepper(plant(), 2, 0.02, limit=0.05)
    for _ in range(3):
        env.step(np.zeros((2, 1)))
    assert env.reasons == ["limit", "limit"]
    with pytest.raises(bc.InputError, match="every run has ended"):
        env.step(np.zeros((2, 1)))
    env.reset([True, False])
    env.step(np.zeros((2, 1)))
    assert env.reasons == ["", "limit"]


def test_two_threads_in_one_stepper() -> None:
    env = bc.stepper(plant(), 50_000, 0.1)
    u, said = np.zeros((50_000, 1)), list[str]()

    def keep_calling() -> None:
        end = time.monotonic() + 60.0
        while not said and time.monotonic() < end:
            for call in (lambda: env.step(u), env.reset, env.snapshot):
                try:
                    call()
                except bc.InputError as error:
                    said.append(str(error))

    threads = [threading.Thread(target=keep_calling) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said
    assert all("another thread uses" in text for text in said)
    assert said
    np.testing.assert_array_equal(env.t, env.t[0])


def test_arrays_of_other_kinds() -> None:
    env, plain = bc.stepper(plant(), 4, 0.02), bc.stepper(plant(), 4, 0.02)
    u = np.random.default_rng(0).normal(size=(4, 3))
    wanted = plain.step(u[:, :1].copy())
    start = env.snapshot()
    wide = np.zeros((4, 8))
    for given, out in [(u[:, :1], None), (u[:, :1].tolist(), None), (u[:, :1].copy(), wide[:, ::2])]:
        env.restore(start)
        found = env.step(given, out=out)
        np.testing.assert_array_equal(found, wanted)
        assert out is None or found is out
    env.restore(start)
    assert env.step(u[:, :1].astype(np.float32)) == pytest.approx(wanted, abs=1e-6)
    env.restore(start)
    own = np.zeros((4, 4))
    own[:, :1] = u[:, :1]
    assert env.step(own[:, :1], out=own) is own  # where inputs and outputs overlap
    np.testing.assert_array_equal(own, wanted)


def test_observations_are_states_or_outputs() -> None:
    s = plant(outputs={"tip": lambda t, q, v, x, u: q["slide"] + bc.sin(q["hinge"])})
    env = bc.stepper(s, 2, 0.02)
    env.reset(start={"hinge.q": [0.1, 0.2]})
    assert env.outputs == ("tip",)
    np.testing.assert_allclose(env.step(np.zeros((2, 1)))[:, 0], env.state[:, 0] + np.sin(env.state[:, 1]))
    chosen = bc.stepper(s, 2, 0.02, outputs=["t", "hinge.a", "energy", "tip"])
    assert chosen.step(np.ones((2, 1))).shape == (2, 4)
    assert chosen.reset()[:, 0].tolist() == [0.0, 0.0]
    assert "2 runs, 0.02 s" in repr(chosen)


def test_a_mechanism_alone_takes_forces() -> None:
    m = cart_pole()
    env = bc.stepper(m, every=0.01)
    assert env.inputs == ("slide", "hinge")
    env.step(np.array([1.0, 0.0]))
    assert env.state[2] > 0
    with pytest.raises(bc.InputError, match="cannot be pickled"):
        pickle.dumps(env)


def test_a_snapshot_can_be_sent() -> None:
    env = bc.stepper(plant(), 2, 0.02)
    sent = pickle.loads(pickle.dumps(env.snapshot()))
    env.step(np.ones((2, 1)))
    env.restore(sent)
    assert env.t.tolist() == [0.0, 0.0]


def test_arrays_of_machine_code_cannot_be_replaced() -> None:
    """Arrays whose addresses machine code holds cannot be replaced.

    After a replacement the next action once wrote to freed memory.
    """
    env = bc.stepper(plant(), 3, 0.02, restart=True)
    for name in ("reward", "ended", "final"):
        with pytest.raises(AttributeError):
            setattr(env, name, np.zeros(3))
    env.step(np.zeros((3, 1)))


def test_more_runs_than_memory() -> None:
    with pytest.raises(bc.InputError, match="GB are free; take a smaller batch"):
        bc.stepper(plant(), 10**12)
    with pytest.raises(bc.InputError, match="batch is an integer of 100 bits; expected at most"):
        bc.stepper(plant(), 10**30)
    with pytest.raises(bc.InputError, match="GB are free; take a smaller batch"):
        bc.gradient(bc.zoo.chain(1), 0.01, final="energy", batch=10**12)


def test_threads_without_end() -> None:
    with pytest.raises(bc.InputError, match="threads is 1000000; expected"):
        bc.stepper(plant(), 100, threads=10**6)


def test_unknown_form_is_rejected_without_loops() -> None:
    for call in (bc.stepper, bc.Simulator):
        with pytest.raises(bc.InputError, match=r'no form "projectd".*"projected"'):
            call(bc.zoo.chain(1), form="projectd")
    with pytest.raises(bc.InputError, match="baumgarte is nan"):
        bc.Solver(baumgarte=float("nan"))
