"""GPU kernels with teams and tiles, and the work of CudaKernel around them, emulated on this processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank.build import graphs
from bellcrank.dynamics import QUANTITIES
from bellcrank.emit.cuda import batch_kernel
from bellcrank.emit.cuda.batch_kernel import BatchKernelText, layout_texts
from bellcrank.emit.cuda.device import DeviceError
from bellcrank.emit.cuda.gpu_kernel import CudaKernel
from bellcrank.emit.cuda.occupancy import best_plan
from bellcrank.emit.cuda.thread_code import Units
from bellcrank.emit.target import About, Signature
from bellcrank.graph import Graph
from emulated import OutOfMemoryError
from emulated_blocks import Blocks, OnGpu, kernels_here
from trees import ALL, random_tree

Array = np.ndarray[Any, Any]
NEAR = {"float64": 1e-11, "float32": 1e-3}
TREE = "tree(15, branching=3)"


def dynamics(name: str, method: str) -> Graph:
    return graphs.graph(bc.zoo.load(name), "forward_dynamics", method)


def relative(got: Array, want: Array) -> float:
    return float((np.abs(got - want).max(axis=1) / np.abs(want).max(axis=1)).max())


def computed(made: BatchKernelText, given: list[Array], backwards: bool) -> tuple[Blocks, Array]:
    f = Blocks(made.text, "many", made.plan.threads, made.shared, made.plan.states)
    f.backwards = backwards
    n = len(given[0])
    out = np.full((n + 1, given[0].shape[1]), 7.0, made.dtype)  # one more row, which must stay unchanged
    arrays = [*(x.astype(made.dtype) for x in given), out]
    f(n, np.int64(n), *(x for a in arrays for x in (a, np.uint32(a.shape[1]), np.uint32(1))))
    assert (out[n] == 7.0).all()
    return f, out[:n]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("members", [1, 2, 4, 8])
@pytest.mark.parametrize(("name", "method", "blocks", "kilobytes"), [
    (TREE, "crba", 0, 227), (TREE, "aba", 8, 150), ("chain:9", "aba", 8, 150), ("tree:31", "aba", 8, 227),
])  # fmt: skip
def test_a_team(
    name: str, method: str, blocks: int, kilobytes: int, members: int, dtype: str, backwards: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A team works with mailboxes, spilled values and local memory, and with an incomplete last block."""
    monkeypatch.setattr("bellcrank.emit.cuda.occupancy.SHARED_BYTES", kilobytes * 1024)
    g, m = dynamics(name, method), bc.zoo.load(name)
    made = BatchKernelText(g, dtype, blocks=blocks, members=members)
    given = list(m.random(3, (made.plan.states + 5,)))
    f, got = computed(made, given, backwards)
    assert len(made.plan.team) == members
    assert f.meetings == (made.plan.team.barriers if members > 1 else 0)
    want = g.evaluate(**dict(zip(("q", "v", "tau"), given, strict=True)))["forward_dynamics"]
    assert relative(got, np.asarray(want)) < NEAR[dtype]


def test_cases_cover_all_kinds_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bellcrank.emit.cuda.occupancy.SHARED_BYTES", 150 * 1024)
    plan = BatchKernelText(dynamics("chain:9", "aba"), blocks=8, members=4).plan
    assert plan.team.mailbox_rows > 0
    assert sum(plan.shared_slots) > 0
    assert plan.local_values > 0


# -- CudaKernel


def fourbar() -> bc.Mechanism:
    b = bc.Builder("fourbar", gravity=(0, -9.81, 0))
    for body, com in (("crank", (0.0, 0.5, 0)), ("coupler", (0.5, 1, 0)), ("rocker", (1, 0.5, 0))):
        b.body(body, mass=1.0, com=com, inertia=(0.0833, 0.0833, 0.0833))
    b.joint("a", "revolute", "ground", "crank", point=(0, 0, 0), axis=(0, 0, 1))
    b.joint("b", "revolute", "crank", "coupler", point=(0, 1, 0), axis=(0, 0, 1))
    b.joint("d", "revolute", "ground", "rocker", point=(1, 0, 0), axis=(0, 0, 1))
    b.loop("c", "revolute", "coupler", "rocker", point=(1, 1, 0), axis=(0, 0, 1))
    return b.build()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("which", ["stanford", "fourbar"])
def test_every_quantity(which: str, name: str, dtype: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every quantity works, with loops and without, also where nothing is computed, such as a constant zero."""
    m = fourbar() if which == "fourbar" else bc.zoo.stanford()
    how = {"frame": m.bodies[-1].name} if QUANTITIES[name].option == "frame" else {}
    try:
        cpu = bc.kernel(m, name, **how)
    except bc.InputError as error:
        assert "loops" in str(error)  # noqa: PT017
        return
    kernels_here(monkeypatch)
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))  # code made here is for the emulator, not for a GPU
    gpu = bc.kernel(m, name, target="cuda", method=cpu.method, dtype=dtype, **how)
    assert isinstance(gpu, CudaKernel)
    rng, closed = np.random.default_rng(0), dict(zip("qv", m.assemble(), strict=True)) if m.loops else {}
    given = [closed[key] + np.zeros((3, 1)) if key in closed else rng.normal(size=(3, *shape))
             for key, shape in gpu.signature.inputs.items()]  # fmt: skip
    want = cpu(*given)
    near = {"float64": 1e-12, "float32": 1e-4}[dtype]
    np.testing.assert_allclose(gpu(*given), want, rtol=near, atol=near * max(1.0, np.abs(want).max()))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> CudaKernel:
    kernels_here(monkeypatch)
    g = dynamics("stanford", "crba")
    shapes = {"q": (6,), "v": (6,), "tau": (6,)}
    signature = Signature("forward_dynamics", shapes, {"forward_dynamics": (6,)}, "float64")
    return CudaKernel(About(signature, lambda: g, str, "crba"), layout_texts(g, "float64"))


def wanted(given: Any) -> Array:
    return np.asarray(bc.zoo.stanford().forward_dynamics(*given))


def lying(x: Array, how: str) -> Array:
    """Return the same numbers in another memory layout, on the GPU."""
    if how == "columns":
        return np.ascontiguousarray(x.T).T.view(OnGpu)
    if how == "backwards":
        return np.ascontiguousarray(x[::-1])[::-1].view(OnGpu)
    if how == "every second":
        return np.repeat(np.repeat(x, 2, axis=-1), 2, axis=0)[::2, ::2].view(OnGpu)
    return np.ascontiguousarray(x).view(OnGpu)


@pytest.mark.parametrize("how", ["rows", "columns", "backwards", "every second"])
@pytest.mark.parametrize("rows", [1, 7, 130])
def test_arrays_in_any_memory_layout(kernel: CudaKernel, how: str, rows: int) -> None:
    given = bc.zoo.stanford().random(0, (rows,))
    got = kernel(*(lying(x, how) for x in given))
    np.testing.assert_allclose(got, wanted(given), rtol=1e-11)
    assert rows == 1 or (got.strides[0] == got.itemsize) == (how == "columns")
    np.testing.assert_allclose(kernel(lying(given[0], how), given[1], given[2][0]),
                               wanted((given[0], given[1], given[2][0])), rtol=1e-11)  # fmt: skip


@pytest.mark.parametrize("how", ["rows", "columns"])
def test_matrices_lie_as_vectors_do(how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Matrices have the layout of the inputs: elements side by side for all states, also where no tile holds a row."""
    kernels_here(monkeypatch)
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))
    for m in (bc.zoo.pendulum(), bc.zoo.load("chain:2"), bc.zoo.load("chain:20")):
        q = m.random(0, (130,))[0]
        k, packed = (bc.kernel(m, "mass_matrix", target="cuda", packed=x) for x in (False, True))
        want, got = m.mass_matrix(q), k(lying(q, how))
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11 * np.abs(want).max())
        assert (got.strides[0] == got.itemsize) == (how == "columns" or 1 not in k.tiles)
        rows, columns = np.triu_indices(m.nv)
        np.testing.assert_array_equal(packed(lying(q, how)), got[:, rows, columns])
        out = np.full((m.nv, m.nv, 130), np.nan).view(OnGpu).transpose(2, 0, 1)
        assert k(lying(q, how), out=out) is out
        np.testing.assert_array_equal(out, got)


@pytest.mark.parametrize("split", range(4))
def test_parts_make_the_whole(split: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two or three parts, by columns or along the first axis, write every element once and in its place."""
    kernels_here(monkeypatch)
    m = bc.zoo.load("chain:3")
    cpu = bc.kernel(m, "forward_dynamics_derivatives")
    shared_out = list(batch_kernel._splits(cpu.graph))[split]
    assert sorted(k for _, places in shared_out for k in places[cpu.signature.name]) == list(range(27))
    made = [batch_kernel._launch_facts(BatchKernelText(g, places=places)) for g, places in shared_out]
    gpu = CudaKernel(About(cpu.signature, lambda: cpu.graph, str, "derivatives"), {"strided": made})
    given = m.random(0, (5,))
    want = cpu(*given)
    np.testing.assert_allclose(gpu(*given), want, rtol=1e-11, atol=1e-11 * np.abs(want).max())


def test_graph_that_fits_a_thread_is_one_part() -> None:
    """A graph that fits a thread stays one part; a larger one is divided if that is predicted to be faster."""
    small, large = (
        graphs.graph(bc.zoo.load(name), "forward_dynamics_derivatives", "derivatives")
        for name in ("chain:4", "chain:7")
    )
    assert len(batch_kernel.best_parts(small, "float64")) == 1
    whole, found = BatchKernelText(large), batch_kernel.best_parts(large, "float64")
    assert whole.plan.local_values > 0
    assert len(found) > 1
    assert sum(part.cost for part in found) < whole.cost


@pytest.mark.parametrize("batch", [(), (1,), (2, 3), (0,), (3, 0)])
@pytest.mark.parametrize("where", ["numpy", "gpu"])
def test_any_leading_shape(kernel: CudaKernel, batch: tuple[int, ...], where: str) -> None:
    given = bc.zoo.stanford().random(0, batch)
    got = kernel(*(x.view(OnGpu) if where == "gpu" else x for x in given))
    assert got.shape == (*batch, 6)
    np.testing.assert_allclose(got, wanted(given), rtol=1e-11)


@pytest.mark.parametrize("batch", [(9,), (0,)])
@pytest.mark.parametrize("where", ["numpy", "gpu"])
def test_out_is_returned(kernel: CudaKernel, batch: tuple[int, ...], where: str) -> None:
    given = bc.zoo.stanford().random(0, batch)
    put = (lambda x: x.view(OnGpu)) if where == "gpu" else (lambda x: x)
    out = put(np.full((*batch, 6), np.nan))
    assert kernel(*map(put, given), out=out) is out
    np.testing.assert_allclose(out, wanted(given), rtol=1e-11)
    with pytest.raises(bc.InputError, match=r"out must be a .*float64 array of shape"):
        kernel(*map(put, given), out=put(np.empty((*batch, 5))))


def test_in_place(kernel: CudaKernel) -> None:
    q, v, tau = (x.view(OnGpu) for x in bc.zoo.stanford().random(0, (200,)))
    want = wanted((q, v, tau))
    assert kernel(q, v, tau, out=tau) is tau
    np.testing.assert_allclose(tau, want, rtol=1e-11)


def test_parts_shrink_until_memory_suffices(kernel: CudaKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """If memory runs out, parts become smaller until they fit; other errors are not retried."""
    given, plain, tried = bc.zoo.stanford().random(0, (50,)), kernel._on_device, []

    def limited(arrays: Any, batch: Any, out: Any = None) -> Any:
        tried.append(batch[0])
        if batch[0] > 20:
            raise OutOfMemoryError("Out of memory allocating 13 bytes")
        return plain(arrays, batch, out)

    monkeypatch.setattr(kernel, "_on_device", limited)
    with pytest.warns(RuntimeWarning, match="50 states do not fit into the GPU's memory.* 13 at a time"):
        got = kernel(*given)
    np.testing.assert_allclose(got, wanted(given), rtol=1e-11)
    assert tried == [50, 25, 13, 13, 13, 11]

    def refused(*_: Any) -> Any:
        tried.append(0)
        raise DeviceError("the GPU's driver did not accept generated PTX")

    tried.clear()
    monkeypatch.setattr(kernel, "_on_device", refused)
    with pytest.raises(DeviceError, match="did not accept"):
        kernel(*given)
    assert tried == [0]


def test_a_mailbox_that_does_not_fit_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bellcrank.emit.cuda.occupancy.SHARED_BYTES", 3 * 1024)
    units = Units(dynamics("tree:31", "aba"))
    assert not BatchKernelText(units.graph, members=8).plan.fits
    assert best_plan(units, 2).fits


@settings(max_examples=12, deadline=None)
@drawn(
    seed=st.integers(0, 10**6), kinds=st.lists(st.sampled_from(ALL), min_size=2, max_size=7),
    parents=st.lists(st.integers(0, 6), min_size=7, max_size=7), members=st.sampled_from([1, 2, 4, 8]),
    blocks=st.sampled_from([0, 4, 8]), method=st.sampled_from(["aba", "crba"]), backwards=st.booleans(),
)  # fmt: skip
def test_any_tree(
    seed: int, kinds: list[str], parents: list[int], members: int, blocks: int, method: str, backwards: bool
) -> None:
    m = random_tree(seed, kinds, parents)
    g = graphs.graph(m, "forward_dynamics", method)
    values = dict(zip(("q", "v", "tau"), m.random(seed, (3,)), strict=True))
    made = BatchKernelText(g, blocks=blocks, members=members)
    f = Blocks(made.text, "many", made.plan.threads, made.shared, made.plan.states)
    f.backwards = backwards
    out = np.full((3, m.nv), np.nan)
    f(3, np.int64(3), *(x for a in (*values.values(), out) for x in (a, np.uint32(a.shape[1]), np.uint32(1))))
    assert relative(out, np.asarray(g.evaluate(**values)["forward_dynamics"])) < 1e-9
