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
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

SUBPROTOCOL, TOKEN_PREFIX = "bellcrank", "token."  # subprotocols of the websocket: ours, and the prefix of the token
MESSAGES_PER_SECOND, BURST_MESSAGES = 200.0, 400.0  # messages per second; messages at once
MAX_DROPPED_MESSAGES = 2000  # dropped messages, after which the connection is closed


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
