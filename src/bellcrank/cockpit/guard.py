"""Who may come in. Neither a page of another site nor another user of this computer may drive, watch or save.

* Host: the name in the address bar must be this computer's. That stops names of other sites that point here.
* Origin: what a page asks for must be asked by a page that this server gave out. Browsers say who asks, by Origin or by
  Sec-Fetch-Site; programs that are no browsers say nothing.
* Token: random, of this server alone, and known to who sees its terminal. The page has it behind the # of its address,
  which no browser sends anywhere. It travels as `Authorization: Bearer TOKEN`, which no page of another site can add,
  or, where a browser lets nothing be added, as a subprotocol of the websocket. No cookie: those of one port go to all
  ports of a computer, and so to other users' programs.
* Pace: so many messages a second, then they are dropped, then the line is cut.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

PROTOCOL, TICKET = "bellcrank", "token."  # subprotocols of the websocket: ours, and how the token begins
PACE, BURST = 200.0, 400.0  # messages per second, and at once
MOST_DROPPED = 2000  # dropped messages, after which the line is cut


def loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(header: str | None) -> str:
    """The name without port and brackets, "" where there is none."""
    try:
        return (urlsplit(f"//{header}").hostname or "") if header else ""
    except ValueError:
        return ""


@dataclass(frozen=True)
class Guard:
    """What is asked of everybody. The headers' names are in small letters."""

    bound: str = "127.0.0.1"  # the address served
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    def __post_init__(self) -> None:
        if not self.token or not self.token.isascii():
            raise ValueError("a guard needs a token of ASCII letters")

    def host(self, header: str | None) -> bool:
        """An address in numbers cannot be another site's name, so any will do where others are let in at all."""
        name = host_of(header)
        if not name or loopback(name):
            return bool(name)
        if loopback(self.bound):
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in (self.bound, socket.gethostname().lower(), socket.getfqdn().lower())
        return True

    def origin(self, headers: Mapping[str, str], arrival: bool = False) -> bool:
        """Whether it is asked by our own page, or by no page at all. arrival: somebody comes to the page itself, by a
        link on another site perhaps, which is no harm: whatever it then asks for is asked for by our page.
        """
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return arrival and headers.get("sec-fetch-mode") == "navigate" and "origin" not in headers
        origin, host = headers.get("origin"), headers.get("host")
        if origin is None:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and bool(host) and parts.netloc == host

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Whether the token is there. Takes as long whatever is wrong with it."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        offered = [x.strip() for x in headers.get("sec-websocket-protocol", "").split(",")]
        tickets = [x.removeprefix(TICKET) for x in offered if x.startswith(TICKET)]
        given = given.strip() if kind.lower() == "bearer" else tickets[0] if tickets else ""
        return hmac.compare_digest(self.token.encode(), given.encode("utf-8", "surrogateescape"))


@dataclass
class MessageBucket:
    """A bucket of messages that fills at PACE."""

    left: float = BURST
    last: float = 0.0
    dropped: int = field(default=0)

    def allows(self, now: float) -> bool:
        self.left = min(BURST, self.left + (now - self.last) * PACE) if self.last else self.left
        self.last = now
        if self.left < 1.0:
            self.dropped += 1
            return False
        self.left -= 1.0
        return True
