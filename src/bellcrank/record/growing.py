"""A record that is written while its run goes on, so that whatever ends the process, at most a second is lost.

The file is MCAP, as `Record.save` writes it, in chunks of half a second. Its description stands at the beginning, with
"rows" unknown, and once more at the end, with their number and a seal over all messages. A file without the second one
was not closed: `load_record` reads the rows that are whole and says so.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from bellcrank.atomic_file import path_of
from bellcrank.errors import InputError
from bellcrank.record import meta
from bellcrank.record.formats import mcap
from bellcrank.record.record import Record

CHUNK_SECONDS = 0.5  # of the run
PARTS = 10_000  # the most files of one name


class GrowingRecord:
    """A file that takes rows of one run as they come.

    Parameters
    ----------
    path : Path
        A new file that ends in .mcap.
    first : Record
        The first rows: their columns are those of the file.
    rows_per_second : float
        Of the run.
    """

    def __init__(self, path: Path, first: Record, rows_per_second: float) -> None:
        self.path, self.rows = path, 0
        self._about = json.loads(meta.written(first)) | {"rows": None}
        del self._about["seal"]
        self._messages = hashlib.sha256()
        try:
            self._stream = open(path, "xb")  # noqa: SIM115
        except OSError as error:
            raise InputError(f"record={str(path)!r} cannot be written: {error.strerror or error}.") from None
        try:
            size = len(next(mcap.messages(first, 0))[2]) * len(mcap.grouped(first.columns))
            chunk_bytes = int(CHUNK_SECONDS * rows_per_second * size)
            self._out = mcap.begun(self._stream, json.dumps(self._about), chunk_bytes)
            self._channels = mcap.channels(self._out, first)
            self.add(first)
        except BaseException:
            self._stream.close()
            raise

    def add(self, rows: Record) -> None:
        """Append rows, which follow those before them in time."""
        for group, at, data, sequence in mcap.messages(rows, self.rows):
            self._out.add_message(self._channels[group], at, data, at, sequence=sequence)
            self._messages.update(data)
        self.rows += len(rows)
        self._stream.flush()

    def finish(self, last: Record) -> None:
        """Close the file. last: why and when the run ended, and its provenance."""
        about = json.loads(meta.written(last)) | {"rows": self.rows}
        about = self._about | {key: about[key] for key in ("rows", "stops", "provenance")}
        described = json.dumps(about)
        about["message_seal"] = mcap.message_seal(described, self._messages.digest())
        self._out.add_metadata(mcap.KEY, {"record": json.dumps(about)})
        self._out.finish()
        self._stream.close()

    def abandon(self) -> None:
        """Close the file as it is, without its end."""
        with suppress(OSError):
            self._stream.close()


class RecordFiles:
    """The files of a drive: a reset begins another one, run.mcap, run-2.mcap, run-3.mcap."""

    def __init__(self, path: str | Path) -> None:
        self.path = path_of(path)
        if self.path.suffix.lower() != ".mcap":
            raise InputError(
                f'record={str(self.path)!r}: a record that grows ends in .mcap; got "{self.path.suffix}". For other '
                "formats call load_record(...).save(...) afterwards."
            )
        if self.path.exists():
            raise InputError(f"record={str(self.path)!r} is there already; take another name, or remove it.")
        if not self.path.parent.is_dir():
            raise InputError(f"record={str(self.path)!r}: there is no folder {str(self.path.parent)!r}.")
        self.written: list[Path] = []

    def next(self) -> Path:
        """Return the name of the next file."""
        for k in range(len(self.written) + 1, PARTS):
            path = self.path if k == 1 else self.path.with_stem(f"{self.path.stem}-{k}")
            if not path.exists():
                self.written.append(path)
                return path
        raise InputError(f"record={str(self.path)!r}: {PARTS} files of this name are there already.")
