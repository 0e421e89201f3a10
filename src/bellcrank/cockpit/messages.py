"""Protocol between page and server, which web/src/messages.ts repeats in TypeScript; a test compares the two.

From the page: JSON objects with a "type", the classes below. From the server: JSON objects (welcome, roles, settings,
report, note, levers) and two kinds of binary messages. The state is:

    u8 kind = 1, u8 flags, u16 epoch, u32 input, u64 n, f64 t, f32 slow, u32 serial
    f32: poses (12 numbers of each body, the rows of a 3x4 matrix), y, u, outputs

All numbers are little-endian. `epoch` counts changes of the running drive. `input` is the number of the driver's newest
message, so a page can measure the delay from its input to the picture. States are not queued: a newer state replaces
an older one that has not been sent. The page answers every second state with "seen" and its serial number, and no state
is sent while several are in flight. A slow page thus gets fewer states, not older ones.

The changes of the ground, or all of it for a new page, are:

    u8 kind = 2, u8 whole (cells that are not named are level), u16 0, u32 cells, f64 t, f32 load, f32 dug
    f32: heights, u16: which cells

The outbox of a page has slots for the newest state, the report and the changes of the ground, and a queue for the rest.
The buffers of a socket can hold hundreds of states, which cannot be replaced any more. So the page acknowledges states,
and at most MAX_STATES_IN_FLIGHT of them are in flight.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, dataclass_transform

import numpy as np

from bellcrank.errors import InputError, check_known
from bellcrank.ground.field import Array, Patch

PROTOCOL = 3
MAX_MESSAGE_BYTES = 4096  # bytes of a message from a page
MAX_VALUES = 256  # numbers in a message
MAX_NUMBER = 1e12  # absolute value of a number in a message
MAX_NAME_CHARACTERS = 64  # characters of a name in a message
STATE, GROUND = 1, 2  # kinds of binary messages
HEADER = struct.Struct("<BBHIQdfI")
GROUND_HEADER = struct.Struct("<BBHIdff")
RUNNING, NEUTRAL, DRIVEN = 1, 2, 4  # flags: drive runs; dead-man switch holds the input; there is a driver
MAX_STATES_IN_FLIGHT = 4  # states in flight: enough for 60 per second at a latency of 60 ms
UNACKNOWLEDGED_SECONDS = 0.5  # s after which a state is sent without an acknowledgement
MAX_QUEUED_MESSAGES = 64  # maximum length of the queue; a page that falls further behind is disconnected


class MessageError(InputError):
    """Invalid message from a page. The page gets a note, and the message has no other effect."""


# -- from the page: "type" is the name of a class, in lower case


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Message:
    """Message from a page; every kind of message is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Input(Message):
    """Positions of the levers, one number for each. Only the driver's message has an effect."""

    values: tuple[float, ...]
    n: int = 0


class Blur(Message):
    """Loss of focus of the page: the levers return to neutral at once."""


class Seen(Message):
    """Acknowledgement of the state with this serial number."""

    serial: int


class Ask(Message):
    """Request of a viewer to drive."""


class Answer(Message):
    """Answer of the driver to the viewer who requested to drive."""

    grant: bool


class Release(Message):
    """End of driving by the driver."""


class Pause(Message):
    """Pause of the drive."""


class Resume(Message):
    """End of a pause."""


class Reset(Message):
    """Return to the start of the drive."""


class Slow(Message):
    """Slow motion."""

    factor: float  # 1 is real time


class Switch(Message):
    """Change of rate, integrator or method; the motion continues from the present state."""

    rate: float = 0.0  # 0 and "": no change
    integrator: str = ""
    method: str = ""


class Pilot(Message):
    """Start of one of the machine's programs; "" returns to manual control."""

    name: str


class Step(Message):
    """Single step of a paused drive."""


class Tune(Message):
    """Change of a parameter of the machine."""

    name: str
    value: float


class Soil(Message):
    """Change of the soil of the ground."""

    name: str


class Task(Message):
    """Start of a task with a score; "" ends it."""

    name: str


class Reach(Message):
    """Request for slider positions that move the tool to a point (x, y, z); only this page gets the answer."""

    point: tuple[float, ...]


MESSAGES: dict[str, type[Message]] = {kind.__name__.lower(): kind for kind in Message.__subclasses__()}


def parse_message(text: str | bytes) -> Message:
    """Parse and check the message `text`; raise MessageError if it is invalid."""
    if len(text) > MAX_MESSAGE_BYTES:
        raise MessageError(f"a message of {len(text)} bytes; at most {MAX_MESSAGE_BYTES} are allowed.")
    if isinstance(text, bytes):
        raise MessageError("a binary message; expected JSON text.")
    try:
        data = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise MessageError(f"a message that is not JSON: {text[:MAX_NAME_CHARACTERS]!r}.") from None
    if not isinstance(data, dict):
        raise MessageError(f"a message that is not a JSON object: {text[:MAX_NAME_CHARACTERS]!r}.")
    name = data.pop("type", None)
    check_known("message", name[:MAX_NAME_CHARACTERS] if isinstance(name, str) else name, MESSAGES, "", MessageError)
    kind = MESSAGES[name]
    known_fields = {f.name: f for f in fields(kind)}
    for key in data:
        check_known("field", key[:MAX_NAME_CHARACTERS], known_fields, f'message "{name}"', MessageError)
    values = {}
    for key, f in known_fields.items():
        if key in data:
            values[key] = _checked(f'message "{name}", {key}', str(f.type), data[key])
        elif f.default is MISSING:
            raise MessageError(f'message "{name}" has no "{key}".')
    return kind(**values)


def _reject_constant(name: str) -> Any:
    raise ValueError(name)


def _is(x: Any, kind: Any) -> bool:
    return isinstance(x, kind) and not isinstance(x, bool)


# Type of a field -> whether a value fits, and what is expected.
_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "float": (lambda x: _is(x, int | float) and abs(x) < MAX_NUMBER, "a finite number"),
    "int": (lambda x: _is(x, int) and 0 <= x < 2**32, "a whole number below 2^32"),
    "bool": (lambda x: isinstance(x, bool), "true or false"),
    "str": (lambda x: isinstance(x, str) and len(x) <= MAX_NAME_CHARACTERS, "a name"),
}


def _checked(where: str, kind: str, x: Any) -> Any:
    """Return the value of a field of this `kind`, or raise a MessageError."""
    if kind == "tuple[float, ...]":
        if not isinstance(x, list) or len(x) > MAX_VALUES:
            raise MessageError(f"{where}: expected a list of at most {MAX_VALUES} numbers.")
        return tuple(_checked(where, "float", v) for v in x)
    fits, expected = _CHECKS[kind]
    if not fits(x):
        raise MessageError(f"{where}: expected {expected}, got {str(x)[:MAX_NAME_CHARACTERS]}.")
    return float(x) if kind == "float" else x


# -- from the server


def state_message(
    flags: int, epoch: int, number: int, n: int, t: float, slow: float, serial: int, numbers: Sequence[Array]
) -> bytes:
    """Return a binary state message.

    Parameters
    ----------
    flags
        Sum of RUNNING, NEUTRAL and DRIVEN.
    epoch
        Number of changes of the drive.
    number
        Number of the driver's newest message.
    n
        Steps done.
    t
        Time, s.
    slow
        Factor of slow motion.
    serial
        Serial number of the message.
    numbers
        Poses, y, u and outputs.
    """
    head = HEADER.pack(STATE, flags, epoch % 2**16, number, n, t, slow, serial)
    return head + np.concatenate([x.ravel() for x in numbers]).astype("<f4").tobytes()


def ground_message(patch: Patch) -> bytes:
    """Return a binary message with the changed cells of `patch`."""
    head = GROUND_HEADER.pack(GROUND, patch.whole, 0, len(patch.cells), patch.t, patch.load, patch.dug)
    return head + np.array(list(patch.cells.values()), "<f4").tobytes() + np.array(list(patch.cells), "<u2").tobytes()


def json_message(kind: str, /, **content: Any) -> str:
    """Return a JSON message of the server, of type `kind` with fields `content`."""
    return json.dumps({**content, "type": kind}, allow_nan=False)


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
