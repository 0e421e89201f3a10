"""All pages and the one session: pictures go out, messages come in, one page drives.

One task sends pictures, RATE times a second: a snapshot becomes one message, and each page has a slot for it. Each page
has a task that empties its slots as fast as the page reads, and one that listens. Nothing here can hold up the drive:
it runs in a thread of its own and is only ever asked for its newest state.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from bellcrank.cockpit import messages as m
from bellcrank.cockpit.guard import MOST_DROPPED, PROTOCOL, Guard, MessageBucket
from bellcrank.cockpit.helm import Helm
from bellcrank.cockpit.outbox import FullError, Outbox
from bellcrank.cockpit.session import Session
from bellcrank.errors import BellcrankError
from bellcrank.record.contents import plain

RATE = 60.0  # looks per second, and pictures of what moves
STILL_PERIOD = 0.5  # s between pictures of what stands still
REPORTS = 0.5  # s between deadline reports
LATE = 8  # of the newest late periods are in one
VIEWERS = 64  # at once
STRANGER = 4401  # why a line ends: no token, or not this server's
LINE_GONE = (WebSocketDisconnect, RuntimeError, OSError)  # how Starlette says that a page has gone
log = logging.getLogger("bellcrank.cockpit")


@dataclass(eq=False)
class Viewer:
    id: int
    outbox: Outbox = field(default_factory=Outbox)
    pace: MessageBucket = field(default_factory=MessageBucket)
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class Hub:
    """All pages and the one session."""

    def __init__(self, session: Session, guard: Guard, clock: Callable[[], float] = time.monotonic) -> None:
        self.session, self.guard, self.clock = session, guard, clock
        self.helm, self.viewers = Helm(), dict[int, Viewer]()
        self._next, self._serial, self._roles, self._settings = 1, 0, "", dict[str, Any]()
        self._was_neutral = True
        self._shown: tuple[Any, ...] = ()
        self._shown_at = -1e9  # what the newest picture was of
        self._changes = set[asyncio.Task[None]]()

    # -- the picture

    async def run(self) -> None:
        """Shows everybody the picture, until it is cancelled."""
        due, report_due = self.clock(), 0.0
        while True:
            self.look()
            now = self.clock()
            if now >= report_due and self.viewers:
                report_due = now + REPORTS
                text = self.report()
                for viewer in self.viewers.values():
                    viewer.outbox.report(text)
            due = max(due + 1.0 / RATE, now)
            await asyncio.sleep(due - now)

    def report(self) -> str:
        drive = self.session.drive
        found = drive.report()
        found = {**found, "log": list(found.get("log", ()))[-LATE:], "status": drive.snapshot().status}
        return m.said("report", **plain(found))

    def look(self) -> None:
        """One picture for everybody, and a look at who holds the levers."""
        now, s = self.clock(), self.session
        self.helm.tick(now)
        held = self.helm.held(now)
        if s.pilot:
            s.piloted()
        elif not held and not self._was_neutral:
            s.let_go()
        self._was_neutral = not held
        flags = (0 if held else m.NEUTRAL) | (m.DRIVEN if self.helm.driver is not None else 0)
        if patch := s.dig():
            for viewer in self.viewers.values():
                viewer.outbox.ground(patch)
        if self.viewers and self._fresh((flags, len(self.viewers), *s.shown()), now):
            self._serial = (self._serial + 1) % 2**32
            frame = s.frame(flags, self._serial)
            for viewer in self.viewers.values():
                viewer.outbox.state(frame, self._serial)
        self.tell_roles()
        self.tell_settings()

    def _fresh(self, what: tuple[Any, ...], now: float) -> bool:
        """Whether there is something new to be seen, or it is time to say that there is not."""
        if what == self._shown and now - self._shown_at < STILL_PERIOD:
            return False
        self._shown, self._shown_at = what, now
        return True

    # -- words

    def say(self, viewer: Viewer, kind: str, **content: Any) -> None:
        try:
            viewer.outbox.say(m.said(kind, **content))
        except FullError:
            viewer.gone.set()

    def tell(self, kind: str, **content: Any) -> None:
        for viewer in self.viewers.values():
            self.say(viewer, kind, **content)

    def tell_roles(self) -> None:
        """To everybody, when they have changed."""
        for who in self.helm.refused:
            if who in self.viewers:
                self.say(self.viewers[who], "note", text="The driver keeps the controls for now.", bad=True)
        self.helm.refused.clear()
        roles = {"driver": self.helm.driver, "asking": self.helm.asking, "viewers": len(self.viewers)}
        if str(roles) != self._roles:
            self._roles = str(roles)
            for viewer in self.viewers.values():
                self.say(viewer, "roles", **roles, you=viewer.id)

    def tell_settings(self) -> None:
        """To everybody, when they have changed."""
        now = self.session.now()
        if now != self._settings:
            self._settings = now
            self.tell("settings", **now)

    # -- one page

    async def meet(self, socket: WebSocket) -> None:
        """Host and Origin were looked at before (app.Checked)."""
        if not self.guard.knows(socket.headers):
            await socket.accept(_protocol(socket))  # a browser tells a page nothing about a line that was refused
            await socket.close(STRANGER)
            return
        if len(self.viewers) >= VIEWERS:
            await socket.close(1013)
            return
        await socket.accept(_protocol(socket))
        viewer = Viewer(self._next)
        self._next += 1
        self.say(viewer, "welcome", **plain(self.session.welcome()), you=viewer.id)
        self.say(viewer, "settings", **self.session.now())
        if self.session.ground is not None:
            viewer.outbox.ground(self.session.ground.whole())
        self.viewers[viewer.id] = viewer
        if self.helm.driver is None:
            self.helm.ask(viewer.id, self.clock())
        self.tell_roles()
        jobs: list[asyncio.Task[Any]] = [
            asyncio.create_task(_deliver(viewer, socket)),
            asyncio.create_task(self._listen(viewer, socket)),
            asyncio.create_task(viewer.gone.wait()),
        ]
        for job in jobs:
            job.add_done_callback(tell_failure)
        try:
            await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            with contextlib.suppress(*LINE_GONE):
                await socket.close(1008 if viewer.gone.is_set() else 1000)
        finally:
            del self.viewers[viewer.id]
            self.helm.leave(viewer.id, self.clock())
            for job in jobs:
                job.cancel()

    async def _listen(self, viewer: Viewer, socket: WebSocket) -> None:
        while True:
            got = await socket.receive()
            if got["type"] == "websocket.disconnect":
                return
            text = got.get("text")
            if not viewer.pace.allows(self.clock()):
                if viewer.pace.dropped > MOST_DROPPED:
                    viewer.gone.set()
                continue
            try:
                await self.obey(viewer, m.parsed(text if text is not None else got.get("bytes") or b""))
            except BellcrankError as error:
                self.say(viewer, "note", text=str(error), bad=True)

    async def obey(self, viewer: Viewer, message: m.Message) -> None:
        now, helm, s = self.clock(), self.helm, self.session
        match message:
            case m.Input():
                values = s.machine.values(message.values)
                if helm.hand(viewer.id, now) and not (s.pilot and values == s.machine.neutral(values)):
                    s.move(values, message.n)
                    self._was_neutral = False
            case m.Seen():
                viewer.outbox.seen(message.serial)
            case m.Blur():
                helm.let_go(viewer.id)
            case m.Ask():
                helm.ask(viewer.id, now)
            case m.Answer():
                helm.answer(viewer.id, message.grant, now)
            case m.Release():
                helm.leave(viewer.id, now)
            case _ if helm.driver != viewer.id:
                self.say(viewer, "note", text="Only the driver can do this; ask for the controls.", bad=True)
            case m.Pause():
                s.pause()
            case m.Resume():
                s.resume()
            case m.Reset():
                await run_in_threadpool(s.reset)
            case m.Slow():
                s.slow(message.factor)
            case m.Pilot():
                s.fly(message.name)
            case m.Step():
                await run_in_threadpool(s.step)
            case m.Tune() | m.Soil() | m.Task():
                s.site.obey(message)
            case m.Reach():
                self.say(viewer, "levers", values=await run_in_threadpool(s.reached, message.point))
            case m.Switch():
                change = asyncio.create_task(self._change(viewer, message))
                self._changes.add(change)
                change.add_done_callback(self._changes.discard)
                change.add_done_callback(tell_failure)

    async def _change(self, viewer: Viewer, message: m.Switch) -> None:
        """Compiles for seconds, beside everything else: who asked for it still drives and sees."""
        try:
            await run_in_threadpool(self.session.switch, message.rate, message.integrator, message.method)
        except BellcrankError as error:
            self.say(viewer, "note", text=str(error), bad=True)
            self.say(viewer, "settings", **self.session.now())  # for it shows what it asked for


def _protocol(socket: WebSocket) -> str | None:
    """A page that offers ours wants to hear it back."""
    return PROTOCOL if PROTOCOL in socket.scope.get("subprotocols", ()) else None


def tell_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a task of the cockpit failed", exc_info=error)


async def _deliver(viewer: Viewer, socket: WebSocket) -> None:
    with contextlib.suppress(*LINE_GONE):
        await viewer.outbox.deliver(socket.send_text, socket.send_bytes)
