"""Records that are written while the run continues, so that at most a second is lost if the process ends.

The file is MCAP, as `Record.save` writes it, in chunks of half a second. Its description is at the beginning, with
"rows" unknown, and again at the end, with their number and a seal over all messages. A file without the second one
was not closed: `load_record` reads the complete rows and warns.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from bellcrank.errors import InputError
from bellcrank.files import path_of
from bellcrank.record import description
from bellcrank.record.formats import mcap
from bellcrank.record.record import Record

CHUNK_SECONDS = 0.5  # of simulated time
MAX_FILES = 10_000  # maximum number of files of one name


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
            size = len(next(mcap.messages(first, 0))[2]) * len(mcap.column_groups(first.columns))
            chunk_bytes = int(CHUNK_SECONDS * rows_per_second * size)
            self._writer = mcap.start_writer(self._stream, json.dumps(self._description), chunk_bytes)
            self._channels = mcap.register_channels(self._writer, first)
            self.add(first)
        except BaseException:
            self._stream.close()
            raise

    def add(self, rows: Record) -> None:
        """Append `rows`, which must be later than all rows before."""
        for group, stamp, data, sequence in mcap.messages(rows, self.rows):
            self._writer.add_message(self._channels[group], stamp, data, stamp, sequence=sequence)
            self._digest.update(data)
        self.rows += len(rows)
        self._stream.flush()

    def finish(self, last: Record) -> None:
        """Close the file, with the stop and the provenance of `last`."""
        about = json.loads(description.describe(last)) | {"rows": self.rows}
        about = self._description | {key: about[key] for key in ("rows", "stops", "provenance")}
        described = json.dumps(about)
        about["message_seal"] = mcap.message_seal(described, self._digest.digest())
        self._writer.add_metadata(mcap.KEY, {"record": json.dumps(about)})
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
