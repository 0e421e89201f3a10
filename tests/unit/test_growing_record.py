"""A record that is written while a drive runs loses at most a second, however the process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.record.formats.mcap import GrowingRecord

pytest.importorskip("mcap", reason="mcap is not installed")
DRIVE = """
import sys, time
import bellcrank as bc
drive = bc.Drive(bc.zoo.chain(2), 500.0, record=sys.argv[1])
drive.start()
while True:
    print(drive.snapshot().t, flush=True)
    time.sleep(0.05)
"""


def same(a: bc.Record, b: bc.Record) -> None:
    assert a.columns == b.columns
    for name in a.columns:
        np.testing.assert_array_equal(a[name], b[name])


def test_written_file_equals_the_record(tmp_path: Path) -> None:
    drive = bc.Drive(bc.zoo.chain(2), 1000.0, record=tmp_path / "a.mcap")
    for k in range(2):  # a reset starts another file
        drive.start()
        time.sleep(0.6)
        drive.stop()
        found = bc.load_record(tmp_path / ("a.mcap" if k == 0 else "a-2.mcap"))
        same(drive.record(), found)
        assert found.sealed
        assert found.stops[0].reason == "end"
        assert found.mechanism is not None
        drive.reset()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a-2.mcap", "a.mcap"]


def test_more_than_memory_keeps(tmp_path: Path) -> None:
    drive = bc.Drive(bc.zoo.chain(1), 1000.0, record=tmp_path / "a.mcap", keep=0.1)
    drive.start()
    time.sleep(0.8)
    drive.stop()
    assert len(drive.record()) < 400 < len(bc.load_record(tmp_path / "a.mcap"))


def test_every_end_of_a_file_that_was_not_closed(tmp_path: Path) -> None:
    """A file that is cut anywhere still gives all rows up to the last whole chunk, bit by bit."""
    run = bc.simulate(bc.zoo.chain(1), seconds=0.4, step=1e-3, every=1e-3)
    parts = [run.between(a, b) for a, b in ((0.0, 0.0995), (0.0995, 0.1995), (0.1995, 0.2995))]
    file = GrowingRecord(tmp_path / "a.mcap", parts[0], 1000.0)
    file._writer._Writer__chunk_size = 4000  # type: ignore[attr-defined]  # a few chunks in a short run
    for part in parts[1:]:
        file.add(part)
    whole = (tmp_path / "a.mcap").read_bytes()
    file._stream.close()
    read, before = set(), 0
    for cut in range(2000, len(whole), 97):
        (tmp_path / "b.mcap").write_bytes(whole[:cut])
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                found = bc.load_record(tmp_path / "b.mcap")
        except bc.ReadError:  # even the description is incomplete
            assert before == 0
            continue
        assert "was not closed: it ends at t" in str(told[0].message)
        assert len(found) >= before
        before = len(found)
        read.add(before)
        for name in run.columns:
            np.testing.assert_array_equal(found[name], run[name][:before])
        assert found.stops[0].reason == "interrupted"
    assert len(read) > 3


def test_a_closed_file_that_was_damaged_is_refused(tmp_path: Path) -> None:
    run = bc.simulate(bc.zoo.chain(1), seconds=0.1)
    file = GrowingRecord(tmp_path / "a.mcap", run, 1000.0)
    file.finish(run)
    same(bc.load_record(tmp_path / "a.mcap"), run)
    good, rng = (tmp_path / "a.mcap").read_bytes(), np.random.default_rng(0)
    for _ in range(60):
        bad = bytearray(good)
        bad[rng.integers(len(bad))] ^= 1 << rng.integers(8)
        (tmp_path / "b.mcap").write_bytes(bad)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = bc.load_record(tmp_path / "b.mcap")
            except bc.ReadError:
                continue
        n = len(found)
        assert n == len(run) or not found.sealed
        for name in found.columns:
            np.testing.assert_array_equal(found[name], run[name][:n])


@pytest.mark.parametrize("kind", ["SIGKILL", "SIGTERM"])
def test_a_killed_process_loses_at_most_a_second(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.mcap"
    process = subprocess.Popen([sys.executable, "-c", DRIVE, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    t = 0.0
    for line in process.stdout:
        t = float(line)
        if t > 1.8:
            break
    process.send_signal(getattr(signal, kind))
    process.wait(20)
    process.stdout.close()
    with pytest.warns(UserWarning, match="was not closed"):
        found = bc.load_record(path)
    assert found.t[-1] > t - 1.2  # the printed time is a moment old, and the machine may be busy
    np.testing.assert_allclose(np.diff(found.t), 1 / 500, rtol=1e-9)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there are no such signals")
@pytest.mark.parametrize("kind", ["SIGTERM", "SIGHUP"])
def test_the_command_ends_with_report_and_record(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("starlette", reason="the extra cockpit is not installed")
    path = tmp_path / "run.mcap"
    command = [sys.executable, "-m", "bellcrank", "drive", "pendulum", "--port", "0", "--no-browser", "--record", path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ)
    assert process.stdout is not None
    for line in process.stdout:
        if "Ctrl-C ends it" in line:
            break
    end = time.monotonic() + 20.0
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(getattr(signal, kind))
    said = process.stdout.read()
    process.stdout.close()
    assert process.wait(20) == 0
    assert "deadline" in said or "period" in said
    assert "run.mcap" in said
    assert bc.load_record(path).sealed


def test_unwritable_record_raises_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "there.mcap").write_text("")
    for name, message in (
        ("a.csv", "ends in .mcap"),
        ("there.mcap", "exists already"),
        ("none/a.mcap", "there is no folder"),
    ):
        with pytest.raises(bc.InputError, match=message):
            bc.Drive(bc.zoo.chain(1), record=tmp_path / name)


def test_a_full_disk_stops_the_file_and_not_the_drive(tmp_path: Path, monkeypatch: Any) -> None:
    def full(self: Any, rows: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(GrowingRecord, "add", full)
    drive = bc.Drive(bc.zoo.chain(1), 1000.0, record=tmp_path / "a.mcap")
    drive.start()
    time.sleep(0.8)
    with pytest.warns(RuntimeWarning, match="to its file has stopped.*No space left"):
        drive.stop()
    assert len(drive.record()) > 400
