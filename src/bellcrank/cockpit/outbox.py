"""What is on its way to one page. A slot each for the newest state and report, and a short line for the rest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

WAITING = 64  # messages that must arrive, at most; a page that lets more pile up has gone


class Full(Exception):
    """The page does not read."""


class Outbox:
    def __init__(self) -> None:
        self.dropped = 0  # states that a newer one replaced
        self._state: bytes | None = None
        self._report: str | None = None
        self._rest: deque[str] = deque()
        self._some = asyncio.Event()

    def state(self, frame: bytes) -> None:
        self.dropped += self._state is not None
        self._state = frame
        self._some.set()

    def report(self, text: str) -> None:
        self._report = text
        self._some.set()

    def say(self, text: str) -> None:
        if len(self._rest) >= WAITING:
            raise Full
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
            if self._state is not None:
                frame, self._state = self._state, None
                await send_bytes(frame)
