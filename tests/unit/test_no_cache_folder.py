"""Without a writable cache folder everything works, compiles every time, and prints one line about it."""

from __future__ import annotations

import pwd
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bellcrank as bc
from bellcrank.cli import app
from bellcrank.emit import cache

FOLDERS = {
    "no home, not in passwd": {"HOME": None},
    "an empty home": {"HOME": ""},
    "a relative home": {"HOME": "somewhere"},
    "5000 letters": {"BELLCRANK_CACHE": "/tmp/" + "a" * 5000},
    "a part of 300 letters": {"BELLCRANK_CACHE": "/tmp/" + "a" * 300},
    "inside a file": {"BELLCRANK_CACHE": f"{__file__}/cache"},
    "a file": {"BELLCRANK_CACHE": __file__},
    "a device": {"BELLCRANK_CACHE": "/dev/null"},
    "a link to itself": {"BELLCRANK_CACHE": "LOOP"},
    "not text": {"BELLCRANK_CACHE": "/tmp/\udcff\udcfe" + "b" * 300},
}
COMMANDS = ("doctor", "cache", "cache --json", "cache --clear", "count pendulum", "simulate pendulum --seconds 0.01")


def nobody(uid: int) -> pwd.struct_passwd:
    raise KeyError(f"uid not found: {uid}")


@pytest.fixture(params=FOLDERS)
def nowhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for name in ("BELLCRANK_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, value in FOLDERS[request.param].items():
        if value is not None:
            monkeypatch.setenv(name, value.replace("LOOP", str(tmp_path / "loop")))
    monkeypatch.setattr(cache, "_warned", set())
    return request.param


def test_kernels_compile_without_a_cache_with_one_warning(nowhere: str) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for scale in (1.0, 2.0):
            kernel = bc.compile(lambda x, a=scale: {"y": a * x[0] + len(nowhere)}, inputs={"x": 1})
            assert kernel(np.array([2.0])) == 2.0 * scale + len(nowhere)
            assert not kernel.from_cache
        assert list(cache.cache_files()) == []
        assert cache.clear() == 0
    mine = [str(w.message) for w in told if "compiled code" in str(w.message)]
    assert len(mine) == 1
    assert all(len(text) < 500 and "BELLCRANK_CACHE" in text for text in mine)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_works_without_a_cache(nowhere: str, command: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner(env={"COLUMNS": "100"}).invoke(app, command.split())
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code == 0, result.output


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers are Linux")
def test_a_process_of_such_a_user(tmp_path: Path) -> None:
    """A process without any of the environment variables runs, as in a container."""
    code = "import pwd\ndef no(uid): raise KeyError(uid)\npwd.getpwuid = no\n"
    code += "import bellcrank as bc\nprint(bc.zoo.chain(1).mass_matrix([0.0]).shape)"
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(bc.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "(1, 1)", done.stderr
    assert done.stderr.count("compiled code cannot be cached") == 1
    assert list(tmp_path.iterdir()) == []
