"""MCAP, the container of robot logs: a channel for positions, velocities, ..., a JSON message for each row.

"boom.q" is the field `boom` of the topic /q (in a batch /3/q for run 3); what has no such ending is in /other by its
whole name. Numbers that JSON does not have are the texts "NaN", "Infinity", "-Infinity". The description of the record
is the metadata "bellcrank".
"""

from __future__ import annotations

import json
import math
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import ReadError
from bellcrank.extras import extra
from bellcrank.model.parts import Array
from bellcrank.record import meta
from bellcrank.record.contents import FORCES
from bellcrank.version import __version__

if TYPE_CHECKING:
    from bellcrank.record.record import Record

WHAT, MAGIC = "an MCAP file of a bellcrank record", b"\x89MCAP0\r\n"
KEY = "bellcrank"
GROUPS = ("q", "v", "a", *FORCES, "x", "y", "z", "speed")
LATEST_TIME = 2**62  # ns


def write(run: Record, stream: IO[bytes]) -> None:
    out = extra("mcap.writer", "record", "saving MCAP").Writer(stream)
    out.start(profile="", library=f"bellcrank {__version__}")
    out.add_metadata(KEY, {"record": meta.written(run)})
    groups = grouped(run.columns)
    schemas = {}
    for group, fields in groups.items():
        described = {field: _field(run, name) for field, name in fields.items()}
        schema = {"type": "object", "properties": {"t": _field(run, "t"), **described}}
        schemas[group] = out.register_schema(f"bellcrank.{group}", "jsonschema", json.dumps(schema).encode())
    flat = {name: run[name].reshape(run.runs, len(run)).tolist() for name in run.columns}
    for k, clock in enumerate(_nanoseconds(run.t.reshape(run.runs, len(run)))):
        lead = f"/{k}" if run.batch else ""
        channels = {g: out.register_channel(f"{lead}/{g}", "json", schemas[g]) for g in groups}
        for i, now in enumerate(clock):
            for group, fields in groups.items():
                row = {"t": _number(flat["t"][k][i])} | {f: _number(flat[n][k][i]) for f, n in fields.items()}
                data = json.dumps(row, allow_nan=False).encode()
                out.add_message(channels[group], now, data, now, sequence=i)
    out.finish()


def read(stream: IO[bytes]) -> Record:
    reader = extra("mcap.reader", "record", "reading MCAP").make_reader(stream, validate_crcs=True)
    about = next((m.metadata.get("record", "") for m in reader.iter_metadata() if m.name == KEY), None)
    if about is None:
        topics = sorted({c.topic for c in reader.get_summary().channels.values()})
        raise ReadError(f'it has no metadata "{KEY}": it is another\'s log, with {", ".join(topics[:8])}.')
    found = meta.read(about)
    runs, rows = int(np.prod(found.shape[:-1], dtype=int)), found.shape[-1]
    columns = {name: np.full((runs, rows), np.nan) for name in found.names}
    groups, seen = grouped(found.names), 0
    for _, channel, message in reader.iter_messages():
        *lead, group = channel.topic.strip("/").split("/")
        row, k = json.loads(message.data), int(lead[0]) if lead else 0
        for field, name in {"t": "t", **groups[group]}.items():
            columns[name][k, message.sequence] = float(row[field])
        seen += 1
    if seen != runs * rows * len(groups):
        raise ReadError(f"it has {seen} messages; expected {runs * rows * len(groups)}. It is truncated or was edited.")
    return found.record(list(columns.values()))


def grouped(names: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Group -> field -> column, without the time, which is in every message."""
    found: dict[str, dict[str, str]] = {}
    for name in names[1:]:
        field, _, group = name.rpartition(".")
        known = field and group in GROUPS and field != "t"
        found.setdefault(group if known else "other", {})[field if known else name] = name
    return found or {"other": {}}


def _field(run: Record, name: str) -> dict[str, Any]:
    kind: Any = "number" if np.isfinite(run[name]).all() else ["number", "string"]
    return {"type": kind, "description": f"{name} in {run.column(name).unit}"}


def _nanoseconds(t: Array) -> list[list[int]]:
    """Log times: never negative, never decreasing at a row without a time."""
    far = LATEST_TIME / 1e9  # no file has later ones, and differences of earlier ones do not overflow
    start = min(0.0, float(np.nanmin(t, initial=0.0, where=np.isfinite(t))))
    since = np.clip(t, -far, far) - max(start, -far)
    held = np.maximum.accumulate(np.where(np.isfinite(t), since, 0.0), axis=-1)
    return [[round(min(x * 1e9, LATEST_TIME)) for x in row] for row in held.tolist()]


def _number(x: float) -> float | str:
    return x if math.isfinite(x) else "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
