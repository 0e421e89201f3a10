"""Histories of inputs from files: the lines of a run, and messages for files that are wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import bellcrank as bc
from bellcrank.cli import app

PUSH = {"t": [0.0, 0.1, 0.2, 0.3], "push": [1.0, -2.0, 0.5, 3.0]}


def cart() -> Any:
    """One kilogram on a slide, pushed by its only input."""
    b = bc.Builder("cart", gravity=(0, 0, 0))
    b.body("box", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    b.joint("rail", "prismatic", "ground", "box", axis=(1, 0, 0))
    return bc.system(b.build(), control=lambda t, q, v, x, u: [u["push"]], inputs=["push"])


def csv_file(folder: Path, text: str) -> Path:
    path = folder / "history.csv"
    path.write_text(text)
    return path


def test_a_file_is_the_table_with_its_own_spacing(tmp_path: Path) -> None:
    """The file, a mapping and the table that they describe give the same run to the last bit."""
    rows = "\n".join(f"{t},{u}" for t, u in zip(*PUSH.values(), strict=True))
    how: dict[str, Any] = {"step": 0.01}
    table = bc.simulate(cart(), 0.5, inputs={"push": PUSH["push"]}, input_step=0.1, **how)
    assert table["rail.v"][-1] == pytest.approx(0.1 * (1 - 2 + 0.5) + 0.2 * 3.0)  # the last one holds
    for source in (csv_file(tmp_path, f"# comment\nt,push\n{rows}\n"), PUSH):
        run = bc.simulate(cart(), 0.5, inputs=bc.history(source), **how)
        np.testing.assert_array_equal(run["rail.q"], table["rail.q"])
        np.testing.assert_array_equal(run["input.push"], table["input.push"])


def test_unequal_distances_are_held_in_lines_of_the_input_step() -> None:
    given = bc.history({"t": [0.0, 0.4, 0.5], "push": [1.0, 2.0, 3.0]})
    lines, h = given.lines(0.1)
    assert (lines["push"].tolist(), h) == ([1, 1, 1, 1, 2, 3], 0.1)
    with pytest.raises(bc.InputError, match=r"t is 0.4 in row 1, which is no multiple of the input_step of 0.25 s"):
        given.lines(0.25)


@pytest.mark.parametrize("how", [{"step": 0.01}, {"integrator": "dopri5", "tolerance": 1e-9}])
def test_linear_inputs_have_the_exact_integral_at_the_ends_of_lines(how: dict[str, Any]) -> None:
    """A force that rises, falls and holds: the speed is its integral, the distance is accurate to the second order."""
    given = bc.history({"t": [0.0, 0.3, 0.5], "push": [0.0, 3.0, 1.0]}, kind="linear")
    speed = 0.5 * 0.3 * 3.0 + 0.2 * 2.0
    errors = []
    for h in (0.02, 0.01):
        run = bc.simulate(cart(), 1.0, inputs=given, input_step=h, every=0.5, **how)
        np.testing.assert_allclose(run["rail.v"], [0.0, speed, speed + 0.5], atol=1e-12)
        exact = (0.3**3 * 10 / 6 + 0.45 * 0.2 + 3.0 * 0.2**2 / 2 - 10 * 0.2**3 / 6) + speed * 0.5 + 0.5**2 / 2
        errors.append(abs(run["rail.q"][-1] - exact))
    assert errors[0] < 1e-4
    assert errors[1] < errors[0] / 3.5


def test_a_gradient_has_a_weight_for_each_line() -> None:
    given = bc.history(PUSH)
    by_table = bc.gradient(cart(), 0.5, final="rail.q", inputs={"push": PUSH["push"]}, input_step=0.1, step=0.01)
    by_file = bc.gradient(cart(), 0.5, final="rail.q", inputs=given, step=0.01)
    assert by_file.inputs["push"].tolist() == by_table.inputs["push"].tolist()
    assert len(by_file.inputs["push"]) == 4


WRONG = {
    "time,push\n0,1\n": 't"',
    "t,push\n0,1\n0.1,nan\n": 'column "push", row 1 is nan; expected finite numbers',
    "t,push\n0,1\n0.2,2\n0.1,3\n": "the time runs backwards: t is 0.2 in row 1 and 0.1 in row 2",
    "t,push\n0,1\n0.1,2\n0.1,3\n": "the time runs backwards: t is 0.1 in row 1 and 0.1 in row 2",
    "t,push\n0.5,1\n0.6,2\n": "the first time is 0.5 s; expected 0, the start of every run",
    "t,push\n0,one\n0.1,two\n": 'column "push" has text; expected numbers',
    "t,push\n0,1,7\n": "line 2 has 3 cells and the first 2",
    "t\n0\n0.1\n": "there is only the column t",
    "": "is empty",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    path = csv_file(tmp_path, text)
    with pytest.raises((bc.ReadError, bc.InputError), match=re.escape(WRONG[text])) as found:
        bc.history(path)
    assert str(path) in str(found.value)


def test_wrong_names_kinds_and_steps_are_refused(tmp_path: Path) -> None:
    other = bc.history(csv_file(tmp_path, "t,pull\n0,1\n"))
    with pytest.raises(bc.InputError, match=r'history.csv: .*"pull".*push'):
        bc.simulate(cart(), 0.1, inputs=other)
    with pytest.raises(bc.InputError, match="linear"):
        bc.history(PUSH, kind="cubic")
    with pytest.raises(bc.InputError, match=r"needs the time that each value holds .* input_step"):
        bc.simulate(cart(), 0.1, inputs=bc.history(PUSH, kind="linear"))
    with pytest.raises(bc.InputError, match=r"different distances \(0.1 s at first, 0.3 s after row 1\)"):
        bc.simulate(cart(), 0.1, inputs=bc.history({"t": [0, 0.1, 0.4], "push": [0.0, 1.0, 2.0]}))
    with pytest.raises(bc.ReadError, match="cannot be read"):
        bc.history(tmp_path / "none.csv")
    with pytest.raises(bc.InputError, match="input_step"):
        bc.simulate(cart(), 0.1, inputs=bc.history(PUSH), input_step=-1.0)
    with pytest.raises(bc.InputError, match="source is 3"):
        bc.history(3)


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["simulate", *arguments])


def test_sticks_of_the_excavator_come_from_a_file(tmp_path: Path) -> None:
    """In JOINT mode the desired angles are the integrals of the rates in the file (Wong 1991, section 5.5.2)."""
    path = csv_file(tmp_path, "t,cab,boom\n0,0,0\n0.1,0.2,-0.1\n0.3,0,0\n")
    done = invoke("excavator", "-s", "joint-mode", "--inputs", str(path), "--input-step", "0.1", "--seconds", "0.5",
                  "--out", str(tmp_path / "run.npz"))  # fmt: skip
    assert done.exit_code == 0, done.output
    run = bc.load_record(tmp_path / "run.npz")
    moved = {joint: run[f"{joint}_d"][-1] - run[f"{joint}_d"][0] for joint in ("cab", "boom", "stick", "bucket")}
    assert moved == pytest.approx({"cab": 0.04, "boom": -0.02, "stick": 0.0, "bucket": 0.0}, abs=1e-12)


def test_forces_on_joints_come_from_a_file(tmp_path: Path) -> None:
    m = bc.zoo.planar3r()
    name = m.columns[1][1]
    path = csv_file(tmp_path, f"t,{name}\n0,5\n0.1,-5\n")
    done = invoke("planar3r", "--inputs", str(path), "--seconds", "0.2", "--rates", "--out", str(tmp_path / "run.npz"))
    assert done.exit_code == 0, done.output
    run = bc.load_record(tmp_path / "run.npz")
    assert run[f"{name}.tau"][[50, 150]].tolist() == [5.0, -5.0]
    assert f"d({name}.v)/dt" in run.columns
    np.testing.assert_allclose(m.forward_dynamics(run.q, run.v, run.tau), run.a, atol=1e-9)


def test_the_command_line_refuses_inputs_that_have_no_use(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "t,boom\n0,1\n")
    for arguments, words in (
        (("excavator", "-s", "computed-torque", "--inputs", str(path)), "computed-torque has no inputs"),
        (("excavator", "--linear"), "add --inputs FILE"),
        (("pendulum", "--inputs", str(path)), "boom"),
    ):
        done = invoke(*arguments)
        assert done.exit_code != 0
        assert words in done.output + str(done.exception)
