"""`bellcrank schedule`: its output, the files that it writes, and the files that it leaves unchanged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from defusedxml import ElementTree
from test_cli import data, good, run

import bellcrank as bc
from bellcrank.build import schedules as machines
from bellcrank.papers.wong import wong_mesh


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_of_the_issue(folder: Path) -> None:
    text = good("schedule", "excavator", "--machine", "triangle")
    s = bc.schedule(bc.zoo.excavator(), machine="triangle:4")
    words = ("on triangle(4): 14 processors", f"makespan {s.makespan:g}", f"speed-up {s.speedup:.2f}",
             f"span {s.span:g}", f"messages {len(s.messages)}", f"{s.words} words", f"idle {s.idle:g}",
             "wrote excavator_forward_dynamics_triangle.html")  # fmt: skip
    for word in words:
        assert word in " ".join(text.split())
    assert (folder / "excavator_forward_dynamics_triangle.html").read_text("utf-8") == s.html()
    assert [p.name for p in folder.iterdir()] == ["excavator_forward_dynamics_triangle.html"]


def test_few_processors_list_their_tasks() -> None:
    text = " ".join(
        good("schedule", "planar3r", "--machine", "complete:2", "--no-page", "-m", "aba", "--level", "cluster").split()
    )
    assert "tasks in order" in text
    assert "X[" in text
    assert "####################" in text
    assert "tasks in order" not in good("schedule", "planar3r", "--level", "node", "--no-page")


def test_no_page_writes_nothing(folder: Path) -> None:
    assert "wrote" not in good("schedule", "pendulum", "--no-page")
    assert list(folder.iterdir()) == []


def test_json_is_the_schedule_and_files_need_an_option(folder: Path) -> None:
    args = ("schedule", "excavator", "--machine", "mesh:2,2", "--kind", "t800", "--level", "node", "-m", "crba")
    found = data(*args)
    assert list(folder.iterdir()) == []
    s = bc.schedule(bc.zoo.excavator(), machine="mesh:2,2", kind="t800", level="node", method="crba")
    about = {"mechanism": "excavator", "quantity": "forward_dynamics", "method": "crba", "written": []}
    assert found == about | json.loads(s.json())
    assert data(*args, "--out", "here.html")["written"] == ["here.html"]
    assert (folder / "here.html").exists()


def test_execution_adds_observed_figures() -> None:
    args = ("schedule", "excavator", "--machine", "mesh:2,2", "--kind", "t800", "--level", "cluster", "-m", "aba")
    s = bc.schedule(bc.zoo.excavator(), machine="mesh:2,2", kind="t800", level="cluster", method="aba")
    text = " ".join(good(*args, "--no-page", "--execute").split())
    assert f"executed makespan {s.makespan:.1f} us" in text
    assert "difference below 1e-12" in text
    found = data(*args, "--execute")["executed"]
    assert (found["makespan"], found["idle"]) == (s.makespan, s.idle)
    assert found["difference"] < 1e-12
    assert found["first_ready_makespan"] > s.makespan
    assert "executed" not in data(*args)
    result = run("schedule", "chain:600", "--machine", "single", "-m", "aba", "--execute", "--no-page")
    assert result.exit_code == 2
    assert "cannot be executed" in result.output


def test_a_picture(folder: Path) -> None:
    good("schedule", "pendulum", "--svg", "--machine", "complete:2")
    names = sorted(p.name for p in folder.iterdir())
    assert names == [f"pendulum_forward_dynamics_complete_2.{kind}" for kind in ("html", "svg")]
    good("schedule", "pendulum", "--out", "new/only.svg")
    assert [p.name for p in (folder / "new").iterdir()] == ["only.svg"]
    good("schedule", "pendulum", "--no-page", "--svg", "--out", "bare.html")
    assert (folder / "bare.svg").exists()
    assert not (folder / "bare.html").exists()
    for path in (folder / names[1], folder / "new/only.svg", folder / "bare.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_into_a_folder(folder: Path) -> None:
    (folder / "pages").mkdir()
    good("schedule", "pendulum", "--out", "pages")
    assert [p.name for p in (folder / "pages").iterdir()] == ["pendulum_forward_dynamics_complete.html"]


def test_our_own_files_are_written_again_and_others_are_not(folder: Path) -> None:
    for _ in range(2):
        good("schedule", "pendulum", "--svg")
    mine = folder / "pendulum_forward_dynamics_complete.svg"
    mine.write_text("<svg>my drawing</svg>")
    before = (folder / "pendulum_forward_dynamics_complete.html").stat().st_mtime_ns
    result = run("schedule", "pendulum", "--svg")
    assert result.exit_code == 2
    assert "exists and is not a page of bellcrank" in result.output
    assert mine.read_text() == "<svg>my drawing</svg>"
    assert (folder / "pendulum_forward_dynamics_complete.html").stat().st_mtime_ns == before  # all files or none


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    folder.chmod(0o500)
    result = run("schedule", "pendulum")
    folder.chmod(0o700)
    assert result.exit_code == 2
    assert "cannot be written: Permission denied" in result.output


@pytest.mark.parametrize(
    ("name", "freedoms", "processors"),
    [
        ("single", 4, 1), ("complete", 4, 4), ("complete", 30, 8), ("pipeline", 3, 3), ("bus", 1, 1), ("mesh", 4, 4),
        ("mesh", 7, 8), ("mesh", 1, 2), ("triangle", 4, 14), ("triangle(3)", 9, 9), ("hypercube", 1, 1),
        ("hypercube", 5, 8), ("mesh( 2 , 3 )", 1, 6), (" mesh:2,3 ", 1, 6),
        ("cone", 4, 14), ("warp", 4, 32), ("threads:3", 4, 3),
    ],
)  # fmt: skip
def test_a_machine_without_numbers_suits_the_mechanism(name: str, freedoms: int, processors: int) -> None:
    assert machines.machine(name, freedoms=freedoms).processors == processors


def test_the_cores_of_this_computer() -> None:
    found = data("schedule", "tree:63", "--machine", "threads:2", "-m", "aba")
    m = bc.zoo.load("tree:63")
    kernel = bc.kernel(m, "forward_dynamics", method="aba", machine="threads", processors=2)
    assert found["machine"] == "threads(2)"
    assert found["unit"] == "ns"
    laid = json.loads(kernel.schedule.json())  # type: ignore[union-attr]
    assert [(t["name"], t["processor"]) for t in found["tasks"]] == [(t["name"], t["processor"]) for t in laid["tasks"]]


def test_the_team_of_a_gpu() -> None:
    found = data("schedule", "tree:31", "--machine", "gpu:4", "-m", "aba")
    assert found["machine"] == "gpu(4)"
    assert {t["processor"] for t in found["tasks"]} == {0, 1, 2, 3}
    s = bc.schedule(bc.zoo.load("tree:31"), machine="gpu:4", method="aba")
    s.check()
    graph = bc.kernel(bc.zoo.load("tree:31"), "forward_dynamics", method="aba").graph
    assert {n.serial for t in s.tasks for n in t.nodes} == {n.serial for n in graph.nodes if n.op != "input"}
    assert data("schedule", "excavator", "--machine", "gpu")["machine"] == "gpu(1)"


def test_programs_and_strategies(folder: Path) -> None:
    text = " ".join(good("schedule", "excavator", "--machine", "wong", "--svg").split())
    s = wong_mesh(bc.zoo.excavator())
    assert f"by Wong's own program on {s.machine}" in text
    assert f"makespan {s.makespan:g} us" in text
    assert (folder / "excavator_forward_dynamics_wong.svg").read_text("utf-8") == s.svg()
    args = ("--strategy", "modules+factorisation", "--control", "computed_torque")
    found = data("schedule", "stanford", *args)
    assert found["machine"] == "T800 complete(3)"
    assert {t["name"] for t in found["tasks"]} == {"M", "k", "q", "u", "L", "end"}
    s = bc.schedule(bc.zoo.stanford(), strategy="modules,factorisation", control="computed_torque")
    assert found["makespan"] == s.makespan


def test_processors_from_a_file(folder: Path) -> None:
    plan = Path(bc.__file__).parents[2] / "examples" / "stanford_figure_8.toml"
    found = data("schedule", "stanford", "--config", str(plan), "--execute")
    assert (found["makespan"], found["machine"]) == (688.0, "T800 complete(3)")
    assert found["executed"]["difference"] < 1e-12
    assert data("schedule", "stanford", "--config", str(plan), "--kind", "hidden")["makespan"] < 688.0
    good("schedule", "stanford", "--config", str(plan))
    assert [p.name for p in folder.iterdir()] == ["stanford_forward_dynamics_stanford_figure_8.html"]
    (folder / "bad.toml").write_text("[processors]\nM = 9\n")
    for args, message in (
        (("bad.toml",), 'the processor of "M" is 9'),
        (("missing.toml",), "missing.toml"),
        ((str(plan), "--level", "node"), "leave out --level"),
        ((str(plan), "-q", "mass_matrix"), "divides the forward dynamics"),
    ):
        result = run("schedule", "stanford", "--no-page", "--config", *args)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("excavator_flexible", "--machine", "wong"), "flexible"),
        (("excavator", "--machine", "wong:4"), "leave out the numbers"),
        (("excavator", "--machine", "wong", "-m", "aba"), "its own equations"),
        (("excavator", "--strategy", "luck"), 'no strategy "luck"'),
        (("excavator", "--control", "proportional"), "needs strategy"),
        (("excavator", "--machine", "threads", "--kind", "t800"), "measured on this computer"),
        (("excavator", "--machine", "gpu", "--kind", "t800"), "measured on a GPU"),
        (("excavator", "--machine", "gpu:3"), "expected gpu:1, gpu:2, gpu:4, gpu:8"),
        (("excavator", "--machine", "threads:two"), "expected threads:p"),
        (("excavator", "--machine", "thread"), 'Did you mean "threads"'),
        (("excavator", "--machine", "mesh:2"), "expected mesh:rows,columns"),
        (("excavator", "--machine", "single:2"), "expected single without numbers"),
        (("excavator", "--kind", "t900"), 'Did you mean "t800"'),
    ],
)
def test_incompatible_options_raise(args: tuple[str, ...], message: str) -> None:
    result = run("schedule", *args, "--no-page")
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize("args", [("puma600", "--machine", "wong"), ("excavator", "--machine", "cray")])
def test_only_the_excavator_is_driven_as_on_the_mesh(args: tuple[str, ...]) -> None:
    result = run("drive", *args)
    assert result.exit_code == 2
    assert "expected --machine wong with the excavator" in " ".join(result.output.split())


def test_kinds_and_other_names_of_them() -> None:
    of = {kind: machines.machine("pipeline:3", kind) for kind in ("hidden", "t800", "transputer_t800", "explicit")}
    assert of["t800"] == of["transputer_t800"]
    assert of["hidden"].message(3) == 0.0
    assert of["t800"].overlapped
    assert not of["explicit"].overlapped


def test_search_prints_its_candidates(folder: Path) -> None:
    text = " ".join(good("schedule", "planar3r", "-q", "mass_matrix", "--machine", "complete:3", "--no-page").split())
    found = data("schedule", "planar3r", "-q", "mass_matrix", "--machine", "complete:3")
    best = found["candidates"][0]
    assert best["makespan"] == found["makespan"] == min(c["makespan"] or 1e9 for c in found["candidates"])
    assert found["method"].startswith(best["method"])
    assert f"candidate task tasks operations bound makespan {found['unit']}" in text
    assert {"first pass only", "not shorter, by its bound"} & {c["remark"] for c in found["candidates"]}


def test_map_of_a_family(folder: Path) -> None:
    args = ("schedule", "chain", "-q", "mass_matrix", "--map", "2,3/1,4")
    cells = data(*args)["cells"]
    assert [(c["bodies"], c["processors"]) for c in cells] == [(2, 1), (2, 4), (3, 1), (3, 4)]
    assert all(c["makespan"] > 0.0 for c in cells)
    text = good(*args, "--svg")
    assert "p = 4" in text
    assert ElementTree.parse(folder / "chain_mass_matrix_complete_map.svg").getroot().tag.endswith("svg")
    for wrong, message in (
        (("--map", "2,3"), "such as"),
        (("--map", "2/2", "--machine", "mesh"), "complete, bus, pipeline"),
        (("--map", "2/2", "-m", "crba"), "leave out"),
    ):
        result = run("schedule", "chain", *wrong)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())


def test_coordinates_of_loops() -> None:
    found = data("schedule", "slider_fourbar", "--coordinates")
    assert found["sets"][0]["independent"] == ["T1", "R2"]
    assert all(s["makespan"] is None for s in found["sets"])
    scheduled = data("schedule", "slider_fourbar", "--coordinates", "--machine", "complete:2")
    assert any(s["makespan"] >= s["span"] for s in scheduled["sets"] if s["makespan"])
    assert "T1, R2" in good("schedule", "slider_fourbar", "--coordinates")
    assert "has no loops" in " ".join(run("schedule", "puma600", "--coordinates").output.split())


def test_projection_is_an_option() -> None:
    args = ("schedule", "planar3r", "-q", "mass_matrix", "-m", "vcrb_parallel", "--level", "node")
    base, end = data(*args), data(*args, "--projection", "end")
    assert end["method"] == "vcrb_parallel, end"
    assert base["work"] != end["work"]
