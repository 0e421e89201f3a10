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
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from bellcrank.errors import InputError, unknown
from bellcrank.ground.field import Patch

Array = np.ndarray[Any, Any]
PROTOCOL = 3
MAX_MESSAGE_BYTES = 4096  # bytes of a message from a page
MAX_VALUES = 256  # numbers in a message
MAX_NAME_CHARACTERS = 64  # characters of a name in a message
STATE, GROUND = 1, 2  # kinds of binary messages
HEADER = struct.Struct("<BBHIQdfI")
GROUND_HEADER = struct.Struct("<BBHIdff")
RUNNING, NEUTRAL, DRIVEN = 1, 2, 4  # flags: drive runs; dead-man switch holds the input; there is a driver


class MessageError(InputError):
    """Invalid message from a page. The page gets a note, and the message has no other effect."""


# -- from the page


@dataclass(frozen=True)
class Input:
    """Positions of the levers, one number for each. Only the driver's message has an effect."""

    values: tuple[float, ...]
    n: int = 0


@dataclass(frozen=True)
class Blur:
    """Loss of focus of the page: the levers return to neutral at once."""


@dataclass(frozen=True)
class Seen:
    """Acknowledgement of the state with this serial number."""

    serial: int


@dataclass(frozen=True)
class Ask:
    """Request of a viewer to drive."""


@dataclass(frozen=True)
class Answer:
    """Answer of the driver to the viewer who requested to drive."""

    grant: bool


@dataclass(frozen=True)
class Release:
    """End of driving by the driver."""


@dataclass(frozen=True)
class Pause:
    """Pause of the drive."""


@dataclass(frozen=True)
class Resume:
    """End of a pause."""


@dataclass(frozen=True)
class Reset:
    """Return to the start of the drive."""


@dataclass(frozen=True)
class Slow:
    """Slow motion."""

    factor: float  # 1 is real time


@dataclass(frozen=True)
class Switch:
    """Change of rate, integrator or method; the motion continues from the present state."""

    rate: float = 0.0  # 0 and "": no change
    integrator: str = ""
    method: str = ""


@dataclass(frozen=True)
class Pilot:
    """Start of one of the machine's programs; "" returns to manual control."""

    name: str


@dataclass(frozen=True)
class Step:
    """Single step of a paused drive."""


@dataclass(frozen=True)
class Tune:
    """Change of a parameter of the machine."""

    name: str
    value: float


@dataclass(frozen=True)
class Soil:
    """Change of the soil of the ground."""

    name: str


@dataclass(frozen=True)
class Task:
    """Start of a task with a score; "" ends it."""

    name: str


@dataclass(frozen=True)
class Reach:
    """Request for slider positions that move the tool to a point (x, y, z); only this page gets the answer."""

    point: tuple[float, ...]


Message = (
    Input
    | Blur
    | Seen
    | Ask
    | Answer
    | Release
    | Pause
    | Resume
    | Reset
    | Slow
    | Switch
    | Pilot
    | Step
    | Tune
    | Soil
    | Task
    | Reach
)
MESSAGES: dict[str, type[Any]] = {
    kind.__name__.lower(): kind
    for kind in (
        Input,
        Blur,
        Seen,
        Ask,
        Answer,
        Release,
        Pause,
        Resume,
        Reset,
        Slow,
        Switch,
        Pilot,
        Step,
        Tune,
        Soil,
        Task,
        Reach,
    )
}


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
    if not isinstance(name, str) or name not in MESSAGES:
        raise MessageError(unknown("message", str(name)[:MAX_NAME_CHARACTERS], MESSAGES))
    kind = MESSAGES[name]
    known_fields = {f.name: f for f in fields(kind)}
    for key in data:
        if key not in known_fields:
            raise MessageError(f'message "{name}": {unknown("field", key[:MAX_NAME_CHARACTERS], known_fields)}')
    values = {}
    for key, f in known_fields.items():
        if key in data:
            values[key] = _CHECKS[str(f.type)](f'message "{name}", {key}', data[key])
        elif f.default is MISSING:
            raise MessageError(f'message "{name}" has no "{key}".')
    message: Message = kind(**values)
    return message


def _reject_constant(name: str) -> Any:
    raise ValueError(name)


def _number(where: str, x: Any) -> float:
    if isinstance(x, bool) or not isinstance(x, (int, float)) or not abs(x) < 1e12 or not math.isfinite(x):
        raise MessageError(f"{where}: expected a finite number, got {str(x)[:MAX_NAME_CHARACTERS]}.")
    return float(x)


def _count(where: str, x: Any) -> int:
    if isinstance(x, bool) or not isinstance(x, int) or not 0 <= x < 2**32:
        raise MessageError(f"{where}: expected a whole number below 2^32, got {str(x)[:MAX_NAME_CHARACTERS]}.")
    return x


def _flag(where: str, x: Any) -> bool:
    if not isinstance(x, bool):
        raise MessageError(f"{where}: expected true or false, got {str(x)[:MAX_NAME_CHARACTERS]}.")
    return x


def _text(where: str, x: Any) -> str:
    if not isinstance(x, str) or len(x) > MAX_NAME_CHARACTERS:
        raise MessageError(f"{where}: expected a name, got {str(x)[:MAX_NAME_CHARACTERS]}.")
    return x


def _numbers(where: str, x: Any) -> tuple[float, ...]:
    if not isinstance(x, list) or len(x) > MAX_VALUES:
        raise MessageError(f"{where}: expected a list of at most {MAX_VALUES} numbers.")
    return tuple(_number(where, v) for v in x)


_CHECKS = {"float": _number, "int": _count, "bool": _flag, "str": _text, "tuple[float, ...]": _numbers}


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
