"""Implicit steps with called linear systems (system_graphs.py) equal straight-line code, but shorter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.sim.program import system_graphs


@pytest.mark.parametrize("integrator", ["rodas4", "midpoint"])
@pytest.mark.parametrize("name", ["four_bar", "chain"])
def test_call_equals_written_out_code(monkeypatch: pytest.MonkeyPatch, name: str, integrator: str) -> None:
    """One system with a loop, whose Jacobian is a product of two matrices, and one without."""

    def run(fewest: int) -> tuple[Any, int]:
        monkeypatch.setattr(system_graphs, "MIN_CALL_OPERATIONS", fewest)
        mechanism = bc.zoo.four_bar() if name == "four_bar" else bc.zoo.chain(3)
        sim = bc.Simulator(mechanism, integrator=integrator)
        found = sim.run(0.05, step=5e-3, every=0.01)
        return found.q, len(sim.program(None if integrator == "midpoint" else (False, True)).tick.calls)

    (inline, few), (called, many) = run(10**9), run(0)
    np.testing.assert_allclose(called, inline, rtol=1e-13, atol=1e-15)
    assert many == few + 2  # factorisation and solution, each once for any number of solutions per step
