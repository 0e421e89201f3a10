"""Many runs of a mechanism with loops: closing all starts at once equals closing each alone."""

from __future__ import annotations

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.sim.constraints import loop_closure
from bellcrank.sim.constraints.loop_closure import LoopClosure


def starts(n: int) -> tuple[bc.Simulator, np.ndarray, np.ndarray]:
    m = bc.zoo.load("four_bar")
    found = [
        m.assemble({m.columns[0][0]: 0.1 * k}, {m.columns[1][0]: 1.0 + k}, fixed=[m.columns[0][0]]) for k in range(n)
    ]
    q, v = (np.array(x) for x in zip(*found, strict=True))
    return bc.Simulator(m), q + 1e-8, v


def test_many_starts_close_as_each_one_alone() -> None:
    s, q, v = starts(4)
    closure = s.dynamics.closure
    assert isinstance(closure, LoopClosure)
    y, p = np.concatenate([q, v], axis=1), np.zeros((4, 0))
    alone = np.vstack([closure.checked(row[None], p[:1]) for row in y])
    together = closure.checked(y, p)
    assert together == pytest.approx(alone, abs=1e-13)
    assert np.abs(together[:, : s.system.mechanism.nq] - q).max() > 1e-9  # the loops were open
    assert sorted(k for g in closure.grouped(together, p) for k in g.members) == [0, 1, 2, 3]


def test_invalid_start_is_named() -> None:
    s, q, v = starts(3)
    tree, loops = s.system.mechanism.tree, s.dynamics.closure.dynamics.analysis  # type: ignore[attr-defined]
    assert loop_closure.acceptable_starts(tree, loops, q, v).all()
    for bad, words in ((q, r"q0 \(run 1\) does not close"), (v, r"v0 \(run 1\) opens")):
        worse = [np.array(q), np.array(v)]
        worse[0 if bad is q else 1][1, 0] += 0.01
        assert loop_closure.acceptable_starts(tree, loops, *worse).tolist() == [True, False, True]
        with pytest.raises(InputError, match=words):
            s.dynamics.closure.checked(np.concatenate(worse, axis=1), np.zeros((3, 0)))
