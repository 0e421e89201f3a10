"""`bellcrank simulate` and `bellcrank papers`: their output and files, and their messages for bad input."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import bellcrank as bc
from bellcrank.cli import app
from bellcrank.cli.simulate import SCENARIOS, scenario_of
from bellcrank.papers import EXPERIMENTS
from bellcrank.sim.run.record_builder import Interrupted
from bellcrank.sim.run.simulator import Simulator

FAST = ("simulate", "pendulum", "--seconds", "1", "--step", "0.01", "--start", "hinge=1")


def run(*args: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, list(args))


def good(*args: str) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


def bad(*args: str) -> str:
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return " ".join(result.stderr.split())


def test_a_run_is_a_table() -> None:
    text = good(*FAST)
    assert "pendulum, free-fall: 1 s by rk4, step 0.01 s" in text
    assert "100 steps" in text
    assert "hinge.q" in text
    assert "energy error: " in text


def test_json_has_settings_and_final_state() -> None:
    found: Any = json.loads(good(*FAST, "--json"))
    expected = bc.simulate(bc.zoo.pendulum(), 1.0, q0=[1.0], step=0.01)
    assert found["final"]["hinge.q"] == pytest.approx(float(expected.q[-1, 0]), abs=1e-12)
    assert (found["steps"], found["rows"], found["integrator"], found["scenario"]) == (100, 101, "rk4", "free-fall")
    assert found["stop"]["reason"] == "end"
    assert found["residuals"]["energy"] < 1e-6
    assert found["units"]["hinge.v"] == "rad/s"


def test_files_are_written(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("matplotlib")
    out, plot, page = tmp_path / "run.parquet", tmp_path / "run.png", tmp_path / "run.html"
    files = ("--out", str(out), "--plot", str(plot), "--report", str(page))
    text = good(*FAST, "--columns", "hinge.q,energy", *files)
    assert text.count("wrote ") == 3
    assert len(bc.load_record(out)) == 101
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "<html" in page.read_text("utf-8")[:300]


def test_saved_run_has_columns_of_its_control(tmp_path: Path) -> None:
    out = tmp_path / "run.npz"
    good("simulate", "excavator", "--scenario", "joint-mode", "--seconds", "0.5", "--out", str(out))
    found = bc.load_record(out)
    assert {"boom.tau", "boom.command", "boom.spool", "tip.radius"} <= set(found.columns)


def test_every_scenario_runs_where_it_belongs() -> None:
    for name in SCENARIOS:
        text = good("simulate", "excavator", "--scenario", name, "--seconds", "0.1")
        assert f"excavator, {name}: 0.1 s" in text


def test_a_summary_is_one_value_for_each_column() -> None:
    asked = ("--summary", "max(*.v)", "--summary", "t_max(joint2.v)", "--summary", "mean(energy)")
    text = good("simulate", "puma600", "--seconds", "0.5", *asked)
    assert "max(joint6.v)" in text
    assert "least" not in text
    found: Any = json.loads(good("simulate", "puma600", "--seconds", "0.5", *asked, "--json"))
    assert found["rows"] == 1
    assert "energy" not in found["residuals"]
    rows = bc.simulate(bc.zoo.puma600(), 0.5, scenario_of("free-fall")(bc.zoo.puma600()).q0, step=found["step"])
    assert found["final"]["max(joint2.v)"] == pytest.approx(rows["joint2.v"].max(), rel=1e-9)
    assert found["units"]["t_max(joint2.v)"] == "s"
    assert "joint2.v" in bad("simulate", "puma600", "--summary", "max(joint9.v)")


def test_adaptive_steps() -> None:
    found: Any = json.loads(
        good("simulate", "puma600", "-i", "dopri5", "--tolerance", "1e-8", "--seconds", "1", "--json")
    )
    assert found["tolerance"] == 1e-8
    assert found["steps"] < 200
    every: Any = json.loads(good("simulate", "puma600", "-i", "dopri5", "--seconds", "1", "--every", "0.25", "--json"))
    assert every["rows"] == 5


def test_computed_torque_comes_back_to_the_path_and_open_loop_does_not() -> None:
    args = ("simulate", "torso", "--seconds", "5", "--step", "0.01", "--start", "head=0.2", "--json")
    fed: Any = json.loads(good(*args, "--scenario", "computed-torque"))
    open_: Any = json.loads(good(*args, "--scenario", "inverse-dynamics"))
    assert fed["final"]["head.q"] == pytest.approx(np.pi, abs=1e-3)
    assert abs(open_["final"]["head.q"] - np.pi) > 0.1


def test_stanford_goes_where_saha_sends_it() -> None:
    setup = scenario_of("inverse-dynamics")(bc.zoo.stanford())
    assert list(setup.q0) == pytest.approx([0, np.pi / 2, 0, 0, 0, 0])
    path = setup.system.control.trajectory  # type: ignore[union-attr]
    assert list(path.end) == pytest.approx([np.pi / 3, np.pi / 3, 0.1, np.pi / 3, np.pi / 3, np.pi / 3])


def test_a_file_that_only_has_a_papers_name_starts_at_zero() -> None:
    b = bc.Builder("stanford")
    b.body("link", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "ground", "link", axis=(0.0, 1.0, 0.0))
    assert list(scenario_of("free-fall")(b.build()).q0) == [0.0]


def test_a_start_with_loops_is_assembled(tmp_path: Path) -> None:
    for form in ("minimal", "projected"):
        out = tmp_path / f"{form}.npz"
        good("simulate", "four_bar", "--start", "A=1", "--seconds", "0.1", "--form", form, "--out", str(out))
        record = bc.load_record(out)
        assert record.provenance["form"] == form
        assert record.provenance["loops open by at most"] < 1e-12
        assert record["A.q"][0] == 1.0
    result = run("simulate", "four_bar(crank=0.3)", "--start", "A=2.5")
    assert "these equations are not satisfied: C: " in " ".join(result.stderr.split())


def test_run_without_motion_is_reported() -> None:
    assert "nothing moved" in good("simulate", "pendulum", "--seconds", "1")


def test_diverging_run_fails_with_a_message(tmp_path: Path) -> None:
    out = tmp_path / "run.npz"
    result = run("simulate", "excavator", "-s", "joint-mode", "--step", "0.1", "--out", str(out))
    assert result.exit_code == 1
    assert "the run stopped at" in result.stderr
    assert len(bc.load_record(out)) > 1  # the existing file stays


def test_unresolved_run_fails_with_a_message(tmp_path: Path) -> None:
    out = tmp_path / "run.npz"
    result = run("simulate", "excavator", "-s", "joint-mode", "--step", "0.01", "--out", str(out))
    assert result.exit_code == 1
    assert "the run is not resolved: the step of 0.01 s is too long" in " ".join(result.stderr.split())
    assert "RuntimeWarning" not in result.stderr
    assert len(bc.load_record(out)) == 1501


def test_ctrl_c_keeps_the_rows_so_far(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real, out = Simulator.run, tmp_path / "run.npz"

    def interrupted(self: Simulator, *args: Any, **named: Any) -> Any:
        raise Interrupted(real(self, *args, **named))

    monkeypatch.setattr(Simulator, "run", interrupted)
    result = run(*FAST, "--out", str(out))
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert len(bc.load_record(out)) == 101


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("nothing",), 'no mechanism "nothing". Known: pendulum'),
        (("puma600", "-s", "fly"), 'no scenario "fly". Known: free-fall, inverse-dynamics'),
        (("puma600", "-i", "rk5"), 'no integrator "rk5". Did you mean "rkf45"? Known: euler, rk4'),
        (("puma600", "--step", "-1"), "step is -1.0; expected a number above zero"),
        (("puma600", "--step", "0.3"), "33.3333 times the step"),
        (("puma600", "--seconds", "nan"), "seconds is nan"),
        (("puma600", "--seconds", "0"), "seconds is 0.0"),
        (("puma600", "--tolerance", "1e-6"), "does not estimate its error"),
        (("puma600", "-i", "abm4", "--tolerance", "-1"), "tolerance is -1.0"),
        (("puma600", "--every", "often"), '--every is "often"'),
        (("puma600", "--start", "elbow=1"), 'no coordinate "elbow". Known: joint1'),
        (("puma600", "--start", "joint1=far"), '"far" is not a number'),
        (("puma600", "--start", "joint1"), "expected NAME=NUMBER"),
        (("puma600", "--method", "magic"), 'no method "magic"'),
        (("puma600", "-s", "joint-mode"), "is for the built-in excavator"),
        (("random_tree:5", "-s", "inverse-dynamics"), "one coordinate for each joint"),
        (("puma600", "--out", "nowhere/run.parquet"), 'there is no directory "nowhere"'),
        (("puma600", "--out", "run.txt"), "saved as .parquet, .csv, .npz, .mcap"),
        (("puma600", "--report", "nowhere/page.html"), 'there is no directory "nowhere"'),
        (("puma600", "--plot", "."), "is a directory"),
    ],
)
def test_bad_input(args: tuple[str, ...], says: str) -> None:
    assert says in bad("simulate", *args)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "is not writable" in bad("simulate", "puma600", "--out", str(tmp_path / "run.npz"))


def test_experiments_are_listed() -> None:
    text = good("papers")
    assert all(f"{e.name}" in text and e.title in text for e in EXPERIMENTS.values())
    found: Any = json.loads(good("papers", "--json"))
    assert [row["name"] for row in found] == list(EXPERIMENTS)


def test_an_experiment_prints_writes_and_is_data(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    text = good("papers", "wong-3.5.1", "--figures", str(tmp_path), "--records", str(tmp_path))
    assert "joint 6, largest error of theta" in text
    assert "agrees" in text
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".parquet", ".svg", ".svg", ".svg"]
    [found] = json.loads(good("papers", "wong-3.5.1", "--json"))
    assert found["rows"][0]["agrees"] is True


def test_bad_experiments(tmp_path: Path) -> None:
    assert "Known: nikravesh1989, break_even, coordinates" in bad("papers", "wong-9")
    assert "no such directory" in bad("papers", "wong-3.5.1", "--figures", str(tmp_path / "nowhere"))
