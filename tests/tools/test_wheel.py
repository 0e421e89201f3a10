"""The wheel is complete, contains nothing else, and works with only its dependencies installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import bellcrank
from prose import ROOT

LARGEST = 3e6  # bytes
PAGE = ROOT / "src/bellcrank/cockpit/static/cockpit.js"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    to = tmp_path_factory.mktemp("dist")
    more = {} if PAGE.is_file() else {"BELLCRANK_WITHOUT_PAGE": "1"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(to)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | more, capture_output=True, text=True)
    if "older than web/" in done.stderr:
        pytest.skip("the page is older than its sources: make page")
    assert done.returncode == 0, done.stderr
    (made,) = to.glob("*.whl")
    return made


def test_wheel_is_complete_and_small(wheel: Path) -> None:
    assert wheel.name == f"bellcrank-{bellcrank.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < LARGEST
    inside = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src"
    there = {
        p.relative_to(package).as_posix() for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts
    }
    assert there - inside == set()
    assert "bellcrank/py.typed" in inside
    strange = {name for name in inside if not name.startswith(("bellcrank/", f"bellcrank-{bellcrank.__version__}."))}
    assert strange == set()


def test_wheel_works_without_the_sources(wheel: Path, tmp_path: Path) -> None:
    """The unpacked wheel works with its dependencies, without the sources and without tools on the path."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    others = [p for p in sys.path if p and Path(p).resolve() not in (ROOT / "src", ROOT / "tests", ROOT)]
    code = "import sys; sys.argv = ['bellcrank', 'doctor']; from bellcrank.cli import main; main()"
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), *others]), "PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(tmp_path / "site/bellcrank") in "".join(done.stdout.split())
