"""Records as files to fetch: one is written at a time, the newest is kept for who asks again, and the disk rests.

A record is ten minutes of a thousand rows a second, which is a hundred megabytes or more. Who asks for the same again
gets the file that is there. Anything else waits for its turn, and after a file has been written, as long as that took:
so whatever pages ask for, the disk is idle half of the time. Who comes when MOST_WAITING are waiting is sent away.
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

MOST_WAITING = 4  # that wait
PIECE = 1 << 18  # bytes sent at a time


class BusyError(Exception):
    """Too many wait already."""


class Saving:
    def __init__(self, session: Session, clock: Callable[[], float] = time.monotonic) -> None:
        self.session, self._clock = session, clock
        self.written = 0  # files
        self._one, self._waiting = asyncio.Lock(), 0
        self._key: tuple[object, ...] = ()
        self._rested = 0.0  # when the next may be written
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._path: Path | None = None

    async def file(self, suffix: str, begin: float, end: float) -> BinaryIO:
        """The record between two times, open for reading."""
        if self._waiting >= MOST_WAITING:
            raise BusyError
        self._waiting += 1
        try:
            async with self._one:
                key = (suffix, begin, end, *self.session.state_of_record(end))
                if self._path is None or key != self._key:
                    await asyncio.sleep(max(0.0, self._rested - self._clock()))
                    began = self._clock()
                    await run_in_threadpool(self._write, suffix, begin, end)
                    now = self._clock()
                    self._key, self._rested = key, now + (now - began)
                assert self._path is not None
                return self._path.open("rb")  # here: the next one may take its place
        finally:
            self._waiting -= 1

    def _write(self, suffix: str, begin: float, end: float) -> None:
        self._drop()
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="bellcrank-", ignore_cleanup_errors=True)
        self.written += 1
        path = Path(self._folder.name) / f"{self.written}.{suffix}"
        self.session.saved(begin, end).save(path)
        self._path = path

    def _drop(self) -> None:
        if self._path is not None:
            with contextlib.suppress(OSError):  # Windows keeps what is being read
                self._path.unlink()
        self._path = None

    def close(self) -> None:
        self._drop()
        if self._folder is not None:
            self._folder.cleanup()


def pieces(stream: BinaryIO) -> Iterator[bytes]:
    with stream:
        while piece := stream.read(PIECE):
            yield piece
