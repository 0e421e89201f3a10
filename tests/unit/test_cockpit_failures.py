"""A session with the real drive survives failing physics, a record without rows, and locked memory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bellcrank as bc

pytest.importorskip("starlette", reason="the extra cockpit is not installed")
pytest.importorskip("httpx2", reason="starlette's test client needs httpx2")

from starlette.testclient import TestClient

from bellcrank.cli.drive import drive_factory
from bellcrank.cockpit import messages
from bellcrank.cockpit.app import application
from bellcrank.cockpit.guard import Guard
from bellcrank.cockpit.machines import generic
from bellcrank.cockpit.session import Session, Settings
from trees import few

KEY = {"Authorization": "Bearer mine"}


def until(what: Callable[[], Any]) -> bool:
    end = time.monotonic() + 20.0
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.01)
    return False


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(generic(bc.zoo.chain(2)), drive_factory(), Settings(1000, "rk4"))


def fails(session: Session) -> bool:
    """Make the physics fail with too long a step, and wait for it."""
    drive = session.drive
    drive.reset(v0=np.full(2, 1e200))
    drive.start()
    return until(lambda: drive.snapshot().status == "failed")


@pytest.mark.parametrize(
    "acts", [["reset"], ["pause", "reset", "resume"], ["pause", "resume", "reset"], ["step", "reset"]]
)
def test_reset_restarts_a_failed_drive(session: Session, acts: list[str]) -> None:
    """A reset restarts a failed drive; once the page showed a running drive while nothing moved."""
    session.start()
    session.resume()
    try:
        assert fails(session)
        assert not session.current_settings()["running"]
        for act in acts:
            getattr(session, act)()
            assert session.current_settings()["running"] == (session.drive.snapshot().status == "running")
        session.resume()
        begun = session.drive.snapshot().t
        assert until(lambda: session.drive.snapshot().t > begun + 0.05)
        assert session.current_settings()["running"]
        assert session.drive.snapshot().status == "running"
    finally:
        session.stop()


COMMANDS = ("start", "stop", "pause", "resume", "step", "reset", "switch")


@few(12)
@given(st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=8))
@example(["start", "stop", "resume"])
@example(["start", "stop", "reset", "resume"])
@example(["start", "pause", "stop", "start"])
@example(["start", "pause", "switch", "resume", "stop", "switch", "reset"])
def test_session_reports_the_state_of_the_drive_after_any_commands(session: Session, commands: list[str]) -> None:
    """The session reports that the drive runs exactly if it does, as the commands require."""
    session.start()
    started, paused = True, False
    try:
        for command in commands:
            if command == "switch":
                session.switch(rate=500.0 if session.settings.rate == 1000.0 else 1000.0)
            else:
                getattr(session, command)()
            started = {"start": True, "stop": False}.get(command, started)
            paused = {"start": False, "resume": False, "pause": True, "step": True}.get(command, paused)
            status = session.drive.snapshot().status
            assert status == ("stopped" if not started else "paused" if paused else "running")
            assert session.current_settings()["running"] == (status == "running")
            flags = messages.HEADER.unpack_from(session.frame(0, 1))[1]
            assert bool(flags & messages.RUNNING) == (status == "running")
    finally:
        session.stop()


def test_reset_of_a_paused_drive_stays_paused(session: Session) -> None:
    session.start()
    try:
        assert fails(session)
        session.pause()
        session.reset()
        assert not session.current_settings()["running"]
        time.sleep(0.1)
        assert session.drive.snapshot().t < 0.05
    finally:
        session.stop()


@pytest.mark.parametrize("path", ["/replay", "/record.csv", "/record.npz", "/record.parquet", "/record.mcap"])
def test_a_record_without_rows_is_a_file_without_rows(session: Session, path: str, tmp_path: Path) -> None:
    """A record without rows is saved as a file without rows.

    Pause, Reset and an immediate download once ended in a traceback.
    """
    with TestClient(application(session, Guard(token="mine")), base_url="http://127.0.0.1:8731") as client:
        session.pause()
        until(lambda: session.drive.snapshot().status == "paused")
        session.reset()
        for span in ("", "?from=5&to=6", "?from=6&to=5"):
            answer = client.get(path + span, headers=KEY)
            assert answer.status_code in (200, 400), answer.text
            assert "Traceback" not in answer.text
            if path != "/replay" and answer.status_code == 200:
                (tmp_path / path[1:]).write_bytes(answer.content)
                assert len(bc.load_record(tmp_path / path[1:])) <= 2


def test_only_touched_memory_is_locked() -> None:
    """Locking memory locks only touched pages.

    After a library had reserved a gigabyte, a start of the loop once fetched all of it.
    """
    program = (
        "import mmap, resource\n"
        "from bellcrank.sim.realtime.realtime_memory import _lock_memory\n"
        "kept = mmap.mmap(-1, 1 << 30)\n"
        "def resident():\n    return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize()\n"
        "before = resident()\n"
        "try:\n    _lock_memory()\nexcept OSError as error:\n    print('not permitted', error)\n"
        "else:\n    print(resident() - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    if "not permitted" in done.stdout:
        pytest.skip("memory may not be locked here")
    assert int(done.stdout) < 200 << 20
