"""The lines at the end of a run that list what was not tested."""

from __future__ import annotations

from skips import summary

PAGES, GPU = "Skipped: no Chromium is installed", 'Skipped: target="cuda" needs CuPy, which cannot be imported (why).'


def test_each_reason_has_a_line_with_count_and_remedy() -> None:
    assert summary([GPU, PAGES, PAGES]) == [
        "   2 tests: no Chromium is installed [a Chromium or Chrome on the PATH; on Debian: apt install chromium]",
        """   1 test: target="cuda" needs CuPy [a computer with an NVIDIA GPU, and pip install -e '.[cuda]']""",
    ]


def test_unknown_reasons_are_listed() -> None:
    assert summary(["Skipped: affinity", "Skipped: could not import 'pinocchio': No module named 'pinocchio'"]) == [
        "   1 test: affinity [another system or processor]",
        "   1 test: could not import 'pinocchio': No module named 'pinocchio'"
        " [make test installs it; by hand: pip install -e '.[dev]']",
    ]


def test_no_skips_give_no_lines() -> None:
    assert summary([]) == []
