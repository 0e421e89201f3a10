"""The builtin function in front of a kernel handles or passes on its arguments, and leaks no memory."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import bellcrank as bc
from bellcrank.emit.cpu import kernel, python_entry
from bellcrank.emit.cpu.machine_code import interpreter_function

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

pytestmark = pytest.mark.skipif(not kernel.supported(), reason="no layouts to rely on")

ROWS_LIMIT = 1000
PASSED_ON = object()


def toy(inputs: list[tuple[int, ...]], output: tuple[int, ...], dtype: str) -> str:
    """Return IR of out[i] = sum over k of (k + 1) * in_k[i mod size_k].

    A NaN in the result is reported as bad input.
    """
    real = {"float64": "double", "float32": "float"}[dtype]
    each = range(len(inputs))
    terms = "".join(
        f"""\
  %i.{k} = urem i64 %i, {prod(inputs[k])}
  %x.{k}.at = getelementptr {real}, ptr %in.{k}, i64 %i.{k}
  %x.{k} = load {real}, ptr %x.{k}.at
  %term.{k} = fmul {real} %x.{k}, {k + 1}.0
  %sum.{k} = fadd {real} %term.{k}, {f"%sum.{k - 1}" if k else "0.0"}
"""
        for k in each
    )
    steps = "".join(
        f"  %offset.{k} = mul i64 %row, %stride.{k}\n  %at.{k} = getelementptr i8, ptr %in.{k}, i64 %offset.{k}\n"
        for k in each
    )
    return f"""
define i64 @one({", ".join(f"ptr %in.{k}" for k in each)}, ptr %out) {{
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %worst = phi i64 [ 0, %0 ], [ %worse, %loop ]
{terms}\
  %y.at = getelementptr {real}, ptr %out, i64 %i
  store {real} %sum.{len(inputs) - 1}, ptr %y.at
  %nan = fcmp uno {real} %sum.{len(inputs) - 1}, 0.0
  %bad = zext i1 %nan to i64
  %worse = or i64 %worst, %bad
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {prod(output)}
  br i1 %more, label %loop, label %done
done:
  ret i64 %worse
}}
define i64 @many(i64 %n, {", ".join(f"ptr %in.{k}, i64 %stride.{k}" for k in each)}, ptr %out, i64 %stride) {{
  br label %loop
loop:
  %row = phi i64 [ 0, %0 ], [ %next, %loop ]
  %worst = phi i64 [ 0, %0 ], [ %worse, %loop ]
{steps}\
  %offset = mul i64 %row, %stride
  %at = getelementptr i8, ptr %out, i64 %offset
  %bad = call i64 @one({", ".join(f"ptr %at.{k}" for k in each)}, ptr %at)
  %worse = or i64 %worst, %bad
  %next = add i64 %row, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 %worse
}}
"""


def toy_result(inputs: list[tuple[int, ...]], output: tuple[int, ...], args: tuple[np.ndarray, ...]) -> np.ndarray:
    lead = args[0].shape[: args[0].ndim - len(inputs[0])]
    pick = np.arange(prod(output))
    terms = [(k + 1) * a.reshape(*lead, -1)[..., pick % prod(s)] for k, (a, s) in enumerate(zip(args, inputs))]
    return np.asarray(sum(terms)).reshape(lead + output)


class Recorder:
    """A fallback that records its arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def __call__(self, *args: Any, **keywords: Any) -> object:
        self.calls.append((args, keywords))
        return PASSED_ON


def compile_toy(
    inputs: list[tuple[int, ...]], output: tuple[int, ...], fallback: Callable[..., Any], dtype: str = "float64"
) -> Callable[..., Any]:
    for name in python_entry.PYTHON_FUNCTIONS:
        llvm.add_symbol(name, interpreter_function(name))
    text = toy(inputs, output, dtype) + python_entry.definition(inputs, output, dtype, ROWS_LIMIT)
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return kernel.make_builtin(engine.get_global_value_address, "toy", "toy(a, b, c)\n--\n\nA toy.", fallback)


@cache
def strict(inputs: tuple[tuple[int, ...], ...], output: tuple[int, ...], dtype: str) -> Callable[..., Any]:
    """Return a toy kernel whose fallback fails the test."""
    return compile_toy(list(inputs), output, lambda *args, **keywords: pytest.fail("passed on"), dtype)


SIX = [(6,), (6,), (6,)]


@pytest.fixture(scope="module")
def recorded() -> tuple[Callable[..., Any], Recorder]:
    recorder = Recorder()
    return compile_toy(SIX, (6,), recorder), recorder


def random(shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lead", [(), (1,), (5,), (64,), (3, 4), (1000,), (2, 1, 1, 2, 1, 1, 1, 3)])
@pytest.mark.parametrize(
    ("inputs", "output"),
    [
        (SIX, (6,)),
        ([(6,), (6,)], (6, 6)),
        ([(2, 3), (), (4,)], (2, 3)),
        ([(3,), (3,)], ()),
        ([()], ()),
        ([(2,)], (1, 2, 3)),
    ],
)
def test_results(inputs: list[tuple[int, ...]], output: tuple[int, ...], lead: tuple[int, ...], dtype: str) -> None:
    args = tuple(random(lead + shape, dtype) for shape in inputs)
    result = strict(tuple(inputs), output, dtype)(*args)
    assert type(result) is (np.ndarray if lead or output else np.dtype(dtype).type)
    assert result.dtype == dtype
    assert result.shape == lead + output
    np.testing.assert_allclose(result, toy_result(inputs, output, args), rtol=1e-5 if dtype == "float32" else 1e-13)
    given = np.full(lead + output, np.nan, dtype)
    counted = sys.getrefcount(given)
    assert strict(tuple(inputs), output, dtype)(*args, out=given) is given
    np.testing.assert_array_equal(given, result)
    assert sys.getrefcount(given) == counted
    if lead or output:
        assert result.flags.owndata
        assert result.flags.writeable
        assert result.flags.c_contiguous


def test_read_only_and_repeated_inputs_are_taken(recorded: tuple[Callable[..., Any], Recorder]) -> None:
    f, recorder = recorded
    a = random((6,))
    a.flags.writeable = False
    np.testing.assert_allclose(f(a, a, a), 6 * a)
    view = np.broadcast_to(a, (1, 6))[0]  # contiguous, though a view
    np.testing.assert_allclose(f(view, view, view), 6 * a)
    assert not recorder.calls


class Sub(np.ndarray):
    pass


A = random((6,))
ROWS = random((5, 6))
NAN = np.array([0, 0, np.nan, 0, 0, 0])
DEEP = random((1,) * (python_entry.AXES_LIMIT + 1) + (6,))
BYTES = np.zeros(6 * 8 + 1, np.uint8)
UNUSUAL: dict[str, tuple[Any, ...]] = {
    "no arguments": (),
    "too few": (A, A),
    "too many": (A, A, A, A),
    "subclass": (A, A.view(Sub), A),
    "masked": (A, A, np.ma.masked_array(A)),
    "strided": (np.zeros(12)[::2], A, A),
    "reversed": (A, A[::-1], A),
    "broadcast": (ROWS, ROWS, np.broadcast_to(A, (5, 6))),
    "transposed": (ROWS, ROWS, np.asfortranarray(ROWS)),
    "misaligned": (A, A, BYTES[1:].view(np.float64)),
    "float32": (A, A.astype(np.float32), A),
    "integers": (A, A, np.arange(6)),
    "byte-swapped": (A.astype(A.dtype.newbyteorder()), A, A),
    "objects": (A, A, A.astype(object)),
    "lists": (A, list(A), A),
    "Python floats": (1.0, 2.0, 3.0),
    "NumPy scalars": (np.float64(1), A, A),
    "None": (A, None, A),
    "a type": (np.ndarray, A, A),
    "0-d": (A, np.array(1.0), A),
    "too short": (A, A[:5], A),
    "too long": (A, np.zeros(7), A),
    "empty": (A, np.zeros(0), A),
    "other trailing": (ROWS.reshape(6, 5), ROWS, ROWS),
    "other leading": (ROWS, ROWS[:4], ROWS),
    "other leading, same size": (random((2, 3, 6)), random((3, 2, 6)), random((2, 3, 6))),
    "one state among rows": (ROWS, A, ROWS),
    "rows after a state": (A, ROWS, A),
    "no rows": (np.zeros((0, 6)),) * 3,
    "no rows of many": (np.zeros((7, 0, 6)),) * 3,
    "too many rows": (np.zeros((ROWS_LIMIT + 1, 6)),) * 3,
    "too many axes": (DEEP, DEEP, DEEP),
    "bad value": (A, NAN, A),
    "bad value in a row": (ROWS, np.where(np.arange(30).reshape(5, 6) == 21, np.nan, ROWS), ROWS),
    "bad value in many rows": (np.full((500, 6), np.nan),) * 3,
    "unpickled, with a dtype of its own": (pickle.loads(pickle.dumps(A)), A, A),
}


@pytest.mark.parametrize("args", UNUSUAL.values(), ids=UNUSUAL)
def test_the_unusual_is_passed_on(recorded: tuple[Callable[..., Any], Recorder], args: tuple[Any, ...]) -> None:
    f, recorder = recorded
    recorder.calls.clear()
    assert f(*args) is PASSED_ON
    [(seen, keywords)] = recorder.calls
    assert len(seen) == len(args)
    assert all(x is y for x, y in zip(seen, args))
    assert not keywords
    recorder.calls.clear()


def test_keywords_are_passed_on(recorded: tuple[Callable[..., Any], Recorder]) -> None:
    f, recorder = recorded
    recorder.calls.clear()
    assert f(A, A, c=A) is PASSED_ON
    assert f(A, A, A, out=None) is PASSED_ON
    assert f(*(A, A), **{"c": A}) is PASSED_ON
    assert [(len(args), list(keywords)) for args, keywords in recorder.calls] == [(2, ["c"]), (3, ["out"]), (2, ["c"])]
    recorder.calls.clear()


def frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def test_an_out_that_does_not_fit_is_passed_on(recorded: tuple[Callable[..., Any], Recorder]) -> None:
    """An out= that does not fit is passed on.

    Cases: shape, depth, dtype, order, writability, and memory shared with an input, completely or by one element.
    """
    f, recorder = recorded
    recorder.calls.clear()
    table = random((3, 18))
    a, long = np.ascontiguousarray(table[:, :6]), np.zeros(24)
    wrong: list[tuple[np.ndarray, Any]] = [
        (a, np.empty((3, 5))),
        (a, np.empty((4, 6))),
        (a, np.empty(6)),
        (a, np.empty((1, 3, 6))),
        (a, np.empty((3, 6), "float32")),
        (a, np.empty((3, 6), order="F")),
        (a, np.empty((3, 12))[:, ::2]),
        (a, frozen(np.empty((3, 6)))),
        (a, a),
        (a, [0.0] * 6),
        (long[:6], long[5:11]),
        (long[6:12], long[1:7]),
    ]
    for x, out in wrong:
        assert f(x, x, x, out=out) is PASSED_ON, out
    assert len(recorder.calls) == len(wrong)
    assert f(long[:6], long[:6], long[:6], out=long[6:12]) is not PASSED_ON  # adjacent memory is allowed
    recorder.calls.clear()


def test_errors_of_the_fallback_come_through() -> None:
    def fallback(*args: object, **keywords: object) -> None:
        raise ValueError(f"{len(args)} {sorted(keywords)}")

    f = compile_toy(SIX, (6,), fallback)
    with pytest.raises(ValueError, match=r"2 \['c'\]"):
        f(A, A, c=A)
    with pytest.raises(ValueError, match=r"3 \[\]"):
        f(A, NAN, A)


def test_builtin_behaves_as_a_function() -> None:
    recorder = Recorder()
    f = compile_toy(SIX, (6,), recorder)
    assert inspect.isbuiltin(f)
    assert (f.__name__, f.__doc__, f.__module__) == ("toy", "A toy.", kernel.__name__)
    assert list(inspect.signature(f).parameters) == ["a", "b", "c"]
    assert f.__self__ is recorder
    assert copy.deepcopy(f) is f
    assert type("K", (), {"__call__": f})()(A, A, A).shape == (6,)  # not a descriptor, so no self comes first


def test_referenced_objects_live_as_long_as_the_builtin() -> None:
    class Engine:
        def address_of(self, name: str) -> int:
            return int(addresses[name])

    source = compile_toy(SIX, (6,), Recorder())
    _, original = source.__module__.references
    addresses = {name: original(name) for name in ("py", "call")}
    engine, fallback = Engine(), Recorder()
    watched = [weakref.ref(engine), weakref.ref(fallback)]
    f = kernel.make_builtin(engine.address_of, "".join(["na", "me"]), "".join(["do", "c"]), fallback)
    fallback.f = f  # type: ignore[attr-defined]  # a cycle, which must not keep anything alive
    del engine, fallback
    gc.collect()
    junk = [bytes(64) for _ in range(1000)]
    assert all(ref() is not None for ref in watched)
    assert (f.__name__, f.__doc__) == ("name", "doc")
    assert f(A, A, A).shape == (6,)
    del f, junk
    gc.collect()
    assert all(ref() is None for ref in watched)


def test_no_reference_or_memory_is_lost() -> None:
    failure = ValueError("no")

    def fallback(*args: object, **keywords: object) -> object:
        if keywords:
            raise failure
        return PASSED_ON

    f = compile_toy(SIX, (6,), fallback)
    energy = compile_toy([(6,)], (), fallback)
    rows, long, long_nan = random((5, 6)), random((70, 6)), np.full((70, 6), np.nan)
    lists = [1.0] * 6

    def work(times: int) -> None:
        for _ in range(times):
            f(A, A, A)
            f(rows, rows, rows)
            f(long, long, long)
            f(A, NAN, A)
            f(long, long_nan, long)
            f(A, lists, A)
            f(rows, A, rows)
            f(A)
            energy(A)
            try:
                f(A, A, c=A)
            except ValueError:
                failure.__traceback__ = None

    things = [A, NAN, rows, long, long_nan, lists, fallback, f, energy, PASSED_ON, failure, np.ndarray, A.dtype]
    work(10)
    before = [sys.getrefcount(thing) for thing in things]
    work(10_000)  # of ten calls each
    assert [sys.getrefcount(thing) for thing in things] == before
    tracemalloc.start()
    try:
        work(10)
        start, _ = tracemalloc.get_traced_memory()
        work(1_000)
        end, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert end - start < 1_000  # one leaked array in a thousand passes would be 10 times this


def test_results_own_one_reference_to_their_dtype() -> None:
    f = compile_toy(SIX, (6,), Recorder())
    before = sys.getrefcount(A.dtype)
    results = [f(A, A, A) for _ in range(100)]
    during = sys.getrefcount(A.dtype)
    assert {sys.getrefcount(r) for r in results} == {sys.getrefcount(r) for r in [A.copy() for _ in range(100)]}
    del results
    after = sys.getrefcount(A.dtype)
    if before < 2**30:  # otherwise the object is immortal
        assert (during, after) == (before + 100, before)


def test_threads() -> None:
    f = compile_toy(SIX, (6,), Recorder())
    batches = [random((n, 6)) for n in (3, 64, 1000)]
    wrong: list[int] = []

    def work() -> None:
        for turn in range(300):
            for x in [A, *batches]:
                if not np.allclose(f(x, x, x), 6 * x):
                    wrong.append(turn)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(timeout=60)
    assert not wrong
    assert not any(t.is_alive() for t in threads)


def test_out_of_memory_is_an_error_and_not_a_crash() -> None:
    f = compile_toy([(1,)], (10**6, 10**6, 10**5), Recorder())  # 8e17 bytes
    descr = np.dtype("float64")
    before = sys.getrefcount(descr)
    for _ in range(10):
        with pytest.raises(MemoryError):
            f(A[:1])
    gc.collect()
    assert sys.getrefcount(descr) - before < 10


LOADER = """
import sys
import llvmlite.binding as llvm
import numpy as np
from bellcrank.emit.cpu import kernel, python_entry
from bellcrank.emit.cpu.machine_code import interpreter_function

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
for name in python_entry.PYTHON_FUNCTIONS:
    llvm.add_symbol(name, interpreter_function(name))
machine = llvm.Target.from_default_triple().create_target_machine()
engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
engine.add_object_file(llvm.ObjectFileRef.from_path(sys.argv[1]))
engine.finalize_object()
f = kernel.make_builtin(engine.get_global_value_address, "toy", "", lambda *args: "passed on")
a = np.arange(6.0)
rows = np.ones((100, 6))
print(f(a, a, a).tolist(), f(rows, rows, rows).sum(), f(1, 2, 3))
"""


def test_object_code_works_in_another_process(tmp_path: Path) -> None:
    """Object code works in another process, as from a disk cache: it holds no address of this process."""
    module = llvm.parse_assembly(toy(SIX, (6,), "float64") + python_entry.definition(SIX, (6,), "float64", ROWS_LIMIT))
    stored = tmp_path / "toy.o"
    stored.write_bytes(llvm.Target.from_default_triple().create_target_machine(opt=2).emit_object(module))
    command = [sys.executable, "-c", LOADER, str(stored)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout.strip()) == ("", "[0.0, 6.0, 12.0, 18.0, 24.0, 30.0] 3600.0 passed on")


def test_fallback_is_used_on_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "supported", lambda: False)
    recorder = Recorder()
    assert kernel.make_builtin(lambda name: 0, "toy", "A toy.", recorder) is recorder


def test_kernels_of_the_fallback_have_equal_text_and_results(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = bc.zoo.planar3r()
    usual = bc.kernel(arm, "mass_matrix", method="crba")
    monkeypatch.setattr(kernel, "supported", lambda: False)
    plain = bc.kernel(arm, "mass_matrix", method="crba")
    q = np.array([0.1, 0.2, 0.3])
    assert np.array_equal(plain(q), usual(q))
    assert plain.__doc__ == usual.__doc__
    assert str(usual.function.__doc__) in str(plain.function.__doc__)


@pytest.mark.parametrize("fact", ["free-threaded", "not CPython"])
def test_unsupported_interpreters_are_detected(fact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fact == "free-threaded":
        monkeypatch.setattr(kernel, "OBJECT_HEADER_BYTES", 32)  # the value for this processor
    else:
        monkeypatch.setattr(kernel.sys.implementation, "name", "pypy")
    assert not kernel.supported.__wrapped__()
