"""What is on its way to one page. A slot each for the newest state and report, one for what has changed of the ground,
and a short line for the rest.

What the computer has taken over from us is out of our hands, and it takes a lot: hundreds of states can wait in the
buffers of a socket. So a page says which state has arrived, and only WINDOW of them are on their way at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable

from bellcrank.cockpit.messages import ground
from bellcrank.ground.field import Patch

WINDOW = 4  # states on their way: enough for 60 a second over a line of 60 ms
ANYWAY = 0.5  # s after which a state is sent to a page that says nothing
WAITING = 64  # messages that must arrive, at most; a page that lets more pile up has gone


class FullError(Exception):
    """The page does not read."""


class Outbox:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._sent, self._when = clock, deque[int](), 0.0
        self._serial = 0
        self.dropped = 0  # states that a newer one replaced
        self._state: bytes | None = None
        self._report: str | None = None
        self._ground: Patch | None = None
        self._rest: deque[str] = deque()
        self._some = asyncio.Event()

    def state(self, frame: bytes, serial: int) -> None:
        self.dropped += self._state is not None
        self._state, self._serial = frame, serial
        self._some.set()

    def seen(self, serial: int) -> None:
        """All up to this one have arrived."""
        while self._sent and self._sent[0] <= serial:
            self._sent.popleft()
        self._some.set()

    @property
    def free(self) -> bool:
        """Whether another state may be on its way."""
        return len(self._sent) < WINDOW or self._clock() - self._when > ANYWAY

    def report(self, text: str) -> None:
        self._report = text
        self._some.set()

    def ground(self, patch: Patch) -> None:
        self._ground = patch if self._ground is None else self._ground.then(patch)
        self._some.set()

    def say(self, text: str) -> None:
        if len(self._rest) >= WAITING:
            raise FullError
        self._rest.append(text)
        self._some.set()

    async def deliver(
        self, send_text: Callable[[str], Awaitable[None]], send_bytes: Callable[[bytes], Awaitable[None]]
    ) -> None:
        """For ever; waits in `send` as long as the page's line is full, and takes the newest when it is not."""
        while True:
            await self._some.wait()
            self._some.clear()
            while self._rest:
                await send_text(self._rest.popleft())
            if self._report is not None:
                text, self._report = self._report, None
                await send_text(text)
            if self._ground is not None:
                patch, self._ground = self._ground, None
                await send_bytes(ground(patch))
            if self._state is not None and self.free:
                frame, self._state = self._state, None
                self._sent.append(self._serial)
                if len(self._sent) > 2 * WINDOW:
                    self._sent.popleft()
                self._when = self._clock()
                await send_bytes(frame)
