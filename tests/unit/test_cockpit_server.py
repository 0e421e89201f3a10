"""The cockpit's server: pages connect, leave, request, and send bad messages. The tests set the clock."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from fake_drive import FakeDrive

starlette = pytest.importorskip("starlette", reason="the extra cockpit is not installed")
pytest.importorskip("httpx2", reason="starlette's test client needs httpx2")

from starlette.testclient import TestClient  # noqa: E402
from starlette.websockets import WebSocketDisconnect  # noqa: E402

from bellcrank.cli import app as command  # noqa: E402
from bellcrank.cockpit import app as web  # noqa: E402
from bellcrank.cockpit import guard, messages  # noqa: E402
from bellcrank.cockpit.guard import Guard  # noqa: E402
from bellcrank.cockpit.hub import ANSWER_SECONDS, DEAD_MAN_SECONDS, Hub, Viewer  # noqa: E402  # noqa: E402
from bellcrank.cockpit.server import LogRateLimit, listening_socket, serve_while  # noqa: E402
from bellcrank.cockpit.session import Session  # noqa: E402
from bellcrank.excavators import rotary_machine as excavator  # noqa: E402

HOME = "http://127.0.0.1:8731"
LIVE = "ws://127.0.0.1:8731/live"
HERE = ("127.0.0.1", 40000)
TOKEN = "of-this-server"
KEY_LINE = f"Authorization: Bearer {TOKEN}\r\n"
KEY = {"Authorization": f"Bearer {TOKEN}"}


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Page:
    """A websocket of the test client; messages of the server are sorted by kind."""

    def __init__(self, socket: Any) -> None:
        self.socket, self.told, self.frames = socket, list[Any](), list[Any]()

    def send(self, kind: str, **content: Any) -> None:
        self.socket.send_text(json.dumps({"type": kind, **content}))

    def until(self, found: Callable[[Page], Any], most: int = 500) -> Any:
        """Read messages until a condition holds."""
        for _ in range(most):
            if value := found(self):
                return value
            got = self.socket.receive()
            if got["type"] == "websocket.close":
                raise WebSocketDisconnect(got["code"])
            if got.get("text") is not None:
                self.told.append(json.loads(got["text"]))
            elif got["bytes"][0] == messages.STATE:
                head = messages.HEADER.unpack_from(got["bytes"])
                self.frames.append(head)
                self.send("seen", serial=head[7])
        raise AssertionError(f"not in {most} messages; the last: {self.told[-5:]}")

    def last(self, kind: str) -> Any:
        return next((x for x in reversed(self.told) if x["type"] == kind), None)

    def roles(self, **wanted: Any) -> Any:
        return self.until(
            lambda p: (r := p.last("roles")) and all(r[k] == x for k, x in wanted.items()) and r,
        )

    def flags(self, mask: int, value: int) -> Any:
        """Return the flags of the next picture."""
        start = len(self.frames)
        return self.until(lambda p: next((f for f in p.frames[start:] if f[1] & mask == value), None))


class Ticking(FakeDrive):
    """A drive that runs: there is always a new picture."""

    def snapshot(self) -> Any:
        self.n += 1
        return super().snapshot()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(clock: Clock) -> Iterator[TestClient]:
    made = web.application(Session(excavator.machine(), Ticking), Guard(token=TOKEN), clock)
    with TestClient(made, base_url=HOME, client=HERE, headers=KEY) as client:
        yield client


@pytest.fixture
def drive(client: TestClient) -> Any:
    return lambda: client.app.state.hub.session.drive  # type: ignore[attr-defined]


def joined(client: TestClient, origin: str | None = HOME) -> Any:
    return client.websocket_connect(LIVE, headers={"origin": origin} if origin else {})


def test_welcome_state_and_report(client: TestClient) -> None:
    with joined(client) as s:
        page = Page(s)
        welcome = page.until(lambda p: p.last("welcome"))
        assert welcome["name"] == "excavator"
        assert [lever["name"] for lever in welcome["levers"]] == ["first", "second", "third", "fourth", "resolved"]
        assert page.until(lambda p: p.last("settings"))["rate"] == 1000.0
        report = page.until(lambda p: p.last("report"))
        assert (report["jitter"], report["status"]) == ({"max": "inf"}, "running")
        page.until(lambda p: len(p.frames) > 3)
        assert page.roles(driver=welcome["you"])["viewers"] == 1


def test_idle_scene_is_sent_twice_a_second(clock: Clock) -> None:
    async def looks(make: Any) -> int:
        hub = Hub(Session(excavator.machine(), make), Guard(), clock)
        hub.viewers[1] = Viewer(1)
        for _ in range(60):
            hub.send_state()
            clock.now += 1 / 60
        return hub._serial

    assert asyncio.run(looks(Ticking)) == 60
    assert asyncio.run(looks(FakeDrive)) == 2


def test_levers_and_dead_man(client: TestClient, clock: Clock, drive: Any) -> None:
    with joined(client) as s:
        page = Page(s)
        page.send("input", values=[0.2, 0, 0, 0, 1], n=17)
        page.until(lambda p: p.frames and p.frames[-1][3] == 17)
        page.flags(messages.NEUTRAL, 0)
        assert drive().u.tolist() == [0.2, 0, 0, 0, 1]
        clock.now += 1.01 * DEAD_MAN_SECONDS
        page.flags(messages.NEUTRAL, messages.NEUTRAL)
        assert drive().u.tolist() == [0, 0, 0, 0, 1]
        page.send("input", values=[0.1, 0, 0, 0, 1])
        page.flags(messages.NEUTRAL, 0)
        page.send("blur")
        page.flags(messages.NEUTRAL, messages.NEUTRAL)
        assert drive().u.tolist() == [0, 0, 0, 0, 1]


def test_disconnected_driver_releases_the_helm(client: TestClient, drive: Any) -> None:
    with joined(client) as a:
        page = Page(a)
        page.send("input", values=[0.2, 0, 0, 0, 0])
        page.flags(messages.NEUTRAL, 0)
    with joined(client) as b:
        Page(b).flags(messages.NEUTRAL, messages.NEUTRAL)
        assert drive().u.tolist() == [0, 0, 0, 0, 0]


def test_two_pages_and_one_driver(client: TestClient, clock: Clock, drive: Any) -> None:
    with joined(client) as a, joined(client) as b:
        first, second = Page(a), Page(b)
        one = first.roles(viewers=2)["you"]
        two = second.roles(driver=one)["you"]
        second.send("input", values=[0.2, 0, 0, 0, 0])
        second.send("pause")
        assert "Only the driver" in second.until(lambda p: p.last("note"))["text"]
        assert drive().u.tolist() == [0, 0, 0, 0, 0]
        assert ("pause",) not in drive().calls
        heard = len([x for x in first.told if x["type"] == "settings"])
        second.send("ask")
        first.roles(asking=two)
        assert (
            len([x for x in first.told if x["type"] == "settings"]) == heard
        )  # no one but the sender gets the refusal
        first.send("answer", grant=False)
        second.until(lambda p: (n := p.last("note")) and "keeps" in n["text"])
        second.send("ask")
        first.roles(asking=two)
        first.send("answer", grant=True)
        second.roles(driver=two)
        first.send("ask")
        first.roles(asking=one)
        clock.now += ANSWER_SECONDS + 0.1  # no answer
        first.roles(driver=one)
        first.send("release")
        second.roles(driver=None)


def test_buttons(client: TestClient, drive: Any) -> None:
    with joined(client) as s:
        page = Page(s)
        page.send("pause")
        page.until(lambda p: (x := p.last("settings")) and not x["running"])
        page.flags(messages.RUNNING, 0)
        page.send("slow", factor=0.1)
        page.until(lambda p: p.last("settings")["slow"] == 0.1)
        page.send("resume")
        page.send("reset")
        page.until(lambda p: p.last("settings")["running"])
        page.send("switch", rate=200, integrator="euler", method="aba")
        page.until(lambda p: p.last("settings")["integrator"] == "euler")
        assert (drive().rate, drive().integrator, drive().method) == (200.0, "euler", "aba")
        assert page.until(lambda p: p.frames[-1][2] == 1)  # a new epoch


def test_driver_keeps_control_while_settings_compile(client: TestClient, drive: Any, monkeypatch: Any) -> None:
    done, session = threading.Event(), client.app.state.hub.session  # type: ignore[attr-defined]
    make = session.make
    monkeypatch.setattr(session, "make", lambda *asked: (done.wait(), make(*asked))[1])  # never finishes compiling
    with joined(client) as s:
        page = Page(s)
        page.send("switch", integrator="euler")
        page.until(lambda p: (x := p.last("settings")) and x["compiling"].startswith("euler"))
        page.send("input", values=[0.1, 0, 0, 0, 0], n=7)
        page.until(lambda p: p.frames and p.frames[-1][3] == 7)
        assert drive().u[0] == 0.1
        page.send("switch", integrator="rk4", rate=500)
        assert "another change" in page.until(lambda p: (n := p.last("note")) and n["bad"] and n)["text"]
        with joined(client) as other:  # a later client is informed as well
            assert Page(other).until(lambda p: p.last("settings"))["compiling"]
        done.set()
        assert page.until(lambda p: not (x := p.last("settings"))["compiling"] and x)["integrator"] == "euler"


def test_newest_late_periods_are_sent(client: TestClient, drive: Any, monkeypatch: Any) -> None:
    entry = {"time": 1.0, "late": 1e-3, "cost": 2e-3, "skipped": 3}
    log = [entry | {"time": float(t)} for t in range(256)]
    monkeypatch.setattr(FakeDrive, "report", lambda self: {"overruns": 256, "log": log})
    with joined(client) as s:
        told = Page(s).until(lambda p: p.last("report"))["log"]
        assert [x["time"] for x in told] == [float(t) for t in range(248, 256)]


def test_bad_messages_are_answered_and_change_nothing(client: TestClient, drive: Any) -> None:
    with joined(client) as s:
        page = Page(s)
        few, fast = '{"type": "input", "values": [1]}', '{"type": "slow", "factor": 9}'
        for text in ("", "{", '{"type": "launch"}', few, fast):
            page.told.clear()
            s.send_text(text)
            assert page.until(lambda p: p.last("note"))["bad"]
        s.send_bytes(b"\x00" * 100)
        page.until(lambda p: "binary" in p.last("note")["text"])
        page.told.clear()
        page.send("switch", rate=123)
        assert "rate is 123" in page.until(lambda p: (n := p.last("note")) and n["bad"] and n)["text"]
        assert drive().u.tolist() == [0, 0, 0, 0, 0]


def test_a_flood_is_dropped_then_cut(client: TestClient) -> None:
    with joined(client) as s:
        page = Page(s)
        page.roles(viewers=1)
        for n in range(5000):
            page.send("input", values=[0, 0, 0, 0, 0], n=n)
        with pytest.raises(WebSocketDisconnect):
            page.until(lambda p: False, 5000)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:1", "null"])
def test_other_sites_cannot_connect(client: TestClient, origin: str) -> None:
    with pytest.raises(WebSocketDisconnect), joined(client, origin):
        pass


def test_foreign_host_names_are_rejected(client: TestClient) -> None:
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/live", headers={"host": "evil.example", "origin": "http://evil.example"}),
    ):
        pass


def test_websocket_without_the_token_receives_nothing(client: TestClient) -> None:
    wrong = (
        {"Authorization": ""},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": TOKEN},
    )
    for headers in wrong:
        with client.websocket_connect(LIVE, headers={"origin": HOME, **headers}) as s:
            assert s.receive() == {"type": "websocket.close", "code": 4401, "reason": ""}
    assert client.app.state.hub.viewers == {}  # type: ignore[attr-defined]


def test_a_page_brings_the_token_as_a_subprotocol(client: TestClient) -> None:
    for offered, said in (
        (["bellcrank", f"token.{TOKEN}"], "welcome"),
        (["bellcrank", "token.guess"], None),
        (["bellcrank"], None),
    ):
        with client.websocket_connect(LIVE, subprotocols=offered, headers={"origin": HOME, "Authorization": ""}) as s:
            assert s.accepted_subprotocol == "bellcrank"
            first = s.receive()
            assert (json.loads(first["text"])["type"] if "text" in first else None) == said


def test_files(client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "STATIC", tmp_path)
    answer = client.get("/")
    assert answer.status_code == 503
    assert "make page" in answer.text
    (tmp_path / "index.html").write_text("<title>here</title>")
    (tmp_path / "cockpit.js").write_text("1")
    (tmp_path / "secret.txt").write_text("no")
    assert "here" in client.get("/").text
    assert client.get("/cockpit.js").headers["content-type"].startswith("text/javascript")
    for path in ("/secret.txt", "/../pyproject.toml", "/%2e%2e/secret.txt", "/cockpit.css", "/record.exe"):
        assert client.get(path).status_code == 404
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    lines = client.get("/record.csv").text.splitlines()
    assert any("boom.q" in line for line in lines[:5])
    part = client.get("/record.csv?from=1&to=1.5").text.splitlines()
    assert [float(line.split(",")[0]) for line in (part[-501], part[-1])] == [1.0, 1.5]
    assert not part[-502][0].isdigit()  # the marked part begins there
    assert len(client.get("/record.csv?from=nan&to=x").text.splitlines()) == len(lines)
    assert len(client.get("/replay?from=1&to=2").content) > 1000
    assert len(client.get("/replay?from=x").content) > 1000


# -- a real port


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    """Start a server on a port of its own, in a thread."""
    listening = listening_socket("127.0.0.1", 0)
    session, end, ready = Session(excavator.machine(), Ticking), threading.Event(), threading.Event()

    def goes_on() -> bool:
        ready.set()
        return not end.is_set()

    thread = threading.Thread(target=lambda: asyncio.run(serve_while(session, Guard(token=TOKEN), listening, goes_on)))
    thread.start()
    ready.wait(10)
    yield listening.getsockname()
    end.set()
    thread.join(10)
    listening.close()
    assert not thread.is_alive()


def test_too_large_a_message_ends_the_line(address: tuple[str, int]) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with connect(f"ws://127.0.0.1:{address[1]}/live", open_timeout=20, additional_headers=KEY) as s:
        s.send("x" * 5000)
        with pytest.raises(ConnectionClosed):
            all(s.recv(timeout=10) for _ in range(1000))
    with connect(
        f"ws://127.0.0.1:{address[1]}/live", open_timeout=20, additional_headers=KEY
    ) as s:  # the server is reachable only there
        assert json.loads(s.recv(timeout=10))["type"] == "welcome"


def test_unread_page_does_not_block_others(address: tuple[str, int]) -> None:
    from websockets.sync.client import connect

    with socket.create_connection(address) as deaf:
        head = f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{address[1]}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        deaf.sendall(
            f"{head}Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n{KEY_LINE}\r\n".encode()
        )
        with connect(f"ws://127.0.0.1:{address[1]}/live", open_timeout=20, additional_headers=KEY) as s:
            frames, start = 0, time.monotonic()
            while frames < 30 and time.monotonic() - start < 20:
                got = s.recv(timeout=10)
                if isinstance(got, bytes) and got[0] == messages.STATE:
                    frames += 1
                    s.send(json.dumps({"type": "seen", "serial": messages.HEADER.unpack_from(got)[7]}))
            assert frames == 30


def closed(line: socket.socket, patience: float = 5.0) -> bool:
    """Return whether the other end has closed the connection."""
    line.settimeout(patience)
    try:
        while got := line.recv(1 << 16):
            assert got
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_half_a_request_is_not_waited_for(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Incomplete requests, unread answers and too many connections are closed; a page that drives stays."""
    from websockets.sync.client import connect

    monkeypatch.setattr(guard, "REQUEST_SECONDS", 0.3)
    monkeypatch.setattr(guard, "RESPONSE_SECONDS", 0.5)
    monkeypatch.setattr(guard, "MAX_CONNECTIONS", 8)
    host = f"Host: 127.0.0.1:{address[1]}\r\n".encode()
    whole = b"GET / HTTP/1.1\r\n" + host + b"\r\n"
    begun = [b"", b"GET / HT", b"GET / HTTP/1.1\r\n" + host, whole + b"GET / HTTP/1.1\r\n"]
    with connect(f"ws://127.0.0.1:{address[1]}/live", open_timeout=20, additional_headers=KEY) as page:
        with ExitStack() as lines:
            slow = [lines.enter_context(socket.create_connection(address)) for _ in begun]
            for line, text in zip(slow, begun, strict=True):
                line.sendall(text)
            assert all(closed(line) for line in slow)
        with ExitStack() as lines:
            monkeypatch.setattr(guard, "REQUEST_SECONDS", 1000.0)
            crowd = [lines.enter_context(socket.create_connection(address)) for _ in range(20)]
            assert sum(closed(line, 0.02 if k else 1.0) for k, line in enumerate(crowd)) == 12
            with socket.create_connection(address) as asks:
                asks.sendall(whole.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                assert asks.recv(100).startswith(b"HTTP/1.1")
        assert page.ping().wait(10)


class Line:
    """A connection in the form that uvicorn passes on."""

    def __init__(self, answered: bool | None, token: str = "") -> None:
        self.cycle = None if answered is None else SimpleNamespace(response_complete=answered)
        self.scope = {"headers": [(b"authorization", f"Bearer {token}".encode())]}
        self.cut = False
        self.transport = SimpleNamespace(abort=lambda: setattr(self, "cut", True))


class Websocket:
    """A websocket in the form that uvicorn passes on; before its handshake it has no token."""

    def __init__(self, token: str | None) -> None:
        if token is not None:
            self.scope = {"headers": [(b"sec-websocket-protocol", f"bellcrank, token.{token}".encode())]}
        self.cut = False
        self.transport = SimpleNamespace(abort=lambda: setattr(self, "cut", True))


def test_client_with_the_token_may_take_long() -> None:
    """A client with the token may take long, and repeated requests are never cut."""
    looks = guard.ConnectionLimits(Guard(token=TOKEN))
    half, deaf, mine, keeps = Line(None), Line(False), Line(False, TOKEN), Line(True)
    page, stranger, silent = Websocket(TOKEN), Websocket("another"), Websocket(None)
    lines = [half, deaf, mine, keeps, page, stranger, silent]
    for second in range(1000):
        looks.check(lines, float(second))
        if second % 5 == 0:
            keeps.cycle = SimpleNamespace(response_complete=second % 10 == 0)
        assert (half.cut, deaf.cut) == (
            second > guard.REQUEST_SECONDS,
            second > guard.RESPONSE_SECONDS,
        )
        assert stranger.cut == silent.cut == (second > guard.REQUEST_SECONDS)
    assert not mine.cut
    assert not page.cut
    assert not keeps.cut


def test_a_crowd_of_websockets_without_the_token_leaves_room(address: tuple[str, int]) -> None:
    """A crowd of websockets without the token leaves room for others.

    Each once held a file descriptor of the server, whatever the limit of connections.
    """
    host = f"127.0.0.1:{address[1]}"
    ask = (
        f"GET /live HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ).encode()
    crowd = 3 * guard.MAX_CONNECTIONS
    with ExitStack() as lines:
        held = [lines.enter_context(socket.create_connection(address)) for _ in range(crowd)]
        for line in held:
            with suppress(OSError):
                line.sendall(ask)
        with socket.create_connection(address) as owner:
            owner.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            assert owner.recv(100).startswith(b"HTTP/1.1")
        assert sum(_ended(line) for line in held) >= crowd - guard.MAX_CONNECTIONS


def _ended(line: socket.socket) -> bool:
    """Return whether the server has closed the connection; earlier data is read."""
    line.settimeout(0.05)
    try:
        while line.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_few_lines_a_minute_reach_the_terminal() -> None:
    now = [0.0]
    few = LogRateLimit(20, lambda: now[0])
    said = logging.LogRecord("x", logging.ERROR, "", 0, "accept() failed", (), None)
    assert sum(few.filter(said) for _ in range(10_000)) == 20
    now[0] = 61.0
    assert sum(few.filter(said) for _ in range(10_000)) == 20


def test_silent_connections_are_closed_first() -> None:
    crowd, asks = [Line(None) for _ in range(3 * guard.MAX_CONNECTIONS)], [Line(False) for _ in range(5)]
    assert guard.ConnectionLimits(Guard(token=TOKEN)).check([*asks, *crowd], 0.0) == 2 * guard.MAX_CONNECTIONS + 5
    assert not any(line.cut for line in asks)


# -- the command


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    from bellcrank.cli import drive

    monkeypatch.setattr(drive, "drive_factory", lambda files: FakeDrive)


def run(*args: str) -> Any:
    return CliRunner().invoke(command, ["drive", *args, "--no-browser"])


def test_command_prints_the_address_and_the_report(fake: None) -> None:
    done = run("excavator", "--port", "0", "--seconds", "0.3", "--rate", "500", "--method", "aba")
    assert done.exit_code == 0, done.output
    assert re.search(r"drive it at http://127\.0\.0\.1:\d+/#token=[\w-]{32}(?![\w-])", done.output)
    assert "0 periods ended late\n" in done.output
    done = run("pendulum", "--port", "0", "--seconds", "0.3", "--by", "torque")
    assert done.exit_code == 0, done.output


def test_occupied_port_raises(fake: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("excavator", "--port", str(port))
    assert done.exit_code == 2
    assert f"port {port} on 127.0.0.1 cannot be used: another program uses it" in done.output
    assert f"--port {port + 1}" in done.output


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("excavatr",), 'no mechanism "excavatr". Did you mean "excavator"'),
        (("excavator", "--rate", "7"), "rate is 7; expected one of"),
        (("excavator", "--integrator", "rk9"), 'no integrator "rk9"'),
        (("excavator", "--port", "70000"), "--port 70000: expected 0 to 65535"),
        (("excavator", "--host", "no.such.host.invalid"), "cannot be used"),
        (("pendulum", "--by", "wish"), 'no way to drive "wish"'),
        (("excavator", "--pilot", "chuck"), 'no program "chuck"'),
    ],
)
def test_invalid_command_options_raise(fake: None, args: tuple[str, ...], text: str) -> None:
    done = run(*(args if "--port" in args else (*args, "--port", "0")))
    assert done.exit_code == 2, done.output
    assert text in " ".join(done.output.split())


def test_without_the_extra(fake: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "starlette", None)
    done = run("excavator")
    assert done.exit_code == 2
    assert 'pip install "bellcrank[cockpit]"' in " ".join(done.output.split())


def test_without_the_page(fake: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "STATIC", tmp_path)
    done = run("excavator", "--port", "0", "--seconds", "0.2")
    assert "The page is not built" in done.output
    assert "make page" in done.output
