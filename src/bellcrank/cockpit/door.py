"""Lines that nobody uses are cut. Whoever can reach the port, another user of this computer, say, may open lines by the
thousand and ask for nothing: half a request on each, or an answer that is never read. Each is a file that this process
has open, and when no more are to be had no page comes in and no record is written.

Who has brought the token is not hurried: a record may be large, and the way long. hub.py looks after websockets.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection
from typing import Any

from bellcrank.cockpit.guard import Guard

ASKING = 10.0  # s in which a request is made
READING = 60.0  # s in which the answer to a stranger is read: the page, and a megabyte of script
MOST = 100  # lines of strangers


class Door:
    """Looks at uvicorn's connections now and then."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._since: weakref.WeakKeyDictionary[Any, tuple[object, float]] = weakref.WeakKeyDictionary()

    def look(self, connections: Collection[Any], now: float) -> int:
        """Cuts those that have taken too long and, where there are too many, those who ask for nothing before those who
        are answered, the oldest first; says how many it were.
        """
        waiting: list[tuple[bool, float, Any]] = []
        for line in [c for c in connections if hasattr(c, "cycle")]:  # a websocket has none
            answered = line.cycle is not None and not line.cycle.response_complete
            at, since = self._since.get(line, (None, now))
            if at != (id(line.cycle), answered):  # it has gone on since we looked
                at, since = (id(line.cycle), answered), now
            self._since[line] = (at, since)
            if not answered or not self._known(line):
                waiting.append((answered, since, line))
        waiting.sort(key=lambda x: x[:2])
        late = [
            line
            for k, (answered, since, line) in enumerate(waiting)
            if now - since > (READING if answered else ASKING) or len(waiting) - k > MOST
        ]
        for line in late:
            line.transport.abort()
        return len(late)

    def _known(self, line: Any) -> bool:
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in line.scope["headers"]}
        return self.guard.knows(headers)
