"""Batches of large mechanisms on a GPU that this processor plays: a thread for each state, in the loops' own text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build.differentiable import function_of
from bellcrank.emit.cuda.kernel import CudaKernel
from bellcrank.emit.cuda.state_kernel import StateKernel
from bellcrank.emit.cuda.state_loops import looped
from bellcrank.errors import InputError
from emulated import Function, OutOfMemoryError
from emulated_blocks import kernels_here
from trees import random_tree

MIXED = ("revolute", "spherical", "prismatic", "floating", "universal", "planar", "helical")


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Bytes that are free, which may be changed."""
    free = [10**9]
    found = kernels_here(monkeypatch)
    for name, x in {"cupy": lambda: found, "Function": Function, "free_bytes": lambda: free[0]}.items():
        monkeypatch.setattr(f"bellcrank.emit.cuda.state_kernel.{name}", x)
    monkeypatch.setattr("bellcrank.emit.cuda.state_kernel.out_of_memory", lambda: OutOfMemoryError)
    monkeypatch.setattr("bellcrank.emit.cuda.state_loops.ptx", lambda text: text)
    monkeypatch.setattr("bellcrank.emit.cuda.kernel.cupy", lambda: found)
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))
    return free


def kernel(m: bc.Mechanism, quantity: str, dtype: str = "float64") -> Any:
    found = bc.kernel(m, quantity, target="cuda", dtype=dtype)
    assert isinstance(found, StateKernel)
    return found


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("rows", [(), (1,), (33,), (2, 40)])
@pytest.mark.parametrize("quantity", ["forward_dynamics", "inverse_dynamics", "bias"])
def test_a_chain(quantity: str, rows: tuple[int, ...]) -> None:
    m = bc.zoo.load("chain:170")
    own = kernel(m, quantity)
    given = m.random(3, rows)[: len(own.signature.inputs)]
    expected = bc.kernel(m, quantity)(*given)
    found = own(*given)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("seed", range(2))
def test_trees_of_any_joints(seed: int) -> None:
    """Branches that meet, tables of places that no formula gives, and many kinds of parts."""
    m = random_tree(seed, np.random.default_rng(seed).choice(MIXED, 90).tolist())
    given = m.random(seed, 3)
    expected = bc.kernel(m, "forward_dynamics", method="aba")(*given)
    own = bc.kernel(m, "forward_dynamics", method="aba", target="cuda")
    assert isinstance(own, StateKernel)
    found = own(*given)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max())


@pytest.mark.usefixtures("memory")
def test_single_precision() -> None:
    m = bc.zoo.load("chain:100")
    given = m.random(1, 3)
    expected = bc.kernel(m, "forward_dynamics")(*given)
    found = kernel(m, "forward_dynamics", "float32")(*given)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 2e-3 * np.abs(expected).max()


def test_one_for_all_and_parts_that_fit(memory: list[int]) -> None:
    """One state of an input for a whole batch; a batch in parts, where the workspace is large."""
    m = bc.zoo.load("chain:100")
    own = kernel(m, "forward_dynamics")
    q, v, tau = m.random(2, 70)
    expected = bc.kernel(m, "forward_dynamics")(q, v[0], tau)
    memory[0] = 40 * (own.room + 600) * 8  # for one block
    assert own._blocks(70, 400) == 1
    np.testing.assert_allclose(own(q, v[0], tau), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.usefixtures("memory")
def test_what_it_does_not_take() -> None:
    m = bc.zoo.load("chain:100")
    own = kernel(m, "forward_dynamics")
    with pytest.raises(InputError, match="out= is not for kernels of loops"):
        own(*m.random(0), out=np.zeros(100))
    with pytest.raises(InputError, match=r"NaN|finite"):
        own(np.full(100, np.nan), *m.random(0)[1:])


@pytest.mark.usefixtures("memory")
def test_who_starts_kernels_by_their_addresses_has_them_written_out() -> None:
    """JAX and PyTorch."""
    m = bc.zoo.load("chain:65")
    assert isinstance(function_of(bc.kernel(m, "forward_dynamics")).on("cuda").kernel, CudaKernel)


def test_it_is_ptx() -> None:
    """By LLVM's own NVPTX, and as small as the classes are few."""
    found = [looped(bc.kernel(bc.zoo.load(f"chain:{n}"), "forward_dynamics").graph).ptx for n in (100, 1000)]
    assert ".entry states" in found[0]
    assert len(found[1]) < 2 * len(found[0])  # the tables grow
