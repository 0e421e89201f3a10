"""Kernels and simulations on a GPU agree with those on the CPU; skipped where there is no GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellcrank as bc
import gpu_runs
from bellcrank.emit.cuda import device
from bellcrank.emit.cuda.gpu_kernel import CudaKernel
from bellcrank.errors import InputError
from bellcrank.graph import trace
from bellcrank.scalar import (
    acos,
    asin,
    atan2,
    cos,
    exp,
    fabs,
    floor,
    log,
    maximum,
    minimum,
    sin,
    sqrt,
    tan,
    tanh,
    where,
)

pytestmark = pytest.mark.skipif(bool(device.unavailable_reason()), reason=device.unavailable_reason())
Array = np.ndarray[Any, Any]
TOLERANCE = {"float64": 1e-12, "float32": 1e-4}
NAMES = ["puma600", "stanford", "excavator", "chain:12", "tree(15, branching=3)"]


def relative(got: Array, want: Array) -> float:
    """Return for each state the largest error divided by the largest element."""
    axes = tuple(range(1, want.ndim))
    return float((np.abs(got - want).max(axis=axes) / np.abs(want).max(axis=axes)).max())


def from_gpu(x: Any) -> Array:
    return np.asarray(device.cupy().asnumpy(x))


def test_a_team() -> None:
    m = bc.zoo.load("chain:32")
    k = bc.kernel(m, "forward_dynamics", method="aba", target="cuda")
    assert isinstance(k, CudaKernel)
    assert k.members > 1
    given = m.random(0, (1000,))
    assert relative(k(*given), bc.kernel(m, "forward_dynamics", method=k.method)(*given)) < TOLERANCE["float64"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_forward_dynamics(name: str, dtype: str) -> None:
    """Rows through tiles, adjacent columns, and numpy arrays: all give the results of the CPU's kernel."""
    cp, m = device.cupy(), bc.zoo.load(name)
    k = bc.kernel(m, "forward_dynamics", target="cuda", dtype=dtype)
    given = [x.astype(dtype) for x in m.random(0, (1000,))]
    want = bc.kernel(m, "forward_dynamics", method=k.method)(*(x.astype(float) for x in given))
    got = k(*given)
    assert isinstance(got, np.ndarray)
    assert got.dtype == dtype
    assert relative(got, want) < TOLERANCE[dtype]
    rows = k(*(cp.asarray(x) for x in given))
    assert isinstance(rows, cp.ndarray)
    assert relative(from_gpu(rows), want) < TOLERANCE[dtype]
    columns = k(*(cp.asarray(np.ascontiguousarray(x.T)).T for x in given))
    assert columns.strides[0] == columns.itemsize  # in the layout of the inputs
    assert relative(from_gpu(columns), want) < TOLERANCE[dtype]


@pytest.mark.parametrize("quantity", ["mass_matrix", "inverse_dynamics", "bias", "kinetic_energy"])
def test_other_quantities(quantity: str) -> None:
    m = bc.zoo.puma600()
    k, cpu = (bc.kernel(m, quantity, target=target) for target in ("cuda", "cpu"))
    values = dict(zip(("q", "v", "tau"), m.random(1, (300,)), strict=True))
    values["a"] = values.pop("tau")
    given = [values[name] for name in k.signature.inputs]
    want = cpu(*given)
    np.testing.assert_allclose(k(*given), want, rtol=1e-12, atol=1e-12 * np.abs(want).max())


@pytest.mark.parametrize("batch", [(), (1,), (7,), (129,), (2, 3), (0,)])
def test_any_leading_shape(batch: tuple[int, ...]) -> None:
    cp, m = device.cupy(), bc.zoo.puma600()
    k = bc.kernel(m, "forward_dynamics", target="cuda")
    q, v, tau = m.random(0, batch)
    want = m.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(k(q, v, tau), want, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(from_gpu(k(*map(cp.asarray, (q, v, tau)))), want, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(k(q, v, np.zeros(6)), m.forward_dynamics(q, v, np.zeros(6)), rtol=1e-9, atol=1e-10)


def test_strides_are_read_where_they_are() -> None:
    """Strided inputs are read in place: columns of a wider table, reversed rows, one array for all rows."""
    cp, m = device.cupy(), bc.zoo.puma600()
    k = bc.kernel(m, "forward_dynamics", target="cuda")
    wide = np.random.default_rng(0).uniform(-1, 1, (500, 30))
    q, v, tau = wide[:, 2:8], wide[::-1, 10:16], wide[:, 20:26]
    on = cp.asarray(wide)
    got = k(on[:, 2:8], on[::-1, 10:16], on[:, 20:26])
    np.testing.assert_allclose(from_gpu(got), m.forward_dynamics(q, v, tau), rtol=1e-9, atol=1e-10)
    got = k(on[:, 2:8], on[:, 10:16], on[3, 20:26])
    np.testing.assert_allclose(
        from_gpu(got), m.forward_dynamics(q, wide[:, 10:16], wide[3, 20:26]), rtol=1e-9, atol=1e-10
    )


def test_out_and_dlpack() -> None:
    cp, m = device.cupy(), bc.zoo.puma600()
    k = bc.kernel(m, "forward_dynamics", target="cuda")
    given = m.random(0, (64,))
    want = m.forward_dynamics(*given)
    out = cp.full((64, 6), np.nan)
    on = [cp.asarray(x) for x in given]
    assert k(*on, out=out).data.ptr == out.data.ptr
    np.testing.assert_allclose(from_gpu(out), want, rtol=1e-9, atol=1e-10)

    class Capsule:
        """An object with DLPack and nothing else."""

        def __init__(self, x: Any) -> None:
            self.x = x

        def __dlpack__(self, **named: Any) -> Any:
            return self.x.__dlpack__(**named)

        def __dlpack_device__(self) -> Any:
            return self.x.__dlpack_device__()

    np.testing.assert_allclose(from_gpu(k(*map(Capsule, on))), want, rtol=1e-9, atol=1e-10)
    with pytest.raises(InputError, match="out must be a float64 array"):
        k(*on, out=np.empty((64, 6)))


def test_pytorch() -> None:
    m = bc.zoo.puma600()
    k = bc.kernel(m, "forward_dynamics", target="cuda")
    given = m.random(0, (64,))
    torch = pytest.importorskip("torch")
    want = m.forward_dynamics(*given)
    tensors = [torch.tensor(x, device="cuda") for x in given]
    assert device.to_cupy(tensors[0], "q").data.ptr == tensors[0].data_ptr()  # nothing is copied
    np.testing.assert_allclose(from_gpu(k(*tensors)), want, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(from_gpu(k(*(x.T.contiguous().T for x in tensors))), want, rtol=1e-9, atol=1e-10)
    out = torch.zeros_like(tensors[0])
    k(*tensors, out=out)
    np.testing.assert_allclose(out.cpu().numpy(), want, rtol=1e-9, atol=1e-10)
    with pytest.raises(InputError, match=r'input "q" is a Tensor that CuPy cannot convert to an array: .*grad'):
        k(tensors[0].clone().requires_grad_(), *tensors[1:])


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU")
    m = bc.zoo.puma600()
    k = bc.kernel(m, "forward_dynamics", target="cuda", dtype="float32")
    given = [x.astype("float32") for x in m.random(0, (64,))]
    arrays = [jax.numpy.asarray(x) for x in given]
    assert device.to_cupy(arrays[0], "q").data.ptr == arrays[0].unsafe_buffer_pointer()
    want = m.forward_dynamics(*(x.astype(float) for x in given))
    assert relative(from_gpu(k(*arrays)), want) < TOLERANCE["float32"]


def test_another_stream() -> None:
    """A kernel waits for another stream on which PyTorch still computes the inputs."""
    torch = pytest.importorskip("torch")
    m = bc.zoo.puma600()
    k = bc.kernel(m, "forward_dynamics", target="cuda")
    given = [torch.tensor(x, device="cuda") for x in m.random(0, (64,))]
    k(*given)
    big, late = torch.ones(8192, 8192, device="cuda"), [torch.zeros_like(x) for x in given]
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(20):  # tens of milliseconds
            big = big @ big * 1e-4
        for a, b in zip(late, given, strict=True):
            a += b
        got = k(*late)
    np.testing.assert_allclose(from_gpu(got), m.forward_dynamics(*(x.cpu().numpy() for x in given)), rtol=1e-9)


def test_invalid_arrays_raise() -> None:
    cp, m = device.cupy(), bc.zoo.puma600()
    k = bc.kernel(m, "forward_dynamics", target="cuda")
    q, v, tau = m.random(0, (5,))
    with pytest.raises(InputError, match=r'input "q" has shape \(5, 5\); expected'):
        k(cp.asarray(q[:, :5]), v, tau)
    with pytest.raises(InputError, match="leading axes do not broadcast"):
        k(cp.asarray(q), v[:4], tau)
    with pytest.raises(InputError, match="missing tau"):
        k(q, v)
    q[3, 2] = np.nan
    with pytest.raises(InputError, match=r"q\[3, 2\] .* is nan"):
        k(q, v, tau)


def test_a_batch_that_does_not_fit_is_done_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    m = bc.zoo.puma600()
    k = bc.kernel(m, "forward_dynamics", target="cuda")
    given = m.random(0, (1000,))
    monkeypatch.setattr("bellcrank.emit.cuda.gpu_kernel.free_bytes", lambda: 192 * 300)
    with pytest.warns(RuntimeWarning, match="1000 states do not fit into the GPU's memory.* 270 at a time"):
        got = k(*given)
    np.testing.assert_allclose(got, m.forward_dynamics(*given), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_operation(dtype: str) -> None:
    from bellcrank.emit.cuda.batch_kernel import layout_texts
    from bellcrank.emit.target import About, Signature

    def operations(x: Any) -> dict[str, Any]:
        a, b = x
        return {
            "y": [
                a + b * a, a * b - b, b - a * b, a / b, sqrt(fabs(a)), sin(a) * cos(a), cos(b), tan(a), asin(a / 9.0),
                acos(b / 9.0), atan2(a, b), exp(a), log(fabs(b)), tanh(a), floor(a), minimum(a, b), maximum(a, b),
                where(a < b, a, -b), where(a <= 0.5, 1.0, b), 2.5, a,
            ]
        }  # fmt: skip

    g = trace("all", operations, {"x": (2,)})
    k = CudaKernel(About(Signature("all", {"x": (2,)}, {"y": (21,)}, dtype), lambda: g, str), layout_texts(g, dtype))
    x = np.random.default_rng(0).normal(size=(2000, 2)).astype(dtype)
    want = g.evaluate(x=x.astype(float))["y"]
    small = 4e-15 if dtype == "float64" else 4e-6
    np.testing.assert_allclose(k(x), want, rtol=small, atol=small)


def test_free_parameters_for_every_state() -> None:
    m = bc.zoo.puma600()
    m = m.free(f"{m.bodies[2].name}.mass")
    (name,) = m.parameters
    q, v, tau = m.random(0, (50,))
    masses = np.linspace(1.0, 9.0, 50)
    k, cpu = (bc.kernel(m, "forward_dynamics", target=target) for target in ("cuda", "cpu"))
    np.testing.assert_allclose(
        k(q, v, tau, parameters={name: masses}), cpu(q, v, tau, parameters={name: masses}), rtol=1e-9, atol=1e-10
    )


# -- simulations


@pytest.mark.parametrize("integrator", ["rk4", "euler", "abm4"])
def test_a_batch_of_runs(integrator: str) -> None:
    m = bc.zoo.puma600()
    q0, v0, _ = m.random(0, (200,))
    settings: dict[str, Any] = {"q0": q0, "v0": v0, "step": 1e-3, "every": 0.01, "integrator": integrator}
    cpu = bc.simulate(m, 0.1, **settings)
    gpu = bc.simulate(m, 0.1, target="cuda", **settings)
    assert gpu.q.shape == cpu.q.shape == (200, 11, 6)
    np.testing.assert_allclose(gpu.t, cpu.t, rtol=1e-12)
    np.testing.assert_allclose(gpu.q, cpu.q, rtol=1e-9, atol=1e-9)
    final = bc.simulate(m, 0.1, target="cuda", keep="final", **{k: x for k, x in settings.items() if k != "every"})
    np.testing.assert_allclose(final.q[:, 0], cpu.q[:, -1], rtol=1e-9, atol=1e-9)


def test_control_inputs_and_parameters_per_run() -> None:
    m = bc.zoo.puma600()
    m = m.free(f"{m.bodies[2].name}.mass")
    (name,) = m.parameters
    first = m.columns[1][0]

    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> list[Any]:
        return [u[0] - 2.0 * q[i] - 0.5 * v[i] + 0.1 * sin(t) for i in range(6)]

    s = bc.system(m, control=control, inputs=["push"])
    settings: dict[str, Any] = {
        "step": 1e-3, "every": 0.01, "inputs": {"push": np.random.default_rng(0).normal(size=(40, 10))},
        "input_step": 0.01, "parameters": {name: np.linspace(2.0, 8.0, 40)},
    }  # fmt: skip
    cpu = bc.simulate(s, 0.1, **settings)
    gpu = bc.simulate(s, 0.1, target="cuda", **settings)
    np.testing.assert_allclose(gpu[f"{first}.q"], cpu[f"{first}.q"], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(gpu.v, cpu.v, rtol=1e-8, atol=1e-9)


ASKED = ["max(*.v)", "min(energy)", "t_min(energy)", "integral(effort)", "rms(*.tau)", "final(joint2.a)"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("integrator", ["rk4", "euler", "abm4"])
def test_summaries(integrator: str, dtype: str) -> None:
    m = bc.zoo.puma600()
    s = bc.system(
        m,
        control=lambda t, q, v, x, u: -5.0 * q - v,
        outputs={"effort": lambda t, q, v, x, u: sum((a * a for a in v), 0.0)},
    )
    q0 = 0.3 * m.random(0, (300,))[0]
    sim = bc.Simulator(s, integrator, summary=ASKED)
    cpu, gpu = (sim.run(0.1, q0, step=1e-3, **how) for how in ({}, {"target": "cuda", "dtype": dtype}))
    near = {"float64": 1e-9, "float32": 2e-3}[dtype]
    for name in cpu.columns:
        if not name.startswith("t_"):  # the time of a flat extreme is undetermined
            scale = np.abs(cpu[name]).max()
            np.testing.assert_allclose(gpu[name], cpu[name], rtol=0, atol=near * max(scale, 1e-3), err_msg=name)
    assert [x.reason for x in gpu.stops] == ["end"] * 300


def test_single_precision_runs() -> None:
    m = bc.zoo.puma600()
    q0, v0, _ = m.random(0, (100,))
    cpu = bc.simulate(m, 0.1, q0=0.3 * q0, v0=0.3 * v0, step=1e-3, every=0.1)
    gpu = bc.simulate(m, 0.1, q0=0.3 * q0, v0=0.3 * v0, step=1e-3, every=0.1, target="cuda", dtype="float32")
    assert relative(gpu.q[:, -1], cpu.q[:, -1]) < 1e-3


def test_runs_that_do_not_fit_are_done_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    m = bc.zoo.puma600()
    q0, v0, _ = m.random(0, (100,))
    whole = bc.simulate(m, 0.05, q0=q0, v0=v0, target="cuda")
    monkeypatch.setattr("bellcrank.sim.run.gpu_runs.free_bytes", lambda: 8 * 1000 * 40)
    with pytest.warns(RuntimeWarning, match="do not fit the GPU's memory"):
        parts = bc.simulate(m, 0.05, q0=q0, v0=v0, target="cuda")
    np.testing.assert_array_equal(parts.q, whole.q)


def test_closed_loops() -> None:
    b = bc.Builder("fourbar", gravity=(0, -9.81, 0))
    for body, com in (("crank", (0.0, 0.5, 0)), ("coupler", (0.5, 1, 0)), ("rocker", (1, 0.5, 0))):
        b.body(body, mass=1.0, com=com, inertia=(0.0833, 0.0833, 0.0833))
    b.joint("a", "revolute", "ground", "crank", point=(0, 0, 0), axis=(0, 0, 1))
    b.joint("b", "revolute", "crank", "coupler", point=(0, 1, 0), axis=(0, 0, 1))
    b.joint("d", "revolute", "ground", "rocker", point=(1, 0, 0), axis=(0, 0, 1))
    b.loop("c", "revolute", "coupler", "rocker", point=(1, 1, 0), axis=(0, 0, 1))
    m = b.build()
    cpu = bc.simulate(m, 0.3, v0=m.assemble(np.zeros(3), np.ones(3))[1], step=1e-3, every=0.1)
    gpu = bc.simulate(m, 0.3, v0=m.assemble(np.zeros(3), np.ones(3))[1], step=1e-3, every=0.1, target="cuda", batch=3)
    np.testing.assert_allclose(gpu.q, np.broadcast_to(cpu.q, gpu.q.shape), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", gpu_runs.CASES)
def test_a_run_is_that_of_the_cpu(name: str) -> None:
    """A run equals that of the CPU: every integrator, adaptive steps, events, inputs, closed loops, derivatives."""
    cpu, gpu = (gpu_runs.done(name, target) for target in ("cpu", "cuda"))
    gpu_runs.same(gpu, cpu)


def test_many_bounces_of_many_runs() -> None:
    """Many runs with many bounces agree: more threads than a block has, each with its own steps and events.

    No ball comes to rest: bounces would then be more frequent than steps, and rounding would decide which is detected.
    """
    m, _, settings = gpu_runs.bounces(**gpu_runs.CHOSEN)
    settings["q0"], seconds = np.linspace(0.5, 1.0, 1000)[:, None], 2.0
    cpu = bc.simulate(m, seconds, progress=False, **settings)
    gpu_runs.same(bc.simulate(m, seconds, target="cuda", progress=False, **settings), cpu)
