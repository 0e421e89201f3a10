"""Access control: neither a page of another site nor another user of this computer may drive, watch or save.

* Host: the name in the address must be this computer's. This prevents DNS rebinding, that is, names of other sites
  that resolve to this computer.
* Origin: requests must come from a page of this server. Browsers state the origin by Origin or Sec-Fetch-Site; other
  programs send neither.
* Token: random, different for each server, and printed in its terminal. The page has it behind the # of its address,
  which browsers do not send. It is sent as `Authorization: Bearer TOKEN`, which a page of another site cannot add, or,
  where a browser cannot add headers, as a subprotocol of the websocket. Cookies are not used: a browser sends the
  cookies of one port to all ports of a computer, and so to programs of other users.
* Rate: messages above a limit are dropped, and after many dropped messages the connection is closed.
* Connections without the token are limited in time and number: any program that can reach the port could open thousands
  with an incomplete request, an answer that is never read, or a websocket. Each needs a file descriptor of this
  process; without free descriptors, no page can connect and no record can be written. A connection with the token has
  no limit: a record may be large, and the network slow.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

SUBPROTOCOL, TOKEN_PREFIX = "bellcrank", "token."  # subprotocols of the websocket: ours, and the prefix of the token
MESSAGES_PER_SECOND, BURST_MESSAGES = 200.0, 400.0  # messages per second; messages at once
MAX_DROPPED_MESSAGES = 2000  # dropped messages, after which the connection is closed
REQUEST_SECONDS = 10.0  # s, time limit of a request
RESPONSE_SECONDS = 60.0  # s, time limit for reading an answer without token: the page, and a megabyte of script
MAX_CONNECTIONS = 100  # connections without token


def is_loopback(host: str) -> bool:
    """Return whether `host` is an address of this computer only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def decoded_headers(scope: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a request's `scope` as text; their names are in lower case."""
    return {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}


def host_name(header: str | None) -> str:
    """Return the host name in the Host `header` without port and brackets, or ""."""
    try:
        return (urlsplit(f"//{header}").hostname or "") if header else ""
    except ValueError:
        return ""


@dataclass(frozen=True)
class Guard:
    """Checks of every request. Names of headers are in lower case."""

    served_address: str = "127.0.0.1"  # the address served
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    def __post_init__(self) -> None:
        if not self.token or not self.token.isascii():
            raise ValueError("a guard needs a token of ASCII letters")

    def allows_host(self, header: str | None) -> bool:
        """Return whether the Host `header` names this computer; a server for others accepts any numeric address."""
        name = host_name(header)
        if not name or is_loopback(name):
            return bool(name)
        if is_loopback(self.served_address):
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in (self.served_address, socket.gethostname().lower(), socket.getfqdn().lower())
        return True

    def allows_origin(self, headers: Mapping[str, str], page_request: bool = False) -> bool:
        """Return whether a request comes from our own page, or from no page at all.

        Parameters
        ----------
        headers
            Headers of the request.
        page_request
            The page itself is requested, possibly by a link on another site. This is harmless, because all further
            requests come from our page.
        """
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return page_request and headers.get("sec-fetch-mode") == "navigate" and "origin" not in headers
        origin, host = headers.get("origin"), headers.get("host")
        if origin is None:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and bool(host) and parts.netloc == host

    def has_token(self, headers: Mapping[str, str]) -> bool:
        """Return whether `headers` have the token, in constant time."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        offered = [x.strip() for x in headers.get("sec-websocket-protocol", "").split(",")]
        tickets = [x.removeprefix(TOKEN_PREFIX) for x in offered if x.startswith(TOKEN_PREFIX)]
        given = given.strip() if kind.lower() == "bearer" else tickets[0] if tickets else ""
        return hmac.compare_digest(self.token.encode(), given.encode("utf-8", "surrogateescape"))


@dataclass
class MessageBucket:
    """Token bucket that limits messages to MESSAGES_PER_SECOND."""

    tokens: float = BURST_MESSAGES
    last: float = 0.0
    dropped: int = field(default=0)

    def allows(self, now: float) -> bool:
        """Return whether a message at time `now` is within the limit, and count it."""
        self.tokens = (
            min(BURST_MESSAGES, self.tokens + (now - self.last) * MESSAGES_PER_SECOND) if self.last else self.tokens
        )
        self.last = now
        if self.tokens < 1.0:
            self.dropped += 1
            return False
        self.tokens -= 1.0
        return True


class ConnectionLimits:
    """Supervision of uvicorn's connections, at intervals and at each new connection if there are many."""

    def __init__(self, guard: Guard, clock: Callable[[], float] = time.monotonic) -> None:
        self.guard, self.clock = guard, clock
        self._progress: weakref.WeakKeyDictionary[Any, tuple[object, float]] = weakref.WeakKeyDictionary()

    def admit(self, connections: Collection[Any]) -> None:
        """Check `connections` when one is added: thousands may be added between two calls of `check`."""
        if len(connections) > MAX_CONNECTIONS:
            self.check(connections, self.clock())

    def check(self, connections: Collection[Any], now: float) -> int:
        """Abort those of `connections` that have exceeded their time at `now`, or their number.

        Connections without a request are aborted before those that are answered, oldest first.

        Returns
        -------
        int
            Number of aborted connections.
        """
        waiting: list[tuple[bool, float, Any]] = []
        for connection in list(connections):
            cycle = getattr(connection, "cycle", None)  # a websocket has no cycle: the handshake was its request
            answered = cycle is not None and not cycle.response_complete
            stage, since = self._progress.get(connection, (None, now))
            if stage != (id(cycle), answered):  # progress since the last call
                stage, since = (id(cycle), answered), now
            self._progress[connection] = (stage, since)
            asks_nothing = hasattr(connection, "cycle") and not answered
            headers = decoded_headers(getattr(connection, "scope", None) or {"headers": []})  # none before a request
            if asks_nothing or not self.guard.has_token(headers):
                waiting.append((answered, since, connection))
        waiting.sort(key=lambda x: x[:2])
        expired = [
            connection
            for k, (answered, since, connection) in enumerate(waiting)
            if now - since > (RESPONSE_SECONDS if answered else REQUEST_SECONDS) or len(waiting) - k > MAX_CONNECTIONS
        ]
        for connection in expired:
            if connection.transport is not None:
                connection.transport.abort()
        return len(expired)
