"""Who may come in. A page of another site must not drive a machine that happens to run on this computer.

* Host: the name in the address bar must be this computer's. That stops names of other sites that point here.
* Origin: a websocket must come from a page that this server gave out. Programs that are no browsers send none; from
  this computer they are welcome.
* Token: whoever comes from another computer may look, and drives only with the token that the terminal shows.
* Pace: so many messages a second, then they are dropped, then the line is cut.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

PACE, BURST = 200.0, 400.0  # messages per second, and at once
ENOUGH = 2000  # dropped messages, after which the line is cut


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
    bound: str = "127.0.0.1"  # the address served
    token: str = ""

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

    def origin(self, origin: str | None, host: str | None, peer: str) -> bool:
        if origin is None:
            return loopback(peer)
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and bool(host) and parts.netloc == host

    def drives(self, peer: str, token: str) -> bool:
        if loopback(peer):
            return True
        return bool(self.token) and hmac.compare_digest(self.token.encode(), token.encode())


@dataclass
class Pace:
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
