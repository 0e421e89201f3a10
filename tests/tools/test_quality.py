"""Linter and type checker, as tests: what they find is a failure like any other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-6000:]}{done.stderr[-2000:]}"


def test_ruff() -> None:
    run("ruff", "check", "--output-format=concise", "src", "tests", *(["bench"] if (ROOT / "bench").is_dir() else []))


def test_mypy_strict() -> None:
    run("mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), "-p", "bellcrank")


def test_types_of_the_page() -> None:
    compiler = ROOT / "web/node_modules/.bin/tsc"
    if not compiler.exists():
        pytest.skip("the page's packages are not installed: make page")
    done = subprocess.run([compiler, "--noEmit"], cwd=ROOT / "web", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:]
