"""Theoretical and measured O(log n) depth: the tables of `bellcrank papers depth`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bellcrank.papers import fijany


def test_critical_paths_and_measured_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fijany, "JOINT_COUNTS", (4, 8, 16))
    monkeypatch.setattr(fijany, "MEASUREMENTS_FILE", tmp_path / "depth.json")
    result = fijany.critical_paths()
    paths, times = result.tables
    assert [row[0] for row in paths.rows] == ["4", "8", "16"]
    assert float(paths.rows[2][2]) < float(paths.rows[2][1])  # dca is shorter than aba from 16 joints on
    assert "not yet" in times.title
    row = {"bodies": 1000, "one_core_us": 50.0, "gpu_us": 20.0, "off": 1e-13, "phases": 7}
    fijany.MEASUREMENTS_FILE.write_text(json.dumps({"gpu": "a GPU", "rows": [row]}), "utf-8")
    assert fijany.measured_times().rows == (("1,000", "50 us", "20 us", "2.5", "7", "1e-13"),)


def test_stored_times_are_of_an_h200() -> None:
    data = json.loads(fijany.MEASUREMENTS_FILE.read_text("utf-8"))
    assert data["gpu"] == "NVIDIA H200"
    assert all(row["off"] < 1e-10 for row in data["rows"])
