"""README.md runs from top to bottom, prints the output that it shows, and fits on two screens."""

from __future__ import annotations

from pathlib import Path

from prose import ROOT, run_console, run_python

README = ROOT / "README.md"
SCREENS = 2 * 45  # lines


def test_python() -> None:
    run_python(README)


def test_commands(tmp_path: Path) -> None:
    run_console(README, tmp_path)


def test_readme_fits_two_screens() -> None:
    """README.md fits on two screens; longer text belongs into docs/."""
    assert len(README.read_text("utf-8").splitlines()) <= SCREENS


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in ("run", "test", "bench", "docs"):
        assert f"make {target}" in README.read_text("utf-8")
        assert f"\n{target}:" in makefile


def test_readme_speeds_equal_those_of_the_page() -> None:
    """Every speed of the table in README.md is on the page with all speeds."""
    page = (ROOT / "docs/speed.md").read_text("utf-8")
    rows = [line for line in README.read_text("utf-8").splitlines() if "ns | " in line and line.count("|") == 5]
    assert len(rows) == 4
    for ours, theirs in ((row.split("|")[2].strip(), row.split("|")[3].strip()) for row in rows[:3]):
        assert f"{ours} |" in page
        assert f"({theirs.removesuffix(' ns')}) ns" in page
