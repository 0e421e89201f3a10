"""Damaged files give a clear error or a sound mechanism; never another exception, a hang, a crash or a gigabyte.

tests/mutation.py damages the files. tests/fuzzing.py defines a sound mechanism and runs as a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bellcrank.errors import BellcrankError, ReadError
from bellcrank.formats import mjcf_model, read

TESTS = Path(__file__).parent.parent
ARM = TESTS / "unit/data/arm.urdf"
TABLE = (TESTS / "unit/data/arm_modified.toml").read_text()
NEEDS = {"mjcf": "mujoco", "yaml": "yaml"}


def fuzzed(kind: str, first: int, count: int, seconds: int) -> dict[str, int]:
    """Return how many files were read and refused; fail with the case numbers of all others."""
    if kind in NEEDS:
        pytest.importorskip(NEEDS[kind])
    command = [sys.executable, str(TESTS / "fuzzing.py"), kind, str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{kind}: died with {done.returncode}:\n{done.stderr[-2000:]}"
    *wrong, counts = [json.loads(line) for line in done.stdout.splitlines()]
    assert not wrong, wrong
    found: dict[str, int] = counts
    assert sum(found.values()) == count
    return found


@pytest.mark.parametrize(("kind", "count"), [("urdf", 120), ("mjcf", 16), ("yaml", 80), ("toml", 120)])
def test_damaged_files(kind: str, count: int) -> None:
    found = fuzzed(kind, 0, count, 300)
    assert (
        min(found["read"], found["refused"]) >= count // 24
    )  # the damage is neither so small nor so large that the test is useless


@pytest.mark.long
@pytest.mark.parametrize(("kind", "count"), [("urdf", 2000), ("mjcf", 1000), ("yaml", 1000), ("toml", 1000)])
def test_damaged_files_by_the_thousand(kind: str, count: int) -> None:
    fuzzed(kind, 1_000_000, count, 3600)


def test_a_compiler_that_breaks_down_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    model = '<mujoco><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>'
    assert read(model).nv == 1
    for broken, message in (
        ("import os; os.abort()", "compiler failed: it ended with -6"),
        ("import resource; resource.setrlimit(0, (1, 1))\nwhile True: pass", "it was stopped after 60 s of work"),
        ("print('not JSON')", "compiler failed: it ended with 0"),
    ):
        monkeypatch.setattr(mjcf_model, "COMPILER_PROGRAM", broken)
        with pytest.raises(ReadError, match=message):
            read(model)


BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]" for i in range(9))])
SHEETS = {
    "a bomb of aliases": (f"{BOMB}\nclosed_loop: *a9\n", "line 2: refused: an alias"),
    "a bomb of merges": ("a: &a {k: 1}\nb: &b {<<: [*a, *a]}\nclosed_loop: []\n", "line 2: refused: an alias"),
    "a list in itself": ("closed_loop: &a [*a, *a]\n", "refused: an alias"),
    "brackets": ("closed_loop: " + "[" * 5000, "nested 20 deep"),
    "braces": ("closed_loop: " + "{a: " * 5000, "nested 20 deep"),
    "a month of its own": ("closed_loop: 2020-13-45\n", "not YAML: month must be in 1..12"),
    "an integer that is none": ("closed_loop: !!int x\n", "not YAML: invalid literal"),
    "a number of many digits": (f"closed_loop: {'9' * 5000}\n", "not YAML: Exceeds the limit"),
    "a number of many bits": (f"closed_loop: 0x{'f' * 5000}\n", "closed_loop is an integer of 20000 bits; expected"),
    "binary that is none": ("closed_loop: !!binary x\n", "not YAML: failed to decode base64"),
    "a tag that runs code": ("closed_loop: !!python/object/apply:os.getcwd []\n", "not YAML: could not determine"),
    "a key that is a list": ("closed_loop: []\n? [a]\n: b\n", "found unhashable key"),
    "a novel": ("# " + "x" * 2_000_000 + "\nclosed_loop: []\n", "bytes; expected a YAML file of loops"),
}


@pytest.mark.parametrize("name", SHEETS)
def test_malicious_sheets(name: str, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    text, message = SHEETS[name]
    (tmp_path / "robot.yaml").write_text(text)
    (tmp_path / "robot.urdf").write_text(ARM.read_text())
    for given in ({"loops": tmp_path / "robot.yaml"}, {}):  # given as an argument, and found beside the file
        with pytest.raises(ReadError) as caught:
            read(tmp_path / "robot.urdf", **given)  # type: ignore[arg-type]
        assert message in str(caught.value)
        assert str(tmp_path / "robot.yaml") in str(caught.value)
        assert len(str(caught.value)) < 800


@pytest.mark.parametrize("tag", ["int", "float", "bool", "null", "timestamp", "binary", "str", "omap", "set", "seq"])
def test_tags_that_do_not_fit(tag: str, tmp_path: Path) -> None:
    """Fields that do not fit their tag raise a ReadError; single readers raise an IndexError for an empty number."""
    pytest.importorskip("yaml")
    for value in ("", "''", "x", "-", "'+'", ".", "0x", "1:a", "[1]", "{a: 1}", "2020-99-99", "2001-01-01 0:0:0 +99:9"):
        (tmp_path / "loops.yaml").write_text(f"closed_loop: !!{tag} {value}\n")
        try:
            read(ARM, loops=tmp_path / "loops.yaml")
        except ReadError as error:
            assert "not YAML: " in str(error) or "closed_loop is" in str(error)  # noqa: PT017


TABLES = {
    "a number of many digits": (TABLE + f"\nmass = {'9' * 5000}\n", "not TOML: "),
    "a number of many bits": (f"angles = 0x{'f' * 5000}\n[[link]]\n", "angles is an integer of 20000 bits"),
    "a mass of many bits": (f"[[link]]\nmass = 0x{'f' * 3000}\n", "mass is an integer of 12000 bits"),
    "a day of its own": ("name = 2020-13-45\n[[link]]\n", "not TOML"),
    "a name that is a date": ("name = 2020-12-13\n[[link]]\n", "name is datetime.date(2020, 12, 13); expected a text"),
    "brackets": ("name = " + "[" * 50_000, "nested too deeply"),
    "a deep mass": ("[[link]]\nmass" + ".a" * 900 + " = 1\n", "mass is {'a': {'a': {'a': {...}}}}; expected a number"),
}


@pytest.mark.parametrize("name", TABLES)
def test_malicious_tables(name: str, tmp_path: Path) -> None:
    text, message = TABLES[name]
    (tmp_path / "arm.toml").write_text(text)
    with pytest.raises(BellcrankError) as caught:
        read(tmp_path / "arm.toml")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 800


def test_files_that_never_end_are_not_begun(tmp_path: Path) -> None:
    (tmp_path / "endless.urdf").symlink_to("/dev/zero")
    with pytest.raises(ReadError, match="is not a plain file"):
        read(tmp_path / "endless.urdf")
    with (tmp_path / "huge.urdf").open("wb") as file:
        file.truncate(10**12)  # a sparse file
    with pytest.raises(ReadError, match="1,000,000,000,000 bytes; expected a robot file"):
        read(tmp_path / "huge.urdf")
