"""C packages: compiled with every warning as an error, they take the steps that bc.simulate takes."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import bellcrank as bc
from bellcrank.errors import InputError
from bellcrank.excavators.machines import MACHINES
from bellcrank.exporting.compilers import poison_flags
from bellcrank.files import write_folder
from targets.test_c99 import COMPILERS, ROBOTS, needs_cc, read_by_others, run

Array = npt.NDArray[Any]
WARNINGS = [
    f"-W{w}"
    for w in ("all", "extra", "pedantic", "conversion", "double-promotion", "shadow", "missing-prototypes", "error")
]


def library(folder: Path, *more: str) -> ctypes.CDLL:
    """The package, read by every compiler there is; the code of the first."""
    (source,) = (p for p in folder.glob("*.c") if p.name != "main.c")
    strict = ("-std=c99", "-O1", *WARNINGS, *poison_flags(COMPILERS[0]))
    run(folder, COMPILERS[0], *strict, *more, "-fPIC", "-shared", source.name, "-o", "it.so", "-lm")
    run(folder, COMPILERS[0], *strict, source.name, "main.c", "-o", "example", "-lm")
    read_by_others(folder, [*WARNINGS, *more], source.name, "main.c")
    return ctypes.CDLL(str(folder / "it.so"))


def ran(
    folder: Path, name: str, size: int, steps: int, y: Array, u: Array, p: Array | None = None, dtype: Any = float
) -> tuple[Array, int]:
    """y after so many steps of the compiled machine, from y; and its last status."""
    code = library(folder)
    sizes = [20 * size + 16, *(len(x) for x in (u, p) if x is not None and len(x))]
    arrays = [np.full(n, np.nan, dtype) for n in sizes]
    given = [ctypes.c_void_p(x.ctypes.data) for x in arrays]
    code[f"{name}_init"](*given)
    arrays[0][1 : 1 + len(y)] = y
    for array, x in zip(arrays[1:], [x for x in (u, p) if x is not None and len(x)], strict=True):
        array[:] = x
    code[f"{name}_start"](*given)
    status = 0
    for _ in range(steps):
        status = code[f"{name}_step"](*given)
    return arrays[0][1 : 1 + len(y)].copy(), status


def agree(s: bc.System, folder: Path, seconds: float, inputs: dict[str, float], **how: Any) -> None:
    """The machine in C ends where bc.simulate does, 1e-12 relative to the largest number on the way."""
    m = s.mechanism
    start = {} if m.loops else {"q0": m.random(1)[0] * 0.3, "v0": m.random(2)[1] * 0.1}
    run = bc.simulate(s, seconds, inputs=inputs, form="projected", **start, **how)
    bc.export(s, folder, **how)
    x = [run[z.name] for z in s.states]
    rows = np.column_stack([run.q, run.v, *x]) if x else np.column_stack([run.q, run.v])
    u, p = np.array([inputs[k] for k in s.inputs]), np.array(list(s.parameters.values()))
    y, status = ran(folder, m.name, rows.shape[1], len(rows) - 1, rows[0], u, p)
    assert status == 0
    np.testing.assert_allclose(y, rows[-1], rtol=0, atol=1e-12 * np.abs(rows).max())


def damped(m: bc.Mechanism) -> bc.System:
    def control(t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
        return [a - 5.0 * b - 2.0 * c for a, b, c in zip(u, v, q, strict=True)]

    return bc.system(m, control=control, inputs=[f"{n}.push" for n in m.columns[1]])


@needs_cc
@pytest.mark.parametrize("integrator", ["rk4", "abm4", "rodas4"])
def test_an_arm_takes_the_same_steps(integrator: str, tmp_path: Path) -> None:
    s = damped(bc.zoo.planar3r())
    agree(s, tmp_path / "it", 0.5, dict(zip(s.inputs, [1.0, -0.5, 0.2], strict=True)), integrator=integrator, step=1e-3)


@needs_cc
@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
def test_ur5(tmp_path: Path) -> None:
    assert ROBOTS is not None
    s = damped(bc.read(ROBOTS / "ur_description/urdf/ur5_robot.urdf"))
    agree(s, tmp_path / "it", 0.3, {n: 2.0 * k for k, n in enumerate(s.inputs)}, step=1e-3)


@needs_cc
@pytest.mark.parametrize("name", [n for n in MACHINES if n.startswith("excavator")])
def test_excavators_with_hydraulics_and_control(name: str, tmp_path: Path) -> None:
    s = MACHINES[name]().system
    agree(
        s, tmp_path / "it", 0.2, {n: s.defaults.get(n, 0.0) + 0.3 * (k < 2) for k, n in enumerate(s.inputs)}, step=1e-3
    )


@needs_cc
def test_free_numbers_and_single_precision(tmp_path: Path) -> None:
    b = bc.Builder("arm of mine")
    b.body("link/1", mass=bc.parameter("link.mass", 2.0, "kg"), com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    b.joint("a-b", "revolute", "ground", "link/1", axis=(0, 1, 0))
    m = b.build()
    run_ = bc.simulate(m, 0.5, q0=[0.7], parameters={"link.mass": 5.0}, step=1e-3)
    y, end = np.array([0.7, 0.0]), np.array([run_.q[-1, 0], run_.v[-1, 0]])
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-4)):
        bc.export(m, tmp_path / dtype, dtype=dtype)
        got, _ = ran(tmp_path / dtype, "arm_of_mine", 2, 500, y, np.zeros(1), np.array([5.0]), dtype)
        np.testing.assert_allclose(got, end, rtol=tolerance)
    text = (tmp_path / "float64" / "arm_of_mine.h").read_text()
    assert "double a_b_q; /* a-b.q [rad] */" in text
    assert "double link_mass; /* link.mass [kg] */" in text


@needs_cc
@pytest.mark.parametrize(
    ("name", "form"), [("four_bar", "projected"), ("four_bar", "minimal"), ("slider_fourbar", "projected")]
)
def test_loops_are_kept_closed_in_single_precision(name: str, form: str, tmp_path: Path) -> None:
    m = bc.zoo.load(name)
    folder = bc.export(m, tmp_path / "it", dtype="float32", form=form)
    run(folder, "cc", "-O1", "-std=c99", "-o", "it", *(f.name for f in folder.glob("*.c")), "-lm")
    said = run(folder, "./it")
    assert "status 0" in said.strip().splitlines()[-1], said
    found = float(said.rsplit("q = ", 1)[1].split(",")[0])
    native = bc.simulate(m, 1.0, form=form, keep="final").final
    assert found == pytest.approx(native[f"{m.columns[0][0]}.q"], abs=1e-3)


def test_steps_too_long_for_oscillations_are_rejected(tmp_path: Path) -> None:
    b = bc.Builder("boom")
    steel = bc.Material(2.1e11, 0.3, 7850.0)
    b.beam("beam", length=1.0, section=bc.Section.rectangle(0.02, 0.03), material=steel, modes=2)
    b.joint("hinge", "revolute", "ground", "beam", axis=(0, 1, 0))
    for to in ("c", "fmu3"):
        with pytest.raises(InputError, match="Hz"):
            bc.export(b.build(), tmp_path / "it", to=to, step=1e-3)
    assert not list(tmp_path.iterdir())


def test_single_precision_is_for_c(tmp_path: Path) -> None:
    for to in ("fmu2", "fmu3", "casadi", "wasm", "page"):
        with pytest.raises(InputError, match='"float32" is for C'):
            bc.export(bc.zoo.pendulum(), tmp_path / "it", to=to, dtype="float32")


@needs_cc
def test_functions_and_derivatives(tmp_path: Path) -> None:
    m = bc.zoo.stanford()
    own = bc.compile(lambda x: x * x, inputs={"x": 2}, name="square")
    asked = ["mass_matrix", f"pose({list(m.frames)[-1]})", "d(forward_dynamics)/d(q)", own]
    bc.export(m, tmp_path / "it", functions=asked)
    code, (q, v, tau) = library(tmp_path / "it"), m.random(3)
    out = np.zeros((m.nv, m.nv))
    code.stanford_mass_matrix(*(ctypes.c_void_p(a.ctypes.data) for a in (q, out)))
    np.testing.assert_allclose(out, m.mass_matrix(q), rtol=1e-12, atol=1e-13)
    code.stanford_dforward_dynamics_dq(*(ctypes.c_void_p(a.ctypes.data) for a in (q, v, tau, out)))
    expected = bc.kernel(m, "forward_dynamics").derivative("q")(q, v, tau)
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@needs_cc
def test_a_graph_that_is_called_is_a_function_once(tmp_path: Path) -> None:
    """But for steps so short that a call is a good part of them: these have their stages in one function."""
    for m, stages in ((bc.zoo.stanford(), 4), (bc.zoo.planar3r(), 0)):
        bc.export(damped(m), tmp_path / m.name)
        text = (tmp_path / m.name / f"{m.name}.c").read_text()
        assert text.count(f"void {m.name}_slope(") == 1
        assert text.count(f"    {m.name}_slope(") == stages + 1  # of rk4, and one in stanford_rate


@needs_cc
def test_names_that_are_no_identifiers_stay_apart(tmp_path: Path) -> None:
    b = bc.Builder('evil"; */ #error')
    for k, (body, joint) in enumerate([("a b", "int"), ("a.b", "in t"), ("*/", "in-t")]):
        b.body(body, mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
        b.joint(joint, "revolute", ["ground", "a b", "a.b"][k], body, axis=(0, 1, 0))
    bc.export(b.build(), tmp_path / "it")
    library(tmp_path / "it")
    members = [f"double {name};" for name in ("int_q", "in_t_q", "in_t_q_1")]
    text = next((tmp_path / "it").glob("*.h")).read_text()
    assert all(m in text for m in members)


@needs_cc
def test_the_task_of_the_docs_compiles(tmp_path: Path) -> None:
    folder = bc.export(MACHINES["excavator"]().system, tmp_path / "it", dtype="float32")
    page = (Path(__file__).parents[2] / "docs/export-for/plc.md").read_text()
    (text,) = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    (folder / "task.c").write_text(text)
    flags = [w for w in WARNINGS if w != "-Wmissing-prototypes"]  # who calls it is not ours
    run(folder, COMPILERS[0], "-std=c99", *flags, "-c", "task.c")


# -- what cannot be exported, and what a failure leaves behind


def test_invalid_exports_raise(tmp_path: Path) -> None:
    m = bc.zoo.planar3r()
    for thing, why in (
        (bc.Simulator(m, "dopri5").program((True, True)), "rows"),
        (bc.Simulator(bc.zoo.four_bar(), form="minimal").program(rows=False), r"self_contained_program\(\)"),
        (3, "expected a Graph"),
        ([], "nothing to export"),
    ):
        with pytest.raises(InputError, match=why):
            bc.export(thing, tmp_path / "it")
    for asked, why in (("mas_matrix", "mass_matrix"), ("a b", "not a quantity"), (3, "expected the name")):
        with pytest.raises(InputError, match=why):
            bc.export(m, tmp_path / "it", functions=[asked])
    with pytest.raises(InputError, match="to"):
        bc.export(m, tmp_path / "it", to="fortran")
    assert not list(tmp_path.iterdir())


def test_export_folders_are_replaced_and_other_files_stay(tmp_path: Path) -> None:
    folder = tmp_path / "it"
    bc.export(bc.zoo.pendulum(), folder)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    bc.export(bc.zoo.pendulum(), folder, dtype="float32")
    assert {p.name for p in folder.iterdir()} == set(before)
    assert (folder / "pendulum.h").read_bytes() != before["pendulum.h"]
    (folder / "mine.c").write_text("int x;")
    with pytest.raises(InputError, match=r"mine\.c"):
        bc.export(bc.zoo.pendulum(), folder)
    with pytest.raises(InputError, match="cannot be written"):
        write_folder(tmp_path / "new", {"a": b"1", "a/b": b"2"})
    assert [p.name for p in tmp_path.iterdir()] == ["it"]


KILLED = """
import os, sys
from pathlib import Path
import bellcrank as bc
writes = []
def written(self, data, plain=Path.write_bytes):
    writes.append(self)
    plain(self, data)
    if len(writes) == 3:
        os.kill(os.getpid(), 9)
Path.write_bytes = written
bc.export(bc.zoo.pendulum(), sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing is killed that way here")
def test_a_process_that_is_killed_leaves_no_half_folder(tmp_path: Path) -> None:
    """Nor what lies beside it for longer than an hour, once the same folder is written again."""
    folder = tmp_path / "it"
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder)])
    assert done.returncode == -signal.SIGKILL
    assert not folder.exists()
    (rest,) = tmp_path.iterdir()
    bc.export(bc.zoo.pendulum(), folder)
    assert {p.name for p in tmp_path.iterdir()} == {"it", rest.name}  # somebody may be writing it
    os.utime(rest, (1.0, 1.0))
    bc.export(bc.zoo.pendulum(), folder)
    assert [p.name for p in tmp_path.iterdir()] == ["it"]


# -- the promises of the header


@needs_cc
def test_stack_and_symbols_match_the_header(tmp_path: Path) -> None:
    """Without optimisation every frame is as large as it gets; the deepest chain is tick, slope and a part of it."""
    if "gcc" not in Path(COMPILERS[0]).name:
        pytest.skip("only gcc writes down the stack of each function")
    folder = bc.export(MACHINES["excavator"]().system, tmp_path / "it")
    run(folder, COMPILERS[0], "-std=c99", "-O0", "-fstack-usage", "-c", "excavator.c")
    rows = [line.split("\t") for line in (folder / "excavator.su").read_text().splitlines()]
    frames = {row[0].rpartition(":")[2]: int(row[1]) + 8 for row in rows}
    bounds = dict(re.findall(r"#define EXCAVATOR_(\w+)_STACK_BYTES (\d+)", (folder / "excavator.h").read_text()))

    def deepest(name: str) -> int:
        parts = [size for f, size in frames.items() if f.startswith(f"excavator_{name}_part")]
        return frames[f"excavator_{name}"] + max(parts, default=0)

    assert deepest("slope") <= int(bounds["SLOPE"])
    assert deepest("tick") + deepest("slope") <= int(bounds["TICK"]) < 2 * (deepest("tick") + deepest("slope"))
    if shutil.which("nm") is not None:
        symbols = [line.split()[-2:] for line in run(folder, "nm", "excavator.o").splitlines()]
        assert {kind for kind, _ in symbols} <= {"T", "t", "U", "r"}  # no data that can be written
        assert {"malloc", "calloc", "free"}.isdisjoint(name for _, name in symbols)
