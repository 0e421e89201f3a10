"""Substitutes for Linux features on macOS and Windows, emulated here: clocks, memory, priorities, renames."""

from __future__ import annotations

import builtins
import ctypes
import errno
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import buffers, files
from bellcrank.emit.cpu import machine_code
from bellcrank.sim.realtime import realtime_memory


def test_a_drive_by_pythons_clock_is_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime_memory.sys, "platform", "darwin")
    clock = realtime_memory.default_clock()
    assert clock is not None
    monkeypatch.undo()
    arm = bc.zoo.pendulum()
    began = time.monotonic()
    driven = bc.drive(arm, rate=100, seconds=1.0, q0=[0.5], clock=clock)
    assert time.monotonic() - began > 0.1
    run = bc.simulate(arm, seconds=float(driven.t[-1]), q0=[0.5], step=1 / 100)
    rows = np.rint(driven.t * 100).astype(int)
    assert len(driven) > 2  # on a busy computer periods are skipped
    assert np.allclose(driven.q, run.q[rows], atol=1e-12)


def test_linux_uses_the_system_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime_memory.sys, "platform", "linux")
    assert realtime_memory.default_clock() is None


def test_a_clock_waits_until_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime_memory.sys, "platform", "win32")
    clock = realtime_memory.default_clock()
    assert clock is not None
    until = clock.now() + 20_000_000
    clock.sleep(until)
    assert clock.now() >= until
    clock.sleep(until)  # already over


def test_code_with_missing_system_functions_is_loaded() -> None:
    address = ctypes.cast(machine_code.MISSING_FUNCTION, ctypes.c_void_p).value
    assert address
    assert ctypes.CFUNCTYPE(ctypes.c_int)(address)() == -1


def test_windows_has_its_c_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(machine_code.ctypes, "CDLL", lambda name: asked.append(name))
    monkeypatch.setattr(machine_code.sys, "platform", "win32")
    machine_code._c_library()
    assert asked == ["ucrtbase"]


def test_memory_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError(errno.ENOENT, "there is no /proc")

    here = buffers.free_memory()
    monkeypatch.setattr(builtins, "open", absent)
    total = buffers.free_memory()
    assert 0 < here <= total < float("inf")
    monkeypatch.delattr(os, "sysconf")
    assert buffers.free_memory() == float("inf")


def test_system_without_priorities_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless(*_: Any, **__: Any) -> Any:
        raise TypeError("bad argument type for built-in operation")  # as Windows raises it for CDLL(None)

    for name in ("sched_setscheduler", "sched_getaffinity", "sched_setaffinity"):
        monkeypatch.delattr(os, name)
    monkeypatch.setattr(realtime_memory.ctypes, "CDLL", nameless)
    with realtime_memory.realtime_priority() as notes:
        told = "\n".join(notes)
    assert "no SCHED_FIFO" in told
    assert "memory is not locked" in told
    assert "not pinned to a core" in told


def test_a_rename_waits_for_a_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tries = []
    real = os.replace

    def busy(a: Any, b: Any) -> None:
        tries.append(a)
        if len(tries) < 4:
            raise PermissionError(errno.EACCES, "another process has it open")
        real(a, b)

    (tmp_path / "new").write_text("x")
    monkeypatch.setattr(files.os, "replace", busy)
    with pytest.raises(PermissionError):
        files.replace(tmp_path / "new", tmp_path / "old")  # on other systems that is an error at once
    monkeypatch.setattr(files.os, "name", "nt")
    monkeypatch.setattr(files, "RENAME_PAUSE_SECONDS", 0.0)
    files.replace(tmp_path / "new", tmp_path / "old")
    monkeypatch.undo()
    assert (tmp_path / "old").read_text() == "x"
