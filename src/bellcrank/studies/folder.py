"""The folder of a study: a Parquet file for each chunk, whole or not there, and a manifest that says what they are.

study.json                       what, by which version, from which seed, how long it took
study.html                       the page, where it was asked for
runs/runs-000000000.parquet      the runs from 0 on, sealed; nothing else is in runs/, so that others read it whole
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellcrank.atomic_file import write_text, write_whole
from bellcrank.errors import InputError, ReadError, brief
from bellcrank.extras import extra
from bellcrank.plain_file import plain_bytes
from bellcrank.record.contents import plain
from bellcrank.record.parquet_files import read_parquet_table
from bellcrank.studies.chunk import SEAL, seal
from bellcrank.version import __version__

MANIFEST, LOCK = "study.json", ".lock"
MOST_BYTES = 2**62  # of a chunk: a study wrote it, however well constant columns compress
HINT = "What is there stays valid, and the same study goes on from it"

COUNTED = {"sessions": 0, "wall": 0.0, "chunk": 1}  # what is read from a manifest and used: at least so much of it


def _from(value: object, least: float) -> bool:
    """Whether it is a number of that kind, and at least so much."""
    kinds: tuple[type, ...] = (int,) if isinstance(least, int) else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool) and least <= value < 1e18  # type: ignore[operator]


@dataclass(frozen=True)
class Folder:
    path: Path

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    def chunk(self, first: int) -> Path:
        return self.runs / f"runs-{first:09d}.parquet"

    def opened(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The manifest of a study that begins or goes on here; an error where there is another study, or no right to
        write.
        """
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"to={str(self.path)!r} cannot be made: {error.strerror or error}.") from None
        there = self.manifest()
        if there is None:
            strange = [p.name for p in self.path.iterdir() if not p.name.startswith(".") and p.name != "runs"]
            strange += [p.name for p in self.runs.iterdir() if not p.name.startswith(".")]
            if strange:
                raise InputError(f'to={str(self.path)!r} has files ("{strange[0]}") and no study; give another folder.')
            there = {**plain(dict(manifest)), "wall": 0.0, "began": time.time(), "sessions": 0}
        for key, wanted in plain(dict(manifest)).items():
            if there.get(key) != wanted and key not in ("chunk", "provenance"):
                raise InputError(
                    f"to={str(self.path)!r} has another study: its {key} is {_short(there.get(key))}, and that of this "
                    f"one {_short(wanted)}. Give another folder, or remove that one."
                )
        self.written({**there, "sessions": there["sessions"] + 1})
        return {**there, "sessions": there["sessions"] + 1}

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else works on this study meanwhile: two that began at once would each write a manifest, and files of
        their own size. A process that is killed holds nothing.
        """
        try:
            import fcntl
        except ImportError:  # Windows: there nothing is held
            yield
            return
        lock, taken = self.path / LOCK, False
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            there = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        except OSError as error:
            raise InputError(f"to={str(self.path)!r} cannot be made: {error.strerror or error}.") from None
        try:
            try:
                fcntl.flock(there, fcntl.LOCK_EX | fcntl.LOCK_NB)
                taken = os.path.samestat(os.fstat(there), os.stat(lock))  # not one that was removed meanwhile
            except (BlockingIOError, FileNotFoundError):
                pass
            except OSError:  # a file system that locks nothing
                taken = True
            if not taken:
                raise InputError(
                    f"to={str(self.path)!r} is being worked on by another process or thread. Wait for its end, or give "
                    "another folder."
                )
            yield
        finally:
            if taken:
                with suppress(OSError):
                    lock.unlink()
            os.close(there)

    def manifest(self) -> dict[str, Any] | None:
        file = self.path / MANIFEST
        if not os.path.lexists(file):
            return None
        _, _, raw = plain_bytes(file, "manifest")
        try:
            found = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise ReadError(f"{file} is no JSON ({brief(str(error), 200)}); remove it to begin anew.") from None
        if not isinstance(found, dict) or not all(_from(found.get(key), least) for key, least in COUNTED.items()):
            raise ReadError(f"{file} is no manifest of a study; remove the folder to begin anew.")
        return found

    def written(self, manifest: Mapping[str, Any]) -> None:
        write_text(self.path / MANIFEST, json.dumps(plain(dict(manifest)), indent=1), HINT)

    def add(self, first: int, data: bytes) -> None:
        write_whole(self.chunk(first), lambda stream: stream.write(data), HINT)

    def missing(self, chunks: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Chunks (first, last) whose file is not there, or is not what was written."""
        for first, last in chunks:
            if not self.intact(first, last):
                yield first, last

    def intact(self, first: int, last: int) -> bool:
        path = self.chunk(first)
        if not path.exists():
            return False
        try:
            table = read_parquet_table(path, "study", MOST_BYTES)
            there = (table.schema.metadata or {}).get(SEAL)
            runs = table.column("run")
            good = len(runs) == last - first and runs[0].as_py() == first
            return bool(good and there == seal(table))
        except Exception:  # a damaged file can make a parser fail in any way; it is computed again
            return False

    def table(self) -> Any:
        """All runs that are there, as a pyarrow table, in their order."""
        pa = extra("pyarrow", "study", "a study")
        files = sorted(self.runs.glob("runs-*.parquet"))
        if not files:
            raise ReadError(f"{self.runs} has no runs.")
        found = []
        for file in files:
            try:
                found.append(read_parquet_table(file, "study", MOST_BYTES).replace_schema_metadata(None))
            except Exception as error:  # a damaged file can make a parser fail in any way
                raise ReadError(
                    f"{file} is damaged ({brief(str(error), 200)}). The same study computes it again."
                ) from None
        return pa.concat_tables(found, promote_options="default")


def provenance() -> dict[str, Any]:
    import numpy as np

    return {
        "bellcrank": __version__, "numpy": np.__version__, "python": platform.python_version(),
        "machine": platform.machine(), "system": platform.system(), "processors": os.cpu_count(),
    }  # fmt: skip


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
