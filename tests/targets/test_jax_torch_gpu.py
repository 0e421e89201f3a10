"""Kernels inside JAX and PyTorch on a GPU: on a real one, and the call handler with a driver that records launches."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.build.differentiable_function import differentiable_function
from bellcrank.emit.cpu.machine_code import Library
from bellcrank.emit.cuda import device
from bellcrank.emit.cuda.xla_gpu import source
from bellcrank.emit.llvm.host import compile_cached

gpu = pytest.mark.skipif(bool(device.unavailable_reason()), reason="no GPU, or no CuPy to reach it")
ARM = bc.zoo.planar3r()
Launch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)
Told = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Frame:
    """A call frame as XLA makes it, in our own memory: two arguments (n, 3) and (n,), and a result (n, 2)."""

    def __init__(self, n: int, stage: int = 3) -> None:
        """Make the frame; the second result is a workspace where a kernel needs one."""
        self.data = [np.zeros((n, 3)), np.zeros(n), np.zeros((n, 2)), np.zeros(1000)]
        self.dims = [(ctypes.c_int64 * a.ndim)(*a.shape) for a in self.data]
        self.buffers = []
        for a, dims in zip(self.data, self.dims, strict=True):
            b = (ctypes.c_uint64 * 6)()
            b[3], b[4], b[5] = a.ctypes.data, a.ndim, ctypes.addressof(dims)
            self.buffers.append(b)
        self.args = (ctypes.c_void_p * 2)(*map(ctypes.addressof, self.buffers[:2]))
        self.rets = (ctypes.c_void_p * 2)(*map(ctypes.addressof, self.buffers[2:]))
        self.error, self.stream = Told(self._error), Told(self._stream)
        self.api = (ctypes.c_uint64 * 24)()
        self.api[6], self.api[10] = (ctypes.cast(f, ctypes.c_void_p).value for f in (self.error, self.stream))
        self.frame = (ctypes.c_uint64 * 24)()
        self.frame[2], self.frame[3], self.frame[4] = ctypes.addressof(self.api), 77, stage
        self.frame[9], self.frame[14] = ctypes.addressof(self.args), ctypes.addressof(self.rets)
        self.why = ""

    def _stream(self, told: int) -> None:
        assert ctypes.c_uint64.from_address(told).value == 32
        assert ctypes.c_uint64.from_address(told + 16).value == 77  # the context of the call
        ctypes.c_uint64.from_address(told + 24).value = 55

    def _error(self, told: int) -> int:
        self.why = ctypes.string_at(ctypes.c_uint64.from_address(told + 16).value).decode()
        return 13


def handled(frame: Frame, code: int = 0) -> tuple[int | None, list[Any]]:
    """Return the handler's result, and the launches that the driver recorded."""
    launches = []

    def launch(f: int, *rest: Any) -> int:
        *grid, shared, stream, given, extra = rest
        at = ctypes.cast(given, ctypes.POINTER(ctypes.c_void_p))
        rows = ctypes.c_int64.from_address(at[0]).value
        places = [ctypes.c_uint64.from_address(at[k]).value for k in (1, 4, 7)]
        strides = [ctypes.c_uint32.from_address(at[k]).value for k in (2, 3, 5, 6, 8, 9)]
        launches.append((f, grid, shared, stream, extra, rows, places, strides))
        return code

    parts: Any = [SimpleNamespace(states=32, threads=64, shared=7), SimpleNamespace(states=128, threads=128, shared=0)]
    library, listen = Library(compile_cached(source([(3,), ()], [(2,)], parts))[0]), Launch(launch)
    for name, value in (("launch", ctypes.cast(listen, ctypes.c_void_p).value), ("part0", 1000), ("part1", 1001)):
        ctypes.c_void_p.from_address(library.address(name)).value = value
    handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(library.address("handler"))
    return handler(ctypes.addressof(frame.frame)), launches


def test_the_handler_launches_every_part_on_the_caller_s_stream() -> None:
    frame = Frame(100)
    error, launches = handled(frame)
    assert error is None
    places = [a.ctypes.data for a in frame.data[:3]]
    assert launches == [
        (1000, [4, 1, 1, 64, 1, 1], 7, 55, None, 100, places, [3, 1, 1, 1, 2, 1]),
        (1001, [1, 1, 1, 128, 1, 1], 0, 55, None, 100, places, [3, 1, 1, 1, 2, 1]),
    ]


@pytest.mark.parametrize(("n", "blocks"), [(1, 1), (33, 2), (160, 5), (161, 3), (330, 4)])
def test_the_handler_hands_over_a_workspace(n: int, blocks: int) -> None:
    """The handler passes a workspace for as many blocks, five at most, as divide the groups of 32 states evenly."""
    seen: list[Any] = []

    def launch(f: int, *rest: Any) -> int:
        *grid, _shared, _stream, given, _extra = rest
        at = ctypes.cast(given, ctypes.POINTER(ctypes.c_void_p))
        seen.append((f, grid[0], *(ctypes.c_uint64.from_address(at[k]).value for k in (0, 10, 11))))
        return 0

    frame, part, listen = Frame(n), SimpleNamespace(states=32, threads=32, shared=0), Launch(launch)
    library = Library(compile_cached(source([(3,), ()], [(2,)], [part], 5))[0])  # type: ignore[list-item]
    for name, value in (("launch", ctypes.cast(listen, ctypes.c_void_p).value), ("part0", 1000)):
        ctypes.c_void_p.from_address(library.address(name)).value = value
    handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(library.address("handler"))
    assert handler(ctypes.addressof(frame.frame)) is None
    assert seen == [(1000, blocks, n, frame.data[3].ctypes.data, blocks)]


def test_handler_reports_the_driver_error() -> None:
    frame = Frame(5)
    error, launches = handled(frame, code=701)
    assert (error, len(launches)) == (13, 1)
    assert frame.why == "the GPU's driver refused to launch a kernel of bellcrank"


@pytest.mark.parametrize(("n", "stage"), [(0, 3), (5, 1)])
def test_nothing_is_launched_for_no_states_and_in_other_stages(n: int, stage: int) -> None:
    assert handled(Frame(n, stage)) == (None, [])


@gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_jax_on_the_gpu(dtype: str) -> None:
    jax = pytest.importorskip("jax")
    places = [d for d in jax.devices() if d.platform == "gpu"]
    if not places:
        pytest.skip("JAX has no GPU")
    from bellcrank.jax import wrap

    jax.config.update("jax_enable_x64", dtype == "float64")
    exact = 1e-12 if dtype == "float64" else 1e-4
    kernel = bc.kernel(ARM, "forward_dynamics", dtype=dtype)
    states = [jax.device_put(np.asarray(x, dtype), places[0]) for x in ARM.random(0, 1000)]
    want = kernel(*map(np.asarray, states))
    for k in (kernel, bc.kernel(ARM, "forward_dynamics", dtype=dtype, target="cuda")):
        f = wrap(k)
        for g in (f, jax.jit(f), jax.jit(jax.vmap(f))):
            got = g(*states)
            assert got.devices() == {places[0]}
            np.testing.assert_allclose(got, want, rtol=exact, atol=exact * np.abs(want).max())
    q, v, tau = (x[0] for x in states)
    jacobian = kernel.derivative("q")(*map(np.asarray, (q, v, tau)))
    for turned in (jax.jacfwd(f), jax.jacrev(f)):
        np.testing.assert_allclose(
            turned(q, v, tau), jacobian, rtol=10 * exact, atol=10 * exact * np.abs(jacobian).max()
        )


@gpu
def test_torch_on_the_gpu() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    from bellcrank.torch import operator, wrap

    kernel = bc.kernel(ARM, "forward_dynamics")
    f, states = wrap(kernel), [torch.tensor(np.asarray(x), device="cuda") for x in ARM.random(0, 50)]
    want = kernel(*(x.cpu().numpy() for x in states))
    with torch.cuda.stream(torch.cuda.Stream()):
        got = f(*states)
        torch.cuda.current_stream().synchronize()
    assert got.is_cuda
    np.testing.assert_allclose(got.cpu(), want, rtol=1e-12, atol=1e-12)
    small = [x[:3].clone().requires_grad_() for x in states]
    assert torch.autograd.gradcheck(f, small)
    torch.library.opcheck(operator(differentiable_function(kernel)), tuple(small))
    with pytest.raises(bc.InputError, match="but others are on cuda"):
        f(states[0], states[1].cpu(), states[2])
