"""The command line: every command as table and JSON, in narrow terminals and pipes, and its messages for bad input."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

import bellcrank as bc
from bellcrank import cli
from bellcrank.cli import app, screen
from bellcrank.cli.papers import bibtex_entry
from bellcrank.dynamics import METHODS, QUANTITIES, applicable_methods, candidates

LOOPS = {"closure", "closure_jacobian", "closure_bias", "loop_forces"}  # quantities of mechanisms with loops only
SOURCE = Path(cli.__file__).parents[2]
ARM = """<robot name="arm">
  <link name="base"/>
  <link name="upper_arm_with_a_rather_long_name"><inertial><origin xyz="0 0 0.2"/><mass value="2.5"/>
    <inertia ixx="0.03" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.01"/></inertial><visual/></link>
  <link name="tool"/>
  <joint name="shoulder_of_the_arm" type="revolute">
    <parent link="base"/><child link="upper_arm_with_a_rather_long_name"/>
    <origin rpy="1.5707963 0 0"/><axis xyz="0 0 1"/><limit lower="2" upper="-2" velocity="1" effort="1"/></joint>
  <joint name="mount" type="fixed"><parent link="upper_arm_with_a_rather_long_name"/><child link="tool"/></joint>
</robot>"""
BOMB = """<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
  <!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><robot name="&c;"/>"""
FITTING = (
    "show ARM", "show ARM --report", "count ARM", "count ARM --all", "cite ARM", "methods", "zoo",
    "schedule ARM --no-page", "schedule excavator --no-page", "schedule excavator --machine complete:2 --no-page",
)  # fmt: skip


@pytest.fixture
def arm(tmp_path: Path) -> str:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return str(path)


def run(*args: str, columns: int = 100) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, list(args))


def good(*args: str, columns: int = 100) -> str:
    result = run(*args, columns=columns)
    assert result.exit_code == 0, result.output
    return result.stdout


def data(*args: str) -> Any:
    return json.loads(good(*args, "--json"), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def process(*args: str, **more: Any) -> subprocess.Popen[bytes]:
    env = os.environ | {"PYTHONPATH": str(SOURCE)}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-m", "bellcrank", *args], env=env, stdout=pipe, stderr=pipe, **more)


# -- commands


def test_help_and_version() -> None:
    text = good("--help", columns=60)
    for name in ("show", "zoo", "count", "schedule", "emit", "bench", "report", "methods", "cite"):
        assert f"\n  {name} " in text
        assert "Usage" in good(name, "--help", columns=60)
    assert "..." not in text.split("Commands:")[1]  # every summary fits into its line
    assert good("--version").strip() == f"bellcrank {bc.__version__}"


def test_show_a_file(arm: str) -> None:
    text = good("show", arm)
    for word in ("arm: 1 moving bodies", "nq 1", "2.5 kg", "shoulder_of_the_arm", "revolute", "tool", "1 warning,"):
        assert word in text
    assert "warning: " in text
    assert "is above upper" in text
    assert "<visual>" in good("show", arm, "--report")


def test_show_json(arm: str) -> None:
    found = data("show", arm, "--base", "floating")
    assert (found["nq"], found["nv"]) == (8, 7)
    assert found["q"][0] == "root_joint.x"
    assert found["joints"][0]["limits"]["upper"] is None  # infinite
    assert {frame["name"] for frame in found["frames"]} >= {"base", "tool"}
    assert any(line["level"] == "warning" for line in found["report"]["lines"])


def test_zoo() -> None:
    assert [row["name"] for row in data("zoo")] == list(bc.zoo.names())
    assert "excavator" in good("zoo")


@pytest.mark.parametrize("spelled", ["chain:3", "chain(3)", "chain( 3, twist='general')"])
def test_built_in_mechanisms_take_numbers(spelled: str) -> None:
    assert data("show", spelled)["nv"] == 3


def test_count() -> None:
    row = data("count", "excavator", "--method", "aba")["rows"][0]
    graph = bc.kernel(bc.zoo.excavator(), "forward_dynamics", method="aba").graph
    assert row["total"] == graph.count().arithmetic == sum(row["count"][k] for k in ("mul", "add", "sub", "div"))
    assert row["span"] == graph.span()
    assert row["nodes"] == len(graph.nodes)
    assert row["parallelism"] == pytest.approx(row["work"] / row["span"])
    text = good("count", "excavator")
    tried = [by.name for by in candidates("forward_dynamics", bc.zoo.excavator().tree)]
    assert len(tried) > 1
    assert f"chosen from {', '.join(tried)}" in text
    assert str(data("count", "excavator")["rows"][0]["total"]) in text


def test_count_all() -> None:
    found = data("count", "pendulum", "--all")
    rows, left_out = found["rows"], found["left_out"]
    tree = bc.zoo.pendulum().tree
    able_by = {name: {by.name for by in applicable_methods(name, tree)} for name in QUANTITIES}
    assert {row["quantity"] for row in rows} == {name for name, found in able_by.items() if found and name not in LOOPS}
    for name in {row["quantity"] for row in rows}:
        group = [row for row in rows if row["quantity"] == name]
        assert {row["method"] for row in group} == {by for by in able_by[name] if f"{name} by {by}" not in left_out}
        assert sum(row["choice"] for row in group) == (len(group) > 1)
        assert all(row["predicted"] > 0 and row["measured"] > 0 and row["code_size"] > 0 for row in group)
    assert "of bob where a frame is needed" in good("count", "pendulum", "--all", "--frame", "bob")


def test_count_all_of_one_quantity_and_without_measuring() -> None:
    rows = data("count", "excavator", "--all", "-q", "mass_matrix", "--no-measure")["rows"]
    assert {row["quantity"] for row in rows} == {"mass_matrix"}
    assert all("measured" not in row and row["predicted"] > 0 for row in rows)


def test_count_explains_the_form_of_the_code() -> None:
    rows = data("count", "chain:100", "--explain")["rows"]
    assert [(row["use"], row["method"], row["code"]) for row in rows] == [
        ("kernel", "aba", "rolled loops"),
        ("several cores", "dca", "rolled segments"),
        ("not used", "denoc", "straight-line code"),
    ]
    assert "25 bodies per link class >= 4" in rows[0]["reasons"]
    text = good("count", "chain:300", "-q", "mass_matrix", "--explain")
    assert "mechanism.mass_matrix  columns" in text
    assert "550,133 operations > 250,000" in text
    assert [row["code"] for row in data("count", "puma600", "--explain", "-m", "aba")["rows"]] == ["straight-line code"]
    assert "takes no --all" in run("count", "chain:100", "--explain", "--all").stderr
    assert "no --explain" in run("count", "chain", "--explain", "--papers").stderr


def test_count_for_a_gpu() -> None:
    rows = data("count", "excavator", "--target", "cuda", "--all", "--dtype", "float32")["rows"]
    assert [row["per_second"] for row in rows] == sorted((row["per_second"] for row in rows), reverse=True)
    assert {row["method"] for row in rows} == {
        by.name for by in candidates("forward_dynamics", bc.zoo.excavator().tree)
    }
    assert sum(row["choice"] for row in rows) == 1
    (wide,) = data("count", "tree:31", "--target", "cuda", "-m", "aba")["rows"]
    assert wide["threads"] > 1 > wide["balance"] > 0
    assert 24 < wide["registers"] <= 255
    assert "per s" in good("count", "excavator", "--target", "cuda")
    (large,) = data("count", "chain:100", "--target", "cuda")["rows"]
    assert large["workspace"] > 4 * 100  # inputs, outputs and values of the bodies
    assert "loops over identical bodies" in good("count", "chain:100", "--target", "cuda")
    assert 'no target "gpu"' in run("count", "excavator", "--target", "gpu").output
    assert 'no dtype "half"' in run("count", "excavator", "--target", "cuda", "--dtype", "half").output


def test_count_all_lists_skipped_slow_methods() -> None:
    result = run("count", "chain:60", "--all", "-q", "forward_dynamics", "--no-measure")
    assert result.exit_code == 0
    assert "far slower (show them with -q and -m): forward_dynamics by crba" in result.output


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("llvm", "define"),
        ("c", "void excavator_mass_matrix_float32("),
        ("graph", "mass_matrix[3,3] = "),
        ("dot", "digraph"),
        ("svg", "</svg>"),
        ("json", '"op": "mul"'),
        ("asm", ".globl"),
        ("latex", r"\mathrm{mass\_matrix}_{44} &= 386"),
        ("python", "def mass_matrix(q):"),
        ("sympy", "mass_matrix = Matrix([["),
    ],
)
def test_emit(target: str, word: str, tmp_path: Path) -> None:
    args = ("emit", "excavator", "--target", target, "--quantity", "mass_matrix", "--dtype", "float32")
    assert word in good(*args)
    files = data(*args)["files"]
    assert any(word in text for text in files.values())
    out = tmp_path / "new" / "folder"
    result = run(*args, "--out", str(out))
    assert result.stdout == ""
    assert sorted(p.name for p in out.iterdir()) == sorted(files)


def test_emit_to_a_file(tmp_path: Path) -> None:
    good("emit", "pendulum", "--target", "dot", "--out", str(tmp_path / "p.gv"))
    assert (tmp_path / "p.gv").read_text().startswith("digraph")
    written = data("emit", "pendulum", "-t", "c", "-q", "forward_dynamics", "--out", str(tmp_path / "swing.c"))[
        "written"
    ]
    assert sorted(Path(p).name for p in written) == ["swing.c", "swing.h"]
    assert "void swing(" in (tmp_path / "swing.c").read_text()


def test_equations_of_motion(tmp_path: Path) -> None:
    assert r"M_{11} &= 4 + 3\,c_{2} + c_{3} + c_{23}" in good("emit", "planar3r", "--target", "latex")
    assert "def h(q, v):" in good("emit", "planar3r", "-t", "python")
    assert "h = Matrix([h_1, h_2, h_3])" in good("emit", "planar3r", "-t", "sympy")
    assert "void planar3r_M(const double q[3], double M[3][3])" in good("emit", "planar3r", "-t", "c")
    found = data("emit", "planar3r", "-t", "latex")
    assert (found["quantity"], list(found["files"])) == ("equations", ["planar3r_equations.tex"])
    good("emit", "planar3r", "-t", "latex", "--out", str(tmp_path / "arm.tex"))
    assert (tmp_path / "arm.tex").read_text().startswith(r"\documentclass")
    assert "in steps" in good("emit", "planar3r", "-t", "latex", "--terms", "3")
    assert r"g_{4} &= 3.55 \times 10^{3}\,c_{234}" in good("emit", "excavator", "-t", "latex", "--digits", "3")


def test_a_folder_keeps_quantities_apart(tmp_path: Path) -> None:
    """A folder keeps the output of each quantity apart, also with a dot in its name; existing files need consent."""
    for folder in (tmp_path / "code", tmp_path / "code.v1"):
        folder.mkdir()
        ways: list[tuple[str, ...]] = [
            ("mass_matrix",),
            ("bias",),
            ("pose", "--frame", "link1"),
            ("pose", "--frame", "ground"),
            ("jacobian", "--frame", "link1"),
            ("jacobian", "--frame", "link1", "--reference", "local"),
        ]
        ways += [("mass_matrix", "--dtype", "float32"), ("mass_matrix", "--method", "denoc")]
        for way in ways:
            good("emit", "chain:2", "-t", "graph", "-q", *way, "--out", str(folder))
        assert len(list(folder.iterdir())) == len(ways)
        done = run("emit", "chain:2", "-t", "graph", "-q", "bias", "--out", str(folder))
        assert "replaced" in done.stderr + done.stdout


def test_a_frame_is_seen_from_a_reference() -> None:
    how = ("-q", "jacobian", "--frame", "link2", "--reference", "local")
    assert "planar3r: jacobian of link2, local, printed" in good("emit", "planar3r", "-t", "python", *how)
    assert "planar3r_jacobian_link2_local(" in good("emit", "planar3r", "-t", "c", *how)
    assert "q0: joint1, joint2, joint3" in good("emit", "planar3r", "-t", "c", "-q", "difference")


def test_emitted_c_names_the_columns() -> None:
    text = good("emit", "excavator", "--target", "c", "-q", "forward_dynamics")
    assert text.count("in C99, double") == 1
    for name in ("q", "v", "tau"):
        assert f"{name}: cab, boom, stick, bucket" in text


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_printed_c_compiles(tmp_path: Path) -> None:
    text = good("emit", "excavator", "--target", "c")
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-x", "c", "-c", "-", "-o", str(tmp_path / "x.o")]
    subprocess.run(command, input=text, text=True, check=True)


def test_bench() -> None:
    found = data("bench", "pendulum", "--rows", "512", "-q", "forward_dynamics", "-q", "pose", "--frame", "tip")
    assert [(t["quantity"], t["method"]) for t in found["seconds"]] == [
        *(("forward_dynamics", by.name) for by in candidates("forward_dynamics", bc.zoo.pendulum().tree)),
        ("pose", "kinematics"),
    ]
    for t in found["seconds"]:
        assert all(0 < t[key] < 60 for key in ("compile", "from_cache", "call", "batch", "batch_all_cores"))
    text = good("bench", "pendulum", "--method", "aba", "--rows", "64")
    assert "forward_dynamics" in text
    assert "inverse_dynamics" not in text  # aba does not compute it


@pytest.mark.parametrize("name", ["pendulum", "four_bar"])
def test_bench_predicts_and_times_a_step(name: str) -> None:
    """`bench` predicts and times a step, also of a mechanism with loops, which it once refused."""
    found = data("bench", name, "--rows", "64", "--method", "auto")
    assert {t["integrator"] for t in found["steps"]} == {"rk4", "euler"}
    assert all(t[key] > 0.0 for t in found["steps"] for key in ("predicted", "batch"))
    assert all(t["one"] > 1e-9 for t in found["steps"])
    assert "forward_dynamics" in {t["quantity"] for t in found["seconds"]}


def test_bench_gives_every_core_enough_to_do() -> None:
    args = ("bench", "pendulum", "--rows", "16", "-q", "mass_matrix", "--method", "auto")
    found = data(*args)
    enough = 2 * found["cores"] * bc.kernel(bc.zoo.pendulum(), "mass_matrix").signature.rows_per_thread
    assert found["seconds"][0]["rows_all_cores"] >= enough
    if found["cores"] > 1:
        rows = found["seconds"][0]["rows_all_cores"]
        assert f"of 16 states, on {found['cores']} cores of {rows}, so" in good(*args)


def test_bench_leaves_no_kernel_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`bench` leaves no kernel in the cache; only operation costs and digests of constants may stay."""
    monkeypatch.setenv("BELLCRANK_CACHE", str(tmp_path))
    good("bench", "pendulum", "-q", "rate", "--rows", "16")
    assert os.environ["BELLCRANK_CACHE"] == str(tmp_path)
    left = list(tmp_path.iterdir())
    assert len(left) <= 3
    assert {path.suffix for path in left} <= {".json"}


def test_methods() -> None:
    assert [row["name"] for row in data("methods")] == list(METHODS)
    assert "Featherstone" in good("methods")
    text = str(bc.methods())
    assert max(map(len, text.splitlines())) <= 100
    source = " ".join(line[text.index("source") :].strip() for line in text.splitlines()[2:])  # the last column
    assert source.split() == " ".join(m.citation for m in METHODS.values()).split()  # complete citations


def test_cite() -> None:
    found = data("cite", "puma600")
    assert found[0]["what"] == "mechanism"
    used = {q: row["name"] for row in found for q in row.get("quantities", [])}
    assert set(used) == set(QUANTITIES) - LOOPS
    assert [row["name"] for row in data("cite", "chain:2", "--method", "aba")] == ["aba"]
    text = good("cite", "puma600", "--bibtex")
    assert "@phdthesis{wong1991," in text
    assert "@article{" in text


def test_every_reference_has_a_form_of_bibtex() -> None:
    papers = [paper for name in ("puma600", "stanford", "excavator") for paper in bc.zoo.data(name)["cite"]]
    for citation in [m.citation for m in METHODS.values()] + papers:
        assert "@misc" not in bibtex_entry(citation)
        assert bibtex_entry(citation).count("{") == bibtex_entry(citation).count("}")
    assert "note = {who knows}" in bibtex_entry("who knows")


# -- bad input: exit code 2, one message, no traceback


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["show", "excavatr"], ['no mechanism "excavatr"', 'mean "excavator"']),
        (["show", "missing.urdf"], ["missing.urdf does not exist"]),
        (["show", "no/such/folder/x.urdf"], ["does not exist"]),
        (["show", "."], ["is a folder"]),
        (["show", "chain"], ["chain(n"]),
        (["show", "chain:x"], ["cannot be read"]),
        (["show", "chain:0"], ["expected a whole number"]),
        (["show", "excavator", "--base", "floating"], ["--base floating applies to files"]),
        (["count", "excavator", "-q", "mass_matrx"], ['mean "mass_matrix"']),
        (["count", "excavator", "-m", "rnea"], ["cannot compute forward_dynamics"]),
        (["count", "excavator", "-q", "pose"], ["needs a frame", "bucket"]),
        (["count", "excavator", "-q", "pose", "-f", "buckt"], ['mean "bucket"']),
        (["emit", "excavator", "-t", "fortran"], ['no target "fortran"', "llvm"]),
        (["emit", "excavator", "-t", "c", "--dtype", "float16"], ['no dtype "float16"']),
        (["emit", "excavator", "-t", "latex", "--method", "aba"], ["take no --method"]),
        (["emit", "excavator", "-t", "latex", "--reference", "local"], ["no --reference"]),
        (["emit", "excavator", "-t", "c", "-q", "com", "--reference", "local"], ["com takes no reference"]),
        (["emit", "excavator", "-t", "latex", "--digits", "99"], ["digits is 99", "from 1 to 17"]),
        (["emit", "pendulum", "-t", "dot", "--out", "/proc/none/x.dot"], ["cannot be written"]),
        (["emit", "chain:9", "-t", "svg"], ["a picture of more than 400 is unreadable", "--target dot"]),
        (["schedule", "pendulum", "--machine", "mseh"], ['mean "mesh"', "triangle"]),
        (["schedule", "pendulum", "--machine", "mesh:2"], ["whole numbers"]),
        (["schedule", "pendulum", "--machine", "mesh:x"], ["whole numbers"]),
        (["schedule", "pendulum", "--machine", "mesh:0,2"], ["at least 1"]),
        (["schedule", "pendulum", "--machine", ":,"], ["a name and numbers"]),
        (["schedule", "pendulum", "--kind", "t80"], ['mean "t800"']),
        (["schedule", "pendulum", "--level", "nod", "--no-page"], ['mean "node"']),
        (["schedule", "pendulum", "--out", "/proc/none/x.html"], ["cannot be written", "--no-page"]),
        (["bench", "pendulum", "-q", "nonsense"], ['no quantity "nonsense"']),
        (["cite", "excavator", "-m", "abba"], ['mean "aba"']),
        (["show"], ["MECHANISM"]),
        (["emit", "excavator"], ["--target"]),
        (["bench", "--rows", "0"], ["--rows"]),
        (["nonsense"], ["nonsense"]),
        (["show", "excavator", "--nonsense"], ["--nonsense"]),
    ],
)
def test_bad_input(args: list[str], words: list[str]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    text = " ".join(result.output.split())
    for word in words:
        assert word in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (BOMB, "DOCTYPE"),
        ("<robot", "not well-formed"),
        ("\0\1\2", "not well-formed"),
        ("", "not well-formed"),
        ("<robot name='r'/>", "no <link>"),
        ("<mujoco><robot/></mujoco>", "MuJoCo"),
        (ARM.replace("2.5", "-2.5"), "mass is -2.5 kg"),
        (ARM.replace("2.5", "nan"), "finite"),
        (ARM.replace('xyz="0 0 1"', 'xyz="0 0 0"'), "no direction"),
        (ARM.replace('"shoulder_of_the_arm" type="revolute"', '"j" type="bent"'), "no joint type"),
    ],
)
def test_bad_files(text: str, word: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.urdf"
    path.write_text(text)
    for command in (["show", str(path), "--json"], ["count", str(path)]):
        result = run(*command)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "error: " in result.output
        assert word in result.output


def test_a_file_can_be_read_in_spite_of_its_inertia(tmp_path: Path) -> None:
    path = tmp_path / "odd.urdf"
    path.write_text(ARM.replace('izz="0.01"', 'izz="0.9"'))
    shown = good("show", str(path))
    assert "2 warnings" in shown  # its limits are swapped, which is the second warning
    assert "triangle inequality" in shown
    assert "2 warnings, which `bellcrank show` prints" in run("count", str(path)).stderr
    assert run("show", str(path), "--check", "error").exit_code == 2


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "sly.toml"
    link = '[[link]]\nname = "\\u001b]0;x\\u0007"\nmass = 1\ninertia = [1, 1, 1]\n'
    path.write_text('name = "\\u001b[2Jsly [red]"\n' + link)
    result = run("show", str(path))
    assert "\x1b" not in result.output
    assert "\x07" not in result.output


def test_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bellcrank.cli.show.load_mechanism", interrupted)
    result = run("show", "excavator")
    assert (result.exit_code, result.output) == (130, "")


# -- terminals and pipes


@pytest.mark.parametrize("columns", [30, 60, 100])
@pytest.mark.parametrize("line", FITTING)
def test_tables_fit_the_terminal(line: str, columns: int, arm: str) -> None:
    command = [arm if word == "ARM" else word for word in line.split()]
    text = good(*command, columns=columns)
    assert max(len(line) for line in text.splitlines()) <= columns
    assert "…" not in text
    assert text.isascii()
    if columns == 100 and "--all" in command:  # long names make the blocks of a narrow page narrower
        for row in data(*command)["rows"]:
            assert re.search(rf"\b{row['method']}( \*)?\s.*\b{row['total']}\s+{row['span']:g}\s", text)


def test_wrapping() -> None:
    assert screen._wrapped("one two three", 8) == "one two\nthree"
    assert screen._wrapped("shoulder_pan_joint", 13) == "shoulder_pan_\njoint"
    assert screen._wrapped("unbreakable", 4) == "unbr\neaka\nble"
    assert screen._wrapped("", 4) == ""


def test_a_pipe_gets_plain_full_lines() -> None:
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR")} | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "bellcrank", "methods"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    assert done.stderr == ""
    rows = done.stdout.splitlines()
    assert len(rows) == 2 + len(METHODS)  # one line each
    assert all(row == row.rstrip() for row in rows)


def test_a_closed_pipe_is_no_error() -> None:
    p = process("emit", "chain:30", "--target", "llvm")
    assert p.stdout is not None
    assert p.stderr is not None
    p.stdout.read(10)
    p.stdout.close()
    assert p.stderr.read() == b""
    assert p.wait() != 0
    p.stderr.close()


def test_an_error_of_a_process() -> None:
    p = process("show", "nothing")
    out, err = p.communicate()
    assert (p.returncode, out) == (2, b"")
    assert err.startswith(b"error: There is no mechanism")
    assert err.count(b"\n") == 1


def test_importing_bellcrank_loads_no_command_line_and_no_compiler() -> None:
    code = "import sys, bellcrank; print([m for m in ('typer', 'rich', 'llvmlite', 'xml') if m in sys.modules])"
    env = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_export(tmp_path: Path) -> None:
    out = tmp_path / "arm"
    assert data("export", "chain:2", "--to", "c", "--out", str(out))["written"] == str(out)
    assert "chain2_step" in (out / "chain2.h").read_text()
    good("export", "chain:2", "-t", "c", "-f", "mass_matrix", "-f", "d(bias)/d(q)", "-o", str(tmp_path / "some"))
    assert "chain2_dbias_dq" in (tmp_path / "some" / "chain2.h").read_text()
    assert run("export", "chain:2", "--to", "cobol").exit_code == 2
    assert run("export", "chain:2", "--to", "fmu3", "--platforms", "amiga,atari").exit_code == 2


COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_takes_one_is_given_once(name: str) -> None:
    """A repeated single-value option is an error: `emit -q bias -q mass_matrix --out FILE` silently used the last."""
    for option in COMMANDS[name].params:
        if getattr(option, "multiple", True) or getattr(option, "is_flag", True):  # options that may be repeated
            continue
        done = run(name, option.opts[0], "1", option.opts[-1], "2")
        assert done.exit_code == 2
        assert f"{max(option.opts, key=len)} is given 2 times" in done.output
