"""Commands accept a mechanism or system from a Python file of the user: FILE.py:NAME."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bellcrank.cli import app

TEXT = """
import bellcrank as bc
from beside import LENGTH

b = bc.Builder("crane")
b.beam("boom", length=LENGTH, section=bc.Section.circle(0.1), material=bc.Material.steel(), elements=4, modes=1)
b.joint("luff", "revolute", "ground", "boom", axis=(0, 1, 0))
crane, size = b.build(), 5


def made():
    return crane


def fails():
    raise KeyError("nothing")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("LENGTH = 3.0\n")
    path = tmp_path / "crane.py"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("name", ["crane", "b", "made"])
def test_objects_of_a_python_file_are_shown(file: Path, name: str) -> None:
    found = CliRunner().invoke(app, ["show", f"{file}:{name}"])
    assert found.exit_code == 0, found.output
    assert "boom.end" in found.output


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (":crain", 'There is no name "crain". Did you mean "crane"?'),
        (":size", "size is a int; expected a mechanism, a Builder, or a function"),
        (":fails", "running it failed: KeyError"),
        ("", "FILE.py:NAME"),
    ],
)
def test_missing_objects_of_a_python_file_raise(file: Path, name: str, said: str) -> None:
    found = CliRunner().invoke(app, ["show", f"{file}{name}"])
    assert found.exit_code != 0
    assert said in " ".join(f"{found.output}{found.exception}".split())


def test_no_file(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["show", f"{tmp_path}/none.py:crane"])
    assert found.exit_code != 0
    assert "does not exist" in f"{found.output}{found.exception}"
