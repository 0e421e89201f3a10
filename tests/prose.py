"""Helpers for the tests of README.md and docs/: the code blocks of a page, and running them.

With BELLCRANK_UPDATE=1 the output of the commands is written into the page instead of compared with it.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
UPDATE = bool(os.environ.get("BELLCRANK_UPDATE"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECKED = re.compile(r"^((\S.*?)\s+# -> (.*))$", re.MULTILINE)
COLUMNS = 112
MEASURED = re.compile(r"\d+\.\d (ns|kB)")  # differs from computer to computer, and from run to run


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in FENCE.findall(page.read_text("utf-8")) if kind == language]


def run_python(page: Path) -> None:
    """Run a page's Python from top to bottom; `expression  # -> text` must print as that text."""
    scope: dict[str, Any] = {"__name__": "page"}
    text = page.read_text("utf-8")
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), scope)
        for line, expression, shown in CHECKED.findall(block):
            printed = str(eval(expression, scope))
            if UPDATE:
                text = text.replace(line, line.removesuffix(shown) + printed)
                continue
            assert printed == shown, f"{page.name}: {expression} is {printed} (BELLCRANK_UPDATE=1 writes that)"
    if UPDATE:
        page.write_text(text, "utf-8")


def run_console(page: Path, folder: Path) -> None:
    """Run a page's `$ commands`; their output must equal the text on the page.

    Spaces, times and sizes may differ, and `...` stands for anything.
    """
    text = page.read_text("utf-8")
    for block in blocks(page, "console"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            printed = shell(command, folder)
            if UPDATE and shown.strip() and "..." not in shown:
                gap = "\n" if shown.endswith("\n\n") else ""
                text = text.replace(f"$ {command}\n{shown}", f"$ {command}\n{printed}{gap}")
                continue
            if shown.strip():
                flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
                expected, got = (
                    re.sub(r"-{5,}", "-----", MEASURED.sub(r"# \1", x)).strip() + "\n" for x in (shown, printed)
                )
                same = doctest.OutputChecker().check_output(expected, got, flags)
                assert same, f"{page.name}: {command} prints\n{printed}\n(BELLCRANK_UPDATE=1 writes it into the page)"
    if UPDATE:
        page.write_text(text, "utf-8")


def lasting(text: str) -> str:
    """Return the part of the text that is the same on every computer."""
    return re.sub(r"-{5,}", "-----", MEASURED.sub(r"# \1", text)).strip() + "\n"


def shell(command: str, folder: Path) -> str:
    bellcrank = f'bellcrank() {{ "{sys.executable}" -m bellcrank "$@"; }}\npython() {{ "{sys.executable}" "$@"; }}\n'
    env = os.environ | {"COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(["bash", "-c", bellcrank + command], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout
