"""MCAP files of records, the container of robot logs: one channel per kind of column, one JSON message per row.

"boom.q" is the field `boom` of the topic /q (in a batch /3/q for run 3); names without such an ending are fields of
/other. Numbers that JSON lacks are the strings "NaN", "Infinity", "-Infinity". The description of the record is the
metadata "bellcrank".

A growing record is written while the run continues, in chunks of half a second, so that at most a second is lost if the
process ends. Its description is at the beginning, with "rows" unknown, and again at the end, with their number and a
seal over all messages. A file without the second one was not closed: `load_record` reads the complete rows and warns.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import InputError, ReadError, brief
from bellcrank.files import path_of
from bellcrank.lazy_import import optional_import
from bellcrank.model.parts import Array
from bellcrank.record import description
from bellcrank.record.contents import FORCES
from bellcrank.record.formats import check_decoded_size, file_size
from bellcrank.version import __version__

if TYPE_CHECKING:
    from bellcrank.record.record import Record

WHAT, MAGIC = "an MCAP file of a bellcrank record", b"\x89MCAP0\r\n"
KEY = "bellcrank"
GROUPS = ("q", "v", "a", *FORCES, "x", "y", "z", "speed")
LATEST_TIME_NS = 2**62  # ns
CHUNK_BYTES = 1 << 20
MESSAGE_BYTES, VALUE_BYTES = 31, 4  # minimum size of a message without data, and of a value: "":0
CHUNK_SECONDS = 0.5  # of simulated time
MAX_FILES = 10_000  # maximum number of files of one name


def write(run: Record, stream: IO[bytes]) -> None:
    """Write `run` to `stream`."""
    out = start_writer(stream, description.describe(run), CHUNK_BYTES)
    channel_ids = register_channels(out, run)
    for group, stamp, data, sequence in messages(run, 0):
        out.add_message(channel_ids[group], stamp, data, stamp, sequence=sequence)
    out.finish()


def start_writer(stream: IO[bytes], about: str, chunk_bytes: int) -> Any:
    """Return an mcap writer to `stream`, with the description `about` and chunks of `chunk_bytes`."""
    out = optional_import("mcap.writer", "record", "saving MCAP").Writer(stream, chunk_size=chunk_bytes)
    out.start(profile="", library=f"bellcrank {__version__}")
    out.add_metadata(KEY, {"record": about})
    return out


def register_channels(out: Any, run: Record) -> dict[tuple[int, str], int]:
    """Register a channel of the writer `out` for each run of the batch `run` and group of columns."""
    schemas = {}
    groups = column_groups(run.columns)
    for group, fields in groups.items():
        described = {field: _field(run, name) for field, name in fields.items()}
        schema = {"type": "object", "properties": {"t": _field(run, "t"), **described}}
        schemas[group] = out.register_schema(f"bellcrank.{group}", "jsonschema", json.dumps(schema).encode())
    leads = [f"/{k}" if run.batch else "" for k in range(run.runs)]
    return {
        (k, g): out.register_channel(f"{lead}/{g}", "json", schemas[g]) for k, lead in enumerate(leads) for g in groups
    }


def messages(run: Record, first: int) -> Iterator[tuple[tuple[int, str], int, bytes, int]]:
    """Yield (run and group, time in ns, data, row number) for each message of `run`, whose rows count from `first`."""
    groups = column_groups(run.columns)
    flat = {name: run[name].reshape(run.runs, len(run)).tolist() for name in run.columns}
    for k, clock in enumerate(_nanoseconds(run.t.reshape(run.runs, len(run)))):
        for i, stamp in enumerate(clock):
            for group, fields in groups.items():
                row = {"t": _number(flat["t"][k][i])} | {f: _number(flat[n][k][i]) for f, n in fields.items()}
                yield (k, group), stamp, json.dumps(row, allow_nan=False).encode(), first + i


def message_seal(described: str, digest: bytes) -> str:
    """Return the seal of a growing file: over its description `described` and the `digest` of its messages."""
    return hashlib.sha256(described.encode() + digest).hexdigest()


def read(stream: IO[bytes]) -> Record:
    """Read a record from `stream`, also from a file that was not closed."""
    text_of_description, decoded = _description(stream)
    data = _parsed(text_of_description)
    mark = data.pop("message_seal", None)
    described, unfinished = json.dumps(data), "rows" in data and data["rows"] is None
    if unfinished:
        data["rows"] = decoded // MESSAGE_BYTES  # upper bound
    parsed = description.parse_description(json.dumps(data))
    if unfinished:
        return _read_unfinished(stream, parsed)
    runs, rows, groups = parsed.size // max(parsed.shape[-1], 1), parsed.shape[-1], column_groups(parsed.names)
    if MESSAGE_BYTES * runs * rows * len(groups) + VALUE_BYTES * parsed.size * len(parsed.names) > decoded:
        raise ReadError(f"it describes {runs * rows} rows, and has only {decoded} bytes of messages. It is truncated.")
    columns = {name: np.full((runs, rows), np.nan) for name in parsed.names}
    seen, digest = 0, hashlib.sha256()
    for k, sequence, group, text in _messages(stream):
        row = json.loads(text)
        for field, name in {"t": "t", **groups[group]}.items():
            columns[name][k, sequence] = float(row[field])
        seen += 1
        digest.update(text)
    if seen != runs * rows * len(groups):
        raise ReadError(f"it has {seen} messages; expected {runs * rows * len(groups)}. It is truncated or was edited.")
    record = parsed.record(list(columns.values()))
    if mark is not None:
        if mark != message_seal(described, digest.digest()):
            raise ReadError("its contents do not match the seal made when it was closed: it was damaged or edited.")
        record.sealed = True
    return record


def _parsed(about: str) -> dict[str, Any]:
    try:
        data = json.loads(about)
    except ValueError as error:
        raise ReadError(f"the description of the record is not JSON: {error}.") from None
    if not isinstance(data, dict):
        raise ReadError(f"the description of the record is {brief(data)}; expected an object.")
    return data


def _read_unfinished(stream: IO[bytes], header: description.Description) -> Record:
    """Return the complete rows of a file that was not closed, up to the first incomplete row."""
    groups = column_groups(header.names)
    rows: list[dict[str, float]] = []
    waiting: dict[str, float] = {}
    left = set(groups)
    for _, sequence, group, text in _messages(stream):
        row = json.loads(text)
        if sequence != len(rows) or group not in left:
            break
        waiting |= {name: float(row[field]) for field, name in {"t": "t", **groups[group]}.items()}
        left.discard(group)
        if not left:
            rows.append(waiting)
            waiting, left = {}, set(groups)
    last = rows[-1]["t"] if rows else math.nan
    why = "the file was not closed, because the program that wrote it was ended; later rows are lost"
    header = replace(header, shape=(len(rows),), metadata=header.metadata | {"stops": [["interrupted", last, why]]})
    return header.record([np.array([row[name] for row in rows]) for name in header.names])


def _description(stream: IO[bytes]) -> tuple[str, int]:
    """Return the description of the record and the decoded size of all messages in bytes, without decoding."""
    about, decoded, topics = None, 0, set()
    for item in _records(stream):
        kind = type(item).__name__
        if kind == "Metadata" and item.name == KEY:
            about = item.metadata.get("record", "")  # in a growing file the last one is valid
        elif kind == "Chunk":
            decoded += _decoded_bytes(item)
            check_decoded_size(stream, decoded, "its chunks")
        elif kind == "Message":
            decoded += MESSAGE_BYTES + len(item.data)
        elif kind == "Channel":
            topics.add(item.topic)
    if about is None:
        raise ReadError(
            f'it has no metadata "{KEY}": it is a log of another program, with {", ".join(sorted(topics)[:8])}.'
        )
    return about, decoded


def _messages(stream: IO[bytes]) -> Iterator[tuple[int, int, str, bytes]]:
    """Yield run, row, group and data of each message, in the order of the file."""
    breakup = optional_import("mcap.stream_reader", "record", "reading MCAP").breakup_chunk
    topics: dict[int, str] = {}
    for whole in _records(stream):
        for item in breakup(whole, validate_crc=True) if type(whole).__name__ == "Chunk" else (whole,):
            kind = type(item).__name__
            if kind == "Channel":
                topics[item.id] = item.topic
            elif kind == "Message":
                *lead, group = topics[item.channel_id].strip("/").split("/")
                yield int(lead[0]) if lead else 0, item.sequence, group, item.data


def _records(stream: IO[bytes]) -> Iterator[Any]:
    """Yield the MCAP records of a file from its beginning, with undecoded chunks."""
    reader = optional_import("mcap.stream_reader", "record", "reading MCAP").StreamReader
    size = file_size(stream)
    stream.seek(0)
    growing = False
    records = iter(reader(stream, emit_chunks=True, validate_crcs=True, record_size_limit=size).records)
    while True:
        try:
            item = next(records)
        except StopIteration:
            return
        except Exception:  # a file that was not closed may end anywhere, with various errors
            if growing:
                return
            raise
        if type(item).__name__ == "Metadata" and item.name == KEY:
            growing = '"rows": null' in item.metadata.get("record", "")
        yield item


def _decoded_bytes(chunk: Any) -> int:
    """Return the decoded size that a chunk declares, after comparing it with that of its compressed data."""
    declared = int(chunk.uncompressed_size)
    if chunk.compression == "zstd":
        inside = optional_import("zstandard", "record", "reading MCAP").frame_content_size(chunk.data)
        if inside not in (-1, declared):
            raise ReadError(f"a chunk declares {declared} bytes and its compressed data {inside}. It is damaged.")
    return declared


def column_groups(names: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return the columns `names` by group and field, without the time, which is in every message."""
    groups: dict[str, dict[str, str]] = {}
    for name in names[1:]:
        field, _, group = name.rpartition(".")
        known = field and group in GROUPS and field != "t"
        groups.setdefault(group if known else "other", {})[field if known else name] = name
    return groups or {"other": {}}


def _field(run: Record, name: str) -> dict[str, Any]:
    kind: Any = "number" if np.isfinite(run[name]).all() else ["number", "string"]
    return {"type": kind, "description": f"{name} in {run.column(name).unit}"}


def _nanoseconds(t: Array) -> list[list[int]]:
    """Return log times in ns: not negative, and not decreasing at rows without a time."""
    far = LATEST_TIME_NS / 1e9  # no file has later times, and differences of earlier ones do not overflow
    start = min(0.0, float(np.nanmin(t, initial=0.0, where=np.isfinite(t))))
    since = np.clip(t, -far, far) - max(start, -far)
    held = np.maximum.accumulate(np.where(np.isfinite(t), since, 0.0), axis=-1)
    return [[round(min(x * 1e9, LATEST_TIME_NS)) for x in row] for row in held.tolist()]


def _number(x: float) -> float | str:
    return x if math.isfinite(x) else "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"


class GrowingRecord:
    """File to which the rows of one run are appended.

    Parameters
    ----------
    path
        New file with the suffix .mcap.
    first
        First rows, whose columns are those of the file.
    rows_per_second
        Rows per second of simulated time.
    """

    def __init__(self, path: Path, first: Record, rows_per_second: float) -> None:
        self.path, self.rows = path, 0
        self._description = json.loads(description.describe(first)) | {"rows": None}
        del self._description["seal"]
        self._digest = hashlib.sha256()
        try:
            self._stream = open(path, "xb")  # noqa: SIM115
        except OSError as error:
            raise InputError(f"record={str(path)!r} cannot be written: {error.strerror or error}.") from None
        try:
            size = len(next(messages(first, 0))[2]) * len(column_groups(first.columns))
            chunk_bytes = int(CHUNK_SECONDS * rows_per_second * size)
            self._writer = start_writer(self._stream, json.dumps(self._description), chunk_bytes)
            self._channels = register_channels(self._writer, first)
            self.add(first)
        except BaseException:
            self._stream.close()
            raise

    def add(self, rows: Record) -> None:
        """Append `rows`, which must be later than all rows before."""
        for group, stamp, data, sequence in messages(rows, self.rows):
            self._writer.add_message(self._channels[group], stamp, data, stamp, sequence=sequence)
            self._digest.update(data)
        self.rows += len(rows)
        self._stream.flush()

    def finish(self, last: Record) -> None:
        """Close the file, with the stop and the provenance of `last`."""
        about = json.loads(description.describe(last)) | {"rows": self.rows}
        about = self._description | {key: about[key] for key in ("rows", "stops", "provenance")}
        described = json.dumps(about)
        about["message_seal"] = message_seal(described, self._digest.digest())
        self._writer.add_metadata(KEY, {"record": json.dumps(about)})
        self._writer.finish()
        self._stream.close()

    def abandon(self) -> None:
        """Close the file without its final description."""
        with suppress(OSError):
            self._stream.close()


class RecordFiles:
    """Files of a drive: each reset starts another one, run.mcap, run-2.mcap, run-3.mcap."""

    def __init__(self, path: str | Path) -> None:
        self.path = path_of(path)
        if self.path.suffix.lower() != ".mcap":
            raise InputError(
                f'record={str(self.path)!r}: a record that grows ends in .mcap; got "{self.path.suffix}". For other '
                "formats call load_record(...).save(...) afterwards."
            )
        if self.path.exists():
            raise InputError(f"record={str(self.path)!r} exists already; choose another name, or remove it.")
        if not self.path.parent.is_dir():
            raise InputError(f"record={str(self.path)!r}: there is no folder {str(self.path.parent)!r}.")
        self.written: list[Path] = []

    def next(self) -> Path:
        """Return the name of the next file."""
        for k in range(len(self.written) + 1, MAX_FILES):
            path = self.path if k == 1 else self.path.with_stem(f"{self.path.stem}-{k}")
            if not path.exists():
                self.written.append(path)
                return path
        raise InputError(f"record={str(self.path)!r}: {MAX_FILES} files of this name exist already.")
