"""Names cannot change generated text: it equals that of a harmless name with another word in its place.

This holds for the name of any joint, body, frame, parameter, column, graph or step: the same module, the same
statements, the same elements. Names with line ends, control characters or direction marks are refused where parts are
made; since parts can be made without that check, every target is also tested with the check disabled.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import shlex
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from defusedxml import ElementTree
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import bellcrank as bc
from bellcrank import quoting
from bellcrank.build import equations as printed
from bellcrank.build import graphs
from bellcrank.cli import app
from bellcrank.emit.c import c99
from bellcrank.emit.c.package import Package
from bellcrank.emit.cores import streams
from bellcrank.emit.cpu import realtime_loop, run_loop
from bellcrank.emit.cpu.target import Cpu
from bellcrank.emit.cuda.batch_kernel import BatchKernelText
from bellcrank.emit.llvm.host import host, llvm
from bellcrank.exporting import casadi_library, fmu
from bellcrank.exporting.export_content import Export, export_content
from bellcrank.graph import Graph, trace
from bellcrank.model import Mechanism
from bellcrank.record import Column, Record, Stop, description, state_columns
from bellcrank.record.evaluation import summary
from bellcrank.scalar import sin, step
from bellcrank.scheduling import Schedule
from bellcrank.scheduling.partitioning import partitioned_schedule
from bellcrank.view import curves
from cores import cheap
from ticking import program
from trees import few

DEFINITION = "x\ndefine void @pwned() {\n  ret void\n}\n;"
REFUSED = [
    DEFINITION,
    "a\r\nb",
    "a\x00b",
    "\x1b[31mred\x1b[0m",
    "\x9b31m",
    "a\u2028b\u2029c",
    "\u202eevil",
    "a\u2066b\u2069",
    "\u200fb",
    "\x85",
    "\ud800",
    "*/\nint system(const char *);\nint x = 0; /*",
]
ODD = [
    '"',
    "'",
    "\\",
    "a\\",
    "\\n",
    "%",
    "%s%n",
    '"""',
    "'''",
    "</script><script>alert(1)</script>",
    "<!--",
    "]]>",
    "<img src=x onerror=alert(1)>",
    "&amp;",
    "??/",
    "???/",
    "*/ int x; /*",
    "//",
    "{{TITLE}}",
    "{0}",
    "${x}",
    "`id`",
    "$(id)",
    "; rm -rf ~",
    "=1+1",
    "+1",
    "-1+cmd|' /C calc'!A0",
    "@SUM(1)",
    "a,=1+1",
    "a;@x",
    " =1",
    "[red]x[/red]",
    "[/]",
    "$\\input{/etc/passwd}$",
    "\\input{x}",
    "^^5cinput",
    "a_b",
    "_hidden",
    "../../etc/passwd",
    "C:\\x",
    ".",
    "lambda",
    "None",
    "int",
    "q",
    "x" * 10_000,
    "é" * 300,
    "名前",
    "🦾",
    "a b",
    "#",
    "!0",
    "@one",
]
NASTY = [*REFUSED, *ODD]
LETTERS = st.characters(exclude_categories=[])
SOME = st.sampled_from(NASTY)
ANY = st.one_of(st.text(LETTERS, min_size=1, max_size=12), SOME, st.builds("{}{}".format, SOME, SOME))
SAFE = "plain"


def ids(name: str) -> str:
    return quoting.single_line(name)[:20].encode("ascii", "backslashreplace").decode()


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the check of names."""
    monkeypatch.setattr(quoting, "_FORBIDDEN", re.compile("(?!)"))


# -- refused where parts are made


@pytest.mark.parametrize("name", REFUSED, ids=ids)
def test_invalid_names_are_rejected_everywhere(name: str, tmp_path: Path) -> None:
    arm = bc.zoo.planar3r()
    with pytest.raises(bc.BellcrankError, match="expected a name without line ends") as caught:
        Mechanism(name, "ground", arm.gravity, arm.bodies, arm.joints)
    assert all(line.isprintable() for line in str(caught.value).split("\n"))
    made: list[Any] = [
        lambda: replace(arm, bodies=(replace(arm.bodies[0], name=name), *arm.bodies[1:])),
        lambda: replace(arm, joints=(replace(arm.joints[0], name=name), *arm.joints[1:])),
        lambda: replace(arm, frames={name: next(iter(arm.frames.values()))}),
        lambda: built(name, "b", "j", "f"),
        lambda: built("m", name, "j", "f"),
        lambda: built("m", "b", name, "f"),
        lambda: built("m", "b", "j", name),
        lambda: bc.parameter(name, 1.0),
        lambda: bc.parameter("mass", 1.0, name),
        lambda: Record({"t": Column("t", "s", np.zeros(1)), name: Column(name, "m", np.zeros(1))}),
        lambda: Record({"t": Column("t", name, np.zeros(1))}),
        lambda: bc.system(arm, control=lambda t, q, v, x, u: q, inputs=[name]),
        lambda: bc.system(arm, outputs={name: lambda t, q, v, x, u: q[0]}),
    ]
    for make in made:
        with pytest.raises((bc.ModelError, bc.InputError)):
            make()


def built(name: str, body: str, joint: str, frame: str) -> Mechanism:
    m = bc.Builder(name)
    m.body(body, mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.joint(joint, "revolute", "ground", body)
    m.frame(frame, body)
    return m.build()


def urdf(name: str) -> str:
    """A robot with these names, line ends included."""
    quoted = "".join(c if c.isalnum() else f"&#{ord(c)};" for c in name)
    return (
        f'<robot name="{quoted}"><link name="base"/><link name="arm"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        f'<joint name="{quoted}" type="revolute"><parent link="base"/>'
        '<child link="arm"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>'
    )


def test_a_file_cannot_bring_a_definition(tmp_path: Path) -> None:
    """The exploit: a robot's name ended a comment of the IR, and its second line defined the called function."""
    path = tmp_path / "robot.urdf"
    path.write_text(urdf(DEFINITION))
    with pytest.raises(bc.ModelError, match="line ends"):
        bc.read(path)
    for command in (["bench"], ["show"], ["emit", "-t", "llvm"]):
        result = CliRunner().invoke(app, [command[0], str(path), *command[1:]])
        assert result.exit_code == 2
        assert "define" not in result.output.replace(r"\ndefine", "")


@pytest.mark.parametrize("kind", [".csv", ".npz", ".parquet", ".mcap"])
def test_nor_can_a_record(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:  # an attacker's file is written without the check
        patch.setattr(quoting, "_FORBIDDEN", re.compile("(?!)"))
        path = record(mechanism(DEFINITION), "ok").save(tmp_path / f"run{kind}")
    with pytest.raises(bc.ReadError, match="line ends"):
        bc.load_record(path)
    assert CliRunner().invoke(app, ["report", str(path)]).exit_code == 2
    assert not (tmp_path / "run.html").exists()


# -- mechanisms, graphs and records with a name in every possible position


def mechanism(name: str) -> Mechanism:
    m = bc.Builder(name)
    m.body(f"{name}1", mass=bc.parameter(f"{name}m", 1.0), inertia=(1.0, 2.0, 2.5))
    m.body(f"1{name}", mass=1.0, inertia=(1.0, 2.0, 2.5))
    m.joint(name, "revolute", "ground", f"{name}1", axis=(0.0, 1.0, 0.0))
    m.joint(f"2{name}", "prismatic", f"{name}1", f"1{name}", point=(0.0, 0.0, 1.0))
    m.frame(f"{name}f", f"1{name}")
    return m.build()


def graph(name: str) -> Graph:
    def function(**inputs: Any) -> dict[str, Any]:
        a, b = inputs[f"{name}i"]
        step(name, name)
        x = sin(a) * b
        step(f"{name}2")
        return {f"{name}o": [x, x + a], f"{name}p": x * x}

    return trace(name, function, {f"{name}i": (2,)})


def record(m: Mechanism, name: str) -> Record:
    t = np.linspace(0.0, 1.0, 5)
    q = np.stack([t, 0.1 * t], axis=-1)
    columns = state_columns(m, t, q=q, v=q)
    columns |= {name: Column(name, f"{name}u", -t), f"{name}.x": Column(f"{name}.x", "m", t)}
    columns |= {f"parameter.{p}": Column(f"parameter.{p}", "", 1.0 + 0.0 * t) for p in m.parameters}
    made = {"mechanism": m.name, name: name, "nested": {name: [name]}}
    return Record(columns, mechanism=m, provenance=made, stops=[Stop(name, 1.0, name)])


# -- the structure of a text without its names


def functions(text: str) -> list[str]:
    module = llvm().parse_assembly(text)
    module.verify()
    return sorted([f.name for f in module.functions] + [g.name for g in module.global_variables])


def uncommented(text: str) -> str:
    return "\n".join(line.partition(";")[0].rstrip() for line in text.split("\n"))


def c_shape(text: str) -> str:
    """Tokens of a C compiler: trigraphs, then joined lines, then comments; every word is replaced by one word."""
    for c, sign in zip("=/'()!<>-", "#\\^[]|{}~", strict=True):
        text = text.replace(f"??{c}", sign)
    text = text.replace("\\\n", "")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    assert "/*" not in text
    assert "*/" not in text
    text = re.sub(r"\b(?!(?:const|double|float|void|int|static|restrict|define|ifndef|endif)\b)[A-Za-z_]\w*", "w", text)
    return " ".join(text.split())


def python_shape(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for field in ("id", "name", "arg", "value"):
            if isinstance(getattr(node, field, None), str):
                setattr(node, field, "w")
    return ast.dump(tree)


def latex_shape(text: str) -> list[str]:
    """Commands, brackets and mathematics, without the symbols that replace letters."""
    text = re.sub(r"(?m)^%.*$", "", text)
    text = re.sub(r"\\text(backslash|asciitilde|asciicircum)\{\}|\\[&%#_{}$]", "", text)
    return re.findall(r"\\[A-Za-z]+|\\.|[{}$%#&~^]", text)


def dot_shape(text: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)


def xml_shape(text: str) -> list[tuple[str, list[str]]]:
    return [(e.tag, sorted(e.attrib)) for e in ElementTree.fromstring(text).iter()]


def kinds(text: str) -> set[tuple[str, ...]]:
    """Kinds of elements, if their number may depend on grouping by name."""
    return {(tag, *attributes) for tag, attributes in xml_shape(text)}


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.shape: list[Any] = []
        self.data: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.shape.append((tag, [key for key, _ in attrs]))

    def handle_endtag(self, tag: str) -> None:
        self.shape.append(tag)

    def handle_comment(self, data: str) -> None:
        self.shape.append("comment")

    def handle_data(self, data: str) -> None:
        self.data.append(data)


def printable(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


# -- every target

STREAMS = {f"stream_{k}" for k in range(8)}


def shared(g: Graph) -> Schedule:
    return partitioned_schedule(g, cheap(2), streams.fused_into(g))


def check_graph(name: str) -> None:
    g, h = graph(name), graph(SAFE)
    width = host().lanes("float64")
    assert functions(Cpu().source(g)) == functions(Cpu().source(h))
    assert uncommented(Cpu().source(g)).count("\n") == uncommented(Cpu().source(h)).count("\n")
    parallel = streams.source(g, shared(g), width, host().triple)
    assert set(functions(parallel)) <= {*functions(streams.source(h, shared(h), width, host().triple)), *STREAMS}
    for tiled in (False, True):
        mine, plain = (BatchKernelText(x, tiled=tiled).text for x in (g, h))
        assert mine.count("\n") == plain.count("\n")
        assert functions(mine) == functions(plain)
    assert BatchKernelText(g).ptx == BatchKernelText(h).ptx
    for part in (".h", ".c"):
        mine, plain = (next(t for k, t in c99.source(x).items() if k.endswith(part)) for x in (g, h))
        assert c_shape(mine) == c_shape(plain)
        assert mine.isascii()
    assert max(map(len, c99.source(g))) < 255
    assert str(g).count("\n") == str(h).count("\n")
    assert printable(str(g))
    assert dot_shape(g.dot()) == dot_shape(h.dot())
    assert json.loads(g.json())["name"] == name
    assert kinds(g.svg()) == kinds(h.svg())


def check_loops(name: str) -> None:
    """Graphs of a program: the inputs s, p, u are generated, the name is the user's."""
    mine, plain = (program("all", x) for x in (name, SAFE))
    for make in (lambda p: run_loop.source(p, 2, 2)[0], lambda p: realtime_loop.source(p, 2)[0]):
        assert uncommented(make(mine)) == uncommented(make(plain))
        assert functions(make(mine)) == functions(make(plain))


def check_mechanism(name: str) -> None:
    m, plain = mechanism(name), mechanism(SAFE)
    for target, shape in (("latex", latex_shape), ("python", python_shape), ("sympy", python_shape), ("c", c_shape)):
        mine, theirs = (printed.equations(x, target) for x in (m, plain))
        assert shape(mine) == shape(theirs), target
        assert mine.isascii()
    g, h = (graphs.graph(x, "forward_dynamics", "aba") for x in (m, plain))
    assert uncommented(Cpu().source(g)) == uncommented(Cpu().source(h))
    assert BatchKernelText(g).text == BatchKernelText(h).text
    assert c_shape(c99.source(g)[next(k for k in c99.source(g) if k.endswith(".c"))]) == c_shape(
        c99.source(h)[next(k for k in c99.source(h) if k.endswith(".c"))]
    )
    s, other = shared(g), shared(h)
    page = Page(s.html())
    assert page.shape == Page(other.html()).shape
    assert any(json.loads(d)["graph"] == g.name for d in page.data if d.startswith("{") and '"graph"' in d)
    assert {x[0] for x in kinds(s.svg())} == {x[0] for x in kinds(other.svg())}
    assert printable(str(m.report))
    assert printable(str(m.parameters))
    assert str(m.parameters).count("\n") == str(plain.parameters).count("\n")


def check_record(name: str, folder: Path) -> None:
    m = mechanism(name)
    run, plain = record(m, name), record(mechanism(SAFE), SAFE)
    page = Page(run.html())
    assert page.shape == Page(plain.html()).shape
    assert any(json.loads(d)["name"] == m.name for d in page.data if d.startswith("{") and '"panels"' in d)
    assert printable(summary(run))
    assert summary(run).count("\n") == summary(plain).count("\n")
    for kind in (".csv", ".npz", ".parquet", ".mcap"):
        if name.isprintable() or kind == ".csv":
            path = run.save(folder / f"x{kind}")
            if not quoting.name_problem(name):
                found = bc.load_record(path)
                assert found.columns == run.columns
                assert dict(found.provenance) == dict(run.provenance)
    check_csv((folder / "x.csv").read_text(), len(run.columns))
    if (folder / "x.npz").exists():
        for inside in zipfile.ZipFile(folder / "x.npz").namelist():
            assert not re.search(r"[/\\:]|^\.", inside)


def exported(name: str) -> Export:
    """A machine with the name in every position that a user can set."""
    plant = bc.system(
        mechanism(name),
        control=lambda t, q, v, x, u: [u[0], x[0]],
        inputs={f"{name}u": 0.0},
        outputs={f"{name}out": lambda t, q, v, x, u: q[0]},
        sampled=[bc.Sampled(lambda t, q, v, x, u: [q[0]], 0.01, outputs={f"{name}held": 0.0})],
    )
    return export_content(plant, [graph(name)], name, bc.Solver(step=0.001))


def check_export(name: str) -> None:
    """C packages, FMUs, CasADi's libraries, and the machine code of steppers."""
    mine, plain = exported(name), exported(SAFE)
    files, theirs = (list(Package(x.name, x.graphs, x.stepper).files.values()) for x in (mine, plain))
    for text, other in zip(files, theirs, strict=True):
        assert text.isascii()
        assert len(text.split("\n")) == len(other.split("\n")) or "/*" in text  # comments are wrapped
    for k in (0, 1, 4):
        assert c_shape(files[k]) == c_shape(theirs[k])
    assert re.sub(r"\b\w+\b", "w", files[2]) == re.sub(r"\b\w+\b", "w", theirs[2])  # CMake
    read, other = (text.split("\n") for text in (files[3], theirs[3]))
    assert re.sub(r"[\w/]+", "w", "\n".join(read[3:])) == re.sub(r"[\w/]+", "w", "\n".join(other[3:]))
    assert not re.search(r"[<>\[\]!*_`#&]", re.sub(r"\\.", "", read[2]))
    assert c_shape(casadi_library.casadi_source(mine)) == c_shape(casadi_library.casadi_source(plain))
    for version in (2, 3):
        texts, others = (fmu.fmu_files(x, version, []) for x in (mine, plain))
        for key in ("modelDescription.xml", "sources/model.h"):
            shape = xml_shape if key.endswith("xml") else c_shape
            one, two = (re.sub(r'"[0-9a-f]{32}"', '"token"', str(x[key])) for x in (texts, others))
            assert shape(one) == shape(two)
        variables = [e for e in ElementTree.fromstring(str(texts["modelDescription.xml"])).iter() if e.get("causality")]
        assert len({e.get("name") for e in variables}) == len(variables) or not name.isprintable()
        assert all(re.fullmatch(r"[\w./]+", key, re.ASCII) and ".." not in key for key in texts)


def check_csv(text: str, width: int) -> None:
    lines = text.split("\n")
    comments = [line for line in lines if line.startswith("#")]
    assert all(line.startswith("#") for line in lines[: len(comments)])
    for line in comments:
        for part in re.split(r"[,;\t|]", line):
            assert not re.match(r"""[\s"]*[=+@]|[\s"]*-[^\d]""", part), part
    header = next(csv.reader(io.StringIO("\n".join(lines[len(comments) :]), newline="")))
    assert len(header) == width
    assert not any(re.match(r"\s*[=+\-@]", cell) for cell in header)
    assert json.loads(comments[-1][1:])["format"] == description.FORMAT


@pytest.mark.parametrize("name", NASTY, ids=ids)
def test_hostile_names_stay_in_their_place(name: str, tmp_path: Path, unchecked: None) -> None:
    check_graph(name)
    check_loops(name)
    if "\ud800" not in name:  # no file can contain half a surrogate pair
        check_mechanism(name)
        check_record(name, tmp_path)


@pytest.mark.parametrize("name", NASTY[::2], ids=ids)
def test_names_stay_in_place_in_exports(name: str, unchecked: None) -> None:
    if "\ud800" not in name:
        check_export(name)


@few(12)
@given(name=ANY)
def test_any_name_in_every_target(name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quoting, "_FORBIDDEN", re.compile("(?!)"))
        check_graph(name)
        check_loops(name)
        if not re.search("[\ud800-\udfff]", name):
            check_mechanism(name)


@pytest.mark.long
@few(1500)
@given(name=ANY)
def test_random_names_stay_in_their_place(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quoting, "_FORBIDDEN", re.compile("(?!)"))
        check_graph(name)
        check_loops(name)
        if not re.search("[\ud800-\udfff]", name):
            check_mechanism(name)
            check_record(name, tmp_path_factory.mktemp("names"))
            check_export(name)


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@pytest.mark.parametrize("name", NASTY, ids=ids)
def test_pictures_and_figures(name: str, tmp_path: Path) -> None:
    line = {1.0: 2.0, 2.0: 3.0}
    drawn = [curves.line_chart(x, x, x, {x: line}, marks=line, marked=x) for x in (name, "a")]
    assert xml_shape(drawn[0]) == xml_shape(drawn[1])
    t = np.linspace(0.0, 1.0, 3)
    drawn = [curves.figure(x, [curves.Panel(x, [curves.Line(x, t, t)])], across=x) for x in (name, "a")]
    assert xml_shape(drawn[0]) == xml_shape(drawn[1])
    if not quoting.name_problem(name):
        pytest.importorskip("matplotlib")
        record(mechanism(name), name).plot(name, path=tmp_path / "x.svg")


@pytest.mark.parametrize(
    "name", ['"', "\\", "=1+1", "[red]x[/red]", "$(id)", "</script>", "x" * 10_000, "名前"], ids=ids
)
def test_on_the_command_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(urdf(name))
    for command in (["show"], ["show", "--report"], ["emit", "-t", "llvm"], ["simulate", "--seconds", "0.01"]):
        result = CliRunner().invoke(app, [command[0], str(path), *command[1:]])
        assert result.exit_code == 0, result.output
        assert printable(result.output)
        if command == ["show"] and len(name) < 20 and " " not in name:
            assert name in result.output  # unchanged: no markup, no escape
    folder = tmp_path / "out"
    assert CliRunner().invoke(app, ["emit", str(path), "-t", "c", "--out", str(folder)]).exit_code == 0
    assert all(re.fullmatch(r"\w+\.[ch]", p.name) for p in folder.iterdir())


# -- the functions themselves


@given(name=st.text(LETTERS))
def test_each_quote_alone(name: str) -> None:
    assert quoting.comment(name).isascii()
    assert quoting.comment(name).isprintable()
    assert not re.search(r"\*/|/\*|\?\?", quoting.comment(name))
    assert re.fullmatch(r"[0-9A-Za-z_.]*", quoting.symbol(name))
    assert re.fullmatch(r"[A-Za-z]\w*", quoting.identifier(name), re.ASCII)
    assert ast.literal_eval(f'"""{quoting.docstring(name)}"""') == name.replace('"', "'")
    assert shlex.split(f"echo {quoting.shell(name)}") == ["echo", quoting.single_line(name)]
    assert not re.search(r"(?<!\\)(?:\\\\)*[!-/:-@\[\]-`{-~]", quoting.markdown(name))
    assert json.loads(quoting.script(json.dumps([name], ensure_ascii=False))) == [name]
    assert json.loads(quoting.json_cells(json.dumps([name, {name: -1.5}]))) == [name, {name: -1.5}]
    assert "<" not in quoting.xml(name)
    assert printable(quoting.visible(name))
    assert len(quoting.stem(name).encode()) <= 100


@given(a=st.text(LETTERS), b=st.text(LETTERS))
def test_no_two_names_are_one_symbol(a: str, b: str) -> None:
    assert (quoting.symbol(a) == quoting.symbol(b)) == (a == b)


def test_pages_make_no_markup_of_data() -> None:
    """The scripts of the pages insert text only as text."""
    root = Path(bc.__file__).parent
    folders = (root / "view/record_web", root / "view/schedule_web", root.parent.parent / "web/src")
    found = [[*folder.glob("*.js"), *folder.glob("*.ts")] for folder in folders]
    assert [len(scripts) > n for scripts, n in zip(found, (5, 2, 20), strict=True)] == [True] * 3
    scripts = [path for some in found for path in some]
    markup = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc")
    for path in scripts:
        assert not markup.search(path.read_text()), path
