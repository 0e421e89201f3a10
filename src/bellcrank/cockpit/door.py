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

from bellcrank.cockpit.guard import Guard

ASKING = 10.0  # s, time limit of a request
READING = 60.0  # s, time limit for reading an answer without token: the page, and a megabyte of script
MOST = 100  # connections without token


class Door:
    """Supervision of uvicorn's connections, at intervals and at each new connection if there are many."""

    def __init__(self, guard: Guard, clock: Callable[[], float] = time.monotonic) -> None:
        self.guard, self.clock = guard, clock
        self._since: weakref.WeakKeyDictionary[Any, tuple[object, float]] = weakref.WeakKeyDictionary()

    def admit(self, connections: Collection[Any]) -> None:
        """Check `connections` when one is added: thousands may be added between two calls of `look`."""
        if len(connections) > MOST:
            self.look(connections, self.clock())

    def look(self, connections: Collection[Any], now: float) -> int:
        """Abort those of `connections` that have exceeded their time at `now`, or their number.

        Connections without a request are aborted before those that are answered, oldest first.

        Returns
        -------
        int
            Number of aborted connections.
        """
        waiting: list[tuple[bool, float, Any]] = []
        for line in list(connections):
            cycle = getattr(line, "cycle", None)  # a websocket has no cycle: the handshake was its request
            answered = cycle is not None and not cycle.response_complete
            at, since = self._since.get(line, (None, now))
            if at != (id(cycle), answered):  # progress since the last call
                at, since = (id(cycle), answered), now
            self._since[line] = (at, since)
            asks_nothing = hasattr(line, "cycle") and not answered
            if asks_nothing or not self._known(line):
                waiting.append((answered, since, line))
        waiting.sort(key=lambda x: x[:2])
        late = [
            line
            for k, (answered, since, line) in enumerate(waiting)
            if now - since > (READING if answered else ASKING) or len(waiting) - k > MOST
        ]
        for line in late:
            if line.transport is not None:
                line.transport.abort()
        return len(late)

    def _known(self, line: Any) -> bool:
        """Return whether a connection has sent the token; an incomplete request counts as none."""
        scope = getattr(line, "scope", None) or {"headers": []}
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        return self.guard.knows(headers)
