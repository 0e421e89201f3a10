"""A study whose workers and then the command are killed gives the same rows, bit for bit, none missing, none twice."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.studies.dask_engine import chunk_table
from bellcrank.studies.sampling_plans import points
from bellcrank.studies.study_setup import study_setup

pytest.importorskip("distributed")
psutil = pytest.importorskip("psutil")
pq = pytest.importorskip("pyarrow.parquet")

TEXT = """
mechanism = "puma600"
seconds = 1.0
step = 1e-3
runs = {runs}
chunk = {chunk}
workers = 2
summary = ["max(joint1.v)", "min(joint2.v)", "rms(joint3.v)", "final(energy)"]
to = "out"
[over]
"joint1.v" = {{ uniform = [-1.0, 1.0] }}
"link3.mass" = {{ uniform = [1.0, 6.0] }}
"""


@contextlib.contextmanager
def command(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command; end it and all its child processes and pipes afterwards, whatever happens."""
    made = subprocess.Popen(
        [sys.executable, "-m", "bellcrank", "study", str(folder / "study.toml"), "--no-page"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    with made:
        try:
            yield made
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(made.pid, signal.SIGKILL)  # scheduler, nannies, workers


def workers(pid: int) -> list[int]:
    """Return the processes in which chunks run: those that a nanny of the command started."""
    try:
        family = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    found = []
    for p in family:
        try:
            if "spawn_main" in " ".join(p.cmdline()):
                found.append(p.pid)
        except psutil.Error:
            continue
    return found


def files(folder: Path) -> int:
    return len(list((folder / "out/runs").glob("*.parquet"))) if (folder / "out/runs").exists() else 0


def wait_for(n: int, folder: Path, process: subprocess.Popen[bytes], seconds: float) -> None:
    end = time.monotonic() + seconds
    while files(folder) < n and process.poll() is None:
        assert time.monotonic() < end, "nothing was computed in time"
        time.sleep(0.05)


@pytest.mark.parametrize(("runs", "chunk", "kills"), [(4096, 256, 2), (60000, 1000, 8)])
def test_killed_workers_and_a_killed_command(runs: int, chunk: int, kills: int, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(TEXT.format(runs=runs, chunk=chunk))
    with command(tmp_path) as first:
        for k in range(kills):
            wait_for(1 + k, tmp_path, first, 120)
            for pid in workers(first.pid)[:1]:
                os.kill(pid, signal.SIGKILL)
        wait_for(kills + 1, tmp_path, first, 120)
        assert first.poll() is None, first.communicate()[1].decode()[-2000:]
    there = files(tmp_path)
    assert 0 < there < runs // chunk
    with command(tmp_path) as second:
        _, err = second.communicate(timeout=300)
        assert second.returncode == 0, err.decode()[-2000:]

    found = pq.read_table(tmp_path / "out/runs").sort_by("run")
    over = {"joint1.v": bc.uniform(-1.0, 1.0), "link3.mass": bc.uniform(1.0, 6.0)}
    made = points(over, runs, None, 0)
    asked = ("max(joint1.v)", "min(joint2.v)", "rms(joint3.v)", "final(energy)")
    rest = {"seconds": 1.0, "given": {}, "summary": asked, "keep": None, "seed": 0}
    few = min(runs, 4096)
    alone = chunk_table(study_setup(bc.zoo.puma600(), made, {"step": 1e-3}, **rest), {}, 0, made.part(0, few))
    assert found.column("run").to_pylist() == list(range(runs))
    for name in (*over, *asked):
        assert np.array_equal(found.column(name).to_numpy()[:few], alone[name])


def test_orphans_end(tmp_path: Path) -> None:
    """Workers whose command is gone end by themselves."""
    (tmp_path / "study.toml").write_text(TEXT.format(runs=400000, chunk=4000))
    with command(tmp_path) as made:
        wait_for(1, tmp_path, made, 120)
        family = psutil.Process(made.pid).children(recursive=True)
        made.kill()
        made.communicate()
        _, alive = psutil.wait_procs(family, timeout=60)
        assert alive == []
