"""Linter, type checker and a limit on branches run as tests."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BRANCHES = 20  # limit for a function, including inner functions


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-6000:]}{done.stderr[-2000:]}"


def test_ruff() -> None:
    folders = [name for name in ("src", "tests", "docs", "bench") if (ROOT / name).is_dir()]
    run("ruff", "check", "--output-format=concise", *folders)


def test_mypy_strict() -> None:
    run("mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), "-p", "bellcrank")


def test_types_of_the_page() -> None:
    compiler = ROOT / "web/node_modules/.bin/tsc"
    if not compiler.exists():
        pytest.skip("the page's packages are not installed: make page")
    done = subprocess.run([compiler, "--noEmit"], cwd=ROOT / "web", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:]


def branches(function: ast.AST) -> int:
    """Return McCabe's number as radon counts it: one, plus one for each branch."""
    count = 1
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.IfExp | ast.ExceptHandler | ast.Assert | ast.match_case):
            count += 1
        elif isinstance(node, ast.For | ast.While):
            count += 1 + bool(node.orelse)
        elif isinstance(node, ast.Try):
            count += bool(node.orelse)
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
    return count


def test_functions_are_simple() -> None:
    found = {}
    for path in sorted((ROOT / "src/bellcrank").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (n := branches(node)) > BRANCHES:
                found[path.relative_to(ROOT / "src/bellcrank").as_posix(), node.name] = n
    assert not found, f"more than {BRANCHES} branches; divide them where the idea divides: {found}"


def test_branches_are_counted() -> None:
    """Branches are counted, including those of inner functions.

    One, then: for, its else, if, and, a comprehension, its if, except, and an if inside an inner function.
    """
    code = "def f(x):\n for a in x:\n  if a and x: pass\n else: [b for b in x if b]\n"
    code += " try: pass\n except E: pass\n def g():\n  if x: pass\n"
    assert branches(ast.parse(code)) == 9
