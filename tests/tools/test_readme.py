"""README.md runs from top to bottom, prints what it says, and names what there is."""

from __future__ import annotations

from pathlib import Path

from bellcrank.dynamics import METHODS, QUANTITIES
from prose import ROOT, run_console, run_python

README = ROOT / "README.md"


def test_python() -> None:
    run_python(README)


def test_commands(tmp_path: Path) -> None:
    run_console(README, tmp_path)


def test_the_table_of_methods_is_complete() -> None:
    rows = [line for line in README.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == list(METHODS)
    for row, method in zip(rows, METHODS.values(), strict=True):
        assert method.topology in row
        assert method.citation.rpartition(", ")[2].rstrip(".") in row
        assert "everything else" in row or ", ".join(method.solves) in row


def test_every_quantity_is_mentioned() -> None:
    text = README.read_text("utf-8")
    assert [name for name in QUANTITIES if f"`{name}`" not in text] == []


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("run", "test", "bench"):
        assert f"make {target}" in README.read_text("utf-8")
        assert f"\n{target}:" in makefile
