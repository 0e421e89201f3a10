"""Puts the cockpit on a port and opens a browser, until Ctrl-C or for so many seconds."""

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
from bellcrank.cockpit.door import Door
from bellcrank.cockpit.guard import Guard, loopback
from bellcrank.cockpit.messages import LARGEST_MESSAGE
from bellcrank.cockpit.session import Session
from bellcrank.errors import InputError

PORT = 8731
LOGGERS = ("asyncio", "uvicorn.error", "bellcrank.cockpit")


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens, or a word about why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(64)
    except (OSError, OverflowError) as error:
        made.close()
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "another program has it (perhaps another `bellcrank drive`)" if taken else str(error)
        raise InputError(
            f"port {port} on {host} cannot be used: {why}. Take another one: --port {port + 1}, or --port 0 for any."
        ) from None
    return made


class FewLines(logging.Filter):
    """Let through so many messages a minute: what strangers cause, by the thousand, does not fill the terminal."""

    def __init__(self, most: int = 20, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.most, self.clock = most, clock
        self._times: deque[float] = deque(maxlen=most)

    def filter(self, record: logging.LogRecord) -> bool:
        now = self.clock()
        if len(self._times) == self.most and now - self._times[0] < 60.0:
            return False
        self._times.append(now)
        return True


class Server(uvicorn.Server):
    """Leaves Ctrl-C to who started it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


def server(session: Session, guard: Guard, door: Door) -> Server:
    class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """uvicorn's connection, which the door sees at once."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            door.admit(self.connections)

    config = uvicorn.Config(
        application(session, guard),
        http=Connection,
        log_level="warning",
        ws="websockets-sansio",
        ws_max_size=LARGEST_MESSAGE,
        ws_per_message_deflate=False,  # states are small and numbers do not shrink
        ws_ping_interval=5.0,
        ws_ping_timeout=20.0,
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    return Server(config)


async def serving(session: Session, guard: Guard, listening: socket.socket, goes_on: Callable[[], bool]) -> None:
    """Serves pages as long as `goes_on` says so; it is asked four times a second, from when the drive runs."""
    door = Door(guard)
    made = server(session, guard, door)
    task = asyncio.create_task(made.serve([listening]))
    try:
        while not task.done() and not made.started:
            await asyncio.wait([task], timeout=0.02)
        while not task.done() and goes_on():
            door.look(made.server_state.connections, time.monotonic())
            await asyncio.wait([task], timeout=0.25)
    finally:
        made.should_exit = True
        await task


def has_screen() -> bool:
    """Without one, a browser would be one in the terminal, on top of what is written there."""
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
    """Serve until Ctrl-C, for so many seconds, or until `ended` says so.

    Parameters
    ----------
    listening : socket
        From `bound`.
    ready : callable
        Gets the address, with the token in it.
    each : callable
        Called four times a second, as `ended` is.
    """
    guard = guard or Guard(host)
    shown = host if loopback(host) else socket.gethostname() if host in ("0.0.0.0", "::") else host
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

    few_lines = FewLines()
    for name in LOGGERS:
        logging.getLogger(name).addFilter(few_lines)
    gc.collect()
    gc.freeze()  # graphs and machines stay: going through them again takes a second, and pictures wait for it
    try:
        asyncio.run(serving(session, guard, listening, goes_on))
    finally:
        gc.unfreeze()
        listening.close()
        for name in LOGGERS:
            logging.getLogger(name).removeFilter(few_lines)
