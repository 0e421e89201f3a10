"""Limits on connections of strangers: those that take too long are cut, and so are those beyond a number.

Whoever can reach the port, another user of this computer, say, may open connections by the thousand and ask for
nothing: half a request on each, an answer that is never read, or a websocket without the token. Each is a file that
this process has open, and when no more are to be had no page comes in and no record is written.

A connection that has brought the token is not hurried: a record may be large, and the network slow.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Collection
from typing import Any

from bellcrank.cockpit.guard import Guard

ASKING = 10.0  # s in which a request is made
READING = 60.0  # s in which the answer to a stranger is read: the page, and a megabyte of script
MOST = 100  # connections of strangers


class Door:
    """Looks at uvicorn's connections now and then, and at each new one where there are many."""

    def __init__(self, guard: Guard, clock: Callable[[], float] = time.monotonic) -> None:
        self.guard, self.clock = guard, clock
        self._since: weakref.WeakKeyDictionary[Any, tuple[object, float]] = weakref.WeakKeyDictionary()

    def admit(self, connections: Collection[Any]) -> None:
        """Make room for a connection that has just come: thousands may come between two looks."""
        if len(connections) > MOST:
            self.look(connections, self.clock())

    def look(self, connections: Collection[Any], now: float) -> int:
        """Cut those that have taken too long and, where there are too many, those that ask for nothing before those
        that are answered, the oldest first. Returns how many were cut.
        """
        waiting: list[tuple[bool, float, Any]] = []
        for line in list(connections):
            cycle = getattr(line, "cycle", None)  # a websocket has none: the handshake was its request
            answered = cycle is not None and not cycle.response_complete
            at, since = self._since.get(line, (None, now))
            if at != (id(cycle), answered):  # it has gone on since the last look
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
        """Whether a connection has brought the token; one whose request is not there yet has not."""
        scope = getattr(line, "scope", None) or {"headers": []}
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        return self.guard.knows(headers)
