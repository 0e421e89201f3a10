"""Outbox of one page: slots for the newest state, the report and the changes of the ground, and a queue for the rest.

The buffers of a socket can hold hundreds of states, which cannot be replaced any more. So the page acknowledges states,
and at most MAX_STATES_IN_FLIGHT of them are in flight.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

from bellcrank.cockpit.messages import ground_message
from bellcrank.ground.field import Patch

MAX_STATES_IN_FLIGHT = 4  # states in flight: enough for 60 per second at a latency of 60 ms
UNACKNOWLEDGED_SECONDS = 0.5  # s after which a state is sent without an acknowledgement
MAX_QUEUED_MESSAGES = 64  # maximum length of the queue; a page that falls further behind is disconnected


class QueueFullError(Exception):
    """The queue is full, because the page does not read."""


class Outbox:
    """Messages that wait for one page."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._sent, self._sent_time = clock, deque[int](), 0.0
        self._serial = 0
        self.dropped = 0  # states that a newer one replaced
        self._state: bytes | None = None
        self._report: str | None = None
        self._ground: Patch | None = None
        self._queue: deque[str] = deque()
        self._nonempty = asyncio.Event()

    def put_state(self, frame: bytes, serial: int) -> None:
        """Replace the waiting state by `frame` with number `serial`."""
        self.dropped += self._state is not None
        self._state, self._serial = frame, serial
        self._nonempty.set()

    def acknowledge(self, serial: int) -> None:
        """Acknowledge all states up to number `serial`."""
        while self._sent and self._sent[0] <= serial:
            self._sent.popleft()
        self._nonempty.set()

    @property
    def can_send_state(self) -> bool:
        """True if another state may be sent."""
        return len(self._sent) < MAX_STATES_IN_FLIGHT or self._clock() - self._sent_time > UNACKNOWLEDGED_SECONDS

    def put_report(self, text: str) -> None:
        """Replace the waiting report by `text`."""
        self._report = text
        self._nonempty.set()

    def put_ground(self, patch: Patch) -> None:
        """Merge `patch` into the waiting changes of the ground."""
        self._ground = patch if self._ground is None else self._ground.merged_with(patch)
        self._nonempty.set()

    def put(self, text: str) -> None:
        """Append the message `text` to the queue; raise QueueFullError if it is full."""
        if len(self._queue) >= MAX_QUEUED_MESSAGES:
            raise QueueFullError
        self._queue.append(text)
        self._nonempty.set()

    async def deliver(
        self, send_text: Callable[[str], Awaitable[None]], send_bytes: Callable[[bytes], Awaitable[None]]
    ) -> None:
        """Send messages by `send_text` and `send_bytes` until cancelled; newer states replace older ones meanwhile."""
        while True:
            await self._nonempty.wait()
            self._nonempty.clear()
            while self._queue:
                await send_text(self._queue.popleft())
            if self._report is not None:
                text, self._report = self._report, None
                await send_text(text)
            if self._ground is not None:
                patch, self._ground = self._ground, None
                await send_bytes(ground_message(patch))
            if self._state is not None and self.can_send_state:
                frame, self._state = self._state, None
                self._sent.append(self._serial)
                if len(self._sent) > 2 * MAX_STATES_IN_FLIGHT:
                    self._sent.popleft()
                self._sent_time = self._clock()
                await send_bytes(frame)
