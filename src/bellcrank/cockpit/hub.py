"""Hub of all connected pages and the session: states go out, messages come in, one page drives.

One task sends states, STATE_RATE_HZ times a second: a snapshot becomes one message, and each page has a slot for it.
Each page has a task that empties its slots as fast as the page reads, and a task that receives. Nothing here can delay
the drive: it runs in a separate thread, and only its newest state is read.

The helm assigns the driver among all viewers, and releases the levers by a dead-man switch. The time is an argument of
its methods, so that tests need not wait.
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
from bellcrank.cockpit.guard import MAX_DROPPED_MESSAGES, SUBPROTOCOL, Guard, MessageBucket
from bellcrank.cockpit.session import Session
from bellcrank.errors import BellcrankError
from bellcrank.record.contents import plain

STATE_RATE_HZ = 60.0  # 1/s, rate of states while the mechanism moves
STILL_SECONDS = 0.5  # s between states while nothing changes
REPORT_SECONDS = 0.5  # s between deadline reports
REPORTED_LATE_PERIODS = 8  # newest late periods in a report
MAX_VIEWERS = 64  # maximum number of pages
CLOSE_NO_TOKEN = 4401  # close code: no token, or a wrong one
DISCONNECT_ERRORS = (WebSocketDisconnect, RuntimeError, OSError)  # raised by Starlette when a page has disconnected
# What the driver's messages do at once.
ACTIONS: dict[type[m.Message], Callable[[Session, Any], None]] = {
    m.Pause: lambda session, _: session.pause(),
    m.Resume: lambda session, _: session.resume(),
    m.Slow: lambda session, message: session.slow(message.factor),
    m.Pilot: lambda session, message: session.start_pilot(message.name),
    m.Tune: lambda session, message: session.site.set_parameter(message.name, message.value),
    m.Soil: lambda session, message: session.site.set_soil(message.name),
    m.Task: lambda session, message: session.site.set_task(message.name),
}
log = logging.getLogger("bellcrank.cockpit")
DEAD_MAN_SECONDS = 0.2  # s without a message, after which the levers are released
SILENT_SECONDS = 5.0  # s without a message, after which any viewer may take over
ANSWER_SECONDS = 10.0  # s without an answer, after which a request is granted


@dataclass(eq=False)
class Viewer:
    """Connected page."""

    id: int
    outbox: m.Outbox = field(default_factory=m.Outbox)
    bucket: MessageBucket = field(default_factory=MessageBucket)
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class Hub:
    """Connections of all pages to the session."""

    def __init__(self, session: Session, guard: Guard, clock: Callable[[], float] = time.monotonic) -> None:
        self.session, self.guard, self.clock = session, guard, clock
        self.helm, self.viewers = Helm(), dict[int, Viewer]()
        self._next, self._serial, self._roles, self._settings = 1, 0, "", dict[str, Any]()
        self._was_neutral = True
        self._sent_key: tuple[Any, ...] = ()
        self._sent_time = -1e9  # time of the newest state message
        self._changes = set[asyncio.Task[None]]()

    # -- states

    async def run(self) -> None:
        """Send states and reports to all pages, until cancelled."""
        due, report_due = self.clock(), 0.0
        while True:
            self.send_state()
            now = self.clock()
            if now >= report_due and self.viewers:
                report_due = now + REPORT_SECONDS
                text = self.report()
                for viewer in self.viewers.values():
                    viewer.outbox.put_report(text)
            due = max(due + 1.0 / STATE_RATE_HZ, now)
            await asyncio.sleep(due - now)

    def report(self) -> str:
        """Return the deadline report as a message."""
        drive = self.session.drive
        report = drive.report()
        newest = list(report.get("log", ()))[-REPORTED_LATE_PERIODS:]
        return m.json_message("report", **plain({**report, "log": newest, "status": drive.snapshot().status}))

    def send_state(self) -> None:
        """Send one state to all pages, and release the levers if the driver does not hold them."""
        now, s = self.clock(), self.session
        self.helm.tick(now)
        held = self.helm.held(now)
        if s.pilot:
            s.run_pilot()
        elif not held and not self._was_neutral:
            s.release_levers()
        self._was_neutral = not held
        flags = (0 if held else m.NEUTRAL) | (m.DRIVEN if self.helm.driver is not None else 0)
        if patch := s.dig():
            for viewer in self.viewers.values():
                viewer.outbox.put_ground(patch)
        if self.viewers and self._is_due((flags, len(self.viewers), *s.state_key()), now):
            self._serial = (self._serial + 1) % 2**32
            frame = s.frame(flags, self._serial)
            for viewer in self.viewers.values():
                viewer.outbox.put_state(frame, self._serial)
        self.send_roles()
        self.send_settings()

    def _is_due(self, key: tuple[Any, ...], now: float) -> bool:
        """Return whether the state has changed, or the last message is STILL_SECONDS ago."""
        if key == self._sent_key and now - self._sent_time < STILL_SECONDS:
            return False
        self._sent_key, self._sent_time = key, now
        return True

    # -- text messages

    def send(self, viewer: Viewer, kind: str, **content: Any) -> None:
        """Send a message of type `kind` with fields `content` to `viewer`."""
        try:
            viewer.outbox.put(m.json_message(kind, **content))
        except m.QueueFullError:
            viewer.gone.set()

    def send_roles(self) -> None:
        """Send the roles to all pages if they have changed."""
        for who in self.helm.refused:
            if who in self.viewers:
                self.send(self.viewers[who], "note", text="The driver keeps the controls for now.", bad=True)
        self.helm.refused.clear()
        roles = {"driver": self.helm.driver, "asking": self.helm.asking, "viewers": len(self.viewers)}
        if str(roles) != self._roles:
            self._roles = str(roles)
            for viewer in self.viewers.values():
                self.send(viewer, "roles", **roles, you=viewer.id)

    def send_settings(self) -> None:
        """Send the settings to all pages if they have changed."""
        settings = self.session.current_settings()
        if settings != self._settings:
            self._settings = settings
            for viewer in self.viewers.values():
                self.send(viewer, "settings", **settings)

    # -- one page

    async def serve_page(self, socket: WebSocket) -> None:
        """Serve the page at `socket` until it disconnects; app.RequestChecks has checked Host and Origin."""
        if not self.guard.has_token(socket.headers):
            await socket.accept(_protocol(socket))  # a page can read the close code only of an accepted connection
            await socket.close(CLOSE_NO_TOKEN)
            return
        if len(self.viewers) >= MAX_VIEWERS:
            await socket.close(1013)
            return
        await socket.accept(_protocol(socket))
        viewer = Viewer(self._next)
        self._next += 1
        self.send(viewer, "welcome", **plain(self.session.welcome()), you=viewer.id)
        self.send(viewer, "settings", **self.session.current_settings())
        if self.session.ground is not None:
            viewer.outbox.put_ground(self.session.ground.full_state())
        self.viewers[viewer.id] = viewer
        if self.helm.driver is None:
            self.helm.ask(viewer.id, self.clock())
        self.send_roles()
        jobs: list[asyncio.Task[Any]] = [
            asyncio.create_task(_deliver(viewer, socket)),
            asyncio.create_task(self._listen(viewer, socket)),
            asyncio.create_task(viewer.gone.wait()),
        ]
        for job in jobs:
            job.add_done_callback(log_failure)
        try:
            await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            with contextlib.suppress(*DISCONNECT_ERRORS):
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
            if not viewer.bucket.allows(self.clock()):
                if viewer.bucket.dropped > MAX_DROPPED_MESSAGES:
                    viewer.gone.set()
                continue
            try:
                await self.handle(viewer, m.parse_message(text if text is not None else got.get("bytes") or b""))
            except BellcrankError as error:
                self.send(viewer, "note", text=str(error), bad=True)

    async def handle(self, viewer: Viewer, message: m.Message) -> None:
        """Carry out a `message` of `viewer`; most are for the driver only."""
        now, helm, s = self.clock(), self.helm, self.session
        match message:
            case m.Input():
                values = s.machine.values(message.values)
                if helm.hold(viewer.id, now) and not (s.pilot and values == s.machine.neutral(values)):
                    s.move_levers(values, message.n)
                    self._was_neutral = False
            case m.Seen():
                viewer.outbox.acknowledge(message.serial)
            case m.Blur():
                helm.release(viewer.id)
            case m.Ask():
                helm.ask(viewer.id, now)
            case m.Answer():
                helm.answer(viewer.id, message.grant, now)
            case m.Release():
                helm.leave(viewer.id, now)
            case _ if helm.driver != viewer.id:
                self.send(viewer, "note", text="Only the driver can do this; ask for the controls.", bad=True)
            case m.Reset() | m.Step():  # they take time
                await run_in_threadpool(s.reset if isinstance(message, m.Reset) else s.step)
            case m.Reach():
                self.send(viewer, "levers", values=await run_in_threadpool(s.slider_targets, message.point))
            case m.Switch():
                change = asyncio.create_task(self._change(viewer, message))
                self._changes.add(change)
                change.add_done_callback(self._changes.discard)
                change.add_done_callback(log_failure)
            case _:
                ACTIONS[type(message)](s, message)

    async def _change(self, viewer: Viewer, message: m.Switch) -> None:
        """Compile and switch in another thread, which takes seconds; meanwhile the drive and the pages continue."""
        try:
            await run_in_threadpool(self.session.switch, message.rate, message.integrator, message.method)
        except BellcrankError as error:
            self.send(viewer, "note", text=str(error), bad=True)
            self.send(viewer, "settings", **self.session.current_settings())  # the page shows the requested settings


def _protocol(socket: WebSocket) -> str | None:
    """Return our subprotocol if the page offers it: the handshake must confirm it."""
    return SUBPROTOCOL if SUBPROTOCOL in socket.scope.get("subprotocols", ()) else None


def log_failure(task: asyncio.Task[Any]) -> None:
    """Log the exception of a finished `task`."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a task of the cockpit failed", exc_info=error)


async def _deliver(viewer: Viewer, socket: WebSocket) -> None:
    with contextlib.suppress(*DISCONNECT_ERRORS):
        await viewer.outbox.deliver(socket.send_text, socket.send_bytes)


@dataclass
class Helm:
    """Driver, and the viewer who requests to drive."""

    driver: int | None = None
    asking: int | None = None
    last_input: float = -1e9  # time of the driver's last input
    _request_time: float = 0.0
    _active_time: float = 0.0  # time since which the driver has sent no input
    refused: set[int] = field(default_factory=set)  # viewers to notify of a refusal

    def held(self, now: float) -> bool:
        """Return whether the driver holds the levers at time `now`."""
        return self.driver is not None and now - self.last_input <= DEAD_MAN_SECONDS

    def hold(self, viewer_id: int, now: float) -> bool:
        """Record that viewer `viewer_id` holds the levers at time `now`; return False if it is not the driver."""
        if viewer_id != self.driver:
            return False
        self.last_input = self._active_time = now
        return True

    def release(self, viewer_id: int) -> None:
        """Release the levers if `viewer_id` is the driver."""
        if viewer_id == self.driver:
            self.last_input = -1e9

    def ask(self, viewer_id: int, now: float) -> None:
        """Request to drive for viewer `viewer_id` at time `now`; granted at once without an active driver."""
        if viewer_id == self.driver:
            return
        if self.driver is None or now - self._active_time > SILENT_SECONDS:
            self._set_driver(viewer_id, now)
        elif self.asking is None:
            self.asking, self._request_time = viewer_id, now
        elif self.asking != viewer_id:
            self.refused.add(viewer_id)  # one request at a time

    def answer(self, viewer_id: int, grant: bool, now: float) -> None:
        """Accept or refuse the request, by `grant`, at time `now`, if `viewer_id` is the driver."""
        if viewer_id != self.driver or self.asking is None:
            return
        if grant:
            self._set_driver(self.asking, now)
        else:
            self.refused.add(self.asking)
            self.asking = None

    def leave(self, viewer_id: int, now: float) -> None:
        """End driving, or the request, of viewer `viewer_id` at time `now`; a waiting viewer takes over."""
        if viewer_id == self.asking:
            self.asking = None
        if viewer_id == self.driver:
            self.driver = None
            if self.asking is not None:
                self._set_driver(self.asking, now)

    def tick(self, now: float) -> None:
        """Grant a request that has no answer at time `now`."""
        if self.asking is not None and (
            now - self._request_time > ANSWER_SECONDS or now - self._active_time > SILENT_SECONDS
        ):
            self._set_driver(self.asking, now)

    def _set_driver(self, viewer_id: int, now: float) -> None:
        self.driver, self.asking, self.last_input, self._active_time = viewer_id, None, -1e9, now
