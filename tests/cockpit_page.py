"""Pages of `bellcrank drive` in headless Chromium, for tests.

The server runs in a thread, and a page that logs an error fails.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from bellcrank.cockpit import app as web
from bellcrank.cockpit.guard import Guard
from bellcrank.cockpit.server import listening_socket, serve_while
from bellcrank.cockpit.session import Session
from chromium import missing
from python_drive import PythonDrive
from waiting import PATIENCE

TOKEN = "of-this-server"


def need_page() -> None:
    if not (web.STATIC / "index.html").exists():
        missing("the page is not built: make page")


class Server:
    """A cockpit server in a thread."""

    def __init__(self, machine: Any, port: int = 0, make: Any = PythonDrive) -> None:
        need_page()
        self.listening = listening_socket("127.0.0.1", port)
        self.port = self.listening.getsockname()[1]
        self.session = Session(machine, make)
        self._end, ready = threading.Event(), threading.Event()

        def goes_on() -> bool:
            ready.set()
            return not self._end.is_set()

        job = serve_while(self.session, Guard(token=TOKEN), self.listening, goes_on)
        self.thread = threading.Thread(target=lambda: asyncio.run(job))
        self.thread.start()
        assert ready.wait(PATIENCE)

    def value(self, name: str) -> float:
        shot = self.session.drive.snapshot()
        values = np.concatenate([shot.y, shot.u, list(shot.outputs.values())])
        return float(values[self.session.machine.names.index(name)])

    def stop(self) -> None:
        self._end.set()
        self.thread.join(20)
        self.listening.close()


@contextmanager
def serving_machines() -> Iterator[Callable[..., Server]]:
    """Return a function that starts servers. They end after the pages, which would otherwise log a lost connection."""
    running = []

    def made(machine: Any, **options: Any) -> Server:
        running.append(Server(machine, **options))
        return running[-1]

    yield made
    for server in running:
        server.stop()


@contextmanager
def opening(browser: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens the page of a server.

    It fails if the page logs or requests anything from the network.
    """
    contexts, trouble = [], list[str]()

    def made(
        server: Server,
        width: int = 640,
        height: int = 420,
        script: str = "",
        quiet: bool = True,
        query: str = "quality=low",
        beside: Any = None,
        **more: Any,
    ) -> Any:
        """Open the page of a server; with `beside`, as another tab in the window of that page."""
        context = beside.context if beside else browser.new_context(viewport={"width": width, "height": height}, **more)
        page = context.new_page()
        page.set_default_timeout(2000.0 * PATIENCE)
        contexts.append(context)
        if script:
            page.add_init_script(script)
        if quiet:
            page.on("pageerror", lambda error: trouble.append(str(error)))
            page.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
        here = (f"http://127.0.0.1:{server.port}/", "data:", f"blob:http://127.0.0.1:{server.port}/")
        page.on("request", lambda r: trouble.append(r.url) if not r.url.startswith(here) else None)
        page.goto(f"http://127.0.0.1:{server.port}/?{query}#token={TOKEN}")
        until(page, "cockpit.state() !== null && cockpit.roles() !== null")
        return page

    yield made
    for context in contexts:
        context.close()
    # Chromium's own messages about its software renderer do not come from the page.
    assert [t for t in trouble if "GPU stall" not in t and "GL Driver" not in t] == []


def until(page: Any, what: str) -> Any:
    """Wait for a JavaScript expression.

    Playwright's own wait compiles text in the page, which the page's policy forbids.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := page.evaluate(what):
            return found
        time.sleep(0.05)
    raise AssertionError(f"never true: {what}; roles {page.evaluate('cockpit.roles()')}")


def pictures(page: Any, more: int) -> None:
    """Wait until newer states have arrived."""
    serial = page.evaluate("cockpit.state()?.serial ?? 0")  # no state yet, just after a change of machine
    until(page, f"cockpit.state()?.serial >= {serial + more}")


def heard(page: Any) -> None:
    """Wait until the server has answered a message that the driver's page sends after this call."""
    number = page.evaluate("cockpit.state().input")
    until(page, f"cockpit.state().input >= {number + 5}")
