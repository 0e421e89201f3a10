"""`bellcrank linearize` and `equilibrium` print the results of Python as tables and JSON, and report bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import bellcrank as bc
from bellcrank.cli import app


def run(*args: str, columns: int = 100) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, list(args))


def good(*args: str, columns: int = 100) -> str:
    result = run(*args, columns=columns)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_matrices_and_poles_are_those_of_python() -> None:
    asked = ("linearize", "planar3r", "--at", "joint1=0.3", "--at", "joint2.v=0.1")
    found: Any = json.loads(good(*asked, "--json"))
    lin = bc.linearize(bc.zoo.load("planar3r"), at={"joint1.q": 0.3, "joint2.v": 0.1})
    for key, matrix in zip("ABCD", lin, strict=True):
        np.testing.assert_array_equal(found[key], matrix)
    assert tuple(found["states"]) == lin.states
    poles = [complex(*mode["pole"]) for mode in found["modes"]]
    np.testing.assert_allclose(poles, [mode.eigenvalue for mode in lin.modes()])
    assert "not at rest" in good(*asked)


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_a_linkage_at_rest_fits_the_terminal(columns: int) -> None:
    text = good("linearize", "four_bar", "--rest", "--matrices", columns=columns)
    frequency = bc.linearize(bc.zoo.four_bar(), at=bc.equilibrium(bc.zoo.four_bar())).modes().frequencies[0]
    assert f"{frequency:.5g}" in text
    assert max(map(len, text.splitlines())) <= columns
    # the loop is closed
    assert len(json.loads(good("linearize", "four_bar", "--at", "A=0.3", "--json"))["states"]) == 2


def test_a_page_moves_along_a_mode(tmp_path: Path) -> None:
    page = tmp_path / "mode.html"
    good("linearize", "pendulum", "--report", str(page), "--step", "0.01")
    assert "hinge" in page.read_text("utf-8")


def test_holding_forces_of_an_equilibrium() -> None:
    found: Any = json.loads(good("equilibrium", "four_bar", "--hold", "D=0.1", "--free", "A.tau", "--json"))
    values = {row["name"]: (row["value"], row["how"]) for row in found["elements"]}
    assert values["D.q"] == (pytest.approx(0.1), "held")
    assert values["A.tau"] == (pytest.approx(0.611396, abs=1e-5), "solved")
    assert "solved" in good("equilibrium", "pendulum", "--at", "hinge=1", "--hold", "q", columns=60)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["linearize", "pendulum", "--at", "hinge"], "NAME=NUMBER"),
        (["linearize", "pendulum", "--at", "hinge=far"], '"far" is not a number'),
        (["linearize", "pendulum", "--at", "elbow=1"], "elbow"),
        (["linearize", "pendulum", "--mode", "1"], "--report"),
        (["linearize", "pendulum", "--report", "never.html", "--mode", "7"], "there are 1"),
        (["linearize", "pendulum", "-i", "rk4"], "step"),
        (["equilibrium", "pendulum", "--at", "hinge=1", "--hold", "q", "--free", "elbow.tau"], "elbow.tau"),
        (["equilibrium", "four_bar", "--hold", "D=0.1", "--hold", "A"], "has no value"),
    ],
)
def test_bad_input(args: list[str], words: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
