"""Unauthorised clients are refused; the tests write bytes to the port, without a client library."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fake_drive import FakeDrive

pytest.importorskip("starlette", reason="the extra cockpit is not installed")

from bellcrank.cockpit.app import MAX_WAITING, RequestChecks
from bellcrank.cockpit.guard import Guard
from bellcrank.cockpit.server import listening_socket, serve_while
from bellcrank.cockpit.session import Session
from bellcrank.excavators import rotary_machine as excavator

TOKEN = "of-this-server"
KEY = f"Authorization: Bearer {TOKEN}"
PATHS = ("/", "/cockpit.js", "/nothing", "/replay", "/record.csv", "/record.npz", "/record.exe")
SECRET = ("/replay", "/record.csv", "/record.npz", "/record.exe", "/record.csv?from=0&to=1")


class Served:
    """A server on a port of its own, in a thread."""

    def __init__(self) -> None:
        self.listening = listening_socket("127.0.0.1", 0)
        self.port = self.listening.getsockname()[1]
        self.session, self.saves = Session(excavator.machine(), FakeDrive), 0
        found = self.session.recorded
        self.session.recorded = lambda *span: (self._count(), found(*span))[1]  # type: ignore[method-assign]
        self._end, ready = threading.Event(), threading.Event()

        def goes_on() -> bool:
            ready.set()
            return not self._end.is_set()

        job = serve_while(self.session, Guard(token=TOKEN), self.listening, goes_on)
        self.thread = threading.Thread(target=lambda: asyncio.run(job))
        self.thread.start()
        assert ready.wait(60)

    def _count(self) -> None:
        self.saves += 1

    def stop(self) -> None:
        self._end.set()
        self.thread.join(20)
        self.listening.close()

    @property
    def here(self) -> str:
        return f"127.0.0.1:{self.port}"

    def said(self, path: str, *lines: str, host: str = "", method: str = "GET") -> tuple[int, bytes]:
        """Return the status and the rest of the answer."""
        head = "\r\n".join(
            [f"{method} {path} HTTP/1.1", f"Host: {host or self.here}", "Connection: close", *lines, "", ""]
        )
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            s.sendall(head.encode("latin-1"))
            got = b""
            while piece := s.recv(65536):
                got += piece
        return int(got.split(b" ", 2)[1]), got

    def live(self, *lines: str, host: str = "") -> tuple[int, bytes]:
        """Return the answer to a websocket's request, and the first frames.

        The test closes the connection at its end.
        """
        ask = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
        head = ["GET /live HTTP/1.1", f"Host: {host or self.here}", *ask, "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            s.sendall("\r\n".join([*head, *lines, "", ""]).encode("latin-1"))
            got = b""
            while b"\r\n\r\n" not in got or (got.startswith(b"HTTP/1.1 101") and not got.partition(b"\r\n\r\n")[2]):
                piece = s.recv(65536)
                if not piece:
                    break
                got += piece
        return int(got.split(b" ", 2)[1]), got.partition(b"\r\n\r\n")[2]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def nothing_saved(served: Served) -> None:
    served.saves = 0


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "192.168.1.5", "127.0.0.1.evil.example", "["])
def test_foreign_host_names_are_rejected(served: Served, path: str, host: str) -> None:
    assert served.said(path, KEY, host=host)[0] == 421
    assert served.saves == 0


def test_websocket_of_a_foreign_host_is_rejected(served: Served) -> None:
    assert served.live(KEY, "Origin: http://evil.example", host="evil.example")[0] == 403


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "says",
    [
        "Origin: https://evil.example",
        "Origin: null",
        "Origin: http://127.0.0.1:1",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors",  # <img>, <script>
        "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors",  # from another port
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nOrigin: null",  # a form
    ],
)
def test_pages_of_other_sites_are_rejected(served: Served, path: str, says: str) -> None:
    """Pages of other origins get no content, even with the token, which they cannot have."""
    assert served.said(path, KEY, says)[0] == 403
    assert served.saves == 0


def test_requested_paths_send_no_control_characters_to_the_terminal(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Requested paths do not reach the terminal as control characters.

    A page of another site may request any path, and its characters once appeared in the terminal unchanged.
    """
    checked: Any = RequestChecks(None, Guard(token=TOKEN))
    caplog.set_level("WARNING", logger="bellcrank.cockpit")
    checked._log_refusal("/\x1b]0;mine\x07\nfake line", {"origin": "\x9b31m" + "a" * 60_000, "host": "evil.example"})
    (line,) = caplog.messages
    assert line.isprintable()
    assert len(line) < 300
    for _ in range(100):
        checked._log_refusal("/", {})
    assert len(caplog.messages) == 21
    assert caplog.messages[-1] == "further refusals are not logged"
    caplog.clear()
    for k in range(30):
        assert served.said(f"/%1b%5b31m{k}%0afake", host="evil.example")[0] == 421
    assert len(caplog.messages) <= 21
    assert all(line.isprintable() for line in caplog.messages)


def test_link_of_another_site_opens_only_the_page(served: Served) -> None:
    link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate"
    assert served.said("/", link)[0] in (200, 503)  # 503 if the page is not built
    for path in SECRET:
        assert served.said(path, KEY, link)[0] == 403
    assert served.saves == 0


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_websockets_of_other_pages(served: Served, origin: str) -> None:
    assert served.live(KEY, f"Origin: {origin}")[0] == 403


@pytest.mark.parametrize("path", SECRET)
@pytest.mark.parametrize(
    "token",
    [
        "",
        "Authorization: Bearer",
        f"Authorization: {TOKEN}",
        f"Authorization: Bearer {TOKEN}x",
        f"Authorization: Basic {TOKEN}",
        "Authorization: Bearer \xff",
        f"Cookie: token={TOKEN}",
    ],
)
def test_requests_without_the_token_read_and_write_nothing(served: Served, path: str, token: str) -> None:
    assert served.said(path, *([token] if token else []))[0] == 401
    assert (
        served.said(f"{path}{'&' if '?' in path else '?'}token={TOKEN}")[0] == 401
    )  # addresses are stored and displayed
    assert served.saves == 0


@pytest.mark.parametrize("token", ["", "Authorization: Bearer x", "Sec-WebSocket-Protocol: bellcrank, token.x"])
def test_a_websocket_without_the_token(served: Served, token: str) -> None:
    """A websocket without the token receives only the close frame: 0x88, two bytes, 4401."""
    status, frames = served.live(*([token] if token else []))
    assert (status, frames[:4]) == (101, b"\x88\x02" + (4401).to_bytes(2, "big"))


@pytest.mark.parametrize("token", [KEY, f"Sec-WebSocket-Protocol: bellcrank, token.{TOKEN}"])
def test_a_websocket_with_the_token(served: Served, token: str) -> None:
    status, frames = served.live(token, f"Origin: http://{served.here}")
    assert status == 101
    assert frames[:1] == b"\x81"  # a text frame: the welcome


def test_repeated_request_writes_one_record(served: Served) -> None:
    found = [served.said("/record.csv?from=0&to=1", KEY) for _ in range(5)]
    assert {status for status, _ in found} == {200}
    assert len({body.partition(b"\r\n\r\n")[2] for _, body in found}) == 1
    assert served.saves == 1
    assert served.said("/record.npz?from=0&to=1", KEY)[0] == 200
    assert served.saves == 2
    assert served.said("/record.csv?from=0&to=1", KEY, method="HEAD")[0] == 200


def test_record_after_a_reset_is_written_again(served: Served) -> None:
    served.said("/record.csv?from=0&to=1", KEY)
    before = served.saves
    served.session.reset()
    served.said("/record.csv?from=0&to=1", KEY)
    assert served.saves == before + 1


def test_a_crowd_waits_in_line_and_the_rest_is_sent_away(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One writes at a time, at most MAX_WAITING clients wait, and all others are refused."""
    go, writing, most, lock = threading.Event(), [0], [0], threading.Lock()
    found = served.session.recorded

    def slow(*span: Any) -> Any:
        with lock:
            writing[0] += 1
            most[0] = max(most[0], writing[0])
        assert go.wait(60)
        with lock:
            writing[0] -= 1
        return found(*span)

    monkeypatch.setattr(served.session, "recorded", slow)
    crowd = 3 * MAX_WAITING
    with ThreadPoolExecutor(crowd) as pool:
        jobs = [pool.submit(served.said, f"/record.csv?from=0&to={2 + 1e-3 * k}", KEY) for k in range(crowd)]
        while sum(job.done() for job in jobs) < crowd - MAX_WAITING:
            assert not any(job.exception() for job in jobs if job.done())
        go.set()
        statuses = sorted(job.result()[0] for job in jobs)
    assert statuses == [200] * MAX_WAITING + [429] * (crowd - MAX_WAITING)
    assert most == [1]
