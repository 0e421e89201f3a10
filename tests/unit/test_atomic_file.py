"""Files are written completely or not at all, with any number of writers."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import bellcrank as bc
from bellcrank.files import write_atomically, write_text
from bellcrank.record import Column, Record


def test_many_threads_and_one_path(tmp_path: Path) -> None:
    """Many threads write different contents slowly to one path; the file always holds one of them completely."""
    path, seen, wrong = tmp_path / "x.csv", threading.Event(), list[str]()

    def written(k: int) -> None:
        for _ in range(20):
            write_atomically(path, lambda stream: [stream.write(b"%d\n" % k) for _ in range(500)], "Try again")

    def looking() -> None:
        while not seen.is_set():
            if path.exists():
                lines = path.read_bytes().split(b"\n")
                if len(lines) != 501 or len(set(lines[:-1])) != 1:
                    wrong.append(f"{len(lines)} lines of {len(set(lines))}")

    threads = [threading.Thread(target=written, args=(k,)) for k in range(4)]
    watch = threading.Thread(target=looking)
    for thread in (watch, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    seen.set()
    watch.join()
    assert wrong == []
    assert os.listdir(tmp_path) == ["x.csv"]


@pytest.mark.parametrize("kind", [".csv", ".npz"])
def test_two_threads_save_a_record(tmp_path: Path, kind: str) -> None:
    t = np.linspace(0.0, 1.0, 2000)
    runs = [Record({"t": Column("t", "s", t), "x": Column("x", "m", t + k)}) for k in range(2)]
    threads = [threading.Thread(target=lambda r=r: [r.save(tmp_path / f"x{kind}") for _ in range(8)]) for r in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bc.load_record(tmp_path / f"x{kind}")["x"][0] in (0.0, 1.0)
    assert os.listdir(tmp_path) == [f"x{kind}"]


def test_a_link_that_waits_beside_is_not_written_through(tmp_path: Path) -> None:
    """A symbolic link beside the file is never written through, because the temporary name cannot be guessed."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".x.txt.{os.getpid()}.part").symlink_to(victim)
    write_text(tmp_path / "x.txt", "text", "Try again")
    assert victim.read_text() == "mine"
    assert (tmp_path / "x.txt").read_text() == "text"


def test_failed_write_leaves_no_file(tmp_path: Path) -> None:
    def broken(stream: object) -> None:
        raise RuntimeError("in the middle")

    (tmp_path / "x.txt").write_text("old")
    with pytest.raises(RuntimeError):
        write_atomically(tmp_path / "x.txt", broken, "Try again")
    assert os.listdir(tmp_path) == ["x.txt"]
    assert (tmp_path / "x.txt").read_text() == "old"


def test_leftovers_of_a_killed_process_are_deleted(tmp_path: Path) -> None:
    old, new, other = (tmp_path / name for name in (".x.txt.0a.part", ".x.txt.0b.part", ".y.txt.0c.part"))
    for path in (old, new, other):
        path.write_text("half")
    for path in (old, other):
        os.utime(path, (time.time() - 7200,) * 2)
    write_text(tmp_path / "x.txt", "text", "Try again")
    assert (old.exists(), new.exists(), other.exists()) == (False, True, True)


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_permissions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    write_text(path, "text", "Try again")
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask()
    path.chmod(0o600)
    write_text(path, "text", "Try again")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def umask() -> int:
    found = os.umask(0o022)
    os.umask(found)
    return found


@pytest.mark.skipif(os.name != "posix", reason="devices of POSIX")
def test_a_device_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.txt")
    with pytest.raises(bc.InputError, match="it is not a regular file"):
        write_text(tmp_path / "x.txt", "text", "Try again")


def test_a_name_that_just_fits(tmp_path: Path) -> None:
    write_text(tmp_path / ("x" * 250 + ".txt"), "text", "Try again")
    with pytest.raises(bc.InputError, match="cannot be written: File name too long"):
        write_text(tmp_path / ("x" * 300), "text", "Try again")


@pytest.mark.parametrize("write", ["report", "animation"])
def test_a_page_takes_the_place_of_pages_alone(write: str, tmp_path: Path) -> None:
    """A page replaces only pages: its suffix is easily that of the record itself."""
    run = bc.simulate(bc.zoo.pendulum(), 0.1)
    kept = run.save(tmp_path / "run.csv")
    data = kept.read_bytes()
    with pytest.raises(bc.InputError, match=r"run\.csv exists and is not \.(html|svg)"):
        getattr(run, write)(kept)
    assert kept.read_bytes() == data
    page = tmp_path / ("run.html" if write == "report" else "run.svg")
    for _ in range(2):
        assert getattr(run, write)(page) == page
    assert getattr(run, write)(tmp_path / "new.kind").exists()  # the path did not exist
