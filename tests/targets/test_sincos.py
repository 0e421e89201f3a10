"""The emitted sine and cosine agree with integer arithmetic, which is independent of every floating-point library."""

import ctypes
import ctypes.util
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
import pytest

from bellcrank.emit.llvm.sincos import definition

Array = npt.NDArray[Any]

BITS = 176  # of the reference's fixed point: 2**-60 from a multiple of pi/2, still 100 bits are right
BOUND = 1.6  # ulp, as the module's docstring guarantees
LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
PRECISIONS: dict[str, tuple[Any, str]] = {"float64": (ctypes.c_double, ""), "float32": (ctypes.c_float, "f")}
asked: list[float] = []  # arguments of calls to the C library, since the list was last cleared
WRAPPER = """
define void @run(ptr noalias %x, ptr noalias %s, ptr noalias %c, i64 %count) {
  call void @sincos(ptr %x, ptr %s, ptr %c, i64 %count)
  ret void
}
"""

every_vector = pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
every_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])


def arctan_of_inverse(n: int) -> int:
    total, term, order = 0, (1 << BITS) // n, 1
    while term:
        total += term // order if order % 4 == 1 else -(term // order)
        term, order = term // (n * n), order + 2
    return total


HALF_PI = 2 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))  # Machin, 1706


def fixed(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return (numerator << BITS) // denominator


def reference(x: float) -> tuple[int, int]:
    """Return sin x and cos x in fixed point, for x whose bits all fit."""
    k, r = divmod(fixed(x) + HALF_PI // 2, HALF_PI)
    r -= HALF_PI // 2
    sums, term, order = [0, 0, 0, 0], 1 << BITS, 0
    while abs(term) > 1:
        sums[order % 4] += term
        order += 1
        term = (term * r >> BITS) // order
    s, c = sums[1] - sums[3], sums[0] - sums[2]
    return [(s, c), (c, -s), (-s, -c), (-c, s)][k % 4]


def ulps(got: float, true: int, dtype: str) -> float:
    """Return the error in units of the last place of the true value."""
    ulp = 1 << (abs(true).bit_length() - 1 - np.finfo(dtype).nmant)
    return abs(fixed(got) - true) / ulp


def from_libm(name: str, dtype: str) -> Callable[[float], float]:
    c_type, suffix = PRECISIONS[dtype]
    function: Callable[[float], float] = ctypes.CFUNCTYPE(c_type, c_type)((name + suffix, LIBM))
    return function


@cache
def compiled(lanes: int, dtype: str) -> tuple[Callable[..., None], list[Any]]:
    """Return the function, and the objects that must live as long."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    if target.name.startswith("x86"):
        features += ",-prefer-256-bit"
    machine = target.create_target_machine(llvm.get_host_cpu_name(), features, opt=3, jit=True)
    c_type, suffix = PRECISIONS[dtype]
    text = definition(lanes, dtype) + WRAPPER
    alive: list[Any] = []
    for name in ("sin", "cos"):
        # Calls of the C library go through a recording function under its own name, because symbols are process-wide.
        real = from_libm(name, dtype)

        def witness(x: float, real: Callable[[float], float] = real) -> float:
            asked.append(x)
            return real(x)

        alive.append(ctypes.CFUNCTYPE(c_type, c_type)(witness))
        witnessed = f"witnessed_{name}{suffix}_{lanes}"
        llvm.add_symbol(witnessed, ctypes.cast(alive[-1], ctypes.c_void_p).value)
        text = text.replace(f"@{name}{suffix}(", f"@{witnessed}(")
    module = llvm.parse_assembly(text)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return run(engine.get_function_address("run")), [*alive, engine]


def aligned(count: int, dtype: str) -> Array:
    raw = np.empty(count * np.dtype(dtype).itemsize + 128, np.uint8)
    start = -raw.ctypes.data % 128
    return raw[start : start + count * np.dtype(dtype).itemsize].view(dtype)


def sincos(x: Array, lanes: int) -> tuple[Array, Array]:
    """Return sine and cosine; check that nothing is written outside the results."""
    dtype = x.dtype.name
    count = -(-len(x) // lanes)
    arguments, s, c = (aligned(count * lanes + 1, dtype) for _ in range(3))
    arguments[:] = 0
    arguments[: len(x)] = x
    asked.clear()
    s[:] = c[:] = 7
    compiled(lanes, dtype)[0](arguments.ctypes.data, s.ctypes.data, c.ctypes.data, count)
    assert s[-1] == c[-1] == 7
    return s[: len(x)], c[: len(x)]


def samples(dtype: str) -> Array:
    """Return angles from 1e-9 to 1e5, densest near multiples of pi/4, where both functions are least accurate."""
    random = np.random.default_rng(5)
    spread = [random.uniform(-scale, scale, 3000) for scale in (0.8, 10, 1e3, 1e5)]
    spread.append(10 ** random.uniform(-9, 5, 3000) * random.choice([-1, 1], 3000))
    spread.append(np.pi / 4 * (random.integers(-100, 100, 9000) * 2 + 1) + random.uniform(-0.1, 0.1, 9000))
    k = np.concatenate([np.arange(1, 300), random.integers(300, 63661, 2000)])
    near = [(k * (np.pi / 2)).astype(dtype)]
    for side in (np.inf, -np.inf):
        beside = near[0]
        for _ in range(2):
            beside = np.nextafter(beside, np.array(side, dtype))
            near.append(beside)
    x: Array = np.concatenate([*spread, *near, -near[0]]).astype(dtype)
    return x[np.abs(x) < 1e5]


@cache
def references(dtype: str) -> tuple[Array, list[tuple[int, int]]]:
    x = samples(dtype)
    return x, [reference(value) for value in x.tolist()]


def test_reference() -> None:
    for x in (0.0, 0.5, -1.0, 2.0, 3.0, -4.0, 1e5):
        for true, value in zip(reference(x), (math.sin(x), math.cos(x))):
            assert true / 2**BITS == pytest.approx(value, rel=1e-15)


@every_dtype
@every_vector
def test_error(lanes: int, dtype: str) -> None:
    x, true = references(dtype)
    results = sincos(x, lanes)
    assert not asked
    for got, which in zip(results, (0, 1)):
        errors = [ulps(g, t[which], dtype) for g, t in zip(got.tolist(), true)]
        worst = int(np.argmax(errors))
        assert errors[worst] < BOUND, f"{x[worst]!r}: {got[worst]!r}"


@every_dtype
@every_vector
def test_tiny(lanes: int, dtype: str) -> None:
    info = np.finfo(dtype)
    x = np.array([0, info.smallest_subnormal, info.tiny / 3, info.tiny, info.eps**3, info.eps / 3], dtype)
    x = np.concatenate([x, -x])
    s, c = sincos(x, lanes)
    np.testing.assert_array_equal(s, x)
    np.testing.assert_array_equal(np.signbit(s), np.signbit(x))
    np.testing.assert_array_equal(c, 1)


@every_dtype
@every_vector
def test_far(lanes: int, dtype: str) -> None:
    """A lane out of range goes to the C library, even a single one, and the other lanes stay unchanged."""
    near = np.random.default_rng(6).uniform(-1e5, 1e5, 48).astype(dtype)
    clean = sincos(near, lanes)
    far = np.array([1.1e5, -1.1e5, 3e9, -1e15, 4.5e15, -1e30, np.finfo(dtype).max, np.inf, -np.inf, np.nan], dtype)
    for where, value in enumerate(far, start=18):
        x = near.copy()
        x[where] = value
        results = sincos(x, lanes)
        np.testing.assert_array_equal(asked, [value, value])
        for got, before, name in zip(results, clean, ("sin", "cos")):
            np.testing.assert_array_equal(got[where], from_libm(name, dtype)(value))
            assert np.isnan(got[where]) == (not np.isfinite(value))
            np.testing.assert_array_equal(np.delete(got, where), np.delete(before, where))


@every_dtype
@every_vector
def test_far_in_every_lane(lanes: int, dtype: str) -> None:
    x = np.linspace(2e5, 3e5, 48).astype(dtype)
    for got, name in zip(sincos(x, lanes), ("sin", "cos")):
        np.testing.assert_array_equal(got, [from_libm(name, dtype)(value) for value in x.tolist()])


@every_dtype
def test_edge_of_range(dtype: str) -> None:
    """Both sides of the limit at which the C library takes over are accurate."""
    edge = np.linspace(102930, 102960, 500).astype(dtype)
    x = np.concatenate([edge, -edge])
    for got, which in zip(sincos(x, 8), (0, 1)):
        assert max(ulps(g, reference(value)[which], dtype) for g, value in zip(got.tolist(), x.tolist())) < BOUND


@every_dtype
def test_empty_array_gives_empty_results(dtype: str) -> None:
    assert [len(part) for part in sincos(np.empty(0, dtype), 8)] == [0, 0]
