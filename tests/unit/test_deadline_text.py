"""The deadline report as text, and the table that follows a drive in a terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from bellcrank.cli import drive, screen
from bellcrank.sim.realtime import deadlines as text

TIMES = {"count": 6, "min": 5e-7, "mean": 2e-6, "p50": 1e-6, "p99": 9e-6, "max": 9.5e-6}
BINS = {"edges": [5e-7, 6e-7, 1e-6, 2e-6, 4e-6, 8e-6, 16e-6], "counts": [1, 2, 2, 0, 0, 1]}
LOG = [
    {"time": 1.5, "late": 1.2e-3, "cost": 1e-6, "skipped": 0},
    {"time": 2.25, "late": 0.1, "cost": 3e-6, "skipped": 94},
]
REPORT: dict[str, Any] = {
    "period": 1e-3, "predicted": 0.6e-6, "measured": TIMES | {"histogram": BINS}, "jitter": TIMES, "steps": 6000,
    "overruns": 2, "skipped": 94, "caught_up": 1, "lost_rows": 0, "real_time_factor": 0.98, "log": LOG,
    "notes": ["no SCHED_FIFO"],
}  # fmt: skip


def test_the_whole_report() -> None:
    found = text.full_text(REPORT)
    assert "a period took         0.60  0.50  2.00  1.00  9.00  9.50" in found
    assert "6000 steps in periods of 1000 us; real-time factor 0.9800" in found
    assert "2 periods ended late: 1 caught up; 1 skipped 94 periods" in found
    assert "1.500 s              1200      1.00  caught up" in found
    assert "2.250 s            100000      3.00  skipped 94 periods" in found
    assert found.endswith("note: no SCHED_FIFO")


def test_the_counts_of_late_periods_add_up() -> None:
    report = REPORT | {"overruns": 3, "caught_up": 3, "skipped": 0}
    assert text.count_lines(report)[1] == "3 periods ended late: 3 caught up"
    assert text.count_lines(report | {"overruns": 0, "caught_up": 0})[1] == "0 periods ended late"
    assert text.count_lines(report | {"caught_up": 0, "skipped": 1})[1] == "3 periods ended late: 3 skipped 1 period"


def test_bars_have_all_counts_and_the_longest_is_full() -> None:
    bars = text.histogram(REPORT, "a period took", "measured").splitlines()[1:]
    assert [line.split()[:3] for line in bars] == [
        ["0.50", "us", "3"], ["1.00", "us", "2"], ["2.00", "us", "0"], ["4.00", "us", "0"], ["8.00", "us", "1"],
    ]  # fmt: skip
    assert [line.count("#") for line in bars] == [40, 27, 0, 0, 13]
    assert text.histogram(REPORT, "woke up late by", "jitter") == ""


def test_newest_of_many_late_periods_are_printed() -> None:
    found = text.overruns(REPORT | {"overruns": 40, "log": [LOG[0] | {"time": float(k)} for k in range(40)]})
    assert "the newest 8 of 40" in found
    assert "39.000 s" in found
    assert "31.000 s" not in found


def test_a_report_with_nothing_in_it() -> None:
    assert "0 periods ended late" in text.full_text({})


class Terminal:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
        self.file, self.now = io.StringIO(), 0.0
        console = Console(file=self.file, force_terminal=terminal, width=100, color_system=None)
        monkeypatch.setattr(screen, "stdout_console", lambda: console)

    def watched(self, looks: int) -> str:
        with drive.live_line(lambda: self.now) as watch:
            for _ in range(looks):
                self.now += 0.25
                watch(self.now, "dig drives", lambda: REPORT)
        return self.file.getvalue()


def test_terminal_table_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Terminal(monkeypatch, True).watched(4)
    assert found.count("woke up late by") >= 4
    assert "1.0 s  dig drives" in found
    assert "\x1b[2K" in found  # the table is wiped


def test_progress_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Terminal(monkeypatch, False).watched(61).splitlines()
    assert [line.split()[0] for line in lines] == ["5", "10", "15"]
    assert "0.60 predicted" in lines[0]
    assert "skipped 94 periods" in lines[0]
