"""Names in files that other programs run, open and read: WebAssembly and its page, studies, loops in C, structures.

As in test_names.py, the text equals that of a harmless name with another word in its place. No file of an export is
lost, whatever the machine's name is.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import bellcrank as bc
from bellcrank import quoting
from bellcrank.cli import app
from bellcrank.emit.c import c99
from bellcrank.emit.c.package import Package
from bellcrank.exporting import fmu, web_page, webassembly
from bellcrank.exporting.export_content import Export, export_content
from bellcrank.graph import Recursion
from bellcrank.identify.excitation import Excitation
from bellcrank.sim.settings import Solver
from bellcrank.studies import study_page as study_page
from bellcrank.studies.sampling_plans import points as points_of
from bellcrank.studies.study import _manifest, _simulators
from bellcrank.studies.study_folder import StudyFolder
from bellcrank.studies.study_setup import read_study, study_setup
from laws.test_names import (  # noqa: F401
    NASTY,
    SAFE,
    Page,
    c_shape,
    exported,
    graph,
    ids,
    mechanism,
    printable,
    record,
    unchecked,
    urdf,
)
from laws.test_rolled_classes import made

WORST = [*NASTY[::3], "__proto__", "constructor", "*/;process.exit(1)//", "`${1}`", "\u2028alert(1)"]
WORST = [name for name in WORST if "\ud800" not in name]


def machine(name: str) -> bc.Mechanism:
    b = bc.Builder(name)
    b.body("arm", mass=1.0, com=(0.0, 0.0, -1.0), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "arm", axis=(0.0, 1.0, 0.0))
    return b.build()


# -- WebAssembly, and the page


def script_shape(text: str) -> str:
    """JavaScript and its types without comments, strings and the contents of JSON strings."""
    text = re.sub(r"(?m)^//[^\n]*$|(?s:/\*.*?\*/)", "", text)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)


@pytest.mark.parametrize("name", WORST, ids=ids)
def test_web_assembly(name: str, monkeypatch: pytest.MonkeyPatch, unchecked: None) -> None:  # noqa: F811
    monkeypatch.setattr(webassembly, "wasm_module", lambda *given: SimpleNamespace(code=b"", heap=0, slots=0))
    mine, plain = (webassembly.wasm_files(exported(x)) for x in (name, SAFE))
    assert len(mine) == len(plain) == 3
    for file, other in zip(mine, plain, strict=True):
        assert re.fullmatch(r"\w+(\.d)?\.\w+", file)
        text = mine[file].decode()
        lines = text.splitlines()  # lines as other programs count them, including JavaScript's own line ends
        assert len(lines) == len(plain[other].decode().splitlines())
        assert len(script_shape(text)) == len(script_shape(plain[other].decode()))
    about = next(line for line in mine[list(mine)[1]].decode().split("\n") if line.startswith("const about"))
    known = json.loads(about.removeprefix("const about = ").removesuffix(";"))["machine"]
    assert f"{name}u" in known["inputs"]
    assert f"{name}out" in known["outputs"]


def twice(name: str, t: Any, q: Any, v: Any, x: Any, u: Any) -> Any:
    return 2.0 * u[name]


@pytest.mark.skipif(shutil.which("node") is None, reason="runs JavaScript")
def test_any_name_is_a_name_to_javascript(tmp_path: Path) -> None:
    """Also names that JavaScript objects have by default."""
    names = ["__proto__", "constructor", "toString", 'a"b\\', "</script>", "`${1}`"]
    plant = bc.system(
        machine("arm"),
        control=lambda t, q, v, x, u: [u[0]],
        inputs=dict(zip(names, range(1, 7), strict=True)),
        outputs={f"{n}2": partial(twice, n) for n in names},
    )
    bc.export(plant, tmp_path / "arm", to="wasm", name="arm")
    script = f"""
        import {{ load }} from "{(tmp_path / "arm/arm.js").as_uri()}";
        const arm = await load();
        const names = {json.dumps(names)};
        for (const n of names) arm.set(n, 10 + arm.get(n));
        console.log(JSON.stringify(names.map((n) => [arm.get(n), arm.get(n + "2")])));
    """
    done = subprocess.run(["node", "--input-type=module"], input=script, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout or "[]") == [[11.0 + k, 22.0 + 2 * k] for k in range(6)], done.stderr


def folders(name: str) -> dict[str, dict[str, Any]]:
    """All files of every export of a machine with that name."""
    m = machine(name)
    found: Export = export_content(bc.system(m), [], name, Solver(step=1e-3))
    all_: dict[str, dict[str, Any]] = {"c": dict(Package(found.name, found.graphs, found.stepper).files)}
    all_ |= {f"fmu{version}": dict(fmu.fmu_files(found, version, [])) for version in (2, 3)}
    all_["wasm"] = dict(webassembly.wasm_files(found))
    if all((web_page.STATIC / x).exists() for x in web_page.TEXT_REPLACEMENTS):
        all_["page"] = dict(web_page.page_files(web_page.machine_of(m), Solver()))
    return all_


def test_no_file_of_an_export_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may have the name of another file of its export, of a Windows device, or of a C header."""
    monkeypatch.setattr(webassembly, "wasm_module", lambda *given: SimpleNamespace(code=b"", heap=0, slots=0))
    plain = folders(SAFE)
    ours = {Path(file).stem.removesuffix(".d") for files in plain.values() for file in files} - {SAFE}
    assert ours >= {"model", "instance", "fmi2", "fmi3", "CMakeLists", "README", "modelDescription"}
    cases = [x if k % 2 else x.swapcase() for k, x in enumerate(sorted(ours))]  # some file systems ignore case
    for name in [*cases, "con", "NUL", "string", "Math"]:
        for target, files in folders(name).items():
            lower = {file.lower() for file in files}
            assert len(lower) == len(files) == len(plain[target]), (name, target)
            stems = {Path(file).stem.lower() for file in files}
            assert not stems & quoting.WINDOWS_DEVICES, (name, target)
            headers = {Path(f).stem.lower() for f in files if f.endswith(".h")} - {"model", "instance"}
            assert not headers & quoting.RESERVED_FILE_NAMES, (name, target)


# -- loops of C


@pytest.mark.parametrize("name", WORST[::2], ids=ids)
def test_names_in_c_loops_over_identical_bodies(name: str, unchecked: None) -> None:  # noqa: F811
    def chain(word: str) -> Any:
        b = bc.Builder(word)
        for k in range(12):
            b.body(f"{word}{k}", mass=1.0, com=(0.1, 0.0, 0.5), inertia=(1.0, 2.0, 2.5))
            b.joint(f"{word}j{k}", "revolute", f"{word}{k - 1}" if k else "ground", f"{word}{k}", point=(0, 0, 1))
        return made(b.build(), "rnea", "inverse_dynamics")

    mine, plain = chain(name), chain(SAFE)
    assert isinstance(mine, Recursion)
    for text, other in zip(c99.source(mine).values(), c99.source(plain).values(), strict=True):
        assert c_shape(text) == c_shape(other)
        assert text.isascii()


# -- files of structures


@pytest.mark.parametrize("name", WORST[::2], ids=ids)
def test_structures(name: str, tmp_path: Path, unchecked: None) -> None:  # noqa: F811
    nodes = np.array([[0.0, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [2, 1, 0], [2, 0, 1], [1, 0.3, 0.3]])
    arms = [[[0, z, -y], [-z, 0, x], [y, -x, 0]] for x, y, z in nodes]
    Q = np.linalg.qr(np.hstack([np.tile(np.eye(3), (7, 1)), np.vstack(arms)]))[0]
    K = 1e6 * (np.eye(21) - Q @ Q.T)  # no force on rigid motions
    places = ([0, 1, 2], [3, 4, 5])
    mine, plain = (
        bc.flexible(K, np.eye(21), nodes, dict(zip((f"{x}1", f"{x}2"), places, strict=True)), modes=2)
        for x in (name, SAFE)
    )
    for write in (bc.write_sid, bc.write_fem):
        texts = []
        for k, structure in enumerate((mine, plain)):
            write(tmp_path / f"{k}", structure)
            texts.append((tmp_path / f"{k}").read_text("utf-8"))
        assert texts[0] == texts[1]  # there, nodes have numbers and no names


# -- studies


@pytest.mark.parametrize("name", WORST, ids=ids)
def test_the_page_of_a_study(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = []
    for word in (name, SAFE):
        told = {"title": word, "results": [{"name": word}], "varied": {word: [word]}, "messages": [word]}
        monkeypatch.setattr(study_page, "page_data", lambda study, told=told: told)
        study: Any = SimpleNamespace(manifest={"mechanisms": {"a": word, "b": word}})
        found = Page(study_page.study_html(study))
        shapes.append(found.shape)
        assert told in [json.loads(x) for x in found.data if x.startswith("{") and '"varied"' in x]
    assert shapes[0] == shapes[1]


# -- measurements


def arm(name: str) -> bc.Mechanism:
    """A system with names in every position that a report prints."""
    b = bc.Builder(name)
    b.body(f"{name}b", mass=1.0, com=(0.0, 0.0, -1.0), inertia=(0.1, 0.1, 0.1))
    b.joint(f"{name}j", "revolute", "ground", f"{name}b", axis=(0.0, 1.0, 0.0), damping=0.1)
    return b.build()


@pytest.mark.parametrize("name", WORST[::2], ids=ids)
def test_reports_of_identification(name: str, tmp_path: Path, unchecked: None) -> None:  # noqa: F811
    """The report is safe in a terminal, and as a table that a spreadsheet may open."""
    told = []
    for k, word in enumerate((name, SAFE)):
        m = arm(word)
        base = bc.identify.base_parameters(m)
        t = np.linspace(0.0, 1.0, 40)[:, None]
        moved = np.sin(3.0 * t), 3.0 * np.cos(3.0 * t), -9.0 * np.sin(3.0 * t)
        found = bc.identify.estimate(base, *moved, m.inverse_dynamics(*moved))
        made = Excitation(base, t[:, 0], *moved, 1.0).save(tmp_path / f"{k}.csv")
        rows = list(csv.reader(io.StringIO(made.read_bytes().decode(), newline="")))
        told.append((str(base).split("\n"), str(found).split("\n"), rows))
    for mine, plain in zip(told[0][:2], told[1][:2], strict=True):
        assert len(mine) == len(plain)
        assert all(line.isprintable() for line in mine)
    assert [len(row) for row in told[0][2]] == [len(row) for row in told[1][2]]
    assert not any(x.startswith(("=", "+", "-", "@", "\t")) for x in told[0][2][0])


@pytest.mark.parametrize("name", [x for x in WORST if not quoting.name_problem(x)][::3], ids=ids)
def test_the_command_that_identifies(name: str, tmp_path: Path) -> None:
    (tmp_path / "robot.urdf").write_text(urdf(name), "utf-8")
    told = CliRunner().invoke(app, ["identify", str(tmp_path / "robot.urdf")])
    assert told.exit_code == 0, told.output
    assert all(line.isprintable() for line in told.output.split("\n"))
    told = CliRunner().invoke(app, ["identify", str(tmp_path / "robot.urdf"), "--json"])
    assert json.loads(told.output)["mechanism"] == name


# -- print()


def nouns(name: str) -> Iterator[Any]:
    """Printable objects with a name in every possible position."""
    m, g = mechanism(name), graph(name)
    yield from (m, m.report, m.parameters, g, g.count(), bc.schedule(g, machine="complete:2"))
    linear = bc.linearize(m)
    yield from (
        linear,
        linear.modes(),
        *linear.modes(),
        bc.equilibrium(m),
        bc.linearize(m, at={f"{name}.q": [0.1, 0.2]}),
    )
    yield from (bc.kernel(m, "forward_dynamics"), m.forward_dynamics.__doc__, record(m, name), record(m, name).final)
    plant = bc.system(
        m, control=lambda t, q, v, x, u: [u[0], 0.0 * q[0]], inputs=[f"{name}u"],
        outputs={f"{name}y": lambda t, q, v, x, u: q[0]},
    )  # fmt: skip
    yield from (plant, bc.stepper(plant, every=0.01, step=0.01), bc.simulate(plant, 0.01, inputs={f"{name}u": 0.0}))


@pytest.mark.parametrize("name", [*NASTY[:12:3], "\xad\ufeff\u3000", *NASTY[12::9]], ids=ids)
def test_printed_names_stay_on_one_line(name: str, unchecked: None) -> None:  # noqa: F811
    """In a terminal a name stays in its line and sends no control codes, refused or not."""
    for mine, plain in zip(nouns(name), nouns(SAFE), strict=True):
        for said, expected in ((str(mine), str(plain)), (repr(mine), repr(plain))):
            assert printable(said), type(mine)
            if len(name) < 100:
                assert said.count("\n") == expected.count("\n"), type(mine)


# -- learning


@pytest.mark.parametrize("name", WORST[::4], ids=ids)
def test_environments(name: str, unchecked: None) -> None:  # noqa: F811
    """Spaces have no names; the environment's messages state why a run ended, and why one cannot be made."""
    gym = pytest.importorskip("bellcrank.gym")
    plant = bc.system(arm(name), control=lambda t, q, v, x, u: [u[0]], inputs={f"{name}u": 0.0})
    env = gym.Env(plant, every=0.1, limit=0.1, step=0.01)
    env.reset(seed=0)
    assert env.step(np.zeros(1))[3]
    assert repr(env.action_space) == "Box(-1.0, 1.0, (1,), float64)"
    for call in (lambda: gym.make(name), lambda: gym.Env(plant, every=0.1, start={name: 1.0})):
        with pytest.raises(bc.BellcrankError) as caught:
            call()
        assert all(line.isprintable() for line in str(caught.value).split("\n"))
        assert len(str(caught.value)) < 2600


# -- studies as files


@pytest.mark.parametrize("name", [x for x in WORST if not quoting.name_problem(x)][::3], ids=ids)
def test_a_study_as_a_file(name: str, tmp_path: Path) -> None:
    """Names in study.toml stay unchanged there, in the manifest and in Parquet; unknown ones raise an error."""
    pytest.importorskip("pyarrow")
    quoted = json.dumps(f"{name}b.mass", ensure_ascii=False)
    text = f'mechanism = "m"\nseconds = 0.02\nto = "out"\nsummary = []\n[over]\n{quoted} = [1.0, 2.0]\n'
    (tmp_path / "study.toml").write_text(text, "utf-8")
    plant, asked = read_study(tmp_path / "study.toml", lambda _: arm(name))
    assert asked["over"] == {f"{name}b.mass": [1.0, 2.0]}
    points = points_of(asked["over"], None, "grid", 0)
    setup = study_setup(
        plant, points, {"step": 0.01, "integrator": None, "method": None, "form": None, "tolerance": None,
                        "max_steps": None, "target": None, "threads": None},
        seconds=0.02, given={}, summary=(), keep="final", seed=0, events=(),
    )  # fmt: skip
    folder = StudyFolder(tmp_path / "out")
    made = folder.open_study(_manifest(*_simulators(setup, points, {}), points, None))
    assert folder.manifest() == json.loads(json.dumps(made))
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["out", "runs", "study.json", "study.toml"]
    with pytest.raises(bc.BellcrankError) as caught:
        study_setup(bc.zoo.pendulum(), points, setup.settings, seconds=0.02, given={}, summary=(), keep="final", seed=0,
               events=())  # fmt: skip
    assert all(line.isprintable() for line in str(caught.value).split("\n"))
