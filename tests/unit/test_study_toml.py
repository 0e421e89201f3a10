"""study.toml, and the command that runs it."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import bellcrank as bc
import mutation
from bellcrank.cli import app
from bellcrank.errors import ReadError
from bellcrank.studies.study_setup import read_study

GOOD = """
mechanism = "chain:2"
seconds = 0.2
to = "out"
runs = 20
step = 0.01
[over]
"link1.mass" = {uniform = [1, 2]}
"""


def read(tmp_path: Path, text: str) -> tuple[Any, dict[str, Any]]:
    (tmp_path / "s.toml").write_text(text)
    return read_study(tmp_path / "s.toml", bc.zoo.load)


def test_file_defines_plant_and_study(tmp_path: Path) -> None:
    plant, asked = read(tmp_path, GOOD + '[start]\n"joint1.q" = 0.3\n"joint2.v" = 1.0\n')
    assert isinstance(plant, bc.Mechanism)
    assert asked["to"] == tmp_path / "out"
    assert asked["over"] == {"link1.mass": bc.uniform(1, 2)}
    assert asked["q0"] == {"joint1": 0.3}
    assert asked["v0"] == {"joint2": 1.0}


def test_custom_plant(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import bellcrank as bc\ndef plant():\n    return bc.system(bc.zoo.chain(2))\n")
    plant, _ = read(tmp_path, GOOD.replace('mechanism = "chain:2"', 'plant = "mine.py:plant"'))
    assert isinstance(plant, bc.System)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("seconds = 0.2\n", ""), "seconds is missing"),
        (("seconds", "secnds"), "seconds"),
        (("uniform", "unifrm"), "expected { uniform"),
        (("[1, 2]", "[1]"), "expected { uniform"),
        (('mechanism = "chain:2"', 'plant = "none.py:x"'), 'expected "file.py:name"'),
        (('mechanism = "chain:2"', ""), "expected either"),
        (('[over]\n"link1.mass" = {uniform = [1, 2]}', "over = 3"), "expected a table"),
        (("= 20", "= "), "is not TOML"),
        (("= 20", "= " + "9" * 5000), "is not TOML"),
        (("= 20", "= " + "[" * 5000), "nested too deeply"),
        (('"out"', "3"), "to is 3"),
        (('"out"', '"' + "x" * 500 + '"'), "expected a name in quotes"),
    ],
)
def test_invalid_files_raise(change: tuple[str, str], word: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=word):
        read(tmp_path, GOOD.replace(*change))


def test_damaged_files(tmp_path: Path) -> None:
    """A damaged file gives a study or a short error, never a traceback."""
    rng = random.Random(4)
    for _ in range(250):
        text = GOOD
        for _ in range(rng.choice((1, 1, 3))):
            text = rng.choice(mutation.PLAIN)(rng, text)
        if "chain:2" not in text:
            continue  # a long chain takes too long here
        (tmp_path / "s.toml").write_text(text, "utf-8", errors="replace")
        said = ""
        try:
            read_study(tmp_path / "s.toml", bc.zoo.load)
        except bc.BellcrankError as error:
            said = str(error)
        assert len(said) < 3000


def test_the_command(tmp_path: Path) -> None:
    """The command runs on workers of its own."""
    pytest.importorskip("distributed")
    text = GOOD.replace("step", 'summary = ["max(*.v)"]\nworkers = 1\nstep')
    arm = bc.zoo.chain(2)
    (tmp_path / "s.toml").write_text(text.replace("link1", arm.bodies[0].name))
    done = CliRunner().invoke(app, ["study", str(tmp_path / "s.toml"), "--json", "--run", "3"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["runs"] == 20
    assert len(found["quantiles"]) == 2
    assert (tmp_path / "out/study.html").is_file()
    assert (tmp_path / "out/run-3.html").is_file()


@pytest.mark.parametrize(
    "plant", ["../mine.py:plant", "/tmp/mine.py:plant", "sub/../../mine.py:plant", "link.py:plant"]
)
def test_only_python_files_beside_the_study_are_run(plant: str, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    (tmp_path / "mine.py").write_text("raise SystemExit('ran')\n")
    (here / "link.py").symlink_to(tmp_path / "mine.py")
    with pytest.raises(ReadError, match=r'expected "file\.py:name", a file beside this one'):
        read(here, GOOD.replace('mechanism = "chain:2"', f'plant = "{plant}"'))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "study.toml")
    with pytest.raises(ReadError, match=r"no plain file|not a regular file"):
        read_study(tmp_path / "study.toml", bc.zoo.load)
