"""The lines at the end of a run that list what was not tested."""

from __future__ import annotations

from skips import summary

PAGES, GPU = "Skipped: no Chromium is installed", 'Skipped: target="cuda" needs CuPy, which cannot be imported (why).'


def test_a_line_for_each_reason_with_its_count_and_what_would_bring_it() -> None:
    assert summary([GPU, PAGES, PAGES]) == [
        "   2 tests: no Chromium is installed [a Chromium or Chrome on the PATH; on Debian: apt install chromium]",
        """   1 test: target="cuda" needs CuPy [a computer with an NVIDIA GPU, and pip install -e '.[cuda]']""",
    ]


def test_whatever_is_not_known_is_told_as_well() -> None:
    assert summary(["Skipped: affinity", "Skipped: could not import 'pinocchio': No module named 'pinocchio'"]) == [
        "   1 test: affinity [another system or processor]",
        "   1 test: could not import 'pinocchio': No module named 'pinocchio'"
        " [make test installs it; by hand: pip install -e '.[dev]']",
    ]


def test_nothing_skipped_is_nothing_said() -> None:
    assert summary([]) == []
