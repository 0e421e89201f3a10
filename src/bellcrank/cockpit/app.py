"""Web application (Starlette): the page, its files, the websocket, and records as files.

A record holds ten minutes of a thousand rows per second, a hundred megabytes or more. So one file is written at a time,
and the newest is kept: a repeated request gets the file that exists. Any other request waits until no file is being
written, and then as long as the last file took to write: so the disk is idle at least half of the time. A request is
rejected while MAX_WAITING others wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocketClose

from bellcrank.cockpit.guard import Guard, decoded_headers
from bellcrank.cockpit.hub import Hub, log, log_failure
from bellcrank.cockpit.session import Session
from bellcrank.errors import BellcrankError
from bellcrank.quoting import quoted_name

STATIC = Path(__file__).with_name("static")
BUILD = "make page"
STATIC_FILES = {"cockpit.js": "text/javascript", "line.js": "text/javascript", "cockpit.css": "text/css"}
FORMATS = ("csv", "npz", "parquet", "mcap")
MAX_LOGGED_REFUSALS = 20  # refusals that are logged
OWN_SOURCES = "; ".join(f"{what}-src 'self'" for what in ("script", "worker", "style", "connect"))
POLICY = f"default-src 'none'; {OWN_SOURCES}; img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
NOT_BUILT = f"""<!doctype html><title>Bellcrank</title><h1>The page is not built</h1>
<p>The drive runs and the websocket at <code>/live</code> works. To build the page, in Bellcrank's source folder:</p>
<pre>{BUILD}</pre><p>then load this page again.</p>"""
MAX_WAITING = 4  # requests
PIECE_BYTES = 1 << 18  # bytes per piece of a response


class FileEndpoints:
    """Files for browsers. The page itself needs no token: it contains only public code."""

    def __init__(self, session: Session, guard: Guard, saving: RecordDownloads) -> None:
        self.session, self.guard, self.downloads = session, guard, saving
        self._replay_slot = asyncio.Semaphore(1)  # a replay is large: one at a time

    async def index(self, request: Request) -> Response:
        """Answer a `request` for the page."""
        page = STATIC / "index.html"
        return FileResponse(page, media_type="text/html") if page.exists() else HTMLResponse(NOT_BUILT, 503)

    async def file(self, request: Request) -> Response:
        """Answer a `request` for a file of the page."""
        name = request.path_params["name"]
        if name not in STATIC_FILES or not (STATIC / name).exists():
            return PlainTextResponse("There is no such file.\n", 404)
        return FileResponse(STATIC / name, media_type=STATIC_FILES[name])

    async def replay(self, request: Request) -> Response:
        """Answer a `request` for replay data."""
        if not self.guard.has_token(request.headers):
            return _missing_token()
        span = _time_span(request)
        async with self._replay_slot:
            content = await run_in_threadpool(self.session.replay, *span)
        return Response(content, media_type="application/octet-stream")

    async def record(self, request: Request) -> Response:
        """Answer a `request` for the record as a file."""
        if not self.guard.has_token(request.headers):
            return _missing_token()
        suffix = request.path_params["suffix"]
        if suffix not in FORMATS:
            return PlainTextResponse(f"There is no such format; there are {', '.join(FORMATS)}.\n", 404)
        try:
            stream = await self.downloads.file(suffix, *_time_span(request))
        except BellcrankError as error:
            return PlainTextResponse(f"{error}\n", 400)
        except BusyError:
            return PlainTextResponse("Too many records are being written; try again.\n", 429, {"Retry-After": "5"})
        name = f"{self.session.machine.mechanism.name}.{suffix}"
        safe = "".join(c if (c.isalnum() and c.isascii()) or c in "._-" else "_" for c in name)
        headers = {
            "Content-Disposition": f'attachment; filename="{safe}"',
            "Content-Length": str(os.fstat(stream.fileno()).st_size),
        }
        closed = BackgroundTask(stream.close)  # a HEAD request does not read the pieces
        return StreamingResponse(pieces(stream), 200, headers, "application/octet-stream", closed)


def _missing_token() -> Response:
    text = "The token is missing or wrong: open the address that the terminal shows.\n"
    return PlainTextResponse(text, 401, {"WWW-Authenticate": "Bearer"})


def _time_span(request: Request) -> tuple[float, float]:
    """Parse ?from=...&to=..., in seconds of the run; missing or invalid values are the beginning or the end."""
    times = []
    for key, otherwise in (("from", -math.inf), ("to", math.inf)):
        try:
            x = float(request.query_params.get(key, ""))
        except ValueError:
            x = math.nan
        times.append(otherwise if math.isnan(x) else x)
    return times[0], times[1]


class RequestChecks:
    """Middleware that checks Host and Origin, and adds security headers to every answer."""

    def __init__(self, app: Any, guard: Guard) -> None:
        self.app, self.guard, self.refusals = app, guard, 0

    def _log_refusal(self, path: str, headers: Mapping[str, str]) -> None:
        """Log a refused request: its text is quoted, and the number of log lines is limited."""
        self.refusals += 1
        if self.refusals <= MAX_LOGGED_REFUSALS:
            words = [quoted_name(x, 80) for x in (path, headers.get("origin", ""), headers.get("host", ""))]
            log.warning("refused %s, origin %s, host %s", *words)
        if self.refusals == MAX_LOGGED_REFUSALS:
            log.warning("further refusals are not logged")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = decoded_headers(scope)
        refusal = None
        if not self.guard.allows_host(headers.get("host")):
            refusal = PlainTextResponse("This computer does not answer to that name.\n", 421)
        elif not self.guard.allows_origin(headers, page_request=scope["type"] == "http" and scope["path"] == "/"):
            refusal = PlainTextResponse("Not for pages of other sites.\n", 403)
        if refusal is not None:
            self._log_refusal(scope["path"], headers)
            refused: Any = refusal if scope["type"] == "http" else WebSocketClose(1008)
            await refused(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
            await send(message)

        await self.app(scope, receive, with_headers)


def application(session: Session, guard: Guard | None = None, clock: Callable[[], float] = time.monotonic) -> Starlette:
    """Return the application that serves a session, and starts and stops it.

    Parameters
    ----------
    session
        Session to serve.
    guard
        Access control; by default with a new token.
    clock
        Time in seconds.
    """
    guard = guard or Guard()
    hub, downloads = Hub(session, guard, clock), RecordDownloads(session, clock)
    files = FileEndpoints(session, guard, downloads)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        session.start()
        task = asyncio.create_task(hub.run())
        task.add_done_callback(log_failure)
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            session.stop()
            downloads.close()

    routes = [
        Route("/", files.index),
        Route("/replay", files.replay),
        Route("/record.{suffix}", files.record),
        Route("/{name}", files.file),
        WebSocketRoute("/live", hub.serve_page),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.hub, app.state.saving = hub, downloads
    app.add_middleware(RequestChecks, guard=guard)
    return app


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
