"""Web application (Starlette): the page, its files, the websocket, and records as files."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocketClose

from bellcrank.cockpit.downloads import BusyError, RecordDownloads, pieces
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
