"""Server of the cockpit: binds a port, opens a browser, and serves until Ctrl-C or for a given time."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import socket
import sys
import threading
import time
import webbrowser
from collections import deque
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from bellcrank.cockpit.app import application
from bellcrank.cockpit.guard import ConnectionLimits, Guard, is_loopback
from bellcrank.cockpit.messages import MAX_MESSAGE_BYTES
from bellcrank.cockpit.session import Session
from bellcrank.errors import InputError

LOGGERS = ("asyncio", "uvicorn.error", "bellcrank.cockpit")


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `port` of `host`, or raise an InputError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    new_socket = socket.socket(family, socket.SOCK_STREAM)
    new_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        new_socket.bind((host, port))
        new_socket.listen(64)
    except (OSError, OverflowError) as error:
        new_socket.close()
        in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "another program uses it (perhaps another `bellcrank drive`)" if in_use else str(error)
        raise InputError(
            f"port {port} on {host} cannot be used: {why}. Choose another one: --port {port + 1}, or --port 0."
        ) from None
    return new_socket


class LogRateLimit(logging.Filter):
    """Limit log messages to `max_per_minute` per minute: requests without token may cause thousands."""

    def __init__(self, max_per_minute: int = 20, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.max_per_minute, self.clock = max_per_minute, clock
        self._times: deque[float] = deque(maxlen=max_per_minute)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether `record` is within the limit."""
        now = self.clock()
        if len(self._times) == self.max_per_minute and now - self._times[0] < 60.0:
            return False
        self._times.append(now)
        return True


class Server(uvicorn.Server):
    """Server that leaves signals to the caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """Capture no signals."""
        yield


def make_server(session: Session, guard: Guard, limits: ConnectionLimits) -> Server:
    """Return a server of `session` with access control `guard` and connection limits `limits`."""

    class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """Connection of uvicorn that `limits` checks at once."""

        def connection_made(self, transport: Any) -> None:
            """Admit the connection of `transport`."""
            super().connection_made(transport)
            limits.admit(self.connections)

    config = uvicorn.Config(
        application(session, guard),
        http=Connection,
        log_level="warning",
        ws="websockets-sansio",
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False,  # states are small, and floating-point numbers hardly compress
        ws_ping_interval=5.0,
        ws_ping_timeout=20.0,
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    return Server(config)


async def serve_while(session: Session, guard: Guard, listening: socket.socket, goes_on: Callable[[], bool]) -> None:
    """Serve pages while a function returns true.

    Parameters
    ----------
    session
        Session to serve.
    guard
        Access control.
    listening
        Socket of `listening_socket`.
    goes_on
        Called four times a second, from the start of the drive; false ends serving.
    """
    limits = ConnectionLimits(guard)
    new_server = make_server(session, guard, limits)
    task = asyncio.create_task(new_server.serve([listening]))
    try:
        while not task.done() and not new_server.started:
            await asyncio.wait([task], timeout=0.02)
        while not task.done() and goes_on():
            limits.check(new_server.server_state.connections, time.monotonic())
            await asyncio.wait([task], timeout=0.25)
    finally:
        new_server.should_exit = True
        await task


def has_screen() -> bool:
    """Return whether there is a screen; without one, a text browser would open in the terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def serve(
    session: Session,
    listening: socket.socket,
    host: str = "127.0.0.1",
    browser: bool = True,
    seconds: float | None = None,
    ready: Callable[[str], None] = print,
    each: Callable[[Session], None] = lambda session: None,
    guard: Guard | None = None,
    ended: Callable[[], bool] = lambda: False,
) -> None:
    """Serve until Ctrl-C, for a given time, or until a function returns true.

    Parameters
    ----------
    session
        Session to serve.
    listening
        Socket of `listening_socket`.
    host
        Address that is served.
    browser
        Open a browser if there is a screen.
    seconds
        Time to serve; None for no limit.
    ready
        Called with the address, including the token.
    each
        Called with the session four times a second.
    guard
        Access control; by default with a new token.
    ended
        Called four times a second; true ends serving.
    """
    guard = guard or Guard(host)
    shown = host if is_loopback(host) else socket.gethostname() if host in ("0.0.0.0", "::") else host
    shown = f"[{shown}]" if ":" in shown else shown
    address = f"http://{shown}:{listening.getsockname()[1]}/#token={guard.token}"

    began: float | None = None

    def goes_on() -> bool:
        nonlocal began
        if began is None:
            began = time.monotonic()
            ready(address)
            if browser and has_screen():
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        each(session)
        return not ended() and (seconds is None or time.monotonic() - began < seconds)

    few_lines = LogRateLimit()
    for name in LOGGERS:
        logging.getLogger(name).addFilter(few_lines)
    gc.collect()
    gc.freeze()  # graphs and machines are permanent: each collection of them would delay states by a second
    try:
        asyncio.run(serve_while(session, guard, listening, goes_on))
    finally:
        gc.unfreeze()
        listening.close()
        for name in LOGGERS:
            logging.getLogger(name).removeFilter(few_lines)
