"""Large kernels are two modules: scalar code, and vector code that is compiled at the first batch."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.cpu import kernel_module
from bellcrank.emit.cpu import target as target_module
from bellcrank.emit.llvm.lanes import CACHED_RESULT_BYTES


@pytest.fixture(scope="module")
def large() -> bc.Mechanism:
    return bc.zoo.load("chain:14")


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))


def states(m: bc.Mechanism, rows: int, dtype: str = "float64") -> list[np.ndarray]:
    drawn = [m.random(i) for i in range(rows)]
    return [np.array(column, dtype) for column in zip(*drawn, strict=True)]


def test_one_state_compiles_half_and_a_batch_the_rest(large: bc.Mechanism) -> None:
    k = bc.kernel(large, "forward_dynamics", method="aba")
    assert kernel_module.is_deferred(k.graph)
    q, v, tau = states(large, 37)
    alone = np.array([k(*state) for state in zip(q, v, tau, strict=True)])
    half = k.code_size
    assert k._compile_batch is not None, "nobody has asked for a batch"
    want = k.graph.evaluate(q=q, v=v, tau=tau)["forward_dynamics"]
    assert np.abs(alone - want).max() < 1e-10 * np.abs(want).max()
    for rows in (1, 2, 3, 4, 5, 16, 37):  # fewer rows than lanes run in scalar code
        assert np.abs(k(q[:rows], v[:rows], tau[:rows]) - want[:rows]).max() < 1e-10 * np.abs(want).max()
    assert k._compile_batch is None
    assert k.code_size > 1.5 * half


def test_a_later_process_finds_both_halves(large: bc.Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    q, v, tau = states(large, 8)
    first = bc.kernel(large, "forward_dynamics", method="aba")
    want = first(q, v, tau)
    monkeypatch.setattr(target_module, "compile_text", lambda text: pytest.fail("it was compiled before"))
    again = bc.kernel(large, "forward_dynamics", method="aba")
    assert again.from_cache
    assert (again(q, v, tau) == want).all()
    assert (again(q[0], v[0], tau[0]) == first(q[0], v[0], tau[0])).all()


def test_missing_batch_module_is_compiled_again(large: bc.Mechanism, tmp_path: Path) -> None:
    q, v, tau = states(large, 8)
    bc.kernel(large, "forward_dynamics", method="aba")(q[0], v[0], tau[0])
    again = bc.kernel(large, "forward_dynamics", method="aba")
    assert again.from_cache
    want = again.graph.evaluate(q=q, v=v, tau=tau)["forward_dynamics"]
    assert np.abs(again(q, v, tau) - want).max() < 1e-10 * np.abs(want).max()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_concurrent_first_batches_agree(large: bc.Mechanism, dtype: str) -> None:
    k = bc.kernel(large, "forward_dynamics", method="aba", dtype=dtype, threads=2)
    given = states(large, 64, dtype)
    results: list[np.ndarray] = []
    crowd = [threading.Thread(target=lambda: results.append(k(*given))) for _ in range(4)]
    for t in crowd:
        t.start()
    for t in crowd:
        t.join()
    assert len(results) == 4
    want = k.graph.evaluate(**dict(zip("qv", given, strict=False)), tau=given[2])["forward_dynamics"]
    tolerance = 1e-10 if dtype == "float64" else 2e-2
    assert all(np.abs(x - want).max() < tolerance * np.abs(want).max() for x in results)


def test_bad_numbers_are_named_before_and_after(large: bc.Mechanism) -> None:
    k = bc.kernel(large, "forward_dynamics", method="aba")
    q, v, tau = states(large, 6)
    v[4, 2] = np.nan
    for _ in range(2):
        with pytest.raises(bc.InputError, match=r"v\[4, 2\]"):
            k(q, v, tau)


@pytest.mark.parametrize("quantity", ["mass_matrix", "forward_dynamics_derivatives"])
def test_more_results_than_caches_hold_are_the_same(quantity: str) -> None:
    """Results larger than the caches are the same: the lines of the rows are prefetched, also of strided rows."""
    arm = bc.zoo.puma600()
    k = bc.kernel(arm, quantity)
    rows = 2 * CACHED_RESULT_BYTES // (8 * k(*[x[0] for x in _given(arm, k, 1)]).size) + 3
    given = _given(arm, k, rows)
    found = k(*given)
    parts = [k(*[x[at : at + 500] for x in given]) for at in range(0, rows, 500)]
    assert np.array_equal(found, np.concatenate(parts))
    apart = np.zeros((2 * rows, *found.shape[1:]))[::2]
    assert np.array_equal(k(*given, out=apart), found)


def _given(arm: bc.Mechanism, k: bc.Kernel, rows: int) -> list[np.ndarray]:
    q, v, tau = arm.random(0, (rows,))
    return [{"q": q, "v": v, "tau": tau}[name] for name in k.signature.inputs]
