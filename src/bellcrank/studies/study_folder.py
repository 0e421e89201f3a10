"""Folder of a study: a Parquet file for each chunk, complete or absent, and a manifest that describes them.

The manifest has a checksum over itself. It contains the number of runs and of runs per file, from which the names of
all files follow; each file is sealed with the name of the study (study_identity.py) and its runs. So everything else in
the folder, such as a copy, or a file of another study or of an earlier state of this one, is not part of it.

study.json                       content, version, seed and duration
study.html                       the page, if requested
runs/runs-000000000.parquet      the runs from 0 on, sealed; runs/ contains nothing else, so that others can read it
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import InputError, ReadError, brief, warn
from bellcrank.files import read_bytes, write_atomically, write_text
from bellcrank.lazy_import import optional_import
from bellcrank.record.contents import plain
from bellcrank.record.formats import read_parquet_table
from bellcrank.studies.run_batches import BlockDigests, Table, decode_digests
from bellcrank.studies.sampling_plans import Array
from bellcrank.studies.study_identity import digest_differences, equation_differences, group_label
from bellcrank.version import __version__

MANIFEST, LOCK, CHECKSUM = "study.json", ".lock", "checksum"
MAX_CHUNK_BYTES = 2**62  # of a chunk; no practical limit, as constant columns of our own files may compress extremely
MAX_FILES = 1_000_000  # of one study, whose names are listed
MANIFEST_VERSION = 2  # version of manifests; version 1 had neither identity nor checksum
# keys of the metadata of a file of rows
SEAL_KEY, STUDY_KEY, DRAWN_KEY = b"bellcrank seal", b"bellcrank study", b"bellcrank random inputs"
NOT_COMPARED = ("chunk", "provenance", "methods", "equations")
# Names of the entries of a manifest in errors.
MANIFEST_LABELS = {
    "study": "the version of its files", "bellcrank": "the version of bellcrank", "mechanisms": "the mechanism",
    "over": "argument over", "meaning": "the meaning of its values", "points": "the design of its runs",
    "values": "the digest of its values", "runs": "the number of runs", "seed": "argument seed",
    "seconds": "argument seconds", "summary": "argument summary", "keep": "argument keep",
    "given": "the value of start, inputs and options", "settings": "the value of its settings",
}  # fmt: skip
_verified_states: set[tuple[Any, ...]] = set()  # states of files whose seals were verified
# Names of the parts of an identity in errors.
IDENTITY_PART_NAMES = {
    "code": "code or libraries", "points": "values", "setup": "plant or arguments", "programs": "equations",
    "numbers": "starts, inputs or parameters",
}  # fmt: skip
WRITE_FAILURE_HINT = "What is there stays valid, and the same study continues from it"

MINIMUM_COUNTS = {"sessions": 0, "wall": 0.0, "chunk": 1}  # numbers in a manifest, with their type and smallest value


def _is_at_least(value: object, least: float) -> bool:
    """Return whether the value is a number of the type of `least`, and at least that large."""
    kinds: tuple[type, ...] = (int,) if isinstance(least, int) else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool) and least <= value < 1e18  # type: ignore[operator]


@dataclass(frozen=True)
class StudyFolder:
    """Folder of a study."""

    path: Path

    @property
    def runs_folder(self) -> Path:
        """Folder of the files of rows."""
        return self.path / "runs"

    def chunk_path(self, first: int) -> Path:
        """Return the path of the chunk that begins with the run `first`."""
        return self.runs_folder / f"runs-{first:09d}.parquet"

    def open_study(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Begin or continue a study here and return its manifest.

        Parameters
        ----------
        manifest
            Manifest of the study as it begins.

        Raises
        ------
        InputError
            If the folder contains a different study, or is not writable.
        """
        try:
            self.runs_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"to={str(self.path)!r} cannot be made: {error.strerror or error}.") from None
        stored = self.manifest()
        if stored is None:
            if foreign := self._foreign_files(manifest):
                raise InputError(f'to={str(self.path)!r} has files ("{foreign[0]}") and no study; give another folder.')
            stored = {**plain(dict(manifest)), "wall": 0.0, "began": time.time(), "sessions": 0}
        self._check_same(stored, plain(dict(manifest)))
        stored = {**stored, "sessions": stored["sessions"] + 1}
        self.write_manifest(stored)
        self._warn_of_strays(stored)
        return stored

    def _check_same(self, stored: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
        """Raise an InputError that names the difference if the folder contains a different study."""
        for key, wanted in manifest.items():
            if stored.get(key) == wanted or key in NOT_COMPARED:
                continue
            if key == "identity":
                equations = equation_differences(stored.get("equations"), manifest["equations"])
                raise self.refusal(self._differing(stored.get(key), wanted, equations))
            raise InputError(
                f"to={str(self.path)!r} contains a different study: {MANIFEST_LABELS.get(key, f'its {key}')} is "
                f"{_short(stored.get(key))}, but here it is {_short(wanted)}. Give another folder, or remove that one."
            )

    @staticmethod
    def _differing(stored: Any, wanted: Mapping[str, Mapping[str, str]], equations: str) -> str:
        """Return the first part that differs between two identities; later parts follow from earlier ones.

        `equations` are the differences of the equations.
        """
        for part, names in wanted.items():
            known = stored.get(part) if isinstance(stored, dict) else None
            if other := digest_differences(known if isinstance(known, dict) else {}, names):
                names_text = ", ".join(group_label(name) if part == "programs" else name for name, _, _ in other)
                text = (equations if part == "programs" else "") or names_text or "all"
                return f"its {IDENTITY_PART_NAMES[part]} ({text})"
        return "something"

    def _foreign_files(self, manifest: Mapping[str, Any]) -> list[str]:
        """Return the names of files that do not belong to this study."""
        pq = optional_import("pyarrow.parquet", "study", "a study")
        names = [p.name for p in self._files(self.path) if p.name != "runs"]
        strays = self._strays(manifest)
        for path in self._files(self.runs_folder):
            try:
                is_own = (pq.read_schema(path).metadata or {}).get(STUDY_KEY) == manifest["name"].encode()
            except Exception:  # a damaged file can make a parser fail in any way
                is_own = False
            if not is_own or path.name in strays:
                names.append(path.name)
        return names

    @staticmethod
    def _files(folder: Path) -> list[Path]:
        return [p for p in folder.iterdir() if not p.name.startswith(".")]

    def _strays(self, manifest: Mapping[str, Any]) -> list[str]:
        """Return the names of files among the rows that are not those of a chunk, sorted."""
        wanted = {self.chunk_path(first).name for first, _ in chunk_ranges(manifest)}
        return sorted(p.name for p in self._files(self.runs_folder) if p.name not in wanted)

    def _warn_of_strays(self, manifest: Mapping[str, Any]) -> None:
        strays = self._strays(manifest)
        if strays:
            more = f" and {len(strays) - 3} more" if len(strays) > 3 else ""
            warn(
                f"{self.runs_folder} has files that are not part of the study: "
                f"{', '.join(map(repr, strays[:3]))}{more}. They are left out here; remove them before another program "
                "reads the folder."
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder while a study works on it.

        Two studies that began at once would each write a manifest, and files of their own size. A process that is
        killed leaves no lock.
        """
        try:
            import fcntl
        except ImportError:  # Windows: no lock
            yield
            return
        lock, acquired = self.path / LOCK, False
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        except OSError as error:
            raise InputError(f"to={str(self.path)!r} cannot be made: {error.strerror or error}.") from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                acquired = os.path.samestat(os.fstat(descriptor), os.stat(lock))  # false if it was removed meanwhile
            except (BlockingIOError, FileNotFoundError):
                pass
            except OSError:  # a file system without locks
                acquired = True
            if not acquired:
                raise InputError(
                    f"to={str(self.path)!r} is being worked on by another process or thread. Wait for its end, or give "
                    "another folder."
                )
            yield
        finally:
            if acquired:
                with suppress(OSError):
                    lock.unlink()
            os.close(descriptor)

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest, or None if there is none; raise a ReadError if it is damaged."""
        file = self.path / MANIFEST
        if not os.path.lexists(file):
            return None
        _, _, raw = read_bytes(file, "manifest")
        try:
            content = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise ReadError(f"{file} is not JSON ({brief(str(error), 200)}); remove it to begin again.") from None
        if not isinstance(content, dict) or not all(
            _is_at_least(content.get(key), least) for key, least in MINIMUM_COUNTS.items()
        ):
            raise ReadError(f"{file} is not a manifest of a study; remove the folder to begin again.")
        if CHECKSUM not in content and content.get("study") == 1:
            raise ReadError(
                f"{file} belongs to a study by an older version of bellcrank, which did not store all that decides its "
                "numbers, so that nothing can be added to it. Give another folder, or remove that one."
            )
        if content.pop(CHECKSUM, None) != _checksum(content):
            raise ReadError(
                f"{file} is damaged: its text does not match its checksum. The rows have seals of their own: remove "
                "this file, and the same study continues from those that are intact."
            )
        name, runs = content.get("name"), content.get("runs")
        if not (isinstance(name, str) and _is_at_least(runs, 1) and runs <= MAX_FILES * content["chunk"]):
            raise ReadError(
                f"{file} is not a manifest of a study: its name is {brief(name)} and its runs are {brief(runs)}, "
                f"{content['chunk']} in a file; expected a text, and at most {MAX_FILES:,} files. Remove the folder to "
                "begin again."
            )
        return content

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write `manifest` with its checksum."""
        content = plain(dict(manifest))
        write_text(
            self.path / MANIFEST, json.dumps({**content, CHECKSUM: _checksum(content)}, indent=1), WRITE_FAILURE_HINT
        )

    def add_chunk(self, first: int, data: bytes) -> None:
        """Write the Parquet file `data` of the chunk that begins with the run `first`."""
        write_atomically(self.chunk_path(first), lambda stream: stream.write(data), WRITE_FAILURE_HINT)

    def missing_chunks(self, manifest: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        """Yield the chunks (first, last) of the study of `manifest` whose file is absent or not as it was written."""
        for first, last in chunk_ranges(manifest):
            try:
                self.chunk_rows(manifest["name"], first, last, known=False)
            except ReadError:
                yield first, last

    def chunk_rows(self, study: str, first: int, last: int, known: bool = True) -> Any:
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
        path = self.chunk_path(first)
        try:
            status = os.stat(path)
            state = (str(path), study, first, last, status.st_size, status.st_mtime_ns, status.st_ino)
            table = read_parquet_table(path, "study", MAX_CHUNK_BYTES)
            intact = (known and state in _verified_states) or _is_unchanged(table, study, first, last)
            cause = "its seal is broken"
        except Exception as error:  # a damaged file can make a parser fail in any way
            intact, cause = False, brief(str(error), 200)
        if not intact:
            raise ReadError(f"{path} is damaged or not there ({cause}). The same study computes it again.")
        _verified_states.add(state)
        return table

    def drawn_digests(self, first: int) -> BlockDigests:
        """Return the digests of the random inputs of the intact chunk that begins with the run `first`."""
        pq = optional_import("pyarrow.parquet", "study", "a study")
        return decode_digests((pq.read_schema(self.chunk_path(first)).metadata or {}).get(DRAWN_KEY, b""))

    def refusal(self, changed: str) -> InputError:
        """Return the error that the folder contains a different study, because of what `changed`."""
        return InputError(
            f"to={str(self.path)!r} contains a different study: {changed} changed since. Rows of both are not "
            "comparable. Give another folder, or remove that one."
        )

    def table(self) -> Any:
        """Return all runs of the study in order, as a pyarrow table."""
        pa = optional_import("pyarrow", "study", "a study")
        manifest = self.manifest()
        if manifest is None:
            raise ReadError(f"{self.path} has no {MANIFEST}, so it contains no study.")
        tables = [
            self.chunk_rows(manifest["name"], *chunk).replace_schema_metadata(None) for chunk in chunk_ranges(manifest)
        ]
        return pa.concat_tables(tables, promote_options="default")


def _is_unchanged(table: Any, study: str, first: int, last: int) -> bool:
    """Return whether a table has these runs of this study, unchanged."""
    metadata, runs = table.schema.metadata or {}, table.column("run")
    whole = len(runs) == last - first and runs[0].as_py() == first and metadata.get(STUDY_KEY) == study.encode()
    return bool(whole and metadata.get(SEAL_KEY) == table_seal(table, study, metadata.get(DRAWN_KEY, b"")))


def chunk_ranges(manifest: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return (first, last) of the runs of every file of the study of `manifest`; last is exclusive."""
    n, size = manifest["runs"], manifest["chunk"]
    return [(first, min(first + size, n)) for first in range(0, n, size)]


def _checksum(manifest: Mapping[str, Any]) -> str:
    """Return a digest of the content of a manifest, independent of its layout."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def provenance() -> dict[str, Any]:
    """Return the versions and the computer that a study is started with."""
    return {
        "bellcrank": __version__, "numpy": np.__version__, "python": platform.python_version(),
        "machine": platform.machine(), "system": platform.system(), "processors": os.cpu_count(),
    }  # fmt: skip


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# -- one file


def encode_table(table: Table, study: str, drawn: bytes = b"") -> bytes:
    """Return `table` as a Parquet file with a seal over its content and the name of the `study`; deterministic.

    `drawn` are the encoded digests of its random inputs.
    """
    pa, pq = (optional_import(name, "study", "a study") for name in ("pyarrow", "pyarrow.parquet"))
    arrays = [_array(pa, name, x) for name, x in table.items()]
    arrow_table = pa.Table.from_arrays(arrays, names=list(table))
    floats = [name for name, x in table.items() if x.dtype.kind == "f"]
    words = [name for name, x in table.items() if x.dtype.kind not in "fi" and not is_row_list(name)]
    arrow_table = arrow_table.replace_schema_metadata(
        {SEAL_KEY: table_seal(arrow_table, study, drawn), STUDY_KEY: study.encode(), DRAWN_KEY: drawn}
    )
    stream = io.BytesIO()
    pq.write_table(
        arrow_table, stream, compression="zstd", use_dictionary=words, write_page_checksum=True,
        use_byte_stream_split=floats,
    )  # fmt: skip
    return stream.getvalue()


def is_row_list(name: str) -> bool:
    """Return whether the column `name` contains lists of rows."""
    return name.startswith("rows(")


def _array(pa: Any, name: str, x: Array) -> Any:
    if is_row_list(name):
        return pa.array(list(x), pa.list_(pa.float64()))
    return pa.array(x if x.dtype.kind in "fi" else [str(v) for v in x])


def table_seal(table: Any, study: str, drawn: bytes = b"") -> bytes:
    """Return a digest of the `study`, `drawn`, names and values of `table`, independent of the layout of the file."""
    digest = hashlib.sha256(study.encode() + drawn)
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        kind = "rows" if is_row_list(name) else column.type  # Parquet may rename the elements of lists
        digest.update(f"{name}\0{kind}\0{len(column)}\0".encode())
        if str(column.type) == "string":
            for x in column.to_pylist():
                digest.update(x.encode() + b"\0")
        elif is_row_list(name):
            for x in column.to_numpy(zero_copy_only=False):
                digest.update(
                    b"none" if x is None else len(x).to_bytes(8, "little") + np.ascontiguousarray(x).tobytes()
                )
        else:
            digest.update(np.ascontiguousarray(column.to_numpy(zero_copy_only=False)).tobytes())
    return digest.hexdigest().encode()
