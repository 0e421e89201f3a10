"""Folder of a study: a Parquet file for each chunk, complete or absent, and a manifest that describes them.

The manifest has a checksum over itself. It contains the number of runs and of runs per file, from which the names of
all files follow; each file is sealed with the name of the study (identity.py) and its runs. So everything else in the
folder, such as a copy, or a file of another study or of an earlier state of this one, is not part of it.

study.json                       content, version, seed and duration
study.html                       the page, if requested
runs/runs-000000000.parquet      the runs from 0 on, sealed; runs/ contains nothing else, so that others can read it
"""

from __future__ import annotations

import hashlib
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
from bellcrank.errors import InputError, ReadError, brief, warn
from bellcrank.extras import extra
from bellcrank.plain_file import plain_bytes
from bellcrank.record.contents import plain
from bellcrank.record.parquet_files import read_parquet_table
from bellcrank.studies.chunk import SEAL, STUDY, seal
from bellcrank.studies.identity import differing
from bellcrank.version import __version__

MANIFEST, LOCK, CHECKSUM = "study.json", ".lock", "checksum"
MOST_BYTES = 2**62  # of a chunk; no practical limit, as constant columns of our own files may compress extremely
MOST_FILES = 1_000_000  # of one study, whose names are listed
FORMAT = 2  # version of manifests; version 1 had neither identity nor checksum
NOT_COMPARED = ("chunk", "provenance", "methods")
_whole: set[tuple[Any, ...]] = set()  # states of files whose seals were verified
# Names of the parts of an identity in errors.
SPOKEN = {
    "code": "code or libraries", "points": "values", "setup": "plant or arguments", "programs": "equations",
    "numbers": "starts, inputs or parameters",
}  # fmt: skip
HINT = "What is there stays valid, and the same study continues from it"

COUNTED = {"sessions": 0, "wall": 0.0, "chunk": 1}  # numbers in a manifest, with their type and smallest value


def _from(value: object, least: float) -> bool:
    """Return whether the value is a number of the type of `least`, and at least that large."""
    kinds: tuple[type, ...] = (int,) if isinstance(least, int) else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool) and least <= value < 1e18  # type: ignore[operator]


@dataclass(frozen=True)
class Folder:
    """Folder of a study."""

    path: Path

    @property
    def runs(self) -> Path:
        """Folder of the files of rows."""
        return self.path / "runs"

    def chunk(self, first: int) -> Path:
        """Return the path of the chunk that begins with the run `first`."""
        return self.runs / f"runs-{first:09d}.parquet"

    def opened(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Begin or continue a study here and return its manifest.

        Parameters
        ----------
        manifest
            Manifest of the study as it begins.

        Raises
        ------
        InputError
            If the folder contains another study, or is not writable.
        """
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"to={str(self.path)!r} cannot be made: {error.strerror or error}.") from None
        there = self.manifest()
        if there is None:
            if strange := self._strange(manifest):
                raise InputError(f'to={str(self.path)!r} has files ("{strange[0]}") and no study; give another folder.')
            there = {**plain(dict(manifest)), "wall": 0.0, "began": time.time(), "sessions": 0}
        self._check_same(there, plain(dict(manifest)))
        there = {**there, "sessions": there["sessions"] + 1}
        self.written(there)
        self._warn_of_strays(there)
        return there

    def _check_same(self, there: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
        """Raise an InputError that names the difference if the folder contains another study."""
        for key, wanted in manifest.items():
            if there.get(key) == wanted or key in NOT_COMPARED:
                continue
            if key == "identity":
                told = " and ".join(self._differing(there.get(key), wanted))
                raise InputError(
                    f"to={str(self.path)!r} has another study: {told} changed since. Rows of both are not comparable. "
                    "Give another folder, or remove that one."
                )
            raise InputError(
                f"to={str(self.path)!r} has another study: its {key} is {_short(there.get(key))}, but here it is "
                f"{_short(wanted)}. Give another folder, or remove that one."
            )

    @staticmethod
    def _differing(there: Any, wanted: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Return the first part that differs between two identities; later parts follow from earlier ones."""
        for part, names in wanted.items():
            known = there.get(part) if isinstance(there, dict) else None
            if other := differing(known if isinstance(known, dict) else {}, names):
                return [f"its {SPOKEN[part]} ({', '.join(name for name, _, _ in other) or 'all'})"]
        return ["something"]

    def _strange(self, manifest: Mapping[str, Any]) -> list[str]:
        """Return the names of files that do not belong to this study."""
        pq = extra("pyarrow.parquet", "study", "a study")
        found = [p.name for p in self.path.iterdir() if not p.name.startswith(".") and p.name != "runs"]
        wanted = {self.chunk(first).name for first, _ in chunks_of(manifest)}
        for path in self.runs.iterdir():
            if path.name.startswith("."):
                continue
            try:
                mine = (pq.read_schema(path).metadata or {}).get(STUDY) == manifest["name"].encode()
            except Exception:  # a damaged file can make a parser fail in any way
                mine = False
            if not mine or path.name not in wanted:
                found.append(path.name)
        return found

    def _warn_of_strays(self, manifest: Mapping[str, Any]) -> None:
        wanted = {self.chunk(first).name for first, _ in chunks_of(manifest)}
        strays = sorted(p.name for p in self.runs.iterdir() if not p.name.startswith(".") and p.name not in wanted)
        if strays:
            more = f" and {len(strays) - 3} more" if len(strays) > 3 else ""
            warn(
                f"{self.runs} has files that are not part of the study: {', '.join(map(repr, strays[:3]))}{more}. They "
                "are left out here; remove them before another program reads the folder."
            )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder while a study works on it.

        Two studies that began at once would each write a manifest, and files of their own size. A process that is
        killed leaves no lock.
        """
        try:
            import fcntl
        except ImportError:  # Windows: no lock
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
                taken = os.path.samestat(os.fstat(there), os.stat(lock))  # false if it was removed meanwhile
            except (BlockingIOError, FileNotFoundError):
                pass
            except OSError:  # a file system without locks
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
        """Return the manifest, or None if there is none; raise a ReadError if it is damaged."""
        file = self.path / MANIFEST
        if not os.path.lexists(file):
            return None
        _, _, raw = plain_bytes(file, "manifest")
        try:
            found = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise ReadError(f"{file} is not JSON ({brief(str(error), 200)}); remove it to begin again.") from None
        if not isinstance(found, dict) or not all(_from(found.get(key), least) for key, least in COUNTED.items()):
            raise ReadError(f"{file} is not a manifest of a study; remove the folder to begin again.")
        if CHECKSUM not in found and found.get("study") == 1:
            raise ReadError(
                f"{file} belongs to a study by an older version of bellcrank, which did not store all that decides its "
                "numbers, so that nothing can be added to it. Give another folder, or remove that one."
            )
        if found.pop(CHECKSUM, None) != _checksum(found):
            raise ReadError(
                f"{file} is damaged: its text does not match its checksum. The rows have seals of their own: remove "
                "this file, and the same study continues from those that are intact."
            )
        name, runs = found.get("name"), found.get("runs")
        if not (isinstance(name, str) and _from(runs, 1) and runs <= MOST_FILES * found["chunk"]):
            raise ReadError(
                f"{file} is not a manifest of a study: its name is {brief(name)} and its runs are {brief(runs)}, "
                f"{found['chunk']} in a file; expected a text, and at most {MOST_FILES:,} files. Remove the folder to "
                "begin again."
            )
        return found

    def written(self, manifest: Mapping[str, Any]) -> None:
        """Write `manifest` with its checksum."""
        found = plain(dict(manifest))
        write_text(self.path / MANIFEST, json.dumps({**found, CHECKSUM: _checksum(found)}, indent=1), HINT)

    def add(self, first: int, data: bytes) -> None:
        """Write the Parquet file `data` of the chunk that begins with the run `first`."""
        write_whole(self.chunk(first), lambda stream: stream.write(data), HINT)

    def missing(self, manifest: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        """Yield the chunks (first, last) of the study of `manifest` whose file is absent or not as it was written."""
        for first, last in chunks_of(manifest):
            try:
                self.rows(manifest["name"], first, last, known=False)
            except ReadError:
                yield first, last

    def rows(self, study: str, first: int, last: int, known: bool = True) -> Any:
        """Return the table of one chunk.

        Parameters
        ----------
        study
            Name of the study.
        first, last
            Runs of the chunk; last is exclusive.
        known
            Skip the seal of a file that was verified before and has not changed since.

        Raises
        ------
        ReadError
            If the file is absent, or not what was written for this study and these runs.
        """
        path = self.chunk(first)
        try:
            found = os.stat(path)
            state = (str(path), study, first, last, found.st_size, found.st_mtime_ns, found.st_ino)
            table = read_parquet_table(path, "study", MOST_BYTES)
            whole, why = (known and state in _whole) or _as_written(table, study, first, last), "its seal is broken"
        except Exception as error:  # a damaged file can make a parser fail in any way
            whole, why = False, brief(str(error), 200)
        if not whole:
            raise ReadError(f"{path} is damaged or not there ({why}). The same study computes it again.")
        _whole.add(state)
        return table

    def table(self) -> Any:
        """Return all runs of the study in order, as a pyarrow table."""
        pa = extra("pyarrow", "study", "a study")
        manifest = self.manifest()
        if manifest is None:
            raise ReadError(f"{self.path} has no {MANIFEST}, so it contains no study.")
        found = [self.rows(manifest["name"], *chunk).replace_schema_metadata(None) for chunk in chunks_of(manifest)]
        return pa.concat_tables(found, promote_options="default")


def _as_written(table: Any, study: str, first: int, last: int) -> bool:
    """Return whether a table has these runs of this study, unchanged."""
    metadata, runs = table.schema.metadata or {}, table.column("run")
    whole = len(runs) == last - first and runs[0].as_py() == first and metadata.get(STUDY) == study.encode()
    return bool(whole and metadata.get(SEAL) == seal(table, study))


def chunks_of(manifest: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return (first, last) of the runs of every file of the study of `manifest`; last is exclusive."""
    n, size = manifest["runs"], manifest["chunk"]
    return [(first, min(first + size, n)) for first in range(0, n, size)]


def _checksum(manifest: Mapping[str, Any]) -> str:
    """Return a digest of the content of a manifest, independent of its layout."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def provenance() -> dict[str, Any]:
    """Return the versions and the computer that a study is started with."""
    import numpy as np

    return {
        "bellcrank": __version__, "numpy": np.__version__, "python": platform.python_version(),
        "machine": platform.machine(), "system": platform.system(), "processors": os.cpu_count(),
    }  # fmt: skip


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
