"""What happens around the GPU's kernel, without a GPU: this processor plays it (emulated.py).

Starts are made where the kernel runs, one line serves all runs where it can, parts that fit the memory are put together
again, and what comes back is what the CPU gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.sim import Interrupted
from emulated import emulated

__all__ = ["emulated"]  # a fixture
Array = np.ndarray[Any, Any]
Emulated = Callable[[int], None]
TOLERANCE = {"float64": 1e-11, "float32": 2e-4}


def same(a: bc.Record, b: bc.Record, tolerance: float) -> None:
    assert a.columns == b.columns
    assert a.batch == b.batch
    assert [s.reason for s in a.stops] == [s.reason for s in b.stops]
    for name in a.columns:
        scale = max(1.0, float(np.nanmax(np.abs(b[name]))))
        if not name.startswith("t_"):
            np.testing.assert_allclose(a[name], b[name], rtol=0, atol=tolerance * scale, err_msg=name)


def system() -> bc.System:
    m = bc.zoo.chain(2).free("link2.mass")
    return bc.system(
        m, control=lambda t, q, v, x, u: [u["push"] - q[0], -v[1]], inputs=["push"],
        outputs={"effort": lambda t, q, v, x, u: u["push"] * u["push"] + v[0] * v[0]},
    )  # fmt: skip


ASKED = ["max(effort)", "min(effort)", "integral(effort)", "rms(*.v)", "t_max(energy)", "max(energy)"]
Q = np.random.default_rng(0).normal(size=(13, 2))
CASES: dict[str, dict[str, Any]] = {
    "one start for all": {"batch": 13},
    "starts": {"q0": Q},
    "inputs for all": {"batch": 5, "inputs": {"push": [1.0, 3.0, -4.0]}, "input_step": 0.01},
    "inputs for each": {"inputs": {"push": np.outer(np.arange(4.0), [1.0, 3.0])}, "input_step": 0.01},
    "parameters": {"parameters": {"link2.mass": [0.5, 1.0, 2.0]}, "q0": [0.3, 0.1]},
    "one run": {"q0": [0.3, 0.1]},
    "two axes": {"q0": Q[:12].reshape(3, 4, 2)},
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("keep", ["rows", "final", "summary"])
def test_the_same_as_on_the_cpu(emulated: Emulated, case: str, keep: str, dtype: str) -> None:
    summary = ASKED if keep == "summary" else ()
    how: dict[str, Any] = {"step": 2e-3, **CASES[case]} | ({} if keep == "summary" else {"keep": keep})
    sim = bc.Simulator(system(), summary=summary)
    same(sim.run(0.04, target="cuda", dtype=dtype, **how), sim.run(0.04, **how), TOLERANCE[dtype])


@pytest.mark.parametrize("keep", ["rows", "final"])
def test_parts_that_fit(emulated: Emulated, keep: str) -> None:
    """Memory for some runs at a time: one line says so, and nothing else is seen of it."""
    emulated(15_000 if keep == "rows" else 5000)
    sim = bc.Simulator(system())
    with pytest.warns(RuntimeWarning, match="at a time"):
        run = sim.run(0.04, q0=Q, step=2e-3, target="cuda", keep=keep)
    same(run, sim.run(0.04, q0=Q, step=2e-3, keep=keep), 1e-11)


@pytest.mark.parametrize("keep", ["rows", "final"])
def test_interrupted_before_its_turn(emulated: Emulated, keep: str) -> None:
    """Ctrl-C while the first part runs: the others are where they began, and have no rows."""
    emulated(5000 if keep == "final" else 100_000)

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.warns(RuntimeWarning, match="at a time"), pytest.raises(Interrupted) as caught:
        bc.Simulator(system()).run(1.0, q0=Q, step=2e-3, target="cuda", keep=keep, progress=stop)
    run = caught.value.record
    assert {s.reason for s in run.stops} == {"interrupted"}
    assert run.final["t"][0] > 0.0
    if keep == "rows":
        assert np.isnan(run.t[-1]).all()
    else:
        np.testing.assert_array_equal(run.t[-1], 0.0)
        np.testing.assert_array_equal(run.q[-1, 0], Q[-1])


def test_memory_of_a_record_that_nobody_has_is_used_again(emulated: Emulated, monkeypatch: Any) -> None:
    """And never that of a record that somebody still looks at."""
    monkeypatch.setattr("bellcrank.sim.memory.LARGE", 100)
    m = bc.zoo.chain(1)
    sim = bc.Simulator(m)

    def made(q: float) -> bc.Record:
        return sim.run(0.001, q0=[q], batch=50, step=1e-3, target="cuda", keep="final")

    def place(run: bc.Record) -> int:
        found: int = run[f"{m.columns[0][0]}.q"].__array_interface__["data"][0]
        return found

    first = made(0.1)
    before = first.q.copy()
    second = made(0.7)
    np.testing.assert_array_equal(first.q, before)
    at = place(second)
    assert at != place(first)
    del second
    assert place(made(0.5)) == at
