"""Limits on the time and number of connections without a token.

Any program that can reach the port, for example one of another user of this computer, can open thousands of
connections with an incomplete request, an answer that is never read, or a websocket without the token. Each needs a
file descriptor of this process; without free descriptors, no page can connect and no record can be written.

A connection with the token has no limit: a record may be large, and the network slow.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Collection
from typing import Any

from bellcrank.cockpit.guard import Guard, decoded_headers

REQUEST_SECONDS = 10.0  # s, time limit of a request
RESPONSE_SECONDS = 60.0  # s, time limit for reading an answer without token: the page, and a megabyte of script
MAX_CONNECTIONS = 100  # connections without token


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
            if asks_nothing or not self._has_token(connection):
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

    def _has_token(self, line: Any) -> bool:
        """Return whether a connection has sent the token; an incomplete request counts as none."""
        return self.guard.has_token(decoded_headers(getattr(line, "scope", None) or {"headers": []}))
