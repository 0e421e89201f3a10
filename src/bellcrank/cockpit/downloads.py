"""Downloads of records as files: one is written at a time, the newest is kept, and the disk load is limited.

A record holds ten minutes of a thousand rows per second, a hundred megabytes or more. A repeated request gets the file
that exists. Any other request waits until no file is being written, and then as long as the last file took to write:
so the disk is idle at least half of the time. A request is rejected while MAX_WAITING others wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from starlette.concurrency import run_in_threadpool

from bellcrank.cockpit.session import Session

MAX_WAITING = 4  # requests
PIECE_BYTES = 1 << 18  # bytes per piece of a response


class BusyError(Exception):
    """Too many requests are waiting."""


class RecordDownloads:
    """Writer of the records that pages download."""

    def __init__(self, session: Session, clock: Callable[[], float] = time.monotonic) -> None:
        self.session, self._clock = session, clock
        self.written = 0  # files
        self._lock, self._waiting = asyncio.Lock(), 0
        self._key: tuple[object, ...] = ()
        self._next_write = 0.0  # time from which the next file may be written
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._path: Path | None = None

    async def file(self, suffix: str, begin: float, end: float) -> BinaryIO:
        """Return the record from time `begin` to `end` as a file of type `suffix`, open for reading."""
        if self._waiting >= MAX_WAITING:
            raise BusyError
        self._waiting += 1
        try:
            async with self._lock:
                key = (suffix, begin, end, *self.session.record_key(end))
                if self._path is None or key != self._key:
                    await asyncio.sleep(max(0.0, self._next_write - self._clock()))
                    began = self._clock()
                    await run_in_threadpool(self._write, suffix, begin, end)
                    now = self._clock()
                    self._key, self._next_write = key, now + (now - began)
                assert self._path is not None
                return self._path.open("rb")  # opened under the lock: the next request may replace the file
        finally:
            self._waiting -= 1

    def _write(self, suffix: str, begin: float, end: float) -> None:
        self._drop()
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="bellcrank-", ignore_cleanup_errors=True)
        self.written += 1
        path = Path(self._folder.name) / f"{self.written}.{suffix}"
        self.session.record_with_ground(begin, end).save(path)
        self._path = path

    def _drop(self) -> None:
        if self._path is not None:
            with contextlib.suppress(OSError):  # Windows does not delete an open file
                self._path.unlink()
        self._path = None

    def close(self) -> None:
        """Remove all files."""
        self._drop()
        if self._folder is not None:
            self._folder.cleanup()


def pieces(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the contents of `stream` in pieces, and close it."""
    with stream:
        while piece := stream.read(PIECE_BYTES):
            yield piece
