"""Batches of large mechanisms on an emulated GPU: one thread for each state, in rolled loops."""

from __future__ import annotations

import contextlib
import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build.differentiable_function import differentiable_function
from bellcrank.emit.cuda.lane_code import state_loop_code
from bellcrank.emit.cuda.rolled_kernels import StateKernel, affordable_blocks
from bellcrank.emit.cuda.target import Cuda
from bellcrank.errors import InputError
from bellcrank.graph.columns import outline_columns
from emulated import RESIDENT, Function, OutOfMemoryError
from emulated_blocks import OnGpu, kernels_here
from trees import random_tree
from unit.test_column_loops import matrices, products

MIXED = ("revolute", "spherical", "prismatic", "floating", "universal", "planar", "helical")


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Return the number of free bytes, which tests may change."""
    free = [10**9]
    found = kernels_here(monkeypatch)
    for module in ("rolled_kernels", "gpu_kernel"):
        monkeypatch.setattr(f"bellcrank.emit.cuda.{module}.free_bytes", lambda: free[0])
    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.cupy", lambda: found)
    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.resident_blocks", lambda registers: RESIDENT)
    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.DeviceFunction", Function)
    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.out_of_memory_error", lambda: OutOfMemoryError)
    monkeypatch.setattr("bellcrank.emit.cuda.lane_code.ptx", lambda text: text)
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
    """Trees of any joints work: branches, index tables without a formula, and many link classes."""
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
    """Inputs that are shared by a batch, and small workspaces, work.

    One state of an input serves a whole batch; a workspace for one block takes one group after the other; a batch in
    parts.
    """
    m = bc.zoo.load("chain:100")
    own = kernel(m, "forward_dynamics")
    q, v, tau = m.random(2, 70)
    expected = bc.kernel(m, "forward_dynamics")(q, v[0], tau)
    memory[0] = 3 * 32 * own.room * 8
    assert affordable_blocks(70, own.states, own.room, "float64") == 1
    np.testing.assert_allclose(own(q, v[0], tau), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    memory[0] = 2 * 30 * 300 * 8  # half of the memory for thirty states
    with pytest.warns(RuntimeWarning, match="at a time"):
        found = own(q, v[0], tau)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.usefixtures("memory")
def test_arrays_that_lie_in_any_way() -> None:
    """Arrays in any layout work: on the GPU, in rows and in columns, and with out=."""
    m = bc.zoo.load("chain:100")
    own = kernel(m, "forward_dynamics")
    q, v, tau = m.random(4, 35)
    expected = bc.kernel(m, "forward_dynamics")(q, v, tau)
    rows = [x.view(OnGpu) for x in (q, v, tau)]
    columns = [np.ascontiguousarray(x.T).view(OnGpu).T for x in (q, v, tau)]
    for given in (rows, columns, [rows[0], columns[1], rows[2]]):
        np.testing.assert_allclose(own(*given), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    out = np.zeros((35, 100))
    assert own(q, v, tau, out=out) is out
    np.testing.assert_array_equal(out, own(q, v, tau))


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("number", [3, 19])
def test_loop_over_columns(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop over columns is one of the loops that a thread runs; by default the columns are written out."""
    monkeypatch.setattr(Cuda, "in_loops", lambda *_: True)
    A, B, wanted = matrices(number, (37,))
    own = bc.compile(outline_columns(products(number)).calls[0], target="cuda")
    assert isinstance(own, StateKernel)
    np.testing.assert_allclose(own(A.reshape(37, -1), B), wanted, rtol=0, atol=1e-13)


@pytest.mark.usefixtures("memory")
def test_non_finite_input_is_named() -> None:
    m = bc.zoo.load("chain:100")
    with pytest.raises(InputError, match=r"q\[0\].* is nan"):
        kernel(m, "forward_dynamics")(np.full(100, np.nan), *m.random(0)[1:])


@pytest.mark.usefixtures("memory")
def test_graphs_that_call_recursions() -> None:
    """Graphs that call recursions work: derivatives in both directions, forces on frames and free parameters."""
    m = bc.zoo.load("chain:100")
    own, cpu = kernel(m, "forward_dynamics"), bc.kernel(m, "forward_dynamics")
    q, v, tau = m.random(5, 3)
    w = np.random.default_rng(0).normal(size=(3, 100))
    for made in (lambda k: k.vjp("q", "tau"), lambda k: k.jvp("v")):
        there, here = made(own), made(cpu)
        assert isinstance(there, StateKernel)
        found, expected = (k(q, v, tau, w) for k in (there, here))
        for name, want in expected.items():
            np.testing.assert_allclose(found[name], want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
    push = {"link50": w[:, :6], "link99": w[0, :6]}
    expected = cpu(q, v, tau, wrenches=push)
    np.testing.assert_allclose(own(q, v, tau, wrenches=push), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    free = m.free("link7.mass")
    given = {"parameters": {"link7.mass": np.array([0.5, 1.0, 2.0])}}
    expected = bc.kernel(free, "forward_dynamics")(q, v, tau, **given)
    found = kernel(free, "forward_dynamics")(q, v, tau, **given)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("method", ["aba", "dca"])
def test_pytorch_starts_kernels_by_address(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch starts kernels by addresses of dense arrays, also by dca, where a single state has the whole GPU."""
    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.stream_context", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.array_address", lambda x: x.ctypes.data)
    m = bc.zoo.load("chain:100")
    cpu = bc.kernel(m, "forward_dynamics", method=method)
    own: Any = differentiable_function(cpu).for_target("cuda").kernel
    assert isinstance(own, StateKernel)
    given, out = m.random(6, 70), np.zeros((70, 100))
    own.filled(0, 70, [a.ctypes.data for a in (*given, out)])
    expected = cpu(*given)
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.usefixtures("memory")
def test_workspace_of_another_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX provides the workspace: for as many blocks as fit into an eighth of the memory."""
    own = kernel(bc.zoo.load("chain:100"), "forward_dynamics")
    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.total_bytes", lambda: 8 * 5 * 32 * own.room * 8 + 7)
    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.resident_blocks", lambda registers: 9)
    assert own.most == 5
    assert [own.scratch(n) / (32 * own.room) for n in (1, 33, 160, 161, 330)] == [1, 2, 5, 3, 4]


@pytest.mark.usefixtures("memory")
def test_jax_gives_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA allocates the workspace as an additional result, whose size is that of all blocks.

    This can be lowered for a GPU without having one.
    """
    jax = pytest.importorskip("jax")
    from bellcrank.jax import wrap

    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.total_bytes", lambda: 10**9)
    monkeypatch.setattr("bellcrank.emit.cuda.rolled_kernels.resident_blocks", lambda registers: 2)
    monkeypatch.setattr("bellcrank.emit.cuda.xla_gpu.driver_launch", lambda: ctypes.CFUNCTYPE(None)(lambda: None))
    monkeypatch.setattr(Function, "address", 0, raising=False)
    monkeypatch.setattr(Function, "states", 32, raising=False)
    jax.config.update("jax_enable_x64", True)
    m = bc.zoo.load("chain:100")
    f = jax.jit(jax.vmap(wrap(bc.kernel(m, "forward_dynamics"))))
    text = f.trace(*m.random(0, 70)).lower(lowering_platforms=("cuda",)).as_text()
    (found,) = re.findall(r"custom_call @bellcrank_\d+\(.*-> \((.*)\)", text)
    room = kernel(m, "forward_dynamics").scratch(70)
    assert found == f"tensor<70x100xf64>, tensor<{room}xf64>"


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_alignment_of_a_value_holds_in_every_lane(dtype: str) -> None:
    """Values of 32 lanes lie side by side: only that of the first lane is aligned to more than its own bytes."""
    text = state_loop_code(bc.kernel(bc.zoo.load("chain:100"), "forward_dynamics").graph, dtype).ptx
    kind, size = ("double", 8) if dtype == "float64" else ("float", 4)
    found = re.findall(rf"(?:load|store) {kind}\b.*, align (\d+)", text)
    assert set(found) == {str(size)}


def test_llvm_generates_ptx_that_grows_with_classes() -> None:
    """LLVM's NVPTX makes PTX of it, and its size depends on the number of link classes."""
    found = [state_loop_code(bc.kernel(bc.zoo.load(f"chain:{n}"), "forward_dynamics").graph).ptx for n in (100, 1000)]
    assert ".entry many" in found[0]
    assert len(found[1]) < 2 * len(found[0])  # only the tables grow
