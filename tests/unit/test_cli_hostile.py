"""Invalid arguments, terminals and output streams give a message and an exit code on the command line."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bellcrank.cli import app

BELLCRANK = [sys.executable, "-m", "bellcrank"]
ARM = Path(__file__).parent / "data/arm.urdf"


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a real shell, where streams can be closed. $B is bellcrank."""
    given = os.environ | {"B": f"{sys.executable} -m bellcrank"} | environment
    return subprocess.run(["bash", "-c", line], env=given, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("columns", ["0", "1", "20", "-5", "x", "", "99999999999999999999", "²"])
def test_any_width_ends_and_shows_everything(columns: str) -> None:
    for command in ("show excavator", "zoo"):
        shown = CliRunner().invoke(app, command.split(), env={"COLUMNS": columns})
        assert shown.exit_code == 0
        assert "excavator" in shown.output.replace("\n", "")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("$B show excavator >&-", 0, ""),
        ("$B show excavator 2>&-", 0, ""),
        ("$B show excavator >&- 2>&- <&-", 0, ""),
        ("$B show nothing >&-", 2, "There is no mechanism"),
        ("$B show nothing 2>&-", 2, ""),
        ("$B --help >&-", 0, ""),
        ("$B show excavator >/dev/full", 1, "the output cannot be written: No space left"),
        ("$B show excavator --json >/dev/full", 1, "the output cannot be written: No space left"),
        ("$B emit excavator -t c >/dev/full", 1, "the output cannot be written: No space left"),
        ("$B --help >/dev/full", 1, "the output cannot be written: No space left"),
        ("$B show nothing 2>/dev/full", 1, ""),
        ("$B show excavator | true; exit ${PIPESTATUS[0]}", 141, ""),
    ],
)
def test_streams_that_are_closed_full_or_left(line: str, code: int, said: str) -> None:
    done = shell(line)
    if "| true" in line and done.returncode == 0:
        return  # the output was complete before the reader closed
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert said in done.stderr


TOO_LARGE = {
    "show chain:99999999": "so many bodies would take about 8.33 hours and 600 GB to build. At most",
    f"show chain:{'9' * 4000}": "n is an integer of",
    f"show chain:{'9' * 5000}": "cannot be read",
    "show n_four_bar:99999999": "At most 5,000",
    "show tree:99999999": "At most 100,000",
    "show parallel_cranks:1": "expected a whole number of at least 2",
    "schedule excavator --no-page --machine complete:100000": "at most 20,000 processors and 20,000,000 links",
    "schedule excavator --no-page --machine mesh:99999,99999": "at most 20,000 processors",
    "schedule excavator --no-page --machine triangle:99999": "at most 20,000 processors",
    f"schedule excavator --no-page --machine complete:{'9' * 5000}": "at most 20,000 processors",
    "schedule excavator --no-page --machine complete:100000000000": "at most 20,000 processors",
    "bench excavator --rows 99999999999": "GB are free; take fewer rows",
    "count chain:1000 -q mass_matrix -m crba": "operations, and at most 10,000,000 are",
    "drive excavator:": 'nothing after its colon. Write "excavator"',
    "drive chain:": "nothing after its colon",
}


@pytest.mark.parametrize("line", TOO_LARGE)
def test_endless_commands_are_rejected_at_once(line: str) -> None:
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 2, done.output
    assert TOO_LARGE[line] in done.output
    assert len(done.output) < 1000 + len(line)


# Commands that end by themselves, with options that take a number or a word; each is tried with every value below.
COMMANDS = (
    "show {}", "show excavator --base {}", "show excavator --check {}", "count excavator -q {}",
    "count excavator -m {}",
    "count excavator -q pose -f {}", "count excavator --target {}", "count excavator --dtype {}", "count {}",
    "schedule excavator --no-page --machine {}", "schedule excavator --no-page --kind {}", "cite {}", "papers {}",
    "schedule excavator --no-page --level {}", "schedule excavator --no-page --strategy {}", "experiment {}",
    "emit excavator -t {}", "emit excavator -t latex --digits {}", "emit excavator -t python --terms {}", "report {}",
    "bench pendulum -q kinetic_energy -m crba --rows {}", "simulate pendulum --seconds {}", "zoo {}",
    "simulate pendulum --step {}", "simulate pendulum -i {}", "simulate pendulum --tolerance {}", "costs --dtype {}",
    "simulate pendulum --every {}", "simulate pendulum --start {}", "simulate pendulum --start hinge={}",
    "simulate pendulum --summary {}", "simulate pendulum --out {}", "simulate pendulum -s {}",
    "drive pendulum --port {} --seconds 0.1",
    "drive pendulum --rate {} --seconds 0.1", "drive pendulum --by {} --seconds 0.1",
)  # fmt: skip
VALUES = (
    "", " ", "nan", "inf", "-inf", "-1", "0", "1e400", "99999999999999999999", "-99999999999999999999", "9" * 5000,
    "é́",
    "\u202e", "a" * 5000, "\x1b[2J", "../..", "/dev/null", "/", "--", "-", "chain:-1", "chain:1e9", "tree(", "max(",
    "()",
    "excavator:0", "chain:nan", "mesh:0,0", "complete:-1", "threads:x", "1_0", "0x10", "1.5", "[", "{}", "%s", "a=b=c",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_invalid_options_give_a_message(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invalid option values give a message: a random few by default; the long test below tries all."""
    _tried(command, random.Random(command).sample(VALUES, 5), tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_every_invalid_option_gives_a_message(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _tried(command, list(VALUES), tmp_path, monkeypatch)


def _tried(command: str, values: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for value in values:
        words = [word.replace("{}", value) for word in command.split()]
        done = CliRunner().invoke(app, words)
        unexpected = done.exception is not None and not isinstance(done.exception, SystemExit)
        assert not unexpected, (words, repr(done.exception)[:300])
        assert done.exit_code in (0, 1, 2), (words, done.exit_code)
        assert done.exit_code == 0 or done.output, words
        assert len(done.output) < 100_000 + len(value), words
