"""The runs of a batch equal single runs up to the rounding of the last bit, whatever the other lanes do."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.llvm.host import host

LANES = host().lanes("float64")
RUNS = 2 * LANES + 3  # whole blocks and one partial block


def singles(s: bc.Simulator, q, v, **how):
    return [s.run(q0=q[k], v0=v[k], **how) for k in range(len(q))]


def agree(batch: bc.Record, alone: list[bc.Record]) -> None:
    for k, run in enumerate(alone):
        n = len(run.t)
        assert batch.stops[k].reason == run.stops[0].reason
        np.testing.assert_allclose(np.atleast_2d(batch.t)[k if batch.t.ndim > 1 else 0, :n], run.t, rtol=1e-12)
        np.testing.assert_allclose(batch.q[k, :n], run.q, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(batch.v[k, :n], run.v, rtol=1e-9, atol=1e-11)
        assert np.isnan(batch.q[k, n:]).all()


@pytest.mark.parametrize("joints", range(1, 10))  # rows of 3 to 19 numbers: all tilings
def test_rows_of_every_width(joints: int) -> None:
    m = bc.zoo.chain(joints)
    s = bc.Simulator(m, "rk4")
    q, v, _ = m.random(1, RUNS)
    how = {"seconds": 0.02, "step": 1e-3}
    agree(s.run(q0=q, v0=v, **how), singles(s, q, v, **how))


def test_stopped_lanes_do_not_affect_others() -> None:
    m = bc.zoo.chain(2)
    s = bc.Simulator(m, "rk4")
    q, v, _ = m.random(1, RUNS)
    v[[0, 3, LANES + 1]] = 1e60  # gone after a few steps
    how = {"seconds": 0.02, "step": 1e-3}
    batch = s.run(q0=q, v0=v, **how)
    assert {"not finite", "end"} == {stop.reason for stop in batch.stops}
    agree(batch, singles(s, q, v, **how))


def test_lanes_record_rows_at_individual_times() -> None:
    m = bc.zoo.chain(3)
    s = bc.Simulator(m, "dopri5")
    q, v, _ = m.random(1, RUNS)
    how = {"seconds": 0.3, "tolerance": 1e-6, "every": "step"}
    batch = s.run(q0=q, v0=v, **how)
    alone = singles(s, q, v, **how)
    assert len({len(run.t) for run in alone}) > 1  # otherwise the test would check nothing
    agree(batch, alone)
