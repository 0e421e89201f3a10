"""Code is loaded only from files of the user: files that others could have written are not read."""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bellcrank as bc
from bellcrank.cli import app
from bellcrank.emit import cache

pytestmark = pytest.mark.skipif(not cache.POSIX, reason="owners and rights of POSIX")
NAME = "a" * 64 + ".o"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "above" / "cache"
    place.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("BELLCRANK_CACHE", str(place))
    forget()
    yield place
    forget()


def forget() -> None:
    cache._cached_distrust_reason.cache_clear()
    cache._warned.clear()


def others(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o002)


def test_private_folder_is_trusted(folder: Path) -> None:
    assert cache.save(NAME, b"code")
    assert cache.load(NAME) == b"code"
    assert cache.distrust_reason(folder) == ""


@pytest.mark.parametrize("where", ["file", "folder", "above"])
def test_files_writable_by_others_are_not_loaded(folder: Path, where: str) -> None:
    assert cache.save(NAME, b"code")
    others({"file": folder / NAME, "folder": folder, "above": folder.parent}[where])
    forget()
    with pytest.warns(
        RuntimeWarning, match=r"no compiled code is loaded from the cache: .*can be written by other users"
    ):
        assert cache.load(NAME) is None
    with warnings.catch_warnings():  # the warning appears once
        warnings.simplefilter("error")
        assert cache.load(NAME) is None
        if where != "file":
            assert cache.save("b" * 64 + ".o", b"code") is False


def test_a_sticky_folder_above_is_as_tmp_is(folder: Path) -> None:
    assert cache.save(NAME, b"code")
    folder.parent.chmod(0o1777)
    forget()
    assert cache.load(NAME) == b"code"


def test_files_of_another_user_are_not_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of another user are not loaded; the test changes the current user."""
    assert cache.save(NAME, b"code")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    forget()
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert cache.load(NAME) is None


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    assert cache.save(NAME, b"code")
    (folder / NAME).rename(tmp_path / "elsewhere")
    (folder / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.warns(RuntimeWarning, match="is a link"):
        assert cache.load(NAME) is None
    assert cache.save(NAME, b"new")  # the link is replaced, not followed
    assert not (folder / NAME).is_symlink()
    assert b"code" in (tmp_path / "elsewhere").read_bytes()


def test_a_fifo_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / NAME, 0o600)
    found: list[bytes | None] = []

    def load() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(cache.load(NAME))

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    thread.join(30.0)
    assert found == [None]


def test_kernel_compiles_with_an_untrusted_cache(folder: Path) -> None:
    arm = bc.zoo.planar3r()
    q = [0.1, 0.2, 0.3]
    right = bc.kernel(arm, "mass_matrix")(q)
    others(folder)
    forget()
    with pytest.warns(RuntimeWarning, match="no compiled code is loaded"):
        again = bc.kernel(arm, "mass_matrix")
    assert not again.from_cache
    assert np.array_equal(again(q), right)


def test_systems_without_owners_check_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without file owners, as on Windows, nothing is checked."""
    monkeypatch.setattr(cache, "POSIX", False)
    monkeypatch.delattr(os, "getuid")
    assert cache.save(NAME, b"code")
    assert cache.load(NAME) == b"code"
    assert cache.distrust_reason(folder) == ""


# -- cache size


def kept(folder: Path, name: str, size: int, days: float) -> Path:
    path = folder / name
    path.write_bytes(bytes(size))
    os.utime(path, (time.time() - days * 86400,) * 2)
    return path


def test_least_recently_used_files_are_evicted_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [kept(folder, f"{k:064x}.o", 400_000, days=k) for k in range(5)]
    foreign = kept(folder, "notes.txt", 9_000_000, days=1000)
    monkeypatch.setenv("BELLCRANK_CACHE_MB", "1.3")
    assert cache.evict() == 2
    assert [f.exists() for f in files] == [True, True, True, False, False]
    monkeypatch.setenv("BELLCRANK_CACHE_DAYS", "1.5")
    assert cache.evict() == 1
    assert [f.exists() for f in files] == [True, True, False, False, False]
    assert foreign.exists()


def test_reading_is_using(folder: Path) -> None:
    assert cache.save(NAME, b"code")
    os.utime(folder / NAME, (time.time() - 50 * 86400,) * 2)
    assert cache.load(NAME) == b"code"
    assert time.time() - (folder / NAME).stat().st_mtime < 3600


def test_leftovers_of_a_killed_process_are_deleted(folder: Path) -> None:
    old, new = kept(folder, ".new-abc", 10, days=1), kept(folder, ".new-def", 10, days=0)
    cache.evict()
    assert not old.exists()
    assert new.exists()


def test_saving_keeps_the_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLCRANK_CACHE_MB", "1")
    for k in range(200):
        cache.save(f"{k:064x}.o", bytes(100_000))
    assert sum(f.size for f in cache.cache_files()) < 64 * 100_100 + 1e6


def test_the_command(folder: Path) -> None:
    assert cache.save(NAME, b"code")
    (folder / "notes.txt").write_text("mine")
    run = CliRunner().invoke
    shown = run(app, ["cache"]).output
    assert str(folder) in shown
    assert "trusted: no other user may write it" in shown
    assert "compiled kernels" in shown
    found = json.loads(run(app, ["cache", "--json"]).output)
    assert (found["files"], found["trusted"]) == (1, True)
    assert "removed 1 file" in run(app, ["cache", "--clear"]).output
    assert os.listdir(folder) == ["notes.txt"]
    others(folder)
    assert "not trusted, and not used" in run(app, ["cache"]).output
