"""Wong 1991, section 5.5.2: which values of the numbers that are not printed satisfy all statements of the text."""

from __future__ import annotations

import numpy as np
import pytest

from bellcrank.excavators import spool_control
from bellcrank.papers.wong import feasible_set
from bellcrank.papers.wong.feasible_set import RANGES, STATEMENTS, all_true, evaluate, judge, samples

COUNT = 128


def test_the_chosen_numbers_are_feasible_and_the_literal_spool_is_not() -> None:
    """The text can be read as x = v, an opening of 1 cm/V; then several statements are false."""
    values = {
        "opening": np.array([spool_control.OPENING, 1.0]),
        "height": np.full(2, spool_control.HEIGHT),
        "bucket": np.full(2, spool_control.BUCKET),
    }
    truth = judge(values)
    assert all_true(truth).tolist() == [True, False]
    broken = [name for name, holds in truth.items() if not holds[1]]
    assert "RESOLVED: the cab lags at the end of the motion" in broken
    assert len(STATEMENTS) == len(truth) == 16


@pytest.mark.parametrize("step", [feasible_set.STEP, feasible_set.SHORT_STEP])
def test_the_feasible_set_is_small_and_not_empty(step: float) -> None:
    values, truth = evaluate(COUNT, step)
    inside = all_true(truth)
    assert 2 <= inside.sum() <= 0.1 * len(inside)
    assert values["opening"][inside].min() > 0.03
    assert values["opening"][inside].max() < 0.2
    assert values["height"][inside].min() > 2.5


def test_samples_are_spread_over_their_ranges() -> None:
    values = samples(64)
    for name, (low, high) in RANGES.items():
        x = np.log(values[name]) if name == "opening" else values[name]
        a, b = (np.log(low), np.log(high)) if name == "opening" else (low, high)
        assert np.ptp(np.histogram(x, bins=16, range=(a, b))[0]) == 0  # as many in each of 16 parts


def test_statements_exclude_something() -> None:
    """A statement that no sample violates would be no statement, but for the oscillation at the start."""
    _, truth = evaluate(COUNT)
    always = {name for name, holds in truth.items() if holds.all()}
    assert all("at the start" in name or "sags while" in name or "not present" in name for name in always)


def test_runs_equal_those_of_the_experiment() -> None:
    """The batch reproduces the run of `bellcrank papers wong-5.5.2` from the same numbers."""
    from bellcrank.papers.wong.experiments import simulate_mode

    values = {
        "opening": np.array([spool_control.OPENING]),
        "height": np.array([spool_control.HEIGHT]),
        "bucket": np.array([spool_control.BUCKET]),
    }
    runs = feasible_set.simulate(values)
    resolved, joint = (simulate_mode(c) for c in (spool_control.resolved_mode(), spool_control.joint_mode()))
    np.testing.assert_allclose(runs.resolved.q[0], resolved.q[::2], atol=1e-6)
    np.testing.assert_allclose(runs.joint.q[0], joint.q[::2], atol=2e-3)  # its rates change at 5 s, between two stages


def test_a_fast_sampled_control_is_the_continuous_one() -> None:
    """With a period of 1 ms the motion is that of the continuous control within a degree; at 10 ms the boom shakes."""
    values = {"opening": np.array([0.1]), "height": np.array([3.0]), "bucket": np.array([-np.pi / 2])}
    continuous, fast, slow = (feasible_set.simulate(values, 0.001, every) for every in (0.0, 0.001, 0.01))
    assert np.abs(continuous.resolved.q[0, :, :2] - fast.resolved.q[0, :, :2]).max() < np.radians(1.0)
    waves = [float(r.swing("boom", 13.0, 15.0)[0]) for r in (continuous, fast, slow)]
    assert waves[0] < 0.002
    assert waves[1] < 0.01 < 0.2 < waves[2]


def test_no_sample_with_a_sampled_control_is_feasible() -> None:
    for every in (0.01, 0.05):
        _, truth = evaluate(COUNT, feasible_set.STEP, every)
        assert not all_true(truth).any()
