"""Emitted C agrees with `evaluate`: compiled with the strictest options, and checked without a compiler."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
from bellcrank import quoting, zoo
from bellcrank.build import graphs
from bellcrank.emit.c import c99
from bellcrank.errors import InputError
from bellcrank.exporting.compilers import poison_flags
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism
from bellcrank.nodes.ops import COMPARISONS, OPS
from bellcrank.scalar import atan2, cos, maximum, minimum, sin, step, tanh, where
from trees import gripper

Array = npt.NDArray[Any]

COMPILERS = [c for c in map(shutil.which, ("gcc", "clang", "cc")) if c]
CC = COMPILERS[0] if COMPILERS else None
CXX = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
FOLDERS = [Path(p) / "cmeel.prefix/share/example-robot-data/robots" for p in sys.path]
ROBOTS = next((folder for folder in FOLDERS if folder.is_dir()), None)

needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler (gcc, clang or cc) on the PATH")
every_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])
TOLERANCE = {"float64": 1e-12, "float32": 2e-4}


# -- compiling and calling


def write(folder: Path, files: dict[str, str]) -> str:
    """Write the files; return their common name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return next(iter(files)).removesuffix(".h")


def read_by_others(folder: Path, flags: list[str], *sources: str) -> None:
    """Check that other installed compilers give no warnings."""
    for compiler in COMPILERS[1:]:
        if Path(compiler).resolve() != Path(COMPILERS[0]).resolve():
            run(folder, compiler, "-std=c99", *flags, "-fsyntax-only", *sources)


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    return done.stdout


def compiled(graph: Graph, folder: Path, dtype: str = "float64", level: str = "-O1") -> Callable[..., dict[str, Array]]:
    """Return the emitted function, called like graph.evaluate; check that nothing is written outside the results."""
    assert CC is not None
    name = write(folder, c99.source(graph, dtype))
    flags = ["-std=c99", *STRICT, level, *poison_flags(CC)]
    run(folder, CC, *flags, "-fPIC", "-shared", f"{name}.c", "-o", f"{name}.so", "-lm")
    read_by_others(folder, STRICT, f"{name}.c")
    function = ctypes.CDLL(str(folder / f"{name}.so"))[name]
    function.restype = None

    def call(**values: Any) -> dict[str, Array]:
        given = {key: np.ascontiguousarray(values[key], dtype) for key in graph.inputs}
        results = {key: np.full(array.size + 1, 7, dtype) for key, array in graph.outputs.items()}
        function(*(ctypes.c_void_p(a.ctypes.data) for a in (*given.values(), *results.values())))
        assert all(r[-1] == 7 for r in results.values())
        return {key: r[:-1].reshape(graph.outputs[key].shape) for key, r in results.items()}

    return call


def agree(graph: Graph, folder: Path, inputs: dict[str, Array], dtype: str = "float64", level: str = "-O1") -> None:
    """Check that every output is equal to rounding, relative to its largest element."""
    inputs = {key: inputs[key].astype(dtype) for key in graph.inputs}
    got, expected = compiled(graph, folder, dtype, level)(**inputs), graph.evaluate(**inputs)
    for key, y in expected.items():
        assert y.dtype == dtype
        np.testing.assert_allclose(got[key], y, rtol=0, atol=TOLERANCE[dtype] * max(1.0, np.abs(y).max(initial=0.0)))


def state(m: Mechanism, seed: int = 3) -> dict[str, Array]:
    q, v, tau = m.random(seed)
    return {"q": q, "v": v, "tau": tau, "a": tau, "dv": v}


# -- mechanisms


def ur5() -> Mechanism:
    if ROBOTS is None:
        pytest.skip("example-robot-data is not installed")
    return bc.read(ROBOTS / "ur_description/urdf/ur5_robot.urdf")


def satellite() -> Mechanism:
    b = bc.Builder("satellite", gravity=(0, 0, 0))
    b.body("hub", mass=20.0, com=(0, 0, 0.1), inertia=(2, 3, 4, 0.1, 0.2, 0.3))
    b.joint("free", "floating", "ground", "hub")
    b.body("panel", mass=3.0, com=(0, 1.5, 0), inertia=(1, 0.1, 1))
    b.joint("hinge", "revolute", "hub", "panel", point=(0, 1, 0), axis=(1, 0, 0))
    b.body("ball", mass=1.0, com=(0, -1.2, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("socket", "spherical", "hub", "ball", point=(0, -1, 0))
    return b.build()


MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "pendulum": zoo.pendulum,
    "ur5": ur5,
    "satellite": satellite,
    "gripper": gripper,
    "random": lambda: zoo.random_tree(5, passive=True),
}
CASES = [
    ("pendulum", "forward_dynamics", "float64"),
    ("pendulum", "kinetic_energy", "float64"),
    ("ur5", "forward_dynamics", "float64"),
    ("ur5", "forward_dynamics", "float32"),
    ("ur5", "mass_matrix", "float64"),
    ("satellite", "forward_dynamics", "float64"),
    ("satellite", "integrate", "float64"),
    ("gripper", "forward_dynamics", "float64"),
    ("gripper", "passive_torque", "float32"),
    ("random", "inverse_dynamics", "float64"),
]


@needs_cc
@pytest.mark.parametrize(("name", "quantity", "dtype"), CASES)
def test_quantity_of_mechanism(name: str, quantity: str, dtype: str, tmp_path: Path) -> None:
    m = MECHANISMS[name]()
    agree(graphs.graph(m, quantity), tmp_path, state(m), dtype)


@needs_cc
def test_derivative(tmp_path: Path) -> None:
    m = zoo.planar3r()
    agree(graphs.graph(m, "forward_dynamics").jacobian("forward_dynamics", "q"), tmp_path, state(m))


# -- operations


def every_operation() -> Graph:
    def body(a: Any, b: Any) -> dict[str, Any]:
        node = a.tape.node
        args = {1: (a,), 2: (a, b), 3: (a < b, b, a)}
        plain = [node(op.name, *args[op.arity]) for op in OPS.values() if op.name not in COMPARISONS]
        constants = [f(a, c) for f in (minimum, maximum) for c in (0.5, -np.inf, np.inf)]
        chosen = [where(a < b, 2.5, b), where(a <= b, a, -1.0), where(a < 0.5, where(a <= b, a, b), 1.0)]
        return {"plain": plain, "constants": constants, "chosen": chosen, "first": a}

    return trace("every operation", body, {"a": (), "b": ()})


@needs_cc
@every_dtype
def test_every_operation_at_every_edge(dtype: str, tmp_path: Path) -> None:
    info = np.finfo(dtype)
    some = [0.0, 0.3, 0.5, 1.0, 2.7, 40.0, 1e4, float(info.tiny) / 3, float(info.max), np.inf]
    edges = np.array([*some, *(-x for x in some), np.nan], dtype)
    graph = every_operation()
    a, b = (x.ravel() for x in np.meshgrid(edges, edges))
    function, expected = compiled(graph, tmp_path, dtype), graph.evaluate(a=a, b=b)
    got = [function(a=x, b=y) for x, y in zip(a, b, strict=True)]
    for key, y in expected.items():
        np.testing.assert_allclose(np.array([g[key] for g in got]), y, rtol=8 * float(info.eps), atol=float(info.tiny))


@needs_cc
@every_dtype
def test_constants_are_exact(dtype: str, tmp_path: Path) -> None:
    constants = np.array([0.1, -1 / 3, np.pi, 1e22, 1e-30, -0.0, 5e-324, 1e300, 123456789.0, -np.inf, np.nan])
    graph = trace("constants", lambda x: {"y": constants}, {"x": (2,)})
    with np.errstate(over="ignore"):
        expected = constants.astype(dtype)
    got = compiled(graph, tmp_path, dtype)(x=[1, 2])["y"]
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


def test_every_operation_is_spelled() -> None:
    assert set(c99.OPERATION_TEMPLATES) == set(OPS)


# -- large graphs


def knot(rounds: int = 9) -> Graph:
    """Return a graph of comparisons and sines whose inputs and outputs are used far from where they are made."""

    def body(x: Any, y: Any) -> dict[str, Any]:
        less, s, total = x[0] < y, sin(x[1] * y), x[0]
        for k in range(rounds):
            step("round", str(k))
            total = where(less, tanh(total) + cos(x[1] * y), s - total) * where(x[k % 3] <= total, 1.0, 0.25)
        return {"all": [total, s, x[2], 4.0], "angle": atan2(total, y), "less": where(less, 1.0, 0.0)}

    return trace("knot", body, {"x": (3,), "y": ()})


@needs_cc
@pytest.mark.parametrize("limit", [1, 2, 7, 20])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cut_anywhere(limit: int, sign: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c99, "MAX_STATEMENTS", limit)
    agree(knot(), tmp_path, {"x": np.array([0.3, 0.7, -0.2]), "y": np.array(sign)})


@needs_cc
def test_cut_mechanism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c99, "MAX_STATEMENTS", 60)
    m = satellite()
    agree(graphs.graph(m, "forward_dynamics"), tmp_path, state(m))


@cache
def long_chain() -> tuple[Mechanism, Graph]:
    m = zoo.chain(64)
    return m, graphs.graph(m, "forward_dynamics", method="aba")


@needs_cc
def test_long_chain(tmp_path: Path) -> None:
    m, graph = long_chain()
    agree(graph, tmp_path, {**state(m), "v": 0.1 * state(m)["v"]}, level="-O0")


def test_no_function_grows_beyond_the_limit() -> None:
    _, graph = long_chain()
    code = c99.source(graph)["chain64_forward_dynamics.c"]
    bodies = re.findall(r"^static void \w+_part_[^\n]*\n\{\n(.*?)^\}", code, re.MULTILINE | re.DOTALL)
    operations = [body.count("const double ") - len(re.findall(r"= w\[\d+\];", body)) for body in bodies]
    assert sum(operations) == graph.count().arithmetic + graph.count()["trig"] + graph.count()["neg"]
    assert len(bodies) == -(-sum(operations) // c99.MAX_STATEMENTS) > 2
    assert max(operations) <= c99.MAX_STATEMENTS
    assert max(operations) - min(operations) <= 1


# -- the guarantees of the header


@needs_cc
def test_stack_stays_below_the_bound_in_the_header(tmp_path: Path) -> None:
    assert CC is not None
    if "gcc" not in Path(CC).name:
        pytest.skip("only gcc writes down the stack of each function")
    for graph in (*(graphs.graph(m, "forward_dynamics") for m in (zoo.pendulum(), satellite())), long_chain()[1]):
        name = write(tmp_path, c99.source(graph))
        run(tmp_path, CC, "-std=c99", "-O0", "-fstack-usage", "-c", f"{name}.c")
        rows = [line.split("\t") for line in (tmp_path / f"{name}.su").read_text().splitlines()]
        frames = {row[0].rpartition(":")[2]: int(row[1]) for row in rows}
        own = frames.pop(name)
        bound = int(macro(c99.source(graph)[f"{name}.h"], "STACK_BYTES"))
        assert own + max(frames.values(), default=0) + 16 <= bound
    assert bound < 64 * 1024


@needs_cc
@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm to list symbols with")
def test_no_data_and_no_calls_but_to_libm(tmp_path: Path) -> None:
    assert CC is not None
    for graph in (every_operation(), long_chain()[1]):
        name = write(tmp_path, c99.source(graph))
        run(tmp_path, CC, "-std=c99", "-O0", "-fno-stack-protector", "-c", f"{name}.c")
        symbols = [line.split()[-2:] for line in run(tmp_path, "nm", f"{name}.o").splitlines()]
        assert [s.lstrip("_") for kind, s in symbols if kind == "T"] == [name]
        assert {kind for kind, _ in symbols} <= {"T", "t", "U", "r"}
        libm = {*quoting.LIBM_FUNCTIONS, "sincos"}
        assert {s.lstrip("_") for kind, s in symbols if kind == "U"} <= {*libm, "GLOBAL_OFFSET_TABLE_"}


BOTH: dict[str, tuple[int, ...]] = {"x": (2,), "unused": (0,)}


@needs_cc
@pytest.mark.skipif(CXX is None, reason="no C++ compiler (g++, clang++ or c++) on the PATH")
@pytest.mark.parametrize("standard", ["c++98", "c++17"])
def test_header_in_cpp(standard: str, tmp_path: Path) -> None:
    assert CC is not None
    assert CXX is not None
    graph = trace("both", lambda x, unused: {"y": [x[0] + x[1], x[0] * x[1]], "z": x[0] - x[1]}, BOTH)
    write(tmp_path, c99.source(graph))
    (tmp_path / "main.cpp").write_text("""
#include "both.h"
#include "both.h"
#include <cstdio>
int main() {
    const double x[BOTH_SIZE_X] = {3.0, 4.0};
    double y[BOTH_SIZE_Y], z[BOTH_SIZE_Z];
    both(x, x + BOTH_SIZE_UNUSED, y, z);
    std::printf("%g %g %g %d", y[0], y[1], z[0], BOTH_OPERATIONS);
}
""")
    run(tmp_path, CC, "-std=c99", *STRICT, "-c", "both.c")
    run(tmp_path, CXX, f"-std={standard}", *STRICT, "main.cpp", "both.o", "-o", "main", "-lm")
    assert run(tmp_path, "./main") == "7 12 -1 3"


def macro(header: str, name: str) -> str:
    return str(re.findall(rf"^#define \w+_{name} (\w+)$", header, re.MULTILINE)[0])


# -- names


ODD = [
    "two words", "ur5.bias", "3r", "double", "Größe µ", "手", "a*/b", "/*", "what??/", "a\nb", "back\\", "sin", "sinf",
    "restrict", "class", "__x__", "", " ", "w", "out", "x", "x_1", "Q", "q", "q ", "isnan", "main", "math", "INFINITY",
]  # fmt: skip


@needs_cc
def test_odd_names_compile(tmp_path: Path) -> None:
    """Inputs, outputs, steps, columns and the function itself may have unusual names."""

    def body(**inputs: Any) -> dict[str, Any]:
        total = {}
        for i, (key, x) in enumerate(inputs.items()):
            step(key, ODD[-i])
            total[key] = sin(x * (i + 2)) + where(x < 0.5, 1.0, 0.0)
        return total

    assert CC is not None
    graph = trace("odd", body, dict.fromkeys(ODD, ()))
    for dtype in ("float64", "float32"):
        agree(graph, tmp_path / dtype, {key: np.array(0.1 * i) for i, key in enumerate(ODD)}, dtype)
    stems = []
    for i, name in enumerate(ODD):
        alone = trace(name, lambda **inputs: {"y": -next(iter(inputs.values()))}, {name: (1,)})
        files = c99.source(alone, columns={name: [name]})
        assert all(text.isascii() for text in files.values())
        stems.append(f"{i}/{write(tmp_path / str(i), files)}")
    run(tmp_path, CC, "-std=c99", *STRICT, "-fsyntax-only", *(f"{stem}.c" for stem in stems))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("arm.forward_dynamics", "arm_forward_dynamics"), ("3R arm", "x3R_arm"), ("double", "double_"),
        ("Größe", "Groe"), ("IA[boom]", "IA_boom"), ("", "x"), ("__a__b__", "a_b"),
        ("d d IA[boom 2]", "d_d_IA_boom_2"), ("NaN", "NaN_"),
    ],
)  # fmt: skip
def test_identifier(text: str, word: str) -> None:
    assert quoting.identifier(text) == word


def test_name_given() -> None:
    files = c99.source(graphs.graph(zoo.pendulum(), "mass_matrix"), name="my kernel")
    assert list(files) == ["my_kernel.h", "my_kernel.c"]
    assert "void my_kernel(const double *restrict q, double *restrict out);" in files["my_kernel.h"]


# -- the text


def test_pendulum_reads_like_this() -> None:
    m = zoo.pendulum()
    q, v = m.columns
    files = c99.source(graphs.graph(m, "forward_dynamics", method="aba"), columns={"q": q, "v": v})
    header, code = files["pendulum_forward_dynamics.h"], files["pendulum_forward_dynamics.c"]
    for line in (
        "/* pendulum.forward_dynamics in C99, double; made by bellcrank " + bc.__version__,
        " *   q[1]        q: hinge",
        " *   out[1]      forward_dynamics",
        "#define PENDULUM_FORWARD_DYNAMICS_SIZE_TAU 1",
        'extern "C" void pendulum_forward_dynamics(const double *q, const double *v, const double *tau, double *out);',
    ):
        assert line in header.splitlines()
    assert "    const double sin_q_0 = sin(q[0]);\n" in code
    assert "    (void)v;\n" in code
    assert re.search(r"    /\* \w+\[bob\] \*/\n    const double \w+_bob_1 = ", code)
    assert re.search(r"    /\* results \*/\n    out\[0\] = \w+;\n\}\n$", code)


@pytest.mark.parametrize("limit", [40, 10**6])
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_name_is_made_once_and_before_its_use(name: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c99, "MAX_STATEMENTS", limit)
    graph = graphs.graph(MECHANISMS[name](), "forward_dynamics")
    code = next(text for file, text in c99.source(graph).items() if file.endswith(".c"))
    code = re.sub(r"/\*.*?\*/", "", code)
    arrays, functions = {*graph.inputs, "out", "w"}, {*quoting.LIBM_FUNCTIONS, "isnan", "double", "int", "void"}
    computed: list[str] = []
    for body in re.findall(r"^\{\n(.*?)^\}", code, re.MULTILINE | re.DOTALL):
        known = set(re.findall(r"^    double (\w+)\[\d+\];$", body, re.MULTILINE))  # arrays of sines and cosines
        for kind, made, text in re.findall(r"^    const (double|int) (\w+) = (.*);$", body, re.MULTILINE):
            assert kind == "double" or "<" in text
            assert set(re.findall(r"\b[A-Za-z]\w*", text)) <= known | arrays | functions
            assert made not in known | arrays | functions
            known.add(made)
            computed += [made] if not text.startswith("w[") else []
    assert len(computed) == len(set(computed)) == sum(n.op != "input" for n in graph.nodes)
    assert all(len(n) <= 63 for n in computed)


def test_sine_and_cosine_are_neighbours() -> None:
    def body(x: Any) -> dict[str, Any]:
        s = sin(x[0])
        return {"y": [s * x[1] + 2.0, cos(x[0]) * x[1]]}

    code = c99.source(trace("twins", body, {"x": (2,)}))["twins.c"]
    assert "    const double sin_x_0 = sin(x[0]);\n    const double cos_x_0 = cos(x[0]);\n" in code


def test_same_text_on_every_run() -> None:
    script = """
import sys
from bellcrank import quoting, zoo
from bellcrank.build import graphs
from bellcrank.emit.c import c99
c99.MOST_STATEMENTS = 200
sys.stdout.write("".join(c99.source(graphs.graph(zoo.random_tree(5, passive=True), "forward_dynamics")).values()))
"""
    texts = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(texts) == 1
    assert "static void" in texts.pop()


def test_unknown_dtype() -> None:
    with pytest.raises(InputError, match=r'dtype "float16".*Known: float64, float32'):
        c99.source(knot(), "float16")
